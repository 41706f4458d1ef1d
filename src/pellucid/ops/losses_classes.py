"""Losses over classes: negative log-likelihood, cross-entropy, and the margin losses of several classes."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Index, composite, operator
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import check_reduction, every_value, require_kind, scalar_name
from pellucid.core.loss_shapes import warn_of_crossing
from pellucid.core.modes import modes
from pellucid.core.tensor import Tensor, wrap
from pellucid.kernels import softmax as kernels
from pellucid.ops.batch_places import in_front, rest_summed
from pellucid.ops.batches import for_each
from pellucid.ops.losses import legacy_reduction, reduce_loss
from pellucid.ops.products import linear
from pellucid.ops.softmax import log_softmax

__all__ = ["cross_entropy", "multi_margin_loss", "multilabel_margin_loss", "multilabel_soft_margin_loss", "nll_loss"]


# --- negative log-likelihood ----------------------------------------------------------------------------------------


def _check_nll(input, target, weight) -> None:
    if target.dtype not in (np.int64, np.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {scalar_name(target)}. Convert the target with .long()")
    require_kind("nll_loss_out_frame", input, "f")
    if input.ndim <= 2 and target.ndim > 1:
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported: input has shape {list(input.shape)}, "
                           f"target {list(target.shape)}")
    classes = input.shape[min(1, input.ndim - 1)]
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor "
                           f"of shape: {list(weight.shape)}")


def _picked(xp, target, weight, shape: tuple, dtype, ignore_index: int):
    """Of each target the class to pick, as an index with the shape of the input but one class, and its weight (or None)."""
    axis = min(1, len(shape) - 1)
    index = xp.expand_dims(target if target.dtype == np.int64 else target.astype(np.int64), axis)
    if len(shape) == 1:
        index = index.reshape(1)
    weights = None if weight is None else weight
    ignored = index == ignore_index
    if ignored.any():
        index = xp.where(ignored, 0, index)
        weights = xp.ones(shape[axis], dtype) if weights is None else weights
    _in_range(target, index, shape[axis])
    if weights is None:
        return axis, index, None
    return axis, index, xp.where(ignored, 0, weights[index]).astype(dtype, copy=False)


def _in_range(target, index, classes: int) -> None:
    if index.size and (index.min() < 0 or index.max() >= classes):
        bad = index[(index < 0) | (index >= classes)].flat[0]
        raise IndexError(f"Target {bad} is out of bounds. Classes are numbered 0 to {classes - 1}; target has shape {list(target.shape)}")


class _Examples:
    """Targets and weights of all examples of a batch, as one large batch without a reduction."""

    def __init__(self, F, size: int, batched: set, target, weight, shape: tuple, ignore_index: int):
        target = for_each(F, target, "target" in batched, size)
        rows, (classes, *rest) = (1, shape) if len(shape) == 1 else (shape[0], shape[1:])
        self.F, self.ignore_index, self.places = F, ignore_index, tuple(target.shape)
        self.shape = (size * rows, classes, *rest)
        self.target = F.reshape(target, (size * rows, *rest))
        self.weight, self.factors = weight, None
        if "weight" in batched:  # a weight for each example is a factor of its scores
            spread = F.expand(F.unsqueeze(weight, 1), (size, rows, classes))
            self.weight, self.factors = None, F.reshape(spread, (size * rows, classes, *(1,) * len(rest)))

    def losses(self, scores):
        """Minus the weighted score of each target, with the batch in front."""
        scores = scores if self.factors is None else scores * self.factors
        made = self.F.nll_loss(scores, self.target, self.weight, "none", self.ignore_index)
        return self.F.reshape(made, self.places)

    def weights(self, kind: np.dtype):
        """The sum of the weights of each example's targets."""
        return rest_summed(self.F, self.losses(self.F.expand(wrap(np.array(-1, kind)), self.shape)))


