"""Adding many values into few places: the derivative of every selection whose indices may repeat.

Each function is the plain NumPy form; for many values the compiled form adds on all threads, in the same order for each
place. Indices are in range already.
"""

from __future__ import annotations

import math

import numpy as np

from .choice import compiled

__all__ = ["add_along", "add_bags", "add_rows", "add_slices", "bag_sums", "bags_of", "places_of", "wrapped"]

FEW = 64  # rows of a result for each thread: fewer are shared out by columns
LINE = 16  # columns that are worth a thread: fewer would share a line of cache with the next thread's


def wrapped(index: np.ndarray, size: int) -> np.ndarray:
    """Indices with negative ones counted from the end."""
    if index.size and index.min() < 0:
        return np.where(index < 0, index + size, index)
    return index


# --- rows ------------------------------------------------------------------------------------------------------------


def add_rows(size: int, index: np.ndarray, rows: np.ndarray, dtype: np.dtype, shape: tuple[int, ...]) -> np.ndarray:
    """Zeros [size, *shape] with `rows[k]` added to row `index[k]`, for every k.

    index: [n], non-negative; rows: [n, prod(shape)].
    """
    width = math.prod(shape)
    if width > 1 and rows.size and size and rows.dtype == dtype:
        fast = compiled("accumulation", rows.size, rows)
        if fast is not None:
            whole, threads = np.empty((size, width), dtype), fast.get_threads()
            fast.add_rows(np.ascontiguousarray(rows), _whole_numbers(index), whole, threads, size < FEW * threads and width >= LINE * threads)
            return whole.reshape(size, *shape)
    whole = np.zeros((size, width), dtype)
    if index.size and whole.size:
        _add(whole, index, rows)
    return whole.reshape(size, *shape)


def _add(whole: np.ndarray, index: np.ndarray, rows: np.ndarray) -> None:
    width = whole.shape[1]
    if width == 1 and whole.dtype.kind == "f":
        whole[:, 0] = np.bincount(index, rows[:, 0], whole.shape[0])  # sums in double precision
    elif index.size == 1:
        whole[index[0]] = rows[0]
    else:  # element by element: NumPy adds at flat indices much faster than at rows, and than sorting takes
        places = (index[:, None] * width + np.arange(width)).reshape(-1)
        np.add.at(whole.reshape(-1), places, rows.reshape(-1))


# --- bags ------------------------------------------------------------------------------------------------------------


def bag_sums(table: np.ndarray, index: np.ndarray, starts: np.ndarray) -> np.ndarray:
    """The sum of table[index[k]] over each bag's k: [size, width] to [bags, width].

    index: [n], non-negative; starts: [bags], ascending, where each bag begins; zeros for an empty one.
    """
    fast = compiled("accumulation", index.size * table.shape[1], table)
    if fast is None or not table.flags.c_contiguous:
        return add_rows(starts.size, bags_of(starts, index.size), table.take(index, axis=0), table.dtype, table.shape[1:])
    out = np.empty((starts.size, table.shape[1]), table.dtype)
    fast.bag_sums(table, _whole_numbers(index), _whole_numbers(starts), out, fast.get_threads())
    return out


def add_bags(size: int, index: np.ndarray, starts: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Zeros [size, width] with rows[b] added to row index[k] for every k of bag b: the transpose of `bag_sums`."""
    fast = compiled("accumulation", index.size * rows.shape[1], rows)
    if fast is None:
        return add_rows(size, index, rows.take(bags_of(starts, index.size), axis=0), rows.dtype, rows.shape[1:])
    whole = np.empty((size, rows.shape[1]), rows.dtype)
    fast.add_bags(np.ascontiguousarray(rows), _whole_numbers(starts), _whole_numbers(index), whole, fast.get_threads())
    return whole


def bags_of(starts: np.ndarray, count: int) -> np.ndarray:
    """The bag of each of `count` entries."""
    return np.searchsorted(starts, np.arange(count), side="right") - 1


def _whole_numbers(index: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(index, np.int64)


# --- single elements ---------------------------------------------------------------------------------------------------


def _add_exactly(whole: np.ndarray, flat: np.ndarray, values: np.ndarray) -> None:
    """Add values to the elements of a contiguous array that have the given flat indices, which may repeat.

    flat, values: [n].
    """
    if whole.dtype.kind == "f" and whole.itemsize >= 4 and flat.size * 8 > whole.size:
        total = np.bincount(flat, values, whole.size).reshape(whole.shape)
        whole += total.astype(whole.dtype)
    else:
        np.add.at(whole.reshape(-1), flat, values)


def add_along(whole: np.ndarray, dim: int, index: np.ndarray, values: np.ndarray, exact: bool = False) -> None:
    """Add each value to the element of a contiguous array that has the value's own place, but `index` along `dim`.

    index, values: of one shape, no larger than `whole` apart from `dim`.
    exact: add in double precision where the plain form can.
    """
    if not index.size or _add_compiled(whole, dim, index, values):
        return
    flat = _flat_places(index, whole.shape, dim)
    if exact:
        _add_exactly(whole, flat, values.reshape(-1))
    else:
        np.add.at(whole.reshape(-1), flat, values.reshape(-1))


def _add_compiled(whole: np.ndarray, dim: int, index: np.ndarray, values: np.ndarray) -> bool:
    """Do it with the compiled form, if there is one for that; say whether it was done."""
    rest = whole.shape[:dim], whole.shape[dim + 1 :]
    if not whole.ndim or (index.shape[:dim], index.shape[dim + 1 :]) != rest:
        return False
    fast = compiled("accumulation", index.size, whole, values)
    if fast is None:
        return False
    outer, inner = (math.prod(sizes) for sizes in rest)
    places = _whole_numbers(index).reshape(outer, -1, inner)
    values = np.ascontiguousarray(values).reshape(places.shape)
    fast.add_at(values, places, whole.reshape(outer, whole.shape[dim], inner), fast.get_threads())
    return True


def places_of(index: np.ndarray, dim: int) -> tuple:
    """Index arrays that address, for each element of `index`, itself with the coordinate `dim` replaced."""
    index = index if index.ndim else index.reshape(1)
    grid = np.ogrid[tuple([slice(n) for n in index.shape])]
    return (*grid[:dim], index, *grid[dim + 1 :])


def _flat_places(index: np.ndarray, shape: tuple, dim: int) -> np.ndarray:
    """The places that `places_of` addresses, counted through a contiguous array of `shape`."""
    if not shape:
        return np.zeros(index.size, np.int64)
    grid = np.broadcast_arrays(*places_of(index, dim))
    return np.ravel_multi_index([g.reshape(-1) for g in grid], shape)


def add_slices(whole: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Slices of `source` added to slices of `whole`, which is changed and returned; indices may repeat."""
    size, index = whole.shape[dim], wrapped(index, whole.shape[dim])
    rest = whole.shape[:dim] + whole.shape[dim + 1 :]
    rows = np.moveaxis(source, dim, 0).reshape(index.size, -1) if index.size else source.reshape(0, 0)
    whole += np.moveaxis(add_rows(size, index, rows, whole.dtype, rest), 0, dim)
    return whole
