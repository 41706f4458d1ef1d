"""Recurrent layers: one layer of LSTM, GRU or plain RNN over all steps, and its gradients, in plain NumPy and compiled.

Sequences come packed: rows of all steps one after the other, `sizes[t]` of them for step t, never more than for the step
before; walked from the last step to the first with `reverse`. A state array [batch, hidden] holds the h of every sequence:
a step changes its first `sizes[t]` rows, so that sequences that are over keep their last state, and those that have not
begun their first. The gradient of a state walks the other way and by the same rule.

What inputs contribute to the gates is one product for all steps, and so are the gradients of weights and inputs. The plain
forms here walk step by step; `compiled/recurrent.py` has the same two functions. Modes are named as in `nn.RNNBase.mode`;
gates stand in PyTorch's order, side by side.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from .choice import compiled
from .products import matmul, matmul_add

__all__ = ["GATES", "Saved", "backward", "before_steps", "forward", "last_states", "steps_of"]

GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}


class Saved(NamedTuple):
    """What a forward keeps for the backward."""

    output: np.ndarray  # [rows, hidden]: h after every step
    gates: np.ndarray  # [rows, gates * hidden]: gates after their functions; of an RNN nothing that is of use
    extra: np.ndarray  # [rows, hidden]: c of an LSTM; of a GRU what h contributes to n, before it is multiplied by r
    # compiled forms keep gates and extra as they need them, with three dimensions


def forward(mode: str, data, states, weights, sizes: tuple[int, ...], reverse: bool):
    """Walk over the sequences.

    data: [rows, input]. states: h [batch, hidden], and c of an LSTM. weights: weight_ih [gates * hidden, input], weight_hh
    [gates * hidden, hidden], and two biases [gates * hidden] or None.

    Returns the last states and what is `Saved`; its `output` is the result.
    """
    weight_ih, weight_hh, bias_ih, bias_hh = weights
    bias, bias_n = _biases(mode, bias_ih, bias_hh, weight_hh.shape[1], data.dtype)
    steps = steps_of(sizes, reverse)
    fast = compiled("recurrent", len(data) * weight_hh.size, data, weight_hh)
    if fast is not None:
        return fast.forward(mode, data, states, weight_ih, weight_hh, bias, bias_n, steps)
    gates = matmul(data, weight_ih.T) if bias is None else matmul_add(data, weight_ih.T, bias)
    states = [np.array(state, order="C") for state in states]
    extra = np.empty((len(data) if mode in ("LSTM", "GRU") else 0, weight_hh.shape[1]), data.dtype)
    saved = Saved(np.empty((len(data), weight_hh.shape[1]), data.dtype), gates, extra)
    _walk(mode, saved, states, weight_hh, bias_n, steps)
    return states, saved


def _biases(mode: str, bias_ih, bias_hh, hidden: int, dtype) -> tuple:
    """What is added to the inputs' part of the gates, and to what h contributes to a GRU's n (zeros for other modes)."""
    bias_n = np.zeros(hidden, dtype)
    if bias_ih is None:
        return None, bias_n
    if mode != "GRU":
        return bias_ih + bias_hh, bias_n
    bias = bias_ih.copy()
    bias[: 2 * hidden] += bias_hh[: 2 * hidden]
    return bias, np.ascontiguousarray(bias_hh[2 * hidden :])


def steps_of(sizes: tuple[int, ...], reverse: bool) -> np.ndarray:
    """The steps in the order of the walk, [steps, 2]: the first row of each, and how many it has."""
    steps = np.empty((len(sizes), 2), np.int64)
    steps[:, 1] = sizes
    steps[:, 0] = np.cumsum(steps[:, 1]) - steps[:, 1]
    return np.ascontiguousarray(steps[::-1]) if reverse else steps


def before_steps(first, after, steps: np.ndarray) -> np.ndarray:
    """The state that each row found, [rows, hidden]: `after` of the step before in the walk, `first` where there was none."""
    made, state = np.empty_like(after), np.array(first, order="C")
    if len(steps) and (steps[:, 1] == len(first)).all():
        start, size = steps[0].tolist()
        made[start : start + size] = first
        if start:
            made[:start] = after[size:]
        else:
            made[size:] = after[: len(after) - size]
        return made
    for start, size in steps.tolist():
        made[start : start + size] = state[:size]
        state[:size] = after[start : start + size]
    return made


def last_states(first: np.ndarray, after: np.ndarray, steps: np.ndarray) -> np.ndarray:
    """The state [batch, hidden] that each row has in the end: `after` its last step; they take part in more and more steps, or fewer."""
    made, done = np.empty_like(first, order="C"), 0
    for start, size in reversed(steps.tolist()):
        if size > done:
            made[done:size] = after[start + done : start + size]
            done = size
        if done == len(made):
            break
    made[done:] = first[done:]
    return made


def backward(mode: str, grads, data, states, weights, sizes: tuple[int, ...], reverse: bool, saved: Saved, needs):
    """Gradients, given those of the output [rows, hidden] and of the last states (each may be None).

    needs: which gradients are wanted, of (data, h, c, weight_ih, weight_hh, bias_ih, bias_hh). Returns them in this order,
    None where there is none.
    """
    weight_ih, weight_hh = weights
    steps = steps_of(sizes, reverse)
    carried = [np.zeros(s.shape, s.dtype) if g is None else np.array(g, order="C")
               for s, g in zip(states, grads[1:], strict=False)]  # fmt: skip
    of_output = np.zeros_like(saved.output) if grads[0] is None else np.ascontiguousarray(grads[0])
    if saved.gates.ndim == 3:
        fast = compiled("recurrent", saved.gates.size << 32, data)
        return fast.backward(mode, of_output, carried, data, states, weight_ih, weight_hh, steps, saved, needs)
    before = [before_steps(states[0], saved.output, steps)]
    if mode == "LSTM":
        before.append(before_steps(states[1], saved.extra, steps))
    of_input, of_hidden = _walk_back(mode, of_output, carried, saved, before, weight_hh, steps)
    same = of_hidden is of_input
    of_bias = of_input.sum(0) if needs[5] or needs[6] else None
    return (
        matmul(of_input, weight_ih) if needs[0] else None,
        carried[0] if needs[1] else None,
        carried[1] if needs[2] else None,
        matmul(of_input.T, data) if needs[3] else None,
        matmul(of_hidden.T, before[0]) if needs[4] else None,
        of_bias if needs[5] else None,
        (of_bias.copy() if same else of_hidden.sum(0)) if needs[6] else None,
    )


# --- the walk in plain NumPy -----------------------------------------------------------------------------------------


def _walk(mode: str, saved: Saved, states: list, weight_hh, bias_n, steps) -> None:
    """All steps: fills `saved`, moves `states`."""
    step = {"LSTM": _lstm_step, "GRU": _gru_step}.get(mode, _rnn_step)
    for start, size in steps.tolist():
        rows = slice(start, start + size)
        current = [state[:size] for state in states]
        hidden = np.matmul(current[0], weight_hh.T)
        current[0][...] = step(mode, saved.gates[rows], hidden, current, bias_n, saved.extra[rows])
        saved.output[rows] = current[0]


def _lstm_step(mode, gates, hidden, states, bias_n, extra):
    gates += hidden
    i, f, g, o = np.split(gates, 4, 1)
    for gate in (i, f, o):
        gate[...] = _sigmoid(gate)
    np.tanh(g, out=g)
    c = states[1]
    np.add(f * c, i * g, out=c)
    extra[...] = c
    return o * np.tanh(c)


def _gru_step(mode, gates, hidden, states, bias_n, extra):
    r, z, n = np.split(gates, 3, 1)
    size = r.shape[1]
    np.add(hidden[:, 2 * size :], bias_n, out=extra)
    r[...] = _sigmoid(r + hidden[:, :size])
    z[...] = _sigmoid(z + hidden[:, size : 2 * size])
    n[...] = np.tanh(n + r * extra)
    return n + z * (states[0] - n)


def _rnn_step(mode, gates, hidden, states, bias_n, extra):
    return np.tanh(gates + hidden) if mode == "RNN_TANH" else np.maximum(gates + hidden, 0)


def _sigmoid(x):
    return 1 / (1 + np.exp(-x))


def _walk_back(mode: str, of_output, carried: list, saved: Saved, before: list, weight_hh, steps):
    """Gradients of the gates: of what the inputs and of what h contributes to them. Moves `carried` to the first states."""
    step = {"LSTM": _lstm_back, "GRU": _gru_back}.get(mode, _rnn_back)
    of_input = np.empty_like(saved.gates)
    of_hidden = np.empty_like(saved.gates) if mode == "GRU" else of_input
    for start, size in steps[::-1].tolist():
        rows = slice(start, start + size)
        current = [c[:size] for c in carried]
        values = Saved(*[a[rows] for a in saved])
        along = step(
            mode, current[0] + of_output[rows], current, values, [b[rows] for b in before], of_input[rows], of_hidden[rows]
        )
        current[0][...] = np.matmul(of_hidden[rows], weight_hh)
        if along is not None:
            current[0][...] += along
    return of_input, of_hidden


def _lstm_back(mode, grad, carried, saved, before, of_input, of_hidden):
    i, f, g, o = np.split(saved.gates, 4, 1)
    of_i, of_f, of_g, of_o = np.split(of_input, 4, 1)
    cell, of_c = np.tanh(saved.extra), carried[1]
    of_c += grad * o * (1 - cell * cell)
    of_i[...] = of_c * g * i * (1 - i)
    of_f[...] = of_c * before[1] * f * (1 - f)
    of_g[...] = of_c * i * (1 - g * g)
    of_o[...] = grad * cell * o * (1 - o)
    of_c *= f


def _gru_back(mode, grad, carried, saved, before, of_input, of_hidden):
    r, z, n = np.split(saved.gates, 3, 1)
    of_r, of_z, of_n = np.split(of_input, 3, 1)
    of_n[...] = grad * (1 - z) * (1 - n * n)
    of_r[...] = of_n * saved.extra * r * (1 - r)
    of_z[...] = grad * (before[0] - n) * z * (1 - z)
    of_hidden[...] = of_input
    of_hidden[:, 2 * r.shape[1] :] *= r
    return grad * z


def _rnn_back(mode, grad, carried, saved, before, of_input, of_hidden):
    h = saved.output
    of_input[...] = grad * (1 - h * h) if mode == "RNN_TANH" else np.where(h <= 0, 0, grad)
