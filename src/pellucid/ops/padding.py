"""Padding of the last dimensions: with a constant, with the mirror image, with the edge, with the other end.

How it is done: `kernels/padding.py`; `pad`, which chooses among the operators: `functions/padding.py`.
"""

from __future__ import annotations

from pellucid.autograd.operator import Array, operator
from pellucid.core.padding_checks import padded_shape, padding_pairs
from pellucid.core.values import number_in
from pellucid.kernels import padding as kernel

__all__ = ["constant_pad_nd"]

TITLES = {"reflect": "Reflection", "replicate": "Replication", "circular": "Circular"}


# --- with a constant -------------------------------------------------------------------------------------------------


@operator(exact=True, batching="leading")
class constant_pad_nd:
    """The input with `value` put around it; negative padding cuts off.

    input: [*S], any dtype. pad: pairs (before, after) for the last dimensions, the last one first.
    Returns a copy with sizes S + before + after. Its derivative is padding with the negative numbers.

    Raises:
        RuntimeError: an odd number of paddings, more pairs than dimensions, a size that would be negative.
    """

    def canonical(input, pad: tuple, value): return padding_pairs(input, pad), value

    def forward(xp, input: Array, pad: tuple, value=0):
        return kernel.surrounded(input, pad, padded_shape(input.shape, pad), number_in(value, input.dtype))

    def vjp_input(F, grad, pad): return F.constant_pad_nd(grad, tuple([-p for p in pad]), 0)
    def jvp_input(F, tangent, pad): return F.constant_pad_nd(tangent, pad, 0)

    def samples(make):
        yield (make(3, 4), (1, 2), 0.5), {}
        yield (make(3, 4), (1, -2, -1, 3)), {}
        yield (make(2, 3, 2).T, (0, 1, 2, 0, -1, 0), -1.0), {}
        yield (make(), ()), {}


# --- with the input's own elements -----------------------------------------------------------------------------------


@operator(module=None, exact=True, linear=True, batching="leading")
class repeated_padding:
    """The input with its own elements put around it; `mode` says which ones. The raw form, for formulas."""

    def forward(xp, input: Array, padding: tuple, mode: str): return kernel.repeated(input, padding, mode)

    def vjp_input(F, grad, input_shape, padding, mode):
        return F.repeated_padding_backward(grad, input_shape, padding, mode)


@operator(module=None, linear=True, batching="shift")
class repeated_padding_backward:
    """The transpose of padding with the input's own elements: what was repeated is added up. Returns [*input_shape]."""

    def forward(xp, input: Array, input_shape: tuple, padding: tuple, mode: str):
        return kernel.folded(input, input_shape, padding, mode)

    def vjp_input(F, grad, padding, mode): return F.repeated_padding(grad, padding, mode)

    def samples(make):
        for mode in TITLES:
            yield (make(2, 7), (2, 4), (2, 1), mode), {}
            yield (make(2, 5, 6), (2, 3, 4), (3, -1, 1, 1), mode), {}


def _declare(mode: str, count: int) -> None:
    """The operator of one mode and number of dimensions, under PyTorch's name for its node."""

    class padding_of_mode:
        __doc__ = f"""The input with {count} dimension{"s" * (count > 1)} padded in mode "{mode}"; negative padding cuts off.

        input: [*, {count} sizes], any dtype. padding: (before, after) of the last dimension, then of the one before.
        """

        def forward(xp, input: Array, padding: tuple): return kernel.repeated(input, padding, mode)

        def vjp_input(F, grad, input_shape, padding):
            return F.repeated_padding_backward(grad, input_shape, padding, mode)

        def samples(make):
            sizes = (4, 3, 5)[:count]
            yield (make(2, *sizes), (1, 2) * count), {}
            yield (make(1, 2, *sizes), (2, -1) * count), {}

    options = {"module": None, "exact": True, "linear": True, "batching": "leading", "fused": mode != "circular"}
    operator(name=f"{mode}_pad{count}d", node=f"{TITLES[mode]}Pad{count}DBackward0", **options)(padding_of_mode)


for _mode in TITLES:
    for _count in (1, 2, 3):
        _declare(_mode, _count)
