"""Checks of what is counted: slices to compare, points, edges of bins, weights."""

from __future__ import annotations

import math

import numpy as np

from pellucid.core.checks import c_name, scalar_name
from pellucid.core.dims import one_dim

__all__ = ["check_bincount", "check_edges", "check_weight", "compared_dim", "points_of", "weights_of"]


def compared_dim(name: str, array: np.ndarray, dim: int) -> int:
    """The dimension whose slices are compared, counted from the front.

    Raises: IndexError (there is no such dimension), RuntimeError (the slices are empty).
    """
    if not array.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions: {name} needs slices to compare")
    dim = one_dim(dim, array.ndim)
    if array.shape.count(0) > 1:
        raise RuntimeError(f"{name}: Number of zero sized dimensions is more than one, so unique cannot be applied to {list(array.shape)}")
    if not array.size and array.shape[dim]:
        raise RuntimeError(f"{name}: There are 0 sized dimensions, and they aren't selected, so unique cannot be applied")
    return dim


def points_of(array: np.ndarray) -> np.ndarray:
    """The points as rows [N, D]."""
    if array.ndim < 2:
        raise RuntimeError(f"torch.histogramdd: input tensor should have at least 2 dimensions, got shape {list(array.shape)}")
    if array.dtype not in (np.float32, np.float64):
        raise NotImplementedError(f"\"histogramdd\" not implemented for '{scalar_name(array)}': it takes float32 and float64")
    return array.reshape(math.prod(array.shape[:-1]), array.shape[-1])


def check_edges(bins, array: np.ndarray) -> None:
    """RuntimeError unless the edges are vectors of the points' type, one for each dimension."""
    for d, edges in enumerate(bins):
        if edges.ndim != 1:
            raise RuntimeError(f"torch.histogramdd: bins tensor should have one dimension, but got {edges.ndim} dimensions in the bins "
                               f"tensor for dimension {d}")  # fmt: skip
        if not edges.size:
            raise RuntimeError(f"torch.histogramdd: bins tensor should have at least 1 element, but got 0 elements in the bins tensor for "
                               f"dimension {d}")  # fmt: skip
        if edges.dtype != array.dtype:
            raise RuntimeError(f"torch.histogramdd: input tensor and bins tensors should have the same dtype, but got input with dtype "
                               f"{c_name(array)} and bins for dimension {d} with dtype {c_name(edges)}")  # fmt: skip


def weights_of(weight: np.ndarray | None, input: np.ndarray) -> np.ndarray | None:
    """The weights of points [*S, D] as a vector; RuntimeError unless they are [*S], of the type of the points."""
    if weight is None:
        return None
    if weight.shape != input.shape[:-1]:
        raise RuntimeError(
            f"torch.histogramdd: if weight tensor is provided it should have the same shape as the input tensor excluding its innermost "
            f"dimension, but got input with shape {list(input.shape)} and weight with shape {list(weight.shape)}"
        )
    if weight.dtype != input.dtype:
        raise RuntimeError(
            f"torch.histogramdd: if weight tensor is provided, input tensor and weight tensor should have the same dtype, but got "
            f"input({c_name(input)}), and weight({c_name(weight)})"
        )
    return weight.reshape(-1)


def check_bincount(input: np.ndarray, weights: np.ndarray | None, lead: int) -> None:
    """Raise RuntimeError unless non-negative integers, and weights of their shape, are vectors behind `lead` dimensions."""
    if input.ndim != 1 + lead or input.dtype.kind not in "iu" or (input.size and input.min() < 0):
        raise RuntimeError(
            f"bincount only supports 1-d non-negative integral inputs: got {input.dtype.name} of shape {list(input.shape[lead:])}"
        )
    if weights is not None and weights.shape != input.shape:
        raise RuntimeError(
            f"weights should be 1-d and have the same length as input: got {list(weights.shape[lead:])} and {list(input.shape[lead:])}"
        )


def check_weight(input: np.ndarray, weight: np.ndarray | None, lead: int) -> None:
    """Raise RuntimeError unless the weights of a histogram have the shape of its elements, behind `lead` dimensions."""
    if weight is not None and weight.shape != input.shape:
        raise RuntimeError(
            "torch.histogram(): if weight tensor is provided it should have the same shape as the input: got "
            f"{list(weight.shape[lead:])} and {list(input.shape[lead:])}"
        )
