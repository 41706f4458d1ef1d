"""Copies of a tensor in another order or shape: repeating, flipping, rolling, triangles, diagonals.

Results never share memory with their operand; the shape operators that do are in `views.py` and `parts.py`.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import Array, Index, composite, operator
from pellucid.autograd.views import check_inplace, written
from pellucid.core.dims import canonical_dims, one_dim, sizes_of
from pellucid.core.modes import modes
from pellucid.core.tensor import Tensor, wrap
from pellucid.core.values import number_in
from pellucid.kernels import places, strides
from pellucid.ops.batch_places import in_front
from pellucid.ops.batches import refuse_dynamic
from pellucid.ops.parts import canonical_diagonal

__all__ = ["diag", "diag_embed", "diagflat", "flip", "fliplr", "flipud", "repeat", "repeat_interleave", "roll", "rot90",
           "tile", "trace", "tril", "triu"]  # fmt: skip


# --- repeating -------------------------------------------------------------------------------------------------------


@operator(module=None, name="repeat", linear=True)
class repeat_kernel:
    """The tensor laid side by side `sizes` times along each dimension; further sizes make new dimensions in front.

    input: [*S]. Returns [sizes[i] * S[i]].
    """

    def canonical(input, sizes: tuple):
        if len(sizes) < input.ndim:
            raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: got "
                               f"{len(sizes)} repeats for {input.ndim} dimensions")
        if any(s < 0 for s in sizes):
            raise RuntimeError(f"Trying to create tensor with negative dimension: repeats are {list(sizes)}")
        return tuple(sizes)

    def forward(xp, input: Array, sizes: tuple): return places.repeat(input, sizes)
    def vjp_input(F, grad, input_shape, sizes): return F.repeat_backward(grad, input_shape, sizes)
    def batch(F, input, sizes): return F.repeat(in_front(F, input, len(sizes)), (1, *sizes))

    def samples(make):
        yield (make(2, 3), (2, 2)), {}
        yield (make(3), (2, 1, 2)), {}
        yield (make(), (3,)), {}
        yield (make(2), (0,)), {}


@operator(module=None, linear=True)
class repeat_backward:
    """The sum over all the places where `repeat` put each element."""

    def forward(xp, input: Array, input_shape: tuple, sizes: tuple): return places.repeats_added(input, input_shape, sizes)
    def vjp_input(F, grad, sizes): return F.repeat(grad, sizes)

    def batch(F, size_of_batch, input, input_shape, sizes):
        shape = (size_of_batch, *(1,) * (len(sizes) - len(input_shape)), *input_shape)
        return F.reshape(F.repeat_backward(input, shape, (1, *sizes)), (size_of_batch, *input_shape))

    def samples(make):
        yield (make(4, 6), (2, 3), (2, 2)), {}
        yield (make(3, 4), (2,), (3, 2)), {}


def repeat(self: Tensor, *repeats) -> Tensor:
    """The tensor laid side by side: `repeat(2, 3)` or `repeat((2, 3))`, one number for each dimension and more in front.

    Raises:
        RuntimeError: fewer numbers than dimensions, or a negative one.
    """
    return repeat_kernel(self, sizes_of(repeats, "repeat"))


Tensor.repeat = repeat


@composite(method=False)
def tile(input: Tensor, dims) -> Tensor:
    """`repeat`, where missing numbers are 1."""
    dims = tuple(dims) if isinstance(dims, (tuple, list)) else (dims,)
    return repeat_kernel(input, (1,) * (input.dim() - len(dims)) + dims)


Tensor.tile = lambda self, *dims: tile(self, sizes_of(dims, "tile"))


@composite(method=True)
def repeat_interleave(input: Tensor, repeats=None, dim: int | None = None, *, output_size: int | None = None) -> Tensor:
    """Each slice along `dim` repeated in place: [a, b] becomes [a, a, b, b].

    Args:
        input: [*S]; without `dim` its elements in one row. Without `repeats`, the counts, and indices are returned.
        repeats: a number, or an integer tensor with one count for each slice.
        output_size: the length of the result, if known.

    Raises:
        RuntimeError: counts that are negative, not integers, or do not fit.
    """
    if repeats is None:
        return wrap(np.repeat(np.arange(input.numel()), _counts(input)))
    if dim is None:
        input, dim = input.reshape(-1), 0
    if not input.dim():
        input = input.reshape(1)
    size = input.shape[one_dim(dim, input.dim())]
    repeats = wrap(np.asarray(repeats)) if isinstance(repeats, int) else repeats
    counts = _counts(repeats, output_size)
    if counts.ndim == 1 and counts.size not in (1, size):
        raise RuntimeError(f"repeats must have the same size as input along dim, but got repeats.size(0) = {counts.size} and "
                           f"input.size({dim}) = {size}")
    if counts.size and counts.min() < 0:
        raise RuntimeError("repeats can not be negative")
    length = int(np.broadcast_to(counts, (size,)).sum()) if output_size is None else output_size
    return input.index_select(dim, repeated_places(repeats.expand(size), length))


@operator(module=None, batching="leading")
class repeated_places:
    """Which element stands at each of `length` places where each comes as often as it counts. [*S, n] -> [*S, length]."""

    def forward(xp, counts: Index, length: int):
        rows = places.repeats_of(counts)
        for row in rows:
            if row.size != length:
                raise RuntimeError(f"Allocated size does not match required size: output_size is {length}, needed {row.size}")
        return xp.array(rows, xp.int64).reshape(*counts.shape[:-1], length)


def _counts(repeats: Tensor, output_size: int | None = None) -> np.ndarray:
    if output_size is None:
        refuse_dynamic("repeat_interleave", repeats)
    counts = repeats._array
    if counts.dtype not in (np.int64, np.int32):
        raise RuntimeError(f"repeats has to be Long or Int tensor, got {repeats.dtype}")
    if counts.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    return counts


# --- turning ---------------------------------------------------------------------------------------------------------


@operator(method=False, linear=True)
class flip:
    """The tensor with the order of the elements reversed along each of `dims`."""

    def canonical(input, dims): return canonical_dims(dims if isinstance(dims, (tuple, list)) else (dims,), input.ndim)
    def forward(xp, input: Array, dims: tuple): return xp.flip(input, dims if input.ndim else ()).copy()
    def vjp_input(F, grad, dims): return F.flip(grad, dims)

    def samples(make):
        yield (make(2, 3), (0, -1)), {}
        yield (make(), (0,)), {}


Tensor.flip = lambda self, *dims: flip(self, sizes_of(dims, "flip"))


@composite(method=True)
def fliplr(input: Tensor) -> Tensor:
    """The tensor with its second dimension reversed; RuntimeError for fewer than two."""
    if input.dim() < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return flip(input, (1,))


@composite(method=True)
def flipud(input: Tensor) -> Tensor:
    """The tensor with its first dimension reversed; RuntimeError for a 0-d one."""
    if input.dim() < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return flip(input, (0,))


@operator(method=True, linear=True)
class roll:
    """The elements moved along `dims` by `shifts` places, those that fall off the end coming in at the front.

    Without dims, the elements in one row are moved.
    """

    def canonical(input, shifts, dims=()):
        shifts = tuple(shifts) if isinstance(shifts, (tuple, list)) else (shifts,)
        dims = tuple(dims) if isinstance(dims, (tuple, list)) else () if dims is None else (dims,)
        if not shifts:
            raise RuntimeError("`shifts` required")
        if (dims and len(dims) != len(shifts)) or (not dims and len(shifts) > 1):
            raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
        if dims and not input.ndim:
            raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
        return shifts, tuple([one_dim(d, input.ndim) for d in dims])

    def forward(xp, input: Array, shifts, dims=()):
        if not input.ndim:
            return input.copy()
        return xp.roll(input, shifts if dims else shifts[0], dims or None)

    def vjp_input(F, grad, shifts, dims): return F.roll(grad, tuple([-s for s in shifts]), dims)

    def batch(F, input, shifts, dims):
        if dims or input.ndim == 1:
            return F.roll(input, shifts, tuple([d + 1 for d in dims])) if dims else F.clone(input)
        rows = F.reshape(input, (input.shape[0], math.prod(input.shape[1:])))
        return F.reshape(F.roll(rows, shifts, (1,)), input.shape)

    def samples(make):
        yield (make(2, 3), 1), {}
        yield (make(3, 4), (1, -2), (0, 1)), {}


@composite(method=True)
def rot90(input: Tensor, k: int = 1, dims=(0, 1)) -> Tensor:
    """The tensor turned by `k` quarter turns in the plane of two dimensions, from the first towards the second."""
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.dim() < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.dim()}")
    first, second = one_dim(dims[0], input.dim()), one_dim(dims[1], input.dim())
    if first == second:
        raise RuntimeError(f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}")
    k %= 4
    if k == 0:
        return input.clone()
    if k == 2:
        return flip(input, (first, second))
    return (
        flip(input, (second,)).transpose(first, second) if k == 1 else flip(input.transpose(first, second), (second,))
    )


# --- triangles and diagonals -----------------------------------------------------------------------------------------


def _triangle(name: str, which: str):
    """`tril` or `triu`."""

    class triangle:
        __doc__ = f"The {which} triangle of each matrix, zeros elsewhere; `diagonal` moves the border up."

        def canonical(input, diagonal: int = 0):
            if input.ndim < 2:
                raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
            return diagonal

        def forward(xp, input: Array, diagonal: int = 0): return getattr(xp, name)(input, diagonal)
        def vjp_input(F, grad, diagonal): return getattr(F, name)(grad, diagonal)

        def samples(make):
            yield (make(3, 4), 1), {}
            yield (make(2, 3, 3), -1), {}

    return operator(name=name, method=True, inplace=True, linear=True, batching="leading")(triangle)


tril, triu = _triangle("tril", "lower"), _triangle("triu", "upper")


@operator(method=True, linear=True)
class diag_embed:
    """Matrices whose diagonal is the last dimension of the operand, zeros elsewhere.

    input: [*S, n]. Returns [*S, n + |offset|, n + |offset|], the new dimensions at dim1 and dim2.
    """

    def canonical(input, offset: int = 0, dim1: int = -2, dim2: int = -1):
        return offset, *canonical_diagonal(input.ndim + 1, dim1, dim2)

    def forward(xp, input: Array, offset: int = 0, dim1: int = -2, dim2: int = -1):
        side = input.shape[-1] + abs(offset)
        shape = list(input.shape[:-1])
        for d in sorted((dim1, dim2)):
            shape.insert(d, side)
        whole = xp.zeros(shape, input.dtype)
        strides.diagonal(whole, offset, dim1, dim2)[...] = input
        return whole

    def vjp_input(F, grad, offset, dim1, dim2): return F.diagonal(grad, offset, dim1, dim2)

    def samples(make):
        yield (make(3),), {}
        yield (make(2, 3), 1, 0, 2), {}


@composite(method=True)
def diag(input: Tensor, diagonal: int = 0) -> Tensor:
    """A matrix with the vector on its diagonal, or a copy of the diagonal of a matrix; RuntimeError for other ranks."""
    if input.dim() == 1:
        return diag_embed(input, diagonal)
    if input.dim() == 2:
        return input.diagonal(diagonal).clone()
    raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.dim()}D")


@composite(method=True)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all the elements, in one row, on its diagonal."""
    return diag_embed(input.reshape(-1), offset)


