"""NumPy's indexing by arrays of indices, with PyTorch's errors, and flat indices.

What stands in brackets is read in `subscripts.py`; array code that raises nothing is in `kernels/`.
"""

from __future__ import annotations

import numpy as np

from pellucid.core.checks import every_value
from pellucid.core.subscripts import FULL
from pellucid.core.tensor import Tensor
from pellucid.kernels.accumulation import wrapped

__all__ = ["check_flat", "flattened", "key_of", "out_of_bounds", "put", "raise_outside", "taken"]


def out_of_bounds(error: IndexError, shape: tuple, indices, dim: int) -> IndexError:
    """The error about an index that lies outside its dimension."""
    for position, index in enumerate(indices):
        size = shape[dim + position]
        wrong = index[(index < -size) | (index >= size)]
        if wrong.size:
            return IndexError(f"index {wrong.flat[0]} is out of bounds for dimension {dim + position} with size {size}")
    return IndexError(str(error))


def key_of(indices) -> tuple:
    """Arrays of indices, None for whole dimensions, as a key of NumPy."""
    return tuple([FULL if i is None else i for i in indices])


def taken(array: np.ndarray, indices) -> np.ndarray:
    """NumPy's advanced indexing, with PyTorch's errors."""
    try:
        return array[key_of(indices)]
    except IndexError as error:
        shapes = [list(i.shape) for i in indices if i is not None]
        try:
            np.broadcast_shapes(*shapes)
        except ValueError:
            text = ", ".join(map(str, shapes))
            raise IndexError(f"shape mismatch: indexing tensors could not be broadcast together with shapes {text}") from None
        for d, i in enumerate(indices):
            if i is not None:
                raise_outside(i, array.shape[d], d)
        raise IndexError(str(error)) from None


def raise_outside(index: np.ndarray, size: int, dim: int, kind: type = IndexError) -> None:
    """Raise for the first index outside [-size, size), if there is one."""
    if index.size and not (-size <= index.min() and index.max() < size):
        wrong = index[(index < -size) | (index >= size)]
        raise kind(f"index {wrong.flat[0]} is out of bounds for dimension {dim} with size {size}")


def flattened(indices, shape: tuple, dim: int) -> np.ndarray | None:
    """Indices of several dimensions as one that counts through all of them; None where they do not fit together."""
    flat: np.ndarray | int = 0
    for position, (item, size) in enumerate(zip(indices, shape, strict=False)):
        raise_outside(item, size, dim + position)
        try:
            flat = flat * size + wrapped(item, size)
        except ValueError:
            return None
    return np.asarray(flat)


def put(array: np.ndarray, indices, values: np.ndarray, accumulate: bool) -> None:
    """Write, or add, values to the places that indices choose."""
    key = key_of(indices)
    try:
        if accumulate:
            np.add.at(array, key, values)
        else:
            array[key] = values
    except (IndexError, ValueError):
        target = taken(array, indices).shape  # raises where the indices are at fault
        raise RuntimeError(f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of "
                           f"shape {list(target)}") from None


def check_flat(index: Tensor, count: int) -> None:
    """IndexError for a flat index outside [-count, count)."""
    found = every_value(index)
    if found.size and not (-count <= found.min() and found.max() < count):
        wrong = found[(found < -count) | (found >= count)].flat[0]
        raise IndexError(f"out of range: tried to access index {wrong} on a tensor of {count} elements.")
