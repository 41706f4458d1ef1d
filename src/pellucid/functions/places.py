"""Where something is, and writing there: indices of elements that are not zero, coordinates out of flat indices, `put`."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import refuse_dynamic, require_tensors
from pellucid.core.index_arrays import check_flat
from pellucid.core.tensor import Tensor, wrap
from pellucid.ops.flat import coordinates

__all__ = ["argwhere", "nonzero", "nonzero_static", "put", "put_", "unravel_index"]


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
    check_flat(index, self.numel())
    if not self.dim():
        return self.copy_(source.reshape(-1)[-1] if not accumulate else self + source.sum())
    places = T.coordinates(T.counted(index.reshape(-1), self.numel()), self._array.shape)
    return self.index_put_(places, source.reshape(-1), accumulate)


Tensor.put_ = put_


@composite(method=True)
def nonzero(input: Tensor, *, as_tuple: bool = False):
    """The indices of all elements that are not zero: [count, number of dimensions], or a tuple with one vector for each."""
    refuse_dynamic("nonzero", input)
    array = input._array
    if not array.ndim and not as_tuple:
        return wrap(np.zeros((int(bool(array)), 0), np.int64))
    parts = [np.ascontiguousarray(part) for part in np.nonzero(array if array.ndim else array.reshape(1))]
    return tuple([wrap(part) for part in parts]) if as_tuple else wrap(np.stack(parts).T)


@composite(method=True)
def nonzero_static(input: Tensor, *, size: int, fill_value: int = -1) -> Tensor:
    """`nonzero` with exactly `size` rows: cut off, or filled up with `fill_value`."""
    if size < 0:
        raise RuntimeError(f"nonzero_static: 'size' must be an non-negative integer, got {size}")
    found = nonzero(input)._array[:size]
    rows = np.full((size, input._array.ndim), fill_value, np.int64)
    rows[: len(found)] = found
    return wrap(rows)


@composite()
def unravel_index(indices: Tensor, shape) -> tuple[Tensor, ...]:
    """Coordinates, one tensor for each dimension of `shape`, of indices counted through it as one row."""
    require_tensors("unravel_index", indices=indices)
    if indices._array.dtype.kind not in "iu":
        raise TypeError(f"expected 'indices' to be integer dtype, but got {indices.dtype}")
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(n < 0 for n in shape):
        raise ValueError(f"'shape' cannot have negative values, but got {shape}")
    return coordinates(indices, shape)


@composite(method=True)
def argwhere(input: Tensor) -> Tensor:
    """The indices of all elements that are not zero: [count, number of dimensions]."""
    return nonzero(input)
