"""Resizing along one dimension as a table: which places of the input each place of the result is made of, and how much of each.

An `Axis` says what is wanted of a dimension, and its `Table`, kept for the next call, is a sparse matrix with as many
entries a row as the longest row needs; the transpose is one too. `resize` applies one table to each dimension.
How users ask for a size is in functions/interpolation.py.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

__all__ = ["SMOOTH", "Axis", "Table", "cubic_weights", "resize", "resize_bytes", "table"]


class Axis(NamedTuple):
    """How one dimension is resized."""

    mode: str  # "nearest", "nearest-exact", "linear", "cubic"; with `SMOOTH` filters "smooth linear" and so on
    size: int
    count: int  # size of the result
    scale: float | None = None  # count / size before it was rounded, where that rules
    align: bool = False  # whether the corner elements keep their places
    backward: bool = False  # whether the transpose is meant

    def transpose(self) -> Axis:
        """The transpose: from `count` elements to `size`."""
        return self._replace(backward=not self.backward)


class Table(NamedTuple):
    """Row i of the result is the sum over k of weight[k, i] * input[place[k, i]]."""

    place: np.ndarray  # [K, rows]
    weight: np.ndarray | None  # [K, rows]; None for ones
    columns: int  # size of the input

    @property
    def rows(self) -> int:
        """Size of the result."""
        return self.place.shape[1]

    def transpose(self) -> Table:
        """The table of the transposed matrix; rows with fewer entries than others are filled up with weight 0."""
        weight = np.ones(self.place.shape) if self.weight is None else self.weight
        order = np.argsort(self.place, axis=None, kind="stable")
        column = self.place.reshape(-1)[order]
        starts = np.searchsorted(column, np.arange(self.columns))
        rank = np.arange(column.size) - starts[column]  # the how-many-eth entry of its column
        depth = int(rank.max(initial=0)) + 1
        made = Table(np.zeros((depth, self.columns), np.intp), np.zeros((depth, self.columns)), self.rows)
        made.place[rank, column] = order % self.rows
        made.weight[rank, column] = weight.reshape(-1)[order]
        return made


# --- the tables of the modes -----------------------------------------------------------------------------------------


def _step(size: int, count: int, scale: float | None, align: bool = False) -> float:
    """How far apart, in the input, neighbours of the result are."""
    if align:
        return (size - 1) / (count - 1) if count > 1 else 0.0
    return 1 / scale if scale else size / count


def _single(value) -> np.float32:
    return np.float32(value)


def _nearest(size: int, count: int, scale: float | None, exact: bool) -> Table:
    """The element before each place, or (`exact`) the one whose middle is nearest; in single precision, as PyTorch."""
    step = _single(1 / scale) if scale else _single(size) / _single(count)
    place = np.floor((np.arange(count, dtype=np.float32) + _single(0.5 if exact else 0)) * step)
    return Table(place.astype(np.intp).clip(0, size - 1)[None], None, size)


def _middles(size: int, count: int, scale: float | None, align: bool) -> np.ndarray:
    """Where in the input each place of the result lies."""
    step, place = _step(size, count, scale, align), np.arange(count, dtype=float)
    return step * place if align else step * (place + 0.5) - 0.5


def _linear(size: int, count: int, scale: float | None, align: bool) -> Table:
    """The two neighbours of each place, weighed by their nearness."""
    place = np.maximum(_middles(size, count, scale, align), 0)
    first = np.minimum(place.astype(np.intp), size - 1)
    share = (place - first).clip(0, 1)
    return Table(np.stack([first, np.minimum(first + 1, size - 1)]), np.stack([1 - share, share]), size)


def cubic_weights(share: np.ndarray, bend: float = -0.75) -> list[np.ndarray]:
    """The weights of the four neighbours of a place that is `share` behind the second one. Source: Keys, 1981."""
    near = [((bend + 2) * t - (bend + 3)) * t * t + 1 for t in (share, 1 - share)]
    far = [((bend * t - 5 * bend) * t + 8 * bend) * t - 4 * bend for t in (share + 1, 2 - share)]
    return [far[0], near[0], near[1], far[1]]


def _cubic(size: int, count: int, scale: float | None, align: bool) -> Table:
    """The four neighbours of each place, weighed by Keys' cubic; beyond the ends the last element stands."""
    place = _middles(size, count, scale, align)
    second = np.floor(place).astype(np.intp)
    places = np.stack([second + k for k in (-1, 0, 1, 2)]).clip(0, size - 1)
    return Table(places, np.stack(cubic_weights(place - second)), size)


