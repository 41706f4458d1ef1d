"""Running reductions along a dimension: element i of a result tells about the elements up to i, or from i on."""

from __future__ import annotations

import numpy as np

from pellucid.kernels.reductions import rows_with_diagonal

__all__ = ["gradient_of_products", "log_sums", "running", "scaled_sums", "scanned"]


def scanned(ufunc, input: np.ndarray, dim: int, backwards: bool = False) -> np.ndarray:
    """Accumulate along a dimension, from the end if `backwards`; integers and bools as int64."""
    kind = np.int64 if input.dtype.kind in "iub" else None
    if not input.ndim:
        return input.astype(kind or input.dtype)
    if backwards:
        return np.flip(ufunc.accumulate(np.flip(input, dim), axis=dim, dtype=kind), dim).copy()
    return ufunc.accumulate(input, axis=dim, dtype=kind)


def gradient_of_products(grad: np.ndarray, point: np.ndarray) -> np.ndarray:
    """Along the last dimension: for each k the sum over i >= k of grad_i times the product of all elements up to i but the k-th."""
    if not (point == 0).any():
        products = np.multiply.accumulate(point, axis=-1)
        return scanned(np.add, grad * products, point.ndim - 1, backwards=True) / point
    others = rows_with_diagonal(point, 1)
    return np.add.reduce(np.triu(np.multiply.accumulate(others, axis=-1)) * grad[..., None, :], axis=-1)


def log_sums(input: np.ndarray, dim: int, backwards: bool = False) -> np.ndarray:
    """log(cumsum(exp(x))), from the end if `backwards`."""
    if not input.ndim:
        return input.copy()
    if input.dtype.kind != "c":
        return scanned(np.logaddexp, input, dim, backwards)
    # one by one: the imaginary part goes on from that of the larger term, beyond pi
    rows = np.moveaxis(input, dim, 0)
    sums = rows.copy()
    order = range(len(rows) - 2, -1, -1) if backwards else range(1, len(rows))
    for i in order:
        before = sums[i + 1 if backwards else i - 1]
        larger = np.where(before.real >= rows[i].real, before, rows[i])
        smaller = np.where(before.real >= rows[i].real, rows[i], before)
        sums[i] = np.where(np.isneginf(larger.real), larger, larger + np.log1p(np.exp(smaller - larger)))
    return np.ascontiguousarray(np.moveaxis(sums, 0, dim))


def scaled_sums(input: np.ndarray, inside: np.ndarray, outside: np.ndarray, dim: int, backwards: bool) -> np.ndarray:
    """exp(outside) * cumsum(input * exp(inside)): parts of either sign summed apart, by logarithms; nothing overflows."""
    if input.dtype.kind == "c":
        return np.exp(log_sums(np.log(input) + inside, dim, backwards) + outside)
    above = log_sums(np.log(np.where(input > 0, input, 0)) + inside, dim, backwards)
    below = log_sums(np.log(np.where(input < 0, -input, 0)) + inside, dim, backwards)
    return np.exp(above + outside) - np.exp(below + outside)


def running(ufunc, input: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray]:
    """The extreme up to each element, and where it is: the latest of equal ones."""
    if not input.ndim:
        return input.copy(), np.zeros((), np.int64)
    values = ufunc.accumulate(input, axis=dim)
    found = input == values
    if input.dtype.kind == "f":
        found |= np.isnan(input)
    shape = [1] * input.ndim
    shape[dim] = -1
    places = np.where(found, np.arange(input.shape[dim]).reshape(shape), 0)
    return values, np.maximum.accumulate(places, axis=dim)
