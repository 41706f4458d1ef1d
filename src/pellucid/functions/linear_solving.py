"""Linear equations by way of others: triangular ones, those with given Cholesky factors, and forms that say where they failed.

`inv`, `det`, `slogdet`, `solve` and `cholesky` themselves are operators, in `ops/linear_solving.py`.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import check_square, check_two_dims, written_to
from pellucid.core.matrix_checks import check_solve
from pellucid.core.tensor import Tensor, wrap
from pellucid.ops.linear_solving import cholesky, failures, solve

__all__ = ["logdet", "solve_triangular"]


# --- inverse and equations ------------------------------------------------------------------------------------------


@composite(module="linalg")
def inv_ex(A, *, check_errors=False, out=None):
    """The inverse of square matrices, and for each zero or where it failed."""
    check_square("linalg.inv_ex", "A", A._array)
    return T.linalg_inv(A), failures(A)


@composite(module="linalg")
def solve_ex(A, B, *, left=True, check_errors=False, out=None):
    """`linalg.solve`, and for each matrix zero or where it failed."""
    return solve(A, B, left=left), failures(A)


def _triangle(A: Tensor, upper: bool, unitriangular: bool) -> Tensor:
    """The triangle that counts, with ones on the diagonal if they are understood."""
    kept = A.triu(1 if unitriangular else 0) if upper else A.tril(-1 if unitriangular else 0)
    if not unitriangular:
        return kept
    return kept + wrap(np.eye(A._array.shape[-1], dtype=A._array.dtype))


@composite(module="linalg")
def solve_triangular(A, B, *, upper, left=True, unitriangular=False, out=None):
    """X with A X = B (or X A = B), A being triangular; its other triangle is not read.

    A: [*S, n, n]; B: [*S, n, k], of one dtype. Returns the shape of B.
    Raises: RuntimeError for shapes and dtypes that do not fit.
    """
    check_two_dims("linalg.solve_triangular", "A", A._array)
    check_two_dims("linalg.solve_triangular", "B", B._array)
    check_solve("linalg.solve_triangular", A._array, B._array, left, False)
    whole = _triangle(A, upper, unitriangular)
    made = T.linalg_solve(whole, B) if left else T.linalg_solve(whole.mT, B.mT).mT
    return written_to(made, out)


# --- determinants ---------------------------------------------------------------------------------------------------


@composite(method=True)
def logdet(input):
    """The logarithm of the determinant of square matrices: NaN for a negative one. input: [*S, n, n]. Returns [*S]."""
    check_square("logdet", "A", input._array)
    sign, value = T.linalg_slogdet(input)
    if input.is_complex():
        return value + sign.log()
    return T.where(sign < 0, float("nan"), value)


# --- Cholesky -------------------------------------------------------------------------------------------------------


@composite(method=True, name="cholesky")
def torch_cholesky(input, upper=False, *, out=None):
    """`linalg.cholesky`."""
    check_square("cholesky", "A", input._array)
    return cholesky(input, upper=upper, out=out)


@composite(module="linalg")
def cholesky_ex(A, *, upper=False, check_errors=False, out=None):
    """`linalg.cholesky`, and for each matrix zero."""
    made = cholesky(A, upper=upper)
    return made, wrap(np.zeros(A._array.shape[:-2], np.int32))


def _factor(L: Tensor, upper: bool) -> Tensor:
    """The lower factor: one triangle is read, but as in PyTorch the gradient is that of a whole matrix."""
    lower = L.mH if upper else L
    return lower + (lower.tril() - lower).detach()


@composite(method=True)
def cholesky_solve(input, L, upper=False, *, out=None):
    """X with A X = input, given the Cholesky factor of A. input: [*S, n, k], L: [*S, n, n]. Returns [*S, n, k]."""
    for name, t in (("b", input), ("u", L)):
        if t._array.ndim < 2:
            raise RuntimeError(f"{name} should have at least 2 dimensions, but has {t._array.ndim} dimensions instead")
    check_solve("cholesky_solve", L._array, input._array, True, False)
    lower = _factor(L, upper)
    return written_to(T.linalg_solve(lower.mH, T.linalg_solve(lower, input)), out)


@composite(method=True)
def cholesky_inverse(L, upper=False, *, out=None):
    """The inverse of A, given its Cholesky factor [*S, n, n]."""
    check_square("cholesky_inverse", "A", L._array)
    lower = _factor(L, upper)
    inverse_lower = T.linalg_inv(lower)
    return written_to(inverse_lower.mH @ inverse_lower, out)


@composite(method=True)
def triangular_solve(input, A, upper=True, transpose=False, unitriangular=False):
    """X with A X = input (or A^T X), A being triangular; and A. Deprecated: use linalg.solve_triangular."""
    whole = _triangle(A, upper, unitriangular)
    return T.linalg_solve(whole.mT if transpose else whole, input), A.clone()