@operator(module=None, name="nll_loss", fused=True, exact=True, linear=True)
class _nll_loss:
    """-input at each target's class, weighted, reduced; "mean" divides by the sum of the weights.

    input: [N, C], [C] or [N, C, *S]; target: [N], [] or [N, *S].
    """

    def forward(
        xp, input: Array, target: Index, weight: Index | None = None, reduction: str = "mean", ignore_index: int = -100
    ):
        _check_nll(input, target, weight)
        axis, index, weights = _picked(xp, target, weight, input.shape, input.dtype, ignore_index)
        if input.ndim == 2:
            loss = input[xp.arange(input.shape[0]), index[:, 0]].reshape(-1, 1)
        else:
            loss = xp.take_along_axis(input, index, axis)
        loss = -loss if weights is None else -loss * weights
        if reduction == "none":
            return loss.reshape(target.shape)
        total = xp.add.reduce(loss, axis=None)
        if reduction == "mean":
            total = total / total.dtype.type(loss.size if weights is None else xp.add.reduce(weights, axis=None))
        return total

    def vjp_input(F, grad, target, weight, input_shape, reduction, ignore_index):
        return F.nll_loss_backward(grad, target, weight, tuple(input_shape), reduction, ignore_index)

    def batch(F, size_of_batch, batched, input, target, weight, reduction, ignore_index):
        input = for_each(F, input, "input" in batched, size_of_batch)
        whole = _Examples(F, size_of_batch, batched, target, weight, input.shape[1:], ignore_index)
        loss = whole.losses(F.reshape(input, whole.shape))
        if reduction == "none":
            return loss
        total = rest_summed(F, loss)
        return total / whole.weights(input._array.dtype) if reduction == "mean" else total

    def samples(make):
        for reduction in ("none", "mean", "sum"):
            yield (make(4, 3), make.integers(4, high=3), None, reduction, 1), {}
            yield (make(4, 3), make.integers(4, high=3), make(3, low=0.5), reduction, -100), {}
        yield (make(2, 3, 2, 2), make.integers(2, 2, 2, high=3), None, "mean", -100), {}
        yield (make(3), make.integers(high=3), None, "mean", -100), {}


@operator(module=None, exact=True, linear=True)
class nll_loss_backward:
    """The gradient of `nll_loss`'s input: minus weight times grad at each target's class, zero elsewhere."""

    def forward(xp, input: Array, target: Index, weight: Index | None = None, shape: tuple = (), reduction: str = "mean",
                ignore_index: int = -100):  # fmt: skip
        axis, index, weights = _picked(xp, target, weight, shape, input.dtype, ignore_index)
        share = -input if reduction != "none" else -input.reshape(index.shape)
        if reduction == "mean":
            share = share / share.dtype.type(index.size if weights is None else xp.add.reduce(weights, axis=None))
        if weights is not None:
            share = xp.where(weights == 0, 0, share * weights)
        whole = xp.zeros(shape, input.dtype)
        if len(shape) == 2:
            whole[xp.arange(shape[0]), index[:, 0]] = share if not share.ndim else share[:, 0]
        else:
            xp.put_along_axis(whole, index, share, axis)
        return whole

    def vjp_input(F, grad, target, weight, reduction, ignore_index):
        return F.nll_loss(grad, target, weight, reduction, ignore_index)

    def batch(F, size_of_batch, batched, input, target, weight, shape, reduction, ignore_index):
        whole = _Examples(F, size_of_batch, batched, target, weight, shape, ignore_index)
        grad = for_each(F, input, "input" in batched, size_of_batch)
        if reduction == "mean":
            grad = grad / whole.weights(grad._array.dtype)
        grad = F.reshape(F.expand(in_front(F, grad, len(whole.places) - 1), whole.places), whole.target.shape)
        made = F.nll_loss_backward(grad, whole.target, whole.weight, whole.shape, "none", ignore_index)
        return F.reshape(made if whole.factors is None else made * whole.factors, (size_of_batch, *shape))

    def samples(make):
        yield (make(4), make.integers(4, high=3), None, (4, 3), "none", 1), {}
        yield (make(), make.integers(4, high=3), make(3, low=0.5), (4, 3), "mean", -100), {}


# --- cross-entropy of class numbers, in one operator -------------------------------------------------------------------


def _counted(target, weight, dtype, ignore_index: int):
    """Of each row of a matrix of scores its class (0 where it is ignored) and its weight, or None where all count as one."""
    ignored = target == ignore_index
    if not ignored.any():
        return target, None if weight is None else weight[target]
    classes = np.where(ignored, 0, target)
    weights = 1 if weight is None else weight[classes]
    return classes, np.where(ignored, 0, weights).astype(dtype, copy=False)


def _divisor(shares, target, dtype):
    """What the mean divides by: the sum of the weights."""
    return dtype.type(target.size) if shares is None else np.add.reduce(shares)


@operator(module=None, name="cross_entropy", node="NllLossBackward0", fused=True, outputs=("loss", "statistics"),
          constant=("statistics",), batching="loop")  # fmt: skip
