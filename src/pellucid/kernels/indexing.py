"""Arrays indexed by keys and by arrays of indices: what is chosen lies in fewer dimensions, and is added up where it was taken.

What NumPy itself does, with errors in PyTorch's words, is in `core/index_arrays.py`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pellucid.kernels.accumulation import add_rows, wrapped

__all__ = ["added_at", "added_by", "assembled", "merged"]


def merged(shape: tuple, dim: int, span: int) -> tuple:
    """A shape with `span` dimensions from `dim` on as one."""
    return (*shape[:dim], math.prod(shape[dim : dim + span]), *shape[dim + span :])


def _rows_of(grad: np.ndarray, indices, shape: tuple):
    """A gradient of `index` as rows, the flat index of each row, and the order in which the dimensions were laid."""
    dims = [d for d, i in enumerate(indices) if i is not None]
    rest = [d for d in range(len(shape)) if d not in dims]
    arrays = np.broadcast_arrays(*[indices[d] for d in dims])
    flat = np.zeros(arrays[0].shape, np.int64)
    for d, i in zip(dims, arrays, strict=True):
        flat = flat * shape[d] + wrapped(i, shape[d])
    ndim, together = flat.ndim, dims == list(range(dims[0], dims[-1] + 1))
    if together and dims[0]:
        grad = np.moveaxis(grad, tuple(range(dims[0], dims[0] + ndim)), tuple(range(ndim)))
    return grad, flat.reshape(-1), dims, rest


def added_at(array: np.ndarray, index: np.ndarray, shape: tuple, dim: int, span: int) -> np.ndarray:
    """Zeros of a shape with slices added at indices along one dimension, or along `span` ones taken as one.

    array: [*A, *I, *B]; index: [*I] in [-n, n); shape: [*A, n, *B], or with the `span` sizes whose product n is.
    """
    whole_shape = merged(shape, dim, span)
    size = whole_shape[dim]
    rows = np.moveaxis(array.reshape(*whole_shape[:dim], index.size, *whole_shape[dim + 1 :]), dim, 0) if dim else array
    flat = wrapped(index, size).reshape(-1)
    rows = rows.reshape(index.size, -1) if index.size else rows.reshape(0, 0)
    whole = add_rows(size, flat, rows, array.dtype, whole_shape[:dim] + whole_shape[dim + 1 :])
    whole = np.moveaxis(whole, 0, dim) if dim else whole
    return np.ascontiguousarray(whole).reshape(shape)


def added_by(array: np.ndarray, indices, shape: tuple) -> np.ndarray:
    """Zeros of a shape with an array added where indices of several dimensions (None for a whole one) take it from."""
    rows, flat, dims, rest = _rows_of(array, indices, shape)
    count, outer = 1, tuple([shape[d] for d in rest])
    for d in dims:
        count *= shape[d]
    whole = add_rows(
        count, flat, rows.reshape(flat.size, -1) if flat.size else rows.reshape(0, 0), array.dtype, outer
    )
    whole = whole.reshape(tuple([shape[d] for d in dims]) + outer)
    order = [*dims, *rest]
    return np.ascontiguousarray(whole.transpose([order.index(d) for d in range(len(order))]))


def assembled(pieces: list[np.ndarray], shape: tuple, keys: tuple) -> np.ndarray:
    """Zeros of a shape with each piece in the place of its key; places do not overlap.

    Pieces that lie in one array as they would in the result are not copied: that array is the result.
    """
    full = sum(piece.size for piece in pieces) == math.prod(shape)
    whole = _around(pieces, shape, keys) if full else None
    if whole is not None:
        return whole
    whole = (np.empty if full else np.zeros)(shape, pieces[0].dtype)
    for piece, key in zip(pieces, keys, strict=True):
        whole[key] = piece
    return whole


def _around(pieces: list[np.ndarray], shape: tuple, keys: tuple) -> np.ndarray | None:
    """The array that all pieces are views of, if each lies there where its key takes it from; it may lie transposed."""
    base: Any = pieces[0].base
    if base.__class__ is not np.ndarray or base.nbytes != math.prod(shape) * pieces[0].itemsize or not base.flags.c_contiguous:
        return None
    strides = pieces[0].strides if pieces[0].ndim == len(shape) else None
    if strides and (min(strides) < 0 or pieces[0].itemsize + sum((n - 1) * s for n, s in zip(shape, strides, strict=True)) > base.nbytes):
        return None
    whole = np.ndarray(shape, pieces[0].dtype, base, 0, strides)
    for piece, key in zip(pieces, keys, strict=True):
        if piece.base is not base or piece.dtype != whole.dtype or _place_of(piece) != _place_of(whole[key]):
            return None
    return whole


def _place_of(array: np.ndarray) -> tuple:
    return array.__array_interface__["data"][0], array.shape, array.strides
