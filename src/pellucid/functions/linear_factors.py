"""LU factors unpacked and used for solving, and least squares.

`lu_factor` itself is an operator, in `ops/linear_factors.py`.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import check_matrix, check_square, every_value
from pellucid.core.tensor import Tensor, wrap
from pellucid.functions.linear_functions import matrix_rank, pinv
from pellucid.functions.linear_spectra import svdvals
from pellucid.ops.linear_factors import first_zero, lu_factor, lu_permutation

__all__ = ["lstsq", "lu", "lu_solve", "lu_unpack"]


# --- LU -------------------------------------------------------------------------------------------------------------


@composite(module="linalg")
def lu_factor_ex(A, *, pivot=True, check_errors=False, out=None):
    """`linalg.lu_factor`, and for each matrix zero or the first zero on the diagonal of U, counted from one."""
    packed, pivots = lu_factor(A, pivot=pivot)
    return packed, pivots, first_zero(packed.diagonal(0, -2, -1))


@composite()
def lu_unpack(LU_data, LU_pivots, unpack_data=True, unpack_pivots=True, *, out=None):
    """The factors (P, L, U) of A = P L U from what `linalg.lu_factor` gave."""
    rows, columns = LU_data._array.shape[-2:]
    k = min(rows, columns)
    empty = wrap(np.empty(0, LU_data._array.dtype))
    permutation = lu_permutation(LU_pivots, rows, LU_data._array.dtype) if unpack_pivots else empty
    if not unpack_data:
        return permutation, empty, empty
    lower = LU_data[..., :, :k].tril(-1) + wrap(np.eye(rows, k, dtype=LU_data._array.dtype))
    return permutation, lower, LU_data[..., :k, :].triu()


@composite(module="linalg")
def lu(A, *, pivot=True, out=None):
    """A = P L U: a permutation, a unit lower and an upper triangular matrix.

    A: [*S, m, n], float or complex. Returns (P [*S, m, m], L [*S, m, k], U [*S, k, n]), k = min(m, n).
    """
    return lu_unpack(*lu_factor(A, pivot=pivot))


def _solved(LU: Tensor, pivots: Tensor, B: Tensor, left: bool, adjoint: bool) -> Tensor:
    permutation, lower, upper = lu_unpack(LU, pivots)
    whole = permutation @ (lower @ upper)
    whole = whole.mH if adjoint else whole
    return T.linalg_solve(whole, B) if left else T.linalg_solve(whole.mT, B.mT).mT


@composite(module="linalg", name="lu_solve")
def lu_solve(LU, pivots, B, *, left=True, adjoint=False, out=None):
    """X with A X = B (X A = B, A^H X = B), given the packed factors of A. LU: [*S, n, n], B: [*S, n, k]. Returns B's shape."""
    check_square("torch.linalg.lu_solve", "LU", LU._array)
    return _solved(LU, pivots, B, left, adjoint)


@composite(method=True, name="lu_solve")
def torch_lu_solve(input, LU_data, LU_pivots, *, out=None):
    """`linalg.lu_solve`, with the arguments in another order."""
    return lu_solve(LU_data, LU_pivots, input)


# --- least squares --------------------------------------------------------------------------------------------------


@composite(module="linalg")
def lstsq(A, B, rcond=None, *, driver=None):
    """X that makes the 2-norm of A X - B smallest, the shortest one if there are several.

    A: [*S, m, n]; B: [*S, m, k] or [*S, m]. Returns (solution, residuals, rank, singular_values); residuals are the squared
    norms of A X - B for full rank and m > n, else empty. Raises: RuntimeError for shapes that do not fit or an unknown driver.
    """
    check_matrix("torch.linalg.lstsq", "input", A._array)
    if driver not in (None, "gels", "gelsy", "gelsd", "gelss"):
        raise RuntimeError(f"torch.linalg.lstsq: parameter `driver` should be one of (gels, gelsy, gelsd, gelss): got {driver}")
    vector = A._array.ndim - 1 == B._array.ndim and B._array.shape == A._array.shape[:-1]
    other = B.unsqueeze(-1) if vector else B
    rows, columns = A._array.shape[-2:]
    if other._array.ndim < 2 or other._array.shape[-2] != rows:
        raise RuntimeError(f"torch.linalg.lstsq: input.size(-2) should match other.size(-2): got {list(A.shape)} and {list(B.shape)}")
    solution = pinv(A, rtol=rcond) @ other
    ranks = matrix_rank(A, rtol=rcond)
    empty = wrap(np.empty(0, A._array.real.dtype))
    residuals = (A @ solution - other).abs().square().sum(-2)
    if rows <= columns or driver in (None, "gelsy") or not (every_value(ranks) == columns).all():
        residuals = residuals.flatten()[:0]
    singular = svdvals(A.detach()) if driver in ("gelsd", "gelss") else empty
    counted = wrap(np.empty(0, np.int64)) if driver == "gels" else ranks
    return solution.squeeze(-1) if vector else solution, residuals, counted, singular
