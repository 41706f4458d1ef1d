"""Adding many values into few places: the derivative of every selection whose indices may repeat."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["add_rows", "add_to", "wrapped"]


def wrapped(index: np.ndarray, size: int) -> np.ndarray:
    """Indices with negative ones counted from the end."""
    if index.size and index.min() < 0:
        return np.where(index < 0, index + size, index)
    return index


def add_rows(size: int, index: np.ndarray, rows: np.ndarray, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Zeros [size, *shape] with `rows[k]` added to row `index[k]`, for every k.

    index: [n], non-negative; rows: [n, prod(shape)].
    """
    whole = np.zeros((size, math.prod(shape)), dtype)
    if index.size and whole.size:
        _add(whole, index, rows)
    return whole.reshape(size, *shape)


def _add(whole: np.ndarray, index: np.ndarray, rows: np.ndarray) -> None:
    width = whole.shape[1]
    if width == 1 and whole.dtype.kind == "f":
        whole[:, 0] = np.bincount(index, rows[:, 0], whole.shape[0])  # sums in double precision
    elif index.size == 1:
        whole[index[0]] = rows[0]
    else:  # element by element: NumPy adds at flat indices much faster than at rows, and than sorting takes
        places = (index[:, None] * width + np.arange(width)).reshape(-1)
        np.add.at(whole.reshape(-1), places, rows.reshape(-1))


def add_to(whole: np.ndarray, flat: np.ndarray, values: np.ndarray) -> None:
    """Add values to the elements of a contiguous array that have the given flat indices, which may repeat.

    flat, values: [n].
    """
    if whole.dtype.kind == "f" and whole.itemsize >= 4 and flat.size * 8 > whole.size:
        total = np.bincount(flat, values, whole.size).reshape(whole.shape)
        whole += total.astype(whole.dtype)
    else:
        np.add.at(whole.reshape(-1), flat, values)
