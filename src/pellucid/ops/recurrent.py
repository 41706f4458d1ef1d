"""Recurrent layers, all steps of one layer in one direction as one operator.

The arithmetic on arrays is in `kernels/recurrent.py`, the same composed of other operators in `recurrent_steps.py`. Nothing
here is public: `functions/recurrent.py` chooses between the two for `nn.RNN`, `nn.LSTM` and `nn.GRU`.
"""

from __future__ import annotations

from pellucid.autograd import differentiate
from pellucid.autograd.grad_mode import enable_grad
from pellucid.autograd.operator import Array, arrays, operator
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import require_kind
from pellucid.core.modes import modes
from pellucid.kernels import recurrent as kernel
from pellucid.ops.recurrent_steps import Weights, composed_layer


@operator(
    module=None, outputs=("output", "last_h", "last_cell", "gates", "kept"), constant=("gates", "kept"), batching="loop", fused=True
)
class recurrent_layer:
    """One layer of an LSTM, GRU or RNN in one direction, over packed sequences.

    data: [rows, input]: rows of all steps, `batch_sizes[t]` for step t, never more than for the step before; with `reverse`
    walked from the last step. h, and the cell c of an LSTM: [batch, hidden], the first states. weight_ih, weight_hh: [gates * hidden,
    input or hidden]; bias_ih, bias_hh: [gates * hidden] or None. mode: a key of `GATES`. Returns h after every step [rows,
    hidden], the last h and c [batch, hidden] (no elements where there is no c), and two arrays that the gradient goes on from.

    The gradient is backpropagation through time (Werbos, 1990); that of the gradient is taken from the composed layer, made
    again.
    """

    def forward(xp, data: Array, h: Array, cell: Array | None = None, weight_ih: Array | None = None, weight_hh: Array | None = None,
                bias_ih: Array | None = None, bias_hh: Array | None = None, batch_sizes: tuple = (), reverse: bool = False,
                mode: str = "LSTM"):  # fmt: skip
        require_kind("recurrent_layer", data, "f")
        states = [h] if cell is None else [h, cell]
        states, saved = kernel.forward(mode, data, states, (weight_ih, weight_hh, bias_ih, bias_hh), batch_sizes, reverse)
        return saved.output, states[0], xp.empty(0, data.dtype) if cell is None else states[1], saved.gates, saved.extra

    def vjp(F, grad, needs, data, h, cell, weight_ih, weight_hh, bias_ih, bias_hh, batch_sizes, reverse, mode, output, gates, kept):
        if F is not arrays:
            return _made_again(grad, needs, (data, h, cell, weight_ih, weight_hh, bias_ih, bias_hh), batch_sizes, reverse, mode)
        states, saved = [h] if cell is None else [h, cell], kernel.Saved(output, gates, kept)
        return kernel.backward(mode, grad, data, states, (weight_ih, weight_hh), batch_sizes, reverse, saved, needs)

    def samples(make):
        yield (make(5, 2), make(3, 2), make(3, 2), make(8, 2), make(8, 2), make(8), make(8), (3, 2)), {}
        yield (make(4, 3), make(2, 2), make(2, 2), make(8, 3), make(8, 2), None, None, (2, 2), True), {}
        yield (make(5, 2), make(3, 2), None, make(6, 2), make(6, 2), make(6), make(6), (3, 2), True, "GRU"), {}
        yield (make(4, 2), make(2, 2), None, make(6, 2), make(6, 2), None, None, (2, 2), False, "GRU"), {}
        yield (make(5, 2), make(3, 2), None, make(2, 2), make(2, 2), make(2), make(2), (3, 2), False, "RNN_TANH"), {}
        yield (make(5, 2), make(3, 2), None, make(2, 2), make(2, 2), make(2), make(2), (3, 2), True, "RNN_RELU"), {}


def _made_again(grads, needs, operands: tuple, batch_sizes: tuple, reverse: bool, mode: str) -> tuple:
    """The gradients as tensors with a history: the layer is composed anew from marks of its operands, and differentiated."""
    recording = modes.grad_enabled
    marks, output, states = composed_again(operands, batch_sizes, reverse, mode)
    given = [(o, g) for o, g in zip((output, *states), grads, strict=False) if g is not None]
    wanted = [mark for mark, want in zip(marks, needs, strict=True) if want]
    found = iter(differentiate.grad(
        [o for o, _ in given], wanted, [g for _, g in given], create_graph=recording, allow_unused=True
    ))  # fmt: skip
    return tuple([next(found) if want else None for want in needs])


def composed_again(operands: tuple, batch_sizes: tuple, reverse: bool, mode: str) -> tuple:
    """Marks of the operands, and what the composed layer makes of them, recorded: (marks, output, last states)."""
    with enable_grad():
        marks = [None if t is None else T.alias(t) for t in operands]
        data, h, cell, *weights = marks
        state = (h,) if cell is None else (h, cell)
        return marks, *composed_layer(mode, data, list(batch_sizes), state, Weights(*weights), reverse)
