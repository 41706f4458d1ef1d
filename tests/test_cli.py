"""The command `pellucid`: what it says and which exit status it returns. What the demo learns is in test_demo.py."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import pellucid
from pellucid.cli.main import main


def outcome(capsys, *arguments):
    """Exit status, standard output, standard error."""
    try:
        status = main([str(argument) for argument in arguments])
    except SystemExit as exit_:
        status = exit_.code
    return status, *capsys.readouterr()


@pytest.fixture
def stray(tmp_path):
    """Files that are no checkpoint of the demo."""
    (tmp_path / "empty.pt").touch()
    (tmp_path / "text.pt").write_text("not a checkpoint\n")
    pellucid.save({"weight": pellucid.ones(2)}, tmp_path / "other.pt")
    pellucid.save({"kind": "pellucid demo 1"}, tmp_path / "hollow.pt")
    (tmp_path / "file").touch()
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--epochs", "0"], "argument --epochs: expected a whole number from 1 up, got 0"),
        (["--epochs", "many"], "argument --epochs: expected a whole number, got 'many'"),
        (["--batch-size", "-3"], "argument --batch-size: expected a whole number from 0 to 2**63 - 1, got -3"),
        (["--seed", "-1"], "argument --seed: expected a whole number from 0 to 2**63 - 1, got -1"),
        (["--lr", "nan"], "argument --lr: expected a finite number above 0, got nan"),
        (["--lr", "fast"], "argument --lr: expected a number, got 'fast'"),
        (["--device", "cuda"], "--device cuda: device 'cuda' is not available"),
        (["--device", "toaster"], "--device toaster: "),
        (["--speed", "9"], "unrecognized arguments: --speed 9"),
        (["--out", "{}/file"], "--out {}/file: cannot make this folder: File exists"),
        (["--resume", "{}/none.pt"], "cannot read the checkpoint {}/none.pt: No such file or directory"),
        (["--resume", "{}"], "cannot read the checkpoint {}: "),
        (["--resume", "{}/empty.pt"], "cannot read the checkpoint {}/empty.pt: it is damaged, or no checkpoint at all"),
        (["--resume", "{}/text.pt"], "cannot read the checkpoint {}/text.pt: it is damaged, or no checkpoint at all"),
        (["--resume", "{}/other.pt"], "{}/other.pt is a file of another program"),
        (["--resume", "{}/hollow.pt"], "the checkpoint {}/hollow.pt does not fit this version of the demo"),
    ],
)
def test_a_mistake_gets_one_line_and_status_2(capsys, stray, arguments, complaint):
    status, output, errors = outcome(capsys, "demo", *(argument.format(stray) for argument in arguments))
    assert status == 2
    assert output == ""
    assert complaint.format(stray) in errors
    assert errors.count("\n") == 1


def test_an_unknown_program_gets_one_line_and_status_2(capsys):
    status, _, errors = outcome(capsys, "dmo")
    assert status == 2
    assert "invalid choice: 'dmo'" in errors
    assert errors.count("\n") == 1


def test_no_program_at_all_prints_the_help(capsys):
    status, output, _ = outcome(capsys)
    assert status == 0
    assert "demo" in output


def test_demo_help_names_every_option(capsys):
    status, output, _ = outcome(capsys, "demo", "--help")
    assert status == 0
    for option in ("--epochs", "--seed", "--batch-size", "--lr", "--device", "--out", "--resume", "--quiet"):
        assert option in output


def test_version(capsys):
    status, output, _ = outcome(capsys, "--version")
    assert (status, output) == (0, f"pellucid {pellucid.__version__}\n")


def test_it_runs_as_a_module_and_survives_a_reader_that_leaves():
    environment = {**os.environ, "PYTHONPATH": str(Path(pellucid.__file__).parents[1])}
    command = [sys.executable, "-m", "pellucid", "demo", "--help"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        process.stdout.close()
        assert process.stderr.read() == b""
        process.wait()
