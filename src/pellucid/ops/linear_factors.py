"""LU factors with row exchanges. What is computed from them, and least squares, is in `functions/linear_factors.py`.

Other decompositions are in linear_spectra.py, equations and Cholesky factors in linear_solving.py.
"""

from __future__ import annotations

from pellucid.autograd.operator import Array, Index, composite, operator
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import check_matrix
from pellucid.kernels import factors as kernel
from pellucid.ops.linear_solving import adjoint_of

__all__ = ["lu_factor"]


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


@operator(module=None, batching="leading")
class first_zero:
    """The place of the first zero in the last dimension, counted from one; 0 if there is none."""

    def forward(xp, input: Index):
        zero = input == 0
        found = xp.where(zero.any(axis=-1), zero.argmax(axis=-1) + 1, 0) if zero.shape[-1] else xp.zeros(zero.shape[:-1])
        return found.astype(xp.int32)
