"""The machine's limits: a large matrix product and a copy that no cache holds."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..row import PLAINLY, Cell, Row, Work

SIDE, BYTES = 2048, 2**28


def product(lib: Any, cell: Cell, side: int) -> Work:
    """A float32 product of two square matrices."""
    a = lib.from_numpy(np.random.default_rng(0).standard_normal((side, side), dtype=np.float32))
    return Work(lambda: a @ a, lambda result: float(result.abs().mean()))


def copy(lib: Any, cell: Cell, size: int) -> Work:
    """A copy of `size` bytes into memory that is there already."""
    source = lib.from_numpy(np.ones(size // 4, np.float32))
    target = lib.zeros_like(source)
    return Work(lambda: target.copy_(source), lambda result: float(result[-1]))


ROWS = [
    Row(
        "limit-product",
        "product of two 2048 x 2048 matrices",
        None,
        product,
        {"side": SIDE},
        {"side": 64},
        cells=PLAINLY,
        amount=(2 * SIDE**3 / 1e9, "GFLOP/s"),
    ),
    Row(
        "limit-copy",
        "copy of 256 MiB (bytes read and written)",
        None,
        copy,
        {"size": BYTES},
        {"size": 2**16},
        cells=PLAINLY,
        amount=(2 * BYTES / 1e9, "GB/s"),
    ),
]
