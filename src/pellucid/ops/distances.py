"""Distances and similarities of vectors: pairs row by row, and all pairs of two lists or of one. Norms are in norms.py."""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import Array, composite, operator
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import same_dtype, scalar_name
from pellucid.core.dtype import dtype_of, promoted
from pellucid.core.tensor import Tensor
from pellucid.kernels import distances as kernel
from pellucid.ops.expansion import broadcast_shapes, broadcast_tensors
from pellucid.ops.norms import vector_norm

__all__ = ["cdist", "cosine_similarity", "normalize", "pairwise_distance", "pdist"]

MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
ROWS = 25  # more rows than these, and Euclidean distances are taken from a matrix product
# --- row by row ------------------------------------------------------------------------------------------------------


@composite(module="nn.functional")
def normalize(input, p: float = 2.0, dim=1, eps: float = 1e-12, out=None):
    """The vectors along `dim` divided by their p-norm, or by `eps` if that is larger.

    input: [*S], float or complex. dim: a dimension or a tuple. Returns [*S].
    """
    norm = vector_norm(input, p, dim, keepdim=True)
    return T.true_divide(input, norm.clamp_min(eps), out=out)


@operator(module=None, elementwise=True)
class at_least:
    """Numbers, or `low` where they would be less; the gradient passes as if they had not been."""

    def forward(xp, input: Array, low: float): return input + xp.maximum(low - input, 0).astype(input.dtype)
    def vjp_input(F, grad): return grad


@composite(module=("nn.functional", "torch"))
def cosine_similarity(x1, x2, dim: int = 1, eps: float = 1e-8):
    """The cosine of the angle between the vectors of x1 and x2 along `dim`; norms are at least `eps`.

    x1, x2: float, broadcast to a common shape [*S]. Returns [*S] without `dim`.
    Raises: RuntimeError unless the common dtype is floating-point.
    """
    common = promoted((x1._array, x2._array), ())
    if common.kind not in "fV":
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {scalar_name(np.empty(0, common))}: "
                           "convert the tensors with .float()")
    x1, x2 = broadcast_tensors(x1.to(dtype_of(common)), x2.to(dtype_of(common)))
    norm1, norm2 = (at_least(vector_norm(x, 2, dim, keepdim=True), eps) for x in (x1, x2))
    return ((x1 / norm1) * (x2 / norm2)).sum(dim)


