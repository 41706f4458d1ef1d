"""One tensor as several views along a dimension: `split`, `chunk`, `unbind` and their relatives. The operators are in `ops/splitting.py`."""

from __future__ import annotations

import itertools

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.core.dims import one_dim
from pellucid.core.errors import type_name
from pellucid.core.subscripts import FULL
from pellucid.core.tensor import Tensor, dim_error
from pellucid.functions.indexing import take_basic
from pellucid.ops.splitting import split_, split_with_sizes_, unbind_, unsafe_split_, unsafe_split_with_sizes_

__all__ = ["chunk", "dsplit", "hsplit", "split", "split_with_sizes", "tensor_split", "unbind", "unsafe_chunk",
           "unsafe_split", "unsafe_split_with_sizes", "vsplit"]  # fmt: skip


def _ranges(sizes, dim: int) -> tuple:
    """The basic index of each piece."""
    keys, start = [], 0
    for length in sizes:
        keys.append((*(FULL,) * dim, slice(start, start + length)))
        start += length
    return tuple(keys)


def _even(size: int, split_size: int) -> tuple[int, ...]:
    """The lengths of the pieces of at most `split_size`, which cover `size`; a last one may be shorter."""
    if split_size < 0:
        raise RuntimeError(f"split expects split_size be non-negative, but got split_size={split_size}")
    if split_size == 0:
        if size:
            raise RuntimeError(f"split_size can only be 0 if dimension size is 0, but got dimension size of {size}")
        return (0,)
    whole, rest = divmod(size, split_size)
    return (split_size,) * whole + ((rest,) if rest or not whole else ())


def _dimension(input: Tensor, dim: int, name: str) -> tuple[int, int]:
    array = input._array
    if not array.ndim:
        raise RuntimeError(f"{name} expects at least a 1-dimensional tensor, but got a 0-d one")
    dim = one_dim(dim, array.ndim)
    return dim, array.shape[dim]


def _sizes(sizes, size: int, dim: int) -> tuple[int, ...]:
    sizes = tuple([int(s) for s in sizes])
    if any(s < 0 for s in sizes):
        raise RuntimeError(f"split_with_sizes expects split_sizes have only non-negative entries, but got split_sizes={list(sizes)}")
    if sum(sizes) != size:
        raise RuntimeError(f"split_with_sizes expects split_sizes to sum exactly to {size} (input tensor's size at dimension "
                           f"{dim}), but got split_sizes={list(sizes)}")
    return sizes


@composite(method=True)
def split(tensor: Tensor, split_size_or_sections=None, dim: int = 0, *, split_size=None) -> tuple[Tensor, ...]:
    """Pieces along one dimension: of one length (the last may be shorter), or of given lengths. Views.

    RuntimeError for lengths that do not add up.
    """
    wanted = split_size if split_size_or_sections is None else split_size_or_sections
    if isinstance(wanted, (tuple, list)):
        return split_with_sizes(tensor, wanted, dim)
    dim, size = _dimension(tensor, dim, "split")
    return split_(tensor, _ranges(_even(size, int(wanted)), dim))


