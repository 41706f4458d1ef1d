"""A recurrent layer over all steps, forwards and backwards: products for all steps, and the walk as one kernel each way.

A step multiplies a thin matrix, the states of a batch, by the weights, the same at every step. BLAS packs both at every call,
which takes as long as the product itself; here the weights are packed once a walk, into panels of `LANES` columns, and
multiplied in tiles (`tiles.py`). Each thread makes a block of LANES hidden units: its part of the product, and right after it
gates and states of these units, so that threads meet once a step.

Gates lie in memory by blocks, [rows, blocks, gates * LANES], so that all of a block's are side by side, at distances that the
compiler knows; hidden units are made up to whole blocks by weights of zero. Rows of weights are brought into this order
before products, rows of their gradients back after.

Plain forms: the functions of the same names in `kernels/recurrent.py`.
"""

from __future__ import annotations

import numba
import numpy as np

from pellucid.kernels.products import matmul, matmul_add
from pellucid.kernels.recurrent import Saved, before_steps, last_states
from pellucid.kernels.sums import leading_sum

from . import parallel, serial
from .blas import address
from .mathematics import sigmoid, tanh
from .tiles import REGISTER, ROWS, multiply_panel

__all__ = ["backward", "forward"]

MODES = {"LSTM": 0, "GRU": 1, "RNN_TANH": 2, "RNN_RELU": 3}
LSTM, GRU, RNN_TANH, RNN_RELU = range(4)
LANES = 32  # columns of a panel, hidden units of a block
DEPTH = 256  # of a stretch of a panel that stays in the first-level cache while all rows are multiplied by it


def forward(mode: str, data, states, weight_ih, weight_hh, bias, bias_n, steps):
    """Walk over the sequences; steps: [steps, 2], first row and number of rows of each, in the order of the walk."""
    rows, hidden = len(data), weight_hh.shape[1]
    parts, blocks = len(weight_hh) // hidden, -(-hidden // LANES)
    weight = _by_blocks(weight_ih, parts)
    gates = matmul(data, weight.T) if bias is None else matmul_add(data, weight.T, _by_blocks(bias[:, None], parts)[:, 0])
    gates = gates.reshape(rows, blocks, parts * LANES)
    first = [_widened(state, blocks) for state in states]
    output = np.empty((rows, blocks * LANES), data.dtype)
    extra = np.empty((rows if mode in ("LSTM", "GRU") else 0, 1, blocks * LANES), data.dtype)
    if mode == "GRU":
        extra[...] = _widened(bias_n[None], blocks)
    panels = _panels(weight_hh, parts, turned=False)
    _walk(MODES[mode], panels, gates, extra[:, 0], output, first[0], first[-1], steps)
    last = [last_states(state, after[:, :hidden], steps) for state, after in zip(states, (output, extra[:, 0]), strict=False)]
    return last, Saved(_narrowed(output, hidden), gates, extra)


def backward(mode: str, of_output, carried: list, data, states, weight_ih, weight_hh, steps, saved, needs) -> tuple:
    """Gradients, as the plain form returns them; carried: those of the last states, which are changed."""
    rows, blocks, width = saved.gates.shape
    hidden, parts = weight_hh.shape[1], width // LANES
    first = [_widened(state, blocks) for state in states]
    moved = [_widened(c, blocks) for c in carried]
    of_input = np.empty((rows, blocks, width), data.dtype)
    of_hidden = np.empty_like(of_input) if mode == "GRU" else of_input
    panels = _panels(weight_hh, parts, turned=True)
    _walk_back(
        MODES[mode], panels, _widened(of_output, blocks), saved.gates, saved.extra[:, 0], _widened(saved.output, blocks),
        first[0], first[-1], of_input, of_hidden, moved[0], moved[-1], steps,
    )  # fmt: skip
    of_input, of_hidden = of_input.reshape(rows, -1), of_hidden.reshape(rows, -1)
    turned = [_narrowed(m, hidden) for m in moved]
    of_bias = _from_blocks(leading_sum(of_input, 1)[:, None], parts, hidden)[:, 0] if needs[5] or needs[6] else None
    if needs[6]:
        of_bias_hh = _from_blocks(leading_sum(of_hidden, 1)[:, None], parts, hidden)[:, 0] if mode == "GRU" else of_bias.copy()
    return (
        matmul(of_input, _by_blocks(weight_ih, parts)) if needs[0] else None,
        turned[0] if needs[1] else None,
        turned[1] if needs[2] else None,
        _from_blocks(matmul(of_input.T, data), parts, hidden) if needs[3] else None,
        _from_blocks(matmul(of_hidden.T, before_steps(states[0], saved.output, steps)), parts, hidden) if needs[4] else None,
        of_bias if needs[5] else None,
        of_bias_hh if needs[6] else None,
    )


