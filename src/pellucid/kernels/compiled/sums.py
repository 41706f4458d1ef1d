"""Sums of the columns of a matrix, some columns a task. Plain form: `numpy.add.reduce`."""

from __future__ import annotations

from . import inner, serial
from .sharing import share

__all__ = ["column_sums"]

COLUMNS = 256  # of a task: their sums stay in the first-level cache
TOGETHER = 4  # rows that are added to each other first, so that the sums are read and written once for all of them


@serial
def column_sums(threads, x, out):
    """out [n] = the sum over the rows of x [m, n]. Traffic: x read, `out` written. m n additions."""
    share((out.size + COLUMNS - 1) // COLUMNS, threads, _some, (x, out))


@inner
def _some(task, x, out):
    first = task * COLUMNS
    sums = out[first : min(first + COLUMNS, out.size)]
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
