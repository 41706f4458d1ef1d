"""The operators of `tensor[...]`: views by integers, slices, None and Ellipsis; copies by tensors of indices.

One operator takes the whole basic index. What stands in the brackets is read in `functions/indexing.py`. Writing is in
`index_writing.py`, named selections (`gather`, `index_select`, ...) in `scatter.py` and `slices.py`.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import Array, Arrays, Index, Indices, operator
from pellucid.core.index_arrays import out_of_bounds, taken
from pellucid.core.subscripts import index_error, last_step
from pellucid.core.tensor import wrap
from pellucid.kernels import indexing as kernel
from pellucid.kernels.indexing import merged
from pellucid.ops.batch_places import in_front, moved
from pellucid.ops.batches import for_each

__all__ = ["assemble", "basic_backward", "index_at"]


# --- basic indices ---------------------------------------------------------------------------------------------------


class _Basic:
    """What a basic index selects: a view.

    input: [*S]; key: a tuple of ints, slices with positive steps, None, and an Ellipsis at the end or before.
    """

    def forward(xp, input: Array, key: tuple):
        try:
            return input[key]
        except IndexError as error:
            raise index_error(error, input, key) from None

    def vjp_input(F, grad, input_shape, key): return F.basic_backward(grad, input_shape, key)
    def described(input_shape, key): return last_step(input_shape, key)

    def samples(make):
        yield (make(3, 4), (1, ...)), {}
        yield (make(3, 4), (slice(None), slice(1, 3), ...)), {}
        yield (make(3, 4), (..., None, slice(0, 4, 2))), {}


basic_select = operator(view=True, module=None, name="basic_select", node="SelectBackward0")(_Basic)
basic_slice = operator(view=True, module=None, name="slice", node="SliceBackward0")(_Basic)
basic_unsqueeze = operator(view=True, module=None, name="basic_unsqueeze", node="UnsqueezeBackward0")(_Basic)
basic_alias = operator(view=True, module=None, name="basic_alias", node="AliasBackward0")(_Basic)


@operator(module=None, node="SliceBackward0_copy", linear=True)
class basic_backward:
    """Zeros of `input_shape` with the operand in the place that the basic index took."""

    def forward(xp, input: Array, input_shape: tuple, key: tuple):
        return kernel.assembled([input], input_shape, (key,))

    def vjp_input(F, grad, key): return F.slice(grad, key)
    def samples(make): yield (make(4), (3, 4), (1, ...)), {}


@operator(module=None, linear=True, batching="shift")
class assemble:
    """Zeros of `whole_shape` with the operands in the places that basic indices took: the derivative of several views.

    pieces: one for each key.
    """

    def forward(xp, pieces: Arrays, whole_shape: tuple, keys: tuple):
        return kernel.assembled(pieces, whole_shape, keys)

    def vjp_pieces(F, grad, needs, keys):
        return tuple([F.slice(grad, key) if need else None for need, key in zip(needs, keys, strict=True)])

    def samples(make): yield ([make(4), make(4)], (3, 4), ((0, ...), (2, ...))), {}


# --- advanced indices ------------------------------------------------------------------------------------------------


@operator(module=None, node="IndexBackward0", linear=True)
class index_at:
    """Slices along one dimension, or along `span` ones taken as one, in the order of an integer tensor; they may repeat.

    input: [*A, n, *B]; index: [*I] in [-n, n). Returns [*A, *I, *B], a copy. IndexError for an index outside.
    """

    def forward(xp, input: Array, index: Index, dim: int, span: int = 1):
        if span != 1:
            input = input.reshape(merged(input.shape, dim, span))
        try:
            return input.take(index, dim)
        except IndexError as error:
            raise out_of_bounds(error, input.shape, [index], dim) from None

    def vjp_input(F, grad, index, input_shape, dim, span):
        return F.index_at_backward(grad, index, input_shape, dim, span)

    def batch(F, batched, input, index, dim, span):
        if "index" not in batched:
            return F.index_at(input, index, dim + 1, span)
        if "input" not in batched:
            return moved(F, F.index_at(input, index, dim, span), dim, 0)
        numbers = F.numbered(index, math.prod(input.shape[dim + 1 : dim + 1 + span]), 0)
        return moved(F, F.index_at(moved(F, input, 0, dim), numbers, dim, span + 1), dim, 0)

    def samples(make):
        yield (make(3, 4), np.array([2, 0, 2]), 0), {}
        yield (make(2, 3, 2), np.array([[1, 5], [0, 1]]), 0, 2), {}
        yield (make(2, 3, 2), np.array([[1, -1], [0, 1]]), 1), {}


@operator(module=None, linear=True)
class index_at_backward:
    """Zeros of `input_shape` to which the operand is added in the places that `index_at` took."""

    def forward(xp, input: Array, index: Index, input_shape: tuple, dim: int, span: int = 1):
        return kernel.added_at(input, index, input_shape, dim, span)

    def vjp_input(F, grad, index, dim, span): return F.index_at(grad, index, dim, span)

    def batch(F, size_of_batch, batched, input, index, input_shape, dim, span):
        if "index" not in batched:
            return F.index_at_backward(input, index, (size_of_batch, *input_shape), dim + 1, span)
        input, shape = for_each(F, input, "input" in batched, size_of_batch), list(input_shape)
        numbers = F.numbered(index, math.prod(shape[dim : dim + span]), 0)
        shape.insert(dim, size_of_batch)
        return moved(F, F.index_at_backward(moved(F, input, 0, dim), numbers, tuple(shape), dim, span + 1), dim, 0)

    def samples(make):
        yield (make(3, 2), np.array([2, 0, 2]), (3, 2), 0), {}
        yield (make(2, 3, 3), np.array([5, -1, 0]), (2, 2, 3, 3), 1, 2), {}


@operator(module=None, node="IndexBackward0", linear=True)
class index:
    """Elements or slices chosen by integer tensors for several dimensions, broadcast against each other.

    indices: for each dimension a tensor of indices, or None for all of it. Returns a copy, with NumPy's shape.
    """

    def forward(xp, input: Array, indices: Indices): return taken(input, indices)
    def vjp_input(F, grad, indices, input_shape): return F.index_backward(grad, indices, input_shape)

    def batch(F, size_of_batch, batched, input, indices):
        places = BatchOfPlaces(F, size_of_batch, indices, "indices" in batched)
        return places.to_front(F.index(for_each(F, input, "input" in batched, size_of_batch), places.indices))

    def samples(make):
        yield (make(3, 4), [np.array([2, 0, 2]), np.array([1, 1, 1])]), {}
        yield (make(3, 2, 4), [np.array([2, 0]), None, np.array([1, 3])]), {}
        yield (make(2, 3, 4), [None, np.array([[2], [0]]), np.array([1, -1])]), {}


@operator(module=None, linear=True)
class index_backward:
    """Zeros of `input_shape` to which the operand is added in the places that `index` took."""

    def forward(xp, input: Array, indices: Indices, input_shape: tuple):
        return kernel.added_by(input, indices, input_shape)

    def vjp_input(F, grad, indices): return F.index(grad, indices)

    def batch(F, size_of_batch, batched, input, indices, input_shape):
        places = BatchOfPlaces(F, size_of_batch, indices, "indices" in batched)
        rows = places.from_front(for_each(F, input, "input" in batched, size_of_batch))
        return F.index_backward(rows, places.indices, (size_of_batch, *input_shape))

    def samples(make):
        yield (make(3), [np.array([2, 0, 2]), np.array([1, 1, 1])], (3, 4)), {}
        yield (make(2, 2), [np.array([2, 0]), None, np.array([1, 3])], (3, 2, 4)), {}
        yield (make(2, 2), [None, np.array([2, 0]), np.array([1, 3])], (2, 3, 4)), {}


class BatchOfPlaces:
    """Places that indices choose in each example of a batch, as places in the tensor of all examples."""

    def __init__(self, F, size: int, indices, batched: bool):
        given = [i for i in indices if i is not None]
        dims = [d for d, i in enumerate(indices) if i is not None]
        self.F, self.first, self.rank = F, dims[0], max(i.ndim for i in given) - batched
        self.together = dims[-1] - dims[0] == len(dims) - 1
        self.rest, self.batched = len(indices) - len(dims), batched
        self.indices: list = [None, *indices]
        if batched:
            numbers = np.arange(size).reshape(size, *(1,) * self.rank)
            self.indices = [wrap(numbers), *[None if i is None else in_front(F, i, self.rank) for i in indices]]

    def _order(self, ndim: int) -> list[int]:
        """Where NumPy lays the batch and the dimensions of an example's result: those of the indices first, unless side by side."""
        order, rank = list(range(ndim)), self.rank
        if self.batched and self.together and self.first:
            return [0, *order[1 + rank : 1 + rank + self.first], *order[1 : 1 + rank], *order[1 + rank + self.first :]]
        return [rank, *order[:rank], *order[rank + 1 :]] if not self.batched and not self.together else order

    def to_front(self, result):
        """What was taken at these places, with the batch in front."""
        return self.F.permute(result, tuple(self._order(result.ndim)))

    def from_front(self, values):
        """What is for these places and has the batch in front, laid out as what is taken there."""
        order = self._order(values.ndim)
        return self.F.permute(values, tuple(sorted(range(len(order)), key=order.__getitem__)))

    def values(self, values, batched: bool, ndim: int):
        """What is to be written to these places of examples with `ndim` dimensions."""
        values = values if batched else self.F.unsqueeze(values, 0)
        rank = self.rank + ndim - len([i for i in self.indices if i is not None]) + self.batched
        return self.from_front(in_front(self.F, values, rank))
