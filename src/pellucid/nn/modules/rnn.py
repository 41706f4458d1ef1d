"""Recurrent networks: RNN, LSTM and GRU over sequences, and their cells for single steps.

The arithmetic is in `ops/recurrent.py`, packed sequences in `nn/utils/rnn.py`.
"""

from __future__ import annotations

import math
import numbers
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from pellucid.core.tensor import Tensor, wrap
from pellucid.kernels.recurrent import GATES
from pellucid.nn import functional as F
from pellucid.nn import init
from pellucid.nn.modules.module import Module
from pellucid.nn.parameter import empty_parameter
from pellucid.nn.utils.rnn import PackedSequence

if TYPE_CHECKING:
    from pellucid.nn.parameter import Parameter
    from pellucid.ops.recurrent_steps import Weights

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

USUAL = {  # settings that need not be shown
    "proj_size": 0, "num_layers": 1, "bias": True, "batch_first": False, "dropout": 0, "bidirectional": False,
}


class RNNBase(Module):
    """What RNN, LSTM and GRU share: the weights of every layer and direction, and the walk through the layers.

    Layer k has weight_ih_lk [gates * hidden, input], weight_hh_lk [gates * hidden, hidden], bias_ih_lk, bias_hh_lk, and
    with a projection weight_hr_lk [proj, hidden]; the names of the backward direction end in _reverse.
    """

    def __init__(
        self, mode: str, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device=None,
        dtype=None,
    ):
        super().__init__()
        _check_sizes(input_size, hidden_size, num_layers, proj_size)
        _check_options(bias, batch_first, dropout, num_layers)
        if mode not in GATES:
            raise ValueError(f"Unrecognized RNN mode: {mode}. Expected one of {', '.join(GATES)}")
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: self._directions]:
                self._add_weights(layer, suffix, device, dtype)
        self._flat_weights_names = [name for names in self._all_weights for name in names]
        self.reset_parameters()

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    @property
    def _output_size(self) -> int:
        """The size of h, which the projection may make smaller."""
        return self.proj_size or self.hidden_size

    def _add_weights(self, layer: int, suffix: str, device, dtype) -> None:
        """Register the weights of one layer in one direction."""
        gates = GATES[self.mode] * self.hidden_size
        inputs = self.input_size if layer == 0 else self._output_size * self._directions
        shapes = {"weight_ih": (gates, inputs), "weight_hh": (gates, self._output_size)}
        if self.bias:
            shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        for name, shape in shapes.items():
            setattr(self, f"{name}_l{layer}{suffix}", empty_parameter(*shape, device=device, dtype=dtype))
        self._all_weights.append([f"{name}_l{layer}{suffix}" for name in shapes])

    @property
    def _flat_weights(self) -> list[Parameter]:
        return [getattr(self, name) for name in self._flat_weights_names]

    @property
    def all_weights(self) -> list[list[Parameter]]:
        """The weights, a list for each layer and direction."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    def flatten_parameters(self) -> None:
        """Do nothing: on a CPU the weights need not lie side by side."""

    def reset_parameters(self) -> None:
        """Draw every weight uniformly, within 1 / sqrt(hidden_size) of 0."""
        bound = 1.0 / math.sqrt(self.hidden_size)
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    # --- forward -----------------------------------------------------------------------------------------------------

    def forward(self, input: Tensor | PackedSequence, hx: Any = None) -> tuple[Any, Any]:
        """Run over the sequences.

        input: [steps, batch, input], with `batch_first` [batch, steps, input], unbatched [steps, input], or packed.
        hx: the states to begin with, [layers * directions, batch, size]; zeros if None.

        Returns:
            The outputs of the last layer, laid out as the input, and the last states, laid out as `hx`.
        """
        if isinstance(input, PackedSequence):
            return self._forward_packed(input, hx)
        name = "LSTM" if self.mode == "LSTM" else "GRU" if self.mode == "GRU" else "RNN"
        if input.dim() not in (2, 3):
            raise ValueError(f"{name}: Expected input to be 2D or 3D, got {input.dim()}D tensor instead")
        batched = input.dim() == 3
        steps_first = input if batched else input.unsqueeze(1)
        if batched and self.batch_first:
            steps_first = input.transpose(0, 1)
        self._check_input(steps_first, 3)
        steps, batch = steps_first.shape[:2]
        state = self._first_state(hx, batch, steps_first, batched)
        output, state = self._run(steps_first.reshape(steps * batch, -1), [batch] * steps, state)
        output = output.reshape(steps, batch, -1)
        if not batched:
            return output.squeeze(1), self._pack_state(s.squeeze(1) for s in state)
        return output.transpose(0, 1) if self.batch_first else output, self._pack_state(state)

    def _forward_packed(self, packed: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        data, batch_sizes, order, back = packed
        self._check_input(data, 2)
        sizes = batch_sizes.tolist()
        state = self._first_state(hx, sizes[0], data, True)
        if hx is not None and order is not None:
            state = tuple(s.index_select(1, order) for s in state)
        output, state = self._run(data, sizes, state)
        if back is not None:
            state = tuple(s.index_select(1, back) for s in state)
        return PackedSequence(output, batch_sizes, order, back), self._pack_state(state)

    def _run(self, data: Tensor, batch_sizes: list[int], state: tuple) -> tuple[Tensor, tuple]:
        """All layers: rows [rows, input] and states [layers * directions, batch, size] to the same of the outputs."""
        from pellucid.functions.recurrent import layer as run_layer
        from pellucid.ops.joining import cat, stack  # slow import

        last = []
        for layer in range(self.num_layers):
            outputs = []
            for direction in range(self._directions):
                place = layer * self._directions + direction
                first = tuple(s[place] for s in state)
                output, ended = run_layer(self.mode, data, batch_sizes, first, self._weights(place), direction == 1)
                outputs.append(output)
                last.append(ended)
            data = outputs[0] if len(outputs) == 1 else cat(outputs, 1)
            if self.dropout and layer < self.num_layers - 1:
                data = F.dropout(data, self.dropout, self.training)
        return data, tuple(stack(parts) for parts in zip(*last, strict=True))

    def _weights(self, place: int) -> Weights:
        """The weights of one layer in one direction."""
        from pellucid.ops.recurrent_steps import Weights  # slow import

        return Weights(**{n.partition("_l")[0]: getattr(self, n) for n in self._all_weights[place]})

    # --- states ------------------------------------------------------------------------------------------------------

    def _state_sizes(self) -> tuple[int, ...]:
        return (self.hidden_size,)

    def _pack_state(self, state) -> Any:
        """A state as it is given to the user."""
        (h,) = state
        return h

    def _first_state(self, hx: Any, batch: int, like: Tensor, batched: bool) -> tuple[Tensor, ...]:
        """The states to begin with, checked, [layers * directions, batch, size] each."""
        shapes = [(self.num_layers * self._directions, batch, size) for size in self._state_sizes()]
        if hx is None:
            return tuple(wrap(np.zeros(shape, like._array.dtype)) for shape in shapes)
        states = tuple(hx) if len(shapes) > 1 else (hx,)
        self._check_dims(states, batched)
        if not batched:
            states = tuple(s.unsqueeze(1) for s in states)
        for number, (s, shape) in enumerate(zip(states, shapes, strict=True)):
            if tuple(s.shape) != shape:
                which = f"hidden[{number}]" if len(shapes) > 1 else "hidden"
                raise RuntimeError(f"Expected {which} size {shape}, got {list(s.shape)}")
        return states

    def _check_dims(self, states: tuple[Tensor, ...], batched: bool) -> None:
        wanted = 3 if batched else 2
        if all(s.dim() == wanted for s in states):
            return
        what = "hx and cx" if len(states) > 1 else "hx"
        got = ", ".join(f"{s.dim()}-D" for s in states)
        got = f"({got}) tensors" if len(states) > 1 else f"{got} tensor"
        kind = "batched 3-D" if batched else "unbatched 2-D"
        raise RuntimeError(f"For {kind} input, {what} should also be {wanted}-D but got {got}")

    def _check_input(self, input: Tensor, dims: int) -> None:
        weight = getattr(self, self._flat_weights_names[0])
        if input.dtype != weight.dtype:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({weight.dtype}). "
                f"Convert input: input.to({weight.dtype}), or convert model: model.to({input.dtype})"
            )
        if input.dim() != dims:
            raise RuntimeError(f"input must have {dims} dimensions, got {input.dim()}")
        if input.size(-1) != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.size(-1)}"
            )

    def extra_repr(self) -> str:
        """Sizes, and the settings that are not the usual ones."""
        shown = [f"{name}={getattr(self, name)}" for name, value in USUAL.items() if getattr(self, name) != value]
        return ", ".join([f"{self.input_size}, {self.hidden_size}", *shown])


def _check_sizes(input_size: int, hidden_size: int, num_layers: int, proj_size: int) -> None:
    for name, size in (("input_size", input_size), ("hidden_size", hidden_size), ("num_layers", num_layers)):
        if not isinstance(size, int):
            raise TypeError(f"{name} should be of type int, got: {type(size).__name__}")
        if size <= 0:
            raise ValueError(f"{name} must be greater than zero, got {size}")
    if proj_size < 0:
        raise ValueError(f"proj_size should be a positive integer or zero to disable projections, got {proj_size}")
    if proj_size >= hidden_size:
        raise ValueError(f"proj_size has to be smaller than hidden_size, got {proj_size} and {hidden_size}")


def _check_options(bias: bool, batch_first: bool, dropout: float, num_layers: int) -> None:
    for name, value in (("bias", bias), ("batch_first", batch_first)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")
    if not isinstance(dropout, numbers.Number) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
        raise ValueError(
            f"dropout should be a number in range [0, 1] representing the probability of an element being zeroed: "
            f"got {dropout!r}"
        )
    if dropout > 0 and num_layers == 1:
        warnings.warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
            "greater "
            f"than 1, but got dropout={dropout} and num_layers={num_layers}",
            stacklevel=4,
        )


class RNN(RNNBase):
    """h' = tanh(W x + b + U h + c), or with max(., 0) instead of tanh.

    Args:
        input_size, hidden_size: sizes of x and h.
        num_layers: each layer takes the outputs of the one before.
        nonlinearity: "tanh" or "relu".
        bias: whether there are b and c.
        batch_first: whether the batch comes before the steps in inputs and outputs.
        dropout: probability with which outputs are dropped between layers, in training.
        bidirectional: whether a second set of weights runs from the end; outputs stand side by side.
        device, dtype: of the weights.
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, nonlinearity: str = "tanh", bias: bool = True,
        batch_first: bool = False, dropout: float = 0.0, bidirectional: bool = False, device=None, dtype=None,
    ):
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        super().__init__(
            f"RNN_{nonlinearity.upper()}", input_size, hidden_size, num_layers, bias, batch_first, dropout,
            bidirectional, device=device, dtype=dtype,
        )
        self.nonlinearity = nonlinearity


