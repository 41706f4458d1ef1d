"""Factors as LAPACK packs them: L D L^T of symmetric matrices, and Q R with Q as a product of reflectors.

Unpacked decompositions are in linear_spectra.py, L U is in linear_factors.py; forms with checks are in `functions/linear_packed.py`.
"""

from __future__ import annotations

from pellucid.autograd.operator import Array, Index, operator
from pellucid.core.matrix_checks import check_ormqr, require_lapack_type
from pellucid.kernels import factors as kernel
from pellucid.ops.batch_places import in_front
from pellucid.ops.linear_solving import adjoint_of

__all__ = ["geqrf", "ormqr"]


def _refused(name: str):
    raise RuntimeError(f"the derivative for '{name}' is not implemented. Detach its operands, or use a decomposition that has one")


# --- L D L^T ---------------------------------------------------------------------------------------------------------


@operator(module=None, name="linalg_ldl_factor_ex", node="LinalgLdlFactorExBackward0", outputs=("LD", "pivots", "info"),
          constant=("pivots", "info"), widen=False, batching="leading")  # fmt: skip
class _ldl_factor_ex:
    """L D L^T of symmetric, L D L^H of Hermitian matrices, from their lower triangles."""

    def forward(xp, A: Array, hermitian: bool):
        require_lapack_type("ldl_factor_kernel_cpu", A)
        return kernel.ldl(A, hermitian)

    def vjp(F, grad, needs): _refused("linalg_ldl_factor_ex")


@operator(module=None, name="linalg_ldl_solve", node="LinalgLdlSolveBackward0", widen=False)
class _ldl_solve:
    """X with A X = B from the factors of A, matrix by matrix."""

    def forward(xp, LD: Array, pivots: Index, B: Array, hermitian: bool): return kernel.ldl_solved(LD, pivots, B, hermitian)
    def vjp(F, grad, needs): _refused("linalg_ldl_solve")

    def batch(F, batched, LD, pivots, B, hermitian):
        rank = max(LD.ndim - ("LD" in batched), B.ndim - ("B" in batched))
        LD, B = (in_front(F, t, rank) if name in batched else t for name, t in (("LD", LD), ("B", B)))
        return F.linalg_ldl_solve(LD, in_front(F, pivots, rank - 1) if "pivots" in batched else pivots, B, hermitian)


# --- reflectors ------------------------------------------------------------------------------------------------------


@operator(method=True, outputs=("a", "tau"), widen=False, batching="leading")
class geqrf:
    """A = Q R with Q as reflectors: R on and above the diagonal of `a`, below it column by column the vectors v of the reflectors
    I - tau v v^H whose product is Q (a one on the diagonal is understood); see `linalg.householder_product` and `ormqr`.

    input: [*S, m, n], float or complex. Returns (a [*S, m, n], tau [*S, min(m, n)]). It has no derivative.
    Raises: RuntimeError for fewer than two dimensions, NotImplementedError for another dtype.
    """

    def forward(xp, input: Array):
        if input.ndim < 2:
            raise RuntimeError(f"torch.geqrf: input must have at least 2 dimensions. Got shape {list(input.shape)}")
        require_lapack_type("geqrf_cpu", input)
        return kernel.qr(input)

    def vjp(F, grad, needs): _refused("geqrf")


@operator(method=True, holomorphic=False, widen=False, batching="leading")
class ormqr:
    """Q `other`, or Q^H `other` if `transpose`, or from the right if not `left`; Q is the product of reflectors that `geqrf` gave.

    input: [*S, m, n]; tau: [*S, k], k = min(m, n); other: [*S, m, p], or [*S, p, m] from the right. Returns the shape of other.

    Raises:
        RuntimeError: shapes or dtypes that do not fit.
    """

    def forward(xp, input: Array, tau: Array, other: Array, left: bool = True, transpose: bool = False):
        check_ormqr(input, tau, other, left)
        return kernel.reflected(input, tau, other, left, transpose)

    def vjp(F, grad, needs, input, tau, other, left, transpose):
        back = F.ormqr(input, tau, grad, left, not transpose) if needs[2] else None
        if not (needs[0] or needs[1]) or 0 in tau.shape:
            return None, None, back
        if not left:  # the adjoint of the equation has Q on the left
            grad, other, transpose = adjoint_of(F, grad), adjoint_of(F, other), not transpose
        return (*_reflector_gradients(F, grad, input, tau, other, transpose), back)

    def samples(make):
        for left, transpose in ((True, False), (True, True), (False, False), (False, True)):
            yield (make(4, 3), make(3, low=0.5), make(*((4, 2) if left else (2, 4))), left, transpose), {}
        yield (make(2, 2, 3), make(2, 2), make(2, 2, 2), True, False), {}


def _reflector_gradients(F, grad, input, tau, other, transpose: bool):
    """The gradients of Q `other` with respect to the vectors and the factors of the reflectors.

    Q = I - V T V^H with the vectors as columns of V and T^-1 = diag(1 / tau) + U, U = triu(V^H V, 1) (Schreiber and Van Loan,
    1989). As tau may be zero, T is computed as W^-1 diag(tau) with W = I + diag(tau) U.
    """
    k, columns = tau.shape[-1], input.shape[-1]
    V = F.tril(input[..., :k], -1) + _eye(F, input[..., :k])
    U, factors = F.triu(adjoint_of(F, V) @ V, 1), F.unsqueeze(tau, -1)
    W = factors * U + _eye(F, U)
    T = F.linalg_solve(W, F.diag_embed(tau))
    inner = adjoint_of(F, T) if transpose else T
    left, right = adjoint_of(F, V) @ grad, adjoint_of(F, V) @ other
    gV = -(grad @ adjoint_of(F, inner @ right) + other @ adjoint_of(F, adjoint_of(F, inner) @ left))
    gT = -(right @ adjoint_of(F, left) if transpose else left @ adjoint_of(F, right))
    solved = F.linalg_solve(adjoint_of(F, W), gT)
    gW = -(solved @ adjoint_of(F, T))
    gtau = F.diagonal(solved, 0, -2, -1) + F.sum_dim(gW * F.conj(U), (-1,), False)
    gU = F.triu(F.conj(factors) * gW, 1)
    gV = gV + V @ (gU + adjoint_of(F, gU))
    return F.constant_pad_nd(F.tril(gV, -1), [0, columns - k], 0), gtau


def _eye(F, like):
    """Ones on the diagonal of a matrix of that shape."""
    return F.tril(F.triu(F.zeros_as(like) + 1, 0), 0)
