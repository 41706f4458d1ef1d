"""Checks of inputs to normalisation, and of the vectors that scale and shift the result."""

from __future__ import annotations

import math

from pellucid.core.tensor import Tensor

__all__ = ["check_batch", "check_channel_vectors", "normalised_dims"]


def check_channel_vectors(input: Tensor, channels: int, **vectors) -> None:
    """Raise RuntimeError unless each vector, given by name, has one number for each channel."""
    for name, vector in vectors.items():
        if vector is not None and vector._array.size != channels:
            raise RuntimeError(f"{name} should contain {channels} elements not {vector._array.size}: input has shape "
                               f"{list(input.shape)}, {name} {list(vector.shape)}; one number for each channel is expected")


def check_batch(function: str, input: Tensor) -> None:
    """Raise ValueError for a batch with one value a channel, which has no deviation."""
    shape = input._array.shape
    if math.prod(shape) // max(shape[1], 1) == 1:
        raise ValueError(f"Expected more than 1 value per channel when training, got input size {input.shape}: {function} needs "
                         "several values for a channel. Use a larger batch, or eval().")  # fmt: skip


def normalised_dims(input: Tensor, normalized_shape, weight, bias=None) -> tuple:
    """The last dimensions, those of `normalized_shape`; RuntimeError unless input and vectors end in them."""
    size = (normalized_shape,) if isinstance(normalized_shape, int) else tuple(normalized_shape)
    if not size:
        raise RuntimeError(f"Expected normalized_shape to be at least 1-dimensional, i.e., containing at least one element, but got "
                           f"normalized_shape = {list(size)}")  # fmt: skip
    for name, vector in (("weight", weight), ("bias", bias)):
        if vector is not None and vector._array.shape != size:
            raise RuntimeError(f"Expected {name} to be of same shape as normalized_shape, but got {name} of shape "
                               f"{list(vector.shape)} and normalized_shape = {list(size)}")  # fmt: skip
    if input._array.shape[-len(size) :] != size:
        raise RuntimeError(f"Given normalized_shape={list(size)}, expected input with shape [*, {', '.join(map(str, size))}], but got "
                           f"input of size{list(input.shape)}")  # fmt: skip
    return tuple(range(input._array.ndim - len(size), input._array.ndim))
