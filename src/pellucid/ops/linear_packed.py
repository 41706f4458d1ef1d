"""Factors as LAPACK packs them: L D L^T of symmetric matrices, and Q R with Q as a product of reflectors.

Unpacked decompositions are in linear_spectra.py, L U is in linear_factors.py; `lu` here is its older name.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np

from pellucid.autograd.operator import Array, Index, composite, operator
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import check_square, every_value, same_dtype, scalar_name, written_to
from pellucid.core.tensor import Tensor
from pellucid.kernels import factors as kernel
from pellucid.ops.batch_places import in_front
from pellucid.ops.linear_factors import lu_factor_ex
from pellucid.ops.linear_solving import LinAlgError, adjoint_of

__all__ = ["geqrf", "lu", "ormqr"]


def _require_lapack_type(name: str, array: np.ndarray) -> None:
    if array.dtype.kind not in "fc" or array.dtype.itemsize < 4:
        raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_name(array)}': it takes float32, float64 and complex tensors")


def _refused(name: str):
    raise RuntimeError(f"the derivative for '{name}' is not implemented. Detach its operands, or use a decomposition that has one")


# --- L D L^T ---------------------------------------------------------------------------------------------------------


@operator(module=None, name="linalg_ldl_factor_ex", node="LinalgLdlFactorExBackward0", outputs=("LD", "pivots", "info"),
          constant=("pivots", "info"), widen=False, batching="leading")  # fmt: skip
class _ldl_factor_ex:
    """L D L^T of symmetric, L D L^H of Hermitian matrices, from their lower triangles."""

    def forward(xp, A: Array, hermitian: bool):
        _require_lapack_type("ldl_factor_kernel_cpu", A)
        return kernel.ldl(A, hermitian)

    def vjp(F, grad, needs): _refused("linalg_ldl_factor_ex")


class LDLFactor(NamedTuple):
    """What `linalg.ldl_factor` returns."""

    LD: Tensor
    pivots: Tensor


def _check_info(info: Tensor, function: str) -> None:
    if (found := every_value(info)).any():
        raise LinAlgError(f"{function}: The factorization has a zero at position {found[found != 0][0]} of the diagonal of D: the matrix "
                          "is singular")  # fmt: skip


@composite(module="linalg")
def ldl_factor_ex(A, *, hermitian=False, check_errors=False, out=None):
    """`linalg.ldl_factor`, and for each matrix zero or the first zero on the diagonal of D, counted from one."""
    check_square("torch.linalg.ldl_factor_ex", "A", A._array)
    made = T.linalg_ldl_factor_ex(A, hermitian)
    if check_errors:
        _check_info(made.info, "torch.linalg.ldl_factor_ex")
    return made if out is None else type(made)(*(written_to(m, o) for m, o in zip(made, out, strict=True)))


@composite(module="linalg")
def ldl_factor(A, *, hermitian=False, out=None):
    """A = L D L^T (L D L^H if `hermitian`): L unit lower triangular with rows exchanged, D of blocks of one or two rows.

    A: [*S, n, n], float or complex; only its lower triangle is read. Returns (LD [*S, n, n], pivots [*S, n]): L below D in one
    array, and which rows were exchanged, negative in a block of two, as LAPACK's sytrf and hetrf give them. It has no derivative.

    Raises:
        RuntimeError: other shapes and dtypes. LinAlgError: a zero on the diagonal of D.
    """
    check_square("torch.linalg.ldl_factor_ex", "A", A._array)
    LD, pivots, info = T.linalg_ldl_factor_ex(A, hermitian)
    _check_info(info, "torch.linalg.ldl_factor")
    return LDLFactor(LD, pivots) if out is None else LDLFactor(written_to(LD, out[0]), written_to(pivots, out[1]))


@operator(module=None, name="linalg_ldl_solve", node="LinalgLdlSolveBackward0", widen=False)
class _ldl_solve:
    """X with A X = B from the factors of A, matrix by matrix."""

    def forward(xp, LD: Array, pivots: Index, B: Array, hermitian: bool): return kernel.ldl_solved(LD, pivots, B, hermitian)
    def vjp(F, grad, needs): _refused("linalg_ldl_solve")

    def batch(F, batched, LD, pivots, B, hermitian):
        rank = max(LD.ndim - ("LD" in batched), B.ndim - ("B" in batched))
        LD, B = (in_front(F, t, rank) if name in batched else t for name, t in (("LD", LD), ("B", B)))
        return F.linalg_ldl_solve(LD, in_front(F, pivots, rank - 1) if "pivots" in batched else pivots, B, hermitian)


@composite(module="linalg")
def ldl_solve(LD, pivots, B, *, hermitian=False, out=None):
    """X with A X = B, from what `linalg.ldl_factor` gave for A.

    LD: [*S, n, n]; pivots: [*S, n], integers; B: [*R, n, k], with *R and *S broadcastable. Returns X [*, n, k]. It has no derivative.

    Raises:
        RuntimeError: shapes or dtypes that do not fit.
    """
    name, packed, right = "torch.linalg.ldl_solve", LD._array, B._array
    check_square(name, "A", packed)
    if right.ndim < 2:
        raise IndexError(f"Dimension out of range: {name} takes matrices B [*, n, k], got shape {list(right.shape)}")
    if right.shape[-2] != packed.shape[-1]:
        raise RuntimeError(f"Incompatible matrix sizes for {name}: each A matrix is {packed.shape[-1]} by {packed.shape[-1]} but "
                           f"each b matrix is {right.shape[-2]} by {right.shape[-1]}")
    if pivots._array.shape != packed.shape[:-1]:
        raise RuntimeError(f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but got pivots with shape "
                           f"{list(pivots.shape)} instead: LD has shape {list(packed.shape)}")
    if pivots._array.dtype.kind not in "iu":
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {scalar_name(pivots._array)}")
    same_dtype(right, packed, "Expected b and A to have the same dtype, but found b of type {a} and A of type {b} instead")
    return written_to(T.linalg_ldl_solve(LD, pivots, B, hermitian), out)


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
        _require_lapack_type("geqrf_cpu", input)
        return kernel.qr(input)

    def vjp(F, grad, needs): _refused("geqrf")


def _check_ormqr(a: np.ndarray, tau: np.ndarray, other: np.ndarray, left: bool) -> None:
    side = -2 if left else -1
    for name, array in (("input", a), ("other", other)):
        if array.ndim < 2:
            raise RuntimeError(f"torch.ormqr: {name} must have at least 2 dimensions. Got shape {list(array.shape)}")
    shapes = f": input {list(a.shape)}, tau {list(tau.shape)}, other {list(other.shape)}"
    if tau.shape[-1] != min(other.shape[side], a.shape[-1]):
        raise RuntimeError(f"torch.ormqr: tau.shape[-1] must be equal to min(other.shape[{side}], input.shape[-1]){shapes}")
    if other.shape[side] != a.shape[-2]:
        raise RuntimeError(f"torch.ormqr: other.shape[{side}] must be equal to input.shape[-2]{shapes}")
    if tau.ndim != a.ndim - 1 or tau.shape[:-1] != a.shape[:-2]:
        raise RuntimeError(f"torch.ormqr: Expected tau to have one dimension less than input and the same batches{shapes}")
    if other.ndim != a.ndim or other.shape[:-2] != a.shape[:-2]:
        raise RuntimeError(f"torch.ormqr: Expected other to have the same number of dimensions as input and the same batches{shapes}")
    for name, array in (("tau", tau), ("other", other)):
        same_dtype(a, array, f"torch.ormqr: Expected input and {name} to have the same dtype, but got {{a}} and {{b}}")
    _require_lapack_type("ormqr_cpu", a)


@operator(method=True, holomorphic=False, widen=False, batching="leading")
class ormqr:
    """Q `other`, or Q^H `other` if `transpose`, or from the right if not `left`; Q is the product of reflectors that `geqrf` gave.

    input: [*S, m, n]; tau: [*S, k], k = min(m, n); other: [*S, m, p], or [*S, p, m] from the right. Returns the shape of other.

    Raises:
        RuntimeError: shapes or dtypes that do not fit.
    """

    def forward(xp, input: Array, tau: Array, other: Array, left: bool = True, transpose: bool = False):
        _check_ormqr(input, tau, other, left)
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


# --- an older name ---------------------------------------------------------------------------------------------------


@composite(method=True)
def lu(A, pivot=True, get_infos=False, out=None):
    """`linalg.lu_factor`, with `get_infos` also `info` of `linalg.lu_factor_ex`. Deprecated."""
    warnings.warn(
        "torch.lu is deprecated: use torch.linalg.lu_factor, or torch.linalg.lu_factor_ex for get_infos=True", UserWarning, stacklevel=2
    )
    _require_lapack_type("lu_cpu", A._array)
    made = lu_factor_ex(A, pivot=pivot)[: 3 if get_infos else 2]
    return made if out is None else tuple([written_to(m, o) for m, o in zip(made, out, strict=True)])
