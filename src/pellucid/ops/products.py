"""Products of matrices and vectors that are one call of BLAS: mm, bmm, mv, dot, matmul, linear.

Transposed operands are passed to BLAS as they lie in memory, never copied. The add... forms are in products_added.py,
products composed of these (outer, tensordot, kron, chains, einsum) in `functions/`.
"""

from __future__ import annotations

from pellucid.autograd.operator import Array, composite, operator
from pellucid.core.checks import same_dtype
from pellucid.core.product_checks import (
    check_batches,
    check_dot,
    check_linear,
    check_matmul,
    check_mm,
    check_mv,
)
from pellucid.core.tensor import Tensor
from pellucid.kernels import products

__all__ = ["bmm", "dot", "linear", "matmul", "mm", "mv"]


@operator(module=None, linear="each")
class gram:
    """input^T @ other, all leading dimensions taken as rows: [..., m] and [..., n] give [m, n]."""

    def forward(xp, input: Array, other: Array): return products.matmul(products.rows_of(input).T, products.rows_of(other))
    def vjp_input(F, grad, other): return F.matmul(other, F.transpose(grad, 0, 1))
    def vjp_other(F, grad, input): return F.matmul(input, grad)

    def batch(F, size_of_batch, batched, input, other):
        a = _rows_of_each(F, input, "input" in batched, size_of_batch)
        b = _rows_of_each(F, other, "other" in batched, size_of_batch)
        return F.matmul(F.transpose(a, -1, -2), b)

    def samples(make): yield (make(2, 3, 4), make(2, 3, 5)), {}


def _rows_of_each(F, value, batched: bool, size: int):
    """`products.rows_of`, for each example."""
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
        check_mm(input, mat2)
        return products.matmul(input, mat2)

    def vjp_input(F, grad, mat2): return F.mm(grad, F.transpose(mat2, 0, 1))
    def vjp_mat2(F, grad, input): return F.mm(F.transpose(input, 0, 1), grad)
    def vjp_arrays(F, grad, input, mat2, needs): return products.matmul_gradients(grad, input, mat2, needs)
    def batch(F, input, mat2): return F.matmul(input, mat2)

    def samples(make):
        yield (make(2, 3), make(3, 4)), {}
        yield (make(3, 2).T, make(4, 3).T), {}
        yield (make(2, 0), make(0, 3)), {}


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
        check_dot(input, tensor)
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


def _of_first(F, grad, other, input_shape):
    """The gradient of `matmul`'s first operand."""
    if other.ndim == 1:
        return F.unsqueeze(grad, -1) * other if len(input_shape) > 1 else grad * other
    if len(input_shape) == 1:
        whole = F.matmul(other, F.unsqueeze(grad, -1))[..., 0]
        return sum_to_shape(F, whole, input_shape)
    return sum_to_shape(F, F.matmul(grad, F.transpose(other, -1, -2)), input_shape)


def _of_second(F, grad, input, other_shape):
    """The gradient of `matmul`'s second operand."""
    if len(other_shape) == 1:
        return F.gram(input, F.unsqueeze(grad, -1))[:, 0] if input.ndim > 1 else grad * input
    if len(other_shape) == 2 and input.ndim > 1:
        return F.gram(input, grad)
    if input.ndim == 1:
        return F.unsqueeze(input, -1) * F.unsqueeze(grad, -2)
    return sum_to_shape(F, F.matmul(F.transpose(input, -1, -2), grad), other_shape)


@operator(module=None, name="matmul", node="UnsafeViewBackward0", exact=True, linear="each")
class _matmul:
    """Product of matrices or vectors of any rank, batches broadcast. See the public `matmul`."""

    def forward(xp, input: Array, other: Array):
        check_matmul(input, other)
        if input.ndim > 2 and other.ndim == 2 and input.flags.c_contiguous:
            return products.matmul(products.rows_of(input), other).reshape(*input.shape[:-1], other.shape[1])  # one large product, not many
        return products.matmul(input, other)

    vjp_input = _of_first
    vjp_other = _of_second

    def vjp_arrays(F, grad, input, other, input_shape, other_shape, needs):
        if all(shape is None or len(shape) == 2 for shape in (input_shape, other_shape)) and grad.ndim == 2:
            return products.matmul_gradients(grad, input, other, needs)
        first = _of_first(F, grad, other, input_shape) if needs[0] else None
        return first, _of_second(F, grad, input, other_shape) if needs[1] else None

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
        check_linear(input, weight, bias)
        weight = weight.T
        if input.ndim <= 2 or weight.ndim == 1:
            return products.matmul(input, weight) if bias is None else products.matmul_add(input, weight, bias)
        rows = products.rows_of(input)
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

    def vjp_arrays(F, grad, input, weight, weight_shape, bias_shape, needs):
        return products.linear_gradients(grad, input, weight, weight_shape, bias_shape, needs)

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
