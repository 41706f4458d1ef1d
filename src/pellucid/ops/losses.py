"""Losses that compare an input with a target element by element: squared, absolute, Huber, cross-entropy of bits, logistic.

The functions that users call, and losses that are composed, are in `functions/losses.py`; losses over classes in losses_classes.py.
"""

from __future__ import annotations

import math

from pellucid.autograd.operator import Array, Index, Promote, operator
from pellucid.core.checks import require_kind
from pellucid.ops.batch_places import in_front, rest_summed
from pellucid.ops.batches import for_each

__all__: list[str] = []


def _reduced(xp, loss, reduction: str):
    if reduction == "none":
        return loss
    total = xp.add.reduce(loss, axis=None)
    if reduction == "mean":
        total = total / total.dtype.type(loss.size)
    return total


def _share(grad, reduction: str, shape: tuple):
    """The gradient of each element's loss; for "mean" and "sum" a 0-d one that stands for all."""
    if reduction != "mean":
        return grad
    count = math.prod(shape)
    return grad * (1.0 / count if count else math.nan)


def _over_all(F, loss, reduction: str):
    """The tangent of a reduced loss from that of each element's."""
    return loss if reduction == "none" else F.mean_all(loss) if reduction == "mean" else F.sum_all(loss)


def _pushed(F, tangents, slopes, reduction: str):
    """The tangent of a reduced loss: for each operand its tangent times the slope of each element's loss in it."""
    parts = [slope() * tangent for tangent, slope in zip(tangents, slopes, strict=True) if tangent is not None]
    return _over_all(F, sum(parts[1:], parts[0]), reduction)


def _of_each(F, loss, size: int, batched: set, reduction: str, input, target, **weights):
    """`loss(input, target, *weights)` of the elements of each example of a batch, reduced for each."""
    input, target = for_each(F, input, "input" in batched, size), for_each(F, target, "target" in batched, size)
    weights = [in_front(F, w, input.ndim - 1) if name in batched else w for name, w in weights.items()]
    made = loss(input, target, *weights)
    return made if reduction == "none" else rest_summed(F, made, reduction == "mean")


# --- squared and absolute differences -------------------------------------------------------------------------------


@operator(module=None, name="mse_loss", promote=Promote.SAME, broadcast=False)
class _mse_loss:
    """Squared difference of two tensors of one shape, reduced."""

    def forward(xp, input: Array, target: Array, reduction: str):
        require_kind("mse_cpu", input, "fc")
        loss = xp.subtract(input, target)
        if reduction != "none" and loss.dtype.kind == "f":
            flat = loss.reshape(-1)
            total = xp.dot(flat, flat)
            return total / total.dtype.type(loss.size) if reduction == "mean" else total
        return _reduced(xp, loss * loss, reduction)

    def vjp_input(F, grad, input, target, reduction, input_shape):
        return (input - target) * (_share(grad, reduction, input_shape) * 2)

    def vjp_target(F, grad, input, target, reduction, input_shape):
        return (target - input) * (_share(grad, reduction, input_shape) * 2)

    def jvp(F, tangents, input, target, reduction):
        return _pushed(F, tangents, (lambda: 2 * (input - target), lambda: 2 * (target - input)), reduction)

    def batch(F, size_of_batch, batched, input, target, reduction):
        return _of_each(F, lambda x, t: F.mse_loss(x, t, "none"), size_of_batch, batched, reduction, input, target)

    def samples(make):
        for reduction in ("none", "mean", "sum"):
            yield (make(3, 4), make(3, 4), reduction), {}


def _smooth_slope(F, d, beta: float):
    return F.where(F.abs(d) >= beta, F.sign(d), d * (1 / beta))  # NaN stays NaN


