"""Which families of kernels this machine has compiled already; those that it has not are compiled meanwhile.

A kernel takes seconds to compile, once in the life of an installation. A program does not wait for it: NumPy does the work
while another process compiles the family (`pellucid kernels`) into Numba's folder on disk and leaves a marker; the program
goes over to the compiled form when it sees that. `PELLUCID_KERNELS` in the environment says otherwise:

    wait    compile at the first use: all steps of a run are computed alike. (Sums along rows may differ in the last digit between
            the run that compiles a kernel and later ones, which find it on disk: LLVM has put it together otherwise then.)
    numpy   never use compiled kernels
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib.metadata
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

__all__ = ["alone", "are_wanted", "is_marked", "is_ready", "mark"]

COMPILED = Path(__file__).with_name("compiled")
PATIENCE = 0.25  # seconds from one look for markers to the next


class _State:
    """What this process knows and has asked for."""

    def __init__(self):
        self.ready: set[tuple[str, str]] = set()
        self.asked: set[tuple[str, str]] = set()
        self.looked = 0.0  # when markers were last looked for
        self.helper: subprocess.Popen | None = None  # the process that compiles
        self.owner = 0  # the process that started it: one that was forked from it leaves it alone
        self.folder: Path | None = None


_state = _State()


def _choice() -> str:
    return os.environ.get("PELLUCID_KERNELS", "").lower()


def are_wanted() -> bool:
    """Whether compiled kernels may be used at all."""
    return _choice() not in ("numpy", "0", "off")


def is_ready(family: str, dtype: np.dtype) -> bool:
    """Whether the compiled forms of a family may be used now; if not, they are being compiled from now on."""
    key = family, dtype.name
    if key in _state.ready:
        return True
    if _choice() == "wait":
        _state.ready.add(key)
        return True
    now = time.monotonic()
    if key in _state.asked and now - _state.looked < PATIENCE:
        return False
    _state.looked = now
    if _marker(*key).exists():
        _state.ready.add(key)
        return True
    if key not in _state.asked:
        _state.asked.add(key)
        if not _ask(*key):
            _state.ready.add(key)  # nobody can compile it for us
            return True
    return False


def mark(family: str, dtype: str) -> None:
    """Leave the marker that a family is compiled."""
    marker = _marker(family, dtype)
    with contextlib.suppress(OSError):
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.touch()


def is_marked(family: str, dtype: str) -> bool:
    """Whether there is a marker that a family is compiled."""
    return _marker(family, dtype).exists()


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """A block in which one process at a time compiles for the same folder: programs that are short would each bring one more.

    Without locks, as on Windows or a folder that may not be written to, nobody waits.
    """
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(ImportError, OSError):
            import fcntl

            marker = _marker("compiling", "now")
            marker.parent.mkdir(parents=True, exist_ok=True)
            fcntl.flock(stack.enter_context(open(marker, "w")), fcntl.LOCK_EX)
        yield


def _marker(family: str, dtype: str) -> Path:
    if _state.folder is None:
        _state.folder = _folder()
    return _state.folder / f"{family}-{dtype}"


def _folder() -> Path:
    """Where markers of these sources, this Numba and this Python stand: beside what Numba keeps."""
    states = [path.stat() for path in sorted(COMPILED.glob("*.py"))]
    facts = [[state.st_mtime_ns, state.st_size] for state in states], importlib.metadata.version("numba"), sys.version
    name = f"pellucid-kernels-{hashlib.sha256(repr(facts).encode()).hexdigest()[:16]}"
    chosen, beside = os.environ.get("NUMBA_CACHE_DIR"), COMPILED / "__pycache__"
    if chosen:
        return Path(chosen, name)
    if os.access(beside if beside.exists() else COMPILED, os.W_OK):
        return beside / name
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "pellucid", name)


def _ask(family: str, dtype: str) -> bool:
    """Have a family compiled by the process for that; False if there is none."""
    if _state.helper is None:
        _start()
    helper = _state.helper
    if helper is None or helper.stdin is None or _state.owner != os.getpid():
        return _state.owner != 0 and _state.owner != os.getpid()
    try:
        helper.stdin.write(f"{family} {dtype}\n".encode())
        helper.stdin.flush()
    except OSError:
        return False
    return True


def _start() -> None:
    """Start the process that compiles; it ends when this one does and its list is done."""
    path = os.pathsep.join([str(COMPILED.parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PELLUCID_KERNELS": "wait", "PYTHONPATH": path}
    with contextlib.suppress(OSError):
        _state.helper = subprocess.Popen(
            [sys.executable, "-m", "pellucid", "kernels", "--listen"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True, env=environment,
        )  # fmt: skip
        _state.owner = os.getpid()
        atexit.register(_let_go, _state.helper)
        if sys.stderr is not None and sys.stderr.isatty():
            print("pellucid: compiling kernels in the background, once; NumPy does the work until then", file=sys.stderr)


def _let_go(helper: subprocess.Popen) -> None:
    """Leave the process to itself."""
    if helper.stdin is not None and os.getpid() == _state.owner:
        with contextlib.suppress(OSError):
            helper.stdin.close()
    helper.returncode = 0  # it is not waited for, and nobody is to be warned of that