@composite(method=True)
def unsafe_split(tensor: Tensor, split_size: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`split` into copies, each of which may be written to."""
    dim, size = _dimension(tensor, dim, "unsafe_split")
    return unsafe_split_(tensor, _ranges(_even(size, split_size), dim))


def _pair(prefix: str, evenly, by_sizes, what: str):
    """`split_with_sizes` and `chunk`, into views or into copies."""

    def with_sizes(input: Tensor, split_sizes, dim: int = 0) -> tuple[Tensor, ...]:
        dim, size = _dimension(input, dim, f"{prefix}split_with_sizes")
        return by_sizes(input, _ranges(_sizes(split_sizes, size, dim), dim))

    def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
        dim, size = _dimension(input, dim, f"{prefix}chunk")
        if chunks <= 0:
            raise RuntimeError(f"chunk expects `chunks` to be greater than 0, got: {chunks}")
        if not size:
            return by_sizes(input, _ranges((0,) * chunks, dim))
        return evenly(input, _ranges(_even(size, -(-size // chunks)), dim))

    with_sizes.__name__, chunk.__name__ = f"{prefix}split_with_sizes", f"{prefix}chunk"
    with_sizes.__doc__ = f"Pieces of given lengths along one dimension. {what}; RuntimeError for lengths that do not add up."
    chunk.__doc__ = f"At most `chunks` pieces of equal length along one dimension (the last may be shorter). {what}."
    return composite(method=True)(with_sizes), composite(method=True)(chunk)


split_with_sizes, chunk = _pair("", split_, split_with_sizes_, "Views")
unsafe_split_with_sizes, unsafe_chunk = _pair(
    "unsafe_", unsafe_split_, unsafe_split_with_sizes_, "Copies, each of which may be written to"
)


@composite(method=True)
def unbind(input: Tensor, dim: int = 0) -> tuple[Tensor, ...]:
    """All slices along one dimension, without it. Views."""
    array = input._array
    if not array.ndim:
        raise IndexError(dim_error(dim, 0))
    dim = one_dim(dim, array.ndim)
    if not array.shape[dim]:
        return ()
    return unbind_(input, tuple([(*(FULL,) * dim, k, ...) for k in range(array.shape[dim])]))


# --- splits into independent slices ----------------------------------------------------------------------------------


def _bounds(given, size: int, name: str) -> list[tuple[int, int]]:
    """Start and end of each piece: of a number of pieces, or between given indices."""
    if isinstance(given, Tensor):
        if given._array.dtype != np.int64:
            raise RuntimeError(f"{name} expected tensor_indices_or_sections to have dtype of long, but got {type_name(given._array.dtype)}")
        if given._array.ndim > 1:
            raise RuntimeError(f"{name} expected tensor_indices_or_sections to be a zero-dimensional or one-dimensional tensor, "
                               f"but got a tensor with {given._array.ndim} dims")
        given = given.tolist()
    if isinstance(given, int):
        if given <= 0:
            raise RuntimeError(f"number of sections must be larger than 0, got {given}")
        base, extra = divmod(size, given)
        ends = [base * k + min(k, extra) for k in range(given + 1)]
        return list(itertools.pairwise(ends))
    ends = [0, *given, size]
    return list(itertools.pairwise(ends))


@composite(method=True)
def tensor_split(
    input: Tensor, indices_or_sections=None, dim: int = 0, *, sections=None, indices=None
) -> tuple[Tensor, ...]:
    """Pieces along one dimension: as even as possible, or split before given indices. Views."""
    given = next(g for g in (indices_or_sections, sections, indices) if g is not None)
    dim, size = _dimension(input, dim, "tensor_split")
    return tuple([_slice(input, dim, start, end) for start, end in _bounds(given, size, "tensor_split")])


def _slice(input: Tensor, dim: int, start: int, end: int) -> Tensor:
    return take_basic(input, (*(FULL,) * dim, slice(start, end), ...))


def _along(name: str, input: Tensor, given, dim: int, least: int):
    """hsplit, vsplit, dsplit: `tensor_split` along a fixed dimension, into even pieces only."""
    ndim = input._array.ndim
    if ndim < least:
        raise RuntimeError(f"torch.{name} requires a tensor with at least {least} dimension, but got a tensor with {ndim} dimensions!")
    size = input._array.shape[dim]
    if isinstance(given, int) and (given <= 0 or size % given):
        raise RuntimeError(f"torch.{name} attempted to split along dimension {dim}, but the size of the dimension {size} is not "
                           f"divisible by the split_size {given}!")
    return tensor_split(input, given, dim)


def _split_along(name: str, dim: int, least: int, which: str):
    """One of the three: along `dim`, of tensors of at least that many dimensions."""

    def split_along(input: Tensor, indices_or_sections=None, *, sections=None, indices=None) -> tuple[Tensor, ...]:
        given = next(g for g in (indices_or_sections, sections, indices) if g is not None)
        return _along(name, input, given, 0 if input._array.ndim == 1 else dim, least)

    split_along.__name__ = split_along.__qualname__ = name
    split_along.__doc__ = f"Pieces along the {which}; views, as by `tensor_split`."
    return composite(method=True)(split_along)


hsplit = _split_along("hsplit", 1, 1, "second dimension, of a vector along its only one")
vsplit = _split_along("vsplit", 0, 2, "first dimension")
dsplit = _split_along("dsplit", 2, 3, "third dimension")
