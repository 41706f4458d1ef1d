"""Elements read and written along one dimension by index: gather, scatter and their relatives.

Whole slices by index are in `slices.py`. Indices that repeat add up in gradients; where values are written and the last one
wins, so does its gradient.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Index, operator
from pellucid.core.dims import one_dim
from pellucid.core.place_checks import check_index, check_shapes, size_along
from pellucid.core.values import number_in
from pellucid.kernels.accumulation import add_along, places_of
from pellucid.kernels.places import corner, factors_at, written
from pellucid.ops.batches import for_each

__all__ = ["gather", "scatter_add"]


# --- batches -----------------------------------------------------------------------------------------------------------


def in_rows(F, function, size: int, batched: set, operands: dict, number: bool, dim: int, *rest):
    """`function(input, dim, index, ...)` on a batch, in which numbers are rows of one; `number`: so is each result."""
    whole = [for_each(F, t, name in batched, size) for name, t in operands.items()]
    input, index, *src = [t if t.ndim > 1 else F.unsqueeze(t, 1) for t in whole]
    made = function(input, dim + 1, index, *src, *rest)
    return made[:, 0] if number else made


# --- reading -----------------------------------------------------------------------------------------------------------


@operator(method=True, linear=True)
class gather:
    """The elements of `input` at `index` along one dimension: result[i][j] = input[index[i][j]][j] for dim 0.

    input: [*S]; index: int64, no larger than input apart from `dim`. Returns the shape of index.
    """

    def canonical(input, dim: int, index, sparse_grad: bool = False):
        dim = one_dim(dim, input.ndim)
        check_shapes("gather", input, dim, index)
        check_index("gather", index, size_along(input, dim), dim)
        return dim, sparse_grad

    def forward(xp, input: Array, dim: int, index: Index, *, sparse_grad: bool = False):
        if not index.size:
            return xp.empty(index.shape, input.dtype)
        return xp.array((input if input.ndim else input.reshape(1))[places_of(index, dim)]).reshape(index.shape)

    def vjp_input(F, grad, input_shape, dim, index): return F.gather_backward(grad, dim, index, input_shape)

    def batch(F, size_of_batch, batched, input, dim, index):
        number = index.ndim == ("index" in batched)
        return in_rows(F, F.gather, size_of_batch, batched, {"input": input, "index": index}, number, dim)

    def samples(make):
        yield (make(3, 4), 1, make.integers(3, 2, high=4)), {}
        yield (make(3, 4), 0, make.integers(2, 3, high=3)), {}
        yield (make(), 0, make.integers(high=1)), {}
        yield (make(3), 0, np.array([0, 0, 2, 0])), {}
        yield (make(3), 0, np.array(1)), {}


@operator(module=None, linear=True)
class gather_backward:
    """Zeros of `input_shape` with each element added where `gather` took it from."""

    def forward(xp, input: Array, dim: int, index: Index, input_shape: tuple):
        whole = xp.zeros(input_shape, input.dtype)
        add_along(whole, dim, index, input, exact=True)
        return whole

    def vjp_input(F, grad, dim, index): return F.gather(grad, dim, index)

    def batch(F, size_of_batch, batched, input, dim, index, input_shape):
        operands, shape = {"input": input, "index": index}, (size_of_batch, *(input_shape or (1,)))
        return in_rows(F, F.gather_backward, size_of_batch, batched, operands, not input_shape, dim, shape)

    def samples(make):
        yield (make(3, 2), 1, make.integers(3, 2, high=4), (3, 4)), {}
        yield (make(), 0, np.array(0), ()), {}


# --- writing -----------------------------------------------------------------------------------------------------------


class _Scatter:
    """What scattering a tensor asks of its operands.

    input: [*S]; index: int64, no larger than src, and than input apart from `dim`. Returns [*S].
    """

    def canonical(input, dim: int, index, src):
        dim = one_dim(dim, input.ndim)
        check_shapes("scatter", input, dim, index, src)
        check_index("scatter", index, size_along(input, dim), dim)
        if src.dtype != input.dtype:
            raise RuntimeError(f"scatter(): Expected self.dtype to be equal to src.dtype: got {input.dtype.name} and {src.dtype.name}")
        return dim

    def vjp_src(F, grad, dim, index, src_shape): return F.into_corner(F.gather(grad, dim, index), src_shape)


@operator(method=True, inplace=True, linear=True)
class scatter_add(_Scatter):
    """`input` with each element of `src` added at its index along `dim`."""

    def forward(xp, input: Array, dim: int, index: Index, src: Array):
        whole = xp.array(input, order="C")
        add_along(whole, dim, index, corner(src, index.shape))
        return whole

    def vjp_input(F, grad): return grad

    def batch(F, size_of_batch, batched, input, dim, index, src):
        operands, number = {"input": input, "index": index, "src": src}, input.ndim == ("input" in batched)
        return in_rows(F, F.scatter_add, size_of_batch, batched, operands, number, dim)

    def samples(make):
        yield (make(3, 4), 1, make.integers(3, 2, high=4), make(3, 2)), {}
        yield (make(3, 4), 0, make.integers(2, 3, high=3), make(3, 4)), {}
        yield (make(), 0, np.array([0, 0]), make(2)), {}


@operator(module=None, node="ScatterBackward0", linear=True)
class scatter_src(_Scatter):
    """`input` with each element of `src` written at its index along `dim`; of repeated indices the last wins."""

    def forward(xp, input: Array, dim: int, index: Index, src: Array):
        return written(input, dim, index, corner(src, index.shape))

    def vjp_input(F, grad, dim, index): return F.scatter_value(grad, dim, index, 0)

    def batch(F, size_of_batch, batched, input, dim, index, src):
        operands, number = {"input": input, "index": index, "src": src}, input.ndim == ("input" in batched)
        return in_rows(F, F.scatter_src, size_of_batch, batched, operands, number, dim)

    def samples(make): yield (make(3, 4), 1, np.array([[0, 2], [1, 3], [3, 0]]), make(3, 2)), {}


@operator(module=None, node="ScatterBackward1")
class scatter_value:
    """`input` with one number written at every index along `dim`."""

    def canonical(input, dim: int, index, value):
        dim = one_dim(dim, input.ndim)
        check_shapes("scatter", input, dim, index)
        check_index("scatter", index, size_along(input, dim), dim)
        return dim, value

    def forward(xp, input: Array, dim: int, index: Index, value):
        return written(input, dim, index, number_in(value, input.dtype))

    def vjp_input(F, grad, dim, index): return F.scatter_value(grad, dim, index, 0)
    def jvp_input(F, tangent, dim, index): return F.scatter_value(tangent, dim, index, 0)

    def batch(F, size_of_batch, batched, input, dim, index, value):
        operands, number = {"input": input, "index": index}, input.ndim == ("input" in batched)
        return in_rows(F, F.scatter_value, size_of_batch, batched, operands, number, dim, value)

    def samples(make): yield (make(3, 4), 1, np.array([[0, 2], [1, 3], [3, 0]]), 1.5), {}


@operator(module=None, linear=True, batching="shift")
class into_corner:
    """Zeros of `whole_shape` that begin, along every dimension, with the operand."""

    def forward(xp, input: Array, whole_shape: tuple):
        whole = xp.zeros(whole_shape, input.dtype)
        corner(whole, input.shape)[...] = input
        return whole

    def vjp_input(F, grad, input_shape): return F.corner_of(grad, input_shape)
    def samples(make): yield (make(2, 3), (3, 3)), {}


@operator(module=None, linear=True, batching="shift")
class corner_of:
    """The part of the operand that begins every dimension and has `whole_shape`."""

    def forward(xp, input: Array, whole_shape: tuple): return corner(input, whole_shape).copy()
    def vjp_input(F, grad, input_shape): return F.into_corner(grad, input_shape)
    def samples(make): yield (make(3, 3), (2, 3)), {}


@operator(module=None)
class scatter_factors:
    """For each element the product of what `scatter(reduce="multiply")` multiplies it by; without a derivative."""

    def forward(xp, input: Index, dim: int, index: Index, src: Index):
        return factors_at(input, dim, index, src)

    def batch(F, size_of_batch, batched, input, dim, index, src):
        operands, number = {"input": input, "index": index, "src": src}, input.ndim == ("input" in batched)
        return in_rows(F, F.scatter_factors, size_of_batch, batched, operands, number, dim)
