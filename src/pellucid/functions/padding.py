"""`pad`: which operator a mode and a number of dimensions ask for. The operators are in `ops/padding.py`."""

from __future__ import annotations

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.padding_checks import check_padding, check_sizes, padding_numbers
from pellucid.ops.padding import TITLES, constant_pad_nd

__all__ = ["pad"]


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
        check_sizes(array, count)
    check_padding(array, padding, mode)
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
    padding = padding_numbers(pad)
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
