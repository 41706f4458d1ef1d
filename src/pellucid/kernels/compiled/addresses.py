"""Arrays by address inside kernels: one call takes as many arrays as there are, of any rank, from a table of numbers.

A kernel that takes arrays as arguments pays for each of them at each call, and its code knows how many there are. Here a
table holds, for each array, the address of its Python object; the kernel reads from that object where the data lie, which
NumPy's C interface fixes (the first field after the object's header). Asking each array in Python takes ten times as long.
"""

from __future__ import annotations

from itertools import chain

import numpy as np

from . import get_threads, serial
from .blas import at

__all__ = ["blocks_for", "data_at", "offsets_of", "part", "pointing_to", "row_at", "run", "table_by_address", "table_of"]

_HEADER = object.__basicsize__  # CPython's header of an object; the address of the data comes next


def table_of(rows: list[list[np.ndarray]]) -> np.ndarray:
    """A table [rows, columns] for `run`. The arrays have to be kept alive until the kernel returns, and be contiguous."""
    return np.fromiter(map(id, chain.from_iterable(rows)), np.int64).reshape(len(rows), -1)


def table_by_address(addresses: np.ndarray) -> np.ndarray:
    """A table for `run` of data that begin at these addresses [rows, columns], int64, contiguous, which has to be kept alive too."""
    first = addresses.ctypes.data - _HEADER  # to the kernel each number is an object's first field after the header
    return (first + addresses.itemsize * np.arange(addresses.size)).reshape(addresses.shape)


def offsets_of(sizes: list[int]) -> np.ndarray:
    """Where each row of arrays begins and ends if all are laid end to end: [rows + 1]."""
    offsets = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=offsets[1:])
    return offsets


@serial
def data_at(array):
    """Where the data of an array lie whose Python object has this address."""
    return at(array + _HEADER, 1, np.int64(0))[0]


@serial
def pointing_to(places, count):
    """A row of a table for `run` of data that lie at the addresses which are written, int64, at the address `places`."""
    return places - _HEADER + 8 * np.arange(count)


@serial
def run(row, column, start, stop, like):
    """Elements `start` to `stop` of an array in a row of a table; `like` is an array of its dtype."""
    return at(data_at(row[column]) + start * like.itemsize, stop - start, like.dtype.type(0))


@serial
def row_at(offsets, block, blocks):
    """The row in which a block begins; the last row for the end of the last block."""
    place, low, high = block * offsets[-1] // blocks, 0, len(offsets) - 2
    while low < high:
        middle = (low + high) // 2
        if offsets[middle + 1] <= place:
            low = middle + 1
        else:
            high = middle
    return low


@serial
def part(offsets, row, block, blocks):
    """Which elements of a row belong to a block, if all rows are shared out evenly among the blocks."""
    total = offsets[-1]
    first, last = block * total // blocks, (block + 1) * total // blocks
    begin, end = offsets[row], offsets[row + 1]
    return max(first, begin) - begin, min(last, end) - begin


def blocks_for(total: int) -> int:
    """Into how many blocks to share out so many elements: one a thread, and one alone where a thread is not worth waking."""
    return get_threads() if total >= 1 << 15 else 1
