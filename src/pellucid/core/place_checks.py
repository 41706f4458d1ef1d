"""Checks of indices along one dimension, and of what is read or written there."""

from __future__ import annotations

import numpy as np

from pellucid.core.dims import one_dim
from pellucid.core.errors import shape_text, type_name

__all__ = ["check_index", "check_index_vector", "check_shapes", "check_slices", "size_along"]


def size_along(array: np.ndarray, dim: int) -> int:
    """The size of a dimension; a number counts as a row of one."""
    return array.shape[dim] if array.ndim else 1


def check_index(name: str, index: np.ndarray, size: int, dim: int) -> None:
    """RuntimeError for an index of another type than int64 or int32, or outside [0, size). An empty one may be of any type."""
    if not index.size:
        return
    if index.dtype not in (np.int64, np.int32):
        raise RuntimeError(f"{name}(): Expected dtype int64 for index, got {index.dtype.name}")
    if not (0 <= index.min() and index.max() < size):
        wrong = index[(index < 0) | (index >= size)].flat[0]
        raise RuntimeError(f"index {wrong} is out of bounds for dimension {dim} with size {size}")


def check_shapes(name: str, input: np.ndarray, dim: int, index: np.ndarray, src: np.ndarray | None = None) -> None:
    """RuntimeError unless the index fits into the tensor on all dimensions but `dim`, and into `src` on all."""
    if not index.size:
        return
    if max(index.ndim, 1) != max(input.ndim, 1):
        what = "self" if src is not None else "input"
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {what} tensor")
    if src is not None and max(index.ndim, 1) != max(src.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    for d in range(index.ndim):
        too_large = d != dim and index.shape[d] > size_along(input, d)
        if too_large or (src is not None and index.shape[d] > size_along(src, d)):
            also = f" and to be no larger than src {shape_text(src)}" if src is not None else ""
            raise RuntimeError(f"{name}(): Expected index {shape_text(index)} to be no larger than self {shape_text(input)} apart "
                               f"from dimension {dim}{also}")


SUMS = ("index_add", "index_reduce")  # of them PyTorch speaks in other words


def check_index_vector(name: str, index: np.ndarray, size: int | None, dim: int) -> None:
    """IndexError or RuntimeError unless it is a vector of integers that count up to `size` (None: that is looked at elsewhere)."""
    if index.ndim > 1:
        raise IndexError(f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim} with type: {index.dtype.name}")
    if index.dtype not in (np.int64, np.int32):
        expected = "int32/int64 for index but got:" if name.startswith(SUMS) else "int32 or int64 for index, got"
        raise RuntimeError(f"{name}(): Expected dtype {expected} {index.dtype.name}")
    if size is not None and index.size and not (-size <= index.min() and index.max() < size):
        raise IndexError(f"{name}(): index out of range in self: dimension {dim} has size {size}")


def check_slices(name: str, input: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray) -> int:
    """The dimension, where `source` holds one slice of `input` for each index; RuntimeError else."""
    dim = one_dim(dim, input.ndim)
    check_index_vector(name, index, None if name == "index_reduce" else size_along(input, dim), dim)
    ours, theirs, adds = type_name(input.dtype), type_name(source.dtype), name in SUMS
    if source.dtype != input.dtype:
        raise RuntimeError(
            f"{name}_(): self ({ours}) and source ({theirs}) must have the same scalar type"
            if adds
            else f"{name}_(): self and source expected to have the same dtype, but got (self) {ours} and (source) {theirs}"
        )
    expected = [index.size if d == dim else n for d, n in enumerate(input.shape)]
    if list(source.shape) == expected or index.size == source.size == 1:
        return dim
    if (have := size_along(source, dim)) != index.size:
        text = f"Number of indices ({index.size}) should be equal to source.size(dim)"
        raise RuntimeError(f"{name}_(): {text}: ({have}), for dim: {dim}") if adds else IndexError(f"{name}_(): {text} ({have})")
    raise RuntimeError(f"{name}(): source {shape_text(source)} does not fit self {shape_text(input)}: expected {expected}")
