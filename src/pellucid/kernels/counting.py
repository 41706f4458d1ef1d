"""Counting values: distinct elements and slices, runs of equal ones, histograms in one and several dimensions."""

from __future__ import annotations

import math
from bisect import bisect_right

import numpy as np

__all__ = ["density", "distinct", "distinct_slices", "histogram", "points_in_boxes", "runs"]


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


def histogram(values: np.ndarray, edges: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
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
