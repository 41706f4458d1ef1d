"""Attention without the matrix of scores: a tile of queries meets one tile of keys after the other, forward and backward.

The softmax of a row is put together from its tiles: whenever a tile brings a larger score, what was summed before is scaled
down. Saved are the results and one number a query, the logarithm of its sum of exponentials; the backward computes tiles of
weights again from these. Memory grows with the length, not with its square.

Source: Dao, FlashAttention-2, 2023; Rabe and Staats, Self-attention does not need O(n^2) memory, 2021.
"""

from __future__ import annotations

import numba
import numpy as np

from . import get_threads, inner, parallel, tasks_of
from .blas import address, at, gemm_at, hold
from .mathematics import decay, log, maximum
from .products import FACTORS, as_stored, leading_steps, start_of

__all__ = ["backward", "forward"]

QUERIES, KEYS, BACK_KEYS = 64, 128, 64  # of a tile: BLAS multiplies matrices of these sizes without packing them
ADDED, ALLOWED = 1, 2  # what a mask holds: numbers to add to scores, or which keys are seen


def forward(query, key, value, mask, causal: bool, scale: float) -> tuple[np.ndarray, np.ndarray] | None:
    """Results [*, L, EV] and log-sum-exp [*, L]; None where leading dimensions have strides too mixed to be counted.

    Plain form: `attention.plain_forward`.
    """
    query, key, value = map(_rows_without_gaps, (query, key, value))
    made = _laid_out_like(query, value.shape[-1])
    mask, masked = _mask_of(mask, query, key)
    walk = leading_steps(query.shape[:-2], query, key, value, made, *(() if mask is None else (mask,)))
    if walk is None:
        return None
    (count, *inner), steps = walk
    length, size = query.shape[-2:]
    logs, kind = np.empty(query.shape[:-1], query.dtype), query.dtype.type
    tasks = count * -(-length // QUERIES)
    with tasks_of(tasks):
        _forward(
            *map(start_of, (query, key, value, made, logs)), _bytes(logs if mask is None else mask), (kind(scale), *FACTORS[kind]),
            (length, key.shape[-2], size, value.shape[-1]), _steps_of_rows(query, key, value, made), (count, *inner),
            (*steps, 0, 0, 0)[:15], masked, causal,
        )  # fmt: skip
    return made, logs


def backward(grad, query, key, value, made, logs, mask, causal: bool, scale: float) -> tuple[np.ndarray, ...] | None:
    """Gradients of query, key and value; None as `forward`. Plain form: `attention.plain_backward`."""
    grad, query, key, value, made = map(_rows_without_gaps, (grad, query, key, value, made))
    grads = _in_one_array(query, key, value) or tuple(_laid_out_like(x, x.shape[-1]) for x in (query, key, value))
    mask, masked = _mask_of(mask, query, key)
    arrays = (query, key, value, made, grad, *grads)
    walk = leading_steps(query.shape[:-2], *arrays, *(() if mask is None else (mask,)))
    if walk is None:
        return None
    (count, *inner), steps = walk
    (length, size), keys, kind = query.shape[-2:], key.shape[-2], query.dtype.type
    groups = max(1, min(get_threads() // count, -(-keys // BACK_KEYS)))
    parts = np.empty((groups - 1, count, length, size), query.dtype)
    with tasks_of(count * groups):
        _backward(
            *map(start_of, (*arrays, np.ascontiguousarray(logs))), parts, _bytes(grad if mask is None else mask),
            (kind(scale), *FACTORS[kind]), (length, keys, size, value.shape[-1]), _steps_of_rows(*arrays), (count, *inner),
            (*steps, 0, 0, 0)[:27], masked, causal, groups,
        )  # fmt: skip
    for part in parts:
        grads[0][...] += part.reshape(query.shape)
    return grads


def _rows_without_gaps(array: np.ndarray) -> np.ndarray:
    """The array, or a copy, with elements of a row side by side."""
    stored, _, turned = as_stored(array)
    return np.ascontiguousarray(stored) if turned else stored


def _steps_of_rows(*arrays: np.ndarray) -> tuple[int, ...]:
    return tuple(as_stored(array)[1] for array in arrays)


def _laid_out_like(array: np.ndarray, size: int) -> np.ndarray:
    """A new array [*, L, size] whose dimensions but the last lie in memory in the order that those of `array` do.

    Heads that are slices of one projection so give results, and gradients, that join into one array without a copy.
    """
    order = sorted(range(array.ndim - 1), key=lambda d: -array.strides[d])
    made = np.empty([array.shape[d] for d in order] + [size], array.dtype)
    return made.transpose(*np.argsort(order), array.ndim - 1)


def _in_one_array(query: np.ndarray, key: np.ndarray, value: np.ndarray) -> tuple[np.ndarray, ...] | None:
    """New arrays that lie in one new array as these do in one projection, side by side; None if they do not.

    What brings the gradients of a packed projection together finds them in place.
    """
    if not (query.shape == key.shape == value.shape and query.strides == key.strides == value.strides) or query.base is None:
        return None
    first, second, third = (x.__array_interface__["data"][0] for x in (query, key, value))
    length, step = query.itemsize, second - first
    for stride, size in sorted(zip((step, *query.strides), (3, *query.shape), strict=True)):
        if size > 1 and stride != length:
            return None
        length *= size
    if third - second != step or not query.base is key.base is value.base:
        return None
    whole = np.empty(length, np.uint8)
    return tuple(np.ndarray(query.shape, query.dtype, whole, number * step, query.strides) for number in range(3))


def _mask_of(mask: np.ndarray | None, query: np.ndarray, key: np.ndarray) -> tuple[np.ndarray | None, tuple[int, int, int]]:
    """The mask, what it holds, and the bytes from key to key and from query to query, 0 where all are one."""
    if mask is None:
        return None, (0, 0, 0)
    if not mask.flags.writeable:
        mask = mask.copy()
    query_step, key_step = [0 if n == 1 else s for n, s in zip(mask.shape[-2:], mask.strides[-2:], strict=True)]
    return mask, (ALLOWED if mask.dtype == np.bool_ else ADDED, key_step, query_step)


def _bytes(array: np.ndarray) -> np.ndarray:
    """The first element as bytes: one type for kernels, whatever the dtype."""
    return start_of(array).view(np.uint8)


@inner
def _offset(number, batch, steps, which):
    """Where matrices of array `which` begin, in elements."""
    z, rest = divmod(number, batch[1] * batch[2])
    y, x = divmod(rest, batch[2])
    return z * steps[3 * which] + y * steps[3 * which + 1] + x * steps[3 * which + 2]


@inner
def _clear(first, rows, columns, step, zero):
    """Set a matrix in memory to zero, `step` bytes from row to row."""
    for i in range(rows):
        at(first + i * step, columns, zero)[:] = zero


@inner
def _turn(first, rows, columns, step, to):
    """Write a matrix in memory, `step` bytes from row to row, transposed to [columns, rows]: BLAS likes its operands so."""
    for i in range(rows):
        row = at(first + i * step, columns, to[0, 0])
        for j in range(columns):
            to[j, i] = row[j]


@inner
def _mask_scores(scores, mask, masked, first, begin, causal, turned, hidden):
    """Apply the masks to scores of queries from `first` on with keys from `begin` on: [keys, queries] if turned."""
    rows, columns = scores.shape
    down, along = (masked[1], masked[2]) if turned else (masked[2], masked[1])
    start = mask + begin * masked[1] + first * masked[2]
    if masked[0] == ADDED:
        _add_mask(scores, start, down, along // scores.itemsize)
    elif masked[0] == ALLOWED:
        _hide(scores, start, down, along, hidden)
    if causal:
        for i in range(rows):
            if turned:
                scores[i, : max(0, min(columns, begin + i - first))] = hidden
            else:
                scores[i, max(0, min(columns, first + i - begin + 1)) :] = hidden


@inner
def _add_mask(scores, start, down, step):
    """Add numbers to scores: `down` bytes from row to row, `step` elements along it. One for a row, or neighbours, are vector code."""
    rows, columns = scores.shape
    for i in range(rows):
        numbers, row = at(start + i * down, max(1, columns * step), scores[0, 0]), scores[i]
        if step == 0:
            row += numbers[0]
        elif step == 1:
            row += numbers
        else:
            for j in range(columns):
                row[j] += numbers[j * step]


@inner
def _hide(scores, start, down, step, hidden):
    """Hide scores where a byte of the mask is 0: `down` bytes from row to row, `step` along it."""
    rows, columns = scores.shape
    for i in range(rows):
        allowed, row = at(start + i * down, max(1, columns * step), np.uint8(0)), scores[i]
        if step == 0:
            if not allowed[0]:
                row += hidden
        elif step == 1:
            for j in range(columns):
                row[j] = row[j] if allowed[j] else row[j] + hidden
        else:
            for j in range(columns):
                row[j] = row[j] if allowed[j * step] else row[j] + hidden


@inner
def _exponentials(scores, largest, totals, shrink, shifts, hidden, zero):
    """Replace scores [keys, queries] by exp(score - largest), the largest so far, and bring the totals up to date.

    shrink: what came before has to be multiplied with it; shifts: what was subtracted.
    """
    keys, queries = scores.shape
    for i in range(queries):
        shrink[i] = largest[i]
    for j in range(keys):
        row = scores[j]
        for i in range(queries):
            largest[i] = maximum(largest[i], row[i])
    for i in range(queries):
        shifts[i] = zero if largest[i] == hidden else largest[i]
        shrink[i] = decay(shrink[i] - shifts[i])
        totals[i] *= shrink[i]
    for j in range(keys):
        row = scores[j]
        for i in range(queries):
            row[i] = decay(row[i] - shifts[i])
    for j in range(keys):
        row = scores[j]
        for i in range(queries):
            totals[i] += row[i]


@parallel
def _forward(q, k, v, out, logs, mask, factors, sizes, leading, batch, steps, masked, causal):
    """2 L S (E + EV) FLOPs for each head, half of it if causal; reads keys and values once for each tile of queries.

    q to logs: first elements; mask: the first byte; factors: scale, 1, 0; sizes: L, S, E, EV; leading: from row to row of q, k,
    v, out; batch, steps: as in products, the mask's last; masked: what the mask holds, and the bytes from key to key and
    from query to query.
    """
    tasks = batch[0] * ((sizes[0] + QUERIES - 1) // QUERIES)
    starts = address(q), address(k), address(v), address(out), address(logs), address(mask)
    for task in numba.prange(tasks):
        _attend(np.int64(task), starts, out.itemsize, factors, sizes, leading, batch, steps, masked, causal)


@inner
def _attend(task, starts, width, factors, sizes, leading, batch, steps, masked, causal):
    """One tile of queries and all keys that it sees."""
    (scale, one, zero), (length, all_keys, size, out_size) = factors, sizes
    number, tile = divmod(task, (length + QUERIES - 1) // QUERIES)
    first = tile * QUERIES
    rows = min(QUERIES, length - first)
    q = starts[0] + (_offset(number, batch, steps, 0) + first * leading[0]) * width
    k = starts[1] + _offset(number, batch, steps, 1) * width
    v = starts[2] + _offset(number, batch, steps, 2) * width
    mask = starts[5] + _offset(number, batch, steps, 4) * (1 if masked[0] == ALLOWED else width)
    hidden = -one / zero
    turned, scores = np.empty((size, rows), type(scale)), np.empty((KEYS, rows), type(scale))
    made, shrink, shifts = np.empty((rows, out_size), type(scale)), np.empty(rows, type(scale)), np.empty(rows, type(scale))
    largest, totals = np.full(rows, hidden), np.zeros(rows, type(scale))
    _turn(q, rows, size, leading[0] * width, turned)
    last = min(all_keys, first + rows) if causal else all_keys
    for begin in range(0, last, KEYS):
        keys = min(KEYS, last - begin)
        tile_k, tile_v = k + begin * leading[1] * width, v + begin * leading[2] * width
        gemm_at(keys, rows, size, scale, tile_k, leading[1], 0, address(turned), rows, 0, zero, address(scores), rows)
        if causal or masked[0]:
            _mask_scores(scores[:keys], mask, masked, first, begin, causal, True, hidden)
        _exponentials(scores[:keys], largest, totals, shrink, shifts, hidden, zero)
        if begin:
            for i in range(rows):
                for e in range(out_size):
                    made[i, e] *= shrink[i]
        gemm_at(rows, out_size, keys, one, address(scores), rows, 1, tile_v, leading[2], 0, one if begin else zero, address(made),
                out_size)  # fmt: skip
    logs = at(starts[4] + (number * length + first) * width, rows, one)
    out = starts[3] + (_offset(number, batch, steps, 3) + first * leading[3]) * width
    for i in range(rows):
        logs[i] = hidden if totals[i] == zero else largest[i] + log(totals[i])
        inverse = one if totals[i] == zero else one / totals[i]
        to = at(out + i * leading[3] * width, out_size, one)
        for e in range(out_size):
            to[e] = made[i, e] * inverse
    hold(turned)
    hold(scores)
    hold(made)


@parallel
def _backward(q, k, v, out, grad, dq, dk, dv, logs, parts, mask, factors, sizes, leading, batch, steps, masked, causal, groups):
    """2 L S (3 E + 2 EV) FLOPs for each head, half of it if causal. A task has a head, and every `groups`-th tile of its keys.

    Arguments as in `_forward`. The gradient of the queries is added up within a group; those of later groups go to `parts`.
    """
    tasks = batch[0] * groups
    starts = (address(q), address(k), address(v), address(out), address(grad), address(dq), address(dk),
              address(dv), address(logs), address(mask), address(parts))  # fmt: skip
    for task in numba.prange(tasks):
        _group(np.int64(task), groups, starts, q.itemsize, factors, sizes, leading, batch, steps, masked, causal)


@inner
def _group(task, groups, starts, width, factors, sizes, leading, batch, steps, masked, causal):
    """One head and its share of the tiles of keys."""
    (length, all_keys, size, out_size), zero = sizes, factors[2]
    number, group = divmod(task, groups)
    q = starts[0] + _offset(number, batch, steps, 0) * width
    k = starts[1] + _offset(number, batch, steps, 1) * width
    v = starts[2] + _offset(number, batch, steps, 2) * width
    out = starts[3] + _offset(number, batch, steps, 3) * width
    grad = starts[4] + _offset(number, batch, steps, 4) * width
    dq, ldq = starts[5] + _offset(number, batch, steps, 5) * width, leading[5]
    dk = starts[6] + _offset(number, batch, steps, 6) * width
    dv = starts[7] + _offset(number, batch, steps, 7) * width
    if group:
        dq, ldq = starts[10] + ((group - 1) * batch[0] + number) * length * size * width, size
    logs = at(starts[8] + number * length * width, length, zero)
    mask = starts[9] + _offset(number, batch, steps, 8) * (1 if masked[0] == ALLOWED else width)
    _clear(dq, length, size, ldq * width, zero)
    shares = np.empty(length, type(zero))
    for i in range(length):
        made, arrived = at(out + i * leading[3] * width, out_size, zero), at(grad + i * leading[4] * width, out_size, zero)
        share = zero
        for e in range(out_size):
            share += made[e] * arrived[e]
        shares[i] = share
    scratch, turned = np.empty((2, QUERIES, BACK_KEYS), type(zero)), np.empty((size + out_size, BACK_KEYS), type(zero))
    for begin in range(group * BACK_KEYS, all_keys, groups * BACK_KEYS):
        keys = min(BACK_KEYS, all_keys - begin)
        tile_dk, tile_dv = dk + begin * leading[6] * width, dv + begin * leading[7] * width
        _clear(tile_dk, keys, size, leading[6] * width, zero)
        _clear(tile_dv, keys, out_size, leading[7] * width, zero)
        tile_k = k + begin * leading[1] * width
        _turn(tile_k, keys, size, leading[1] * width, turned[:size])
        _turn(v + begin * leading[2] * width, keys, out_size, leading[2] * width, turned[size:])
        for first in range(begin // QUERIES * QUERIES if causal else 0, length, QUERIES):
            tile_q, tile_grad = q + first * leading[0] * width, grad + first * leading[4] * width
            _tile(
                first, min(QUERIES, length - first), begin, keys, tile_q, tile_k, turned, tile_grad, dq + first * ldq * width,
                ldq, tile_dk, tile_dv, logs, shares, mask, scratch, factors, sizes, leading, masked, causal,
            )  # fmt: skip


@inner
def _tile(first, rows, begin, keys, q, k, turned, grad, dq, ldq, dk, dv, logs, shares, mask, scratch, factors, sizes, leading, masked, causal):
    """A tile of weights and of their gradients, and what it adds to the three gradients."""
    (scale, one, zero), (_, _, size, out_size) = factors, sizes
    weights, slopes = scratch[0], scratch[1]
    hidden = -one / zero
    turned_k, turned_v = address(turned), address(turned[size:])
    gemm_at(rows, keys, size, scale, q, leading[0], 0, turned_k, BACK_KEYS, 0, zero, address(weights), BACK_KEYS)
    gemm_at(rows, keys, out_size, one, grad, leading[4], 0, turned_v, BACK_KEYS, 0, zero, address(slopes), BACK_KEYS)
    if causal or masked[0]:
        _mask_scores(weights[:rows, :keys], mask, masked, first, begin, causal, False, hidden)
    for i in range(rows):
        row, slope = weights[i, :keys], slopes[i, :keys]
        shift = zero if logs[first + i] == hidden else logs[first + i]
        share = shares[first + i]
        for j in range(keys):
            weight = decay(row[j] - shift)
            row[j] = weight
            slope[j] = weight * (slope[j] - share)
    gemm_at(keys, out_size, rows, one, address(weights), BACK_KEYS, 1, grad, leading[4], 0, one, dv, leading[7])
    gemm_at(keys, size, rows, scale, address(slopes), BACK_KEYS, 1, q, leading[0], 0, one, dk, leading[6])
    gemm_at(rows, size, keys, scale, address(slopes), BACK_KEYS, 0, k, leading[1], 0, one, dq, ldq)
