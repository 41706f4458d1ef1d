"""Sums over the leading dimensions of an array, over the trailing ones, and over those that were broadcast."""

from __future__ import annotations

import math

import numpy as np

from .choice import FLOATS, compiled
from .threads import threads_for

__all__ = ["column_sums", "leading_sum", "sum_to", "trailing_sum"]

ALONE = 1 << 18  # elements; below it one thread does all
LONG = 1 << 15  # elements of a row that are summed by one thread
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
    made = column_sums(x, count)
    if made is not None:
        return made
    if count == 1 and x.ndim == 2 and len(x) in FEW_ROWS and x.dtype in FLOATS:
        if x.shape[1] * x.itemsize in NARROW or x.shape[1] in (2, 3):
            return _by_fours(x)
    return np.asarray(np.add.reduce(x, axis=tuple(range(count))))


def column_sums(x: np.ndarray, count: int) -> np.ndarray | None:
    """`leading_sum` of a large array in one piece, on all threads; None for others."""
    fast = compiled("sums", x.size, x)
    if fast is None or not x.size or not x.flags.c_contiguous:
        return None
    out = np.empty(x.shape[count:], x.dtype)
    fast.column_sums(threads_for(x.size, ALONE), x.reshape(math.prod(x.shape[:count]), -1), out.reshape(-1))
    return out


def trailing_sum(x: np.ndarray, count: int, centres: np.ndarray | None = None) -> np.ndarray | None:
    """The sum over the last `count` dimensions of a large array in one piece, on all threads; None for others.

    centres: if given, squares of distances from them are added up; broadcast to the dimensions that stay.
    """
    fast = compiled("sums.rows", x.size, x) if centres is None else compiled("sums.rows", x.size, x, centres)
    if fast is None or not x.flags.c_contiguous:
        return None
    lead, threads = x.shape[: x.ndim - count], threads_for(x.size)
    rows = math.prod(lead)
    length = x.size // rows
    x = x.reshape(rows, length)
    if rows == 1 and length > LONG:  # pieces of it, as rows; then what is left, and all of their sums
        whole = length // LONG * LONG
        parts, given = (x[:, :whole].reshape(-1, LONG), x[:, whole:]), None if centres is None else centres.reshape(1)
        return np.add.reduce(np.concatenate([_row_sums(fast, threads, part, given) for part in parts])).reshape(lead)
    return _row_sums(fast, threads, x, None if centres is None else np.broadcast_to(centres, lead).reshape(-1)).reshape(lead)


def _row_sums(fast, threads: int, x: np.ndarray, centres: np.ndarray | None) -> np.ndarray:
    """The sums of the rows of a matrix, of the numbers or of the squares of their distances from centres, [rows] or [1]."""
    out = np.empty(len(x), x.dtype)
    fast.row_sums(threads, x, out[:0] if centres is None else np.ascontiguousarray(np.broadcast_to(centres, out.shape)), out)
    return out


def _by_fours(x: np.ndarray) -> np.ndarray:
    """The sum of the rows in the order in which PyTorch adds them where they are few and narrow: every fourth row to one of four."""
    whole = len(x) // 4 * 4
    sums = np.add.reduce(x[:whole].reshape(-1, 4, x.shape[1]), axis=0)
    for row in x[whole:]:
        sums[0] += row
    return ((sums[0] + sums[1]) + sums[2]) + sums[3]
