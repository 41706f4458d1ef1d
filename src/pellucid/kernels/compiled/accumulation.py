"""Adding many values into few places, without atomic operations: each thread owns a part of the result.

Every place gets its values in the order of the list, whatever the number of threads: results are those of `numpy.add.at`,
bit for bit. Matrices are C-contiguous, indices int64 and in range, `parts` is how many parts the work is shared out in.
"""

from __future__ import annotations

import numpy as np
from numba import prange

from . import get_threads, inner, parallel, serial
from .blas import address, at, fetch, hold, width_of

__all__ = ["AHEAD", "add_at", "add_bags", "add_rows", "bag_sums", "fetch_all", "get_threads", "numbered"]

AHEAD = 8  # rows that are fetched before their turn: the next ones lie anywhere in a large table


@inner
def _add(source, target, count, like):
    """Numbers from one address on added to those from another on. Addresses are asked for once a kernel: that counts references."""
    given, into = at(source, count, like), at(target, count, like)
    for j in range(count):
        into[j] += given[j]


@inner
def fetch_all(first, length):
    """Have some bytes fetched while others are added."""
    for place in range(first, first + length, 64):
        fetch(place)


@inner
def _by_place(index, size):
    """The numbers k of `index` [n] in the order of index[k], and where each place's begin [size + 1]; those of one place ascend."""
    begins, order = np.zeros(size + 1, np.int64), np.empty(index.size, np.int64)
    for k in range(index.size):
        begins[index[k] + 1] += 1
    for place in range(size):
        begins[place + 1] += begins[place]
    following = begins[:size].copy()
    for k in range(index.size):
        order[following[index[k]]] = k
        following[index[k]] += 1
    return begins, order


@inner
def _first_of(part, parts, begins):
    """The first place of a part of the work, which is to clear a row and to add one."""
    low, high = np.int64(0), np.int64(len(begins) - 1)
    wanted = part * (begins[high] + high) // parts
    while low < high:
        middle = (low + high) // 2
        if begins[middle] + middle < wanted:
            low = middle + 1
        else:
            high = middle
    return low


@inner
def _add_to_places(first, last, begins, order, rows, whole, count, like):
    """Rows of the result: zeros, and the rows of given numbers added to them, in order. order, rows, whole: addresses."""
    length = count * width_of(like)
    for place in range(first, last):
        into = at(whole + place * length, count, like)
        for j in range(count):
            into[j] = like
        number = begins[place + 1] - begins[place]
        numbers = at(order + begins[place] * 8, number, begins[place])
        for k in range(number):
            _add(rows + numbers[k] * length, whole + place * length, count, like)


@parallel
def add_rows(rows, index, whole, parts, by_columns):
    """whole = 0, then whole[index[k]] += rows[k] for every k. rows: [n, width]; whole: [size, width].

    A thread makes some rows of the result, one after the other; or, by_columns, some columns, where there are few rows. Reads rows
    once, the index twice (once a thread), and writes whole once (reads and writes its rows n times). Plain form: `add_rows`.
    """
    width, like = whole.shape[1], whole.dtype.type(0)
    given, made, length, one = address(rows), address(whole), width * whole.itemsize, whole.itemsize
    if by_columns:
        for part in prange(parts):
            left, right = part * width // parts, (part + 1) * width // parts
            whole[:, left:right] = 0
            for k in range(index.size):
                _add(given + k * length + left * one, made + index[k] * length + left * one, right - left, like)
        return
    begins, order = _by_place(index, len(whole))
    numbers = address(order)
    for part in prange(parts):
        first, last = _first_of(part, parts, begins), _first_of(part + 1, parts, begins)
        _add_to_places(first, last, begins, numbers, given, made, width, like)
    hold(order)


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
    bags, last, like, width = len(starts), index.size - 1, out.dtype.type(0), out.shape[1]
    given, made, length = address(table), address(out), width * out.itemsize
    for part in prange(parts):
        for b in range(part * bags // parts, (part + 1) * bags // parts):
            into = at(made + b * length, width, like)
            for j in range(width):
                into[j] = like
            for k in range(starts[b], starts[b + 1] if b + 1 < bags else index.size):
                fetch_all(given + index[min(k + AHEAD, last)] * length, length)
                _add(given + index[k] * length, made + b * length, width, like)


@parallel
def add_bags(rows, starts, index, whole, parts):
    """whole = 0, then whole[index[k]] += rows[b] for every k of bag b: the transpose of `bag_sums`.

    A thread makes some rows of the result, one after the other. Reads index.size rows, from the cache, the index twice, and writes
    whole once. Plain form: `add_bags`.
    """
    like, width = whole.dtype.type(0), whole.shape[1]
    begins, order = _by_place(index, len(whole))
    _to_bags(order, starts)
    given, made, numbers = address(rows), address(whole), address(order)
    for part in prange(parts):
        first, last = _first_of(part, parts, begins), _first_of(part + 1, parts, begins)
        _add_to_places(first, last, begins, numbers, given, made, width, like)
    hold(order)


@inner
def _to_bags(numbers, starts):
    """Numbers of indices become those of the bags they are in."""
    bags, bag_of = len(starts), np.empty(numbers.size, np.int64)
    for b in range(bags):
        for k in range(starts[b], starts[b + 1] if b + 1 < bags else numbers.size):
            bag_of[k] = b
    for k in range(numbers.size):
        numbers[k] = bag_of[numbers[k]]


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