def _triangle(distance: np.ndarray) -> np.ndarray:
    return np.maximum(1 - np.abs(distance), 0)


def _keys(distance: np.ndarray) -> np.ndarray:
    """Keys' cubic with the bend that image programs use, -0.5."""
    x = np.abs(distance)
    return np.where(x < 1, (1.5 * x - 2.5) * x * x + 1, np.where(x < 2, ((-0.5 * x + 2.5) * x - 4) * x + 2, 0))


def _lanczos(distance: np.ndarray) -> np.ndarray:
    """A windowed sinc of three lobes."""
    return np.where(np.abs(distance) < 3, np.sinc(distance) * np.sinc(distance / 3), 0)


SMOOTH = {
    "smooth linear": (_triangle, 1),
    "smooth cubic": (_keys, 2),
    "smooth lanczos": (_lanczos, 3),
}  # and how far each reaches


def _smooth(mode: str, size: int, count: int, scale: float | None, align: bool) -> Table:
    """A filter as wide as the step, so that shrinking averages (`antialias`); weights add up to 1."""
    shape, reach = SMOOTH[mode]
    step = _step(size, count, scale, align)
    width = max(step, 1.0)
    middle = step * (np.arange(count) + 0.5)
    first = np.maximum((middle - reach * width + 0.5).astype(np.intp), 0)
    last = np.minimum((middle + reach * width + 0.5).astype(np.intp), size)
    place = first + np.arange(int((last - first).max(initial=1)))[:, None]
    weight = np.where(place < last, shape((place - middle + 0.5) / width), 0)
    return Table(place.clip(0, size - 1), weight / weight.sum(axis=0), size)


@functools.lru_cache(512)
def table(axis: Axis) -> Table:
    """The table of one dimension."""
    if axis.backward:
        return table(axis.transpose()).transpose()
    if axis.mode.startswith("nearest"):
        return _nearest(axis.size, axis.count, axis.scale, axis.mode == "nearest-exact")
    steps = axis.size, axis.count, axis.scale, axis.align
    if axis.mode in SMOOTH:
        return _smooth(axis.mode, *steps)
    return _linear(*steps) if axis.mode == "linear" else _cubic(*steps)


# --- their use -------------------------------------------------------------------------------------------------------


def _apply(array: np.ndarray, dim: int, rule: Table) -> np.ndarray:
    """One table applied along one dimension."""
    if rule.weight is None:
        return array.take(rule.place[0], axis=dim)
    shape = (-1,) + (1,) * (array.ndim - 1 - dim)
    made = None
    for place, weight in zip(rule.place, rule.weight.astype(array.dtype), strict=True):
        part = array.take(place, axis=dim)
        part *= weight.reshape(shape)
        made = part if made is None else np.add(made, part, out=made)
    return made


def resize(array: np.ndarray, axes: tuple[Axis, ...]) -> np.ndarray:
    """The last dimensions resized, those that shrink most first: the rest is then less work."""
    tables = [table(axis) for axis in axes]
    first = array.ndim - len(tables)
    for i in sorted(range(len(tables)), key=lambda i: tables[i].rows / max(tables[i].columns, 1)):
        array = _apply(array, first + i, tables[i])
    return array


# --- bytes -----------------------------------------------------------------------------------------------------------


@functools.lru_cache(512)
def _in_fixed_point(axis: Axis) -> tuple[Table, int]:
    """A table whose weights are 16-bit integers, and how many of their bits are behind the point; as in image programs."""
    rule = table(axis)
    weight = rule.weight.copy()
    for k in range(1, len(weight)):  # where several entries of a row meet at an end, their sum is rounded
        for earlier in range(k):
            same = rule.place[k] == rule.place[earlier]
            weight[earlier, same] += weight[k, same]
            weight[k, same] = 0
    bits = 0
    while bits < 22 and int(0.5 + weight.max() * 2 ** (bits + 1)) < 2**15:
        bits += 1
    whole = np.trunc(weight * 2**bits + np.copysign(0.5, weight))
    return Table(rule.place, whole, rule.columns), bits


def resize_bytes(image: np.ndarray, axes: tuple[Axis, Axis]) -> np.ndarray:
    """Images of bytes resized, first their rows, then their columns, each rounded to bytes. What keeps its size is not touched."""
    for dim in (-1, -2):
        if axes[dim].count == axes[dim].size:
            continue
        rule, bits = _in_fixed_point(axes[dim])
        total = _apply(image.astype(np.int32), image.ndim + dim, rule)
        image = ((total + (1 << bits - 1)) >> bits).clip(0, 255).astype(np.uint8)
    return image
