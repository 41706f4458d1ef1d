"""Reductions over dimensions, and what is computed from sums."""

from __future__ import annotations

import math

import numpy as np

from .choice import CROSSOVERS
from .sums import column_sums, trailing_sum

__all__ = ["added", "average", "degrees", "log_sum", "norm", "product", "product_of_others", "reduced_shape",
           "rows_with_diagonal", "spread", "total", "variance"]  # fmt: skip

LARGE = CROSSOVERS["sums.rows"]
LEADING = [tuple(range(count)) for count in range(65)]
BLOCK = 256  # rows that are summed straight; longer columns are summed in blocks, which keeps rounding errors small


def added(input: np.ndarray, dim, keepdim: bool = False):
    """The sum over dimensions; integers and bools are added up as int64.

    NumPy adds pairwise only along the last dimension in memory; elsewhere long sums are cut into blocks.
    """
    if input.dtype.kind in "iub":
        return np.add.reduce(input, axis=dim, keepdims=keepdim, dtype=np.int64)
    if input.size >= LARGE and dim.__class__ is tuple:
        made = _in_columns(input, dim, keepdim) if dim == LEADING[len(dim)] and len(dim) < input.ndim else _in_rows(input, dim, keepdim)
        if made is not None:
            return made
    if input.size > 1 << 14 and dim == (0,) and input.ndim > 1 and input.shape[0] >= 4 * BLOCK:
        rows = input.shape[0] // BLOCK * BLOCK
        blocks = np.add.reduce(input[:rows].reshape(-1, BLOCK, *input.shape[1:]), axis=1)
        total = np.add.reduce(blocks, axis=0, keepdims=keepdim)
        return total + np.add.reduce(input[rows:], axis=0, keepdims=keepdim) if rows < input.shape[0] else total
    return np.add.reduce(input, axis=dim, keepdims=keepdim)


def total(input: np.ndarray):
    """The sum of all elements; integers and bools are added up as int64."""
    if input.dtype.kind in "iub":
        return np.add.reduce(input, axis=None, dtype=np.int64)
    made = trailing_sum(input, input.ndim) if input.size >= LARGE else None
    return np.add.reduce(input, axis=None) if made is None else made


def _in_columns(input: np.ndarray, dim: tuple, keepdim: bool) -> np.ndarray | None:
    """`added` over the first dimensions, on all threads."""
    made = column_sums(input, len(dim))
    return made if made is None or not keepdim else made.reshape((1,) * len(dim) + made.shape)


def _in_rows(input: np.ndarray, dim: tuple, keepdim: bool, centre: np.ndarray | None = None) -> np.ndarray | None:
    """`added` over the last dimensions first, on all threads, then over the others; None if the last one stays, or is one alone.

    centre: if given, an array with all dimensions, squares of distances from it are added up.
    """
    count = 0
    while count < input.ndim and input.ndim - 1 - count in dim:
        count += 1
    left = input.ndim - count
    if math.prod(input.shape[left:]) < 2:
        return None
    made = trailing_sum(input, count, None if centre is None else centre.reshape(centre.shape[:left]))
    if made is None:
        return None
    others = tuple([d for d in dim if d < left])
    made = np.asarray(np.add.reduce(made, axis=others) if others else made)
    return made.reshape([1 if d in dim else n for d, n in enumerate(input.shape)]) if keepdim else made


def _squares_added(input: np.ndarray, centre: np.ndarray | None, dim: tuple, keepdim: bool) -> np.ndarray:
    """The sum of squares of distances from a centre, which has all dimensions, or from zero; real for complex numbers."""
    if input.size >= LARGE and input.dtype.kind == "f":
        made = _in_rows(input, dim, keepdim, np.zeros((1,) * input.ndim, input.dtype) if centre is None else centre)
        if made is not None:
            return made
    distance = input if centre is None else input - centre
    square = distance * distance if input.dtype.kind == "f" else distance.real**2 + distance.imag**2
    return added(square, dim, keepdim)


