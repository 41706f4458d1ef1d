"""Matrix products inside kernels: BLAS's `gemm` on parts of arrays, called from Numba, on the calling thread alone.

SciPy brings the BLAS; Numba knows its routine as `numba_xxgemm`. BLAS counts columns first, so a row-major product
C = A B is asked of it as C^T = B^T A^T.
"""

from __future__ import annotations

import numba
import numpy as np
from numba import types
from numba.extending import overload
from numba.np.linalg import _BLAS, ensure_blas
from threadpoolctl import ThreadpoolController

__all__ = ["gemm"]

_PLAIN, _TURNED = np.int8(ord("n")), np.int8(ord("t"))


def _keep_to_one_thread() -> None:
    """Let SciPy's BLAS use the thread that calls it: the kernels share out the work. NumPy's own BLAS is left alone."""
    for library in ThreadpoolController().lib_controllers:
        if library.user_api == "blas" and "numpy.libs" not in library.filepath:
            library.set_num_threads(1)


ensure_blas()
_keep_to_one_thread()


def gemm(rows, columns, depth, a, lda, a_turned, b, ldb, b_turned, c, ldc, add):
    """C = A B, or C += A B, for row-major A [rows, depth], B [depth, columns], C [rows, columns]; inside kernels only.

    a, b, c: arrays that begin at the first element of each matrix; lda, ldb, ldc: elements from one row in memory to the
    next. a_turned: A lies in memory transposed, as [depth, rows]; b_turned likewise. add: add to C instead of overwriting.
    """
    raise RuntimeError("gemm is for compiled kernels")


@overload(gemm)
def _gemm(rows, columns, depth, a, lda, a_turned, b, ldb, b_turned, c, ldc, add):
    routine = _BLAS.numba_xxgemm(c.dtype)
    kind = np.int8(ord("s" if c.dtype == types.float32 else "d"))
    dtype = numba.np.numpy_support.as_dtype(c.dtype)

    def call(rows, columns, depth, a, lda, a_turned, b, ldb, b_turned, c, ldc, add):
        factors = np.ones(2, dtype)
        if not add:
            factors[1] = 0
        routine(
            kind, _TURNED if b_turned else _PLAIN, _TURNED if a_turned else _PLAIN, columns, rows, depth,
            factors[0:].ctypes, b.ctypes, ldb, a.ctypes, lda, factors[1:].ctypes, c.ctypes, ldc,
        )  # fmt: skip

    return call
