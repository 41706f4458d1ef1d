"""Losses that compare an input with a target element by element: squared, absolute, Huber, cross-entropy of bits, divergences.

Losses over classes are in losses_classes.py, those over pairs and triplets in losses_pairs.py.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from pellucid.autograd.operator import Array, Index, Promote, composite, operator
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import check_reduction, every_value, require_kind, scalar_name
from pellucid.core.loss_shapes import advice, same_sizes, warn_of_crossing
from pellucid.core.tensor import Tensor, wrap
from pellucid.ops.batch_places import in_front, rest_summed
from pellucid.ops.batches import for_each

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "gaussian_nll_loss", "huber_loss", "kl_div", "l1_loss",
    "legacy_reduction", "mse_loss", "poisson_nll_loss", "reduce_loss", "smooth_l1_loss",
]  # fmt: skip


def legacy_reduction(size_average, reduce, reduction: str) -> str:
    """The reduction, from the old pair of switches if one of them is given; ValueError for an unknown name."""
    if size_average is not None or reduce is not None:
        chosen = "mean" if size_average is not False else "sum"
        reduction = chosen if reduce is not False else "none"
        warnings.warn(
            f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.",
            stacklevel=3,
        )
    check_reduction(reduction)
    return reduction


def reduce_loss(loss: Tensor, reduction: str) -> Tensor:
    """A loss of each element as one number, or as it is."""
    check_reduction(reduction)
    return loss if reduction == "none" else loss.mean() if reduction == "mean" else loss.sum()


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


def _weighted(loss: Tensor, weight: Tensor, reduction: str) -> Tensor:
    """A loss of each element times its weight; the mean is over the sum of the weights."""
    if weight._array.shape != loss._array.shape:
        raise ValueError(f"Weights and input must have the same size: got weight {list(weight.shape)}, input {list(loss.shape)}")
    loss = loss * weight
    if reduction == "mean":
        return loss.sum() / weight.sum()
    return reduce_loss(loss, reduction)


@composite(module="nn.functional")
def mse_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Squared difference of input and target, averaged (or summed, or left as it is).

    input, target: [*S], float. weight: [*S] or None. Returns a 0-d tensor, or [*S] for reduction "none".
    Warns if the shapes differ and are broadcast. Raises: ValueError for an unknown reduction.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    input, target = same_sizes(input, target)
    if weight is not None:
        return _weighted(T.mse_loss(input, target, "none"), weight, reduction)
    return T.mse_loss(input, target, reduction)


@composite(module="nn.functional")
def l1_loss(input, target, size_average=None, reduce=None, reduction="mean", weight=None):
    """Absolute difference of input and target, averaged (or summed, or left as it is).

    input, target: [*S]. weight: [*S] or None. Returns a 0-d tensor, or [*S] for reduction "none".
    Warns if the shapes differ and are broadcast. Raises: ValueError for an unknown reduction.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    input, target = same_sizes(input, target)
    loss = (input - target).abs()
    return reduce_loss(loss, reduction) if weight is None else _weighted(loss, weight, reduction)


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


@composite(module="nn.functional")
def smooth_l1_loss(input, target, size_average=None, reduce=None, reduction="mean", beta=1.0):
    """Squared difference near zero, absolute difference beyond `beta`: 0.5 d^2 / beta or |d| - beta / 2.

    input, target: [*S], float. Returns a 0-d tensor, or [*S] for reduction "none".
    Raises: ValueError for an unknown reduction, RuntimeError for a negative beta. Source: Girshick, Fast R-CNN, 2015.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    input, target = same_sizes(input, target)
    if beta < 0:
        raise RuntimeError(f"smooth_l1_loss does not support negative values for beta. Got {beta}")
    if beta == 0:
        return l1_loss(input, target, reduction=reduction)
    return T.smooth_l1_loss(input, target, reduction, float(beta))


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


@composite(module="nn.functional")
def huber_loss(input, target, reduction="mean", delta=1.0, weight=None):
    """Squared difference near zero, linear beyond `delta`: 0.5 d^2 or delta (|d| - delta / 2).

    input, target: [*S], float. weight: [*S] or None. Returns a 0-d tensor, or [*S] for reduction "none".
    Raises: ValueError for an unknown reduction, RuntimeError for a delta that is not positive. Source: Huber, 1964.
    """
    check_reduction(reduction)
    input, target = same_sizes(input, target)
    if delta <= 0:
        raise RuntimeError(f"huber_loss does not support non-positive values for delta. Got {delta}")
    if weight is not None:
        return _weighted(T.huber_loss(input, target, "none", float(delta)), weight, reduction)
    return T.huber_loss(input, target, reduction, float(delta))


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


@composite(module="nn.functional")
def binary_cross_entropy(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Cross-entropy of probabilities with target probabilities: -(t log x + (1 - t) log(1 - x)).

    input, target: [*S] in [0, 1], of one float dtype. weight: broadcastable to [*S]. Logarithms are bounded below by -100.
    Returns a 0-d tensor, or [*S] for reduction "none".
    Raises: ValueError for two shapes, RuntimeError for values outside [0, 1] or two dtypes.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if input._array.shape != target._array.shape:
        raise ValueError(f"Using a target size ({target.shape}) that is different to the input size ({input.shape}) is deprecated. "
                         f"Please ensure they have the same size. {advice(input, target)}")
    if target._array.dtype != input._array.dtype:
        raise RuntimeError(f"Found dtype {scalar_name(target._array)} but expected {scalar_name(input._array)}: convert the target "
                           "with .to(input.dtype)")
    return T.binary_cross_entropy(input, target, weight, reduction)


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


@composite(module=("nn.functional", "torch"))
def binary_cross_entropy_with_logits(
    input, target, weight=None, size_average=None, reduce=None, reduction="mean", pos_weight=None
):
    """Cross-entropy of the probabilities sigmoid(input) with target probabilities, without overflow.

    input, target: [*S], float. weight, pos_weight: broadcastable to [*S]; the second multiplies the term of positive targets.
    Returns a 0-d tensor, or [*S] for reduction "none". Raises: ValueError for two shapes.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if input._array.shape != target._array.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape}): {advice(input, target)}")
    if target._array.dtype.kind in "iub":
        raise RuntimeError(f"result type {scalar_name(input._array)} can't be cast to the desired output type "
                           f"{scalar_name(target._array)}: convert the target with .float()")
    return T.binary_cross_entropy_with_logits(input, target, weight, pos_weight, reduction)