def degrees(shape: tuple, dim: tuple, correction: float) -> float:
    """What a sum of squares is divided by: the count less the correction, but not less than zero."""
    left = math.prod([shape[d] for d in dim]) - correction
    return left if left > 0 else 0.0


def variance(input: np.ndarray, dim: tuple, correction: float, keepdim: bool):
    """The mean square distance from the mean; real for complex numbers."""
    if input.dtype.kind not in "fc":
        raise RuntimeError(f"std and var only support floating point and complex dtypes: got {input.dtype.name}")
    count = math.prod([input.shape[d] for d in dim])
    centre = added(input, dim, True) / input.dtype.type(count)
    square = _squares_added(input, centre, dim, keepdim)
    return np.true_divide(square, square.dtype.type(degrees(input.shape, dim, correction)))


def average(input: np.ndarray, dim: tuple, keepdim: bool):
    """The mean over dimensions."""
    count = math.prod([input.shape[d] for d in dim])
    return np.true_divide(added(input, dim, keepdim), input.dtype.type(count))


def norm(array: np.ndarray, order: float, dim: tuple, keepdim: bool):
    """The norm of the given order, of numbers that are real and not negative unless the order is 2."""
    if order == 2:
        return np.sqrt(_squares_added(array, None, dim, keepdim))
    if order == 1:
        return added(array, dim, keepdim)
    if order == 0:
        return added((array != 0).astype(array.dtype), dim, keepdim)
    if math.isinf(order):
        ufunc = np.maximum if order > 0 else np.minimum
        if not array.size and order > 0:
            return ufunc.reduce(array, axis=dim, keepdims=keepdim, initial=0)
        return ufunc.reduce(array, axis=dim, keepdims=keepdim)
    return np.power(added(np.power(array, order), dim, keepdim), 1 / order)


def product(input: np.ndarray, dim, keepdim: bool = False):
    """The product over dimensions (None: all), integers as int64."""
    kind = np.int64 if input.dtype.kind in "iub" else None
    return np.multiply.reduce(input, axis=dim, keepdims=keepdim, dtype=kind)


def log_sum(input: np.ndarray, dim: tuple, keepdim: bool) -> np.ndarray:
    """The logarithm of the sum of exponentials, without overflow."""
    if not input.size:
        return np.log(added(np.exp(input), dim, keepdim))
    top = np.maximum.reduce(input.real, axis=dim, keepdims=True)
    top = np.where(np.isinf(top), 0, top)
    total = np.log(added(np.exp(input - top), dim, True)) + top
    return total if keepdim else total.reshape([s for d, s in enumerate(input.shape) if d not in dim])


def product_of_others(input: np.ndarray) -> np.ndarray:
    """For each element the product of all others along the last dimension."""
    before, after = np.ones(input.shape, input.dtype), np.ones(input.shape, input.dtype)
    np.multiply.accumulate(input[..., :-1], axis=-1, out=before[..., 1:])
    if input.shape[-1] > 1:
        np.multiply.accumulate(input[..., :0:-1], axis=-1, out=after[..., -2::-1])
    return before * after


def rows_with_diagonal(input: np.ndarray, value: float) -> np.ndarray:
    """The last dimension n as n rows of a square matrix, with `value` on the diagonal."""
    size = input.shape[-1]
    rows = np.empty((*input.shape, size), input.dtype)
    rows[...] = input[..., None, :]
    rows[..., np.arange(size), np.arange(size)] = value
    return rows


def spread(value: np.ndarray, shape: tuple, dim: tuple = (), keepdim: bool = False) -> np.ndarray:
    """What a reduction over `dim` gave, or one number, at each element of an array of that shape: a copy."""
    whole = np.empty(shape, value.dtype)
    whole[...] = value if keepdim or value.ndim == 0 else value.reshape(reduced_shape(shape, dim))
    return whole


def reduced_shape(shape: tuple, dim: tuple[int, ...]) -> tuple[int, ...]:
    """A shape with the given dimensions of size one."""
    return tuple([1 if i in dim else size for i, size in enumerate(shape)])
