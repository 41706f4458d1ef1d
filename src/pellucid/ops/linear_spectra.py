"""Decompositions: QR, singular values, eigenvalues and eigenvectors.

Derivatives hold where the decomposition is unique up to signs or phases; they follow from differentiating the defining
equations (Giles, An extended collection of matrix derivative results, 2008; Townsend, Differentiating the singular value
decomposition, 2016). Solving equations is in linear_solving.py.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, composite, operator
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import check_matrix, check_square
from pellucid.core.matrix_checks import checked_uplo
from pellucid.ops.linear_solving import LinAlgError, adjoint_of, is_complex

__all__ = ["eig", "eigh", "qr", "svd"]


def _finite(function: str, A: np.ndarray) -> None:
    if A.size and not np.isfinite(A).all():
        raise LinAlgError(f"{function}: The algorithm failed to converge because the input matrix contained non-finite values.")


def _diagonal_of(F, square):
    return F.diagonal(square, 0, -2, -1)


def _gaps(F, values):
    """The matrix v_j - v_i, with ones on the diagonal."""
    return F.unsqueeze(values, -2) - F.unsqueeze(values, -1) + F.diag_embed(values * 0 + 1)


# --- singular values ------------------------------------------------------------------------------------------------


@operator(module=None, name="linalg_svd", node="LinalgSvdBackward0", outputs=("U", "S", "Vh"), holomorphic=False,
          batching="leading")  # fmt: skip
class _svd:
    """A = U diag(S) Vh. Derivative: U (skew(U^H gU) / E S + S skew(V^H gV) / E + diag(gS)) Vh and what lies outside the spaces
    that U and V span, with E_ij = s_j^2 - s_i^2 and skew(X) = X - X^H.
    """

    def forward(xp, A: Array, full_matrices: bool):
        _finite("linalg.svd", A)
        return tuple(xp.linalg.svd(A, full_matrices=full_matrices))

    def vjp(F, grad, needs, U, S, Vh):
        gU, gS, gVh = grad
        k = S.shape[-1]
        U, Vh = U[..., :k], Vh[..., :k, :]
        gU, gVh = None if gU is None else gU[..., :k], None if gVh is None else gVh[..., :k, :]
        if gU is None and gVh is None:
            return (U @ (F.unsqueeze(gS, -1) * Vh),)
        columns, square = F.unsqueeze(S, -2), _gaps(F, S * S)
        middle = None if gS is None else F.diag_embed(gS)
        if gU is not None:
            inner = adjoint_of(F, U) @ gU
            inner = inner - adjoint_of(F, inner)
            part = inner / square * columns
            if is_complex(U):  # the phases of U and V turn together
                part = part + F.diag_embed(_diagonal_of(F, inner) / (2 * S))
            middle = part if middle is None else middle + part
        if gVh is not None:
            inner = Vh @ adjoint_of(F, gVh)
            part = F.unsqueeze(S, -1) * ((inner - adjoint_of(F, inner)) / square)
            middle = part if middle is None else middle + part
        made = U @ middle @ Vh
        if gU is not None and U.shape[-2] > k:
            scaled = gU / columns
            made = made + (scaled - U @ (adjoint_of(F, U) @ scaled)) @ Vh
        if gVh is not None and Vh.shape[-1] > k:
            scaled = gVh / F.unsqueeze(S, -1)
            made = made + U @ (scaled - (scaled @ adjoint_of(F, Vh)) @ Vh)
        return (made,)

    def jvp(F, tangents, U, S, Vh):
        (step,), k, more = tangents, S.shape[-1], (U.shape[-1], Vh.shape[-2])
        U, V = U[..., :k], adjoint_of(F, Vh[..., :k, :])
        inner, columns, rows = adjoint_of(F, U) @ step @ V, F.unsqueeze(S, -2), F.unsqueeze(S, -1)
        values, square = _diagonal_of(F, inner), _gaps(F, S * S)
        back, apart = adjoint_of(F, inner), 1 - F.diag_embed(S * 0 + 1)
        in_U = apart * (inner * columns + rows * back) / square
        in_V = apart * (rows * inner + back * columns) / square
        if is_complex(U):  # what turns both phases is counted as U's
            in_U = in_U + F.diag_embed((values - F.conj(values)) * 0.5 / S)
        moved_U, moved_V = U @ in_U, V @ in_V
        if U.shape[-2] > k:
            moved_U = moved_U + (step @ V - U @ inner) / columns
        if V.shape[-2] > k:
            moved_V = moved_V + (adjoint_of(F, step) @ U - V @ back) / columns
        # columns that complete U and V to square matrices count as constant
        moved_U, moved_V = (F.constant_pad_nd(m, [0, n - k], 0) for m, n in zip((moved_U, moved_V), more, strict=True))
        return moved_U, values, adjoint_of(F, moved_V)


@composite(module="linalg", name="svd")
def svd(A, full_matrices=True, *, driver=None, out=None):
    """Singular value decomposition A = U diag(S) Vh.

    A: [*S, m, n], float or complex. Returns (U [*S, m, m], S [*S, k] real and descending, Vh [*S, n, n]), k = min(m, n); U and
    Vh have only k columns or rows without `full_matrices`. Raises: RuntimeError for other shapes and dtypes, LinAlgError for
    values that are not finite.
    """
    check_matrix("linalg.svd", "A", A._array)
    return T.linalg_svd(A, full_matrices)


# --- eigenvalues ----------------------------------------------------------------------------------------------------


@operator(module=None, name="linalg_eigh", node="LinalgEighBackward0", outputs=("eigenvalues", "eigenvectors"), holomorphic=False,
          batching="leading")  # fmt: skip
class _eigh:
    """Hermitian A = V diag(L) V^H. Derivative: V (V^H gV / E + diag(gL)) V^H, with E_ij = l_j - l_i, nothing on its diagonal."""

    def forward(xp, A: Array, UPLO: str): return tuple(xp.linalg.eigh(A, UPLO))

    def vjp(F, grad, needs, eigenvalues, eigenvectors):
        values, vectors = grad
        adjoint = adjoint_of(F, eigenvectors)
        if vectors is None:
            return (eigenvectors @ (F.unsqueeze(values, -1) * adjoint),)
        middle = (adjoint @ vectors) / _gaps(F, eigenvalues)
        middle = middle - F.diag_embed(_diagonal_of(F, middle))
        if values is not None:
            middle = middle + F.diag_embed(values)
        return (eigenvectors @ middle @ adjoint,)

    def jvp(F, tangents, eigenvalues, eigenvectors):
        inner = adjoint_of(F, eigenvectors) @ tangents[0] @ eigenvectors
        values, turn = _diagonal_of(F, inner), inner / _gaps(F, eigenvalues)
        return values, eigenvectors @ (turn - F.diag_embed(_diagonal_of(F, turn)))


@composite(module="linalg")
def eigh(A, UPLO="L", *, out=None):
    """Eigenvalues and eigenvectors of Hermitian matrices, of which one triangle is read.

    A: [*S, n, n], float or complex. Returns (eigenvalues [*S, n], real and ascending, eigenvectors [*S, n, n], as columns).
    Raises: RuntimeError for other shapes and dtypes.
    """
    check_square("linalg.eigh", "A", A._array)
    return T.linalg_eigh(A, checked_uplo(UPLO))


@operator(module=None, name="linalg_eig", node="LinalgEigBackward0", outputs=("eigenvalues", "eigenvectors"), holomorphic=False,
          batching="leading")  # fmt: skip
class _eig:
    """A V = V diag(L), columns of V of length one. Derivative: V^-H (diag(gL) + (V^H gV - V^H V diag(Re V^H gV)) / E*) V^H, with
    E_ij = l_j - l_i, nothing on its diagonal; the second term keeps the columns' length.
    """

    def forward(xp, A: Array):
        if A.size and not np.isfinite(A).all():
            raise RuntimeError("torch.linalg.eig: input tensor should not contain infs or NaNs.")
        kind = np.result_type(A.dtype, np.complex64)
        values, vectors = xp.linalg.eig(A)
        return values.astype(kind), vectors.astype(kind)

    def vjp(F, grad, needs, A_dtype, eigenvalues, eigenvectors):
        values, vectors = grad
        adjoint, middle = adjoint_of(F, eigenvectors), None
        if vectors is not None:
            inner = adjoint @ vectors
            length = _diagonal_of(F, inner)
            length = (length + F.conj(length)) * 0.5
            middle = (inner - (adjoint @ eigenvectors) * F.unsqueeze(length, -2)) / F.conj(_gaps(F, eigenvalues))
            middle = middle - F.diag_embed(_diagonal_of(F, middle))
        if values is not None:
            middle = F.diag_embed(values) if middle is None else middle + F.diag_embed(values)
        made = F.linalg_solve(adjoint, middle @ adjoint)
        return (made if A_dtype.kind == "c" else F.real_copy(made),)

    def jvp(F, tangents, A_dtype, eigenvalues, eigenvectors):
        (step,) = tangents
        step = step if A_dtype.kind == "c" else F.complex(step, F.zeros_as(step))
        inner = F.linalg_solve(eigenvectors, step @ eigenvectors)
        values, turn = _diagonal_of(F, inner), inner / _gaps(F, eigenvalues)
        moved = eigenvectors @ (turn - F.diag_embed(_diagonal_of(F, turn)))
        length = _real_diagonal(F, adjoint_of(F, eigenvectors) @ moved)
        return values, moved - eigenvectors * F.unsqueeze(length, -2)

@composite(module="linalg")
def eig(A, *, out=None):
    """Eigenvalues and eigenvectors of square matrices, both complex.

    A: [*S, n, n], float or complex. Returns (eigenvalues [*S, n], eigenvectors [*S, n, n], as columns).
    Raises: RuntimeError for other shapes and dtypes, or values that are not finite.
    """
    check_square("linalg.eig", "A", A._array)
    return T.linalg_eig(A)


# --- QR -------------------------------------------------------------------------------------------------------------


@operator(module=None, name="linalg_qr", node="LinalgQrBackward0", outputs=("Q", "R"), holomorphic=False)
class _qr:
    """A = Q R. Derivative for as many rows as columns or more: (gQ + Q sym(triu(gR R^H - Q^H gQ))) R^-H, where sym(X) = X + X^H
    with the diagonal counted once. For fewer rows A = [X Y], R = [U W], so X = Q U and W = Q^H Y follow from it.
    """

    def forward(xp, A: Array, mode: str):
        if mode == "r":
            return xp.zeros((0,), A.dtype), xp.linalg.qr(A, "r")
        return tuple(xp.linalg.qr(A, mode))

    def vjp(F, grad, needs, A_shape, Q, R, mode):
        gQ, gR = grad
        rows, columns = A_shape[-2:]
        _check_differentiable(mode, rows, columns)
        if rows >= columns:
            return (_qr_square(F, Q, R, gQ, gR),)
        U, W = R[..., :rows], R[..., rows:]
        gU, gW = (None, None) if gR is None else (gR[..., :rows], gR[..., rows:])
        if gW is None:
            return (F.constant_pad_nd(_qr_square(F, Q, U, gQ, gU), [0, columns - rows], 0),)
        back = (Q @ W) @ adjoint_of(F, gW)
        left = _qr_square(F, Q, U, back if gQ is None else gQ + back, gU)
        return (F.constant_pad_nd(left, [0, columns - rows], 0) + F.constant_pad_nd(Q @ gW, [rows, 0], 0),)

    def jvp(F, tangents, A_shape, Q, R, mode):
        (step,), (rows, columns) = tangents, A_shape[-2:]
        _check_differentiable(mode, rows, columns)
        k = min(rows, columns)
        U = R[..., :k]
        scaled = adjoint_of(F, F.linalg_solve(adjoint_of(F, U), adjoint_of(F, step[..., :k])))  # dX U^-1 = dQ + Q dU U^-1
        inner = adjoint_of(F, Q) @ scaled
        turn = F.tril(inner, -1) - adjoint_of(F, F.tril(inner, -1))
        if is_complex(Q):
            turn = turn + F.diag_embed(_diagonal_of(F, inner) - _real_diagonal(F, inner))
        moved, in_U = scaled - Q @ (inner - turn), (inner - turn) @ U
        if columns == k:
            return moved, in_U
        in_W = adjoint_of(F, moved) @ (Q @ R[..., k:]) + adjoint_of(F, Q) @ step[..., k:]
        return moved, F.cat([in_U, in_W], -1)

    def batch(F, size_of_batch, A, mode):
        Q, R = F.linalg_qr(A, mode)
        return (F.expand(F.unsqueeze(Q, 0), (size_of_batch, 0)) if mode == "r" else Q), R


def _check_differentiable(mode: str, rows: int, columns: int) -> None:
    if mode == "r":
        raise RuntimeError("The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please use "
                           "linalg.qr(A, mode='reduced') if you are going to require gradients.")  # fmt: skip
    if mode == "complete" and rows > columns:
        raise RuntimeError("The QR decomposition is not differentiable when mode='complete' and nrows > ncols")


def _qr_square(F, Q, R, gQ, gR):
    inner = None if gR is None else gR @ adjoint_of(F, R)
    if gQ is not None:
        part = adjoint_of(F, Q) @ gQ
        inner = -part if inner is None else inner - part
    upper = F.triu(inner, 0)
    made = Q @ (upper + adjoint_of(F, F.triu(inner, 1)))
    if is_complex(Q):  # real diagonals only: phases are fixed by R
        made = Q @ (F.triu(inner, 1) + adjoint_of(F, F.triu(inner, 1)) + F.diag_embed(_real_diagonal(F, inner)))
    if gQ is not None:
        made = made + gQ
    return adjoint_of(F, F.linalg_solve(R, adjoint_of(F, made)))


def _real_diagonal(F, square):
    diagonal = _diagonal_of(F, square)
    return (diagonal + F.conj(diagonal)) * 0.5


@composite(module="linalg", name="qr")
def qr(A, mode="reduced", *, out=None):
    """A = Q R with orthonormal columns in Q and an upper triangular R.

    A: [*S, m, n], float or complex; mode: "reduced" (Q [*S, m, k], R [*S, k, n], k = min(m, n)), "complete" (Q [*S, m, m],
    R [*S, m, n]) or "r" (no Q). Raises: RuntimeError for other shapes, dtypes and modes.
    """
    check_matrix("linalg.qr", "A", A._array)
    if mode not in ("reduced", "complete", "r"):
        raise RuntimeError(f"qr received unrecognized mode '{mode}' but expected one of 'reduced' (default), 'r', or 'complete'")
    return T.linalg_qr(A, mode)
