"""Softmax and its logarithm along the rows of a matrix, with their gradients: one visit of each row while it is in cache.

All matrices are [rows, columns], C-contiguous, of one dtype; `out` is written to; `blocks` is how many parts the rows are
shared out in. Each operand is read from memory once and the result written once (a row stays in cache for the loops over it).
A row that has NaN, or only -inf, becomes NaN.
"""

from __future__ import annotations

from numba import prange

from . import get_threads, parallel, serial
from . import mathematics as m

__all__ = ["class_gradient", "class_losses", "get_threads", "highest", "log_softmax", "log_softmax_backward", "softmax", "softmax_backward",
           "statistics", "sum_of_exponentials", "weighted_softmax"]  # fmt: skip


@serial
def highest(row):
    """The largest element, NaN if there is one."""
    top = row[0]
    for j in range(row.size):
        top = m.maximum(top, row[j])
    return top


@serial
def sum_of_exponentials(row, top):
    """The sum of exp(x - top), with top the largest element."""
    total = top - top
    for j in range(row.size):
        total += m.decay(row[j] - top)
    return total


@parallel
def softmax(x, out, blocks):
    """exp(x) / sum(exp(x)) of each row. 25 FLOPs an element. Plain form: `softmax` in `kernels/softmax.py`."""
    rows = x.shape[0]
    for block in prange(blocks):
        for r in range(block * rows // blocks, (block + 1) * rows // blocks):
            row, made = x[r], out[r]
            top = highest(row)
            total = top - top
            for j in range(row.size):
                made[j] = m.decay(row[j] - top)
                total += made[j]
            share = x.dtype.type(1) / total
            for j in range(row.size):
                made[j] *= share


@parallel
def softmax_backward(grad, y, out, blocks):
    """y (grad - sum(grad y)) of each row. 4 FLOPs an element. Plain form: `softmax_backward` in `kernels/softmax.py`."""
    rows = y.shape[0]
    for block in prange(blocks):
        for r in range(block * rows // blocks, (block + 1) * rows // blocks):
            slopes, row, made = grad[r], y[r], out[r]
            total = row[0] - row[0]
            for j in range(row.size):
                total += slopes[j] * row[j]
            for j in range(row.size):
                made[j] = row[j] * (slopes[j] - total)


@parallel
def log_softmax(x, out, blocks):
    """x - log(sum(exp(x))) of each row. 25 FLOPs an element. Plain form: `log_softmax` in `kernels/softmax.py`."""
    rows = x.shape[0]
    for block in prange(blocks):
        for r in range(block * rows // blocks, (block + 1) * rows // blocks):
            row, made = x[r], out[r]
            top = highest(row)
            rest = m.log(sum_of_exponentials(row, top))
            for j in range(row.size):
                made[j] = m.minus(m.minus(row[j], top), rest)  # in this order: rest is small beside a large top


@parallel
def log_softmax_backward(grad, y, out, blocks):
    """grad - exp(y) sum(grad) of each row. 22 FLOPs an element. Plain form: that of the same name in `kernels/softmax.py`."""
    rows = y.shape[0]
    for block in prange(blocks):
        for r in range(block * rows // blocks, (block + 1) * rows // blocks):
            slopes, row, made = grad[r], y[r], out[r]
            total = row[0] - row[0]
            for j in range(row.size):
                total += slopes[j]
            for j in range(row.size):
                made[j] = slopes[j] - m.decay(row[j]) * total


@parallel
def statistics(x, out, blocks):
    """The largest element and the sum of exp(x - largest) of each row, as out [2, rows]. Reads x only. 22 FLOPs an element.

    Plain form: `statistics` in `kernels/softmax.py`.
    """
    rows = x.shape[0]
    for block in prange(blocks):
        for r in range(block * rows // blocks, (block + 1) * rows // blocks):
            top = highest(x[r])
            out[0, r] = top
            out[1, r] = sum_of_exponentials(x[r], top)


@parallel
def weighted_softmax(x, statistics, weights, out, blocks):
    """The softmax of each row times the row's weight. 22 FLOPs an element. Plain form: that of the same name."""
    rows = x.shape[0]
    for block in prange(blocks):
        for r in range(block * rows // blocks, (block + 1) * rows // blocks):
            row, made = x[r], out[r]
            top, share = statistics[0, r], weights[r] / statistics[1, r]
            for j in range(row.size):
                made[j] = m.decay(row[j] - top) * share


@serial
def _counts(number, classes, ignored):
    """Whether a class is there, and not the one that counts nothing."""
    return 0 <= number < classes and number != ignored


@parallel
def class_losses(x, classes, ignored, known, losses, blocks):
    """losses [rows]: minus the logarithm of the softmax at each row's class; known [2, rows] as of `statistics`. 22 FLOPs an element.

    Returns how many classes do not count; their losses are not set. Plain form: `statistics` and `cross_entropy_losses`.
    """
    rows, left_out = x.shape[0], 0
    for block in prange(blocks):
        for r in range(block * rows // blocks, (block + 1) * rows // blocks):
            row, number = x[r], classes[r]
            top = highest(row)
            total = sum_of_exponentials(row, top)
            known[0, r], known[1, r] = top, total
            if _counts(number, row.size, ignored):
                losses[r] = m.log(total) + m.minus(top, row[number])  # no reordering: what is subtracted is the largest score
            else:
                left_out += 1
    return left_out


@parallel
def class_gradient(x, known, classes, ignored, grad, out, blocks):
    """out [rows, columns]: grad (softmax - onehot) of each row, grad [rows] or [1] for all. 22 FLOPs an element.

    Returns how many classes do not count; their rows are wrong. Plain form: `cross_entropy_gradient`.
    """
    rows, left_out = x.shape[0], 0
    for block in prange(blocks):
        for r in range(block * rows // blocks, (block + 1) * rows // blocks):
            row, made, number = x[r], out[r], classes[r]
            slope = grad[r if grad.size > 1 else 0]
            top, share = known[0, r], slope / known[1, r]
            for j in range(row.size):
                made[j] = m.decay(row[j] - top) * share
            if _counts(number, row.size, ignored):
                made[number] -= slope
            else:
                left_out += 1
    return left_out
