"""Vector norms, distances, cross products. Matrix norms belong to the linear algebra."""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import Array, Promote, composite, operator
from pellucid.core.checks import require_kind
from pellucid.core.dims import all_dims, one_dim
from pellucid.core.dtype import dtype_of
from pellucid.ops.reductions import added

__all__ = ["cross", "dist", "norm", "renorm"]


def _norm(xp, array: np.ndarray, order: float, dim: tuple, keepdim: bool):
    """The norm of the given order of real, non-negative numbers."""
    if order == 2:
        return xp.sqrt(added(xp, array * array, dim, keepdim))
    if order == 1:
        return added(xp, array, dim, keepdim)
    if order == 0:
        return added(xp, (array != 0).astype(array.dtype), dim, keepdim)
    if math.isinf(order):
        ufunc = xp.maximum if order > 0 else xp.minimum
        if not array.size and order > 0:
            return ufunc.reduce(array, axis=dim, keepdims=keepdim, initial=0)
        return ufunc.reduce(array, axis=dim, keepdims=keepdim)
    return xp.power(added(xp, xp.power(array, order), dim, keepdim), 1 / order)


def _slope(F, grad, input, result, order: float):
    """The gradient of a norm, with `grad` and `result` repeated to the operand's shape; the subgradient 0 at zero."""
    if order == 0:
        return F.zeros_as(input)
    if order == 1:
        return grad * F.sgn(input)
    if order == 2:
        return F.where(result == 0, 0, grad * (input / result))
    size = F.abs(input)
    if order < 1:
        direction = F.sgn(input) * F.where(size == 0, 0, F.pow_scalar(size, order - 1))
        return direction * (grad * F.pow_scalar(result, 1 - order))
    direction = F.sgn(input) * F.pow_scalar(size, order - 1) if order < 2 else input * F.pow_scalar(size, order - 2)
    return direction * F.where(result == 0, 0, grad / F.pow_scalar(result, order - 1))


@operator(module=None, name="vector_norm", holomorphic=False, node="LinalgVectorNormBackward0")
class norm_kernel:
    """The norm of the vectors along dimensions."""

    def canonical(input, order, dim, keepdim): return float(order), all_dims(dim, input.ndim), bool(keepdim)

    def forward(xp, input: Array, order: float, dim: tuple, keepdim: bool):
        if input.dtype.kind not in "fc":
            raise RuntimeError(
                f"linalg.vector_norm: Expected a floating point or complex tensor as input. Got {dtype_of(input.dtype).name.capitalize()}"
            )
        if (order < 0 or math.isinf(order)) and not input.size and not all(input.shape[d] for d in dim):
            raise RuntimeError(
                f"linalg.vector_norm cannot compute the {order} norm on an empty tensor because the operation does not have an identity"
            )
        return xp.asarray(_norm(xp, xp.absolute(input), order, dim, keepdim))

    def vjp_input(F, grad, input, input_shape, result, order, dim, keepdim):
        if order == 0:  # a count: its gradient is undefined, not zero, in PyTorch
            return None
        if math.isinf(order):
            return F.spread_ties(grad, F.abs(input), result, dim, keepdim) * F.sgn(input)
        grad = F.expand_reduced(grad, input_shape, dim, keepdim)
        return _slope(F, grad, input, F.expand_reduced(result, input_shape, dim, keepdim), order)

    def jvp_input(F, tangent, input, input_shape, result, order, dim, keepdim):
        if math.isinf(order):
            return F.gather_ties(F.real_copy(F.conj(F.sgn(input)) * tangent), F.abs(input), result, dim, keepdim)
        slope = _slope(F, 1, input, F.expand_reduced(result, input_shape, dim, keepdim), order)
        return F.sum_dim(F.conj(slope) * tangent, dim, keepdim)  # its real part

    def samples(make):
        yield (make.distinct(3, 4) + 2, math.inf, 0, False), {}
        yield (make.distinct(3, 4) + 2, -math.inf, 0, False), {}
        for order in (0.5, 1, 1.5, 2, 3):
            yield (make(3, 4, low=0.3), order, None, False), {}
            yield (make(2, 3, 2, low=0.3), order, (0, -1), True), {}


@composite(module="linalg")
def vector_norm(x, ord=2, dim=None, keepdim: bool = False, *, dtype=None, out=None):
    """The norm of vectors: the elements along `dim` (all of them by default).

    x: [*S], floating-point or complex; the result is real.
    ord: any number, inf and -inf for the largest and smallest absolute value, 0 for how many are not zero.
    dim: a dimension or a tuple.
    keepdim: keep the reduced dimensions, with size one.
    dtype: convert to this type first.
    Raises: RuntimeError (integers, or an empty tensor where the norm has no value).
    """
    if not isinstance(ord, (int, float)):
        raise TypeError(f"linalg_vector_norm(): argument 'ord' must be Number, not {type(ord).__name__}")
    if dtype is not None:
        if not (dtype.is_floating_point or dtype.is_complex):
            raise RuntimeError(f"linalg.vector_norm: dtype should be floating point or complex. Got {dtype}")
        if x.is_complex() and not dtype.is_complex:
            raise RuntimeError(f"linalg.vector_norm: dtype should be complex for complex inputs. Got {dtype}")
        x = x.to(dtype)
    return norm_kernel(x, ord, dim, keepdim, out=out)


