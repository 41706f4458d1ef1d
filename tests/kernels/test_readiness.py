"""Kernels that are not compiled yet are compiled by another process; NumPy does the work until then."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import pellucid
from pellucid.cli.kernels import EXERCISES
from pellucid.cli.main import main
from pellucid.kernels import choice, readiness

FLOAT32 = np.dtype(np.float32)


class Helper:
    """Stands for the process that compiles."""

    def __init__(self, *_, **__):
        self.stdin, self.lines, self.returncode = self, [], None

    def write(self, line):
        self.lines.append(line.decode())

    def flush(self):
        pass

    def close(self):
        pass


@pytest.fixture
def fresh(monkeypatch, tmp_path):
    """A process that knows of no kernels, on a machine that has none."""
    monkeypatch.setenv("PELLUCID_KERNELS", "")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    for name, value in {"ready": set(), "asked": set(), "looked": 0.0, "helper": None, "owner": 0, "folder": None}.items():
        monkeypatch.setattr(readiness._state, name, value)
    monkeypatch.setattr(readiness, "PATIENCE", 0)
    monkeypatch.setattr(readiness.subprocess, "Popen", Helper)
    return monkeypatch


def test_a_family_is_asked_for_once_and_used_when_it_is_there(fresh):
    for _ in range(3):
        assert not readiness.is_ready("products", FLOAT32)
    assert readiness._state.helper.lines == ["products float32\n"]
    assert not readiness.is_ready("softmax", np.dtype(np.float64))
    assert readiness._state.helper.lines[1:] == ["softmax float64\n"]
    readiness.mark("products", "float32")
    assert readiness.is_ready("products", FLOAT32)
    assert not readiness.is_ready("products", np.dtype(np.float64))


def test_numpy_does_the_work_meanwhile(fresh):
    fresh.setattr(choice, "_LOADED", {dtype: {} for dtype in choice.FLOATS})
    assert choice.compiled("rectifiers", 1 << 20, np.ones(1, np.float32)) is None
    readiness.mark("rectifiers", "float32")
    assert choice.compiled("rectifiers", 1 << 20, np.ones(1, np.float32)) is not None


def test_markers_are_not_looked_for_at_every_call(fresh):
    fresh.setattr(readiness, "PATIENCE", 1e9)
    assert not readiness.is_ready("products", FLOAT32)
    readiness.mark("products", "float32")
    assert not readiness.is_ready("products", FLOAT32)


def test_waiting_asks_nobody(fresh):
    fresh.setenv("PELLUCID_KERNELS", "wait")
    assert readiness.is_ready("products", FLOAT32)
    assert readiness._state.helper is None


def test_where_no_process_can_be_started_kernels_are_compiled_at_first_use(fresh):
    def refuse(*_, **__):
        raise OSError("no more processes")

    fresh.setattr(readiness.subprocess, "Popen", refuse)
    assert readiness.is_ready("products", FLOAT32)


def test_a_forked_process_leaves_the_helper_alone(fresh):
    assert not readiness.is_ready("products", FLOAT32)
    fresh.setattr(os, "getpid", lambda: -1)
    assert not readiness.is_ready("softmax", FLOAT32)
    assert readiness._state.helper.lines == ["products float32\n"]


def test_compiled_kernels_can_be_turned_off(fresh):
    fresh.setenv("PELLUCID_KERNELS", "numpy")
    fresh.setattr(choice._Choice, "possible", None)
    assert choice.compiled("products", 1 << 40, np.ones(1, np.float32)) is None
    assert main(["kernels"]) == 2


def test_every_family_has_an_exercise():
    assert {name.partition(".")[0] for name in choice.CROSSOVERS} == set(EXERCISES)


@pytest.mark.parametrize("family", EXERCISES)
def test_exercises_use_the_kernels_of_their_family(family, monkeypatch):
    asked = set()
    compiled = choice.compiled

    def note(name, size, *arrays):
        found = compiled(name, size, *arrays)
        asked.update([name.partition(".")[0]] if found is not None else [])
        return found

    for module in list(sys.modules.values()):
        if getattr(module, "compiled", None) is compiled:
            monkeypatch.setattr(module, "compiled", note)
    with choice.always():
        EXERCISES[family](pellucid.float32)
    assert family in asked


def test_an_unknown_family_is_one_line(capsys):
    assert main(["kernels", "cooking"]) == 2
    assert "there are no kernels called cooking; there are products," in capsys.readouterr().err


PROGRAM = """
import json, sys, time
import pellucid as torch
from pellucid.kernels import choice
x = torch.ones(1 << 20)
torch.relu(x)
early = "numba" in sys.modules
deadline = time.monotonic() + 120
while "numba" not in sys.modules and time.monotonic() < deadline:
    time.sleep(0.3)
    torch.relu(x)
