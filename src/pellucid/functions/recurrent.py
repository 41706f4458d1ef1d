"""A recurrent layer by one operator, or composed of many: `nn.RNN`, `nn.LSTM` and `nn.GRU` call `layer`.

The operator is in `ops/recurrent.py`, its definition in `ops/recurrent_steps.py`.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import tensors as T
from pellucid.core.modes import modes
from pellucid.core.tensor import Tensor
from pellucid.kernels.choice import FLOATS
from pellucid.ops.recurrent_steps import State, Weights, composed_layer

__all__ = ["layer"]


def layer(
    mode: str, data: Tensor, batch_sizes: list[int], state: State, weights: Weights, backward: bool = False
) -> tuple[Tensor, State]:
    """Walk over packed sequences, from their ends with `backward`: the h of every row, and the last states.

    As `composed_layer`, by one operator where that will do.
    """
    if modes.autocast is not None and mode == "LSTM" and weights.weight_hr is None:
        return modes.autocast.low(layer, mode, data, batch_sizes, state, weights.cast(modes.autocast), backward)
    if not _is_plain(data, state, weights):
        return composed_layer(mode, data, batch_sizes, state, weights, backward)
    h, cell = state if len(state) == 2 else (*state, None)
    w = weights
    made = T.recurrent_layer(data, h, cell, w.weight_ih, w.weight_hh, w.bias_ih, w.bias_hh, tuple(batch_sizes), backward, mode)
    return made.output, (made.last_h,) if cell is None else (made.last_h, made.last_cell)


def _is_plain(data: Tensor, state: State, weights: Weights) -> bool:
    """Whether one operator will do: one type that kernels know, no projection, and nobody who looks at single products."""
    if modes.transforms or modes.autocast is not None or weights.weight_hr is not None:
        return False
    dtype = data._array.dtype
    tensors = (*state, weights.weight_ih, weights.weight_hh, weights.bias_ih, weights.bias_hh)
    same = dtype in FLOATS and all(t is None or t._array.dtype == dtype for t in tensors)
    return same and bool(data._array.shape[0]) and np.size(state[0]._array) > 0
