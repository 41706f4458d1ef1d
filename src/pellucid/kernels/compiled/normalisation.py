"""Normalising with statistics of its own, and the gradients of it: rows (layer, RMS) and units of channels (batch, group).

Every kernel reads what it needs once from memory: statistics are taken piece by piece in the first-level cache, and a row or
unit is still in the second-level cache when it is normalised. Sums are float32 within a chunk and float64 beyond it.
What calls them, and the plain forms: `kernels/normalisation.py`.
"""

from __future__ import annotations

import math

import numpy as np

from . import serial
from .sharing import share

__all__ = [
    "channels_backward", "channels_forward", "columns_backward", "columns_forward", "rows_backward", "rows_forward", "scaled",
]  # fmt: skip

CHUNK = 2048  # elements summed in their own precision: 8 or 16 KiB, half of a first-level cache
HELD = 1 << 16  # elements of a unit that are copied together: 256 or 512 KiB of a second-level cache
STRIP = 64  # columns that one worker takes at a time
ROWS = 256  # rows whose shares of a column's sum are added in their own precision


# --- statistics -----------------------------------------------------------------------------------------------------


@serial
def _moments(x, seen, mean, away):
    """Number, mean and sum of squared distances from it, of `seen` values that had `mean` and `away`, and those of x.

    Each chunk has two passes, corrected by what the first left over; chunks are combined as by Chan, Golub and LeVeque
    (Updating formulae and a pairwise algorithm for computing sample variances, 1979).
    """
    for start in range(0, x.size, CHUNK):
        part = x[start : start + CHUNK]
        total = x.dtype.type(0)
        for i in range(part.size):
            total += part[i]
        middle = total / x.dtype.type(part.size)
        left, squares = x.dtype.type(0), x.dtype.type(0)
        for i in range(part.size):
            distance = part[i] - middle
            left += distance
            squares += distance * distance
        rest = left / np.float64(part.size)
        step = (middle + rest) - mean
        count = seen + part.size
        away += (squares - rest * left) + step * step * seen * part.size / count
        mean += step * part.size / count
        seen = count
    return seen, mean, away


@serial
def _scale(seen, mean, away, eps, centred):
    """(mean to subtract, 1 / deviation, variance); about zero where the values are not centred."""
    if centred:
        var = away / seen
    else:
        var = away / seen + mean * mean
        mean = 0.0
    return mean, 1 / math.sqrt(var + eps), var


@serial
def _sums(grad, x, mean):
    """The sums of grad and of grad * (x - mean)."""
    total, along = 0.0, 0.0
    for start in range(0, x.size, CHUNK):
        g, part = grad[start : start + CHUNK], x[start : start + CHUNK]
        one, other = x.dtype.type(0), x.dtype.type(0)
        for i in range(part.size):
            one += g[i]
            other += g[i] * (part[i] - mean)
        total += one
        along += other
    return total, along


@serial
def _weighed_sums(grad, weight, x, mean):
    """The sums of grad * weight and of grad * weight * (x - mean)."""
    total, along = 0.0, 0.0
    for start in range(0, x.size, CHUNK):
        g, w, part = grad[start : start + CHUNK], weight[start : start + CHUNK], x[start : start + CHUNK]
        one, other = x.dtype.type(0), x.dtype.type(0)
        for i in range(part.size):
            h = g[i] * w[i]
            one += h
            other += h * (part[i] - mean)
        total += one
        along += other
    return total, along


@serial
def _piece(x, first, step, rows, held, start):
    """Rows first, first + step, ... of x one after another: where they lie, or copied to `held` from `start` on.

    Copies stay in the second-level cache. Rows a power of two apart would not: they would share a few places of it.
    """
    size = x.shape[1]
    if not held.size:
        return x.reshape(-1)[first * size : (first + rows) * size]
    for k in range(rows):
        row, target = x[first + k * step], held[start + k * size : start + (k + 1) * size]
        for i in range(size):
            target[i] = row[i]
    return held[start : start + rows * size]


