"""Products that are made of others: outer, inner, vdot, tensordot, kron and chains of matrices.

The matrix products themselves are in ops/products.py, einsum in einsum.py.
"""

from __future__ import annotations

import itertools
import math
import warnings

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.core.checks import same_dtype, scalar_name, written_to
from pellucid.core.tensor import Tensor, dim_error
from pellucid.ops.products import dot, matmul, mm

__all__ = ["chain_matmul", "inner", "kron", "multi_dot", "outer", "tensordot", "vdot", "vecdot"]


def require_tensors(function: str, **operands) -> None:
    """Raise TypeError for an operand that is no tensor."""
    for position, (name, value) in enumerate(operands.items(), 1):
        if not isinstance(value, Tensor):
            raise TypeError(f"{function}(): argument '{name}' (position {position}) must be Tensor, not {type(value).__name__}")


@composite(method=True, alias=["ger"])
def outer(input, vec2, *, out=None):
    """The matrix of all products of elements of two vectors.

    input: [m], vec2: [n]. Returns [m, n], in the common dtype. Raises: RuntimeError for operands of another rank.
    """
    require_tensors("outer", input=input, vec2=vec2)
    for name, vector in (("self", input), ("vec2", vec2)):
        if vector._array.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {vector._array.ndim}-D: shape {list(vector.shape)}")
    return written_to(input.unsqueeze(1) * vec2, out)


@composite(method=True)
def inner(input, other, *, out=None):
    """Sums of products over the last dimension of both operands.

    input: [*S, k], other: [*T, k], of one dtype (or either 0-d: the product). Returns [*S, *T].
    Raises: RuntimeError for two dtypes, or sizes that do not fit.
    """
    require_tensors("inner", input=input, other=other)
    a, b = input._array, other._array
    if not a.ndim or not b.ndim:
        return written_to(input * other, out)
    if a.shape[-1] != b.shape[-1]:
        raise RuntimeError(f"inner() the last dimension must match on both input tensors but got shapes {list(a.shape)} and {list(b.shape)}")
    same_dtype(a, b, "both inputs should have same dtype: got {a} and {b}")
    if a.ndim == b.ndim == 1:
        return dot(input, other, out=out)
    return written_to(tensordot(input, other, ([-1], [-1])), out)


@composite(method=True)
def vdot(input, other, *, out=None):
    """Sum of products of two vectors, the first conjugated.

    input, other: [n], of one dtype. Returns a 0-d tensor. Raises: RuntimeError for other ranks, two sizes or two dtypes.
    """
    require_tensors("vdot", input=input, other=other)
    return dot(input.conj() if input._array.dtype.kind == "c" else input, other, out=out)


@composite(module="linalg")
def vecdot(x, y, *, dim=-1, out=None):
    """Sums of products along one dimension, the first operand conjugated.

    x, y: broadcastable to a common shape. Returns that shape without `dim`.
    Raises: RuntimeError for integers or sizes that do not fit.
    """
    for name, operand in (("x", x), ("y", y)):
        if operand._array.dtype.kind not in "fcV":
            kind = scalar_name(operand._array)
            raise RuntimeError(f"linalg.vecdot: Expected a floating point or complex tensor as input. Got {kind} ({name})")
    if x._array.ndim == y._array.ndim == 1 and dim in (0, -1):
        return vdot(x, y, out=out)
    same_dtype(x._array, y._array, "linalg.vecdot: expected operands of one dtype, got {a} and {b}")
    return written_to((x.conj() * y).sum(dim), out)


# --- tensordot ------------------------------------------------------------------------------------------------------


def _contracted(a: np.ndarray, b: np.ndarray, dims) -> tuple[list[int], list[int]]:
    """The contracted dimensions of both operands, from a number, a pair of lists, or a tensor of either."""
    dims = dims.tolist() if isinstance(dims, Tensor) else dims
    if isinstance(dims, (tuple, list)):
        if len(dims) == 1 and not isinstance(dims[0], (tuple, list)):
            dims = dims[0]
        else:
            first, second = ([d] if isinstance(d, int) else list(d) for d in dims)
            return first, second
    if dims < 0:
        raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
    if dims > min(a.ndim, b.ndim):
        raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}: operands are {list(a.shape)} and {list(b.shape)}")
    return list(range(a.ndim - dims, a.ndim)), list(range(dims))


def _check_contraction(a: np.ndarray, b: np.ndarray, first: list[int], second: list[int]) -> None:
    if len(first) != len(second):
        raise RuntimeError(f"both dimension lists should have same length: got {first} and {second}")
    for i, j in zip(first, second, strict=True):
        for d, operand in ((i, a), (j, b)):
            if not -operand.ndim <= d < operand.ndim:
                raise IndexError(dim_error(d, operand.ndim))
        if a.shape[i] != b.shape[j] and 1 not in (a.shape[i], b.shape[j]):
            raise RuntimeError(f"contracted dimensions need to match, but first has size {a.shape[i]} in dim {i} and second has "
                               f"size {b.shape[j]} in dim {j}")


