"""Parts and older forms of decompositions, and products of reflectors.

The decompositions themselves are operators, in `ops/linear_spectra.py`.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import check_matrix, check_square, written_to
from pellucid.core.matrix_checks import checked_uplo
from pellucid.core.tensor import wrap
from pellucid.ops.linear_spectra import qr

__all__ = ["eigvals", "eigvalsh", "svdvals"]


# --- singular values ------------------------------------------------------------------------------------------------


@composite(module="linalg")
def svdvals(A, *, driver=None, out=None):
    """The singular values of matrices, descending. A: [*S, m, n]. Returns [*S, min(m, n)]."""
    check_matrix("linalg.svdvals", "A", A._array)
    return T.linalg_svd(A, False)[1]


@composite(method=True, name="svd")
def torch_svd(input, some=True, compute_uv=True, *, out=None):
    """Singular value decomposition A = U diag(S) V^H. Returns (U, S, V). Deprecated: use linalg.svd."""
    check_matrix("linalg.svd", "A", input._array)
    if not compute_uv:
        values = svdvals(input)
        shape, rows, columns = input._array.shape[:-2], *input._array.shape[-2:]
        return (input.new_zeros((*shape, rows, rows)), values, input.new_zeros((*shape, columns, columns)))
    u, s, vh = T.linalg_svd(input, not some)
    return u, s, vh.mH


# --- eigenvalues ----------------------------------------------------------------------------------------------------


@composite(module="linalg")
def eigvalsh(A, UPLO="L", *, out=None):
    """The eigenvalues of Hermitian matrices, ascending. A: [*S, n, n]. Returns [*S, n]."""
    check_square("linalg.eigvalsh", "A", A._array)
    return T.linalg_eigh(A, checked_uplo(UPLO))[0]


@composite(module="linalg")
def eigvals(A, *, out=None):
    """The eigenvalues of square matrices, complex. A: [*S, n, n]. Returns [*S, n]."""
    check_square("linalg.eigvals", "A", A._array)
    return T.linalg_eig(A)[0]


# --- QR -------------------------------------------------------------------------------------------------------------


@composite(method=True, name="qr")
def torch_qr(input, some=True, *, out=None):
    """`linalg.qr`, complete if not `some`. Deprecated: use linalg.qr."""
    return qr(input, "reduced" if some else "complete")


@composite(module="linalg")
def householder_product(A, tau, *, out=None):
    """The first n columns of the product of reflectors I - tau v v^H, as LAPACK stores them.

    A: [*S, m, n] with m >= n, whose columns below the diagonal hold v (a one on the diagonal is understood); tau: [*S, k], k <= n.
    Returns [*S, m, n]. Raises: RuntimeError for shapes and dtypes that do not fit.
    """
    a, t = A._array, tau._array
    if a.ndim < 2:
        raise RuntimeError("torch.linalg.householder_product: input must have at least 2 dimensions.")
    if a.shape[-2] < a.shape[-1]:
        raise RuntimeError("torch.linalg.householder_product: input.shape[-2] must be greater than or equal to input.shape[-1]")
    if t.ndim != a.ndim - 1 or t.shape[:-1] != a.shape[:-2] or t.shape[-1] > a.shape[-1]:
        raise RuntimeError("torch.linalg.householder_product: input.shape[-1] must be greater than or equal to tau.shape[-1], and batches "
                           f"must agree: got input {list(a.shape)} and tau {list(t.shape)}")  # fmt: skip
    if a.dtype != t.dtype:
        raise RuntimeError(f"torch.linalg.householder_product: tau dtype {tau.dtype} does not match input dtype {A.dtype}")
    rows, columns = a.shape[-2:]
    below = A.tril(-1) + wrap(np.eye(rows, columns, dtype=a.dtype))
    identity = wrap(np.broadcast_to(np.eye(rows, columns, dtype=a.dtype), a.shape).copy())
    made = T.where(wrap(np.zeros((), bool)), A, identity)  # a function of A even without reflectors
    for k in reversed(range(t.shape[-1])):
        v = below[..., k : k + 1]
        made = made - (tau[..., k : k + 1].unsqueeze(-1) * v) @ (v.mH @ made)
    return written_to(made, out)


@composite(method=True)
def orgqr(input, input2, *, out=None):
    """`linalg.householder_product`."""
    return householder_product(input, input2, out=out)
