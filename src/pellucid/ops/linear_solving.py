"""Linear equations: inverse, determinant, solve and Cholesky factors.

Formulas are those of Giles, An extended collection of matrix derivative results, 2008, unless another source is given.
Triangular equations and what follows from Cholesky factors are in `functions/linear_solving.py`, decompositions into singular
values or eigenvalues in linear_spectra.py.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import PUBLIC, Array, Index, composite, operator
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import check_square, written_to
from pellucid.core.matrix_checks import check_solve, is_vector
from pellucid.kernels import factors as kernel
from pellucid.ops.batches import side_by_side
from pellucid.ops.families import by_tensor

__all__ = ["LinAlgError", "adjoint_of", "cholesky", "det", "inv", "slogdet", "solve"]


class LinAlgError(RuntimeError):
    """A matrix for which a result of linear algebra does not exist."""


PUBLIC.setdefault("linalg", {})["LinAlgError"] = LinAlgError


# --- shared with the other families of linear algebra ---------------------------------------------------------------


def adjoint_of(F, matrix):
    """The conjugate transpose, in a formula."""
    return F.conj(F.transpose(matrix, -1, -2))


# --- inverse and equations ------------------------------------------------------------------------------------------


def _of_batch(A: np.ndarray, find) -> str:
    """Which matrix of a batch an error is about."""
    return "" if A.ndim == 2 else f"(Batch element {find(A.reshape(-1, *A.shape[-2:]))}): "


@operator(module=None, name="linalg_inv", node="LinalgInvExBackward0", batching="leading")
class _inv:
    """The inverse of each matrix. Derivative, from the result R: -R^T grad R^T."""

    def forward(xp, A: Array):
        try:
            return xp.linalg.inv(A)
        except np.linalg.LinAlgError:
            which = _of_batch(A, kernel.first_singular)
            raise LinAlgError(f"linalg.inv: {which}The diagonal element 1 is zero, the inversion could not be completed because the "
                              "input matrix is singular.") from None  # fmt: skip

    def vjp_A(F, grad, result):
        turned = F.transpose(result, -1, -2)
        return -(turned @ grad @ turned)

    def jvp_A(F, tangent, result): return -(result @ tangent @ result)

    def samples(make):
        yield (make(3, 3) + 4 * np.eye(3),), {}
        yield (make(2, 2, 2) + 4 * np.eye(2),), {}


@composite(module="linalg")
def inv(A, *, out=None):
    """The inverse of square matrices.

    A: [*S, n, n], float or complex. Returns [*S, n, n].
    Raises: RuntimeError for other shapes and dtypes, LinAlgError for a singular matrix.
    """
    check_square("linalg.inv", "A", A._array)
    return written_to(T.linalg_inv(A), out)


by_tensor(inv, "inverse")


@operator(module=None, batching="leading")
class failures:
    """For each matrix 0, or its size where it is singular."""

    def forward(xp, A: Index):
        singular = xp.linalg.matrix_rank(A) < A.shape[-1] if A.size else xp.zeros(A.shape[:-2], bool)
        return xp.where(singular, A.shape[-1], 0).astype(xp.int32)


@operator(module=None, name="linalg_solve", node="LinalgSolveExBackward0")
class _solve:
    """X with A X = B, for matrices B. Derivatives, with H = A^-T grad: H for B, -H X^T for A."""

    def forward(xp, A: Array, B: Array):
        try:
            return xp.linalg.solve(A, B)
        except np.linalg.LinAlgError:
            raise LinAlgError("torch.linalg.solve: The solver failed because the input matrix is singular.") from None

    def vjp_A(F, grad, A, result, A_shape):
        back = F.linalg_solve(F.transpose(A, -1, -2), grad) @ F.transpose(result, -1, -2)
        return -(back if tuple(back.shape) == tuple(A_shape) else F.sum_to_size(back, tuple(A_shape)))

    def vjp_B(F, grad, A, B_shape):
        back = F.linalg_solve(F.transpose(A, -1, -2), grad)
        return back if tuple(back.shape) == tuple(B_shape) else F.sum_to_size(back, tuple(B_shape))

    def jvp(F, tangents, A, result):
        matrix, right = tangents
        if matrix is not None:
            right = -(matrix @ result) if right is None else right - matrix @ result
        return F.linalg_solve(A, right)

    def batch(F, batched, A, B): return F.linalg_solve(*side_by_side(F, batched, A=A, B=B))

    def samples(make):
        yield (make(3, 3) + 4 * np.eye(3), make(3, 2)), {}
        yield (make(2, 2, 2) + 4 * np.eye(2), make(2, 2, 3)), {}
        yield (make(2, 2, 2) + 4 * np.eye(2), make(2, 3)), {}
        yield (make(2, 2) + 4 * np.eye(2), make(2, 2, 3)), {}


@composite(module="linalg")
def solve(A, B, *, left=True, out=None):
    """X with A X = B (or X A = B for left=False).

    A: [*S, n, n]; B: [*S, n], [*S, n, k] or [n], of one dtype, batches broadcast. Returns the shape of B.
    Raises: RuntimeError for shapes and dtypes that do not fit, LinAlgError for a singular matrix.
    """
    check_square("linalg.solve", "A", A._array)
    vector = is_vector(A._array, B._array)
    check_solve("linalg.solve", A._array, B._array, left, vector)
    if vector:
        return written_to(T.linalg_solve(A, B.unsqueeze(-1)).squeeze(-1), out)
    if not left:
        return written_to(T.linalg_solve(A.mT, B.mT).mT, out)
    return written_to(T.linalg_solve(A, B), out)


# --- determinants ---------------------------------------------------------------------------------------------------


@operator(module=None, name="linalg_det", node="LinalgDetBackward0", batching="leading")
class _det:
    """The determinant of each matrix. Derivative: grad times the matrix of cofactors."""

    def forward(xp, A: Array): return xp.linalg.det(A)
    def vjp_A(F, grad, A): return F.unsqueeze(F.unsqueeze(grad, -1), -1) * F.cofactors(A)
    def jvp_A(F, tangent, A): return F.sum_dim(F.cofactors(A) * tangent, (-2, -1), False)

    def samples(make):
        yield (make(3, 3) + 2 * np.eye(3),), {}
        yield (make(2, 2, 2),), {}


@operator(module=None, batching="leading")
class cofactors:
    """The matrix of cofactors, det(A) A^-T where that exists.

    Derivative: d (<R^T, grad> R^T - R^T grad^T R^T), with d = det(A), R = A^-1.
    """

    def forward(xp, input: Array): return kernel.cofactors(input)
    def vjp_input(F, grad, input): return _cofactor_map(F, grad, input)
    def jvp_input(F, tangent, input): return _cofactor_map(F, tangent, input)  # it is its own transpose


def _cofactor_map(F, matrix, input):
    turned = F.transpose(F.linalg_inv(input), -1, -2)
    inner = F.sum_dim(turned * matrix, (-2, -1), True)
    back = inner * turned - turned @ F.transpose(matrix, -1, -2) @ turned
    return F.unsqueeze(F.unsqueeze(F.linalg_det(input), -1), -1) * back


@composite(module="linalg")
def det(A, *, out=None):
    """The determinant of square matrices.

    A: [*S, n, n], float or complex. Returns [*S]. Raises: RuntimeError for other shapes and dtypes.
    """
    check_square("linalg.det", "A", A._array)
    return written_to(T.linalg_det(A), out)


by_tensor(det)


@operator(module=None, name="linalg_slogdet", node="LinalgSlogdetBackward0", outputs=("sign", "logabsdet"), holomorphic=False,
          batching="leading")  # fmt: skip
class _slogdet:
    """Sign and logarithm of the absolute value of each determinant.

    Derivative: (g + i Im(conj(sign) g_sign)) A^-H, as d log det A = tr(A^-1 dA), and the sign turns by its imaginary part.
    """

    def forward(xp, A: Array):
        sign, value = xp.linalg.slogdet(A)
        return xp.asarray(sign), xp.asarray(value)

    def vjp(F, grad, needs, A, sign):
        turn, size = grad
        back = None if size is None else F.unsqueeze(F.unsqueeze(size, -1), -1) * F.conj(F.transpose(F.linalg_inv(A), -1, -2))
        if turn is None or A.dtype in (np.float32, np.float64) or not is_complex(A):
            return (back,)
        angle = F.conj(sign) * turn
        angle = (angle - F.conj(angle)) * 0.5  # i times the imaginary part
        rest = F.unsqueeze(F.unsqueeze(angle, -1), -1) * F.conj(F.transpose(F.linalg_inv(A), -1, -2))
        return (rest if back is None else back + rest,)

    def jvp(F, tangents, A, sign):
        turn = F.sum_dim(F.transpose(F.linalg_inv(A), -1, -2) * tangents[0], (-2, -1), False)  # d log det A
        return (turn - F.conj(turn)) * 0.5 * sign if is_complex(A) else F.zeros_as(sign), turn

    def samples(make): yield (make(3, 3) + 2 * np.eye(3),), {}


def is_complex(value) -> bool:
    return getattr(value, "_array", value).dtype.kind == "c"


@composite(module="linalg")
def slogdet(A, *, out=None):
    """Sign and logarithm of the absolute value of the determinant of square matrices.

    A: [*S, n, n], float or complex. Returns (sign [*S], logabsdet [*S], real). Raises: RuntimeError for other shapes and dtypes.
    """
    check_square("linalg.slogdet", "A", A._array)
    return T.linalg_slogdet(A)


by_tensor(slogdet)


# --- Cholesky -------------------------------------------------------------------------------------------------------


@operator(module=None, name="linalg_cholesky", node="LinalgCholeskyExBackward0", holomorphic=False, batching="leading")
class _cholesky:
    """The lower triangular L with A = L L^H, from the lower or the upper triangle of A.

    Derivative: L^-H Φ(L^H grad) L^-1, where Φ copies half the lower triangle into the upper one (Murray, Differentiation of
    the Cholesky decomposition, 2016).
    """

    def forward(xp, A: Array, upper: bool):
        try:
            return kernel.cholesky(A, upper)
        except np.linalg.LinAlgError:
            which = _of_batch(A, kernel.first_not_positive)
            raise LinAlgError(f"linalg.cholesky: {which}The factorization could not be completed because the input is not "
                              "positive-definite (a leading minor is not positive-definite).") from None  # fmt: skip

    def vjp_A(F, grad, result):
        upper = adjoint_of(F, result)
        inner = upper @ grad
        half = (F.tril(inner, 0) + adjoint_of(F, F.tril(inner, -1))) * 0.5
        left = F.linalg_solve(upper, half)
        return adjoint_of(F, F.linalg_solve(upper, adjoint_of(F, left)))

    def jvp_A(F, tangent, result):
        inner = adjoint_of(F, F.linalg_solve(result, adjoint_of(F, F.linalg_solve(result, tangent))))
        return result @ ((F.tril(inner, 0) + F.tril(adjoint_of(F, inner), -1)) * 0.5)  # both triangles count alike


@composite(module="linalg")
def cholesky(A, *, upper=False, out=None):
    """The triangular factor L of positive-definite matrices A = L L^H (or U with A = U^H U).

    A: [*S, n, n], float or complex; one triangle is read. Returns [*S, n, n].
    Raises: RuntimeError for other shapes and dtypes, LinAlgError for a matrix that is not positive-definite.
    """
    check_square("linalg.cholesky", "A", A._array)
    made = T.linalg_cholesky(A, upper)
    return written_to(made.mH if upper else made, out)