# --- orders of memory ------------------------------------------------------------------------------------------------


def _by_blocks(weight: np.ndarray, parts: int) -> np.ndarray:
    """Rows [parts * hidden, columns] in the order of gates by blocks, zeros for units that are not there."""
    hidden, columns = len(weight) // parts, weight.shape[1]
    whole = weight.reshape(parts, hidden, columns)
    if parts == 1 and hidden % LANES == 0:
        return np.require(weight, requirements=("C", "W"))
    if hidden % LANES:
        whole = np.concatenate([whole, np.zeros((parts, -hidden % LANES, columns), weight.dtype)], 1)
    return np.ascontiguousarray(whole.reshape(parts, -1, LANES, columns).transpose(1, 0, 2, 3)).reshape(-1, columns)


def _from_blocks(rows: np.ndarray, parts: int, hidden: int) -> np.ndarray:
    """The reverse of `_by_blocks`, in new memory."""
    turned = rows.reshape(-1, parts, LANES, rows.shape[1]).transpose(1, 0, 2, 3).reshape(parts, -1, rows.shape[1])
    return np.ascontiguousarray(turned[:, :hidden]).reshape(parts * hidden, -1)


def _widened(state: np.ndarray, blocks: int) -> np.ndarray:
    """[*, hidden] as [*, blocks * LANES], contiguous; zeros after the last unit."""
    missing = blocks * LANES - state.shape[1]
    if missing:
        return np.concatenate([state, np.zeros((len(state), missing), state.dtype)], 1)
    return np.require(state, requirements=("C", "W"))


def _narrowed(state: np.ndarray, hidden: int) -> np.ndarray:
    return state if state.shape[1] == hidden else np.ascontiguousarray(state[:, :hidden])


def _panels(weight: np.ndarray, parts: int, turned: bool) -> np.ndarray:
    """Weights [parts * hidden, hidden] as panels of gates by blocks; or, turned, as panels of hidden units."""
    blocks, rest = divmod(weight.shape[1], LANES)
    if rest:
        whole = _by_blocks(weight, parts)
        return _packed(whole.T if turned else whole)
    gate, block, unit, other_block, other_unit = range(5)
    order = (other_block, block, gate, unit, other_unit) if turned else (block, gate, other_block, other_unit, unit)
    split = weight.reshape(parts, blocks, LANES, blocks, LANES).transpose(order)
    return np.ascontiguousarray(split).reshape(blocks if turned else blocks * parts, -1, LANES)


