"""Update rules of optimizers, each in one pass over memory, for all parameters of a step in one call.

A step is shared out evenly: each thread takes an equal stretch of all parameters laid end to end. The plain form of each
rule is the function of the same name in `kernels/updates.py`; `f` is the same numbers in the same order, in the dtype of the
parameters. Traffic, in elements of the parameters: what stands in each docstring. FLOPs are not what limits any of them.
"""

from __future__ import annotations

from math import sqrt
from typing import NamedTuple

import numba
import numpy as np

from pellucid.kernels.few_rows import FewRows
from pellucid.kernels.updates import Move, leaves_others

from . import parallel, serial
from .accumulation import AHEAD, fetch_all
from .addresses import blocks_for, data_at, offsets_of, part, pointing_to, row_at, run, table_by_address, table_of
from .blas import address, hold
from .mathematics import maximum

__all__ = ["Prepared", "move"]

GAP = 2048  # elements of a piece between rows, where the gradient is zero, at the most
TILE = 2048  # elements that stay in the first-level cache between two loops over them
VARIANTS = {"adam": ("amsgrad", "_amsgrad"), "rmsprop": ("centered", "_centered_rmsprop")}  # by a flag of the rule's factors


def move(rule: str, moves: list[Move]) -> None:
    """Carry out a step of the rule of this name for packed parameters of one dtype and with the same flags."""
    rows_alone = _kernel_of_rows(rule, moves[0].factors)
    if rows_alone is not None:
        for each in moves:
            if isinstance(each.grad, FewRows):
                _move_rows(rows_alone, each)
        moves = [m for m in moves if not isinstance(m.grad, FewRows)]
        if not moves:
            return
    moves = sorted(moves, key=lambda m: isinstance(m.grad, FewRows))  # those in one piece first: they make one table
    whole = [m for m in moves if not isinstance(m.grad, FewRows)]
    grads = [m.grad if m.grad.flags.c_contiguous and m.grad.dtype == m.param.dtype
             else np.ascontiguousarray(m.grad, m.param.dtype) for m in whole]  # fmt: skip
    table = table_of([(m.param, grad, *m.slots) for m, grad in zip(whole, grads, strict=True)]) if whole else None
    sizes, lengths = [m.param.size for m in whole], [1] * len(whole)
    parts = [_piecewise(m) for m in moves[len(whole):]]
    if parts:
        table = np.concatenate([*([] if table is None else [table]), *(part.table for part in parts)])
        sizes, lengths = np.concatenate([sizes, *(part.sizes for part in parts)]), [*lengths, *(len(part.table) for part in parts)]
    offsets = offsets_of(sizes)
    different = {id(m.factors): m.factors for m in moves}
    factors = np.array(list(different.values()), moves[0].param.dtype)
    numbers = {key: number for number, key in enumerate(different)}
    which = np.array([numbers[id(m.factors)] for m in moves]).repeat(lengths)
    _kernel_of(rule, moves[0].factors)(table, offsets, factors, which, blocks_for(offsets[-1]))


def _kernel_of(rule: str, factors):
    """The kernel of a rule, or of its variant that the numbers ask for."""
    flag, variant = VARIANTS.get(rule, ("", ""))
    return globals()[variant if flag and getattr(factors, flag) else f"_{rule}"]


class Prepared:
    """Moves of packed parameters of one dtype, whose gradients are in one piece, to be carried out again: `updates.Prepared`."""

    def __init__(self, rule: str, moves: list[Move]):
        self.rule, self.like = rule, moves[0].param.dtype
        self.kept = [(m.param, *m.slots) for m in moves]  # what the table points to
        self.table = table_of([(m.param, m.grad, *m.slots) for m in moves])
        self.offsets, self.which = offsets_of([m.param.size for m in moves]), np.zeros(len(moves), np.int64)
        self.total = int(self.offsets[-1])

    def move(self, factors: tuple, grads: list[np.ndarray]) -> None:
        """Carry them out with these numbers and gradients."""
        self.table[:, 1] = np.fromiter(map(id, grads), np.int64, len(grads))
        kernel = _kernel_of(self.rule, factors)
        kernel(self.table, self.offsets, np.array([factors], self.like), self.which, blocks_for(self.total))