@composite(method=True)
def norm(input, p="fro", dim=None, keepdim: bool = False, out=None, dtype=None):
    """The norm of a tensor: a vector norm of order p over `dim`; "nuc" for the nuclear norm of matrices.

    input: [*S], floating-point or complex.
    p: a number, "fro" (the same as 2) or "nuc".
    dim: a dimension or a tuple; None for the norm of all elements.
    Raises: RuntimeError (integers, or another name).
    """
    if isinstance(p, str) and p != "fro":
        if p != "nuc":
            raise RuntimeError(f"unsupported norm: {p}. Give a number, 'fro' or 'nuc'")
        from pellucid.autograd.operator import PUBLIC

        dim = (-2, -1) if dim is None else dim
        return PUBLIC["linalg"]["matrix_norm"](input, "nuc", dim, keepdim, dtype=dtype, out=out)
    return vector_norm(input, 2 if p in ("fro", None) else p, dim, keepdim, dtype=dtype, out=out)


@composite(method=True)
def dist(input, other, p=2):
    """The p-norm of the difference of two tensors that broadcast. Returns a number as a 0-d tensor."""
    return norm_kernel(input - other, p, None, False)


def renorm_(input, p: float, dim: int, maxnorm: float):
    """In-place form of `renorm`."""
    return input.mul_(_shrinkage(input, p, dim, maxnorm))


def _shrinkage(input, p: float, dim: int, maxnorm: float):
    """The factor for each slice: one where its norm is small enough."""
    if p <= 0:
        raise RuntimeError(f"renorm: non-positive-norm not supported: p is {p}")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if input.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {input.ndim} dimensions")
    dim = one_dim(dim, input.ndim)
    size = norm_kernel(input, p, tuple(d for d in range(input.ndim) if d != dim), True)
    return (maxnorm / (size + 1e-7)).where(size > maxnorm, 1.0)


@composite(method=True, inplace=renorm_)
def renorm(input, p: float, dim: int, maxnorm: float, *, out=None):
    """The tensor with each slice along `dim` scaled down to a p-norm of at most `maxnorm`.

    Raises: RuntimeError (p is not positive, maxnorm is negative, or fewer than two dimensions).
    """
    return input.mul(_shrinkage(input, p, dim, maxnorm), out=out)


# --- cross product ---------------------------------------------------------------------------------------------------


@operator(promote=Promote.SAME, name="linalg_cross", module=None, node="LinalgCrossBackward0", linear="each")
class cross_kernel:
    """The vector product along a dimension of size 3."""

    def forward(xp, input: Array, other: Array, dim: int):
        require_kind("cross", input, "fci")
        a, b = (xp.moveaxis(x, dim, -1) for x in xp.broadcast_arrays(input, other))
        product = xp.empty(a.shape, a.dtype)
        for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
            product[..., i] = a[..., j] * b[..., k] - a[..., k] * b[..., j]
        return xp.ascontiguousarray(xp.moveaxis(product, -1, dim))

    def vjp_input(F, grad, other, dim): return F.linalg_cross(other, grad, dim)
    def vjp_other(F, grad, input, dim): return F.linalg_cross(grad, input, dim)

    def batch(F, batched, input, other, dim):
        # `dim` counts from the end, and operands have as many dimensions
        input, other = (t if n in batched else F.unsqueeze(t, 0) for n, t in (("input", input), ("other", other)))
        return F.linalg_cross(input, other, dim)

    def samples(make):
        yield (make(2, 3), make(2, 3), -1), {}
        yield (make(3, 4), make(3, 1), -2), {}


def _check_cross(input, other, dim: int) -> int:
    if input.ndim != other.ndim:
        raise RuntimeError(f"linalg.cross: inputs must have the same number of dimensions: got {input.ndim} and {other.ndim}")
    dim = one_dim(dim, input.ndim) - input.ndim
    for tensor in (input, other):
        if not tensor.ndim or tensor.shape[dim] != 3:
            raise RuntimeError(
                f"linalg.cross: inputs dimension {dim} must have length 3. Got {[t.shape[dim] if t.ndim else None for t in (input, other)]}"
            )
    return dim


@composite(name="cross", module="linalg")
def linalg_cross(input, other, *, dim: int = -1, out=None):
    """The vector product of two tensors along a dimension of size 3.

    input, other: broadcastable, with as many dimensions. Returns the common shape and dtype.
    Raises: RuntimeError (the numbers of dimensions differ, or the dimension is not of size 3).
    """
    return cross_kernel(input, other, _check_cross(input, other, dim), out=out)


@composite(method=True)
def cross(input, other, dim: int | None = None, *, out=None):
    """The vector product along `dim`, by default the first dimension of size 3; see `linalg.cross`."""
    if dim is None:
        dim = next((d for d, size in enumerate(input.shape) if size == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return linalg_cross(input, other, dim=dim, out=out)