print(json.dumps([early, "numba" in sys.modules]))
"""


def test_a_program_goes_over_to_kernels_that_another_process_compiles(tmp_path):
    environment = {**os.environ, "PELLUCID_KERNELS": "", "NUMBA_CACHE_DIR": str(tmp_path)}
    environment["PYTHONPATH"] = str(Path(pellucid.__file__).parents[1])
    command = [sys.executable, "-W", "error", "-c", PROGRAM]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=200)
    assert json.loads(result.stdout) == [False, True]
    assert result.stderr == ""
    again = subprocess.run(command, env=environment, capture_output=True, text=True, check=True, timeout=200)
    assert json.loads(again.stdout) == [True, True]


def helper_for(tmp_path):
    """A process that compiles sums, as a program would start it; nothing more will be asked of it."""
    environment = {**os.environ, "PELLUCID_KERNELS": "wait", "NUMBA_CACHE_DIR": str(tmp_path)}
    environment["PYTHONPATH"] = str(Path(pellucid.__file__).parents[1])
    command = [sys.executable, "-m", "pellucid", "kernels", "--listen"]
    process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    process.stdin.write(b"sums float32\n")
    process.stdin.close()
    return process


def test_one_process_at_a_time_compiles_for_a_folder(monkeypatch, tmp_path):
    """Another one waits, and leaves what is there by then."""
    pytest.importorskip("fcntl")
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(readiness._state, "folder", None)
    with readiness.alone():
        with helper_for(tmp_path) as process:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(3)
            readiness.mark("sums", "float32")
            compiled = list(tmp_path.rglob("*.nbc"))
            process.kill()
    assert compiled == []
    assert readiness.is_marked("sums", "float32")
    with helper_for(tmp_path) as process:
        assert process.wait(60) == 0
    assert list(tmp_path.rglob("*row_sums*.nbc")) == []


def test_where_there_is_no_folder_nobody_waits(fresh, tmp_path):
    (tmp_path / "file").touch()
    fresh.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "below"))
    with readiness.alone(), readiness.alone():
        assert not readiness.is_marked("sums", "float32")


@pytest.mark.skipif(not hasattr(os, "SCHED_IDLE"), reason="Linux has this way of scheduling")
def test_the_process_that_compiles_gives_way():
    program = "import os; from pellucid.cli.kernels import give_way; give_way(); print(os.sched_getscheduler(0), os.nice(0))"
    environment = {**os.environ, "PYTHONPATH": str(Path(pellucid.__file__).parents[1])}
    result = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    policy, niceness = map(int, result.stdout.split())
    assert policy == os.SCHED_IDLE if len(os.sched_getaffinity(0)) > 1 else niceness >= 10


UNEXERCISED = """
import importlib
import pellucid
from numba.core.dispatcher import Dispatcher
from pellucid.cli.kernels import EXERCISES
from pellucid.kernels import choice

for family, exercise in EXERCISES.items():
    with choice.always():
        exercise(pellucid.float32)
    module = importlib.import_module(f"pellucid.kernels.compiled.{family}")
    for name, kernel in vars(module).items():
        if isinstance(kernel, Dispatcher) and kernel.__module__ == module.__name__ and not kernel.signatures:
            if kernel.targetoptions.get("parallel") or name in getattr(module, "__all__", ()):
                print(f"{family}.{name}")
"""


def test_every_kernel_is_compiled_before_a_program_asks_for_it():
    """Otherwise the first program that does waits for the compiler."""
    pytest.importorskip("numba")
    environment = {**os.environ, "PELLUCID_KERNELS": "wait"}
    done = subprocess.run([sys.executable, "-c", UNEXERCISED], env=environment, capture_output=True, text=True, check=True)
    left_out = set(done.stdout.split())
    helpers = {"softmax.highest", "softmax.sum_of_exponentials", "accumulation.fetch_all"}  # of other kernels
    assert left_out <= helpers
