"""What batching rules of several families share: where the batch stands for an operator that does not know of it.

A rule gets operands with the batch in dimension 0 where `batched` names them. Dimensions and shapes here are an example's.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Index, operator
from pellucid.ops.accumulation import wrapped

__all__ = ["in_front", "into", "moved", "out_of", "repeated", "rest_summed"]


def in_front(F, value, batched: bool, rank: int):
    """A value with dimensions of size 1 after the batch, until examples have the rank: it broadcasts against theirs."""
    missing = rank + 1 - value.ndim if batched else 0
    return F.view(value, (value.shape[0], *(1,) * missing, *value.shape[1:])) if missing > 0 else value


def repeated(F, value, batched: bool, size: int):
    """A value with a batch in front: its own, or itself `size` times without copying."""
    return value if batched or value is None else F.expand(F.unsqueeze(value, 0), (size, *value.shape))


def moved(F, value, source: int, destination: int):
    """A view with one dimension in another place."""
    order = [d for d in range(value.ndim) if d != source]
    order.insert(destination, source)
    return value if source == destination else F.permute(value, tuple(order))


def into(F, value, dim: int):
    """The batch merged into a dimension: [B, *A, n, *C] as [*A, B * n, *C]."""
    made = moved(F, value, 0, dim)
    return F.reshape_to(made, (*made.shape[:dim], made.shape[dim] * made.shape[dim + 1], *made.shape[dim + 2 :]))


def out_of(F, value, dim: int, size: int):
    """The batch taken out of a dimension again, to the front."""
    shape = (*value.shape[:dim], size, value.shape[dim] // max(size, 1), *value.shape[dim + 1 :])
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
        if index.size and not (-size <= index.min() and index.max() < size):
            bad = index[(index < -size) | (index >= size)].flat[0]
            raise IndexError(f"index {bad} is out of bounds for dimension {dim} with size {size}")
        count = index.shape[dim]
        return wrapped(index, size) + (xp.arange(count) * size).reshape([-1 if d == dim else 1 for d in range(index.ndim)])


@operator(module=None, elementwise=True)
class counted:
    """Indices with negative ones counted from the end of `size`."""

    def forward(xp, index: Index, size: int):
        return np.array(wrapped(index, size))


@operator(module=None, linear=True)
class copied_beside:
    """A copy of the operand; under vmap for each example if `other` differs between them, so that it can be written into it."""

    def forward(xp, input: Array, other: Index):
        return input.copy()

    def vjp_input(F, grad):
        return grad

    def batch(F, size_of_batch, batched, input):
        return F.clone(repeated(F, input, "input" in batched, size_of_batch))

    def samples(make):
        yield (make(2, 3), make(2)), {}