class _cross_entropy:
    """Cross-entropy of the softmax of each row with its class, without the softmax: the row's largest score and the sum of
    exponentials are kept instead.

    input: [N, C]; target: [N], int64 or uint8; weight: [C] or None. Returns the loss and the statistics [2, N].
    """

    def forward(xp, input: Array, target: Index, weight: Index | None = None, reduction: str = "mean", ignore_index: int = -100,
                label_smoothing: float = 0.0):  # fmt: skip
        _check_nll(input, target, weight)
        target = target.astype(xp.int64, copy=False)
        classes, shares = _counted(target, weight, input.dtype, ignore_index)
        _in_range(target, classes, input.shape[1])
        known = kernels.statistics(input)
        loss = kernels.cross_entropy_losses(input, known, classes, shares, label_smoothing, weight)
        if reduction == "none":
            return loss, known
        total = xp.add.reduce(loss)
        return total / _divisor(shares, target, input.dtype) if reduction == "mean" else total, known

    def vjp_input(F, grad, input, statistics, target, weight, reduction, ignore_index, label_smoothing):
        return F.cross_entropy_backward(grad, input, target, weight, statistics, reduction, ignore_index, label_smoothing)

    def samples(make):
        for reduction in ("none", "mean", "sum"):
            yield (make(4, 3), make.integers(4, high=3), None, reduction, 1, 0.0), {}
            yield (make(4, 3), make.integers(4, high=3), make(3, low=0.5), reduction, -100, 0.2), {}
        yield (make(4, 3), make.integers(4, high=3), None, "mean", 0, 0.2), {}


@operator(module=None, batching="loop")
class cross_entropy_backward:
    """The gradient of the scores, given that of the loss: share (softmax - onehot) of each row; see the kernel.

    statistics: those of the scores, to save the time of finding them again.
    """

    def forward(xp, input: Array, scores: Array, target: Index, weight: Index | None = None,
                statistics: Index | None = None, reduction: str = "mean", ignore_index: int = -100, label_smoothing: float = 0.0):  # fmt: skip
        target = target.astype(xp.int64, copy=False)
        classes, shares = _counted(target, weight, scores.dtype, ignore_index)
        grad = input / _divisor(shares, target, scores.dtype) if reduction == "mean" else input
        grad = xp.ascontiguousarray(xp.broadcast_to(grad, target.shape))
        known = kernels.statistics(scores) if statistics is None else statistics
        return kernels.cross_entropy_gradient(scores, known, classes, grad, shares, label_smoothing, weight)

    def vjp_input(F, grad, input, scores, target, weight, statistics, reduction, ignore_index, label_smoothing):
        one = F.zeros_as(input) + 1
        slopes = F.cross_entropy_backward(one, scores, target, weight, statistics, reduction, ignore_index, label_smoothing)
        return F.sum_dim(grad * slopes, (1,) if reduction == "none" else (0, 1), False)

    def vjp_scores(F, grad, input, scores, target, weight, reduction, ignore_index, label_smoothing):
        factors = F.cross_entropy_factors(scores, target, weight, reduction, ignore_index, label_smoothing)
        return F.softmax_backward(grad * (factors * F.reshape(input, (-1, 1))), F.softmax(scores, 1), 1)

    def samples(make):
        for reduction, smoothing in (("mean", 0.0), ("none", 0.2)):
            grad = make(*((4,) if reduction == "none" else ()))
            yield (grad, make(4, 3), make.integers(4, high=3), make(3, low=0.5), None, reduction, 1, smoothing), {}


@operator(module=None, batching="loop")
class cross_entropy_factors:
    """What the softmax of each row of scores is multiplied by in the gradient of `cross_entropy`. Returns [N, 1]."""

    def forward(xp, scores: Index, target: Index, weight: Index | None = None, reduction: str = "mean",
                ignore_index: int = -100, label_smoothing: float = 0.0):  # fmt: skip
        _, shares = _counted(target.astype(xp.int64, copy=False), weight, scores.dtype, ignore_index)
        one = xp.ones(target.shape, scores.dtype)
        if reduction == "mean":
            one /= _divisor(shares, target, scores.dtype)
        hard, _, smooth = kernels.factors(one, shares, label_smoothing, weight, scores.shape[1])
        return (hard + smooth)[:, None]


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


@operator(module=None, outputs=("chosen", "counted"), batching="leading")
class label_pairs:
    """The targets of each row up to its first -1, and which of their pairs with a class count: those with one that is no target.

    labels: [*S, C]. Returns [*S, C], 0 where there is no target, and bools [*S, C, C].
    """

    def forward(xp, labels: Index):
        present = xp.cumprod(labels >= 0, axis=-1).astype(bool)
        classes = xp.arange(labels.shape[-1])
        is_target = ((labels[..., :, None] == classes) & present[..., :, None]).any(axis=-2)
        return xp.where(present, labels, 0), present[..., :, None] & ~is_target[..., None, :]


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