@operator(module=None, name="smooth_l1_loss", promote=Promote.SAME, broadcast=False)
class _smooth_l1_loss:
    """0.5 d^2 / beta where |d| < beta, |d| - beta / 2 elsewhere, d = input - target; reduced."""

    def forward(xp, input: Array, target: Array, reduction: str, beta: float):
        require_kind("smooth_l1_cpu", input, "fc")
        size = xp.abs(input - target)
        return _reduced(xp, xp.where(size < beta, (0.5 / beta) * size * size, size - 0.5 * beta), reduction)

    def vjp_input(F, grad, input, target, reduction, input_shape, beta):
        return _smooth_slope(F, input - target, beta) * _share(grad, reduction, input_shape)

    def vjp_target(F, grad, input, target, reduction, input_shape, beta):
        return _smooth_slope(F, target - input, beta) * _share(grad, reduction, input_shape)

    def jvp(F, tangents, input, target, reduction, beta):
        slopes = (lambda: _smooth_slope(F, input - target, beta), lambda: _smooth_slope(F, target - input, beta))
        return _pushed(F, tangents, slopes, reduction)

    def batch(F, size_of_batch, batched, input, target, reduction, beta):
        return _of_each(F, lambda x, t: F.smooth_l1_loss(x, t, "none", beta), size_of_batch, batched, reduction, input, target)

    def samples(make):
        for reduction in ("none", "mean", "sum"):
            yield (make(3, 4), make(3, 4), reduction, 1.0), {}
        yield (make(3, 4), make(3, 4), "mean", 0.5), {}


def _huber_slope(F, d, delta: float):
    return F.where(F.abs(d) >= delta, F.sign(d) * delta, d)


@operator(module=None, name="huber_loss", promote=Promote.SAME, broadcast=False)
class _huber_loss:
    """0.5 d^2 where |d| <= delta, delta (|d| - delta / 2) elsewhere, d = input - target; reduced."""

    def forward(xp, input: Array, target: Array, reduction: str, delta: float):
        require_kind("huber_cpu", input, "fc")
        size = xp.abs(input - target)
        return _reduced(xp, xp.where(size <= delta, 0.5 * size * size, delta * (size - 0.5 * delta)), reduction)

    def vjp_input(F, grad, input, target, reduction, input_shape, delta):
        return _huber_slope(F, input - target, delta) * _share(grad, reduction, input_shape)

    def vjp_target(F, grad, input, target, reduction, input_shape, delta):
        return _huber_slope(F, target - input, delta) * _share(grad, reduction, input_shape)

    def jvp(F, tangents, input, target, reduction, delta):
        slopes = (lambda: _huber_slope(F, input - target, delta), lambda: _huber_slope(F, target - input, delta))
        return _pushed(F, tangents, slopes, reduction)

    def batch(F, size_of_batch, batched, input, target, reduction, delta):
        return _of_each(F, lambda x, t: F.huber_loss(x, t, "none", delta), size_of_batch, batched, reduction, input, target)

    def samples(make):
        for reduction in ("none", "mean", "sum"):
            yield (make(3, 4), make(3, 4), reduction, 1.0), {}


# --- cross-entropy of bits ------------------------------------------------------------------------------------------


def _in_unit_interval(array, name: str) -> None:
    if array.size and not bool(((array >= 0) & (array <= 1)).all()):
        raise RuntimeError(f"all elements of {name} should be between 0 and 1: they range from {array.min()} to {array.max()}")


def _times(value, weight):
    return value if weight is None else value * weight


def _bits_slope(F, share, input, target, weight):
    spread = (1 - input) * input
    return _times(share * (input - target) / F.where(spread > 1e-12, spread, 1e-12), weight)


@operator(module=None, name="binary_cross_entropy")
class _binary_cross_entropy:
    """-(t log x + (1 - t) log(1 - x)), logarithms bounded below by -100, times a weight, reduced."""

    def forward(xp, input: Array, target: Array, weight: Index | None = None, reduction: str = "mean"):
        _in_unit_interval(input, "input")
        _in_unit_interval(target, "target")
        loss = (target - 1) * xp.maximum(xp.log1p(-input), -100) - target * xp.maximum(xp.log(input), -100)
        return _reduced(xp, loss if weight is None else loss * weight, reduction)

    def vjp_input(F, grad, input, target, weight, reduction, input_shape):
        return _bits_slope(F, _share(grad, reduction, input_shape), input, target, weight)

    def vjp_target(F, grad, input, weight, reduction, input_shape):
        return _times((F.log(1 - input) - F.log(input)) * _share(grad, reduction, input_shape), weight)

    def jvp(F, tangents, input, target, weight, reduction):
        slopes = (lambda: _bits_slope(F, 1, input, target, weight), lambda: _times(F.log(1 - input) - F.log(input), weight))
        return _pushed(F, tangents, slopes, reduction)

    def batch(F, size_of_batch, batched, input, target, weight, reduction):
        def loss(input, target, weight):
            return F.binary_cross_entropy(input, target, weight, "none")

        return _of_each(F, loss, size_of_batch, batched, reduction, input, target, weight=weight)

    def samples(make):
        for reduction in ("none", "mean", "sum"):
            yield (make(3, 4, low=0.1, high=0.9), make(3, 4, low=0.1, high=0.9), None, reduction), {}
        yield (make(3, 4, low=0.1, high=0.9), make(3, 4, low=0.1, high=0.9), make(4), "mean"), {}