class LSTM(RNNBase):
    """Long short-term memory: a cell c that gates let in, keep and give out.

    Arguments as for `RNN`, without `nonlinearity`; `proj_size` projects h to a smaller size.

    Source: Hochreiter and Schmidhuber, Long short-term memory, 1997.
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, proj_size: int = 0, device=None, dtype=None,
    ):
        super().__init__(
            "LSTM", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, proj_size,
            device, dtype,
        )

    def _state_sizes(self) -> tuple[int, ...]:
        return (self._output_size, self.hidden_size)

    def _pack_state(self, state) -> Any:
        return tuple(state)


class GRU(RNNBase):
    """Gated recurrent unit. Arguments as for `RNN`, without `nonlinearity`.

    Source: Cho and others, Learning phrase representations using RNN encoder-decoder, 2014.
    """

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int = 1, bias: bool = True, batch_first: bool = False,
        dropout: float = 0.0, bidirectional: bool = False, device=None, dtype=None,
    ):
        super().__init__(
            "GRU", input_size, hidden_size, num_layers, bias, batch_first, dropout, bidirectional, device=device,
            dtype=dtype,
        )


# --- cells -----------------------------------------------------------------------------------------------------------


class RNNCellBase(Module):
    """What the cells share: weights for one step, [batch, input] and [batch, hidden], or both without a batch."""

    _mode = ""

    def __init__(self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device=None, dtype=None):
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        self.weight_ih = empty_parameter(gates, input_size, device=device, dtype=dtype)
        self.weight_hh = empty_parameter(gates, hidden_size, device=device, dtype=dtype)
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, empty_parameter(gates, device=device, dtype=dtype) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw every weight uniformly, within 1 / sqrt(hidden_size) of 0."""
        bound = 1.0 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for weight in self.parameters():
            init.uniform_(weight, -bound, bound)

    def _step(self, input: Tensor, states: tuple[Tensor, ...] | None, count: int = 1) -> tuple[Tensor, ...]:
        """One step from the given states, or from `count` states of zeros."""
        name = type(self).__name__
        for what, value in (("input", input), *(("hidden", s) for s in states or ())):
            if value.dim() not in (1, 2):
                raise ValueError(f"{name}: Expected {what} to be 1D or 2D, got {value.dim()}D instead")
        batched = input.dim() == 2
        rows = input if batched else input.unsqueeze(0)
        if states is None:
            states = (wrap(np.zeros((len(rows), self.hidden_size), rows._array.dtype)),) * count
        elif not batched:
            states = tuple(s.unsqueeze(0) for s in states)
        self._check_sizes(rows, states)
        from pellucid.ops.recurrent_steps import STEPS, Weights  # slow import

        weights = Weights(self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh)
        gates = F.linear(rows, weights.weight_ih, weights.bias_ih)
        states = STEPS[self._mode](gates, states, weights)
        return states if batched else tuple(s.squeeze(0) for s in states)

    def _check_sizes(self, input: Tensor, states: tuple[Tensor, ...]) -> None:
        if input.size(1) != self.input_size:
            raise RuntimeError(
                f"input has inconsistent input_size: got {input.size(1)}, expected {self.input_size}"
            )
        for number, s in enumerate(states):
            if s.size(0) != input.size(0):
                raise RuntimeError(
                    f"Input batch size {input.size(0)} doesn't match hidden{number} batch size {s.size(0)}"
                )
            if s.size(1) != self.hidden_size:
                raise RuntimeError(
                    f"hidden{number} has inconsistent hidden_size: got {s.size(1)}, expected {self.hidden_size}"
                )

    def extra_repr(self) -> str:
        """Sizes, and the settings that are not the usual ones."""
        shown = [f"{self.input_size}, {self.hidden_size}"]
        if self.bias is not True:
            shown.append(f"bias={self.bias}")
        if getattr(self, "nonlinearity", "tanh") != "tanh":
            shown.append(f"nonlinearity={self.nonlinearity}")
        return ", ".join(shown)


class RNNCell(RNNCellBase):
    """One step of an `RNN`."""

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, nonlinearity: str = "tanh", device=None, dtype=None
    ):
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    @property
    def _mode(self) -> str:
        if self.nonlinearity not in ("tanh", "relu"):
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}. Select from 'tanh' or 'relu'.")
        return f"RNN_{self.nonlinearity.upper()}"

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next h."""
        return self._step(input, None if hx is None else (hx,))[0]


class LSTMCell(RNNCellBase):
    """One step of an `LSTM`."""

    _mode = "LSTM"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Tensor, hx: tuple[Tensor, Tensor] | None = None) -> tuple[Tensor, Tensor]:
        """The next (h, c)."""
        return self._step(input, None if hx is None else tuple(hx), 2)


class GRUCell(RNNCellBase):
    """One step of a `GRU`."""

    _mode = "GRU"

    def __init__(self, input_size: int, hidden_size: int, bias: bool = True, device=None, dtype=None):
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Tensor | None = None) -> Tensor:
        """The next h."""
        return self._step(input, None if hx is None else (hx,))[0]
