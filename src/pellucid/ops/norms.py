"""Vector norms and cross products; the functions that users call are in `functions/norms.py`."""

from __future__ import annotations

import math

from pellucid.autograd.operator import Array, Promote, operator
from pellucid.core.checks import require_kind
from pellucid.core.dims import all_dims
from pellucid.core.dtype import dtype_of
from pellucid.kernels import vectors
from pellucid.kernels.reductions import norm

__all__: list[str] = []


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
        return xp.asarray(norm(input if order == 2 else xp.absolute(input), order, dim, keepdim))

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


@operator(promote=Promote.SAME, name="linalg_cross", module=None, node="LinalgCrossBackward0", linear="each")
class cross_kernel:
    """The vector product along a dimension of size 3."""

    def forward(xp, input: Array, other: Array, dim: int):
        require_kind("cross", input, "fci")
        return vectors.cross(input, other, dim)

    def vjp_input(F, grad, other, dim): return F.linalg_cross(other, grad, dim)
    def vjp_other(F, grad, input, dim): return F.linalg_cross(grad, input, dim)

    def batch(F, batched, input, other, dim):
        # `dim` counts from the end, and operands have as many dimensions
        input, other = (t if n in batched else F.unsqueeze(t, 0) for n, t in (("input", input), ("other", other)))
        return F.linalg_cross(input, other, dim)

    def samples(make):
        yield (make(2, 3), make(2, 3), -1), {}
        yield (make(3, 4), make(3, 1), -2), {}
