"""Distances of all pairs of vectors of two lists or of one. Norms are in norms.py, what users call in `functions/distances.py`."""

from __future__ import annotations

import math

from pellucid.autograd.operator import Array, operator
from pellucid.kernels import distances as kernel

__all__: list[str] = []

# --- row by row ------------------------------------------------------------------------------------------------------


@operator(module=None, elementwise=True)
class at_least:
    """Numbers, or `low` where they would be less; the gradient passes as if they had not been."""

    def forward(xp, input: Array, low: float): return input + xp.maximum(low - input, 0).astype(input.dtype)
    def vjp_input(F, grad): return grad


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
