"""Counting values: distinct elements and slices, runs of equal ones, histograms in one and several dimensions."""

from __future__ import annotations

import math
from bisect import bisect_right

import numpy as np

from .batches import at_each_place

__all__ = [
    "bincount", "box_edges", "counts", "density", "distinct", "distinct_slices", "histogram_and_edges",
    "points_in_boxes", "runs",
]  # fmt: skip


def distinct(array: np.ndarray):
    """The distinct elements in ascending order, for each element which it is, and how often each occurs."""
    values, inverse, counts = np.unique(array, return_inverse=True, return_counts=True, equal_nan=False)
    return values, inverse.reshape(array.shape), counts


def distinct_slices(array: np.ndarray, dim: int):
    """The same for slices along a dimension."""
    if not array.size:
        return array, np.empty(0), np.empty(0)
    values, inverse, counts = np.unique(array, return_inverse=True, return_counts=True, axis=dim)
    return values, inverse.reshape(-1), counts


def runs(array: np.ndarray, dim: int | None = None):
    """The elements, or slices along a dimension, that differ from the one before; the run of each, and how long each run is."""
    if dim is None:
        rows, shape = array.reshape(-1, 1), array.shape
    else:
        rows, shape = np.moveaxis(array, dim, 0), (array.shape[dim],)
        rows = rows.reshape(shape[0], -1) if array.size else rows
    if not array.size:
        return array.reshape(-1) if dim is None else array, np.empty(shape), np.empty(0)
    fresh = np.ones(len(rows), bool)
    fresh[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    starts = np.flatnonzero(fresh)
    values = array.reshape(-1)[starts] if dim is None else np.take(array, starts, axis=dim)
    return values, (np.cumsum(fresh) - 1).reshape(shape), np.diff(np.append(starts, len(rows)))


def _histogram(values: np.ndarray, edges: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """How many elements, or how much weight, fall between neighbouring edges; in the type of the values."""
    weights = None if weight is None else weight.reshape(-1)
    return np.histogram(values.reshape(-1), edges, weights=weights)[0].astype(values.dtype)


def _place(edges: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The bin of each value inside the edges; the last bin includes its right edge."""
    if (edges[1:] >= edges[:-1]).all():
        found = np.searchsorted(edges, values, "right")
    else:  # edges out of order mean nothing, but PyTorch answers with what bisection finds
        found = np.array([bisect_right(edges.tolist(), v) for v in values.tolist()], np.int64)
    return np.minimum(found - 1, len(edges) - 2)


def points_in_boxes(points: np.ndarray, edges: list[np.ndarray], weights: np.ndarray | None) -> np.ndarray:
    """How many points (rows), or how much weight, fall into each box of a grid with edges along each dimension."""
    inside = np.ones(len(points), bool)
    for d, each in enumerate(edges):
        inside &= (points[:, d] >= each[0]) & (points[:, d] <= each[-1])
    shape = [len(each) - 1 for each in edges]
    box = np.zeros(int(inside.sum()), np.int64)
    for d, each in enumerate(edges):
        box = box * shape[d] + _place(each, points[inside, d])
    return np.bincount(box, None if weights is None else weights[inside], math.prod(shape)).reshape(shape)


def density(hist: np.ndarray, edges: list[np.ndarray]) -> np.ndarray:
    """A histogram over its sum and the volumes of its boxes."""
    hist = hist / hist.sum()
    for d, each in enumerate(edges):
        hist = hist / np.diff(each).reshape([-1] + [1] * (len(edges) - 1 - d))
    return hist


def counts(array: np.ndarray, bins: int, low: float, high: float) -> np.ndarray:
    """How many elements fall into each of equal intervals."""
    if low == high and array.size:
        low, high = float(array.min()), float(array.max())
    if low == high:
        low, high = low - 1, high + 1
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"range of [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(f"max must be larger than min: got {high} and {low}")
    return np.histogram(array[np.isfinite(array)], bins, (low, high))[0].astype(array.dtype)


def _check_span(name: str, low: float, high: float, dim: int = 0, whose: str = "") -> None:
    """RuntimeError unless a range is finite and in order."""
    if not (np.isfinite(low) and np.isfinite(high)):
        raise RuntimeError(f"{name}: {whose}range [{low}, {high}] is not finite")
    if low > high:
        raise RuntimeError(f"{name}: min should not exceed max, but got min {low} max {high} for dimension {dim}")


def _even_edges(array: np.ndarray, bins: int, span) -> np.ndarray:
    """The edges of a number of bins of one width, from the smallest to the largest element or in a given span."""
    if bins <= 0:
        raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {bins}")
    low, high = span if span is not None else (array.min(), array.max()) if array.size else (0.0, 1.0)
    _check_span("torch.histogram()", low, high)
    if low == high:
        low, high = low - 0.5 if span is None else low - 1, high + 0.5 if span is None else high + 1
    return np.linspace(low, high, bins + 1, dtype=array.dtype)


def box_edges(counts, limits, points: np.ndarray) -> list[np.ndarray]:
    """Evenly spaced edges from lowest to highest value, or between given limits, in each dimension."""
    dimensions = points.shape[1]
    if limits is not None and len(limits) != 2 * dimensions:
        raise RuntimeError(f"torch.histogramdd: for a {dimensions}-dimensional histogram range should have {2 * dimensions} elements, but got "
                           f"{len(limits)}")  # fmt: skip
    found = []
    for d, count in enumerate(counts):
        if limits is not None:
            low, high = limits[2 * d], limits[2 * d + 1]
        else:
            low, high = (points[:, d].min(), points[:, d].max()) if len(points) else (0.0, 1.0)
        _check_span("torch.histogramdd", low, high, d, f"dimension {d}'s ")
        if low == high:
            low, high = low - 0.5, high + 0.5
        found.append(np.linspace(low, high, max(count, 0) + 1, dtype=points.dtype))
    return found


def histogram_and_edges(values: np.ndarray, edges: np.ndarray | None, weight: np.ndarray | None, bins: int, span, dense: bool):
    """How many elements, or how much weight, fall into bins with these edges or, evenly spaced, so many; and the edges."""
    edges = _even_edges(values, bins, span) if edges is None else edges
    found = _histogram(values, edges, weight)
    return density(found, [edges]).astype(values.dtype) if dense else found, np.array(edges)


def bincount(numbers: np.ndarray, weights: np.ndarray | None, minlength: int, lead: int) -> np.ndarray:
    """How often each number occurs, or the sum of its weights; for each place in the first `lead` dimensions by itself."""
    largest = numbers.max(-1, initial=-1)
    if (largest != largest.max(initial=-1)).any() and largest.max() >= minlength:
        raise RuntimeError("vmap: bincount would give each example a result of another size. Pass a minlength that holds them all.")
    kind = np.int64 if weights is None else np.float32 if weights.dtype == np.float32 else np.float64
    if weights is None:
        return at_each_place(lead, lambda row: np.bincount(row, None, minlength).astype(kind), numbers)
    counted = at_each_place(lead, lambda row, weight: np.bincount(row, weight, minlength), numbers, weights.astype(np.float64))
    return counted.astype(kind)
