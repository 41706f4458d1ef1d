"""Losses of an input and a target element by element, as users call them: checks, weights, reductions, and what is composed.

The operators are in `ops/losses.py`; losses over classes in `losses_classes.py`, over pairs and triplets in `losses_pairs.py`.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import check_reduction, every_value, scalar_name
from pellucid.core.loss_shapes import advice, same_sizes, warn_of_crossing
from pellucid.core.tensor import Tensor, wrap

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "gaussian_nll_loss", "huber_loss", "kl_div",
    "l1_loss", "legacy_reduction", "mse_loss", "poisson_nll_loss", "reduce_loss", "smooth_l1_loss",
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


# --- squared and absolute differences -------------------------------------------------------------------------------


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
