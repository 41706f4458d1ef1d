"""Checks of indices into the rows of a table."""

from __future__ import annotations

import numpy as np

from pellucid.core.checks import scalar_name

__all__ = ["check_indices", "check_range"]


def check_indices(indices: np.ndarray, function: str) -> None:
    """Raise RuntimeError unless indices are int64 or int32."""
    if indices.dtype not in (np.int64, np.int32):
        raise RuntimeError("Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but "
                           f"got {scalar_name(indices)}Tensor instead (while checking arguments for {function}): convert the "
                           "indices with .long()")


def check_range(indices: np.ndarray, size: int) -> None:
    """Raise IndexError for an index outside [0, size)."""
    if indices.size and (indices.min() < 0 or indices.max() >= size):
        bad = indices[(indices < 0) | (indices >= size)].flat[0]
        raise IndexError(f"index out of range in self: got {bad} for a table of {size} rows")
