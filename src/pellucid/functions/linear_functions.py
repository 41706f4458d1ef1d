"""Functions of matrices: norms, condition, pseudo-inverse, rank, powers, exponential, and inverses of tensors.

Their operators are in `ops/linear_functions.py`; least squares is in `linear_factors.py`, equations in `linear_solving.py`.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import PUBLIC, composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import check_matrix, check_square, check_two_dims, scalar_name, written_to
from pellucid.core.dims import one_dim
from pellucid.core.tensor import Tensor, wrap
from pellucid.functions.linear_spectra import eigvalsh, svdvals
from pellucid.ops.families import by_tensor
from pellucid.ops.linear_functions import count_above
from pellucid.ops.linear_solving import LinAlgError, failures, inv, solve

__all__ = [
    "cond", "matrix_exp", "matrix_norm", "matrix_power", "matrix_rank", "norm", "pinv", "tensorinv",
    "tensorsolve", "vander",
]  # fmt: skip


# --- norms ----------------------------------------------------------------------------------------------------------


def _two_dims(function: str, A: Tensor, dim) -> tuple[int, int]:
    if isinstance(dim, int) or len(dim) != 2:
        raise RuntimeError(f"{function}: dim must be a 2-tuple. Got {dim if isinstance(dim, int) else ' '.join(map(str, dim))}")
    first, second = (one_dim(d, A._array.ndim) for d in dim)
    if first == second:
        raise RuntimeError(f"{function}: dims must be different. Got ({dim[0]}, {dim[1]})")
    return first, second


def _norm_input(function: str, A: Tensor, dtype) -> Tensor:
    if A._array.dtype.kind not in "fcV":
        raise RuntimeError(f"{function}: Expected a floating point or complex tensor as input. Got {scalar_name(A._array)}")
    if dtype is None:
        return A
    if A.is_complex() and not dtype.is_complex:
        raise RuntimeError(f"{function}: dtype should be complex for complex inputs. Got {dtype}")
    return A.to(dtype)


@composite(module="linalg")
def matrix_norm(A, ord="fro", dim=(-2, -1), keepdim=False, *, dtype=None, out=None):
    """The norm of matrices.

    A: [*S, m, n], float or complex. ord: "fro" (root of the sum of squares), "nuc" (sum of the singular values), 2, -2 (largest,
    smallest singular value), 1, -1 (largest, smallest sum of a column's absolute values), inf, -inf (of a row's).
    Returns A's shape without `dim`, real. Raises: RuntimeError for another order, dims that are not two, integers.
    """
    A = _norm_input("linalg.matrix_norm", A, dtype)
    check_two_dims("linalg.matrix_norm", "A", A._array)
    rows, columns = _two_dims("linalg.matrix_norm", A, dim)
    if ord == "fro":
        return written_to(PUBLIC["linalg"]["vector_norm"](A, 2, (rows, columns), keepdim), out)
    if ord in ("nuc", 2, -2):
        return written_to(_spectral_norm(A, ord, rows, columns, keepdim), out)
    if isinstance(ord, str) or abs(ord) not in (1, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    summed, other = (rows, columns) if abs(ord) == 1 else (columns, rows)
    sums = A.abs().sum(summed, keepdim=True)
    made = _extreme(sums, other, ord > 0)
    return written_to(made if keepdim else _without(made, rows, columns), out)


def _without(t: Tensor, rows: int, columns: int) -> Tensor:
    return t.squeeze((rows, columns))


def _extreme(values: Tensor, dim: int, largest: bool) -> Tensor:
    """The largest (0 if there is none) or smallest value along a dimension, which is kept."""
    if not values._array.shape[dim]:
        if not largest:
            raise IndexError(f"amin(): Expected reduction dim {dim} to have non-zero size (a norm of an empty matrix)")
        return values.sum(dim, keepdim=True)
    return values.amax(dim, keepdim=True) if largest else values.amin(dim, keepdim=True)


def _spectral_norm(A: Tensor, ord, rows: int, columns: int, keepdim: bool) -> Tensor:
    values = svdvals(A.movedim((rows, columns), (-2, -1)))
    made = values.sum(-1) if ord == "nuc" else _extreme(values, values._array.ndim - 1, ord == 2).squeeze(-1)
    if not keepdim:
        return made
    for d in sorted((rows, columns)):
        made = made.unsqueeze(d)
    return made


@composite(module="linalg")
def norm(A, ord=None, dim=None, keepdim=False, *, out=None, dtype=None):
    """`vector_norm` or `matrix_norm`, as `dim` and the rank say. Without both, the 2-norm of all elements.

    Raises: RuntimeError where it is not clear which is meant.
    """
    vector_norm = PUBLIC["linalg"]["vector_norm"]
    if dim is not None:
        dims = (dim,) if isinstance(dim, int) else tuple(dim)
        if len(dims) not in (1, 2) and ord is not None:
            raise RuntimeError(f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {list(dims)}")
        if len(dims) == 2 and ord is not None:
            return matrix_norm(A, ord, dims, keepdim, dtype=dtype, out=out)
        if isinstance(ord, str):
            return matrix_norm(A, ord, dims, keepdim, dtype=dtype, out=out)
        return vector_norm(A, 2 if ord is None else ord, dims, keepdim, dtype=dtype, out=out)
    if ord is None:
        return vector_norm(A, 2, None, keepdim, dtype=dtype, out=out)
    if A._array.ndim not in (1, 2):
        raise RuntimeError(f"linalg.norm: If dim is not specified but ord is, the input must be 1D or 2D. Got {A._array.ndim}D.")
    if A._array.ndim == 2:
        return matrix_norm(A, ord, (0, 1), keepdim, dtype=dtype, out=out)
    if isinstance(ord, str):
        raise RuntimeError(f"linalg.norm: order {ord!r} needs a matrix, got a vector")
    return vector_norm(A, ord, (0,), keepdim, dtype=dtype, out=out)


@composite(module="linalg")
def cond(A, p=None, *, out=None):
    """The condition number of matrices, in the norm `p` (2 by default): norm(A) * norm(inv(A)).

    A: [*S, m, n], square for norms other than 2 and -2. Returns [*S], inf for a singular matrix.
    """
    check_matrix("linalg.cond", "A", A._array)
    if p is None or p in (2, -2):
        values = svdvals(A)
        if not values._array.shape[-1]:
            return written_to(values.sum(-1), out)
        largest, smallest = values[..., 0], values[..., -1]
        return written_to(smallest / largest if p == -2 else largest / smallest, out)
    check_square("linalg.cond", "A", A._array)
    try:
        return written_to(matrix_norm(A, p) * matrix_norm(inv(A), p), out)
    except LinAlgError:
        singular = failures(A) > 0
        regular = T.where(singular.unsqueeze(-1).unsqueeze(-1), wrap(np.eye(A._array.shape[-1], dtype=A._array.dtype)), A)
        return written_to(T.where(singular, math.inf, matrix_norm(A, p) * matrix_norm(inv(regular), p)), out)


# --- rank and pseudo-inverse ----------------------------------------------------------------------------------------


@composite(module="linalg")
def matrix_rank(A, tol=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """How many singular values of each matrix are larger than max(atol, rtol * the largest).

    A: [*S, m, n]. Returns [*S], int64. `rtol` is max(m, n) times the dtype's epsilon by default, or 0 if `atol` is positive;
    `tol` is an absolute tolerance. Raises: RuntimeError for other shapes and dtypes.
    """
    check_two_dims("torch.linalg.matrix_rank", "input", A._array)
    atol = tol if tol is not None else atol
    if tol is not None:
        rtol = 0.0
    values = eigvalsh(A.detach()).abs() if hermitian else svdvals(A.detach())
    return written_to(count_above(values, _as_tensor(atol), _as_tensor(rtol), A._array.shape[-2:]), out)


def _as_tensor(tolerance) -> Tensor | None:
    return tolerance if tolerance is None or isinstance(tolerance, Tensor) else wrap(np.asarray(tolerance, np.float64))


@composite(module="linalg")
def pinv(A, rcond=None, hermitian=False, *, atol=None, rtol=None, out=None):
    """The pseudo-inverse (Moore-Penrose) of matrices.

    A: [*S, m, n], float or complex; singular values up to max(atol, rtol * the largest) count as zero. Returns [*S, n, m].
    Raises: RuntimeError for other shapes and dtypes.
    """
    if A._array.ndim < 2 or A._array.dtype.kind not in "fc":
        raise RuntimeError(f"linalg.pinv({scalar_name(A._array)}{{{list(A.shape)}}}): expected a tensor with 2 or more dimensions of float, "
                           "double, cfloat or cdouble types")  # fmt: skip
    rtol = rcond if rcond is not None else rtol
    return written_to(T.linalg_pinv(A, _as_tensor(atol), _as_tensor(rtol), hermitian), out)


@composite(method=True)
def pinverse(input, rcond=1e-15):
    """`linalg.pinv`."""
    return pinv(input, rtol=rcond)


# --- powers and exponential -----------------------------------------------------------------------------------------


@composite(module="linalg")
def matrix_power(A, n, *, out=None):
    """The n-th power of square matrices, by repeated squaring; of the inverse for a negative n.

    A: [*S, m, m]. Returns [*S, m, m]. Raises: RuntimeError for other shapes, LinAlgError for the inverse of a singular matrix.
    """
    check_two_dims("linalg.matrix_power", "A", A._array)
    if A._array.shape[-1] != A._array.shape[-2]:
        check_square("linalg.matrix_power", "A", A._array)
    if n == 0:
        identity = np.broadcast_to(np.eye(A._array.shape[-1], dtype=A._array.dtype), A._array.shape)
        return written_to(T.where(wrap(np.zeros((), bool)), A, wrap(identity.copy())), out)  # a function of A all the same
    base, n, made = (inv(A), -n, None) if n < 0 else (A, n, None)
    while True:
        if n & 1:
            made = base if made is None else made @ base
        n >>= 1
        if not n:
            return written_to(made.clone() if made is A else made, out)
        base = base @ base


by_tensor(matrix_power)


@composite(module="linalg")
def matrix_exp(A):
    """The exponential of square matrices: the sum of A^k / k!. A: [*S, n, n], float or complex. Returns [*S, n, n]."""
    check_square("linalg.matrix_exp", "A", A._array)
    return T.linalg_matrix_exp(A)


by_tensor(matrix_exp)


# --- tensors as matrices --------------------------------------------------------------------------------------------


@composite(module="linalg")
def tensorinv(A, ind=2, *, out=None):
    """The inverse of a tensor as a linear map from its last dimensions to its first `ind`.

    A: [*M, *N] with as many elements in M as in N. Returns [*N, *M]. Raises: RuntimeError if that is not so.
    """
    shape = A._array.shape
    if ind <= 0:
        raise RuntimeError(f"Expected a strictly positive integer for 'ind', but got {ind}")
    left, right = math.prod(shape[:ind]), math.prod(shape[ind:])
    if left != right:
        raise RuntimeError("Expected self to satisfy the requirement prod(self.shape[ind:]) == prod(self.shape[:ind]), but got "
                           f"{right} != {left}")
    return written_to(inv(A.reshape(left, right)).reshape(shape[ind:] + shape[:ind]), out)


@composite(module="linalg")
def tensorsolve(A, B, dims=None, *, out=None):
    """X with tensordot(A, X, X.ndim) = B. A: [*B, *X], after moving `dims` to the end. Returns [*X]."""
    if dims is not None:
        A = A.movedim(tuple(dims), tuple(range(A.dim() - len(dims), A.dim())))
    rest = A._array.shape[B._array.ndim :]
    if math.prod(rest) != B._array.size:
        raise RuntimeError(f"Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == prod(self.shape[:other.ndim]), but got "
                           f"{math.prod(rest)} != {B._array.size}")  # fmt: skip
    return written_to(solve(A.reshape(B._array.size, B._array.size), B.reshape(-1)).reshape(rest), out)


@composite(module="linalg")
def vander(x, *, N=None):
    """Vandermonde matrices: the powers 0 to N - 1 of each element, along a new last dimension. x: [*S, n]. Returns [*S, n, N]."""
    x = x if x._array.ndim else x.unsqueeze(0)
    count = x._array.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError(f"N must be greater than 1. Got {count}")
    powers = x.unsqueeze(-1).expand(*x.shape, count - 1).cumprod(-1)
    return T.cat([powers.new_ones((*x.shape, 1)), powers], -1)


@composite(module="linalg")
def diagonal(A, *, offset=0, dim1=-2, dim2=-1):
    """`torch.diagonal`, of the last two dimensions by default."""
    return A.diagonal(offset, dim1, dim2)
