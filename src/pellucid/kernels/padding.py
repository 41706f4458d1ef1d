"""Padding of the last dimensions with a number, or with the array's own elements, and the transpose of the latter.

A padding lists (before, after) of the last dimension, then of the one before it, and so on; negative numbers cut off.
"""

from __future__ import annotations

import numpy as np

__all__ = ["folded", "pairs", "repeated", "surrounded"]


def pairs(ndim: int, padding) -> list[tuple[int, int, int]]:
    """(dimension, before, after) of the dimensions that a padding names, the last one first."""
    return [(ndim - 1 - i, padding[2 * i], padding[2 * i + 1]) for i in range(len(padding) // 2)]


def surrounded(array: np.ndarray, padding, shape, value: np.ndarray) -> np.ndarray:
    """The array with a number put around it: of that shape."""
    made = np.full(shape, value, array.dtype)
    source, target = [slice(None)] * array.ndim, [slice(None)] * array.ndim
    for dim, before, after in pairs(array.ndim, padding):
        source[dim] = slice(max(-before, 0), max(array.shape[dim] - max(-after, 0), 0))
        target[dim] = slice(max(before, 0), max(made.shape[dim] - max(after, 0), 0))
    made[tuple(target)] = array[tuple(source)]
    return made


def _source(mode: str, size: int, before: int, after: int) -> np.ndarray:
    """For each place along a padded dimension, the place in the input that it repeats."""
    place = np.arange(-before, size + after)
    if mode == "replicate":
        return place.clip(0, size - 1)
    if mode == "circular":
        kept = max(size + min(before, 0) + min(after, 0), 1)  # what is cut off does not come back at the other end
        return max(-before, 0) + (place + min(before, 0)) % kept
    return (size - 1) - np.abs((size - 1) - np.abs(place))


def repeated(array: np.ndarray, padding, mode: str) -> np.ndarray:
    """The array with its own elements put around it: mirrored ("reflect"), the edge ("replicate"), the other end ("circular")."""
    made = array
    for dim, before, after in pairs(array.ndim, padding):
        if before or after:
            made = np.take(made, _source(mode, array.shape[dim], before, after), axis=dim)
    return made if made is not array else array.copy()


def _folded(grad: np.ndarray, dim: int, size: int, before: int, after: int, mode: str) -> np.ndarray:
    """The gradient of one padded dimension: each place adds to the one that it repeats."""
    source = _source(mode, size, before, after)
    shape = list(grad.shape)
    shape[dim] = size
    made = np.zeros(shape, grad.dtype)
    inner, outer = np.moveaxis(made, dim, 0), np.moveaxis(grad, dim, 0)
    first = min(max(before, 0), len(source))
    last = max(min(before + size, len(source)), first)
    inner[first - before : last - before] = outer[first:last]  # the input itself, once
    for place in (*range(first), *range(last, len(source))):
        inner[source[place]] += outer[place]
    return made


def folded(grad: np.ndarray, shape, padding, mode: str) -> np.ndarray:
    """The transpose of `repeated`: what was repeated is added up, in the array's shape."""
    made = grad
    for dim, before, after in pairs(grad.ndim, padding):
        if before or after:
            made = _folded(made, dim, shape[dim], before, after, mode)
    return made if made is not grad else grad.copy()
