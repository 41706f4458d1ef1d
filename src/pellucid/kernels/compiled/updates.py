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
from .addresses import blocks_for, offsets_of, part, row_at, run, table_by_address, table_of
from .mathematics import maximum

__all__ = ["move"]

GAP = 2048  # elements of a piece in which the gradient is zero
TILE = 2048  # elements that stay in the first-level cache between two loops over them
VARIANTS = {"adam": ("amsgrad", "_amsgrad"), "rmsprop": ("centered", "_centered_rmsprop")}  # by a flag of the rule's factors


def move(rule: str, moves: list[Move]) -> None:
    """Carry out a step of the rule of this name for packed parameters of one dtype and with the same flags."""
    parts = [_piecewise(m, leaves_others(rule, m.factors)) if isinstance(m.grad, FewRows) else _whole(m) for m in moves]
    table = np.concatenate([part.table for part in parts])
    offsets = offsets_of(np.concatenate([part.sizes for part in parts]))
    different = {id(m.factors): m.factors for m in moves}
    factors = np.array(list(different.values()), moves[0].param.dtype)
    numbers = {key: number for number, key in enumerate(different)}
    which = np.array([numbers[id(m.factors)] for m in moves]).repeat([len(part.table) for part in parts])
    flag, variant = VARIANTS.get(rule, ("", ""))
    kernel = globals()[variant if flag and getattr(moves[0].factors, flag) else f"_{rule}"]
    kernel(table, offsets, factors, which, blocks_for(offsets[-1]))


class Part(NamedTuple):
    """One parameter's rows of the table: its pieces, and how long they are."""

    table: np.ndarray
    sizes: np.ndarray | list[int]
    kept: list  # what the table points to


def _whole(move: Move) -> Part:
    """A parameter in one piece."""
    grad = move.grad
    if not grad.flags.c_contiguous or grad.dtype != move.param.dtype:
        grad = np.ascontiguousarray(grad, move.param.dtype)
    arrays = [move.param, grad, *move.slots]
    return Part(table_of([arrays]), [move.param.size], arrays)


def _piecewise(move: Move, alone: bool) -> Part:
    """A parameter whose gradient is known to be zero but for some rows: these, one by one, and unless they are `alone` what
    lies between them, with zeros that stay in the cache for a gradient.
    """
    (size, width), index, rows = move.grad.shape, move.grad.index, move.grad.rows
    own = np.arange(index.size)
    if alone:
        starts, sizes, source = index * width, np.full(index.size, width), own * width
    else:
        bounds = np.concatenate([[-1], index, [size]]) * width
        starts, sizes, source = _gaps(bounds[:-1] + width, np.diff(bounds) - width)
        order = np.argsort(np.concatenate([starts, index * width]), kind="stable")
        starts = np.concatenate([starts, index * width])[order]
        sizes = np.concatenate([sizes, np.full(index.size, width)])[order]
        source = np.concatenate([source, own * width])[order]
    zeros = np.zeros(GAP, rows.dtype)
    addresses = np.stack([array.ctypes.data + starts * array.itemsize for array in (move.param, rows, *move.slots)], axis=1)
    addresses[:, 1] = np.where(source < 0, zeros.ctypes.data, rows.ctypes.data + source * rows.itemsize)
    return Part(table_by_address(addresses), sizes, [addresses, zeros, move])


def _gaps(starts, sizes) -> tuple:
    """What lies between rows, cut into pieces of at most GAP elements: starts, sizes, and -1 for each."""
    counts = -(-sizes // GAP)
    first = np.cumsum(counts) - counts
    offset = (np.arange(counts.sum()) - first.repeat(counts)) * GAP
    return starts.repeat(counts) + offset, np.minimum(sizes.repeat(counts) - offset, GAP), np.full(offset.size, -1)


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
