"""Distances of all pairs of rows: of two lists, and of one list to itself."""

from __future__ import annotations

import math

import numpy as np

from pellucid.kernels import products

__all__ = ["differences", "differences_added", "euclidean", "lengths", "of_pairs"]

BLOCK = 1 << 20  # numbers of a block of differences that is held at once


def lengths(difference: np.ndarray, p: float) -> np.ndarray:
    """The p-norm along the last dimension."""
    if p == 2:
        return np.sqrt(np.einsum("...i,...i->...", difference, difference))
    size = np.absolute(difference)
    if p == 0:
        return (size != 0).sum(axis=-1, dtype=size.dtype)
    if p == 1:
        return np.add.reduce(size, axis=-1)
    if math.isinf(p):
        return np.maximum.reduce(size, axis=-1, initial=0)
    return np.power(np.add.reduce(np.power(size, p), axis=-1), 1 / p)


def of_pairs(x1: np.ndarray, x2: np.ndarray, p: float) -> np.ndarray:
    """The p-norms of the differences of all pairs of rows: [*, P, M] and [*, R, M] to [*, P, R]."""
    made = np.empty((*x1.shape[:-1], x2.shape[-2]), x1.dtype)
    rows = max(1, BLOCK // max(1, x2.size))
    for start in range(0, x1.shape[-2], rows):
        part = slice(start, start + rows)
        made[..., part, :] = lengths(x1[..., part, None, :] - x2[..., None, :, :], p)
    return made


def euclidean(x1: np.ndarray, x2: np.ndarray) -> np.ndarray:
    """`of_pairs` for p = 2, from |a|^2 - 2 a b + |b|^2: one matrix product, less exact for rows close to each other."""
    square1, square2 = (np.einsum("...i,...i->...", x, x) for x in (x1, x2))
    made = products.matmul(x1, x2.swapaxes(-1, -2))
    made *= -2
    made += square1[..., None]
    made += square2[..., None, :]
    return np.sqrt(np.maximum(made, 0, out=made), out=made)


def differences(rows: np.ndarray) -> np.ndarray:
    """The differences of the rows of [*, N, M], each pair once: [*, N * (N - 1) / 2, M]."""
    first, second = np.triu_indices(rows.shape[-2], 1)
    return rows[..., first, :] - rows[..., second, :]


def differences_added(given: np.ndarray, count: int) -> np.ndarray:
    """The transpose of `differences` of `count` rows: [*, count, M]."""
    made = np.zeros((*given.shape[:-2], count, given.shape[-1]), given.dtype)
    start = 0
    for row in range(count - 1):
        part = given[..., start : start + count - 1 - row, :]
        made[..., row, :] += part.sum(axis=-2)
        made[..., row + 1 :, :] -= part
        start += count - 1 - row
    return made
