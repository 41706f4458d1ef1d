"""Sums of the columns and of the rows of a matrix, some of them a task. Plain form of both: `numpy.add.reduce`."""

from __future__ import annotations

import numpy as np

from . import inner, serial
from .sharing import share

__all__ = ["column_sums", "row_sums"]

COLUMNS = 256  # of a task: their sums stay in the first-level cache
PIECE, PIECES = 1 << 9, 1 << 6  # numbers of a row that are added up one after the other; sums of them that are: that keeps rounding small
NUMBERS = 1 << 15  # of a task, in rows
BLOCK = 1 << 8  # rows that are summed before their sums are, and sums that are before theirs are: that keeps rounding small
TOGETHER = 4  # rows that are added to each other first, so that the sums are read and written once for all of them


@serial
def column_sums(threads, x, out):
    """out [n] = the sum over the rows of x [m, n]. Traffic: x read, `out` written. m n additions."""
    share((out.size + COLUMNS - 1) // COLUMNS, threads, _some, (x, out))


@inner
def _some(task, x, out):
    first = task * COLUMNS
    sums = out[first : min(first + COLUMNS, out.size)]
    if x.shape[0] <= BLOCK:
        _sum_rows(x, first, sums)
        return
    sums[:] = 0
    part, whole = np.empty(sums.size, x.dtype), np.empty(sums.size, x.dtype)
    for begin in range(0, x.shape[0], BLOCK * BLOCK):
        whole[:] = 0
        for start in range(begin, min(begin + BLOCK * BLOCK, x.shape[0]), BLOCK):
            _sum_rows(x[start : start + BLOCK], first, part)
            _add(part, whole)
        _add(whole, sums)


@inner
def _add(part, sums):
    for i in range(sums.size):
        sums[i] += part[i]


@inner
def _sum_rows(x, first, sums):
    """sums = those of the rows, of as many columns from the first on."""
    sums[:] = 0
    whole = x.shape[0] // TOGETHER * TOGETHER
    for row in range(0, whole, TOGETHER):
        a, b, c, d = x[row, first:], x[row + 1, first:], x[row + 2, first:], x[row + 3, first:]
        for i in range(sums.size):
            sums[i] += (a[i] + b[i]) + (c[i] + d[i])
    for row in range(whole, x.shape[0]):
        a = x[row, first:]
        for i in range(sums.size):
            sums[i] += a[i]


@serial
def row_sums(threads, x, centres, out):
    """out [m] = the sum over the columns of x [m, n], or of (x - centres)^2 if there are centres [m] and not an empty array.

    Traffic: x read, `out` written. m n additions; 3 m n FLOPs with centres.
    """
    rows = max(1, NUMBERS // max(1, x.shape[1]))
    share((out.size + rows - 1) // rows, threads, _some_rows, (rows, x, centres, out))


@inner
def _some_rows(task, rows, x, centres, out):
    for r in range(task * rows, min((task + 1) * rows, out.size)):
        out[r] = 0
        for first in range(0, x.shape[1], PIECE * PIECES):
            part = x[r, first : first + PIECE * PIECES]
            total = x.dtype.type(0)
            for start in range(0, part.size, PIECE):
                piece = part[start : start + PIECE]
                total += _squares(piece, centres[r]) if centres.size else _sum(piece)
            out[r] += total


@inner
def _sum(piece):
    total = piece.dtype.type(0)
    for i in range(piece.size):
        total += piece[i]
    return total


@inner
def _squares(piece, centre):
    total = piece.dtype.type(0)
    for i in range(piece.size):
        away = piece[i] - centre
        total += away * away
    return total