def _packed(weight: np.ndarray) -> np.ndarray:
    """Weights [columns, depth] as panels [columns / LANES, depth, LANES], zeros after the last column."""
    columns, depth = weight.shape
    panels = np.zeros((-(-columns // LANES), depth, LANES), weight.dtype)
    whole = columns // LANES
    panels[:whole] = weight[: whole * LANES].reshape(whole, LANES, depth).transpose(0, 2, 1)
    if columns % LANES:
        panels[whole, :, : columns % LANES] = weight[whole * LANES :].T
    return panels


# --- products --------------------------------------------------------------------------------------------------------


@serial
def _multiply(a, step, rows, panels, number, out, out_step):
    """out[rows, LANES] += a[rows, depth] @ the panel of this number, for panels [count, depth, LANES]; a and out by address.

    2 * LANES * rows * depth FLOPs; reads the panel once from the second-level cache. step, out_step: bytes from row to row.
    """
    width, whole, one = np.int64(panels.itemsize), panels.shape[1], panels.dtype.type(1)
    line, lanes = LANES * width, 2 * REGISTER // width
    start = address(panels) + number * whole * line
    for first in range(0, whole, DEPTH):
        depth, given = np.int64(min(DEPTH, whole - first)), (a + first * width, step, width, ROWS * step)
        for column in range(0, line, 2 * REGISTER):
            panel, to = start + first * line + column, out + column
            multiply_panel(rows, lanes, given, panel, line, depth, to, out_step, to, out_step, to, one)


# --- forward ---------------------------------------------------------------------------------------------------------
# No views are taken inside kernels: each would count its references, which threads would have to agree on.


@parallel
def _walk(mode, panels, gates, extra, output, first_h, first_c, steps):
    """For each step 2 * gates * hidden^2 FLOPs a row, and about 60 for each gate. Traffic: the weights once a step, from the
    cache; gates are read and written once, output and extra written once.
    """
    before, found = 0, 0  # the step before: its first row, and how many rows find their state there
    for number in range(len(steps)):
        start, size = steps[number, 0], steps[number, 1]
        found = min(found, size)
        for block in numba.prange(gates.shape[1]):
            _block(mode, np.int64(block), panels, gates, extra, output, first_h, first_c, before, found, start, size)
        before, found = start, size


@serial
def _block(mode, block, panels, gates, extra, output, first_h, first_c, before, found, start, size):
    """One step of LANES hidden units; rows up to `found` begin with the state from row `before` on, others with the first."""
    width = np.int64(gates.itemsize)
    parts, line = gates.shape[2] // LANES, output.shape[1] * width
    for part in range(parts):
        out, step = address(gates) + width * gates.shape[2] * (start * gates.shape[1] + block), width * gates.shape[2] * gates.shape[1]
        out += part * LANES * width
        if mode == GRU and part == 2:
            out, step = address(extra) + start * line + block * LANES * width, line
        number = block * parts + part
        _multiply(address(output) + before * line, line, found, panels, number, out, step)
        _multiply(address(first_h) + found * line, line, size - found, panels, number, out + found * step, step)
    for b in range(size):
        if mode == LSTM and b < found:
            _lstm(gates, extra, output, extra, before + b, start + b, block)
        elif mode == LSTM:
            _lstm(gates, extra, output, first_c, b, start + b, block)
        elif mode == GRU and b < found:
            _gru(gates, extra, output, output, before + b, start + b, block)
        elif mode == GRU:
            _gru(gates, extra, output, first_h, b, start + b, block)
        else:
            _rnn(mode, gates, output, start + b, block)


@serial
def _lstm(gates, extra, output, old, old_row, row, block):
    first = block * LANES
    for u in range(LANES):
        i, f = sigmoid(gates[row, block, u]), sigmoid(gates[row, block, LANES + u])
        g, o = tanh(gates[row, block, 2 * LANES + u]), sigmoid(gates[row, block, 3 * LANES + u])
        c = f * old[old_row, first + u] + i * g
        gates[row, block, u], gates[row, block, LANES + u] = i, f
        gates[row, block, 2 * LANES + u], gates[row, block, 3 * LANES + u] = g, o
        extra[row, first + u] = c
        output[row, first + u] = o * tanh(c)


@serial
def _gru(gates, extra, output, old, old_row, row, block):
    first = block * LANES
    for u in range(LANES):
        r, z = sigmoid(gates[row, block, u]), sigmoid(gates[row, block, LANES + u])
        n = tanh(gates[row, block, 2 * LANES + u] + r * extra[row, first + u])
        gates[row, block, u], gates[row, block, LANES + u], gates[row, block, 2 * LANES + u] = r, z, n
        output[row, first + u] = n + z * (old[old_row, first + u] - n)


@serial
def _rnn(mode, gates, output, row, block):
    first, zero = block * LANES, gates.dtype.type(0)
    if mode == RNN_TANH:
        for u in range(LANES):
            output[row, first + u] = tanh(gates[row, block, u])
    else:
        for u in range(LANES):
            h = gates[row, block, u]
            output[row, first + u] = zero if h < 0 else h


# --- backward --------------------------------------------------------------------------------------------------------


@parallel
def _walk_back(mode, panels, of_output, gates, extra, output, first_h, first_c, of_input, of_hidden, of_h, of_c, steps):
    """For each step 2 * gates * hidden^2 FLOPs a row. Traffic: the weights once a step, from the cache; gates, extra, states
    and the gradient of the output are read once, gradients of the gates written once and read once.
    """
    for number in range(len(steps) - 1, -2, -1):
        for block in numba.prange(gates.shape[1]):
            if number < len(steps) - 1:  # what comes to h through the gates of the step after
                _carry(np.int64(block), panels, of_hidden, of_h, steps[number + 1, 0], steps[number + 1, 1])
            if number >= 0:
                start, size, before, found = steps[number, 0], steps[number, 1], 0, 0
                if number:
                    before, found = steps[number - 1, 0], min(steps[number - 1, 1], size)
                _block_back(
                    mode, np.int64(block), of_output, gates, extra, output, first_h, first_c, of_input, of_hidden, of_h, of_c,
                    np.int64(before), np.int64(found), start, size,
                )  # fmt: skip


@serial
def _carry(block, panels, of_hidden, of_h, start, size):
    """Add to the gradient of h what comes through the gates of a step."""
    width = np.int64(of_h.itemsize)
    line, step = of_h.shape[1] * width, of_hidden.shape[1] * of_hidden.shape[2] * width
    _multiply(address(of_hidden) + start * step, step, size, panels, block, address(of_h) + block * LANES * width, line)


@serial
def _block_back(
    mode, block, of_output, gates, extra, output, first_h, first_c, of_input, of_hidden, of_h, of_c, before, found, start, size
):
    """Gradients of the gates of LANES hidden units at one step; leaves in of_h and of_c what passes the gates by."""
    s = np.empty(5 * LANES, gates.dtype)
    for b in range(size):
        row = start + b
        if mode == LSTM and b < found:
            _lstm_back(s, gates, extra, extra, before + b, of_output, of_h, of_c, row, b, block)
        elif mode == LSTM:
            _lstm_back(s, gates, extra, first_c, b, of_output, of_h, of_c, row, b, block)
        elif mode == GRU and b < found:
            _gru_back(s, gates, extra, output, before + b, of_output, of_h, row, b, block)
        elif mode == GRU:
            _gru_back(s, gates, extra, first_h, b, of_output, of_h, row, b, block)
        else:
            _rnn_back(mode, s, output, of_output, of_h, row, b, block)
        for u in range(gates.shape[2]):
            of_input[row, block, u] = s[u]
        for u in range(LANES):
            of_h[b, block * LANES + u] = s[4 * LANES + u] if mode != LSTM else s.dtype.type(0)
        if mode == LSTM:
            for u in range(LANES):
                of_c[b, block * LANES + u] = s[4 * LANES + u]
        if mode == GRU:
            for u in range(2 * LANES):
                of_hidden[row, block, u] = s[u]
            for u in range(LANES):
                of_hidden[row, block, 2 * LANES + u] = s[3 * LANES + u]


@serial
def _lstm_back(s, gates, extra, old, old_row, of_output, of_h, of_c, row, b, block):
    """To scratch memory: gradients of the gates, and of the old c."""
    one, first = s.dtype.type(1), block * LANES
    for u in range(LANES):
        i, f = gates[row, block, u], gates[row, block, LANES + u]
        g, o = gates[row, block, 2 * LANES + u], gates[row, block, 3 * LANES + u]
        grad, cell = of_h[b, first + u] + of_output[row, first + u], tanh(extra[row, first + u])
        through = of_c[b, first + u] + grad * o * (one - cell * cell)
        s[u] = through * g * i * (one - i)
        s[LANES + u] = through * old[old_row, first + u] * f * (one - f)
        s[2 * LANES + u] = through * i * (one - g * g)
        s[3 * LANES + u] = grad * cell * o * (one - o)
        s[4 * LANES + u] = through * f


@serial
def _gru_back(s, gates, extra, old, old_row, of_output, of_h, row, b, block):
    """To scratch memory: gradients of r, z, n, of what h contributes to n, and what passes the gates by."""
    one, first = s.dtype.type(1), block * LANES
    for u in range(LANES):
        r, z, n = gates[row, block, u], gates[row, block, LANES + u], gates[row, block, 2 * LANES + u]
        grad = of_h[b, first + u] + of_output[row, first + u]
        of_n = grad * (one - z) * (one - n * n)
        s[u] = of_n * extra[row, first + u] * r * (one - r)
        s[LANES + u] = grad * (old[old_row, first + u] - n) * z * (one - z)
        s[2 * LANES + u] = of_n
        s[3 * LANES + u] = of_n * r
        s[4 * LANES + u] = grad * z


@serial
def _rnn_back(mode, s, output, of_output, of_h, row, b, block):
    """To scratch memory: the gradient of the gate, and what passes it by, which is nothing."""
    one, zero, first = s.dtype.type(1), s.dtype.type(0), block * LANES
    for u in range(LANES):
        h, grad = output[row, first + u], of_h[b, first + u] + of_output[row, first + u]
        s[u] = grad * (one - h * h) if mode == RNN_TANH else zero if h <= 0 else grad
        s[4 * LANES + u] = zero