@operator(method=True, holomorphic=True, linear=True)
class trace:
    """The sum of the diagonal of a matrix [n, m]; integers become int64. RuntimeError for other ranks."""

    def forward(xp, input: Array):
        if input.ndim != 2:
            raise RuntimeError(f"trace: expected a matrix, but got tensor with dim {input.ndim}")
        return xp.trace(input, dtype=np.int64 if input.dtype.kind in "iub" else None)

    def vjp_input(F, grad, input_shape): return F.trace_backward(grad, input_shape)
    def batch(F, input): return F.sum_dim(F.diagonal(input, 0, 1, 2), (1,), False)

    def samples(make):
        yield (make(3, 3),), {}
        yield (make(2, 4),), {}


@operator(module=None, linear=True, batching="leading")
class trace_backward:
    """Numbers [*S] on the diagonals of matrices [*S, *input_shape]."""

    def forward(xp, input: Array, input_shape: tuple):
        return xp.eye(*input_shape, dtype=input.dtype) * input[..., None, None]

    def vjp_input(F, grad): return F.trace(grad)
    def samples(make): yield (make(), (2, 3)), {}


def fill_diagonal_(self: Tensor, fill_value, wrap: bool = False) -> Tensor:
    """Write one number on the main diagonal, in place; `wrap` goes on below a tall matrix.

    Raises:
        RuntimeError: fewer than two dimensions, or more than two of different sizes.
    """
    if self.dim() < 2:
        raise RuntimeError(f"dimensions must larger than 1: fill_diagonal_ got {self.dim()}")
    if self.dim() > 2 and len(set(self.shape)) > 1:
        raise RuntimeError("all dimensions of input must be of equal length")
    if check_inplace(self, False) or modes.transforms:
        self.masked_fill_(_diagonal_mask(self._array.shape, wrap), fill_value)
        return self
    np.fill_diagonal(self._array, number_in(fill_value, self._array.dtype), wrap)
    written(self, "fill_diagonal_")
    return self


def _diagonal_mask(shape: tuple, wrapped: bool) -> Tensor:
    mask = np.zeros(shape, np.bool_)
    np.fill_diagonal(mask, True, wrapped)
    return wrap(mask)


Tensor.fill_diagonal_ = fill_diagonal_
