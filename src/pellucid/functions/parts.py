"""Parts of a tensor, copied, or written out of place: `narrow_copy`, `select_scatter` and its relatives. The views are in `ops/parts.py`."""

from __future__ import annotations

from pellucid.autograd.operator import composite
from pellucid.core.dims import one_dim
from pellucid.core.subscripts import FULL
from pellucid.core.tensor import Tensor, dim_error
from pellucid.ops.batch_places import copied_beside
from pellucid.ops.parts import as_strided, diagonal, narrow, select

__all__ = ["as_strided_scatter", "diagonal_scatter", "narrow_copy", "select_scatter", "slice_scatter"]


@composite(method=True)
def narrow_copy(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`narrow`, copied."""
    if dim >= input._array.ndim:
        raise RuntimeError(f"narrow_copy(): {dim_error(dim, input._array.ndim)}")
    return narrow(input, dim, start, length).clone()


@composite(method=True)
def select_scatter(input: Tensor, src: Tensor, dim: int, index: int) -> Tensor:
    """The tensor with `src` in the place of one slice."""
    return _written(input, src, lambda t: select(t, dim, index))


@composite(method=True)
def slice_scatter(
    input: Tensor, src: Tensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Tensor:
    """The tensor with `src` in the place of a range of slices."""
    dim = one_dim(dim, input._array.ndim)
    return _written(input, src, lambda t: t[(*(FULL,) * dim, slice(start, end, step))])


@composite(method=True)
def diagonal_scatter(input: Tensor, src: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """The tensor with `src` on a diagonal."""
    return _written(input, src, lambda t: diagonal(t, offset, dim1, dim2))


@composite(method=True)
def as_strided_scatter(input: Tensor, src: Tensor, size, stride, storage_offset: int | None = None) -> Tensor:
    """The tensor with `src` in the place of a view of its storage."""
    if not input._array.flags.c_contiguous:
        input = input.contiguous()
    return _written(input, src, lambda t: as_strided(t, size, stride, storage_offset))


def _written(input: Tensor, src: Tensor, take) -> Tensor:
    whole = copied_beside(input, src) if src._wraps else input.clone()
    part = take(whole)
    if part._array.shape != src._array.shape:
        raise RuntimeError(f"expected src to have a size equal to the slice of self: src.shape = {list(src._array.shape)}, slice "
                           f"shape = {list(part._array.shape)}")
    part.copy_(src)
    return whole
