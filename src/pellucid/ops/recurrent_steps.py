"""Recurrent layers composed of other operators: one step of each kind of cell, and walking it over sequences.

`recurrent.py` has a layer as one operator, which is faster; this is its definition, what derivatives of its derivatives come
from, and what is used where an operator for each product is wanted: inside transforms, for projections and narrow types. The
modules that hold the weights are in `nn/modules/rnn.py`.

A state is a tuple of tensors [batch, size]: (h,), or (h, c) for an LSTM. Sequences come packed: rows of all steps one
after the other, `batch_sizes[t]` of them for step t, never more than for the step before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pellucid.core.tensor import Tensor
from pellucid.ops.joining import cat
from pellucid.ops.products import linear
from pellucid.ops.rectifiers import relu

if TYPE_CHECKING:
    from collections.abc import Callable

    Step = Callable[[Tensor, "State", "Weights"], "State"]

__all__ = ["STEPS", "State", "Weights", "composed_layer"]

State = tuple[Tensor, ...]


class Weights:
    """The weights of one layer in one direction; None for what it has not."""

    __slots__ = ("bias_hh", "bias_ih", "weight_hh", "weight_hr", "weight_ih")

    def __init__(
        self, weight_ih: Tensor, weight_hh: Tensor, bias_ih: Tensor | None = None, bias_hh: Tensor | None = None,
        weight_hr: Tensor | None = None,
    ):
        self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh = weight_ih, weight_hh, bias_ih, bias_hh
        self.weight_hr = weight_hr  # the projection of an LSTM

    def cast(self, autocast) -> Weights:
        """The same in the low type of an autocast block."""
        return Weights(*[autocast.lowered(getattr(self, n)) for n in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")])


# --- one step; `gates` is what the input contributes, [batch, gates * hidden] ----------------------------------------


def _hidden_gates(state: State, weights: Weights) -> Tensor:
    """What the state contributes to the gates."""
    return linear(state[0], weights.weight_hh, weights.bias_hh)


def tanh_step(gates: Tensor, state: State, weights: Weights) -> State:
    """h' = tanh(W x + U h)."""
    return ((gates + _hidden_gates(state, weights)).tanh(),)


def relu_step(gates: Tensor, state: State, weights: Weights) -> State:
    """h' = max(W x + U h, 0)."""
    return (relu(gates + _hidden_gates(state, weights)),)


def lstm_step(gates: Tensor, state: State, weights: Weights) -> State:
    """c' = f * c + i * g and h' = o * tanh(c'), projected if there is a projection."""
    i, f, g, o = (gates + _hidden_gates(state, weights)).chunk(4, 1)
    c = f.sigmoid() * state[1] + i.sigmoid() * g.tanh()
    h = o.sigmoid() * c.tanh()
    return (h if weights.weight_hr is None else linear(h, weights.weight_hr)), c


def gru_step(gates: Tensor, state: State, weights: Weights) -> State:
    """h' = (1 - z) * n + z * h, with n = tanh(W x + r * (U h))."""
    input_r, input_z, input_n = gates.chunk(3, 1)
    hidden_r, hidden_z, hidden_n = _hidden_gates(state, weights).chunk(3, 1)
    r = (input_r + hidden_r).sigmoid()
    z = (input_z + hidden_z).sigmoid()
    n = (input_n + r * hidden_n).tanh()
    return (n + z * (state[0] - n),)


STEPS: dict[str, Step] = {"RNN_TANH": tanh_step, "RNN_RELU": relu_step, "LSTM": lstm_step, "GRU": gru_step}


# --- a whole layer ---------------------------------------------------------------------------------------------------


def composed_layer(
    mode: str, data: Tensor, batch_sizes: list[int], state: State, weights: Weights, backward: bool = False
) -> tuple[Tensor, State]:
    """Walk over packed sequences, from their ends with `backward`.

    data: [rows, input]; state: [batch, size] each. Returns the h of every row, [rows, size], and the last states.
    The input's part of the gates is one product for all steps.
    """
    step = STEPS[mode]
    gates = linear(data, weights.weight_ih, weights.bias_ih).split(batch_sizes)
    if backward:
        outputs, state = _walk_back(step, gates, batch_sizes, state, weights)
    else:
        outputs, state = _walk(step, gates, batch_sizes, state, weights)
    return cat(outputs), state


def _walk(step: Step, gates, batch_sizes: list[int], state: State, weights: Weights) -> tuple[list[Tensor], State]:
    """Forwards: sequences drop out at the end of the batch as they are over."""
    outputs, ended = [], []
    for part, rows in zip(gates, batch_sizes, strict=True):
        if rows < len(state[0]):
            ended.append(tuple(s[rows:] for s in state))
            state = tuple(s[:rows] for s in state)
        state = step(part, state, weights)
        outputs.append(state[0])
    if ended:
        state = tuple(cat(parts) for parts in zip(state, *reversed(ended), strict=True))
    return outputs, state


def _walk_back(step: Step, gates, batch_sizes: list[int], state: State, weights: Weights) -> tuple[list[Tensor], State]:
    """Backwards: sequences join at the end of the batch as their last step comes."""
    outputs, first = [], state
    rows = batch_sizes[-1]
    state = tuple(s[:rows] for s in first)
    for part, wanted in zip(reversed(gates), reversed(batch_sizes), strict=True):
        if wanted > rows:
            state = tuple(cat([s, f[rows:wanted]]) for s, f in zip(state, first, strict=True))
            rows = wanted
        state = step(part, state, weights)
        outputs.append(state[0])
    return outputs[::-1], state
