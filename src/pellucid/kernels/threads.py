"""How many threads kernels use: one setting for compiled kernels and for NumPy's BLAS.

It can be set and asked before either is loaded; asking loads neither. Without a setting the environment decides, and
without a word from there, the processors that this process may use.
"""

from __future__ import annotations

import os
import sys

__all__ = ["get_threads", "is_of_kernels", "set_threads", "threads_for"]

ALONE = 1 << 15  # elements
VARIABLES = ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS")  # the first that holds a number counts


class _Setting:
    """What was asked for, for the whole process; None for the default."""

    count: int | None = None


def get_threads() -> int:
    """How many threads are used now, or would be."""
    return _default() if _Setting.count is None else _Setting.count


def threads_for(size: int, alone: int = ALONE) -> int:
    """How many threads share out work on so many elements: one below `alone`, where it is done sooner than another thread wakes."""
    return get_threads() if size >= alone else 1


def set_threads(count: int) -> None:
    """Use `count` threads from now on.

    Kernels that are loaded already, and those loaded later, share out their work among so many, at most one a processor. Parts
    of NumPy that hand work to BLAS follow at once. In other threads of a program that were there before, Numba's kernels for
    single elements keep to what they had.
    """
    _Setting.count = count
    _set_blas(count)
    loaded = sys.modules.get("pellucid.kernels.compiled")
    if loaded is not None:
        loaded.set_threads(count)


def _default() -> int:
    """The number in the environment, or of processors."""
    for name in VARIABLES:
        text = os.environ.get(name, "").partition(",")[0].strip()  # OpenMP's variable may list a number for each level
        if text.isdecimal() and int(text) > 0:
            return int(text)
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _set_blas(count: int) -> None:
    """Give every BLAS so many threads, but one to that of compiled kernels, which are shared out already."""
    from threadpoolctl import ThreadpoolController  # slow import

    for library in ThreadpoolController().lib_controllers:
        if library.user_api == "blas":
            shared = "pellucid.kernels.compiled.blas" in sys.modules and is_of_kernels(library)
            library.set_num_threads(1 if shared else count)


def is_of_kernels(library) -> bool:
    """Whether kernels call this BLAS, which SciPy brings; NumPy's wheels have one of their own."""
    return "numpy.libs" not in library.filepath
