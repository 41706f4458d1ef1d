"""Copies of a tensor in another order or shape, by the operators of `ops/shaping.py`: tiles, turns by quarters, matrices of diagonals."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.autograd.views import check_inplace, written
from pellucid.core.checks import refuse_dynamic
from pellucid.core.dims import one_dim, sizes_of
from pellucid.core.modes import modes
from pellucid.core.tensor import Tensor, wrap
from pellucid.core.values import number_in
from pellucid.ops.shaping import diag_embed, flip, repeat_kernel, repeated_places

__all__ = ["diag", "diagflat", "fill_diagonal_", "fliplr", "flipud", "repeat_interleave", "rot90", "tile"]


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


def _counts(repeats: Tensor, output_size: int | None = None) -> np.ndarray:
    if output_size is None:
        refuse_dynamic("repeat_interleave", repeats)
    counts = repeats._array
    if counts.dtype not in (np.int64, np.int32):
        raise RuntimeError(f"repeats has to be Long or Int tensor, got {repeats.dtype}")
    if counts.ndim > 1:
        raise RuntimeError("repeats must be 0-dim or 1-dim tensor")
    return counts


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