def _score_slope(F, input, target, pos_weight):
    if pos_weight is None:
        return F.sigmoid(input) - target
    positive = target * pos_weight
    return (positive + 1 - target) * F.sigmoid(input) - positive


def _label_slope(F, input, pos_weight):
    return -input if pos_weight is None else F.log(F.sigmoid(-input)) - pos_weight * F.log(F.sigmoid(input))


@operator(module=None, name="binary_cross_entropy_with_logits", promote=Promote.SAME, broadcast=False)
class _binary_cross_entropy_with_logits:
    """-(p t log s(x) + (1 - t) log(1 - s(x))), s the logistic function, times a weight, reduced; p weighs positive targets."""

    def forward(
        xp, input: Array, target: Array, weight: Index | None, pos_weight: Index | None = None, reduction: str = "mean"
    ):
        softplus = xp.log1p(xp.exp(-xp.abs(input))) + xp.maximum(-input, 0)  # -log s(x), without overflow
        if pos_weight is not None:
            softplus *= (pos_weight - 1) * target + 1
        loss = (1 - target) * input + softplus
        return _reduced(xp, loss if weight is None else loss * weight, reduction)

    def vjp_input(F, grad, input, target, weight, pos_weight, reduction, input_shape):
        return _times(_score_slope(F, input, target, pos_weight) * _share(grad, reduction, input_shape), weight)

    def vjp_target(F, grad, input, weight, pos_weight, reduction, input_shape):
        return _times(_label_slope(F, input, pos_weight) * _share(grad, reduction, input_shape), weight)

    def jvp(F, tangents, input, target, weight, pos_weight, reduction):
        slopes = _score_slope(F, input, target, pos_weight), _label_slope(F, input, pos_weight)
        return _pushed(F, tangents, [lambda slope=slope: _times(slope, weight) for slope in slopes], reduction)

    def batch(F, size_of_batch, batched, input, target, weight, pos_weight, reduction):
        def loss(input, target, weight, pos_weight):
            return F.binary_cross_entropy_with_logits(input, target, weight, pos_weight, "none")

        return _of_each(F, loss, size_of_batch, batched, reduction, input, target, weight=weight, pos_weight=pos_weight)

    def samples(make):
        for reduction in ("none", "mean", "sum"):
            yield (make(3, 4), make(3, 4, low=0, high=1), None, None, reduction), {}
        yield (make(3, 4), make(3, 4, low=0, high=1), make(4), make(4, low=0.5), "mean"), {}


# PyTorch takes the exponential in the operands' own dtype: that of halfs overflows beyond 11, and the gradient then is NaN.
@operator(module=None, name="soft_margin_loss", node="SoftMarginLossBackward0", promote=Promote.SAME, widen=False)
class _soft_margin_loss:
    """log(1 + exp(-target input)) of each element."""

    def forward(xp, input: Array, target: Array): return xp.log1p(xp.exp(-target * input))

    def vjp_input(F, grad, input, target):
        power = F.exp(-target * input)
        return -grad * target * power / (power + 1)

    def vjp_target(F, grad, input, target):
        power = F.exp(-target * input)
        return -grad * input * power / (power + 1)

    def samples(make):
        yield (make(3, 4), make(3, 4)), {}
        yield (make(3, 4), make(4)), {}
        yield (make(), make()), {}
