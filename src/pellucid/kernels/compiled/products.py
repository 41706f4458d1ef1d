"""Products of matrices on all threads: each thread makes a block of rows or columns with one call of BLAS.

Why not BLAS's own threads: they wait for one another spinning, so that one busy core stalls a product for whole time slices
of the scheduler (thousands of times its length), and a product of 25 microseconds pays for waking them.
"""

from __future__ import annotations

import numba
import numpy as np

from . import get_threads, parallel
from .blas import gemm

__all__ = ["product"]


def product(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a [m, k] @ b [k, n]; each in either order of memory. Plain form: `numpy.matmul`."""
    (m, k), n = a.shape, b.shape[1]
    c = np.empty((m, n), a.dtype)
    (a, a_turned), (b, b_turned) = _as_stored(a), _as_stored(b)
    _product(a, a_turned, b, b_turned, c, k, get_threads())
    return c


def _as_stored(matrix: np.ndarray) -> tuple[np.ndarray, bool]:
    """The matrix as a C-contiguous array, and whether that is its transpose."""
    if matrix.flags.c_contiguous:
        return matrix, False
    if matrix.flags.f_contiguous:
        return matrix.T, True
    return np.ascontiguousarray(matrix), False


@parallel
def _product(a, a_turned, b, b_turned, c, depth, blocks):
    """2 m n k FLOPs; each thread reads its block of one operand and the whole of the other."""
    m, n = c.shape
    lda, ldb = a.shape[1], b.shape[1]
    a, b, c = a.reshape(-1), b.reshape(-1), c.reshape(-1)
    for block in numba.prange(blocks):
        if m >= n:
            start, stop = block * m // blocks, (block + 1) * m // blocks
            first = start if a_turned else start * lda
            gemm(stop - start, n, depth, a[first:], lda, a_turned, b, ldb, b_turned, c[start * n:], n, False)
        else:
            start, stop = block * n // blocks, (block + 1) * n // blocks
            first = start * ldb if b_turned else start
            gemm(m, stop - start, depth, a, lda, a_turned, b[first:], ldb, b_turned, c[start:], n, False)
