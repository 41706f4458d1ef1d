"""How many threads computing uses."""

from __future__ import annotations

from pellucid.kernels.threads import get_threads, set_threads

__all__ = ["get_num_interop_threads", "get_num_threads", "set_num_interop_threads", "set_num_threads"]


def get_num_threads() -> int:
    """Threads that one operation uses: what was set, or `OMP_NUM_THREADS`, or as many as there are processors."""
    return get_threads()


def set_num_threads(num: int) -> None:
    """Use `num` threads for each operation from now on, in kernels and in NumPy's linear algebra alike.

    Raises: RuntimeError unless it is a positive int.
    """
    if isinstance(num, bool) or not hasattr(num, "__index__"):
        raise RuntimeError(f"set_num_threads expects an int, but got {type(num).__name__}: give the number of threads")
    if num < 1:
        raise RuntimeError(f"set_num_threads expects a positive integer, but got {num}: 1 computes on the calling thread alone")
    set_threads(int(num))


def get_num_interop_threads() -> int:
    """1: operations run one after another."""
    return 1


def set_num_interop_threads(num: int) -> None:
    """Kept for programs that call it."""