@composite()
def tensordot(a, b, dims=2, out=None):
    """Sums of products over several dimensions of both operands.

    a: [*A, *K], b: [*K, *B], of one dtype. `dims` is how many last dimensions of `a` meet as many first ones of `b`, or
    two lists that name them. Returns [*A, *B]. Raises: RuntimeError for dimensions that do not fit.
    """
    require_tensors("tensordot", a=a, b=b)
    x, y = a._array, b._array
    first, second = _contracted(x, y, dims)
    _check_contraction(x, y, first, second)
    for i, j in zip(first, second, strict=True):  # a dimension of size one meets any size
        if x.shape[i] != y.shape[j]:
            a, b = (a.sum(i, True, dtype=a.dtype), b) if y.shape[j] == 1 else (a, b.sum(j, True, dtype=b.dtype))
    first, second = [i % x.ndim for i in first], [j % y.ndim for j in second]
    kept_a = [d for d in range(x.ndim) if d not in first]
    kept_b = [d for d in range(y.ndim) if d not in second]
    depth = math.prod(a._array.shape[i] for i in first)
    rows, columns = (math.prod(z.shape[d] for d in kept) for z, kept in ((x, kept_a), (y, kept_b)))
    left = a.permute(kept_a + first).reshape(rows, depth)
    right = b.permute(second + kept_b).reshape(depth, columns)
    return written_to(mm(left, right).reshape([x.shape[d] for d in kept_a] + [y.shape[d] for d in kept_b]), out)


@composite(method=True)
def kron(input, other, *, out=None):
    """Kronecker product: each element of the first times the whole second.

    input: [*S], other: [*T], ranks evened out with leading ones. Returns [*(S * T)].
    """
    require_tensors("kron", input=input, other=other)
    ndim = max(input._array.ndim, other._array.ndim)
    a = (1,) * (ndim - input._array.ndim) + input._array.shape
    b = (1,) * (ndim - other._array.ndim) + other._array.shape
    left = input.reshape([n for size in a for n in (size, 1)])
    right = other.reshape([n for size in b for n in (1, size)])
    return written_to((left * right).reshape([m * n for m, n in zip(a, b, strict=True)]), out)


# --- chains ---------------------------------------------------------------------------------------------------------


def _best_order(sizes: list[int]) -> dict:
    """Where to split each chain i..j of matrices [sizes[i], sizes[i + 1]] so that the multiplications are fewest."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    split = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost[i, j], split[i, j] = min(
                (cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    return split


def _chain(matrices: list[Tensor]) -> Tensor:
    split = _best_order([m._array.shape[0] for m in matrices] + [matrices[-1]._array.shape[1]])

    def product(i: int, j: int) -> Tensor:
        return matrices[i] if i == j else mm(product(i, split[i, j]), product(split[i, j] + 1, j))

    return product(0, len(matrices) - 1)


@composite(module="linalg")
def multi_dot(tensors, *, out=None):
    """Product of a chain of matrices, in the order that takes the fewest multiplications.

    tensors: two or more, [m, k], ...; the first may be [k], the last too. Returns [m, n], without the dimension of a vector.
    Raises: RuntimeError for fewer, other ranks, sizes or dtypes that do not fit.
    """
    tensors = list(tensors)
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    for position, t in enumerate(tensors):
        at_end = position in (0, len(tensors) - 1)
        if t._array.ndim != 2 and not (at_end and t._array.ndim == 1):
            place = "the first tensor must be 1D or 2D" if position == 0 else "the last tensor must be 1D or 2D" if at_end else (
                f"tensor {position} must be 2D")  # fmt: skip
            raise RuntimeError(f"multi_dot(): {place} but got {t._array.ndim}D")
        same_dtype(tensors[0]._array, t._array, "multi_dot(): all tensors must have be the same dtype but got {a} and {b}")
    first, last = tensors[0]._array.ndim == 1, tensors[-1]._array.ndim == 1
    chain = [tensors[0].unsqueeze(0) if first else tensors[0], *tensors[1:]]
    chain[-1] = chain[-1].unsqueeze(1) if last else chain[-1]
    for i, (a, b) in enumerate(itertools.pairwise(chain)):
        if a._array.shape[1] != b._array.shape[0]:
            raise RuntimeError(f"multi_dot(): tensors {i} and {i + 1} with shapes {list(a.shape)} and {list(b.shape)} cannot be multiplied")
    made = _chain(chain)
    made = made.squeeze(-1) if last else made
    return written_to(made.squeeze(0) if first else made, out)


@composite()
def chain_matmul(*matrices, out=None):
    """Product of matrices in the order that takes the fewest multiplications. Deprecated: use linalg.multi_dot."""
    warnings.warn("torch.chain_matmul is deprecated and will be removed in a future PyTorch release. Use torch.linalg.multi_dot instead, "
                  "which accepts a list of two or more tensors rather than multiple parameters.", stacklevel=2)  # fmt: skip
    matrices = list(matrices[0]) if len(matrices) == 1 and isinstance(matrices[0], (tuple, list)) else list(matrices)
    for m in matrices:
        if m._array.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {m._array.ndim}, expected 2 instead.")
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    return matrices[0] if len(matrices) == 1 else multi_dot(matrices, out=out)


@composite(module="linalg", name="matmul")
def linalg_matmul(input, other, *, out=None):
    """`torch.matmul`."""
    return matmul(input, other, out=out)
