"""Reading and writing by indices counted through the whole tensor as one row: `take` and `put`."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import composite, operator
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import every_value
from pellucid.core.tensor import Tensor
from pellucid.ops.indexing import index_at

__all__ = ["put", "take"]

take_flat = operator(module=None, name="take", node="TakeBackward0", linear=True)(index_at.operator.declaration)


@composite(method=True)
def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements at `index`, counted through the tensor as one row. Returns the shape of index."""
    if index._array.dtype != np.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {index.dtype}")
    _check_places(index, input._array.size)
    return take_flat(input, index, 0, input._array.ndim)


@composite(method=True)
def put(input: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """`input` with the elements of `source` written (or added) at `index`, counted through the tensor as one row."""
    whole = T.copied_beside(T.copied_beside(input, index), source) if index._wraps or source._wraps else input.clone()
    return whole.put_(index, source, accumulate)


def put_(self: Tensor, index: Tensor, source: Tensor, accumulate: bool = False) -> Tensor:
    """In-place form of `put`."""
    if index._array.dtype != np.int64:
        raise RuntimeError(f"put_(): Expected a long tensor for index, but got {index.dtype}")
    if source.dtype is not self.dtype:
        raise RuntimeError(f"put_(): self and source expected to have the same dtype, but got self.dtype = {self.dtype} and "
                           f"source.dtype = {source.dtype}")
    if index.numel() != source.numel():
        raise IndexError("put_(): Expected source and index to have the same number of elements, but got source.numel() = "
                         f"{source.numel()}, index.numel() = {index.numel()}")
    if not index.numel():
        return self
    if not self.numel():
        raise IndexError("put_(): Tried to put elements into an empty tensor")
    _check_places(index, self.numel())
    if not self.dim():
        return self.copy_(source.reshape(-1)[-1] if not accumulate else self + source.sum())
    places = T.coordinates(T.counted(index.reshape(-1), self.numel()), self._array.shape)
    return self.index_put_(places, source.reshape(-1), accumulate)


def _check_places(index: Tensor, count: int) -> None:
    """IndexError for a flat index outside [-count, count)."""
    found = every_value(index)
    if found.size and not (-count <= found.min() and found.max() < count):
        wrong = found[(found < -count) | (found >= count)].flat[0]
        raise IndexError(f"out of range: tried to access index {wrong} on a tensor of {count} elements.")


Tensor.put_ = put_