class Part(NamedTuple):
    """One parameter's rows of the table: its pieces, and how long they are."""

    table: np.ndarray
    sizes: np.ndarray
    kept: list  # what the table points to


def _kernel_of_rows(rule: str, factors):
    """The kernel for rows alone, if a rule with these numbers changes nothing where the gradient is zero."""
    return {"sgd": _sgd_rows, "adagrad": _adagrad_rows}[rule] if leaves_others(rule, factors) else None


def _move_rows(kernel, move: Move) -> None:
    """Carry out a step of the rows that have a gradient."""
    index, rows = move.grad.index, move.grad.rows
    arrays = np.fromiter(map(id, (move.param, rows, *move.slots)), np.int64)
    kernel(arrays, index, rows.shape[1], np.array(move.factors, rows.dtype), blocks_for(rows.size))


def _piecewise(move: Move) -> Part:
    """A parameter whose gradient is known to be zero but for some rows: these, one by one, and what lies between them, with zeros
    that stay in the cache for a gradient.
    """
    (size, width), index, rows = move.grad.shape, move.grad.index, move.grad.rows
    starts = index * width
    bounds = np.zeros(2 * index.size + 2, np.int64)  # of a gap, a row, a gap, ..., a gap
    bounds[1:-1:2], bounds[2:-1:2], bounds[-1] = starts, starts + width, size * width
    between = np.full(2 * index.size + 1, -1)
    between[1::2] = np.arange(index.size) * width
    starts, sizes, source = _cut(bounds[:-1], np.diff(bounds), between)
    zeros = np.zeros(GAP, rows.dtype)
    addresses = np.stack([array.ctypes.data + starts * array.itemsize for array in (move.param, rows, *move.slots)], axis=1)
    addresses[:, 1] = np.where(source < 0, zeros.ctypes.data, rows.ctypes.data + source * rows.itemsize)
    return Part(table_by_address(addresses), sizes, [addresses, zeros, move])


