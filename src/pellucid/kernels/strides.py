"""Arrays as sizes and strides over memory: views of other geometries, and what lies where in memory."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["added_windows", "broadcast", "diagonal", "laid_out", "on_diagonal", "places", "real_pairs", "restrided",
           "strides_of", "uninitialised", "viewable", "windows"]  # fmt: skip


def strides_of(array: np.ndarray) -> tuple[int, ...]:
    """Strides in elements."""
    itemsize = array.itemsize
    return tuple([s // itemsize for s in array.strides])


def broadcast(array: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
    """A view of a shape to which the array can be broadcast, with stride 0 along the dimensions that grow."""
    lead = len(size) - array.ndim
    strides = (0,) * lead + tuple(
        [0 if n == 1 != s else t for n, t, s in zip(array.shape, array.strides, size[lead:], strict=True)]
    )
    return restrided(array, size, strides)


def restrided(array: np.ndarray, size: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """A view from the array's first element on, with other sizes and strides (in bytes)."""
    if array.flags.c_contiguous and array.dtype.kind != "V" and math.prod(size):
        # NumPy checks here that the view stays inside the array; its as_strided is ten times slower
        return np.ndarray(size, array.dtype, array, 0, strides)
    return np.lib.stride_tricks.as_strided(array, size, strides)


def uninitialised(size: tuple, stride: tuple, kind: np.dtype, lead: tuple = ()) -> np.ndarray:
    """Uninitialised arrays with the given strides (in elements), for each place in the dimensions `lead` one."""
    need = 1 + sum([(n - 1) * s for n, s in zip(size, stride, strict=True)]) if math.prod(size) else 0
    memory = np.empty((*lead, max(need, 1)), kind)
    strides = [*memory.strides[:-1], *[s * kind.itemsize for s in stride]]
    return np.lib.stride_tricks.as_strided(memory, (*lead, *size), strides)


def diagonal(array: np.ndarray, offset: int, dim1: int, dim2: int) -> np.ndarray:
    """A diagonal as a writable view."""
    part = array.diagonal(offset, dim1, dim2)
    if array.flags.writeable:
        part.flags.writeable = True  # NumPy marks diagonals read-only
    return part


def windows(array: np.ndarray, dimension: int, size: int, step: int) -> np.ndarray:
    """Windows of `size` indices along a dimension, `step` apart, as a new last dimension: a view."""
    if not array.ndim:
        return np.lib.stride_tricks.as_strided(array, (size,), (array.itemsize,))
    shape, strides = list(array.shape), list(array.strides)
    shape[dimension], strides[dimension] = (shape[dimension] - size) // step + 1, strides[dimension] * step
    return np.lib.stride_tricks.as_strided(array, (*shape, size), (*strides, array.strides[dimension]))


def added_windows(given: np.ndarray, shape: tuple, dimension: int, step: int) -> np.ndarray:
    """The transpose of `windows`: zeros of a shape, to which the windows are added in their places."""
    whole = np.zeros(shape, given.dtype)
    if not shape:
        return whole + given.sum(dtype=given.dtype)
    reach = (given.shape[dimension] - 1) * step + 1
    for k in range(given.shape[-1]):
        whole[(*(slice(None),) * dimension, slice(k, k + reach, step))] += given[..., k]
    return whole


def places(geometry) -> np.ndarray:
    """The place in memory of each element of a geometry (sizes, strides, start)."""
    size, stride, start = geometry
    found = np.full(size, start, np.int64)
    for d, (n, s) in enumerate(zip(size, stride, strict=True)):
        found += (np.arange(n) * s).reshape((-1,) + (1,) * (len(size) - d - 1))
    return found


def laid_out(array: np.ndarray, source, target, by_source: bool) -> np.ndarray:
    """What lies in memory in the geometry `source` (zero elsewhere, sums where elements share memory), read in `target`.

    Elements of the target (or of the source) that share memory share the value equally.
    """
    there, here = places(source), places(target)
    low = min(there.min(initial=0), here.min(initial=0))
    there, here = there - low, here - low
    memory = np.zeros(max(there.max(initial=0), here.max(initial=0)) + 1, array.dtype)
    np.add.at(memory, there.reshape(-1), array.reshape(-1))
    count = np.bincount((there if by_source else here).reshape(-1), minlength=memory.size)
    return (memory / np.maximum(count, 1)).astype(array.dtype)[here]


# --- other sizes -----------------------------------------------------------------------------------------------------


def viewable(array: np.ndarray, size: tuple[int, ...]) -> np.ndarray | None:
    """The array in another shape, sharing memory; None where that needs a copy."""
    made = array.reshape(size)
    if array.flags.c_contiguous or not array.size or np.may_share_memory(made, array):
        return made
    return None


def real_pairs(array: np.ndarray) -> np.ndarray:
    """Complex numbers as pairs of real ones in a new last dimension: a view."""
    real = array.real
    return np.lib.stride_tricks.as_strided(real, (*real.shape, 2), (*real.strides, real.itemsize))


def on_diagonal(array: np.ndarray, shape, offset: int, dim1: int, dim2: int) -> np.ndarray:
    """Zeros of a shape with an array on a diagonal."""
    whole = np.zeros(shape, array.dtype)
    diagonal(whole, offset, dim1, dim2)[...] = array
    return whole