@composite(module=("nn.functional", "torch"))
def pairwise_distance(x1, x2, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
    """The p-norm of x1 - x2 + eps along the last dimension.

    x1, x2: [*, M], broadcast. Returns [*], or [*, 1] with `keepdim`.
    """
    return vector_norm(x1 - x2 + eps, p, -1, keepdim)


# --- all pairs -------------------------------------------------------------------------------------------------------


def _pull(F, grad, difference, distance, p: float):
    """The gradient of a p-norm in the difference: all that are largest get all of it, equal points none.

    grad, distance: [*, 1]; difference: [*, M].
    """
    sign = F.sgn(difference)
    if p == 1:
        return grad * sign
    size = F.abs(difference)
    if math.isinf(p):
        return grad * F.where(size == distance, sign, 0)
    if p == 2:
        return F.where(distance == 0, 0, grad * difference / distance)
    share = F.where(size == 0, 0, sign * F.pow_scalar(size, p - 1)) if p < 2 else difference * F.pow_scalar(size, p - 2)
    return F.where(distance == 0, 0, share * grad / F.pow_scalar(distance, p - 1))


def _push(F, step, difference, distance, p: float):
    """The tangent of a p-norm [*] from that of the difference [*, M]."""
    if p == 0:
        return F.zeros_as(distance)
    return F.sum_dim(_pull(F, 1, difference, F.unsqueeze(distance, -1), p) * step, (-1,), False)


@operator(module=None, name="_cdist", node="CdistBackward0", batching="leading")
class _cdist:
    """Distances of all pairs of x1 [*, P, M] and x2 [*, R, M], of one batch shape. Returns [*, P, R]."""

    def forward(xp, x1: Array, x2: Array, p: float): return kernel.of_pairs(x1, x2, p)

    def vjp(F, grad, needs, x1, x2, result, p):
        if p == 0:
            return tuple([F.zeros_as(x) if need else None for x, need in zip((x1, x2), needs, strict=True)])
        difference = F.unsqueeze(x1, -2) - F.unsqueeze(x2, -3)
        pull = _pull(F, F.unsqueeze(grad, -1), difference, F.unsqueeze(result, -1), p)
        return (
            F.sum_dim(pull, (pull.ndim - 2,), False) if needs[0] else None,
            -F.sum_dim(pull, (pull.ndim - 3,), False) if needs[1] else None,
        )

    def jvp(F, tangents, x1, x2, result, p):
        step1, step2 = tangents
        step = None if step1 is None else F.unsqueeze(step1, -2)
        if step2 is not None:
            step = -F.unsqueeze(step2, -3) if step is None else step - F.unsqueeze(step2, -3)
        return _push(F, step, F.unsqueeze(x1, -2) - F.unsqueeze(x2, -3), result, p)

    def samples(make):
        for p in (0.0, 1.0, 1.5, 2.0, 3.0, math.inf):
            yield (make(3, 2), make(4, 2), p), {}
        yield (make(2, 3, 2), make(2, 2, 2), 2.0), {}


@operator(module=None, node="EuclideanDistBackward0", batching="leading")
class euclidean_dist:
    """The same for p = 2, from |a|^2 - 2 a b + |b|^2: one matrix product, less exact for points close to each other."""

    def forward(xp, x1: Array, x2: Array): return kernel.euclidean(x1, x2)

    def vjp_x1(F, grad, x1, x2, result):
        ratio = F.where(result == 0, 0, grad / result)
        return x1 * F.sum_dim(ratio, (ratio.ndim - 1,), True) - F.matmul(ratio, x2)

    def vjp_x2(F, grad, x1, x2, result):
        ratio = F.transpose(F.where(result == 0, 0, grad / result), -1, -2)
        return x2 * F.sum_dim(ratio, (ratio.ndim - 1,), True) - F.matmul(ratio, x1)

    def jvp(F, tangents, x1, x2, result):
        parts = []  # <x1 - x2, step> for each pair
        for step, own, other, turned in ((tangents[0], x1, x2, False), (tangents[1], x2, x1, True)):
            if step is not None:
                part = F.sum_dim(own * step, (-1,), True) - F.matmul(step, F.transpose(other, -1, -2))
                parts.append(F.transpose(part, -1, -2) if turned else part)
        return F.where(result == 0, 0, sum(parts[1:], parts[0]) / result)

    def samples(make):
        yield (make(3, 2), make(4, 2)), {}
        yield (make(2, 3, 2), make(2, 2, 2)), {}


def _check_pairs(x1: Tensor, x2: Tensor, p: float) -> None:
    for name, x in (("X1", x1._array), ("X2", x2._array)):
        _check_floating("cdist", x, f"{name} ")
    for name, x in (("X1", x1._array), ("X2", x2._array)):
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
    same_dtype(x1._array, x2._array, "expected scalar type {a} but found {b}")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    _check_power("cdist", p)


def _check_floating(name: str, array: np.ndarray, which: str = "") -> None:
    if array.dtype.kind not in "fV":
        raise RuntimeError(f"{name} only supports floating-point dtypes, {which}got: {scalar_name(array)}")


def _check_power(name: str, p: float) -> None:
    if p < 0:
        raise RuntimeError(f"{name} only supports non-negative p values, got p={p}")


@composite()
def cdist(x1, x2, p: float = 2.0, compute_mode: str = MODES[0]):
    """The p-norm distances of every row of x1 to every row of x2.

    x1, x2: [*, P, M] and [*, R, M] of one float dtype; batch dimensions are broadcast. p: from 0 (how many coordinates
    differ) to inf (the largest difference). compute_mode: whether Euclidean distances may come from a matrix product, faster
    and less exact: "use_mm_for_euclid_dist_if_necessary" (for more than 25 rows), "use_mm_for_euclid_dist" or
    "donot_use_mm_for_euclid_dist". Returns [*, P, R]. The gradient at equal points is 0.
    Raises: ValueError for another mode, RuntimeError for shapes or dtypes that do not fit, or a negative p.
    """
    if compute_mode not in MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode: expected one of {', '.join(MODES)}")
    _check_pairs(x1, x2, p)
    batch = tuple(broadcast_shapes(x1.shape[:-2], x2.shape[:-2]))
    x1, x2 = (x if tuple(x.shape[:-2]) == batch else x.expand(batch + tuple(x.shape[-2:])) for x in (x1, x2))
    many = compute_mode == MODES[0] and max(x1.shape[-2], x2.shape[-2]) > ROWS
    if p == 2 and (many or compute_mode == MODES[1]):
        return T.euclidean_dist(x1, x2)
    return T._cdist(x1, x2, float(p))


@operator(module=None, name="_pdist", node="PdistBackward0", batching="leading")
class _pdist:
    """Distances of the rows of input [*, N, M], each pair once: (0, 1), (0, 2), ... Returns [*, N * (N - 1) / 2]."""

    def forward(xp, input: Array, p: float): return kernel.lengths(kernel.differences(input), p)

    def vjp_input(F, grad, input, result, p):
        if p == 0:
            return F.zeros_as(input)
        pull = _pull(F, F.unsqueeze(grad, -1), F.pair_differences(input), F.unsqueeze(result, -1), p)
        return F.pair_differences_backward(pull, input.shape[-2])

    def jvp_input(F, tangent, input, result, p):
        return _push(F, F.pair_differences(tangent), F.pair_differences(input), result, p)

    def samples(make):
        for p in (0.0, 1.0, 1.5, 2.0, 3.0, math.inf):
            yield (make(4, 2), p), {}


@operator(module=None, linear=True, batching="leading")
class pair_differences:
    """The differences of the rows of input [*, N, M], each pair once. Returns [*, N * (N - 1) / 2, M]."""

    def forward(xp, input: Array): return kernel.differences(input)
    def vjp_input(F, grad, input_shape): return F.pair_differences_backward(grad, input_shape[-2])
    def samples(make): yield (make(4, 2),), {}


@operator(module=None, linear=True, batching="leading")
class pair_differences_backward:
    """The transpose of the differences of all pairs of `count` rows. Returns [*, count, M]."""

    def forward(xp, input: Array, count: int): return kernel.differences_added(input, count)
    def vjp_input(F, grad): return F.pair_differences(grad)
    def samples(make): yield (make(6, 2), 4), {}


@composite(module=("nn.functional", "torch"))
def pdist(input, p: float = 2):
    """The p-norm distances of the rows of a matrix to one another, each pair once: (0, 1), (0, 2), ..., (1, 2), ...

    input: [N, M], float. Returns [N * (N - 1) / 2]. The gradient at equal points is 0.
    Raises: RuntimeError for another number of dimensions, for integers, or for a negative p.
    """
    if input._array.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input._array.ndim}D")
    _check_floating("pdist", input._array)
    _check_power("pdist", p)
    return T._pdist(input, float(p))
