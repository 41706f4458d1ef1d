"""Factors of matrices [*S, m, n], and what is computed from them, one matrix at a time by LAPACK or all together by NumPy.

Factors come as LAPACK packs them: two in one array. Functions that give a second array give what the packing needs to be read.
"""

from __future__ import annotations

import numpy as np

from pellucid.kernels import products

__all__ = [
    "cholesky", "cofactors", "exponential", "first_not_positive", "first_singular", "inverse_by_values", "ldl",
    "ldl_solved", "lu", "qr", "reflected", "row_order", "tolerance",
]  # fmt: skip


def _lapack(name: str, array: np.ndarray):
    """LAPACK's function of that name for the array's dtype."""
    from scipy.linalg.lapack import get_lapack_funcs  # slow import

    return get_lapack_funcs((name,), (array,))[0]


def adjoint(matrix: np.ndarray) -> np.ndarray:
    """The conjugate transpose of each matrix."""
    return np.conj(matrix.swapaxes(-1, -2))


# --- L U and L D L^H -------------------------------------------------------------------------------------------------


def lu(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """L and U of A = P L U, and the row exchanges [*S, k], counted from one."""
    factor, k = _lapack("getrf", A), min(A.shape[-2:])
    packed, exchanges = np.array(A, order="C"), np.zeros((*A.shape[:-2], k), np.int32)
    for index in np.ndindex(*A.shape[:-2]) if k else ():
        packed[index], pivots, _ = factor(A[index])
        exchanges[index] = pivots + 1
    return packed, exchanges


def row_order(exchanges: np.ndarray, rows: int) -> np.ndarray:
    """The permutation [*S, m] that row exchanges add up to: row i of the result is row order[i] of the operand."""
    order = np.broadcast_to(np.arange(rows), (*exchanges.shape[:-1], rows)).copy()
    for index in np.ndindex(*exchanges.shape[:-1]):
        for i, j in enumerate(exchanges[index]):
            order[index][[i, j - 1]] = order[index][[j - 1, i]]
    return order


def _which(A: np.ndarray, hermitian: bool) -> str:
    return "he" if hermitian and A.dtype.kind == "c" else "sy"


def ldl(A: np.ndarray, hermitian: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """L and D of A = L D L^T or L D L^H, the row exchanges [*S, n], and for each matrix 0 or the first zero on D's diagonal."""
    factor = _lapack(f"{_which(A, hermitian)}trf", A)
    packed, pivots, info = np.zeros_like(A, order="C"), np.zeros(A.shape[:-1], np.int32), np.zeros(A.shape[:-2], np.int32)
    for index in np.ndindex(*A.shape[:-2]) if A.size else ():
        made, pivots[index], info[index] = factor(A[index], lower=True)
        packed[index] = np.tril(made)
    return packed, pivots, info


def ldl_solved(packed: np.ndarray, pivots: np.ndarray, B: np.ndarray, hermitian: bool) -> np.ndarray:
    """X with A X = B, from what `ldl` gave for A; batches broadcast."""
    solve = _lapack(f"{_which(packed, hermitian)}trs", packed)
    batch = np.broadcast_shapes(packed.shape[:-2], B.shape[:-2])
    made = np.array(np.broadcast_to(B, (*batch, *B.shape[-2:])), order="C")
    packed = np.broadcast_to(packed, (*batch, *packed.shape[-2:]))
    pivots = np.broadcast_to(pivots, (*batch, pivots.shape[-1]))
    for index in np.ndindex(*batch) if made.size else ():
        made[index] = solve(packed[index], pivots[index], made[index], lower=True)[0]
    return made


# --- Q R -------------------------------------------------------------------------------------------------------------


def qr(A: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """R and the vectors of the reflectors whose product is Q, and the factors of the reflectors [*S, min(m, n)]."""
    factor = _lapack("geqrf", A)
    packed, tau = np.array(A, order="C"), np.zeros((*A.shape[:-2], min(A.shape[-2:])), A.dtype)
    for index in np.ndindex(*A.shape[:-2]) if A.size else ():
        packed[index], tau[index] = factor(A[index])[:2]
    return packed, tau


def reflected(packed: np.ndarray, tau: np.ndarray, other: np.ndarray, left: bool, adjoint: bool) -> np.ndarray:
    """Q `other` or `other` Q, Q (or its adjoint) being the product of reflectors that `qr` gave."""
    made, k = np.array(other, order="C"), tau.shape[-1]
    if not tau.size or not made.size:
        return made
    name, turned = ("unmqr", "C") if packed.dtype.kind == "c" else ("ormqr", "T")
    multiply = _lapack(name, packed)
    side, which = "L" if left else "R", turned if adjoint else "N"
    for index in np.ndindex(*packed.shape[:-2]):
        vectors = np.asfortranarray(packed[index][:, :k])
        room = int(multiply(side, which, vectors, tau[index], made[index], -1)[1][0].real)
        made[index] = multiply(side, which, vectors, tau[index], made[index], room)[0]
    return made


# --- from one triangle, from singular values -------------------------------------------------------------------------


def cholesky(A: np.ndarray, upper: bool) -> np.ndarray:
    """The lower triangular L with A = L L^H, from one triangle of A. numpy.linalg.LinAlgError if there is none."""
    lower = adjoint(np.triu(A, 1)) if upper else np.tril(A, -1)
    diagonal = np.zeros_like(A)
    index = np.arange(A.shape[-1])
    diagonal[..., index, index] = A[..., index, index].real
    return np.linalg.cholesky(lower + adjoint(lower) + diagonal)


def first_singular(A: np.ndarray) -> int:
    """The first singular matrix [S, n, n]."""
    return int(np.argmax(np.linalg.matrix_rank(A) < A.shape[-1]))


def first_not_positive(A: np.ndarray) -> int:
    """The first matrix [S, n, n] that is not positive-definite."""
    return int(np.argmax(np.linalg.eigvalsh(A).min(axis=-1) <= 0))


def cofactors(A: np.ndarray) -> np.ndarray:
    """The matrix of cofactors, det(A) A^-T where that exists, from A = U S V: det(UV) U S' V, S' the products of the others."""
    n = A.shape[-1]
    if not A.size:
        return np.zeros_like(A)
    u, s, v = np.linalg.svd(A)
    others = np.stack([np.prod(np.delete(s, k, axis=-1), axis=-1) for k in range(n)], axis=-1).astype(A.dtype)
    sign = np.linalg.det(u) * np.linalg.det(v)
    return np.conj(sign.conj()[..., None, None] * products.matmul(u * others[..., None, :], v))


def tolerance(values: np.ndarray, shape: tuple, atol, rtol) -> np.ndarray:
    """Below what singular values [*S, k] of matrices of that shape count as zero: max(atol, rtol * largest), [*S, 1]."""
    if rtol is None:
        default = np.finfo(values.dtype).eps * max(shape[-2:])
        rtol = default if atol is None else np.where(np.asarray(atol) > 0, 0, default)
    atol = np.asarray(0.0 if atol is None else atol)
    largest = values.max(axis=-1, initial=0)
    return np.maximum(atol, np.asarray(rtol) * largest)[..., None]


def inverse_by_values(A: np.ndarray, atol, rtol, hermitian: bool) -> np.ndarray:
    """The pseudo-inverse of each matrix, from its singular values, or its eigenvalues if it is Hermitian."""
    if not A.size:
        return np.zeros((*A.shape[:-2], A.shape[-1], A.shape[-2]), A.dtype)
    if hermitian:
        values, u = np.linalg.eigh(A)
        size, vh = np.abs(values), adjoint(u)
    else:
        u, values, vh = np.linalg.svd(A, full_matrices=False)
        size = values
    counts = size > tolerance(size, A.shape, atol, rtol)
    inverse = np.where(counts, 1 / np.where(counts, values, 1), 0).astype(values.dtype)
    return products.matmul(adjoint(vh) * inverse[..., None, :], adjoint(u))


def exponential(A: np.ndarray) -> np.ndarray:
    """The exponential of each matrix."""
    from scipy.linalg import expm  # slow import

    return np.asarray(expm(A) if A.size else A.copy(), A.dtype)
