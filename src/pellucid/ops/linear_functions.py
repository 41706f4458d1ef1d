"""Functions of matrices with formulas of their own: pseudo-inverse, exponential, and what counts for a rank.

Norms, condition, powers and inverses of tensors are composed, in `functions/linear_functions.py`; decompositions are in
linear_spectra.py, equations and determinants in linear_solving.py.
"""

from __future__ import annotations

from pellucid.autograd.operator import Array, Index, operator
from pellucid.kernels import factors as kernel
from pellucid.ops.batch_places import in_front
from pellucid.ops.batches import for_each
from pellucid.ops.linear_solving import LinAlgError, adjoint_of

__all__: list[str] = []


# --- rank and pseudo-inverse ----------------------------------------------------------------------------------------


def _lined_up(F, batched: set, rank: int, **tolerances) -> list:
    """Tolerances for each matrix of each example, which have this many dimensions before those of a matrix."""
    return [in_front(F, t, rank) if name in batched else t for name, t in tolerances.items()]


@operator(module=None)
class count_above:
    """How many singular values are larger than the tolerance. values: [*S, k]; atol, rtol: broadcastable to [*S]. Returns [*S]."""

    def forward(xp, values: Index, atol: Index | None = None, rtol: Index | None = None, shape: tuple = ()):
        return (values > kernel.tolerance(values, shape, atol, rtol)).sum(axis=-1, dtype=xp.int64)

    def batch(F, size_of_batch, batched, values, atol, rtol, shape):
        values = for_each(F, values, "values" in batched, size_of_batch)
        return F.count_above(values, *_lined_up(F, batched, values.ndim - 2, atol=atol, rtol=rtol), shape)


@operator(module=None, name="linalg_pinv", node="LinalgPinvBackward0", holomorphic=False)
class _pinv:
    """The pseudo-inverse P of each matrix, given how large a singular value must be to count.

    Derivative, for constant rank: dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P (Golub and Pereyra, The
    differentiation of pseudo-inverses, 1973), its adjoint multiplied out in the order that keeps intermediate matrices small.
    """

    def forward(xp, A: Array, atol: Index | None = None, rtol: Index | None = None, hermitian: bool = False):
        if not xp.isfinite(A).all():
            raise LinAlgError("linalg.svd: The algorithm failed to converge because the input matrix contained non-finite values.")
        return kernel.inverse_by_values(A, atol, rtol, hermitian)

    def vjp_A(F, grad, A, result):
        turned, back = adjoint_of(F, result), adjoint_of(F, grad)
        if A.shape[-2] <= A.shape[-1]:
            inner = back @ result
            outer = inner @ turned
            return -adjoint_of(F, result @ inner) + outer - (A @ result) @ outer + (turned @ result) @ (back - inner @ A)
        inner = result @ back
        outer = turned @ inner
        return -adjoint_of(F, inner @ result) + (back - A @ inner) @ result @ turned + outer - (outer @ result) @ A

    def jvp_A(F, tangent, A, result):
        turned, back = adjoint_of(F, result), adjoint_of(F, tangent)
        right, left = (result @ turned) @ back, back @ (turned @ result)
        return right - right @ A @ result + left - result @ (A @ left) - result @ tangent @ result

    def batch(F, size_of_batch, batched, A, atol, rtol, hermitian):
        A = for_each(F, A, "A" in batched, size_of_batch)
        return F.linalg_pinv(A, *_lined_up(F, batched, A.ndim - 3, atol=atol, rtol=rtol), hermitian)

    def samples(make):
        yield (make(3, 2), None, None, False), {}
        yield (make(2, 3), None, None, False), {}


# --- powers and exponential -----------------------------------------------------------------------------------------


def _block_exponential(F, A, step):
    """The upper right block of exp([[A, step], [0, A]])."""
    n = A.shape[-1]
    above = F.constant_pad_nd(A, [0, n, 0, n], 0) + F.constant_pad_nd(step, [n, 0, 0, n], 0)
    return F.linalg_matrix_exp(above + F.constant_pad_nd(A, [n, 0, n, 0], 0))[..., :n, n:]


@operator(module=None, name="linalg_matrix_exp", node="LinalgMatrixExpBackward0", batching="leading")
class _matrix_exp:
    """The exponential of each matrix. Derivative: the upper right block of exp([[A^T, grad], [0, A^T]]) (Mathias, A chain rule
    for matrix functions, 1996).
    """

    def forward(xp, A: Array): return kernel.exponential(A)
    def vjp_A(F, grad, A): return _block_exponential(F, F.transpose(A, -1, -2), grad)
    def jvp_A(F, tangent, A): return _block_exponential(F, A, tangent)
    def samples(make): yield (make(3, 3),), {}
