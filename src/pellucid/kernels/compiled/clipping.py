"""The norm of many arrays as one vector, and scaling them all, in one call each, shared out evenly among the threads.

Plain forms: `numpy.linalg.norm` of the arrays laid end to end, and `array *= factor` for each.
"""

from __future__ import annotations

from math import sqrt

import numba
import numpy as np

from . import parallel
from .addresses import blocks_for, offsets_of, part, run, table_of

__all__ = ["norm", "scale"]

RUN = 4096  # squares added in the arrays' own precision, before they go to a sum in double precision


def norm(arrays: list[np.ndarray]) -> float:
    """The Euclidean norm of all elements."""
    offsets = offsets_of([a.size for a in arrays])
    blocks = blocks_for(offsets[-1])
    sums = np.zeros(blocks)
    _squares(table_of([[a] for a in arrays]), offsets, np.empty(0, arrays[0].dtype), sums, blocks)
    return sqrt(sums.sum())


def scale(arrays: list[np.ndarray], factor: float) -> None:
    """Multiply every array by a number, in place."""
    offsets = offsets_of([a.size for a in arrays])
    _scaled(table_of([[a] for a in arrays]), offsets, np.array([factor], arrays[0].dtype), blocks_for(offsets[-1]))


@parallel
def _squares(table, offsets, like, sums, blocks):
    """Each block's sum of squares; reads every element once."""
    for block in numba.prange(blocks):
        total = 0.0
        for row in range(len(table)):
            start, stop = part(offsets, row, block, blocks)
            if start < stop:
                x = run(table[row], 0, start, stop, like)
                for first in range(0, len(x), RUN):
                    some = like.dtype.type(0)
                    for i in range(first, min(first + RUN, len(x))):
                        some += x[i] * x[i]
                    total += some
        sums[block] = total


@parallel
def _scaled(table, offsets, factor, blocks):
    """Reads and writes every element once."""
    for block in numba.prange(blocks):
        for row in range(len(table)):
            start, stop = part(offsets, row, block, blocks)
            if start < stop:
                x, by = run(table[row], 0, start, stop, factor), factor[0]
                for i in range(len(x)):
                    x[i] *= by
