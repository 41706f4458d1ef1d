"""Pooling with windows of uneven sizes: those that cover an image evenly (adaptive), and randomly placed ones (fractional)."""

from __future__ import annotations

import math

import numpy as np

from . import pooling as plain
from . import products

__all__ = ["average", "average_gradient", "gather", "largest", "largest_at_random", "scatter"]


def _edges(whole: int, parts: int) -> tuple[np.ndarray, np.ndarray]:
    """Where each of `parts` windows over `whole` places begins and ends: floor(i w / p) to ceil((i + 1) w / p)."""
    i = np.arange(parts)
    return i * whole // parts, -(-(i + 1) * whole // parts)


def _even(shape: tuple, size: tuple) -> tuple | None:
    """The size of the windows if all are of one size and side by side: then they are those of plain pooling."""
    if all(n and s % n == 0 for s, n in zip(shape, size, strict=True)):
        return tuple([s // n for s, n in zip(shape, size, strict=True)])
    return None


def _averaging(whole: int, parts: int, dtype) -> np.ndarray:
    """The matrix [whole, parts] that averages windows."""
    start, stop = _edges(whole, parts)
    places = np.arange(whole)[:, None]
    inside = (places >= start) & (places < stop)
    return (inside / np.maximum(stop - start, 1)).astype(dtype)


def _along_each(array, matrices) -> np.ndarray:
    """The last dimensions, each multiplied by its matrix; None leaves a dimension as it is."""
    for axis, matrix in zip(range(-len(matrices), 0), matrices, strict=True):
        if matrix is not None:
            array = products.matmul(array.swapaxes(axis, -1), matrix).swapaxes(axis, -1)
    return np.array(array, order="C")


def _starts(sample: float, whole: int, parts: int, size: int) -> np.ndarray:
    """Where windows of `size` begin: steps that are random in their rounding only (Graham, Fractional max-pooling, 2014)."""
    if parts == 1:
        return np.array([whole - size])
    alpha = (whole - size) / (parts - 1)
    i = np.arange(parts)
    starts = ((i + sample) * alpha).astype(np.int64) - int(sample * alpha)
    starts[-1] = whole - size
    return starts


def average(images: np.ndarray, size: tuple) -> np.ndarray:
    """Means of windows that cover the last dimensions evenly, `size` many of them."""
    shape = images.shape[-len(size) :]
    even = _even(shape, size)
    if even and images.dtype.kind == "f":
        return plain.average(images, size, even, even, (0,) * len(size), True, None)
    return _along_each(images, [None if n == s else _averaging(s, n, images.dtype) for s, n in zip(shape, size, strict=True)])


def average_gradient(grad: np.ndarray, shape: tuple, size: tuple) -> np.ndarray:
    """The transpose of `average`: each gradient spread evenly over its window of an image of that spatial shape."""
    even = _even(shape, size)
    if even and grad.dtype.kind == "f":
        return plain.average_gradient(grad, shape, even, even, (0,) * len(size), True, None)
    return _along_each(grad, [None if n == s else _averaging(s, n, grad.dtype).T for s, n in zip(shape, size, strict=True)])


def gather(images: np.ndarray, indices: np.ndarray, count: int) -> np.ndarray:
    """Of each image (the last `count` dimensions) the elements with the numbers `indices`, which count it flattened."""
    flat = images.reshape(*images.shape[:-count], math.prod(images.shape[-count:]))
    numbers = indices.reshape(*indices.shape[:-count], math.prod(indices.shape[-count:]))
    return np.take_along_axis(flat, numbers, -1).reshape(indices.shape)


def scatter(grad: np.ndarray, indices: np.ndarray, size: tuple, count: int) -> np.ndarray:
    """The transpose of `gather`: gradients added up at their numbers in images of that size."""
    lead, places = indices.shape[:-count], math.prod(size)
    images = math.prod(lead)
    numbers = indices.reshape(images, math.prod(indices.shape[-count:])) + np.arange(images)[:, None] * places
    whole = np.zeros(images * places, grad.dtype)
    np.add.at(whole, numbers.reshape(-1), grad.reshape(-1))
    return whole.reshape(*lead, *size)


def largest(images: np.ndarray, size: tuple) -> np.ndarray:
    """Where in its image the largest element of each window of `average` is, counted through it as one row."""
    lead, shape = images.shape[: -len(size)], images.shape[-len(size) :]
    even = _even(shape, size)
    if even and images.size:
        windows = (size, even, even, (0,) * len(size), (1,) * len(size))
        return plain.maxima_indices(images, plain.maxima(images, *windows), *windows)
    edges = [_edges(whole, parts) for whole, parts in zip(shape, size, strict=True)]
    numbers = np.arange(math.prod(shape)).reshape(shape)
    chosen = np.empty(lead + size, np.int64)
    for place in np.ndindex(*size):
        box = tuple(slice(int(e[0][i]), int(e[1][i])) for e, i in zip(edges, place, strict=True))
        seen = images[(..., *box)].reshape(*lead, -1)
        chosen[(..., *place)] = numbers[box].reshape(-1)[seen.argmax(axis=-1)]
    return chosen


def largest_at_random(images: np.ndarray, samples: np.ndarray, size: tuple, parts: tuple) -> np.ndarray:
    """The same for `parts` windows of `size`, placed by samples [*L, number of sizes] of images [*L, *S]."""
    count, shape = len(size), images.shape[-len(size) :]
    chosen = np.empty((*images.shape[:-count], *parts), np.int64)
    numbers = np.arange(math.prod(shape)).reshape(shape)
    for image in np.ndindex(*images.shape[:-count]):
        # the samples count dimensions from the last one
        starts = [_starts(float(samples[(*image, count - 1 - d)]), shape[d], parts[d], size[d]) for d in range(count)]
        for place in np.ndindex(*parts):
            box = tuple(slice(int(s[i]), int(s[i]) + k) for s, i, k in zip(starts, place, size, strict=True))
            chosen[(*image, *place)] = numbers[box].reshape(-1)[images[(*image, *box)].argmax()]
    return chosen
