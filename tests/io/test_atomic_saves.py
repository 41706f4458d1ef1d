"""A save replaces a file in one step: whatever happens, the old file or the new one is there, whole."""

import os
import pickle
import signal
import stat
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import numpy as np
import pytest
from pt_archives import DATA

from pellucid.core.atomic import writing
from pellucid.core.tensor import wrap
from pellucid.io import load, save

needs_posix = pytest.mark.skipif(os.name != "posix", reason="permissions and signals of POSIX systems")


def filled(value: float, count: int = 1000):
    return wrap(np.full(count, value, np.float32))


def left_over(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.endswith(".tmp")]


@pytest.fixture
def path(tmp_path):
    """A file that holds ones."""
    target = tmp_path / "model.pt"
    save(filled(1), target)
    return target


def assert_old(path: Path) -> None:
    assert (load(path)._array == 1).all()
    assert not left_over(path.parent)


# --- killed ----------------------------------------------------------------------------------------------------------

WRITER = """
    import sys, time
    import numpy as np
    from pellucid.core.tensor import wrap
    from pellucid.io import save, zip_writer

    put, count = zip_writer.ZipWriter._put, 0

    def slow(self, data):
        global count
        put(self, data)
        self._stream.flush()
        count += 1
        print(count, flush=True)
        time.sleep(0.02)

    if sys.argv[2] == "slow":
        zip_writer.ZipWriter._put = slow
    value = 2
    print("ready", flush=True)
    while True:
        save({"a": wrap(np.full(100_000, value, np.float32)), "b": wrap(np.full(10, value, np.float32))}, sys.argv[1])
        value += 1
"""


def _killed(path: Path, pace: str, lines: int, delay: float = 0) -> None:
    """Start a process that saves to `path` again and again, and kill it after it has printed so many lines."""
    command = [sys.executable, "-c", textwrap.dedent(WRITER), str(path), pace]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "OPENBLAS_NUM_THREADS": "1"}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
        for _ in range(lines):
            assert process.stdout.readline()
        threading.Event().wait(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()


@needs_posix
@pytest.mark.parametrize("lines", [2, 8, 16])
def test_killed_in_the_middle_of_a_write(path, lines):
    _killed(path, "slow", lines)
    assert (load(path)._array == 1).all()
    assert len(left_over(path.parent)) == 1  # nobody was left to remove it


@needs_posix
@pytest.mark.parametrize("delay", [0.01, 0.05, 0.1])
def test_killed_at_any_time(path, delay):
    _killed(path, "fast", 1, delay)
    found = load(path)
    if isinstance(found, dict):
        value = found["a"]._array[0]
        assert value >= 2
        assert all((part._array == value).all() for part in found.values())
    else:
        assert (found._array == 1).all()


# --- failed ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [lambda: 1, {"a": filled(2), "b": sys}], ids=["function", "module"])
def test_what_cannot_be_pickled(value, path):
    with pytest.raises((AttributeError, TypeError, pickle.PicklingError), match="pickle"):
        save(value, path)
    assert_old(path)


@pytest.mark.parametrize("step", ["fsync", "replace"])
@pytest.mark.parametrize("new_format", [True, False])
def test_a_step_that_fails(step, new_format, path, monkeypatch):
    def fail(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, fail)
    with pytest.raises(OSError, match="No space left on device"):
        save(filled(2), path, _use_new_zipfile_serialization=new_format)
    monkeypatch.undo()
    assert_old(path)


def test_interrupted(path):
    def interrupted():
        with writing(path) as stream:
            stream.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert_old(path)


def test_a_new_file_is_not_there_before_it_is_whole(tmp_path):
    with writing(tmp_path / "new.pt") as stream:
        stream.write(b"x")
        assert not (tmp_path / "new.pt").exists()
    assert (tmp_path / "new.pt").read_bytes() == b"x"
    assert not left_over(tmp_path)


def test_saves_at_the_same_time(path):
    threads = [threading.Thread(target=save, args=(filled(value), path)) for value in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = load(path)._array
    assert (found == found[0]).all()
    assert not left_over(path.parent)


# --- permissions -----------------------------------------------------------------------------------------------------


@pytest.fixture
def umask_027():
    before = os.umask(0o027)
    yield
    os.umask(before)


def mode(path) -> int:
    return stat.S_IMODE(os.stat(path).st_mode)


@needs_posix
@pytest.mark.usefixtures("umask_027")
def test_a_new_file_gets_what_the_umask_grants(tmp_path):
    with writing(tmp_path / "new.pt"):
        (temporary,) = left_over(tmp_path)
        assert mode(tmp_path / temporary) == 0o600
    assert mode(tmp_path / "new.pt") == 0o640


@needs_posix
@pytest.mark.usefixtures("umask_027")
@pytest.mark.parametrize("before", [0o600, 0o666, 0o644])
def test_an_old_file_keeps_its_permissions(before, path):
    path.chmod(before)
    with writing(path):
        assert mode(path.parent / left_over(path.parent)[0]) == 0o600
    assert mode(path) == before


def test_a_write_protected_file(path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *args: False)
    with pytest.raises(PermissionError, match=r"the file is write-protected: save under another name.*model\.pt"):
        save(filled(2), path)
    monkeypatch.undo()
    assert_old(path)


def test_a_folder_that_lets_no_file_be_made(path, monkeypatch):
    def fail(*args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", fail)
    with pytest.raises(PermissionError, match=r"the folder lets no file be made in it.*pass an open file.*model\.pt"):
        save(filled(2), path)
    monkeypatch.undo()
    assert_old(path)


# --- where it goes ---------------------------------------------------------------------------------------------------


@needs_posix
def test_a_link_stays_and_its_target_is_replaced(path, tmp_path):
    link = tmp_path / "latest.pt"
    link.symlink_to("model.pt")
    save(filled(2), link)
    assert link.is_symlink()
    assert (load(path)._array == 2).all()


@needs_posix
def test_a_link_to_nothing(tmp_path):
    (tmp_path / "link.pt").symlink_to("target.pt")
    save(filled(2), tmp_path / "link.pt")
    assert (load(tmp_path / "target.pt")._array == 2).all()
    assert (tmp_path / "link.pt").is_symlink()


def test_a_folder_that_is_not_there(tmp_path):
    with pytest.raises(RuntimeError, match=r"Parent directory .*missing does not exist\."):
        save(1, tmp_path / "missing" / "a.pt")
    (tmp_path / "file").touch()
    with pytest.raises(RuntimeError, match=r"Parent directory .*file does not exist\."):
        save(1, tmp_path / "file" / "a.pt")
    with pytest.raises(IsADirectoryError):
        save(1, tmp_path)


def test_a_relative_path(path, monkeypatch):
    monkeypatch.chdir(path.parent)
    save(filled(3), "model.pt")
    assert (load("model.pt")._array == 3).all()


@needs_posix
def test_devices_and_pipes_are_written_to(tmp_path):
    save(filled(2), "/dev/null")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    os.mkfifo(tmp_path / "pipe")
    received = []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    save({"a": 1}, tmp_path / "pipe")
    reader.join()
    (tmp_path / "copy.pt").write_bytes(received[0])
    assert load(tmp_path / "copy.pt") == {"a": 1}
    assert not left_over(tmp_path)


def test_a_file_may_be_replaced_while_it_is_mapped(path):
    found = load(path, mmap=True)
    save(filled(2), path)
    assert (found._array == 1).all()
    assert (load(path)._array == 2).all()


def test_reference_files_are_not_written_to():
    assert not left_over(DATA)
