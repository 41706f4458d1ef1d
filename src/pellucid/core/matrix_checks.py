"""Checks of the operands of linear algebra that look at shapes and dtypes alone.

Those of one matrix are in `checks.py`.
"""

from __future__ import annotations

import numpy as np

from pellucid.core.checks import check_square, same_dtype, scalar_name

__all__ = ["check_ormqr", "check_solve", "checked_uplo", "is_vector", "require_lapack_type"]


def is_vector(A: np.ndarray, B: np.ndarray) -> bool:
    """Whether B holds vectors: it is one, or a batch of as many as there are matrices."""
    return B.ndim == 1 or (A.ndim - 1 == B.ndim and B.shape == A.shape[:-1])


def check_solve(function: str, A: np.ndarray, B: np.ndarray, left: bool, vector: bool) -> None:
    """Raise RuntimeError unless A X = B (X A = B if not `left`) makes sense; `vector` says that B holds vectors."""
    check_square(function, "A", A)
    if A.dtype != B.dtype:
        raise RuntimeError(f"{function}: Expected A and B to have the same dtype, but found A of type {scalar_name(A)} and B of type "
                           f"{scalar_name(B)} instead")  # fmt: skip
    if not B.ndim:
        raise RuntimeError(f"{function}: The input tensor B must have at least 2 dimensions.")
    rows, columns = (B.shape[-1], 1) if vector else B.shape[-2:]
    if A.shape[-1] != (rows if left else columns):
        raise RuntimeError(f"{function}: Incompatible shapes of A and B for the equation {'AX = B' if left else 'XA = B'} "
                           f"({A.shape[-2]}x{A.shape[-1]} and {rows}x{columns})")  # fmt: skip
    if vector and not left:
        raise RuntimeError(f"{function}: Vector broadcasting of the left hand side is not supported for left=False")


def require_lapack_type(name: str, array: np.ndarray) -> None:
    """Raise NotImplementedError for what LAPACK does not know: integers and halfs."""
    if array.dtype.kind not in "fc" or array.dtype.itemsize < 4:
        raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_name(array)}': it takes float32, float64 and complex tensors")


def check_ormqr(a: np.ndarray, tau: np.ndarray, other: np.ndarray, left: bool) -> None:
    """Raise RuntimeError unless reflectors, their factors and what they are multiplied with fit together."""
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
    require_lapack_type("ormqr_cpu", a)


def checked_uplo(UPLO: str) -> str:
    """Which triangle is read, as L or U; RuntimeError for another letter."""
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError(f"Expected UPLO argument to be 'L' or 'U', but got {UPLO}")
    return UPLO.upper()
