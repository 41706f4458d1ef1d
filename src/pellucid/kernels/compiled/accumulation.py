"""Adding many values into few places, without atomic operations: each thread owns a part of the result.

Every place gets its values in the order of the list, whatever the number of threads: results are those of `numpy.add.at`,
bit for bit. Matrices are C-contiguous, indices int64 and in range, `parts` is how many parts the work is shared out in.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from . import get_threads, inner, parallel, serial
from .blas import address, at

__all__ = ["add_at", "add_bags", "add_rows", "bag_sums", "get_threads", "numbered"]


@inner
def _add_part(rows, row, whole, place, left, right):
    """Columns `left` to `right` of a row added to those of another. By address: a slice would count a reference, in all threads."""
    width, size = rows.shape[1], np.int64(rows.itemsize)
    like = rows.dtype.type(0)
    given = at(address(rows) + (row * width + left) * size, right - left, like)
    into = at(address(whole) + (place * width + left) * size, right - left, like)
    for j in range(len(into)):
        into[j] += given[j]


@inner
def _is_owner(place, part, parts):
    """Whether a part of the work owns a row of the result: by fours, so that often chosen neighbours are shared out evenly."""
    return (np.uint32(place) >> np.uint32(2)) % np.uint32(parts) == part


@inner
def _clear(whole, part, parts):
    """Zeros in the rows that a part owns."""
    width, like = whole.shape[1], whole.dtype.type(0)
    for row in range(4 * part, len(whole), 4 * parts):
        into = at(address(whole) + row * width * whole.itemsize, min(4, len(whole) - row) * width, like)
        for j in range(len(into)):
            into[j] = like


@parallel
def add_rows(rows, index, whole, parts, by_columns):
    """whole = 0, then whole[index[k]] += rows[k] for every k. rows: [n, width]; whole: [size, width].

    A thread owns some rows of the result, so that they stay in its cache; or, by_columns, some columns, where there are few
    rows. Reads rows once, the index once a thread, and reads and writes whole rows n times. Plain form: `add_rows`.
    """
    width = whole.shape[1]
    for part in prange(parts):
        if by_columns:
            left, right = part * width // parts, (part + 1) * width // parts
            whole[:, left:right] = 0
            for k in range(index.size):
                _add_part(rows, k, whole, index[k], left, right)
        else:
            _clear(whole, part, parts)
            for k in range(index.size):
                if _is_owner(index[k], part, parts):
                    _add_part(rows, k, whole, index[k], np.int64(0), width)


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


@parallel
def bag_sums(table, index, starts, out, parts):
    """out[b] = the sum of table[index[k]] for k from starts[b] up to the next start. table: [size, width]; out: [bags, width].

    Reads each chosen row once, from memory, and writes `out` once. Plain form: `bag_sums`.
    """
    bags = len(starts)
    for part in prange(parts):
        for b in range(part * bags // parts, (part + 1) * bags // parts):
            out[b] = 0
            for k in range(starts[b], starts[b + 1] if b + 1 < bags else index.size):
                _add_part(table, index[k], out, b, np.int64(0), out.shape[1])


@parallel
def add_bags(rows, starts, index, whole, parts):
    """whole = 0, then whole[index[k]] += rows[b] for every k of bag b: the transpose of `bag_sums`.

    A thread owns some rows of the result, so that they stay in its cache. Reads rows from the cache, and reads and writes rows
    of `whole` index.size times. Plain form: `add_bags`.
    """
    bags = len(starts)
    for part in prange(parts):
        _clear(whole, part, parts)
        for b in range(bags):
            for k in range(starts[b], starts[b + 1] if b + 1 < bags else index.size):
                if _is_owner(index[k], part, parts):
                    _add_part(rows, b, whole, index[k], np.int64(0), rows.shape[1])


@serial
def numbered(index, size):
    """The different indices, ascending, and for each of `index` [n] its number among them.

    Indices are below `size`. Reads the index twice, and 4 * size bytes once. Plain form: `numpy.unique`.
    """
    numbers = np.zeros(size, np.int32)
    for k in range(index.size):
        numbers[index[k]] = 1
    chosen, count = np.empty(index.size + 1, np.int64), 0
    for place in range(size):  # without a branch, which nobody could foresee
        chosen[count] = place
        was_chosen, numbers[place] = numbers[place], count
        count += was_chosen
    found = np.empty(index.size, np.int64)
    for k in range(index.size):
        found[k] = numbers[index[k]]
    return chosen[:count], found
