"""Histograms of points in several dimensions. One-dimensional ones are in `counting.py`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pellucid.autograd.operator import Index, Indices, composite, operator
from pellucid.core.counting_checks import check_edges, points_of, weights_of
from pellucid.core.tensor import Tensor
from pellucid.kernels import counting as kernel
from pellucid.kernels.batches import at_each_place
from pellucid.ops.batches import all_for_each

__all__ = ["histogramdd"]


class HistogramddResult(NamedTuple):
    """What `histogramdd` returns: counts (or densities), and the edges of the bins along each dimension."""

    hist: Tensor
    bin_edges: tuple[Tensor, ...]


def _histogram(input: np.ndarray, weight, bins, span, density: bool, *edges: np.ndarray) -> tuple[np.ndarray, ...]:
    """The counts or densities, and the edges, given or in the numbers `bins`."""
    points = points_of(input)
    if len(edges or bins) != points.shape[1]:
        raise RuntimeError(
            "histogramdd: The size of bins must be equal to the innermost dimension of the input: got "
            f"{len(edges or bins)} and {points.shape[1]}"
        )
    check_edges(edges, points)
    found = [e.copy() for e in edges] or kernel.box_edges(bins, span, points)
    for d, each in enumerate(found):
        if len(each) < 2:
            raise RuntimeError(f"torch.histogram(): bins must be > 0, but got {len(each) - 1} for dimension {d}")
    hist = kernel.points_in_boxes(points, found, weights_of(weight, input))
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
