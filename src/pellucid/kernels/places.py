"""Elements put into places: repeated, where a mask is true, several in one place, by an index along one dimension."""

from __future__ import annotations

import math

import numpy as np

from pellucid.kernels.accumulation import places_of
from pellucid.kernels.sorting import taken

__all__ = ["corner", "counts_at", "factors_at", "last_of_each", "masked_out", "most_chosen", "placed_along",
           "put_masked", "reduce_at", "repeat", "repeats_added", "repeats_of", "taken_along", "written"]  # fmt: skip


# --- repeated --------------------------------------------------------------------------------------------------------


def repeat(array: np.ndarray, sizes: tuple) -> np.ndarray:
    """The array laid side by side `sizes` times, new dimensions in front."""
    shape = (1,) * (len(sizes) - array.ndim) + array.shape
    spread = array.reshape([n for size in shape for n in (1, size)])
    whole = np.broadcast_to(spread, [n for times, size in zip(sizes, shape, strict=True) for n in (times, size)])
    return whole.reshape([times * size for times, size in zip(sizes, shape, strict=True)]).copy()


def repeats_added(array: np.ndarray, shape: tuple, sizes: tuple) -> np.ndarray:
    """The sum over all the places where `repeat` puts each element of an array of that shape."""
    whole = (1,) * (len(sizes) - len(shape)) + tuple(shape)
    spread = array.reshape([n for times, size in zip(sizes, whole, strict=True) for n in (times, size)])
    return np.asarray(spread.sum(axis=tuple(range(0, 2 * len(sizes), 2)))).reshape(shape)


