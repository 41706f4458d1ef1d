"""Losses over classes: negative log-likelihood, cross-entropy, and which pairs of labels count in a margin.

The functions that users call are in `functions/losses_classes.py`.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Index, operator
from pellucid.core.class_checks import check_nll
from pellucid.core.tensor import wrap
from pellucid.kernels import losses as kernel
from pellucid.kernels import softmax
from pellucid.ops.batch_places import in_front, rest_summed
from pellucid.ops.batches import for_each

__all__: list[str] = []


# --- negative log-likelihood ----------------------------------------------------------------------------------------


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
        check_nll(input, target, weight)
        return kernel.nll(input, target, weight, reduction, ignore_index)

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
        return kernel.nll_gradient(input, target, weight, shape, reduction, ignore_index)

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


@operator(module=None, name="cross_entropy", node="NllLossBackward0", fused=True, outputs=("loss", "statistics"),
          constant=("statistics",), batching="loop")  # fmt: skip
class _cross_entropy:
    """Cross-entropy of the softmax of each row with its class, without the softmax: the row's largest score and the sum of
    exponentials are kept instead.

    input: [N, C]; target: [N], int64 or uint8; weight: [C] or None. Returns the loss and the statistics [2, N].
    """

    def forward(xp, input: Array, target: Index, weight: Index | None = None, reduction: str = "mean", ignore_index: int = -100,
                label_smoothing: float = 0.0):  # fmt: skip
        check_nll(input, target, weight)
        target, shares = target.astype(xp.int64, copy=False), None
        plain = weight is None and not label_smoothing
        found = softmax.class_losses(input, target, ignore_index) if plain else None
        if found is None:
            classes, shares = kernel.counted(target, weight, input.dtype, ignore_index)
            kernel.in_range(target, classes, input.shape[1])
            known = softmax.statistics(input)
            loss = softmax.cross_entropy_losses(input, known, classes, shares, label_smoothing, weight)
        else:
            loss, known = found
        if reduction == "none":
            return loss, known
        total = xp.add.reduce(loss)
        return total / kernel.divisor(shares, target, input.dtype) if reduction == "mean" else total, known

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
        if weight is None and statistics is not None and not label_smoothing:
            grad = input / kernel.divisor(None, target, scores.dtype) if reduction == "mean" else input
            made = softmax.class_gradient(scores, statistics, target, ignore_index, grad)
            if made is not None:
                return made
        classes, shares = kernel.counted(target, weight, scores.dtype, ignore_index)
        grad = input / kernel.divisor(shares, target, scores.dtype) if reduction == "mean" else input
        grad = xp.ascontiguousarray(xp.broadcast_to(grad, target.shape))
        known = softmax.statistics(scores) if statistics is None else statistics
        return softmax.cross_entropy_gradient(scores, known, classes, grad, shares, label_smoothing, weight)

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
        _, shares = kernel.counted(target.astype(xp.int64, copy=False), weight, scores.dtype, ignore_index)
        one = xp.ones(target.shape, scores.dtype)
        if reduction == "mean":
            one /= kernel.divisor(shares, target, scores.dtype)
        hard, _, smooth = softmax.factors(one, shares, label_smoothing, weight, scores.shape[1])
        return (hard + smooth)[:, None]


# --- margins --------------------------------------------------------------------------------------------------------


@operator(module=None, outputs=("chosen", "counted"), batching="leading")
class label_pairs:
    """The targets of each row up to its first -1, and which of their pairs with a class count: those with one that is no target.

    labels: [*S, C]. Returns [*S, C], 0 where there is no target, and bools [*S, C, C].
    """

    def forward(xp, labels: Index):
        return kernel.label_pairs(labels)
