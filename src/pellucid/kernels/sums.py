"""Sums over the leading dimensions of an array, and over those that were broadcast: what the gradient of a bias is."""

from __future__ import annotations

import math

import numpy as np

from .choice import FLOATS, compiled
from .threads import threads_for

__all__ = ["leading_sum", "sum_to"]

ALONE = 1 << 18  # elements; below it one thread does all
FEW_ROWS, NARROW = range(8, 64), range(32, 128)  # of a small matrix, and bytes of its rows: its sums are PyTorch's to the last digit


def sum_to(array: np.ndarray, shape: tuple) -> np.ndarray:
    """Sum out the dimensions along which a value of `shape` was broadcast to the array's shape."""
    lead = array.ndim - len(shape)
    if lead and array.shape[lead:] == shape and array.dtype.kind in "fc":
        return leading_sum(array, lead)
    axes = tuple(range(lead)) + tuple(
        i + lead for i, size in enumerate(shape) if size == 1 and array.shape[i + lead] != 1
    )
    if axes and axes[-1] == len(axes) - 1 and array.dtype.kind in "fc":
        array = leading_sum(array, len(axes))
    elif axes:
        array = array.sum(axis=axes, keepdims=True)
    return array.reshape(shape)


def leading_sum(x: np.ndarray, count: int) -> np.ndarray:
    """The sum over the first `count` dimensions; x is of floating-point or complex numbers."""
    fast = compiled("sums", x.size, x)
    if fast is None or not x.size or not x.flags.c_contiguous:
        if count == 1 and x.ndim == 2 and len(x) in FEW_ROWS and x.dtype in FLOATS:
            if x.shape[1] * x.itemsize in NARROW or x.shape[1] in (2, 3):
                return _by_fours(x)
        return np.asarray(np.add.reduce(x, axis=tuple(range(count))))
    rows = math.prod(x.shape[:count])
    out = np.empty(x.shape[count:], x.dtype)
    fast.column_sums(threads_for(x.size, ALONE), x.reshape(rows, -1), out.reshape(-1))
    return out


def _by_fours(x: np.ndarray) -> np.ndarray:
    """The sum of the rows in the order in which PyTorch adds them where they are few and narrow: every fourth row to one of four."""
    whole = len(x) // 4 * 4
    sums = np.add.reduce(x[:whole].reshape(-1, 4, x.shape[1]), axis=0)
    for row in x[whole:]:
        sums[0] += row
    return ((sums[0] + sums[1]) + sums[2]) + sums[3]
