"""Copies of a tensor in another order or shape: repeating, flipping, rolling, triangles, diagonals.

Results never share memory with their operand; the shape operators that do are in `views.py` and `parts.py`. What is composed
of these (`tile`, `rot90`, `diag`, ...) is in `functions/shaping.py`.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import Array, Index, operator
from pellucid.core import geometry
from pellucid.core.dims import canonical_dims, sizes_of
from pellucid.core.geometry import two_dims
from pellucid.core.tensor import Tensor
from pellucid.kernels import places, strides
from pellucid.ops.batch_places import in_front

__all__ = ["diag_embed", "flip", "repeat", "roll", "trace", "tril", "triu"]


# --- repeating -------------------------------------------------------------------------------------------------------


@operator(module=None, name="repeat", linear=True)
class repeat_kernel:
    """The tensor laid side by side `sizes` times along each dimension; further sizes make new dimensions in front.

    input: [*S]. Returns [sizes[i] * S[i]].
    """

    canonical = geometry.repeats

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


@operator(module=None, batching="leading")
class repeated_places:
    """Which element stands at each of `length` places where each comes as often as it counts. [*S, n] -> [*S, length]."""

    def forward(xp, counts: Index, length: int):
        rows = places.repeats_of(counts)
        for row in rows:
            if row.size != length:
                raise RuntimeError(f"Allocated size does not match required size: output_size is {length}, needed {row.size}")
        return xp.array(rows, xp.int64).reshape(*counts.shape[:-1], length)


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


@operator(method=True, linear=True)
class roll:
    """The elements moved along `dims` by `shifts` places, those that fall off the end coming in at the front.

    Without dims, the elements in one row are moved.
    """

    canonical = geometry.shifts_along

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
        return offset, *two_dims(input.ndim + 1, dim1, dim2)

    def forward(xp, input: Array, offset: int = 0, dim1: int = -2, dim2: int = -1):
        side = input.shape[-1] + abs(offset)
        shape = list(input.shape[:-1])
        for d in sorted((dim1, dim2)):
            shape.insert(d, side)
        return strides.on_diagonal(input, shape, offset, dim1, dim2)

    def vjp_input(F, grad, offset, dim1, dim2): return F.diagonal(grad, offset, dim1, dim2)

    def samples(make):
        yield (make(3),), {}
        yield (make(2, 3), 1, 0, 2), {}


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