# --- divergences ----------------------------------------------------------------------------------------------------


@composite(module="nn.functional")
def kl_div(input, target, size_average=None, reduce=None, reduction="mean", log_target=False):
    """Kullback-Leibler divergence, term by term: t (log t - input), the input being log-probabilities.

    input, target: [*S] (broadcast); the target holds probabilities, or their logarithms with `log_target`.
    Returns a 0-d tensor (for "batchmean" the sum over the first size), or [*S] for reduction "none".
    """
    if reduction == "mean":
        warnings.warn(
            "reduction: 'mean' divides the total loss by both the batch size and the support size.'batchmean' divides only by "
            "the batch size, and aligns with the KL div math definition.'mean' will be changed to behave the same as "
            "'batchmean' in the next major release.", stacklevel=2)  # fmt: skip
    warn_of_crossing(input, target)
    batch = reduction == "batchmean"
    reduction = "sum" if batch else legacy_reduction(size_average, reduce, reduction)
    loss = target.exp() * (target - input) if log_target else T.xlogy(target, target) - target * input
    loss = reduce_loss(loss, reduction)
    return loss / input.size(0) if batch and input.dim() else loss


@composite(module=("nn.functional", "torch"))
def poisson_nll_loss(
    input, target, log_input=True, full=False, size_average=None, eps=1e-8, reduce=None, reduction="mean"
):
    """Negative log-likelihood of counts that are Poisson distributed: rate - target log(rate).

    input: [*S], the rate or (log_input) its logarithm. target: [*S]. `full` adds Stirling's approximation of log(target!).
    Returns a 0-d tensor, or [*S] for reduction "none". Raises: ValueError for an unknown reduction.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    warn_of_crossing(input, target)
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + 0.5 * (2 * math.pi * target).log()
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduce_loss(loss, reduction)


def _lacks_one_size(shape: tuple, whole: tuple) -> bool:
    """Whether a shape equals another but for one size, which is 1."""
    return len(shape) == len(whole) and sum(a for a, b in zip(shape, whole, strict=True) if a != b) == 1


@composite(module="nn.functional")
def gaussian_nll_loss(input, target, var, full=False, eps=1e-6, reduction="mean"):
    """Negative log-likelihood of normally distributed targets: 0.5 (log var + (input - target)^2 / var).

    input, target: [*S] (broadcast). var: [*S], [*S without the last], [*S with one size 1] or a number; bounded below by `eps`,
    which the gradient does not see. Returns a 0-d tensor, or [*S] for reduction "none".
    Raises: ValueError for a negative or badly shaped variance, or an unknown reduction.
    """
    if not isinstance(var, Tensor):
        if var < 0:
            raise ValueError("var has negative entry/entries")
        var = wrap(np.full_like(input._array, var))
    if var.size() != input.size():
        if tuple(input.size())[:-1] == tuple(var.size()):
            var = var.unsqueeze(-1)
        elif not _lacks_one_size(tuple(var.size()), tuple(input.size())):
            raise ValueError(f"var is of incorrect size: {list(var.shape)} for input {list(input.shape)}")
    check_reduction(reduction)
    warn_of_crossing(input, target)
    if (every_value(var) < 0).any():
        raise ValueError("var has negative entry/entries")
    bounded = T.at_least(var, eps)
    loss = 0.5 * (bounded.log() + (input - target) ** 2 / bounded)
    if full:
        loss = loss + 0.5 * math.log(2 * math.pi)
    return reduce_loss(loss, reduction)
