"""How many threads matrix products use."""

from __future__ import annotations

import os

__all__ = ["get_num_interop_threads", "get_num_threads", "set_num_interop_threads", "set_num_threads"]


def get_num_threads() -> int:
    """Threads that the linear algebra library uses now."""
    from threadpoolctl import threadpool_info  # slow import

    counts = [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]
    return max(
        counts, default=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )


def set_num_threads(num: int) -> None:
    """Use `num` threads from now on; RuntimeError unless it is positive."""
    if num < 1:
        raise RuntimeError(f"Expected nthreads > 0: set_num_threads got {num}")
    from threadpoolctl import threadpool_limits  # slow import

    threadpool_limits(limits=num, user_api="blas")


def get_num_interop_threads() -> int:
    """1: operations run one after another."""
    return 1


def set_num_interop_threads(num: int) -> None:
    """Kept for programs that call it."""
