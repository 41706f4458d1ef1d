"""The demo: that it learns, that it can be stopped and resumed exactly, and what it leaves behind."""

import os
import pty
import re
import signal
import subprocess
import sys
import textwrap
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import pytest

import pellucid
from pellucid.cli.chart import learning_curve
from pellucid.cli.digits import load_digits, load_network, read_checkpoint, split
from pellucid.cli.errors import UsageError
from pellucid.cli.interrupt import EndEarly
from pellucid.cli.main import main
from pellucid.cli.progress import Bar, Lines, choose_progress
from pellucid.cli.training import Epoch, Settings, Training, warm_up_then_cosine

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(pellucid.__file__).parents[1]), "COLUMNS": "120"}


def demo(folder, *options):
    return main(["demo", "--quiet", "--out", str(folder), *map(str, options)])


def start(folder, *options, **streams):
    command = [sys.executable, "-u", "-m", "pellucid", "demo", "--out", str(folder), *options]
    return subprocess.Popen(command, env=ENVIRONMENT, text=True, stderr=subprocess.PIPE, **streams)


def history(folder):
    """The numbers of every epoch, without the one that a clock gave."""
    epochs = read_checkpoint(folder / "checkpoint.pt")["history"]
    return [{name: value for name, value in epoch.items() if name != "samples_per_second"} for epoch in epochs]


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """The folder of a demo run as `make demo` runs it, and what it printed."""
    folder = tmp_path_factory.mktemp("finished") / "deep" / "demo"
    with start(folder, stdout=subprocess.PIPE) as process:
        output, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    return folder, output


def test_the_digits_are_those_of_the_uci_set():
    images, labels = load_digits()
    assert images.shape == (1797, 1, 8, 8)
    assert (images.dtype, labels.dtype) == (pellucid.float32, pellucid.int64)
    assert (images.min().item(), images.max().item()) == (0.0, 1.0)
    assert pellucid.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]
    assert (images.sum() * 16).item() == 561718


def test_the_split_holds_out_a_fifth_of_every_digit():
    _, labels = load_digits()
    train, held_out = split(labels, seed=3)
    assert sorted([*train.tolist(), *held_out.tolist()]) == list(range(1797))
    assert pellucid.bincount(labels[held_out]).tolist() == [36, 36, 35, 37, 36, 36, 36, 36, 35, 36]
    assert held_out.tolist() != split(labels, seed=4)[1].tolist()


def test_it_reads_98_percent_of_held_out_digits(finished):
    folder, output = finished
    (percent,) = re.findall(r"([\d.]+)% of 359 held-out digits are read right", output)
    assert float(percent) >= 98
    assert history(folder)[-1]["held_out_accuracy"] == pytest.approx(float(percent) / 100, abs=1e-4)


def test_without_a_terminal_it_prints_one_line_an_epoch(finished):
    lines = [line for line in finished[1].splitlines() if line.startswith("epoch ")]
    assert len(lines) == 12
    pattern = r"epoch [ \d]\d/12  loss \d\.\d{4}  accuracy [ \d.]+%  held out [ \d.]+%  +[\d,]+ samples/s"
    assert all(re.fullmatch(pattern, line) for line in lines)


def test_its_three_lines_read_a_digit(finished, tmp_path):
    lines = [line for line in finished[1].splitlines() if line.startswith("    ")]
    assert len(lines) == 3
    command = [sys.executable, "-c", textwrap.dedent("\n".join(lines))]
    result = subprocess.run(command, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True, check=True)
    assert re.fullmatch(r"(\d) is read as \1\n", result.stdout)


def test_it_leaves_two_pictures_and_a_checkpoint(finished):
    folder, _ = finished
    assert sorted(path.name for path in folder.iterdir()) == ["checkpoint.pt", "graph.svg", "learning-curve.svg"]
    graph = ElementTree.parse(folder / "graph.svg").getroot()
    words = {element.text for element in graph.iter() if element.text}
    assert {"image", "[1, 1, 8, 8]", "conv1.weight", "[16, 1, 3, 3]", "ConvolutionBackward0", "loss"} <= words
    curve = ElementTree.parse(folder / "learning-curve.svg").getroot()
    assert sum(element.tag.endswith("polyline") for element in curve.iter()) == 4


