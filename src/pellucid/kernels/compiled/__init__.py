"""Kernels compiled by Numba, one family a file; `kernels/choice.py` says when they are used.

Each is a Python function under `@serial` (called from other kernels, or too short to share out) or `@parallel` (its
`prange` loops run on all threads). Both are kept on disk once compiled. What a kernel's docstring says: what it computes,
its traffic in bytes and FLOPs, and the plain form it is tested against.

Threads: Numba's TBB layer, whose workers steal work from one another and sleep when there is none. A busy core costs its
share and no more, and TBB is safe under threads and after fork. BLAS inside a kernel runs on the calling worker alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys
import threading
from pathlib import Path

__all__ = ["get_threads", "parallel", "serial", "set_threads"]


def _load_tbb() -> None:
    """Load TBB from the environment's `lib`, where pip puts it and Numba does not look."""
    for name in ("libtbb.so.12", "libtbb.12.dylib"):
        path = Path(sys.prefix, "lib", name)
        if path.exists():
            with contextlib.suppress(OSError):
                ctypes.CDLL(str(path), mode=ctypes.RTLD_GLOBAL)
                os.environ.setdefault("NUMBA_THREADING_LAYER", "tbb")


_load_tbb()

import numba  # noqa: E402 (TBB must be in the process before)
from numba.core import event  # noqa: E402

# Sums may be reordered and products contracted, so that loops become vector code; NaN and infinity keep their meaning.
FAST = {"contract", "reassoc", "nsz", "arcp"}


def serial(function):
    """Compile for one thread."""
    return numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST)(function)


def parallel(function):
    """Compile; `prange` loops are shared out among the threads."""
    return numba.njit(cache=True, nogil=True, error_model="numpy", fastmath=FAST, parallel=True)(function)


def get_threads() -> int:
    """How many threads parallel kernels use."""
    return numba.get_num_threads()


def set_threads(count: int) -> None:
    """Use `count` threads from now on, at most as many as there are processors."""
    numba.set_num_threads(min(count, numba.config.NUMBA_NUM_THREADS))


class _Announcement(event.Listener):
    """Says once a process that kernels are being compiled: the first use of a fresh install is slow, and only that."""

    def __init__(self):
        self.said = False
        self.lock = threading.Lock()

    def on_start(self, event):
        with self.lock:
            first, self.said = not self.said, True
        if first and sys.stderr is not None and sys.stderr.isatty():
            print("pellucid: compiling kernels for this machine; they are kept for the next run", file=sys.stderr)

    def on_end(self, event):
        pass


event.register("numba:compile", _Announcement())
