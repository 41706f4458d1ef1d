"""Where elements equal the largest or smallest of their rows: what a gradient is divided among."""

from __future__ import annotations

import numpy as np

from pellucid.kernels.reductions import reduced_shape

__all__ = ["means", "shared"]


def _ties(point: np.ndarray, value: np.ndarray, dim: tuple, keepdim: bool, nans: bool):
    """Where elements equal the result of a reduction (with `nans`, NaN equals NaN), and how many do."""
    if not keepdim:
        value = value.reshape(reduced_shape(point.shape, dim))
    same = point == value
    if nans and point.dtype.kind == "f":
        same |= np.isnan(point) & np.isnan(value)
    return same, np.add.reduce(same, axis=dim, keepdims=True)


def shared(input: np.ndarray, point: np.ndarray, value: np.ndarray, dim: tuple, keepdim: bool, nans: bool) -> np.ndarray:
    """A gradient of a reduction, repeated over `dim`, divided among the elements of `point` that equal the result `value`."""
    same, count = _ties(point, value, dim, keepdim, nans)
    spread = input if keepdim else input.reshape(reduced_shape(point.shape, dim))
    return (np.where(same, spread, 0) / count).astype(input.dtype)


def means(input: np.ndarray, point: np.ndarray, value: np.ndarray, dim: tuple, keepdim: bool, nans: bool) -> np.ndarray:
    """The mean over the elements of `point` that equal the result `value`: the transpose of `shared`."""
    same, count = _ties(point, value, dim, keepdim, nans)
    return np.add.reduce(np.where(same, input, 0) / count, axis=dim, keepdims=keepdim).astype(input.dtype)
