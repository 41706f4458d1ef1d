"""Rows of a table: shares of their gradient, bags of them, rows of ones and zeros."""

from __future__ import annotations

import itertools

import numpy as np

from .accumulation import add_bags, add_rows, bag_sums, bags_of
from .few_rows import few_rows

__all__ = ["bag_numbers", "bag_sizes", "bag_sums", "gradient", "gradient_of_bags", "gradient_of_few", "largest_in_bags", "one_hot", "taken"]


def _shares(rows, indices, size: int, padding_idx: int, scale_grad_by_freq: bool):
    """Rows [n, D] of a gradient, without those of the padding, divided by how often their index occurs if that is asked."""
    if padding_idx >= 0:
        padding = indices == padding_idx
        if padding.any():
            rows = np.where(padding[:, None], 0, rows)
    if scale_grad_by_freq and indices.size:
        rows = rows / np.bincount(indices, minlength=size)[indices].astype(rows.dtype)[:, None]
    return rows


def gradient(grad: np.ndarray, indices: np.ndarray, size: int, padding_idx: int, scale_grad_by_freq: bool) -> np.ndarray:
    """The rows of a gradient [*S, D] added up where their indices [*S] say: [size, D]."""
    width = grad.shape[-1]
    indices = indices.reshape(-1)
    rows = _shares(grad.reshape(indices.size, width), indices, size, padding_idx, scale_grad_by_freq)
    return add_rows(size, indices, rows, rows.dtype, (width,))


def gradient_of_few(grad: np.ndarray, indices: np.ndarray, size: int, padding_idx: int, scale_grad_by_freq: bool):
    """`gradient`, as `FewRows` where few of many rows were chosen and none is special."""
    made = None
    if padding_idx < 0 and not scale_grad_by_freq:
        indices = indices.reshape(-1)
        made = few_rows(size, indices, grad.reshape(indices.size, grad.shape[-1]))
    return gradient(grad, indices, size, padding_idx, scale_grad_by_freq) if made is None else made


def gradient_of_bags(grad: np.ndarray, indices: np.ndarray, starts: np.ndarray, size: int):
    """The gradient of `bag_sums`' table from that of its bags [bags, D]; as `FewRows` where few of many rows were chosen."""
    made = few_rows(size, indices, grad, starts)
    return add_bags(size, indices, starts, grad) if made is None else made


def taken(table: np.ndarray, indices: np.ndarray, padding_idx: int, scale_grad_by_freq: bool) -> np.ndarray:
    """The transpose of `gradient`: rows of a table, those of the padding zero, divided by their frequency."""
    flat = indices.reshape(-1)
    rows = _shares(table.take(flat, axis=0), flat, len(table), padding_idx, scale_grad_by_freq)
    return rows.reshape(*indices.shape, table.shape[1])


def bag_numbers(starts: np.ndarray, count: int) -> np.ndarray:
    """The bag of each of `count` rows, given where bags start: [*S, bags] to [*S, count]."""
    made = np.empty((*starts.shape[:-1], count), np.int64)
    for place in np.ndindex(starts.shape[:-1]):
        made[place] = bags_of(starts[place], count)
    return made


def bag_sizes(starts: np.ndarray, count: int) -> np.ndarray:
    """How many of `count` rows each bag has, 1 for an empty one: the shape of starts [*S, bags]."""
    return np.maximum(np.diff(starts, append=count), 1)


def largest_in_bags(rows: np.ndarray, bags: np.ndarray, counts: np.ndarray, count: int) -> np.ndarray:
    """The row that is largest in each column of a bag, the first of equal ones; -1 in a bag without rows that count.

    rows: [*S, n, D]; bags: [*S, n], ascending; counts: [*S, n], whether a row counts. Returns [*S, count, D].
    """
    made = np.full((*bags.shape[:-1], count, rows.shape[-1]), -1, np.int64)
    for place in np.ndindex(bags.shape[:-1]):
        bounds = np.searchsorted(bags[place], np.arange(count + 1))
        for bag, (start, stop) in enumerate(itertools.pairwise(bounds)):
            counting = start + np.flatnonzero(counts[place][start:stop])
            if counting.size:
                made[place][bag] = counting[rows[place][counting].argmax(axis=0)]
    return made


def one_hot(classes: np.ndarray, count: int) -> np.ndarray:
    """A last dimension with a 1 at each class number: [*S] to [*S, count], int64."""
    made = np.zeros((classes.size, count), np.int64)
    made[np.arange(classes.size), classes.reshape(-1)] = 1
    return made.reshape(*classes.shape, count)
