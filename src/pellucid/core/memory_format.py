"""In which order a tensor's elements lie in memory, as PyTorch names it, and arrays in such an order."""

from __future__ import annotations

import numpy as np

__all__ = [
    "arranged", "channels_last", "channels_last_3d", "contiguous_format", "has_format", "memory_format", "preserve_format",
]  # fmt: skip


class memory_format:
    """In which order a tensor's elements lie in memory: `contiguous_format`, `channels_last`, `preserve_format`, ..."""

    __slots__ = ("name",)

    def __init__(self, name: str):
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"

    def __reduce__(self):
        return self.name


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")


def arranged(array: np.ndarray, order: memory_format | None) -> np.ndarray:
    """A copy with its elements in the given order; None keeps the order, as far as the elements lie densely.

    Raises:
        RuntimeError: the order is one of another number of dimensions.
    """
    name = "preserve_format" if order is None else order.name
    if name == "contiguous_format" or (name == "preserve_format" and (array.flags.c_contiguous or 0 in array.strides)):
        return array.copy()
    if name == "preserve_format":
        return array.copy(order="K")
    ndim = 4 if name == "channels_last" else 5
    if array.ndim != ndim:
        raise RuntimeError(f"required rank {ndim} tensor to use {name} format, got a tensor of shape {list(array.shape)}")
    return np.ascontiguousarray(np.moveaxis(array, 1, -1)).copy().transpose(0, ndim - 1, *range(1, ndim - 1))


def has_format(array: np.ndarray, order: memory_format | None) -> bool:
    """Whether the elements already lie in the given order."""
    name = "contiguous_format" if order is None else order.name
    if name == "preserve_format":
        return True
    if name == "contiguous_format":
        return array.flags.c_contiguous
    return array.ndim == (4 if name == "channels_last" else 5) and np.moveaxis(array, 1, -1).flags.c_contiguous
