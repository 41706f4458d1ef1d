"""Packed factors as users call them: L D L^T with its checks, and `lu`, an older name of `linalg.lu_factor`.

The operators are in `ops/linear_packed.py`.
"""

from __future__ import annotations

import warnings
from typing import NamedTuple

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import check_square, every_value, same_dtype, scalar_name, written_to
from pellucid.core.matrix_checks import require_lapack_type
from pellucid.core.tensor import Tensor
from pellucid.functions.linear_factors import lu_factor_ex
from pellucid.ops.linear_solving import LinAlgError

__all__ = ["lu"]


# --- L D L^T ---------------------------------------------------------------------------------------------------------


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


# --- an older name ---------------------------------------------------------------------------------------------------


@composite(method=True)
def lu(A, pivot=True, get_infos=False, out=None):
    """`linalg.lu_factor`, with `get_infos` also `info` of `linalg.lu_factor_ex`. Deprecated."""
    warnings.warn(
        "torch.lu is deprecated: use torch.linalg.lu_factor, or torch.linalg.lu_factor_ex for get_infos=True", UserWarning, stacklevel=2
    )
    require_lapack_type("lu_cpu", A._array)
    made = lu_factor_ex(A, pivot=pivot)[: 3 if get_infos else 2]
    return made if out is None else tuple([written_to(m, o) for m, o in zip(made, out, strict=True)])