def _cut(starts, sizes, source) -> tuple:
    """Pieces of at most GAP elements, none of them empty, and where each finds its gradient; negative for zeros."""
    counts = -(-sizes // GAP)
    piece = np.arange(counts.size).repeat(counts)
    offset = (np.arange(piece.size) - (np.cumsum(counts) - counts)[piece]) * GAP
    found = source[piece]
    return starts[piece] + offset, np.minimum(sizes[piece] - offset, GAP), np.where(found < 0, found, found + offset)


@serial
def _shaped(sign, penalty, p, g):
    """The gradient that a rule goes on with, for a parameter that has shrunk."""
    return sign * g + penalty * p if penalty != 0 else sign * g


@serial
def _shrunk(shrink, p):
    """The parameter as a rule goes on with it."""
    return shrink * p if shrink != 1 else p


@serial
def _lerp(start, end, rest, other):
    """start + rest * (end - start), from the end that is nearer; other = 1 - rest."""
    return start + rest * (end - start) if abs(rest) < 0.5 else end - other * (end - start)


# --- one parameter, or a stretch of one ------------------------------------------------------------------------------


@serial
def _sgd_run(f, row, start, stop):
    sign, penalty, shrink = f[0], f[1], f[2]
    p, g = run(row, 0, start, stop, f), run(row, 1, start, stop, f)
    rate, momentum, share, nesterov, fresh = f[3], f[4], f[5], f[6], f[7]
    if momentum == 0:
        for i in range(len(p)):
            value = _shrunk(shrink, p[i])
            p[i] = value - rate * _shaped(sign, penalty, value, g[i])
        return
    b = run(row, 2, start, stop, f)
    for i in range(len(p)):
        value = _shrunk(shrink, p[i])
        step = _shaped(sign, penalty, value, g[i])
        buffer = step if fresh != 0 else momentum * b[i] + share * step
        b[i] = buffer
        p[i] = value - rate * (step + momentum * buffer if nesterov != 0 else buffer)


@serial
def _adam_run(f, row, start, stop):
    sign, penalty, shrink = f[0], f[1], f[2]
    p, g = run(row, 0, start, stop, f), run(row, 1, start, stop, f)
    m, v = run(row, 2, start, stop, f), run(row, 3, start, stop, f)
    beta1_rest, beta2, beta2_rest, rate, eps = f[3], f[4], f[5], f[6], f[7]
    other = f.dtype.type(1) - beta1_rest
    for i in range(len(p)):
        value = _shrunk(shrink, p[i])
        step = _shaped(sign, penalty, value, g[i])
        m[i] = mean = _lerp(m[i], step, beta1_rest, other)
        v[i] = square = beta2 * v[i] + beta2_rest * (step * step)
        p[i] = value - rate * (mean / (sqrt(square) + eps))


@serial
def _amsgrad_run(f, row, start, stop):
    """Two loops over a tile: LLVM makes vector code of loops over four arrays that may overlap, not over five."""
    sign, penalty, shrink = f[0], f[1], f[2]
    p, g = run(row, 0, start, stop, f), run(row, 1, start, stop, f)
    m, v, largest = run(row, 2, start, stop, f), run(row, 3, start, stop, f), run(row, 4, start, stop, f)
    beta1_rest, beta2, beta2_rest, rate, eps = f[3], f[4], f[5], f[6], f[7]
    other = f.dtype.type(1) - beta1_rest
    for first in range(0, len(p), TILE):
        last = min(first + TILE, len(p))
        for i in range(first, last):
            step = _shaped(sign, penalty, _shrunk(shrink, p[i]), g[i])
            v[i] = square = beta2 * v[i] + beta2_rest * (step * step)
            largest[i] = maximum(largest[i], square)
        for i in range(first, last):
            value = _shrunk(shrink, p[i])
            m[i] = mean = _lerp(m[i], _shaped(sign, penalty, value, g[i]), beta1_rest, other)
            p[i] = value - rate * (mean / (sqrt(largest[i]) + eps))


@serial
def _nadam_run(f, row, start, stop):
    sign, penalty, shrink = f[0], f[1], f[2]
    p, g = run(row, 0, start, stop, f), run(row, 1, start, stop, f)
    m, v = run(row, 2, start, stop, f), run(row, 3, start, stop, f)
    beta1_rest, beta2, beta2_rest, correction, eps, of_grad, of_mean = f[3], f[4], f[5], f[6], f[7], f[8], f[9]
    other = f.dtype.type(1) - beta1_rest
    for i in range(len(p)):
        value = _shrunk(shrink, p[i])
        step = _shaped(sign, penalty, value, g[i])
        m[i] = mean = _lerp(m[i], step, beta1_rest, other)
        v[i] = square = beta2 * v[i] + beta2_rest * (step * step)
        scale = sqrt(square / correction) + eps
        p[i] = value + of_grad * (step / scale) + of_mean * (mean / scale)


@serial
def _radam_run(f, row, start, stop):
    sign, penalty, shrink = f[0], f[1], f[2]
    p, g = run(row, 0, start, stop, f), run(row, 1, start, stop, f)
    m, v = run(row, 2, start, stop, f), run(row, 3, start, stop, f)
    beta1_rest, beta2, beta2_rest, rate, eps, adaptive = f[3], f[4], f[5], f[6], f[7], f[8]
    other = f.dtype.type(1) - beta1_rest
    for i in range(len(p)):
        value = _shrunk(shrink, p[i])
        step = _shaped(sign, penalty, value, g[i])
        m[i] = mean = _lerp(m[i], step, beta1_rest, other)
        v[i] = square = beta2 * v[i] + beta2_rest * (step * step)
        p[i] = value - rate * (mean / (sqrt(square) + eps) if adaptive != 0 else mean)


@serial
def _adamax_run(f, row, start, stop):
    sign, penalty, shrink = f[0], f[1], f[2]
    p, g = run(row, 0, start, stop, f), run(row, 1, start, stop, f)
    m, u = run(row, 2, start, stop, f), run(row, 3, start, stop, f)
    beta1_rest, beta2, rate, eps = f[3], f[4], f[5], f[6]
    other = f.dtype.type(1) - beta1_rest
    for i in range(len(p)):
        value = _shrunk(shrink, p[i])
        step = _shaped(sign, penalty, value, g[i])
        m[i] = mean = _lerp(m[i], step, beta1_rest, other)
        u[i] = largest = maximum(beta2 * u[i], abs(step) + eps)
        p[i] = value - rate * (mean / largest)


@serial
def _adagrad_run(f, row, start, stop):
    sign, penalty, shrink = f[0], f[1], f[2]
    p, g, total = run(row, 0, start, stop, f), run(row, 1, start, stop, f), run(row, 2, start, stop, f)
    rate, eps = f[3], f[4]
    for i in range(len(p)):
        value = _shrunk(shrink, p[i])
        step = _shaped(sign, penalty, value, g[i])
        total[i] = square = total[i] + step * step
        p[i] = value - rate * (step / (sqrt(square) + eps))


@serial
def _adadelta_run(f, row, start, stop):
    sign, penalty, shrink = f[0], f[1], f[2]
    p, g = run(row, 0, start, stop, f), run(row, 1, start, stop, f)
    v, d = run(row, 2, start, stop, f), run(row, 3, start, stop, f)
    rate, rho, rho_rest, eps = f[3], f[4], f[5], f[6]
    for i in range(len(p)):
        value = _shrunk(shrink, p[i])
        step = _shaped(sign, penalty, value, g[i])
        v[i] = square = rho * v[i] + rho_rest * (step * step)
        delta = step / sqrt(square + eps) * sqrt(d[i] + eps)
        d[i] = rho * d[i] + rho_rest * (delta * delta)
        p[i] = value - rate * delta


@serial
def _rmsprop_run(f, row, start, stop):
    sign, penalty, shrink = f[0], f[1], f[2]
    p, g, v = run(row, 0, start, stop, f), run(row, 1, start, stop, f), run(row, 2, start, stop, f)
    b = run(row, len(row) - 1, start, stop, f)  # the mean square where there is no buffer; it is not touched then
    rate, alpha, alpha_rest, eps, momentum = f[3], f[4], f[5], f[6], f[7]
    for i in range(len(p)):
        value = _shrunk(shrink, p[i])
        step = _shaped(sign, penalty, value, g[i])
        v[i] = square = alpha * v[i] + alpha_rest * (step * step)
        step /= sqrt(square) + eps
        if momentum > 0:
            step += momentum * b[i]
            b[i] = step
        p[i] = value - rate * step


@serial
def _centered_rmsprop_run(f, row, start, stop):
    """Two loops over a tile, as in `_amsgrad_run`; without momentum `b` stands for what is made of `a`, and is not read."""
    sign, penalty, shrink = f[0], f[1], f[2]
    p, g, v = run(row, 0, start, stop, f), run(row, 1, start, stop, f), run(row, 2, start, stop, f)
    b, a = run(row, 3, start, stop, f), run(row, len(row) - 1, start, stop, f)
    rate, alpha, alpha_rest, eps, momentum = f[3], f[4], f[5], f[6], f[7]
    other, steps = f.dtype.type(1) - alpha_rest, np.empty(TILE, f.dtype)
    for first in range(0, len(p), TILE):
        last = min(first + TILE, len(p))
        for i in range(first, last):
            step = _shaped(sign, penalty, _shrunk(shrink, p[i]), g[i])
            v[i] = square = alpha * v[i] + alpha_rest * (step * step)
            a[i] = mean = _lerp(a[i], step, alpha_rest, other)
            steps[i - first] = step / (sqrt(square - mean * mean) + eps)
        for i in range(first, last):
            step = steps[i - first]
            if momentum > 0:
                step += momentum * b[i]
                b[i] = step
            p[i] = _shrunk(shrink, p[i]) - rate * step


@serial
def _asgd_run(f, row, start, stop):
    sign, penalty, shrink = f[0], f[1], f[2]
    p, g, mean = run(row, 0, start, stop, f), run(row, 1, start, stop, f), run(row, 2, start, stop, f)
    rate, mean_share = f[3], f[4]
    for i in range(len(p)):
        value = _shrunk(shrink, p[i]) - rate * _shaped(sign, penalty, p[i], g[i])
        p[i] = value
        mean[i] = value if mean_share == 1 else mean[i] + mean_share * (value - mean[i])


@serial
def _rprop_run(f, row, start, stop):
    sign, penalty = f[0], f[1]
    p, g = run(row, 0, start, stop, f), run(row, 1, start, stop, f)
    prev, size = run(row, 2, start, stop, f), run(row, 3, start, stop, f)
    less, more, smallest, largest = f[3], f[4], f[5], f[6]
    zero, one = f.dtype.type(0), f.dtype.type(1)
    for i in range(len(p)):
        step = _shaped(sign, penalty, p[i], g[i])
        turn = step * prev[i]
        length = size[i] * (less if turn < 0 else more if turn > 0 else one)
        length = smallest if length < smallest else largest if length > largest else length
        size[i] = length
        prev[i] = step = zero if turn < 0 else step
        p[i] -= length if step > 0 else -length if step < 0 else zero


# --- some rows of one parameter ---------------------------------------------------------------------------------------


@serial
def _next_row(places, arrays, index, row, length):
    """Make `places` those of the row index[row] of all arrays, of the gradient's `row`; have the parameter's row after next fetched."""
    for column in range(len(arrays)):
        places[column] = data_at(arrays[column]) + (row if column == 1 else index[row]) * length
    fetch_all(data_at(arrays[0]) + index[min(row + AHEAD, len(index) - 1)] * length, length)


@serial
def _sgd_some(first, last, arrays, index, width, f):
    places = np.empty(len(arrays), np.int64)
    row = pointing_to(address(places), len(places))
    for k in range(first, last):
        _next_row(places, arrays, index, k, width * f.itemsize)
        _sgd_run(f, row, 0, width)
    hold(places)


@parallel
def _sgd_rows(arrays, index, width, f, blocks):
    """Reads p, g, writes p, of rows at `index` alone; arrays: the addresses of their Python objects."""
    for block in numba.prange(blocks):
        _sgd_some(block * len(index) // blocks, (block + 1) * len(index) // blocks, arrays, index, width, f)


@serial
def _adagrad_some(first, last, arrays, index, width, f):
    places = np.empty(len(arrays), np.int64)
    row = pointing_to(address(places), len(places))
    for k in range(first, last):
        _next_row(places, arrays, index, k, width * f.itemsize)
        _adagrad_run(f, row, 0, width)
    hold(places)


@parallel
def _adagrad_rows(arrays, index, width, f, blocks):
    """Reads p, g, the sum, writes p and the sum, of rows at `index` alone."""
    for block in numba.prange(blocks):
        _adagrad_some(block * len(index) // blocks, (block + 1) * len(index) // blocks, arrays, index, width, f)


# --- all parameters --------------------------------------------------------------------------------------------------


@parallel
def _sgd(table, offsets, factors, which, blocks):
    """Reads p, g, writes p: 3; with momentum reads and writes b: 5."""
    for block in numba.prange(blocks):
        for row in range(row_at(offsets, block, blocks), row_at(offsets, block + 1, blocks) + 1):
            start, stop = part(offsets, row, block, blocks)
            if start < stop:
                _sgd_run(factors[which[row]], table[row], start, stop)


@parallel
def _adam(table, offsets, factors, which, blocks):
    """Reads p, g, m, v, writes p, m, v: 7."""
    for block in numba.prange(blocks):
        for row in range(row_at(offsets, block, blocks), row_at(offsets, block + 1, blocks) + 1):
            start, stop = part(offsets, row, block, blocks)
            if start < stop:
                _adam_run(factors[which[row]], table[row], start, stop)


@parallel
def _amsgrad(table, offsets, factors, which, blocks):
    """Reads p, g, m, v and the largest, writes all but g: 9."""
    for block in numba.prange(blocks):
        for row in range(row_at(offsets, block, blocks), row_at(offsets, block + 1, blocks) + 1):
            start, stop = part(offsets, row, block, blocks)
            if start < stop:
                _amsgrad_run(factors[which[row]], table[row], start, stop)


@parallel
def _nadam(table, offsets, factors, which, blocks):
    """As `_adam`: 7."""
    for block in numba.prange(blocks):
        for row in range(row_at(offsets, block, blocks), row_at(offsets, block + 1, blocks) + 1):
            start, stop = part(offsets, row, block, blocks)
            if start < stop:
                _nadam_run(factors[which[row]], table[row], start, stop)


@parallel
def _radam(table, offsets, factors, which, blocks):
    """As `_adam`: 7."""
    for block in numba.prange(blocks):
        for row in range(row_at(offsets, block, blocks), row_at(offsets, block + 1, blocks) + 1):
            start, stop = part(offsets, row, block, blocks)
            if start < stop:
                _radam_run(factors[which[row]], table[row], start, stop)


@parallel
def _adamax(table, offsets, factors, which, blocks):
    """Reads p, g, m, u, writes p, m, u: 7."""
    for block in numba.prange(blocks):
        for row in range(row_at(offsets, block, blocks), row_at(offsets, block + 1, blocks) + 1):
            start, stop = part(offsets, row, block, blocks)
            if start < stop:
                _adamax_run(factors[which[row]], table[row], start, stop)


@parallel
def _adagrad(table, offsets, factors, which, blocks):
    """Reads p, g, the sum, writes p and the sum: 5."""
    for block in numba.prange(blocks):
        for row in range(row_at(offsets, block, blocks), row_at(offsets, block + 1, blocks) + 1):
            start, stop = part(offsets, row, block, blocks)
            if start < stop:
                _adagrad_run(factors[which[row]], table[row], start, stop)


@parallel
def _adadelta(table, offsets, factors, which, blocks):
    """Reads p, g, v, d, writes p, v, d: 7."""
    for block in numba.prange(blocks):
        for row in range(row_at(offsets, block, blocks), row_at(offsets, block + 1, blocks) + 1):
            start, stop = part(offsets, row, block, blocks)
            if start < stop:
                _adadelta_run(factors[which[row]], table[row], start, stop)


@parallel
def _rmsprop(table, offsets, factors, which, blocks):
    """Reads p, g, v, writes p, v: 5; with momentum 7."""
    for block in numba.prange(blocks):
        for row in range(row_at(offsets, block, blocks), row_at(offsets, block + 1, blocks) + 1):
            start, stop = part(offsets, row, block, blocks)
            if start < stop:
                _rmsprop_run(factors[which[row]], table[row], start, stop)


@parallel
def _centered_rmsprop(table, offsets, factors, which, blocks):
    """Reads p, g, v, a, writes p, v, a: 7; with momentum 9."""
    for block in numba.prange(blocks):
        for row in range(row_at(offsets, block, blocks), row_at(offsets, block + 1, blocks) + 1):
            start, stop = part(offsets, row, block, blocks)
            if start < stop:
                _centered_rmsprop_run(factors[which[row]], table[row], start, stop)


@parallel
def _asgd(table, offsets, factors, which, blocks):
    """Reads p, g, the mean, writes p and the mean: 5."""
    for block in numba.prange(blocks):
        for row in range(row_at(offsets, block, blocks), row_at(offsets, block + 1, blocks) + 1):
            start, stop = part(offsets, row, block, blocks)
            if start < stop:
                _asgd_run(factors[which[row]], table[row], start, stop)


@parallel
def _rprop(table, offsets, factors, which, blocks):
    """Reads p, g, the last g, the sizes, writes all but g: 7."""
    for block in numba.prange(blocks):
        for row in range(row_at(offsets, block, blocks), row_at(offsets, block + 1, blocks) + 1):
            start, stop = part(offsets, row, block, blocks)
            if start < stop:
                _rprop_run(factors[which[row]], table[row], start, stop)
