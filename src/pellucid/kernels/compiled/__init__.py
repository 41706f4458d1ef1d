"""Kernels compiled by Numba, one family a file; `kernels/choice.py` says when they are used.

Each is a Python function under `@serial` (it has no `prange` of its own), `@parallel` (its `prange` loops run on all threads) or
`@inner` (only kernels call it). All are kept on disk once compiled. What a kernel's docstring says: what it computes,
its traffic in bytes and FLOPs, and the plain form it is tested against.

Threads: a pool of our own (`pool.py`), whose workers take work from one another and sleep when there is none. A busy core costs its
share and no more; other threads of a program and forked processes may use kernels too. BLAS inside a kernel runs on the calling
worker alone.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from pathlib import Path

import llvmlite.binding
import numba
from numba.core import event

from pellucid.kernels import memory, threads

__all__ = ["compile_kernel", "get_threads", "inner", "parallel", "serial", "set_threads", "tasks_of"]

memory.keep_pages()


def _use_whole_vectors() -> None:
    """Let LLVM use 512-bit vectors where the processor has them; left alone, it stops at 256 bits on many, NumPy does not."""
    config, host = numba.config, llvmlite.binding.get_host_cpu_features()
    if config.CPU_NAME is None and config.CPU_FEATURES is None and host.get("avx512f"):
        config.CPU_FEATURES = f"{host.flatten()},-prefer-256-bit"


_use_whole_vectors()

from . import pool  # noqa: E402 (Numba asks once what the processor has, when it meets the first function)

# Sums may be reordered and products contracted, so that loops become vector code; NaN and infinity keep their meaning.
FAST = {"contract", "reassoc", "nsz", "arcp"}


def _stamp_of_sources() -> tuple[float, int]:
    """When the kernels' sources last changed, and their size."""
    states = [path.stat() for path in Path(__file__).parent.glob("*.py")]
    return max(state.st_mtime for state in states), sum(state.st_size for state in states)


_STAMP = _stamp_of_sources()


def compile_kernel(function, **options):
    """Compile with what all kernels have in common, and keep the result on disk until any kernel's source changes.

    By itself Numba looks at a kernel's own file only, and not at those of the kernels that it calls.
    """
    dispatcher = numba.njit(**{"cache": True, "nogil": True, "error_model": "numpy", "fastmath": FAST, **options})(function)
    with contextlib.suppress(AttributeError):
        dispatcher._cache._cache_file._source_stamp = _STAMP
    compile_ = dispatcher.compile

    def compile_linked(signature):
        with pool.linked():
            return compile_(signature)

    dispatcher.compile = compile_linked
    return dispatcher


def serial(function):
    """Compile for one thread."""
    return compile_kernel(function)


def parallel(function):
    """Compile; `prange` loops are shared out among the threads."""
    return compile_kernel(function, parallel=True)


def inner(function):
    """Compile for kernels that call it, without the way in from Python, which takes longer to compile than a short kernel.

    A call from Python ends the process.
    """
    return compile_kernel(function, no_cpython_wrapper=True, no_cfunc_wrapper=True)


class _Threads:
    """How many threads parallel kernels use: kept here, since asking Numba takes a microsecond."""

    count = 1


def get_threads() -> int:
    """How many threads parallel kernels use."""
    return _Threads.count


def set_threads(count: int) -> None:
    """Use `count` threads from now on, at most as many as Numba can start."""
    _Threads.count = min(count, numba.config.NUMBA_NUM_THREADS)
    numba.set_num_threads(_Threads.count)


set_threads(threads.get_threads())


def tasks_of(count: int):
    """A block in which `prange` over `count` long turns gives each to the next free thread, and not a share to each at once."""
    if count <= _Threads.count:
        return _TOGETHER
    return numba.parallel_chunksize(max(1, count // (8 * _Threads.count)))


_TOGETHER = contextlib.nullcontext()


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
