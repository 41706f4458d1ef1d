"""Where something is: the indices of elements that are not zero, and coordinates out of flat indices. None has a derivative."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Index, composite, operator
from pellucid.core.checks import require_tensors
from pellucid.core.tensor import Tensor, wrap
from pellucid.ops.batches import refuse_dynamic

__all__ = ["argwhere", "nonzero", "nonzero_static", "unravel_index"]


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


@operator(module=None, outputs=None, elementwise=True)
class coordinates:
    """The coordinates in a tensor of that shape of indices counted through it as one row, one array for each dimension."""

    def forward(xp, index: Index, shape: tuple):
        found, rest = [], index.astype(xp.int64)
        for n in reversed(shape):
            found.append(xp.asarray(rest % n))
            rest = rest // n
        return found[::-1]


@composite(method=True)
def argwhere(input: Tensor) -> Tensor:
    """The indices of all elements that are not zero: [count, number of dimensions]."""
    return nonzero(input)
