"""LU factors with row exchanges, and least squares.

Other decompositions are in linear_spectra.py, equations and Cholesky factors in linear_solving.py.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Index, composite, operator
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import check_matrix, check_square, every_value
from pellucid.core.tensor import Tensor, wrap
from pellucid.kernels import factors as kernel
from pellucid.ops.linear_functions import matrix_rank, pinv
from pellucid.ops.linear_solving import adjoint_of
from pellucid.ops.linear_spectra import svdvals

__all__ = ["lstsq", "lu", "lu_factor", "lu_solve", "lu_unpack"]


# --- LU -------------------------------------------------------------------------------------------------------------


@operator(module=None, batching="leading")
class lu_permutation:
    """The matrix P [*S, m, m] with A = P L U, from the row exchanges [*S, k]."""

    def forward(xp, pivots: Index, rows: int, kind):
        return xp.ascontiguousarray(xp.eye(rows, dtype=kind)[kernel.row_order(pivots, rows)].swapaxes(-1, -2))


@operator(module=None, name="linalg_lu_packed", node="LinalgLuFactorExBackward0", outputs=("LU", "pivots"), constant=("pivots",),
          holomorphic=False, batching="leading")  # fmt: skip
class _lu_packed:
    """L and U of A = P L U in one array.

    Derivative for square A: P L^-H (tril(L^H gL, -1) + triu(gU U^H)) U^-H, from differentiating P^T A = L U.
    """

    def forward(xp, A: Array): return kernel.lu(A)

    def vjp(F, grad, needs, A_dtype, LU, pivots):
        rows, columns = LU.shape[-2:]
        k = min(rows, columns)
        permutation = F.lu_permutation(pivots, rows, A_dtype)
        lower, upper = _unit(F, LU[..., :k, :k]), F.triu(LU[..., :k, :k], 0)
        gL, gU = F.tril(grad[..., :k, :k], -1), F.triu(grad[..., :k, :k], 0)
        if rows > k:  # A = [L1; L2] U, so the second part is L2 = A2 U^-1
            below = grad[..., k:, :]
            back = adjoint_of(F, F.linalg_solve(upper, adjoint_of(F, below)))
            square = _from_parts(F, lower, upper, gL, gU - F.triu(adjoint_of(F, LU[..., k:, :]) @ back, 0))
            whole = F.constant_pad_nd(square, [0, 0, 0, rows - k], 0) + F.constant_pad_nd(back, [0, 0, k, 0], 0)
        elif columns > k:  # A = L [U1 U2], so the second part is U2 = L^-1 A2
            back = F.linalg_solve(adjoint_of(F, lower), grad[..., k:])
            square = _from_parts(F, lower, upper, gL - F.tril(back @ adjoint_of(F, LU[..., k:]), -1), gU)
            whole = F.constant_pad_nd(square, [0, columns - k], 0) + F.constant_pad_nd(back, [k, 0], 0)
        else:
            whole = _from_parts(F, lower, upper, gL, gU)
        return (permutation @ whole,)

    def jvp(F, tangents, A_dtype, LU, pivots):
        rows, columns = LU.shape[-2:]
        k = min(rows, columns)
        step = F.transpose(F.lu_permutation(pivots, rows, A_dtype), -1, -2) @ tangents[0]
        lower, upper = _unit(F, LU[..., :k, :k]), F.triu(LU[..., :k, :k], 0)
        inner = _over(F, F.linalg_solve(lower, step[..., :k, :k]), upper)  # L^-1 P^T dA U^-1 = L^-1 dL + dU U^-1
        in_lower, in_upper = lower @ F.tril(inner, -1), F.triu(inner, 0) @ upper
        if rows > k:
            below = _over(F, step[..., k:, :] - LU[..., k:, :] @ in_upper, upper)
            return F.cat([in_lower + in_upper, below], -2)
        if columns > k:
            return F.cat([in_lower + in_upper, F.linalg_solve(lower, step[..., k:] - in_lower @ LU[..., k:])], -1)
        return in_lower + in_upper


def _over(F, matrix, upper):
    """matrix @ upper^-1."""
    return F.transpose(F.linalg_solve(F.transpose(upper, -1, -2), F.transpose(matrix, -1, -2)), -1, -2)


def _unit(F, packed):
    """The unit lower triangle of packed factors."""
    diagonal = F.diagonal(packed, 0, -2, -1)
    return F.tril(packed, -1) + F.diag_embed(diagonal * 0 + 1)


def _from_parts(F, lower, upper, gL, gU):
    """The gradient of A = L U from those of its square factors."""
    inner = F.tril(adjoint_of(F, lower) @ gL, -1) + F.triu(gU @ adjoint_of(F, upper), 0)
    left = F.linalg_solve(adjoint_of(F, lower), inner)
    return adjoint_of(F, F.linalg_solve(upper, adjoint_of(F, left)))


@composite(module="linalg", name="lu_factor")
def lu_factor(A, *, pivot=True, out=None):
    """L and U of A = P L U packed in one tensor, and the row exchanges that P stands for.

    A: [*S, m, n], float or complex. Returns (LU [*S, m, n], pivots [*S, min(m, n)], int32, counted from one).
    Raises: RuntimeError for other shapes and dtypes, or without pivoting.
    """
    check_matrix("torch.linalg.lu_factor", "A", A._array)
    if not pivot:
        raise RuntimeError("linalg.lu_factor: LU without pivoting is not implemented on the CPU")
    return T.linalg_lu_packed(A)


@composite(module="linalg")
def lu_factor_ex(A, *, pivot=True, check_errors=False, out=None):
    """`linalg.lu_factor`, and for each matrix zero or the first zero on the diagonal of U, counted from one."""
    packed, pivots = lu_factor(A, pivot=pivot)
    return packed, pivots, first_zero(packed.diagonal(0, -2, -1))


@operator(module=None, batching="leading")
class first_zero:
    """The place of the first zero in the last dimension, counted from one; 0 if there is none."""

    def forward(xp, input: Index):
        zero = input == 0
        found = xp.where(zero.any(axis=-1), zero.argmax(axis=-1) + 1, 0) if zero.shape[-1] else xp.zeros(zero.shape[:-1])
        return found.astype(xp.int32)


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
