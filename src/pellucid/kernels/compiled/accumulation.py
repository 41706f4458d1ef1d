"""Adding many values into few places, without atomic operations: each thread owns a part of the result.

Every place gets its values in the order of the list, whatever the number of threads: results are those of `numpy.add.at`,
bit for bit. Matrices are C-contiguous, indices int64 and in range, `parts` is how many parts the work is shared out in.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from . import get_threads, parallel, serial

__all__ = ["add_at", "add_rows", "get_threads", "numbered"]


@parallel
def add_rows(rows, index, whole, parts, by_columns):
    """whole = 0, then whole[index[k]] += rows[k] for every k. rows: [n, width]; whole: [size, width].

    by_columns: a thread owns some columns, so that all have the same work; otherwise some rows. Reads rows once, the index
    once a thread, and reads and writes whole rows n times, from cache if they are few. Plain form: `add_rows`.
    """
    size, width = whole.shape
    for part in prange(parts):
        low, high, left, right = 0, size, 0, width
        if by_columns:
            left, right = part * width // parts, (part + 1) * width // parts
        else:
            low, high = part * size // parts, (part + 1) * size // parts
        whole[low:high, left:right] = 0
        for k in range(index.size):
            place = index[k]
            if low <= place < high:
                into, given = whole[place, left:right], rows[k, left:right]
                for j in range(into.size):
                    into[j] += given[j]


@parallel
def add_at(values, index, whole, parts):
    """whole[o, index[o, k, i], i] += values[o, k, i]. values, index: [outer, n, inner]; whole: [outer, size, inner].

    A thread owns some of the outer places, or some of the size where there are fewer of those than threads. Reads values and
    index once, or the index once a thread. Plain form: `add_along`.
    """
    outer, size, inner = whole.shape
    for part in prange(parts):
        first, last, low, high = 0, outer, 0, size
        if outer >= parts:
            first, last = part * outer // parts, (part + 1) * outer // parts
        else:
            low, high = part * size // parts, (part + 1) * size // parts
        for o in range(first, last):
            for k in range(index.shape[1]):
                for i in range(inner):
                    place = index[o, k, i]
                    if low <= place < high:
                        whole[o, place, i] += values[o, k, i]


@serial
def numbered(index, size):
    """The different indices, ascending, and for each of `index` [n] its number among them.

    Indices are below `size`. Reads the index twice, and 4 * size bytes once. Plain form: `numpy.unique`.
    """
    numbers = np.zeros(size, np.int32)
    for k in range(index.size):
        numbers[index[k]] = 1
    chosen = np.empty(min(size, index.size), np.int64)
    count = 0
    for place in range(size):
        if numbers[place]:
            chosen[count] = place
            numbers[place] = count
            count += 1
    return chosen[:count], numbers[index].astype(np.int64)
