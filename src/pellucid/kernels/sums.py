"""Sums over the leading dimensions of an array: what the gradient of a bias is, or of anything that was broadcast."""

from __future__ import annotations

import math

import numpy as np

from .choice import compiled
from .threads import threads_for

__all__ = ["leading_sum"]

ALONE = 1 << 18  # elements; below it one thread does all


def leading_sum(x: np.ndarray, count: int) -> np.ndarray:
    """The sum over the first `count` dimensions; x is of floating-point or complex numbers."""
    fast = compiled("sums", x.size, x)
    if fast is None or not x.size or not x.flags.c_contiguous:
        return np.add.reduce(x, axis=tuple(range(count)))
    rows = math.prod(x.shape[:count])
    out = np.empty(x.shape[count:], x.dtype)
    fast.column_sums(threads_for(x.size, ALONE), x.reshape(rows, -1), out.reshape(-1))
    return out
