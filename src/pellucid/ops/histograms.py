"""Histograms of points in several dimensions. One-dimensional ones are in `counting.py`."""

from __future__ import annotations

import math
from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.core.quiet import quiet
from pellucid.core.tensor import Tensor, wrap
from pellucid.ops.checks import c_name, scalar_name

__all__ = ["histogramdd"]

NAME = "torch.histogramdd"


class HistogramddResult(NamedTuple):
    """What `histogramdd` returns: counts (or densities), and the edges of the bins along each dimension."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


def _points(input: Tensor) -> np.ndarray:
    """The points as rows [N, D]."""
    array = input._array
    if array.ndim < 2:
        raise RuntimeError(f"{NAME}: input tensor should have at least 2 dimensions, got shape {list(array.shape)}")
    if array.dtype not in (np.float32, np.float64):
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{scalar_name(array)}': it takes float32 and float64")
    return array.reshape(math.prod(array.shape[:-1]), array.shape[-1])


def _given_edges(bins, array: np.ndarray) -> list[np.ndarray]:
    """Edges given as tensors, one for each dimension."""
    for d, edges in enumerate(bins):
        if edges._array.ndim != 1:
            raise RuntimeError(f"{NAME}: bins tensor should have one dimension, but got {edges._array.ndim} dimensions in the bins "
                               f"tensor for dimension {d}")  # fmt: skip
        if not edges._array.size:
            raise RuntimeError(f"{NAME}: bins tensor should have at least 1 element, but got 0 elements in the bins tensor for "
                               f"dimension {d}")  # fmt: skip
        if edges._array.dtype != array.dtype:
            raise RuntimeError(f"{NAME}: input tensor and bins tensors should have the same dtype, but got input with dtype "
                               f"{c_name(array)} and bins for dimension {d} with dtype {c_name(edges._array)}")  # fmt: skip
    return [edges._array for edges in bins]


def _even_edges(counts, limits, points: np.ndarray) -> list[np.ndarray]:
    """Evenly spaced edges from lowest to highest value, or between given limits, in each dimension."""
    dimensions = points.shape[1]
    if limits is not None and len(limits) != 2 * dimensions:
        raise RuntimeError(f"{NAME}: for a {dimensions}-dimensional histogram range should have {2 * dimensions} elements, but got "
                           f"{len(limits)}")  # fmt: skip
    found = []
    for d, count in enumerate(counts):
        if limits is not None:
            low, high = limits[2 * d], limits[2 * d + 1]
        else:
            low, high = (points[:, d].min(), points[:, d].max()) if len(points) else (0.0, 1.0)
        if not (math.isfinite(low) and math.isfinite(high)):
            raise RuntimeError(f"{NAME}: dimension {d}'s range [{low}, {high}] is not finite")
        if low > high:
            raise RuntimeError(f"{NAME}: min should not exceed max, but got min {low} max {high} for dimension {d}")
        if low == high:
            low, high = low - 0.5, high + 0.5
        found.append(np.linspace(low, high, max(count, 0) + 1, dtype=points.dtype))
    return found


def _weights(weight, input: Tensor) -> np.ndarray | None:
    if weight is None:
        return None
    if weight._array.shape != input._array.shape[:-1]:
        raise RuntimeError(
            f"{NAME}: if weight tensor is provided it should have the same shape as the input tensor excluding its innermost "
            f"dimension, but got input with shape {list(input.shape)} and weight with shape {list(weight.shape)}"
        )
    if weight._array.dtype != input._array.dtype:
        raise RuntimeError(
            f"{NAME}: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got "
            f"input({c_name(input._array)}), and weight({c_name(weight._array)})"
        )
    return weight._array.reshape(-1)


def _place(edges: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The bin of each value inside the edges; the last bin includes its right edge."""
    if (edges[1:] >= edges[:-1]).all():
        found = np.searchsorted(edges, values, "right")
    else:  # edges out of order mean nothing, but PyTorch answers with what bisection finds
        found = np.array([bisect_right(edges.tolist(), v) for v in values.tolist()], np.int64)
    return np.minimum(found - 1, len(edges) - 2)


def _counted(points: np.ndarray, edges: list[np.ndarray], weights: np.ndarray | None) -> np.ndarray:
    """How many points, or how much weight, fall into each box."""
    inside = np.ones(len(points), bool)
    for d, each in enumerate(edges):
        inside &= (points[:, d] >= each[0]) & (points[:, d] <= each[-1])
    shape = [len(each) - 1 for each in edges]
    box = np.zeros(int(inside.sum()), np.int64)
    for d, each in enumerate(edges):
        box = box * shape[d] + _place(each, points[inside, d])
    return np.bincount(box, None if weights is None else weights[inside], math.prod(shape)).reshape(shape)


def _density(hist: np.ndarray, edges: list[np.ndarray]) -> np.ndarray:
    """The histogram over its sum and the volumes of its boxes."""
    with quiet():
        hist = hist / hist.sum()
        for d, each in enumerate(edges):
            hist = hist / np.diff(each).reshape([-1] + [1] * (len(edges) - 1 - d))
    return hist


@composite()
def histogramdd(input, bins, *, range=None, weight=None, density=False):
    """How many points (or how much weight) fall into each box of a grid in D dimensions.

    Args:
        input: [*S, D]: points, float32 or float64.
        bins: the number of bins, the same or one for each dimension, or D ascending tensors of edges.
        range: where the bins begin and end, two numbers for each dimension; by default at the smallest and largest value.
        weight: [*S]: how much each point counts, of the input's dtype.
        density: divide so that the integral over the grid is one.

    Returns:
        The pair (hist [bins of the first dimension, ...], bin_edges, a tuple of D tensors).

    Raises:
        RuntimeError: other shapes and dtypes, no bins, a range out of order or not finite.
        TypeError: bins of another kind.
    """
    points = _points(input)
    counts = [bins] * points.shape[1] if isinstance(bins, int) else bins
    if not isinstance(counts, (list, tuple)) or len({isinstance(b, Tensor) for b in counts}) > 1:
        raise TypeError(f"histogramdd(): argument 'bins' must be int, tuple of ints or tuple of Tensors, not {type(bins).__name__}")
    if len(counts) != points.shape[1]:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input: got "
            f"{len(counts)} and {points.shape[1]}"
        )
    given = bool(counts) and isinstance(counts[0], Tensor)
    edges = _given_edges(counts, points) if given else _even_edges(counts, range, points)
    for d, each in enumerate(edges):
        if len(each) < 2:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {len(each) - 1} for dimension {d}")
    hist = _counted(points, edges, _weights(weight, input))
    hist = _density(hist, edges) if density else hist
    return HistogramddResult(wrap(np.asarray(hist, points.dtype)), tuple([wrap(e.copy()) for e in edges]))
