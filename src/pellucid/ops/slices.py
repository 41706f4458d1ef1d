"""Slices along one dimension, read and written by a vector of indices: index_select, index_add, index_copy, index_fill.

Single elements by index are in `scatter.py`. Indices that repeat add up in gradients; where values are written and the last
one wins, so does its gradient.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import Array, Index, operator
from pellucid.core.dims import one_dim
from pellucid.core.place_checks import check_index_vector, check_slices, size_along
from pellucid.core.values import number_in
from pellucid.kernels.accumulation import add_slices
from pellucid.kernels.places import last_of_each
from pellucid.ops.batch_places import into, moved, out_of
from pellucid.ops.batches import for_each

__all__ = ["index_add", "index_copy", "index_select"]


def _of_slices(F, function, size: int, batched: set, operands: dict, dim: int, index, length: int, *rest):
    """`function(input, dim, index, ...)` on slices of each example: with an index for each, of all examples one after another."""
    whole = [for_each(F, t, name in batched, size) for name, t in operands.items()]
    number = whole[0].ndim == 1
    whole = [F.unsqueeze(t, 1) if t.ndim == 1 else t for t in whole]
    if "index" not in batched:
        made = function(whole[0], dim + 1, index, *whole[1:], *rest)
    else:
        numbers = F.reshape(F.numbered(index, length, 0), (-1,))
        made = function(into(F, whole[0], dim), dim, numbers, *[into(F, t, dim) for t in whole[1:]], *rest)
        made = out_of(F, made, dim, size, length)
    return made[:, 0] if number else made


@operator(method=True, linear=True)
class index_select:
    """The slices of `input` at `index` along one dimension.

    input: [*S]; index: [n], int64 or int32. Returns [*S with S[dim] = n].
    """

    def canonical(input, dim: int, index):
        dim = one_dim(dim, input.ndim)
        check_index_vector("index_select", index, size_along(input, dim), dim)
        return dim

    def forward(xp, input: Array, dim: int, index: Index):
        return xp.take(input, index.reshape(-1), dim) if input.ndim else input.copy()

    def vjp_input(F, grad, input_shape, dim, index): return F.index_select_backward(grad, dim, index, input_shape)

    def batch(F, size_of_batch, batched, input, dim, index):
        if input.ndim == ("input" in batched):
            return F.clone(for_each(F, input, "input" in batched, size_of_batch))
        if "index" not in batched:
            return F.index_select(input, dim + 1, index)
        count = math.prod(index.shape[1:])
        if "input" not in batched:
            return moved(F, F.index_at(input, F.reshape(index, (size_of_batch, count)), dim, 1), dim, 0)
        numbers = F.reshape(F.numbered(index, input.shape[dim + 1], 0), (size_of_batch * count,))
        return out_of(F, F.index_select(into(F, input, dim), dim, numbers), dim, size_of_batch, count)

    def samples(make):
        yield (make(3, 4), 1, np.array([0, 3, 3])), {}
        yield (make(3), 0, np.array(1)), {}
        yield (make(), 0, np.array([0])), {}


@operator(module=None, linear=True)
class index_select_backward:
    """Zeros of `input_shape` with each slice added where `index_select` took it from."""

    def forward(xp, input: Array, dim: int, index: Index, input_shape: tuple):
        if not input_shape:
            return input.copy().reshape(())
        return add_slices(xp.zeros(input_shape, input.dtype), dim, index.reshape(-1), input)

    def vjp_input(F, grad, dim, index): return F.index_select(grad, dim, index)

    def batch(F, size_of_batch, batched, input, dim, index, input_shape):
        if not input_shape:
            return F.clone(for_each(F, input, "input" in batched, size_of_batch))
        shape, length = (size_of_batch, *input_shape), input_shape[dim]
        if "index" in batched:
            shape = (*input_shape[:dim], size_of_batch * length, *input_shape[dim + 1 :])
        return _of_slices(F, F.index_select_backward, size_of_batch, batched, {"input": input}, dim, index, length, shape)

    def samples(make): yield (make(3, 3), 1, np.array([0, 3, 3]), (3, 4)), {}


def _as_slices(source: np.ndarray, input: np.ndarray, dim: int, index: np.ndarray) -> np.ndarray:
    return source.reshape((*input.shape[:dim], index.size, *input.shape[dim + 1 :]))


@operator(method=True, inplace=True, linear=True)
class index_add:
    """`input` with slices of `source`, times alpha, added at `index` along `dim`; repeated indices add up."""

    def canonical(input, dim: int, index, source, alpha=1):
        return check_slices("index_add", input, dim, index, source), alpha

    def forward(xp, input: Array, dim: int, index: Index, source: Array, *, alpha=1):
        added = source if alpha == 1 else source * number_in(alpha, source.dtype)
        whole = xp.array(input, order="C")
        if not whole.ndim:
            return whole + added.sum(dtype=whole.dtype)
        return add_slices(whole, dim, index.reshape(-1), _as_slices(added, input, dim, index))

    def vjp_input(F, grad): return grad

    def vjp_source(F, grad, dim, index, source_shape, alpha):
        given = F.reshape_to(F.index_select(grad, dim, index), source_shape)
        return given if alpha == 1 else given * alpha

    def batch(F, size_of_batch, batched, input, dim, index, source, alpha):
        def add(input, dim, index, source):
            return F.index_add(input, dim, index, source, alpha=alpha)

        operands, length = {"input": input, "source": source}, _length(input, dim, batched)
        return _of_slices(F, add, size_of_batch, batched, operands, dim, index, length)

    def samples(make):
        yield (make(3, 4), 1, np.array([0, 3, 3]), make(3, 3)), {"alpha": 2}
        yield (make(3), 0, np.array([1, 1]), make(2)), {}


def _length(input, dim: int, batched: set) -> int:
    """The size of a dimension of each example."""
    shape = input.shape["input" in batched :]
    return shape[dim] if shape else 1


@operator(method=True, inplace=True, linear=True)
class index_copy:
    """`input` with slices of `source` written at `index` along `dim`.

    Of repeated indices the last is kept, and it alone gets a gradient.
    """

    def canonical(input, dim: int, index, source): return check_slices("index_copy", input, dim, index, source)

    def forward(xp, input: Array, dim: int, index: Index, source: Array):
        whole = xp.array(input, order="C")
        if not whole.ndim:
            return source.reshape(()).copy()
        whole[(slice(None),) * dim + (index.reshape(-1),)] = _as_slices(source, input, dim, index)
        return whole

    def vjp_input(F, grad, dim, index): return F.index_fill_number(grad, dim, index, 0)

    def vjp_source(F, grad, dim, index, source_shape):
        return F.reshape_to(F.kept_slices(F.index_select(grad, dim, index), dim, index), source_shape)

    def batch(F, size_of_batch, batched, input, dim, index, source):
        operands, length = {"input": input, "source": source}, _length(input, dim, batched)
        return _of_slices(F, F.index_copy, size_of_batch, batched, operands, dim, index, length)

    def samples(make): yield (make(3, 4), 1, np.array([0, 3, 3]), make(3, 3)), {}


@operator(module=None, batching="leading")
class comes_last:
    """For each element of the last dimension whether none later is equal to it."""

    def forward(xp, index: Index):
        return last_of_each(index)


@operator(module=None, linear=True)
class kept_slices:
    """The slices whose index does not come again later; zeros for the others."""

    def forward(xp, input: Array, dim: int, index: Index):
        shape = [-1 if d == dim else 1 for d in range(input.ndim)]
        kept = last_of_each(index.reshape(-1)).reshape(shape)
        return xp.where(kept, input, input.dtype.type(0))

    def vjp_input(F, grad, dim, index): return F.kept_slices(grad, dim, index)

    def batch(F, size_of_batch, batched, input, dim, index):
        if "index" not in batched:
            return F.kept_slices(input, dim + 1, index) if input.ndim > 1 else F.clone(input)
        input = for_each(F, input, "input" in batched, size_of_batch)
        shape = [size_of_batch if not d else -1 if d == dim + 1 else 1 for d in range(input.ndim)]
        return F.where(F.view(F.comes_last(F.reshape(index, (size_of_batch, -1))), tuple(shape)), input, 0)

    def samples(make): yield (make(3, 3), 1, np.array([0, 3, 3])), {}


@operator(module=None, node="IndexFillBackward0")
class index_fill_number:
    """`input` with one number in all slices at `index` along `dim`."""

    def canonical(input, dim: int, index, value):
        dim = one_dim(dim, input.ndim)
        check_index_vector("index_fill_", index, size_along(input, dim), dim)
        return dim, value

    def forward(xp, input: Array, dim: int, index: Index, value):
        whole = xp.array(input, order="C")
        if not whole.ndim:
            return number_in(value, input.dtype)
        whole[(slice(None),) * dim + (index.reshape(-1),)] = number_in(value, input.dtype)
        return whole

    def vjp_input(F, grad, dim, index): return F.index_fill_number(grad, dim, index, 0)
    def jvp_input(F, tangent, dim, index): return F.index_fill_number(tangent, dim, index, 0)

    def batch(F, size_of_batch, batched, input, dim, index, value):
        length = _length(input, dim, batched)
        return _of_slices(F, F.index_fill_number, size_of_batch, batched, {"input": input}, dim, index, length, value)

    def samples(make): yield (make(3, 4), 1, np.array([0, 3]), 2.0), {}


@operator(module=None, linear=True, batching="shift")
class reshape_to:
    """A copy in another shape of as many elements."""

    def forward(xp, input: Array, whole_shape: tuple): return input.reshape(whole_shape).copy()
    def vjp_input(F, grad, input_shape): return F.reshape_to(grad, input_shape)
    def samples(make): yield (make(2, 3), (6,)), {}
