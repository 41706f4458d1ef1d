"""Matrix products inside kernels: BLAS's `gemm` and `gemv` on parts of arrays, called from Numba, on the calling thread alone.

SciPy brings the BLAS; Numba knows its routines as `numba_xxgemm` and `numba_xxgemv`. BLAS counts columns first, so a
row-major product C = A B is asked of it as C^T = B^T A^T. Matrices are given as arrays that begin at their first element
(`gemm`), or by the address of it (`gemm_at`, `gemv_at`), for those that lie in memory with gaps.
"""

from __future__ import annotations

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload
from numba.np.linalg import _BLAS, ensure_blas
from threadpoolctl import ThreadpoolController

from pellucid.kernels.threads import is_of_kernels

__all__ = ["address", "at", "fetch", "gemm", "gemm_at", "gemv_at", "hold", "only_in_kernels", "prefetch", "width_of"]

_PLAIN, _TURNED = np.int8(ord("n")), np.int8(ord("t"))


def _keep_to_one_thread() -> None:
    """Let SciPy's BLAS use the thread that calls it: the kernels share out the work. NumPy's own BLAS is left alone."""
    for library in ThreadpoolController().lib_controllers:
        if library.user_api == "blas" and is_of_kernels(library):
            library.set_num_threads(1)


ensure_blas()
_keep_to_one_thread()


@intrinsic
def _pointer(typing, address, like):
    """An address as a pointer to numbers of the type of `like`."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(like)(types.int64, like), generate


@intrinsic
def _kept(typing, value):
    """A pointer to a copy of one number on the stack."""

    def generate(context, builder, signature, arguments):
        return cgutils.alloca_once_value(builder, arguments[0])

    return types.CPointer(value)(value), generate


def prefetch(builder, place) -> None:
    """LLVM's code that has the line of cache at a pointer to bytes fetched, for reading, while other work goes on."""
    number = ir.IntType(32)
    kind = ir.FunctionType(ir.VoidType(), [place.type, number, number, number])
    wishes = [ir.Constant(number, each) for each in (0, 3, 1)]  # to read, near, data
    builder.call(cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0"), [place, *wishes])


@intrinsic
def fetch(typing, address):
    """`prefetch` for an address; inside kernels only."""

    def generate(context, builder, signature, arguments):
        prefetch(builder, builder.inttoptr(arguments[0], ir.IntType(8).as_pointer()))
        return context.get_dummy_value()

    return types.void(types.int64), generate


@intrinsic
def hold(typing, array):
    """Keep an array until here, because its memory was used by address; inside kernels only."""

    def generate(context, builder, signature, arguments):
        return context.get_dummy_value()

    return types.void(array), generate


def only_in_kernels(*arguments):
    raise RuntimeError("this is for compiled kernels")


def at(address, count, like):
    """The `count` numbers in memory from an address on, of the type of the number `like`, as an array; inside kernels only.

    Write to it in functions without `prange` and without comprehensions alone: with these, Numba removes what is written to an
    array that nobody reads again, not knowing that it is memory of others.
    """
    only_in_kernels()


def address(array):
    """Where the first element of an array lies, as a number that can be added to; inside kernels only.

    Numba frees an array when it has been named for the last time, and knows nothing of addresses: `hold` an array that was made in
    the same function.
    """
    only_in_kernels()


def width_of(number):
    """The bytes of a number; inside kernels only."""
    only_in_kernels()


@overload(width_of)
def _width_of(number):
    width = np.int64(number.bitwidth // 8)
    return lambda number: width


@overload(address)
def _address(array):
    return lambda array: np.int64(array.ctypes.data)


@overload(at)
def _at(address, count, like):
    def call(address, count, like):
        return numba.carray(_pointer(address, like), (count,))

    return call


def gemm(rows, columns, depth, a, lda, a_turned, b, ldb, b_turned, c, ldc, add):
    """C = A B, or C += A B, for row-major A [rows, depth], B [depth, columns], C [rows, columns]; inside kernels only.

    a, b, c: arrays that begin at the first element of each matrix; lda, ldb, ldc: elements from one row in memory to the
    next. a_turned: A lies in memory transposed, as [depth, rows]; b_turned likewise. add: add to C instead of overwriting.
    """
    only_in_kernels()


@overload(gemm)
def _gemm(rows, columns, depth, a, lda, a_turned, b, ldb, b_turned, c, ldc, add):
    number = numba.np.numpy_support.as_dtype(c.dtype).type
    one, zero = number(1), number(0)

    def call(rows, columns, depth, a, lda, a_turned, b, ldb, b_turned, c, ldc, add):
        starts = address(a), address(b), address(c)
        gemm_at(rows, columns, depth, one, starts[0], lda, a_turned, starts[1], ldb, b_turned, one if add else zero, starts[2], ldc)

    return call


def gemm_at(rows, columns, depth, alpha, a, lda, a_turned, b, ldb, b_turned, beta, c, ldc):
    """C = alpha A B + beta C, as `gemm`; a, b, c are the addresses of first elements, alpha and beta numbers of their dtype."""
    only_in_kernels()


@overload(gemm_at)
def _gemm_at(rows, columns, depth, alpha, a, lda, a_turned, b, ldb, b_turned, beta, c, ldc):
    routine, kind = _BLAS.numba_xxgemm(alpha), _kind(alpha)

    def call(rows, columns, depth, alpha, a, lda, a_turned, b, ldb, b_turned, beta, c, ldc):
        routine(
            kind, _TURNED if b_turned else _PLAIN, _TURNED if a_turned else _PLAIN, columns, rows, depth, _kept(alpha),
            _pointer(b, alpha), ldb, _pointer(a, alpha), lda, _kept(beta), _pointer(c, alpha), ldc,
        )  # fmt: skip

    return call


def gemv_at(rows, depth, alpha, a, lda, a_turned, x, beta, y):
    """y = alpha A x + beta y for A [rows, depth] as in `gemm_at`, and vectors without gaps; inside kernels only."""
    only_in_kernels()


@overload(gemv_at)
def _gemv_at(rows, depth, alpha, a, lda, a_turned, x, beta, y):
    routine, kind = _gemv_routine(alpha), _kind(alpha)

    def call(rows, depth, alpha, a, lda, a_turned, x, beta, y):
        stored_rows, stored_columns = (depth, rows) if a_turned else (rows, depth)
        routine(
            kind, _PLAIN if a_turned else _TURNED, stored_columns, stored_rows, _kept(alpha), _pointer(a, alpha), lda,
            _pointer(x, alpha), _kept(beta), _pointer(y, alpha),
        )  # fmt: skip

    return call


def _kind(dtype) -> np.int8:
    return np.int8(ord("s" if dtype == types.float32 else "d"))


def _gemv_routine(dtype):
    """`numba_xxgemv(kind, turned, m, n, alpha, a, lda, x, beta, y)`, steps of one in both vectors."""
    size, pointer = types.intp, types.CPointer(dtype)
    signature = types.intc(types.char, types.char, size, size, pointer, pointer, size, pointer, pointer, pointer)
    return types.ExternalFunction("numba_xxgemv", signature)
