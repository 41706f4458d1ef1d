"""Products of matrices and vectors that are one call of BLAS: mm, bmm, mv, dot, matmul, linear.

Transposed operands are passed to BLAS as they lie in memory, never copied. The add... forms are in products_added.py,
products composed of these (outer, tensordot, kron, chains) in contractions.py, einsum in einsum.py.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, composite, operator
from pellucid.core.checks import c_name, check_rank, same_dtype, scalar_name, times
from pellucid.core.tensor import Tensor
from pellucid.kernels import products

__all__ = ["bmm", "dot", "linear", "matmul", "mm", "mv"]


def _product_dtypes(a, b) -> None:
    if a.dtype != b.dtype:
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {c_name(a)} != {c_name(b)}. Convert one of them "
                           "with .to(dtype).")
    no_bools(a)


def no_bools(array, name: str = "addmm_impl_cpu_") -> None:
    if array.dtype == np.bool_:
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool': convert to an integer or float dtype")


def inner_sizes(a, b) -> None:
    """Check that two matrices can be multiplied; leading dimensions of `a` are rows."""
    if a.shape[-1] != b.shape[0]:
        rows = a.size // a.shape[-1] if a.shape[-1] else int(np.prod(a.shape[:-1]))
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{a.shape[-1]} and {times(b.shape)}): the columns of "
                           f"the first ({a.shape[-1]}) must be as many as the rows of the second ({b.shape[0]}); operands are "
                           f"{list(a.shape)} and {list(b.shape)}")


@operator(module=None, linear="each")
class gram:
    """input^T @ other, all leading dimensions taken as rows: [..., m] and [..., n] give [m, n]."""

    def forward(xp, input: Array, other: Array): return products.matmul(_rows(input).T, _rows(other))
    def vjp_input(F, grad, other): return F.matmul(other, F.transpose(grad, 0, 1))
    def vjp_other(F, grad, input): return F.matmul(input, grad)

    def batch(F, size_of_batch, batched, input, other):
        a = _rows_of_each(F, input, "input" in batched, size_of_batch)
        b = _rows_of_each(F, other, "other" in batched, size_of_batch)
        return F.matmul(F.transpose(a, -1, -2), b)

    def samples(make): yield (make(2, 3, 4), make(2, 3, 5)), {}


def _rows(array):
    return array if array.ndim == 2 else array.reshape(-1, array.shape[-1]) if array.size else array.reshape(
        int(np.prod(array.shape[:-1])), array.shape[-1])  # fmt: skip


def _rows_of_each(F, value, batched: bool, size: int):
    """`_rows`, for each example."""
    return F.reshape(value, (size, -1, value.shape[-1]) if batched else (-1, value.shape[-1]))


def sum_to_shape(F, grad, shape):
    """A gradient summed to the shape of an operand that was broadcast."""
    return grad if tuple(grad.shape) == shape else F.sum_to_size(grad, shape)


# --- plain products -------------------------------------------------------------------------------------------------


@operator(method=True, exact=True, linear="each")
class mm:
    """Matrix product.

    input: [m, k], mat2: [k, n], of one dtype. Returns [m, n].
    Raises: RuntimeError for other ranks, sizes that do not fit, or two dtypes.
    """

    def forward(xp, input: Array, mat2: Array):
        if input.ndim != 2:
            raise RuntimeError(f"self must be a matrix: input has shape {list(input.shape)}, expected [m, k]")
        if mat2.ndim != 2:
            raise RuntimeError(f"mat2 must be a matrix: mat2 has shape {list(mat2.shape)}, expected [k, n]")
        inner_sizes(input, mat2)
        _product_dtypes(input, mat2)
        return products.matmul(input, mat2)

    def vjp_input(F, grad, mat2): return F.mm(grad, F.transpose(mat2, 0, 1))
    def vjp_mat2(F, grad, input): return F.mm(F.transpose(input, 0, 1), grad)
    def batch(F, input, mat2): return F.matmul(input, mat2)

    def samples(make):
        yield (make(2, 3), make(3, 4)), {}
        yield (make(3, 2).T, make(4, 3).T), {}
        yield (make(2, 0), make(0, 3)), {}


def check_batches(a, b) -> None:
    check_rank(a, 3, "batch1 must be a 3D tensor")
    check_rank(b, 3, "batch2 must be a 3D tensor")
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{a.shape[0]}, {a.shape[2]}] but got: "
                           f"[{b.shape[0]}, {b.shape[1]}].")
    same_dtype(a, b, "expected scalar type {a} but found {b}")
    no_bools(a, "bmm")


@operator(method=True, exact=True, linear="each")
class bmm:
    """Matrix products of two batches.

    input: [b, m, k], mat2: [b, k, n], of one dtype. Returns [b, m, n].
    Raises: RuntimeError for other ranks, sizes that do not fit, or two dtypes.
    """

    def forward(xp, input: Array, mat2: Array):
        check_batches(input, mat2)
        return products.matmul(input, mat2)

    def vjp_input(F, grad, mat2): return F.bmm(grad, F.transpose(mat2, 1, 2))
    def vjp_mat2(F, grad, input): return F.bmm(F.transpose(input, 1, 2), grad)
    def batch(F, input, mat2): return F.matmul(input, mat2)

    def samples(make):
        yield (make(2, 3, 4), make(2, 4, 2)), {}
        yield (make(0, 3, 4), make(0, 4, 2)), {}


def check_mv(mat, vec) -> None:
    if mat.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {mat.ndim}, {vec.ndim}: input has shape {list(mat.shape)}, "
                           f"vec {list(vec.shape)}")
    if mat.shape[1] != vec.shape[0]:
        raise RuntimeError(f"size mismatch, got input ({mat.shape[0]}), mat ({times(mat.shape)}), vec ({vec.shape[0]}): the matrix "
                           f"has {mat.shape[1]} columns, the vector {vec.shape[0]} elements")
    no_bools(mat, "addmv_impl_cpu")


@operator(method=True, exact=True, linear="each")
class mv:
    """Matrix times vector.

    input: [m, k], vec: [k], of one dtype. Returns [m].
    Raises: RuntimeError for other ranks, sizes that do not fit, or two dtypes.
    """

    def forward(xp, input: Array, vec: Array):
        check_mv(input, vec)
        same_dtype(input, vec, "addmv input tensors must have the same dtype, but got {a} and {b}")
        return products.matmul(input, vec)

    def vjp_input(F, grad, vec): return F.unsqueeze(grad, 1) * vec
    def vjp_vec(F, grad, input): return F.mv(F.transpose(input, 0, 1), grad)

    def batch(F, batched, input, vec):
        if "vec" not in batched:
            return F.matmul(input, vec)
        if "input" not in batched:
            return F.mm(vec, F.transpose(input, 0, 1))
        return F.matmul(input, F.unsqueeze(vec, 2))[..., 0]

    def samples(make):
        yield (make(2, 3), make(3)), {}
        yield (make(3, 2).T, make(3)), {}


@operator(method=True, exact=True, linear="each")
class dot:
    """Sum of products of two vectors, without conjugation.

    input, tensor: [n], of one dtype. Returns a 0-d tensor.
    Raises: RuntimeError for other ranks, two sizes or two dtypes.
    """

    def forward(xp, input: Array, tensor: Array):
        if input.ndim != 1 or tensor.ndim != 1:
            raise RuntimeError(f"1D tensors expected, but got {input.ndim}D and {tensor.ndim}D tensors")
        same_dtype(input, tensor, "dot : expected both vectors to have same dtype, but found {a} and {b}")
        no_bools(input, "dot")
        if input.size != tensor.size:
            raise RuntimeError(f"inconsistent tensor size, expected tensor [{input.size}] and src [{tensor.size}] to have the same "
                               f"number of elements, but got {input.size} and {tensor.size} elements respectively")
        if input.dtype == np.bool_:
            raise NotImplementedError("\"dot\" not implemented for 'Bool': convert to an integer or float dtype")
        return xp.dot(input, tensor)

    def vjp_input(F, grad, tensor): return grad * tensor
    def vjp_tensor(F, grad, input): return grad * input

    def batch(F, batched, input, tensor):
        if len(batched) == 1:
            return F.mv(input, tensor) if "input" in batched else F.mv(tensor, input)
        return F.matmul(F.unsqueeze(input, 1), F.unsqueeze(tensor, 2))[:, 0, 0]

    def samples(make):
        yield (make(3), make(3)), {}
        yield (make(0), make(0)), {}


def _check_matmul(a, b) -> None:
    if not a.ndim or not b.ndim:
        raise RuntimeError(f"both arguments to matmul need to be at least 1D, but they are {a.ndim}D and {b.ndim}D")
    if b.ndim == 1 and a.shape[-1] != b.shape[0]:
        rows = int(np.prod(a.shape[:-1]))
        raise RuntimeError(f"size mismatch, got input ({rows}), mat ({rows}x{a.shape[-1]}), vec ({b.shape[0]}): operands of "
                           f"matmul are {list(a.shape)} and {list(b.shape)}")  # fmt: skip
    if b.ndim == 2:
        inner_sizes(a, b)
    elif b.ndim > 2:
        _check_batched(a, b)
    if a.ndim > 2 and b.ndim > 2:
        same_dtype(a, b, "expected scalar type {a} but found {b}")
    _product_dtypes(a, b)


def _check_batched(a, b) -> None:
    """Batches that broadcast, and matrices that fit."""
    lead_a, lead_b = a.shape[:-2], b.shape[:-2]
    for back in range(1, min(len(lead_a), len(lead_b)) + 1):
        x, y = lead_a[-back], lead_b[-back]
        if x != y and 1 not in (x, y):
            raise RuntimeError(f"The size of tensor a ({x}) must match the size of tensor b ({y}) at non-singleton dimension "
                               f"{max(len(lead_a), len(lead_b)) - back}: operands of matmul are {list(a.shape)} and {list(b.shape)}")
    if a.shape[-1] != b.shape[-2]:
        batch = int(np.prod(np.broadcast_shapes(lead_a, lead_b)))
        raise RuntimeError(f"Expected size for first two dimensions of batch2 tensor to be: [{batch}, {a.shape[-1]}] but got: "
                           f"[{batch}, {b.shape[-2]}]. Operands of matmul are {list(a.shape)} and {list(b.shape)}")


@operator(module=None, name="matmul", node="UnsafeViewBackward0", exact=True, linear="each")
class _matmul:
    """Product of matrices or vectors of any rank, batches broadcast. See the public `matmul`."""

    def forward(xp, input: Array, other: Array):
        _check_matmul(input, other)
        if input.ndim > 2 and other.ndim == 2 and input.flags.c_contiguous:
            return products.matmul(_rows(input), other).reshape(*input.shape[:-1], other.shape[1])  # one large product, not many
        return products.matmul(input, other)

    def vjp_input(F, grad, other, input_shape):
        if other.ndim == 1:
            return F.unsqueeze(grad, -1) * other if len(input_shape) > 1 else grad * other
        if len(input_shape) == 1:
            whole = F.matmul(other, F.unsqueeze(grad, -1))[..., 0]
            return sum_to_shape(F, whole, input_shape)
        return sum_to_shape(F, F.matmul(grad, F.transpose(other, -1, -2)), input_shape)

    def vjp_other(F, grad, input, other_shape):
        if len(other_shape) == 1:
            return F.gram(input, F.unsqueeze(grad, -1))[:, 0] if input.ndim > 1 else grad * input
        if len(other_shape) == 2 and input.ndim > 1:
            return F.gram(input, grad)
        if input.ndim == 1:
            return F.unsqueeze(input, -1) * F.unsqueeze(grad, -2)
        return sum_to_shape(F, F.matmul(F.transpose(input, -1, -2), grad), other_shape)

    def batch(F, batched, input, other): return product_of_each(F, input, "input" in batched, other, "other" in batched)

    def samples(make):
        for a, b in (((3,), (3,)), ((2, 3), (3,)), ((3,), (3, 2)), ((4, 2, 3), (3, 2)), ((4, 2, 3), (3,)), ((3,), (2, 3, 2)),
                     ((2, 3), (4, 3, 2)), ((2, 1, 2, 3), (4, 3, 2)), ((2, 2, 3), (2, 3, 1))):  # fmt: skip
            yield (make(*a), make(*b)), {}


def product_of_each(F, a, a_batched: bool, b, b_batched: bool):
    """matmul under vmap: vectors become matrices, and a batch stands in front of all dimensions that broadcast."""
    a_rank, b_rank = a.ndim - a_batched, b.ndim - b_batched
    if a_rank == 1:
        a = F.unsqueeze(a, -2)
    if b_rank == 1:
        b = F.unsqueeze(b, -1)
    rank = max(2, a_rank, b_rank) + 1
    made = F.matmul(_batch_first(F, a, a_batched, rank), _batch_first(F, b, b_batched, rank))
    if a_rank == 1:
        made = made[..., 0, :]
    return made[..., 0] if b_rank == 1 else made


def _batch_first(F, value, batched: bool, rank: int):
    """A batched value with dimensions of size 1 after the batch, up to a rank."""
    while batched and value.ndim < rank:
        value = F.unsqueeze(value, 1)
    return value


_general_matmul = _matmul


@composite(method=True)
def matmul(input, other, *, out=None):
    """Product of matrices or vectors: dot product, matrix times vector, matrix product, or batches of those.

    input: [..., m, k] or [k], other: [..., k, n] or [k], of one dtype; leading dimensions broadcast.
    Returns [..., m, n], without m or n where the operand was a vector.
    Raises: RuntimeError for a 0-d operand, sizes that do not fit, or two dtypes.
    """
    if not isinstance(other, Tensor) or not isinstance(input, Tensor):
        for position, (name, value) in enumerate((("input", input), ("other", other)), 1):
            if not isinstance(value, Tensor):
                raise TypeError(f"matmul(): argument '{name}' (position {position}) must be Tensor, not {type(value).__name__}")
    ranks = (input._array.ndim, other._array.ndim)
    if ranks == (2, 2):
        return mm(input, other, out=out)
    if ranks == (2, 1):
        return mv(input, other, out=out)
    if ranks == (1, 1):
        return dot(input, other, out=out)
    return _general_matmul(input, other, out=out)


def _matmul_operator(self, other):
    return matmul(self, other) if isinstance(other, Tensor) else NotImplemented


def _reflected_matmul(self: Tensor, other) -> Tensor:
    """`other @ self`, where `other` is no tensor or leaves the product to this one."""
    return _matmul_operator(other, self)


Tensor.__matmul__, Tensor.__rmatmul__ = _matmul_operator, _reflected_matmul


@operator(module="nn.functional", node="AddmmBackward0", exact=True)
class linear:
    """Affine map of the last dimension: input @ weight^T + bias.

    input: [..., in], weight: [out, in] (or [in]), bias: [out] (or 0-d) or None, of one dtype. Returns [..., out].
    Raises: RuntimeError for sizes that do not fit or different dtypes.
    """

    def forward(xp, input: Array, weight: Array, bias: Array | None = None):
        _check_linear(input, weight, bias)
        weight = weight.T
        if input.ndim <= 2 or weight.ndim == 1:
            return products.matmul(input, weight) if bias is None else products.matmul_add(input, weight, bias)
        rows = _rows(input)
        made = products.matmul(rows, weight) if bias is None else products.matmul_add(rows, weight, bias)
        return made.reshape(*input.shape[:-1], weight.shape[1])

    def vjp_input(F, grad, weight): return F.matmul(grad, weight) if weight.ndim > 1 else F.unsqueeze(grad, -1) * weight

    def vjp_weight(F, grad, input, weight_shape):
        if len(weight_shape) == 1:
            return F.gram(F.unsqueeze(grad, -1), input)[0] if input.ndim > 1 else grad * input
        if input.ndim == 1:
            return F.unsqueeze(grad, 1) * input
        return F.gram(grad, input)

    def vjp_bias(F, grad, bias_shape): return sum_to_shape(F, grad, bias_shape)

    def jvp(F, tangents, input, weight):
        moved, turned, lifted = tangents
        made = None if moved is None else F.linear(moved, weight, None if turned is not None else lifted)
        if turned is not None:
            part = F.linear(input, turned, lifted)
            made = part if made is None else made + part
        return lifted if made is None else made

    def batch(F, batched, input, weight, bias):
        if "weight" in batched:
            turned = F.transpose(weight, 1, 2) if weight.ndim == 3 else weight
            made = product_of_each(F, input, "input" in batched, turned, True)
        else:
            made = F.linear(input, weight, None if "bias" in batched else bias)
            if "bias" not in batched:
                return made
        if bias is None:
            return made
        in_front = bool(batched & {"input", "weight"})
        return made + _batch_first(F, bias, "bias" in batched, made.ndim + (not in_front))

    def samples(make):
        yield (make(2, 3), make(4, 3), make(4)), {}
        yield (make(2, 3), make(4, 3)), {}
        yield (make(2, 2, 3), make(4, 3), make(4)), {}
        yield (make(3), make(4, 3), make(4)), {}
        yield (make(2, 3), make(3)), {}


def _check_linear(input, weight, bias) -> None:
    if weight.ndim not in (1, 2):
        raise RuntimeError(f"linear(): weight must be a matrix [out, in], got shape {list(weight.shape)}")
    if not input.ndim:
        raise RuntimeError("both arguments to linear need to be at least 1D, but they are 0D and " + f"{weight.ndim}D")
    if input.shape[-1] != weight.shape[-1]:
        rows, columns = int(np.prod(input.shape[:-1])), times(weight.shape[::-1])
        raise RuntimeError(f"mat1 and mat2 shapes cannot be multiplied ({rows}x{input.shape[-1]} and {columns}): linear() got "
                           f"input {list(input.shape)} and weight {list(weight.shape)}; the last dimension of the input must be "
                           f"{weight.shape[-1]}")
    if bias is not None:
        if bias.dtype != input.dtype or weight.dtype != input.dtype:
            other = weight if weight.dtype != input.dtype else input
            first = bias if other is input else input
            raise RuntimeError(f"self and mat2 must have the same dtype, but got {scalar_name(first)} and {scalar_name(other)}: "
                               f"linear() got input {scalar_name(input)}, weight {scalar_name(weight)}, bias {scalar_name(bias)}")
        if bias.ndim and bias.shape != (weight.shape[0],) and bias.shape != (1,):
            raise RuntimeError(f"The expanded size of the tensor ({weight.shape[0]}) must match the existing size "
                               f"({bias.shape[-1]}) at non-singleton dimension 1: linear() got weight {list(weight.shape)} and "
                               f"bias {list(bias.shape)}")
    _product_dtypes(input, weight)
