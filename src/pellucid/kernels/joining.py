"""Several arrays as one: side by side, stacked, along a diagonal."""

from __future__ import annotations

import numpy as np

__all__ = ["block_places", "blocks", "concatenated", "stacked"]


def block_places(shapes) -> list[tuple]:
    """Where blocks of these shapes [..., rows, columns] lie along the diagonal."""
    places, row, column = [], 0, 0
    for *_, height, width in shapes:
        places.append((..., slice(row, row + height), slice(column, column + width)))
        row, column = row + height, column + width
    return places


def concatenated(arrays: list[np.ndarray], dim: int) -> np.ndarray:
    """Arrays side by side along a dimension; those of fewer dimensions, which are empty, are left out."""
    ndim = max([a.ndim for a in arrays])
    fitting = [a for a in arrays if a.ndim == ndim]
    if len(fitting) == 1:
        return fitting[0].copy()
    shape = list(fitting[0].shape)
    shape[dim] = sum([a.shape[dim] for a in fitting])
    return np.concatenate(fitting, dim, out=np.empty(shape, fitting[0].dtype))  # NumPy would choose the order


def stacked(arrays: list[np.ndarray], dim: int) -> np.ndarray:
    """Arrays of one shape as the slices of one along a new dimension."""
    place = (slice(None),) * dim + (None,)
    shape = (*arrays[0].shape[:dim], len(arrays), *arrays[0].shape[dim:])
    return np.concatenate([a[place] for a in arrays], dim, out=np.empty(shape, arrays[0].dtype))


def blocks(arrays: list[np.ndarray]) -> np.ndarray:
    """Zeros with matrices [*S, rows, columns] along the diagonal."""
    shapes = [a.shape for a in arrays]
    whole = np.zeros((*shapes[0][:-2], *(sum([s[d] for s in shapes]) for d in (-2, -1))), arrays[0].dtype)
    for place, block in zip(block_places(shapes), arrays, strict=True):
        whole[place] = block
    return whole