def repeats_of(counts: np.ndarray) -> list[np.ndarray]:
    """For each row of counts [*S, n] which element stands at each place where each comes as often as it counts."""
    n = counts.shape[-1]
    return [np.repeat(np.arange(n), row) for row in counts.reshape(counts.size // max(n, 1), n)]


# --- where a mask is true --------------------------------------------------------------------------------------------
# Elements stand one after another in a row; for each place in the first `lead` dimensions in a row of its own.


def masked_rows(mask: np.ndarray, shape: tuple, lead: int) -> tuple[np.ndarray, np.ndarray]:
    """A mask, broadcast to a shape, in rows [places, elements], and how many elements before each are true."""
    chosen = np.broadcast_to(mask, shape).reshape(math.prod(shape[:lead]), math.prod(shape[lead:]))
    return chosen, np.maximum(chosen.cumsum(axis=1) - 1, 0)


def most_chosen(mask: np.ndarray, shape: tuple, lead: int) -> int:
    """How many elements of a row a mask chooses, at the most."""
    return int(masked_rows(mask, shape, lead)[0].sum(axis=1).max(initial=0))


def put_masked(whole: np.ndarray, mask: np.ndarray, source: np.ndarray, lead: int) -> np.ndarray:
    """`whole` with the first elements of `source`, of which there are enough, where a mask is true."""
    chosen, order = masked_rows(mask, whole.shape, lead)
    values = source.reshape(len(chosen), math.prod(source.shape[lead:]))
    if not values.size:
        return whole.copy()
    found = np.take_along_axis(values, order, 1)
    return np.where(chosen, found, whole.reshape(chosen.shape)).reshape(whole.shape)


def masked_out(array: np.ndarray, mask: np.ndarray, shape: tuple, lead: int) -> np.ndarray:
    """The elements of an array where a mask is true, followed by zeros, in a shape."""
    chosen, order = masked_rows(mask, array.shape, lead)
    whole = np.zeros((len(chosen), math.prod(shape[lead:])), array.dtype)
    rows, columns = np.nonzero(chosen)
    whole[rows, order[rows, columns]] = array.reshape(chosen.shape)[rows, columns]
    return whole.reshape(shape)


# --- several in one place --------------------------------------------------------------------------------------------

UFUNCS = {"sum": np.add, "prod": np.multiply, "mean": np.add, "amax": np.maximum, "amin": np.minimum}


def _neutral(reduce: str, kind: np.dtype):
    """What leaves the reduction's other operand unchanged."""
    if reduce in ("sum", "mean"):
        return 0
    if reduce == "prod":
        return 1
    if kind.kind == "b":
        return reduce == "amin"
    limits = np.iinfo(kind) if kind.kind in "iu" else None
    if reduce == "amax":
        return -np.inf if limits is None else limits.min
    return np.inf if limits is None else limits.max


def reduce_at(whole: np.ndarray, places: tuple, values: np.ndarray, reduce: str, include_self: bool) -> None:
    """Reduce values, and with `include_self` what is there, into the places of `whole`, which is changed."""
    if not include_self:
        whole[places] = _neutral(reduce, whole.dtype)
    UFUNCS[reduce].at(whole, places, values)
    if reduce == "mean":
        count = np.full(whole.shape, int(include_self), np.int64)
        np.add.at(count, places, 1)
        count = np.maximum(count, 1)
        whole[...] = whole // count if whole.dtype.kind in "iub" else whole / count.astype(whole.real.dtype)


# --- an index along one dimension ----------------------------------------------------------------------------------------


def corner(array: np.ndarray, shape: tuple) -> np.ndarray:
    """The part of an array that an index of `shape` covers."""
    return array[tuple(slice(n) for n in shape)] if array.ndim else array


def written(array: np.ndarray, dim: int, index: np.ndarray, values) -> np.ndarray:
    """A copy of an array with values written to the places that an index addresses."""
    whole = np.array(array, order="C")
    if index.size:
        (whole if whole.ndim else whole.reshape(1))[places_of(index, dim)] = values
    return whole


def taken_along(array: np.ndarray, indices: np.ndarray, dim: int, keepdim: bool) -> np.ndarray:
    """The elements at indices along a dimension; without `keepdim` the dimension disappears."""
    if not array.ndim:
        return np.broadcast_to(array, indices.shape).copy()
    if keepdim:
        return taken(array, indices, dim)
    return taken(array, np.expand_dims(indices, dim), dim).squeeze(dim)


def placed_along(values: np.ndarray, indices: np.ndarray, shape: tuple, dim: int, keepdim: bool) -> np.ndarray:
    """Zeros of a shape, to which values are added at indices along a dimension: the transpose of `taken_along`."""
    whole = np.zeros(shape, values.dtype)
    if not shape:
        return np.asarray(values.sum(), values.dtype)
    if not keepdim:
        np.put_along_axis(whole, np.expand_dims(indices, dim), np.expand_dims(values, dim), dim)
        return whole
    places = list(np.indices(indices.shape, sparse=True))
    places[dim] = indices
    np.add.at(whole, tuple(places), values)
    return whole


def factors_at(array: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray) -> np.ndarray:
    """For each element of an array the product of the elements of `source` whose index addresses it."""
    factors = np.ones_like(array, shape=array.shape or (1,))
    np.multiply.at(factors, places_of(index, dim), corner(source, index.shape))
    return factors.reshape(array.shape)


def counts_at(array: np.ndarray, dim: int, index: np.ndarray, include_self: bool) -> np.ndarray:
    """How many values an index puts into each element of an array, with the element itself or not; at least 1."""
    count = np.full(array.shape, int(include_self), array.dtype)
    if index.size:
        whole = count if count.ndim else count.reshape(1)
        np.add.at(whole, places_of(index, dim), 1)
    return np.maximum(count.real, 1)


def last_of_each(index: np.ndarray) -> np.ndarray:
    """For each element of the last dimension whether none later is equal to it."""
    last = np.zeros(index.shape, np.bool_)
    for row in np.ndindex(index.shape[:-1]):
        last[row][index.shape[-1] - 1 - np.unique(index[row][::-1], return_index=True)[1]] = True
    return last