@serial
def _portions(count, size, across):
    """How many rows make a piece, and how many elements of a unit are held at a time: all, one piece, or none."""
    each = max(1, CHUNK // size)
    if not across:
        return each, 0
    if count * size <= HELD:
        return each, count * size
    return each, each * size if each > 1 else 0


# --- rows -----------------------------------------------------------------------------------------------------------


@serial
def _forward_of_rows(block, x, weight, bias, eps, centred, made, mean, rstd, var):
    for r in range(block * ROWS, min((block + 1) * ROWS, x.shape[0])):
        row, target = x[r], made[r]
        seen, middle, away = _moments(row, 0, 0.0, 0.0)
        mean[r], rstd[r], var[r] = _scale(seen, middle, away, eps, centred)
        m, s = mean[r], rstd[r]
        for i in range(row.size):
            target[i] = (row[i] - m) * s * weight[i] + bias[i]


@serial
def rows_forward(threads, x, weight, bias, eps, centred, made, mean, rstd, var):
    """Each row of x [R, M] normalised, times weight [M], plus bias [M]; mean, rstd, var: [R].

    Traffic: x read, `made` written. 7 R M FLOPs. Plain form: `plain_forward`.
    """
    blocks = (x.shape[0] + ROWS - 1) // ROWS
    share(blocks, threads, _forward_of_rows, (x, weight, bias, eps, centred, made, mean, rstd, var))


@serial
def _backward_of_rows(block, grad, x, weight, mean, rstd, centred, made, of_weight, of_bias):
    size = x.shape[1]
    for r in range(block * ROWS, min((block + 1) * ROWS, x.shape[0])):
        g, row, m, s = grad[r], x[r], mean[r], rstd[r]
        if of_weight.size:
            share_of = of_weight[block]
            for i in range(size):
                share_of[i] += g[i] * ((row[i] - m) * s)
        if of_bias.size:
            share_of = of_bias[block]
            for i in range(size):
                share_of[i] += g[i]
        if made.size:
            total, along = _weighed_sums(g, weight, row, m)
            shift = x.dtype.type(s * total / size if centred else 0.0)
            slope = x.dtype.type(s * s * (s * (along / size)))
            target = made[r]
            for i in range(size):
                target[i] = g[i] * weight[i] * s - (row[i] - m) * slope - shift


@serial
def rows_backward(threads, grad, x, weight, mean, rstd, centred, made, of_weight, of_bias):
    """The gradients of `rows_forward`: made [R, M] or empty; of_weight, of_bias [R / ROWS, M] or empty, zeros, to be summed.

    Traffic: grad and x read, `made` written. 14 R M FLOPs. Plain form: `plain_gradients`.
    """
    blocks = (x.shape[0] + ROWS - 1) // ROWS
    share(blocks, threads, _backward_of_rows, (grad, x, weight, mean, rstd, centred, made, of_weight, of_bias))


# --- channels -------------------------------------------------------------------------------------------------------


@serial
def _forward_of_unit(u, x, weight, bias, across, eps, centred, made, mean, rstd, var):
    (rows, size), units, channels = x.shape, mean.size, weight.size
    count = rows // units
    step = units if across else 1
    each, holding = _portions(count, size, across)
    whole = holding == count * size
    first = u if across else u * count
    held = np.empty(holding, x.dtype)
    seen, middle, away = 0, 0.0, 0.0
    for k in range(0, count, each):
        piece = _piece(x, first + k * step, step, min(each, count - k), held, k * size if whole else 0)
        seen, middle, away = _moments(piece, seen, middle, away)
    middle, scale, spread = _scale(seen, middle, away, eps, centred)
    mean[u], rstd[u], var[u] = middle, scale, spread
    m = mean[u]
    source, begin, pace = x, first, step
    if whole:
        source, begin, pace = held.reshape(count, size), 0, 1
    for k in range(count):
        r = first + k * step
        row, target = source[begin + k * pace], made[r]
        factor, term = rstd[u] * weight[r % channels], bias[r % channels]
        for i in range(size):
            target[i] = (row[i] - m) * factor + term


@serial
def channels_forward(threads, x, weight, bias, across, eps, centred, made, mean, rstd, var):
    """Units of rows of x [R, P] normalised together; row r has channel r % C, with weight and bias [C]; mean, ...: [U].

    across: unit u has the rows u, u + U, ... (a channel of all images); otherwise as many rows as come to each, in order.
    Traffic: x read, `made` written. 7 R P FLOPs. Plain form: `plain_forward`.
    """
    share(mean.size, threads, _forward_of_unit, (x, weight, bias, across, eps, centred, made, mean, rstd, var))


@serial
def _backward_of_unit(u, grad, x, weight, across, mean, rstd, centred, made, totals, alongs):
    (rows, size), units, channels = x.shape, mean.size, weight.size
    count = rows // units
    step = units if across else 1
    each, holding = _portions(count, size, across)
    each = each if across else 1  # sums of each row
    whole = holding == count * size
    first = u if across else u * count
    m, s = mean[u], rstd[u]
    held_grad, held = np.empty(holding, x.dtype), np.empty(holding, x.dtype)
    total, along = 0.0, 0.0
    for k in range(0, count, each):
        r, taken, start = first + k * step, min(each, count - k), k * size if whole else 0
        g, piece = _piece(grad, r, step, taken, held_grad, start), _piece(x, r, step, taken, held, start)
        one, other = _sums(g, piece, m)
        totals[u if across else r] += one
        alongs[u if across else r] += other
        total += one * weight[r % channels]
        along += other * weight[r % channels]
    if made.size:
        shift = x.dtype.type(s * total / (count * size) if centred else 0.0)
        slope = x.dtype.type(s * s * (s * (along / (count * size))))
        slopes, source, begin, pace = grad, x, first, step
        if whole:
            slopes, source, begin, pace = held_grad.reshape(count, size), held.reshape(count, size), 0, 1
        for k in range(count):
            r = first + k * step
            g, row, target = slopes[begin + k * pace], source[begin + k * pace], made[r]
            factor = s * weight[r % channels]
            for i in range(size):
                target[i] = g[i] * factor - (row[i] - m) * slope - shift


@serial
def channels_backward(threads, grad, x, weight, across, mean, rstd, centred, made, totals, alongs):
    """The gradients of `channels_forward`: made [R, P] or empty, and for each channel (across) or row, float64, the sums of
    grad (totals) and of grad * (x - mean) (alongs).

    Traffic: grad and x read, `made` written. 10 R P FLOPs. Plain form: `plain_gradients`.
    """
    share(mean.size, threads, _backward_of_unit, (grad, x, weight, across, mean, rstd, centred, made, totals, alongs))


# --- columns --------------------------------------------------------------------------------------------------------


@serial
def _forward_of_strip(strip, x, weight, bias, eps, centred, made, mean, rstd, var):
    rows, columns = x.shape
    start = strip * STRIP
    stop = min(start + STRIP, columns)
    middle, away = np.zeros(stop - start), np.zeros(stop - start)
    for r in range(rows):
        row = x[r, start:stop]
        for j in range(row.size):
            middle[j] += row[j]
    for j in range(stop - start):
        middle[j] /= rows
    for r in range(rows):
        row = x[r, start:stop]
        for j in range(row.size):
            distance = row[j] - middle[j]
            away[j] += distance * distance
    for j in range(stop - start):
        mean[start + j], rstd[start + j], var[start + j] = _scale(rows, middle[j], away[j], eps, centred)
    m, s, factor, term = mean[start:stop], rstd[start:stop], weight[start:stop], bias[start:stop]
    for r in range(rows):
        row, target = x[r, start:stop], made[r, start:stop]
        for j in range(row.size):
            target[j] = (row[j] - m[j]) * s[j] * factor[j] + term[j]


@serial
def columns_forward(threads, x, weight, bias, eps, centred, made, mean, rstd, var):
    """Each column of x [R, C] normalised, with weight, bias, mean, rstd, var [C]: images of one place.

    Traffic: x read three times, from cache where a strip of it fits, `made` written. 7 R C FLOPs. Plain form: `plain_forward`.
    """
    strips = (x.shape[1] + STRIP - 1) // STRIP
    share(strips, threads, _forward_of_strip, (x, weight, bias, eps, centred, made, mean, rstd, var))


@serial
def _backward_of_strip(strip, grad, x, weight, mean, rstd, centred, made, totals, alongs):
    rows, columns = x.shape
    start = strip * STRIP
    stop = min(start + STRIP, columns)
    m, total, along = mean[start:stop], totals[start:stop], alongs[start:stop]
    for r in range(rows):
        g, row = grad[r, start:stop], x[r, start:stop]
        for j in range(row.size):
            total[j] += g[j]
            along[j] += g[j] * (row[j] - m[j])
    if made.size:
        width = stop - start
        factor, slope, shift = np.empty(width, x.dtype), np.empty(width, x.dtype), np.empty(width, x.dtype)
        for j in range(stop - start):
            s = rstd[start + j]
            factor[j] = s * weight[start + j]
            slope[j] = factor[j] * s * s * (along[j] / rows)
            shift[j] = factor[j] * (total[j] / rows) if centred else 0.0
        for r in range(rows):
            g, row, target = grad[r, start:stop], x[r, start:stop], made[r, start:stop]
            for j in range(row.size):
                target[j] = g[j] * factor[j] - (row[j] - m[j]) * slope[j] - shift[j]


@serial
def columns_backward(threads, grad, x, weight, mean, rstd, centred, made, totals, alongs):
    """The gradients of `columns_forward`: made [R, C] or empty, and for each column, float64, the sums of grad (totals) and of
    grad * (x - mean) (alongs).

    Traffic: grad and x read twice, from cache where a strip fits, `made` written. 10 R C FLOPs. Plain form: `plain_gradients`.
    """
    strips = (x.shape[1] + STRIP - 1) // STRIP
    share(strips, threads, _backward_of_strip, (grad, x, weight, mean, rstd, centred, made, totals, alongs))


# --- statistics that are given ----------------------------------------------------------------------------------


@serial
def _scaled_rows(block, x, mean, factor, term, made):
    channels = factor.size
    for r in range(block * ROWS, min((block + 1) * ROWS, x.shape[0])):
        row, target, m, f, t = x[r], made[r], mean[r % channels], factor[r % channels], term[r % channels]
        for i in range(row.size):
            target[i] = (row[i] - m) * f + t


@serial
def scaled(threads, x, mean, factor, term, made):
    """(x - mean) * factor + term for x [R, P]; row r has channel r % C, the vectors are [C].

    Traffic: x read, `made` written. 3 R P FLOPs. Plain form: `plain_fixed`.
    """
    share((x.shape[0] + ROWS - 1) // ROWS, threads, _scaled_rows, (x, mean, factor, term, made))
