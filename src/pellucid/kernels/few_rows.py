"""The gradient of a large table of which few rows were chosen: these rows alone, until somebody asks for the whole.

Where a step chooses ten thousand rows out of a hundred thousand, filling the rest of the gradient with zeros and reading
them again would take longer than everything else.
"""

from __future__ import annotations

import numpy as np

from .accumulation import add_bags, add_rows
from .choice import FLOATS, compiled

__all__ = ["FewRows", "few_rows"]

LARGE = 1 << 18  # elements of a table that are worth it
SHARE = 8  # rows of the table for each that is chosen


class FewRows:
    """A matrix whose rows are zero but for some. It stands for an array where a gradient is handed to a leaf.

    index: [n], int64, ascending, without repetition; rows: [n, width], contiguous. Nobody else holds either.
    """

    __slots__ = ("dtype", "index", "rows", "shape")

    base = ()  # an array without a base would be one that the engine may add to

    def __init__(self, size: int, index: np.ndarray, rows: np.ndarray):
        self.shape, self.dtype, self.index, self.rows = (size, rows.shape[1]), rows.dtype, index, rows

    def whole(self) -> np.ndarray:
        """The matrix with its zeros."""
        made = np.zeros(self.shape, self.dtype)
        made[self.index] = self.rows
        return made

    def astype(self, dtype) -> np.ndarray:
        """The matrix in another dtype."""
        return self.whole().astype(dtype)

    def __array__(self, dtype=None, copy=None):
        made = self.whole()
        return made if dtype is None else made.astype(dtype, copy=False)


def few_rows(size: int, index: np.ndarray, rows: np.ndarray, starts: np.ndarray | None = None) -> FewRows | None:
    """What `add_rows` makes, as FewRows: `rows[k]` [n, width] added to row `index[k]` of `size`, for every k; None if that would not pay.

    starts: [bags], where each bag of indices begins: then what `add_bags` makes of rows [bags, width]. The sums are the same,
    digit by digit.
    """
    if size * rows.shape[1] < LARGE or not 0 < index.size * SHARE <= size or rows.dtype not in FLOATS:
        return None
    chosen, place = _numbered(index, size, rows)
    if starts is None:
        return FewRows(size, chosen, add_rows(chosen.size, place, rows, rows.dtype, rows.shape[1:]))
    return FewRows(size, chosen, add_bags(chosen.size, place, starts, rows))


def _numbered(index: np.ndarray, size: int, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different indices, ascending, and for each index its number among them."""
    fast = compiled("accumulation", index.size * rows.shape[1], rows)
    if fast is not None:
        return fast.numbered(np.ascontiguousarray(index, np.int64), size)
    chosen, place = np.unique(index, return_inverse=True)
    return chosen, place.reshape(-1)
