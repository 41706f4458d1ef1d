"""Views of a part: one slice, a range, a diagonal, sliding windows, any strides.

Brackets are in `indexing.py`, several parts at once in `splitting.py`; parts copied, or written out of place, in
`functions/parts.py`.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, composite, operator
from pellucid.core import geometry
from pellucid.core.dims import sizes_of
from pellucid.core.geometry import strided, two_dims
from pellucid.core.subscripts import FULL, to_end
from pellucid.core.tensor import Tensor
from pellucid.kernels import strides as kernel

__all__ = ["as_strided", "diagonal", "narrow", "select", "unfold"]


# --- one slice, a range ----------------------------------------------------------------------------------------------


@operator(view=True, method=True)
class select:
    """The slice of one index along one dimension, which disappears: input[..., index, ...].

    input: [*S] with S[dim] > index. Returns [*S without dim], sharing memory.
    Raises: IndexError for an index outside the dimension, or on a 0-d tensor.
    """

    canonical = geometry.one_index
    def forward(xp, input: Array, dim: int, index: int): return input[(*(FULL,) * dim, index, ...)]

    def vjp_input(F, grad, input_shape, dim, index):
        return F.basic_backward(grad, input_shape, (*(slice(None),) * dim, index, ...))

    def samples(make):
        yield (make(3, 4), 0, 1), {}
        yield (make(3, 4), -1, -2), {}
        yield (make(3), 0, 2), {}


@operator(view=True, module=None, name="narrow", node="SliceBackward0")
class narrow_:
    """The raw form of `narrow`."""

    canonical = geometry.one_range

    def forward(xp, input: Array, dim: int, start: int, length: int):
        return input[(*(FULL,) * dim, slice(start, start + length))]

    def vjp_input(F, grad, input_shape, dim, start, length):
        return F.basic_backward(grad, input_shape, (*(slice(None),) * dim, slice(start, start + length)))

    def described(input_shape, dim, start, length):
        return {"self_sym_sizes": input_shape, "dim": dim, **to_end(start, start + length, 1)}

    def samples(make): yield (make(3, 4), 1, 1, 2), {}


@composite(method=True)
def narrow(input: Tensor, dim: int, start, length: int) -> Tensor:
    """A range of `length` indices along one dimension, from `start` on; a view.

    RuntimeError for a range that leaves the dimension, IndexError for a start outside it.
    """
    if isinstance(start, Tensor):
        if start._array.ndim or start._array.dtype.kind not in "iu":
            raise RuntimeError(f"start must be an 0-dim integral Tensor, got shape {list(start.shape)}, {start.dtype}")
        start = start.item()
    return narrow_(input, dim, start, length)


# --- diagonals -------------------------------------------------------------------------------------------------------


@operator(view=True, method=True)
class diagonal:
    """The diagonal of two dimensions, as a last dimension; offset > 0 lies above the main one, < 0 below.

    input: [*S], at least two dimensions. Returns a view. RuntimeError for identical dimensions.
    """

    def canonical(input, offset: int = 0, dim1: int = 0, dim2: int = 1):
        return offset, *two_dims(input.ndim, dim1, dim2)

    def forward(xp, input: Array, offset: int = 0, dim1: int = 0, dim2: int = 1):
        return kernel.diagonal(input, offset, dim1, dim2)

    def vjp_input(F, grad, input_shape, offset, dim1, dim2):
        return F.diagonal_backward(grad, input_shape, offset, dim1, dim2)

    def samples(make):
        yield (make(3, 4),), {}
        yield (make(2, 3, 4), 1, 0, -1), {}


@operator(module=None, linear=True)
class diagonal_backward:
    """Zeros of `input_shape` with the operand on a diagonal."""

    def forward(xp, input: Array, input_shape: tuple, offset: int, dim1: int, dim2: int):
        return kernel.on_diagonal(input, input_shape, offset, dim1, dim2)

    def vjp_input(F, grad, offset, dim1, dim2): return F.diagonal(grad, offset, dim1, dim2)
    def samples(make): yield (make(3), (3, 4), 0, 0, 1), {}


# --- windows ---------------------------------------------------------------------------------------------------------


@operator(view=True, method=True, module=None)
class unfold:
    """Sliding windows of `size` indices along one dimension, `step` apart, as a new last dimension. A view.

    input: [*S]. Returns [*S with (S[dim] - size) // step + 1 at dim, size].
    Raises: RuntimeError for windows larger than the dimension or a step that is not positive.
    """

    canonical = geometry.window

    def forward(xp, input: Array, dimension: int, size: int, step: int):
        return kernel.windows(input, dimension, size, step)

    def vjp_input(F, grad, input_shape, dimension, size, step):
        return F.unfold_backward(grad, input_shape, dimension, size, step)

    def samples(make):
        yield (make(2, 5), 1, 3, 1), {}
        yield (make(7), 0, 2, 3), {}


@operator(module=None, linear=True)
class unfold_backward:
    """Zeros of `input_shape` to which the windows are added in their places."""

    def forward(xp, input: Array, input_shape: tuple, dimension: int, size: int, step: int):
        return kernel.added_windows(input, input_shape, dimension, step)

    def vjp_input(F, grad, dimension, size, step): return F.unfold(grad, dimension, size, step)
    def samples(make): yield (make(2, 3, 3), (2, 5), 1, 3, 1), {}


# --- any strides -----------------------------------------------------------------------------------------------------


@operator(view=True, module=None, name="as_strided", node="AsStridedBackward0")
class as_strided_:
    """The raw form of `as_strided`: `start` is relative to the input's first element, `layout` are the input's strides."""

    def forward(xp, input: Array, size: tuple, stride: tuple, start: int, layout: tuple):
        return strided(input, size, stride, start)

    def vjp_input(F, grad, input_shape, size, stride, start, layout):
        return F.restride(grad, (size, stride, start), (input_shape, layout, 0))

    def batch(F, size_of_batch, input, size, stride, start, layout):
        step = kernel.strides_of(input._array)[0]
        return F.as_strided(input, (size_of_batch, *size), (step, *stride), start, (step, *layout))


@operator(module=None, linear=True)
class restride:
    """What lies in memory in the geometry `source` (zero elsewhere, sums where elements share memory), read in `target`.

    The derivative of `as_strided`: elements of the target (or, in its transpose, of the source) that share memory share the
    value equally.
    """

    def forward(xp, input: Array, source: tuple, target: tuple, by_source: bool = False):
        return kernel.laid_out(input, source, target, by_source)

    def vjp_input(F, grad, source, target, by_source): return F.restride(grad, target, source, not by_source)

    def batch(F, size_of_batch, input, source, target, by_source):
        places = np.concatenate([kernel.places(source).reshape(-1), kernel.places(target).reshape(-1), [0]])
        step = int(np.ptp(places)) + 1  # examples stay apart
        source, target = (((size_of_batch, *size), (step, *stride), start) for size, stride, start in (source, target))
        return F.restride(input, source, target, by_source)

    def samples(make):
        yield (make(2, 2), ((2, 2), (1, 1), 0), ((3,), (1,), 0)), {}
        yield (make(3, 2), ((3, 2), (2, 1), -1), ((2, 2), (1, 1), 1)), {}


@composite(method=True)
def as_strided(input: Tensor, size, stride, storage_offset: int | None = None) -> Tensor:
    """A view of the tensor's storage with any sizes and strides (in elements).

    RuntimeError for a geometry that leaves the storage.
    """
    size, stride = sizes_of((size,), "as_strided"), sizes_of((stride,), "as_strided")
    if len(size) != len(stride):
        raise RuntimeError(f"mismatch in length of strides and shape: got size {list(size)} and stride {list(stride)}")
    if any(s < 0 for s in stride):
        raise RuntimeError(f"as_strided: Negative strides are not supported at the moment, got strides: {list(stride)}")
    start = 0 if storage_offset is None else storage_offset - input.storage_offset()
    return as_strided_(input, size, stride, start, kernel.strides_of(input._array))
