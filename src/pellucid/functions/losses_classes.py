"""Losses over classes as users call them: checks, smoothing, and the margin losses, which are composed.

The operators behind likelihood and cross-entropy are in `ops/losses_classes.py`.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import check_reduction, every_value, scalar_name
from pellucid.core.loss_shapes import warn_of_crossing
from pellucid.core.modes import modes
from pellucid.core.tensor import Tensor
from pellucid.functions.losses import legacy_reduction, reduce_loss
from pellucid.functions.softmax import log_softmax
from pellucid.ops.losses_classes import label_pairs
from pellucid.ops.products import linear

__all__ = ["cross_entropy", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss"]


# --- public forms -------------------------------------------------------------------------------------------------------


def _check_batch(input: Tensor, target: Tensor, weight: Tensor | None) -> None:
    a, b = input._array, target._array
    if weight is not None and weight.dtype is not input.dtype and a.dtype.kind in "fV":
        names = scalar_name(a), scalar_name(weight._array)
        raise RuntimeError(f"expected scalar type {names[0]} but found {names[1]}: convert the weight")
    if not a.ndim:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    if a.ndim > 1 and (not b.ndim or a.shape[0] != b.shape[0]) and not (b.ndim == 0 and a.ndim == 1):
        got = b.shape[0] if b.ndim else 1
        raise ValueError(f"Expected input batch_size ({a.shape[0]}) to match target batch_size ({got}): input has shape "
                         f"{list(a.shape)}, target {list(b.shape)}")
    if a.ndim == 3 and b.shape != (a.shape[0], a.shape[2]):
        raise RuntimeError(f"Expected target size {[a.shape[0], a.shape[2]]}, got {list(b.shape)}")
    if a.ndim > 3 and b.ndim == a.ndim - 1 and (a.shape[0], *a.shape[2:]) != b.shape:
        raise RuntimeError(f"size mismatch (got input: {list(a.shape)} , target: {list(b.shape)}")
    if a.ndim > 3 and b.ndim != a.ndim - 1:
        raise RuntimeError(f"only batches of spatial targets supported ({a.ndim - 1}D tensors) but got targets of dimension: {b.ndim}")


@composite(module="nn.functional")
def nll_loss(input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean"):
    """Negative log-likelihood: minus the log-probability of each target's class.

    input: [N, C], [C] or [N, C, *S], log-probabilities; target: [N], [] or [N, *S], int64 class numbers; weight: [C] or None.
    Targets equal to `ignore_index` count nothing. Returns a 0-d tensor (the mean is over the sum of the weights), or the
    target's shape for reduction "none".
    Raises: IndexError for a class that is not there, ValueError or RuntimeError for shapes and dtypes that do not fit.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    _check_batch(input, target, weight)
    return T.nll_loss(input, target, weight, reduction, ignore_index)


