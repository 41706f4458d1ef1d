"""Padding of the last dimensions: with a constant, with the mirror image, with the edge, with the other end; how: kernels/padding.py."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, composite, operator
from pellucid.autograd.operator import tensors as T
from pellucid.core.values import number_in
from pellucid.kernels import padding as kernel
from pellucid.kernels.padding import pairs

__all__ = ["constant_pad_nd", "pad"]

TITLES = {"reflect": "Reflection", "replicate": "Replication", "circular": "Circular"}


def _integers(padding) -> tuple[int, ...]:
    if not isinstance(padding, (tuple, list)) or not all(hasattr(p, "__index__") for p in padding):
        raise TypeError(f"pad(): argument 'pad' must be tuple of ints, not {type(padding).__name__}: got {padding!r}")
    return tuple([int(p) for p in padding])


# --- with a constant -------------------------------------------------------------------------------------------------


def _padded_shape(shape: tuple, padding) -> list[int]:
    made = list(shape)
    for dim, before, after in pairs(len(shape), padding):
        made[dim] += before + after
        if made[dim] < 0:
            raise RuntimeError(f"The input size {shape[dim]}, plus negative padding {before} and {after} resulted in a negative "
                               f"output size, which is invalid. Check dimension {dim} of your input.")
        if shape[dim] + min(before, 0) + min(after, 0) < 0:
            raise RuntimeError(f"narrow(): length must be non-negative: padding {before} and {after} cut off more than dimension "
                               f"{dim} of size {shape[dim]} has")
    return made


@operator(exact=True, batching="leading")
class constant_pad_nd:
    """The input with `value` put around it; negative padding cuts off.

    input: [*S], any dtype. pad: pairs (before, after) for the last dimensions, the last one first.
    Returns a copy with sizes S + before + after. Its derivative is padding with the negative numbers.

    Raises:
        RuntimeError: an odd number of paddings, more pairs than dimensions, a size that would be negative.
    """

    def canonical(input, pad: tuple, value):
        pad = _integers(pad)
        if len(pad) % 2:
            raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
        if len(pad) > 2 * input.ndim:
            raise RuntimeError("Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
                               f"{len(pad)} while the input has {input.ndim} dimensions.")
        return pad, value

    def forward(xp, input: Array, pad: tuple, value=0):
        return kernel.surrounded(input, pad, _padded_shape(input.shape, pad), number_in(value, input.dtype))

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


# --- the public function ---------------------------------------------------------------------------------------------


def _check_sizes(array: np.ndarray, count: int) -> None:
    """Only the batch may be empty."""
    if not all(array.shape[-count - 1 :]):
        ranks = f"{count + 1}D or {count + 2}D"
        raise RuntimeError(f"Expected {ranks} (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
                           f"input, but got: {list(array.shape)}")


def _check_padding(array: np.ndarray, padding: tuple, mode: str) -> None:
    """Refuse what a mode cannot repeat."""
    for number, (dim, before, after) in enumerate(pairs(array.ndim, padding)):
        size = array.shape[dim]
        if mode == "reflect" and (before >= size or after >= size):
            raise RuntimeError(f"Argument #{4 + 2 * number}: Padding size should be less than the corresponding input dimension, "
                               f"but got: padding ({before}, {after}) at dimension {dim} of input {list(array.shape)}")
        if mode == "circular":
            if before > size or after > size:
                raise RuntimeError(f"Padding value causes wrapping around more than once: got ({before}, {after}) at dimension "
                                   f"{dim} of input {list(array.shape)}")
            if size + before + after < 0:
                raise RuntimeError(f"Negative padding value is resulting in an empty dimension: ({before}, {after}) at dimension "
                                   f"{dim} of input {list(array.shape)}")
        elif size + before + after < 1:
            raise RuntimeError(f"input ({'DHW'[-1 - number]}: {size}) is too small. Calculated output size: "
                               f"{size + before + after}, from padding ({before}, {after}) at dimension {dim} of input "
                               f"{list(array.shape)}")


def _repeat(input, padding: tuple, mode: str, value):
    """Padding with the input's own elements, checked."""
    if value:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument: got value={value}')
    count, array = len(padding) // 2, input._array
    if not (count in (1, 2, 3) and array.ndim in (count + 1, count + 2)):
        raise NotImplementedError(f"Padding size {len(padding)} is not supported for {array.ndim}D input tensor. Mode {mode!r} "
                                  "pads the last one, two or three dimensions, by two numbers each, of an input with one or two "
                                  "dimensions more")
    if mode != "circular":
        _check_sizes(array, count)
    _check_padding(array, padding, mode)
    return getattr(T, f"{mode}_pad{count}d")(input, padding)


@composite(module="nn.functional")
def pad(input, pad, mode="constant", value=None):
    """The input with something put around its last dimensions.

    input: [*S], any dtype. pad: pairs (before, after): of the last dimension, then of the one before it, and so on; negative
    numbers cut off. mode: "constant" (any number of dimensions; `value`, 0 if None), or "reflect" (mirrored, the edge not
    repeated), "replicate" (the edge), "circular" (the other end) for the last one to three dimensions of [N, C, *] or [C, *].
    Raises: RuntimeError for paddings that do not fit the dimensions or the mode, or a value for another mode than "constant";
    NotImplementedError for another mode, or a number of dimensions that the mode does not take.
    """
    padding = _integers(pad)
    if len(padding) % 2:
        raise RuntimeError(f"Padding length must be divisible by 2: got {len(padding)} numbers")
    if len(padding) > 2 * input._array.ndim:
        raise RuntimeError("Padding length should be less than or equal to two times the input dimension but got padding length "
                           f"{len(padding)} and input of dimension {input._array.ndim}")
    if mode == "constant":
        if isinstance(value, complex):
            raise TypeError("pad(): argument 'value' must be float, not complex")
        return constant_pad_nd(input, padding, 0 if value is None else float(value))
    if mode not in TITLES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}: expected 'constant', 'reflect', 'replicate' or 'circular'")
    return _repeat(input, padding, mode, value)
