"""Moving a batch to where an operator that does not know of it keeps independent entries; indices for the batch as a whole.

Batching rules use these beside `batches.py`. Dimensions and shapes are an example's; the batch is in dimension 0.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Index, operator
from pellucid.core.index_arrays import raise_outside
from pellucid.kernels.accumulation import wrapped
from pellucid.ops.batches import for_each

__all__ = ["copied_beside", "in_front", "into", "moved", "out_of", "rest_summed"]


def in_front(F, value, rank: int):
    """A batch of values with dimensions of size 1 after the batch, until examples have the rank: it broadcasts against theirs."""
    missing = rank + 1 - value.ndim
    return F.view(value, (value.shape[0], *(1,) * missing, *value.shape[1:])) if missing > 0 else value


def moved(F, value, source: int, destination: int):
    """A view with one dimension in another place."""
    order = [d for d in range(value.ndim) if d != source]
    order.insert(destination, source)
    return value if source == destination else F.permute(value, tuple(order))


def into(F, value, dim: int):
    """The batch merged into a dimension: [B, *A, n, *C] as [*A, B * n, *C]."""
    made = moved(F, value, 0, dim)
    return F.reshape_to(made, (*made.shape[:dim], made.shape[dim] * made.shape[dim + 1], *made.shape[dim + 2 :]))


def out_of(F, value, dim: int, size: int, length: int):
    """The batch taken out of a dimension again, to the front; `length` stay there."""
    shape = (*value.shape[:dim], size, length, *value.shape[dim + 1 :])
    return moved(F, F.reshape_to(value, shape), dim, 0)


def rest_summed(F, value, mean: bool = False):
    """For each example of a batch the sum, or mean, of its elements."""
    dims = tuple(range(1, value.ndim))
    if not dims:
        return value
    return F.mean_dim(value, dims, False) if mean else F.sum_dim(value, dims, False)


@operator(module=None, batching="shift")
class numbered:
    """Indices of many tables of `size` rows as indices of the one that lies them one below the other.

    index: integers in [-size, size); dimension `dim` counts the tables. Returns the same shape.
    Raises: IndexError for an index outside.
    """

    def forward(xp, index: Index, size: int, dim: int):
        raise_outside(index, size, dim)
        numbers = (xp.arange(index.shape[dim]) * size).reshape([-1 if d == dim else 1 for d in range(index.ndim)])
        return wrapped(index, size) + numbers


@operator(module=None, elementwise=True)
class counted:
    """Indices with negative ones counted from the end of `size`."""

    def forward(xp, index: Index, size: int): return np.array(wrapped(index, size))


@operator(module=None, linear=True)
class copied_beside:
    """A copy of the operand; under vmap one for each example if `other` differs between them, so that it can be written into it."""

    def forward(xp, input: Array, other: Index): return input.copy()
    def vjp_input(F, grad): return grad
    def batch(F, size_of_batch, batched, input): return F.clone(for_each(F, input, "input" in batched, size_of_batch))
    def samples(make): yield (make(2, 3), make(2)), {}