def test_two_epochs_and_two_more_are_four_epochs_to_the_last_bit(tmp_path):
    assert demo(tmp_path / "whole", "--epochs", 4, "--seed", 5) == 0
    assert demo(tmp_path / "parts", "--epochs", 2, "--seed", 5) == 0
    assert len(history(tmp_path / "parts")) == 2
    pellucid.manual_seed(99)  # what the process did in between must not matter
    assert demo(tmp_path / "parts", "--epochs", 4, "--resume") == 0
    assert history(tmp_path / "parts") == history(tmp_path / "whole")
    whole, parts = (read_checkpoint(tmp_path / name / "checkpoint.pt") for name in ("whole", "parts"))
    assert all(pellucid.equal(whole["network"][name], parts["network"][name]) for name in whole["network"])
    assert pellucid.equal(whole["random"], parts["random"])


def test_resume_takes_any_checkpoint_and_goes_on_in_the_folder_given(tmp_path):
    demo(tmp_path / "first", "--epochs", 1)
    assert demo(tmp_path / "second", "--epochs", 2, "--resume", tmp_path / "first" / "checkpoint.pt") == 0
    assert [len(history(tmp_path / name)) for name in ("first", "second")] == [1, 2]


def test_resume_with_other_settings_is_refused(tmp_path, capsys):
    demo(tmp_path, "--epochs", 1, "--seed", 1)
    assert demo(tmp_path, "--epochs", 2, "--seed", 2, "--resume") == 2
    assert "was trained with --seed 1 and cannot go on with --seed 2" in capsys.readouterr().err


def test_resume_of_a_finished_run_trains_no_further(tmp_path, capsys):
    demo(tmp_path, "--epochs", 1)
    before = history(tmp_path)
    capsys.readouterr()
    assert main(["demo", "--epochs", "1", "--out", str(tmp_path), "--resume"]) == 0
    assert "1 epochs already: nothing to train" in capsys.readouterr().out
    assert history(tmp_path) == before


def test_ctrl_c_ends_early_and_keeps_the_work(tmp_path):
    with start(tmp_path, "--epochs", "500", stdout=subprocess.PIPE) as process:
        first = process.stdout.readline()
        assert first.startswith("epoch   1/500")
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate()
    assert (process.returncode, errors) == (130, "")
    assert "Ctrl-C: ending after this epoch" in output
    assert "-m pellucid demo --epochs 500" in output
    epochs = len(history(tmp_path))
    assert f"epoch {epochs:3}/500" in first + output
    load_network(tmp_path / "checkpoint.pt")


def test_on_a_terminal_it_shows_a_bar(tmp_path):
    control, terminal = pty.openpty()
    with start(tmp_path, "--epochs", "1", stdout=terminal) as process:
        os.close(terminal)
        shown = b""
        while chunk := read_terminal(control):
            shown += chunk
        os.close(control)
        assert process.stderr.read() == ""
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert re.search(r"epoch 1/1 +━+ +\d+% +loss \d\.\d{4} +accuracy [\d.]+% +[\d,]+ samples/s", text)
    assert re.search(r"[\r\n]epoch 1/1  loss \d\.\d{4}  accuracy", text)
    assert "nan" not in text


def read_terminal(control):
    try:
        return os.read(control, 65536)
    except OSError:  # Linux's way of saying that the other side has closed
        return b""


def test_the_second_ctrl_c_interrupts():
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background starts with it ignored
    notices = []
    with pytest.raises(KeyboardInterrupt), EndEarly(lambda: notices.append("noticed")) as end:  # noqa: PT012
        signal.raise_signal(signal.SIGINT)
        assert end.wished
        signal.raise_signal(signal.SIGINT)
    assert notices == ["noticed"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_checkpoint_that_cannot_be_written_is_the_users_affair(tmp_path):
    (tmp_path / "checkpoint.pt").mkdir()
    with pytest.raises(UsageError, match=r"cannot write the checkpoint .*checkpoint\.pt: "):
        Training(Settings(), 1).save(tmp_path / "checkpoint.pt")


def test_the_rate_warms_up_then_follows_a_cosine():
    factor = warm_up_then_cosine(4, 12)
    assert [factor(step) for step in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert factor(8) == pytest.approx(0.5)
    assert factor(12) == factor(50) == pytest.approx(0.0)


@pytest.mark.parametrize("loss", [1e-9, 0.0, 0.3, 40.0, float("inf"), float("nan")])
@pytest.mark.parametrize("epochs", [1, 2, 13, 60])
def test_the_learning_curve_copes_with_any_history(epochs, loss):
    svg = learning_curve([Epoch(0.5**number, 0.9, loss, 1.0, 0.1, 1.0) for number in range(epochs)])
    ElementTree.fromstring(svg)
    assert "nan" not in svg
    assert "inf" not in svg


def test_a_terminal_gets_a_bar_where_rich_is_installed_and_lines_elsewhere(monkeypatch):
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert isinstance(choose_progress(3, quiet=False), Bar)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert type(choose_progress(3, quiet=False)) is Lines
