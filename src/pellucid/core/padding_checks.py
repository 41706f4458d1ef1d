"""Checks of paddings: numbers in pairs, sizes that stay, what a mode can repeat."""

from __future__ import annotations

import numpy as np

from pellucid.kernels.padding import pairs

__all__ = ["check_padding", "check_sizes", "padded_shape", "padding_numbers", "padding_pairs"]


def padding_numbers(padding) -> tuple[int, ...]:
    """The numbers of a padding; TypeError for what is no sequence of integers."""
    if not isinstance(padding, (tuple, list)) or not all(hasattr(p, "__index__") for p in padding):
        raise TypeError(f"pad(): argument 'pad' must be tuple of ints, not {type(padding).__name__}: got {padding!r}")
    return tuple([int(p) for p in padding])


def padded_shape(shape: tuple, padding) -> list[int]:
    """The shape of what is padded; RuntimeError where more is cut off than is there."""
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


def check_sizes(array: np.ndarray, count: int) -> None:
    """Only the batch may be empty."""
    if not all(array.shape[-count - 1 :]):
        ranks = f"{count + 1}D or {count + 2}D"
        raise RuntimeError(f"Expected {ranks} (batch mode) tensor with possibly 0 batch size and other non-zero dimensions for "
                           f"input, but got: {list(array.shape)}")


def check_padding(array: np.ndarray, padding: tuple, mode: str) -> None:
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


def padding_pairs(input: np.ndarray, pad) -> tuple[int, ...]:
    """The numbers of a padding, checked: two for each of the last dimensions."""
    pad = padding_numbers(pad)
    if len(pad) % 2:
        raise RuntimeError(f"Length of pad must be even but instead it equals {len(pad)}")
    if len(pad) > 2 * input.ndim:
        raise RuntimeError("Length of pad should be no more than twice the number of dimensions of the input. Pad length is "
                           f"{len(pad)} while the input has {input.ndim} dimensions.")
    return pad