@composite(module="nn.functional")
def cross_entropy(
    input, target, weight=None, size_average=None, ignore_index=-100, reduce=None, reduction="mean", label_smoothing=0.0
):
    """Cross-entropy of softmax(input) with target classes or target probabilities.

    input: [N, C], [C] or [N, C, *S], scores; target: int64 class numbers [N], [] or [N, *S], or probabilities of the input's
    shape; weight: [C] or None. Targets equal to `ignore_index` count nothing. `label_smoothing` mixes each target with the
    uniform distribution. Returns a 0-d tensor, or one value for each target for reduction "none".
    Raises: IndexError for a class that is not there, ValueError or RuntimeError for shapes and dtypes that do not fit.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if not 0 <= label_smoothing <= 1:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    axis = min(1, input._array.ndim - 1)
    if input._array.shape == target._array.shape and input._array.ndim:
        return _cross_entropy_probabilities(input, target, weight, ignore_index, reduction, label_smoothing)
    _check_batch(input, target, weight)
    if input._array.dtype in (np.float32, np.float64) and input._array.ndim == 2 and input._array.size and not modes.transforms:
        return T.cross_entropy(input, target, weight, reduction, ignore_index, label_smoothing)[0]
    scores = log_softmax(input, axis)
    if not label_smoothing:
        return T.nll_loss(scores, target, weight, reduction, ignore_index)
    return _smoothed(scores, target, weight, ignore_index, reduction, label_smoothing, axis)


@composite(module="nn.functional")
def linear_cross_entropy(input, linear_weight, target, *, linear_bias=None, weight=None, reduction="mean", ignore_index=None,
                         label_smoothing=0.0, options=None):  # fmt: skip
    """`cross_entropy` of scores that are an affine map of the input: input @ linear_weight^T + linear_bias.

    input: [N, in] or [in]; linear_weight: [C, in] or [C, *S, in]; linear_bias: [C] or [C, *S]; target: [N, *S] classes, or
    probabilities [N, C, *S]. `options` would choose how to save memory; the scores are always held whole here.
    Raises: RuntimeError for shapes that do not fit, or ignore_index with probabilities; otherwise as `cross_entropy`.
    """
    if input._array.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input._array.ndim}")
    features = input._array.shape[-1]
    if linear_weight._array.shape[-1] != features:
        raise RuntimeError("expected equal input and linear_weight last dimensions (in_features), "
                           f"got {features} and {linear_weight._array.shape[-1]}, respectively")  # fmt: skip
    outputs = linear_weight._array.shape[:-1]
    if linear_bias is not None and linear_bias._array.shape != outputs:
        raise RuntimeError(f"expected linear_bias shape {outputs}, got {linear_bias._array.shape}")
    if len(outputs) > 1 and input._array.ndim == 1:
        raise RuntimeError(f"K-dimensional loss defined by linear_weight shape {linear_weight._array.shape} requires batched input, (N, "
                           f"{features}), got unbatched input with shape {input._array.shape}")  # fmt: skip
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    scores = linear(input, linear_weight.reshape(-1, features), bias).reshape(input._array.shape[:-1] + outputs)
    if scores._array.shape == target._array.shape and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    ignore_index = -100 if ignore_index is None else ignore_index
    return cross_entropy(scores, target, weight, ignore_index=ignore_index, reduction=reduction, label_smoothing=label_smoothing)


def _cross_entropy_probabilities(input, target, weight, ignore_index, reduction, label_smoothing):
    if not target.is_floating_point():
        raise RuntimeError(f"Expected floating point type for target with class probabilities, got {scalar_name(target._array)}")
    if ignore_index >= 0:
        raise RuntimeError("ignore_index is not supported for floating point target")
    axis = min(1, input._array.ndim - 1)
    classes = input._array.shape[axis]
    _check_class_weight(weight, classes)
    if label_smoothing:
        target = target * (1 - label_smoothing) + label_smoothing / classes
    loss = log_softmax(input, axis) * target
    if weight is not None:
        loss = loss * _along(weight, axis, input._array.ndim)
    if reduction == "none":
        return -loss.sum(axis)
    total = -loss.sum()
    batch = input._array.size // classes if classes else 0
    return total / batch if reduction == "mean" and input._array.ndim > 1 else total


def _check_class_weight(weight, classes: int) -> None:
    if weight is not None and weight._array.shape != (classes,):
        raise RuntimeError(f"cross_entropy: weight tensor should be defined either for all {classes} classes or no classes but got "
                           f"weight tensor of shape: {list(weight.shape)}")


def _along(weight: Tensor, axis: int, ndim: int) -> Tensor:
    return weight.reshape([-1 if i == axis else 1 for i in range(ndim)])


def _smoothed(scores, target, weight, ignore_index, reduction, smoothing: float, axis: int):
    """(1 - s) times the loss of the target class and s times the mean loss of all classes."""
    classes = scores._array.shape[axis]
    hard = T.nll_loss(scores, target, weight, reduction, ignore_index)
    weighted = scores if weight is None else scores * _along(weight, axis, scores._array.ndim)
    smooth = -weighted.sum(axis)
    ignored = target == ignore_index
    smooth = smooth.masked_fill(ignored, 0)
    if reduction == "mean":
        if weight is None:
            count = ignored.sum() if ignored._wraps else int(ignored._array.sum())
            smooth = smooth.sum() / (target._array.size - count)
        else:
            chosen = weight[target.masked_fill(ignored, 0)].masked_fill(ignored, 0)
            smooth = smooth.sum() / chosen.sum()
    elif reduction == "sum":
        smooth = smooth.sum()
    return hard * (1 - smoothing) + smooth * (smoothing / classes)


# --- margins --------------------------------------------------------------------------------------------------------


@composite(module="nn.functional")
def multi_margin_loss(input, target, p=1, margin=1.0, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Sum over other classes of max(0, margin - x[target] + x[class])^p, over the number of classes.

    input: [N, C] or [C]; target: [N] or [], int64; weight: [C] or None. Returns a 0-d tensor, or [N] for reduction "none".
    Raises: ValueError for p other than 1 or 2, RuntimeError for shapes that do not fit.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.dim() != 1:
        raise ValueError("weight must be one-dimensional")
    if input.dim() > 2 or 0 in tuple(input.shape)[1:] or (input.dim() == 1 and not input.numel()):
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}")
    batch = input.size(0) if input.dim() == 2 else 1
    if target.dim() > 1 or target.numel() != batch:
        raise RuntimeError("multi_margin_loss: target tensor should be 1-D with size equal to the number of input samples (batch "
                           f"size). Expected target size [{batch}], but got {list(target.shape)}. Input has shape "
                           f"{list(input.shape)}.")
    x = input if input.dim() == 2 else input.reshape(1, -1)
    classes = x.size(1)
    if weight is not None and weight.numel() != classes:
        raise RuntimeError(f"inconsistent weight size, expected {classes} but got {list(weight.shape)}")
    index = target.reshape(-1, 1)
    labels = every_value(target)
    if labels.dtype != np.int64:
        raise RuntimeError(f"expected scalar type Long but found {scalar_name(labels)}: convert the target with .long()")
    if labels.size and (labels.min() < 0 or labels.max() >= classes):
        raise RuntimeError(f"target out of range: classes are 0 to {classes - 1}, targets go from {labels.min()} to {labels.max()}")
    loss = T.relu(margin - x.gather(1, index) + x)
    loss = loss if p == 1 else loss * loss
    if weight is not None:
        loss = loss * weight[index]
    loss = loss.scatter(1, index, 0).sum(1) / classes
    return reduce_loss(loss if input.dim() == 2 or reduction != "none" else loss.squeeze(0), reduction)


@composite(module="nn.functional")
def multilabel_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """Sum over target classes t and other classes c of max(0, 1 - x[t] + x[c]), over the number of classes.

    input: [N, C] or [C]; target: the same shape, int64, class numbers up to the first -1. Returns a 0-d tensor, or [N].
    Raises: RuntimeError for shapes that do not fit or classes that are not there.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if input._array.ndim > 2 or (input._array.ndim == 2 and not input._array.shape[1]) or input._array.shape == (0,):
        raise RuntimeError(f"Expected non-empty vector or matrix with optional 0-dim batch size, but got: {list(input.shape)}")
    if target._array.shape != input._array.shape and not (input._array.size == target._array.size == 1):
        raise RuntimeError(f"inconsistent target size: {list(target.shape)} for input of size: {list(input.shape)}")
    x = input.reshape(-1, input.size(-1) if input.dim() else 1)
    labels = every_value(target)
    if labels.size and (labels.min() < -1 or labels.max() >= x.size(1)):
        raise RuntimeError(f"multilabel_margin_loss: targets must be between -1 and {x.size(1) - 1}, got {labels.min()} to {labels.max()}")
    chosen, counted = label_pairs(target.reshape(x.shape))
    loss = T.relu(1 - x.gather(1, chosen).unsqueeze(2) + x.unsqueeze(1)) * counted.to(x.dtype)
    loss = loss.sum((1, 2)) / x.size(1)
    return reduce_loss(loss if input.dim() == 2 or reduction != "none" else loss.squeeze(0), reduction)


@composite(module="nn.functional")
def multilabel_soft_margin_loss(input, target, weight=None, size_average=None, reduce=None, reduction="mean"):
    """Mean over classes of the binary cross-entropy of sigmoid(input) with the target.

    input, target: [N, C] (or [*S, C]); weight: broadcastable. Returns a 0-d tensor, or [*S] for reduction "none".
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    check_reduction(reduction)
    warn_of_crossing(input, target)
    loss = -(target * T.log_sigmoid(input) + (1 - target) * T.log_sigmoid(-input))
    if weight is not None:
        loss = loss * weight
    return reduce_loss(loss.mean(-1), reduction)
