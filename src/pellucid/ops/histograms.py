"""Histograms of points in several dimensions. One-dimensional ones are in `counting.py`."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pellucid.autograd.operator import Index, Indices, composite, operator
from pellucid.core.checks import c_name, scalar_name
from pellucid.core.tensor import Tensor
from pellucid.kernels import counting as kernel
from pellucid.ops.batches import all_for_each, at_each_place
from pellucid.ops.counting import check_span

__all__ = ["histogramdd"]

NAME = "torch.histogramdd"


class HistogramddResult(NamedTuple):
    """What `histogramdd` returns: counts (or densities), and the edges of the bins along each dimension."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


def _points(array: np.ndarray) -> np.ndarray:
    """The points as rows [N, D]."""
    if array.ndim < 2:
        raise RuntimeError(f"{NAME}: input tensor should have at least 2 dimensions, got shape {list(array.shape)}")
    if array.dtype not in (np.float32, np.float64):
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{scalar_name(array)}': it takes float32 and float64")
    return array.reshape(math.prod(array.shape[:-1]), array.shape[-1])


def _check_edges(bins, array: np.ndarray) -> None:
    """RuntimeError unless the edges are vectors of the points' type, one for each dimension."""
    for d, edges in enumerate(bins):
        if edges.ndim != 1:
            raise RuntimeError(f"{NAME}: bins tensor should have one dimension, but got {edges.ndim} dimensions in the bins "
                               f"tensor for dimension {d}")  # fmt: skip
        if not edges.size:
            raise RuntimeError(f"{NAME}: bins tensor should have at least 1 element, but got 0 elements in the bins tensor for "
                               f"dimension {d}")  # fmt: skip
        if edges.dtype != array.dtype:
            raise RuntimeError(f"{NAME}: input tensor and bins tensors should have the same dtype, but got input with dtype "
                               f"{c_name(array)} and bins for dimension {d} with dtype {c_name(edges)}")  # fmt: skip


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
        check_span(NAME, low, high, d, f"dimension {d}'s ")
        if low == high:
            low, high = low - 0.5, high + 0.5
        found.append(np.linspace(low, high, max(count, 0) + 1, dtype=points.dtype))
    return found


def _weights(weight: np.ndarray | None, input: np.ndarray) -> np.ndarray | None:
    if weight is None:
        return None
    if weight.shape != input.shape[:-1]:
        raise RuntimeError(
            f"{NAME}: if weight tensor is provided it should have the same shape as the input tensor excluding its innermost "
            f"dimension, but got input with shape {list(input.shape)} and weight with shape {list(weight.shape)}"
        )
    if weight.dtype != input.dtype:
        raise RuntimeError(
            f"{NAME}: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got "
            f"input({c_name(input)}), and weight({c_name(weight)})"
        )
    return weight.reshape(-1)


def _histogram(input: np.ndarray, weight, bins, span, density: bool, *edges: np.ndarray) -> tuple[np.ndarray, ...]:
    """The counts or densities, and the edges, given or in the numbers `bins`."""
    points = _points(input)
    if len(edges or bins) != points.shape[1]:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input: got "
            f"{len(edges or bins)} and {points.shape[1]}"
        )
    _check_edges(edges, points)
    found = [e.copy() for e in edges] or _even_edges(bins, span, points)
    for d, each in enumerate(found):
        if len(each) < 2:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {len(each) - 1} for dimension {d}")
    hist = kernel.points_in_boxes(points, found, _weights(weight, input))
    return np.asarray(kernel.density(hist, found) if density else hist, points.dtype), *found


@operator(module=None, name="histogramdd", outputs=None, widen=False)
class histogramdd_kernel:
    """The raw form of `histogramdd`; for each place in the first `lead` dimensions by itself."""

    def forward(xp, input: Index, edges: Indices, weight: Index | None = None, bins: tuple = (), span=None, density=False, lead=0):
        def one(input, weight, *edges):
            return _histogram(input, weight, bins, span, density, *edges)

        return list(at_each_place(lead, one, input, weight, *edges))

    def batch(F, size_of_batch, batched, input, edges, weight, bins, span, density, lead):
        input, edges, weight = all_for_each(F, batched, size_of_batch, input=input, edges=edges, weight=weight)
        return F.histogramdd(input, edges, weight, bins, span, density, lead + 1)


@composite()
def histogramdd(input, bins, *, range=None, weight=None, density=False):
    """How many points (or how much weight) fall into each box of a grid in D dimensions.

    input: [*S, D]: points, float32 or float64.
    bins: the number of bins, the same or one for each dimension, or D ascending tensors of edges.
    range: where the bins begin and end, two numbers for each dimension; by default at the smallest and largest value.
    weight: [*S]: how much each point counts, of the input's dtype.
    density: divide so that the integral over the grid is one.
    Returns the pair (hist [bins of the first dimension, ...], bin_edges, a tuple of D tensors).
    Raises: RuntimeError (other shapes and dtypes, no bins, a range out of order or not finite), TypeError (bins of another
        kind).
    """
    counts = [bins] * (input.shape[-1] if input.ndim else 0) if isinstance(bins, int) else bins
    if not isinstance(counts, (list, tuple)) or len({isinstance(b, Tensor) for b in counts}) > 1:
        raise TypeError(f"histogramdd(): argument 'bins' must be int, tuple of ints or tuple of Tensors, not {type(bins).__name__}")
    given = bool(counts) and isinstance(counts[0], Tensor)
    numbers, edges = ((), list(counts)) if given else (tuple(counts), [])
    hist, *edges = histogramdd_kernel(input, edges, weight, numbers, range, density)
    return HistogramddResult(hist, tuple(edges))
