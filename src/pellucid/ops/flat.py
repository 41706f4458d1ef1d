"""Reading by indices counted through the whole tensor as one row (`take`), and their coordinates. `put` is in `functions/places.py`."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Index, composite, operator
from pellucid.core.index_arrays import check_flat
from pellucid.core.tensor import Tensor
from pellucid.ops.indexing import index_at

__all__ = ["coordinates", "take"]

take_flat = operator(module=None, name="take", node="TakeBackward0", linear=True)(index_at.operator.declaration)


@composite(method=True)
def take(input: Tensor, index: Tensor) -> Tensor:
    """The elements at `index`, counted through the tensor as one row. Returns the shape of index."""
    if index._array.dtype != np.int64:
        raise RuntimeError(f"take(): Expected a long tensor for index, but got {index.dtype}")
    check_flat(index, input._array.size)
    return take_flat(input, index, 0, input._array.ndim)


@operator(module=None, outputs=None, elementwise=True)
class coordinates:
    """The coordinates in a tensor of that shape of indices counted through it as one row, one array for each dimension."""

    def forward(xp, index: Index, shape: tuple):
        found, rest = [], index.astype(xp.int64)
        for n in reversed(shape):
            found.append(xp.asarray(rest % n))
            rest = rest // n
        return found[::-1]
