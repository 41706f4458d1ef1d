"""Losses: modules that compare an input with a target, through the function of `nn.functional` of the same meaning.

`reduction` is "mean", "sum", or "none" for one loss each; `size_average` and `reduce` are its older form, still
understood. Shapes and errors are those of the functions. `AdaptiveLogSoftmaxWithLoss` is in `adaptive.py`.
"""

from __future__ import annotations

import math
import warnings
from typing import TYPE_CHECKING, Any

from pellucid.nn import functional as F
from pellucid.nn.modules.declared import Declared, declared
from pellucid.nn.modules.linear import Linear

if TYPE_CHECKING:
    from collections.abc import Callable

    from pellucid.core.tensor import Tensor

__all__ = [
    "BCELoss", "BCEWithLogitsLoss", "CTCLoss", "CosineEmbeddingLoss", "CrossEntropyLoss", "GaussianNLLLoss",
    "HingeEmbeddingLoss", "HuberLoss", "KLDivLoss", "L1Loss", "LinearCrossEntropyLoss", "MSELoss",
    "MarginRankingLoss", "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss", "NLLLoss",
    "NLLLoss2d", "PoissonNLLLoss", "SmoothL1Loss", "SoftMarginLoss", "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
]


@declared
class _Loss(Declared):
    """A loss that keeps `reduction`; a field `weight` or `pos_weight` becomes a buffer."""

    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"

    def _settle(self) -> None:
        fields = self.__dict__
        size_average, reduce = fields.pop("size_average", None), fields.pop("reduce", None)
        if size_average is not None or reduce is not None:
            self.reduction = _reduction_of(size_average, reduce)
        for name in ("weight", "pos_weight"):
            if name in fields:
                self.register_buffer(name, fields.pop(name))


def _reduction_of(size_average: bool | None, reduce: bool | None) -> str:
    """The reduction that the two older arguments ask for."""
    if reduce is not None and not reduce:
        reduction = "none"
    else:
        reduction = "mean" if size_average is None or size_average else "sum"
    warnings.warn(
        f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.", stacklevel=5
    )
    return reduction


@declared(inherit=False)
class _WeightedLoss(_Loss):
    """A loss that may weigh the classes or elements with a tensor."""

    weight: Tensor | None = None
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"


# --- regression ------------------------------------------------------------------------------------------------------


class L1Loss(_Loss):
    """|input - target|."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute it."""
        return F.l1_loss(input, target, reduction=self.reduction)


class MSELoss(_Loss):
    """(input - target)^2."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute it."""
        return F.mse_loss(input, target, reduction=self.reduction)


@declared
class SmoothL1Loss(_Loss):
    """0.5 * d^2 / beta where d = |input - target| < beta, else d - 0.5 * beta."""

    beta: float = 1.0

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute it."""
        return F.smooth_l1_loss(input, target, reduction=self.reduction, beta=self.beta)


@declared(inherit=False)
class HuberLoss(_Loss):
    """0.5 * d^2 where d = |input - target| < delta, else delta * (d - 0.5 * delta)."""

    reduction: str = "mean"
    delta: float = 1.0

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute it."""
        return F.huber_loss(input, target, reduction=self.reduction, delta=self.delta)


@declared(inherit=False)
class PoissonNLLLoss(_Loss):
    """The negative log likelihood of counts under a Poisson distribution with mean exp(input), or input."""

    log_input: bool = True
    full: bool = False
    size_average: bool | None = None
    eps: float = 1e-8
    reduce: bool | None = None
    reduction: str = "mean"

    def forward(self, log_input: Tensor, target: Tensor) -> Tensor:
        """Compute it."""
        return F.poisson_nll_loss(
            log_input, target, log_input=self.log_input, full=self.full, eps=self.eps, reduction=self.reduction
        )


class GaussianNLLLoss(_Loss):
    """The negative log likelihood of targets under normal distributions with the given means and variances."""

    def __init__(self, *, full: bool = False, eps: float = 1e-6, reduction: str = "mean"):
        super().__init__(reduction=reduction)
        self.full = full
        self.eps = eps

    def forward(self, input: Tensor, target: Tensor, var: Tensor | float) -> Tensor:
        """Compute it."""
        return F.gaussian_nll_loss(input, target, var, full=self.full, eps=self.eps, reduction=self.reduction)


# --- classes and distributions ---------------------------------------------------------------------------------------


@declared(inherit=False)
class CrossEntropyLoss(_WeightedLoss):
    """The negative log softmax of the target class: input [N, C, *] or [C], target class numbers or probabilities."""

    weight: Tensor | None = None
    size_average: bool | None = None
    ignore_index: int = -100
    reduce: bool | None = None
    reduction: str = "mean"
    label_smoothing: float = 0.0

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute it."""
        return F.cross_entropy(
            input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction,
            label_smoothing=self.label_smoothing,
        )


class LinearCrossEntropyLoss(_WeightedLoss):
    """A `Linear` and the `CrossEntropyLoss` of what it gives: input [N, in_features] or [in_features].

    Args:
        in_features: size of the input.
        num_classes: how many classes, C.
        out_features: further dimensions of the target, which is [N, *out_features], or [N, C, *out_features] for
            probabilities.
        bias, device, dtype: as for `Linear`.
        reduction, weight, ignore_index, label_smoothing: as for `CrossEntropyLoss`.
        options: accepted, with no effect: the logits are computed at once.

    Raises:
        RuntimeError: `weight` is not [C], or `label_smoothing` not in [0, 1].
    """

    def __init__(
        self, in_features: int, num_classes: int, *, out_features: tuple[int, ...] = (), bias: bool = False,
        device=None, dtype=None, reduction: str = "mean", weight: Tensor | None = None, ignore_index: int | None = None,
        label_smoothing: float = 0.0, options: Any = None,
    ):
        super().__init__(weight, reduction=reduction)
        if weight is not None and tuple(weight.shape) != (num_classes,):
            raise RuntimeError(f"expected weight shape to be {(num_classes,)}, got {tuple(weight.shape)}")
        if not 0 <= label_smoothing <= 1:
            raise RuntimeError(f"expected label_smoothing to be in range [0, 1], got {label_smoothing}")
        self.num_classes = num_classes
        self.out_features = out_features
        self.ignore_index = ignore_index
        self.label_smoothing = label_smoothing
        self.linear = Linear(in_features, num_classes * math.prod(out_features), bias=bias, device=device, dtype=dtype)
        self.options = options

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute it."""
        logits = self.linear(input)
        logits = logits.reshape(*logits.shape[:-1], self.num_classes, *self.out_features)
        return F.cross_entropy(
            logits, target, weight=self.weight, reduction=self.reduction, label_smoothing=self.label_smoothing,
            ignore_index=-100 if self.ignore_index is None else self.ignore_index,
        )

    def extra_repr(self) -> str:
        """All settings."""
        return (
            f"in_features={self.linear.in_features}, num_classes={self.num_classes}, out_features={self.out_features}, "
            f"bias={self.linear.bias is not None}, reduction={self.reduction}, ignore_index={self.ignore_index}, "
            f"label_smoothing={self.label_smoothing}, options={self.options}"
        )


@declared(inherit=False)
class NLLLoss(_WeightedLoss):
    """The negative value at the target class: input log probabilities [N, C, *] or [C], target class numbers."""

    weight: Tensor | None = None
    size_average: bool | None = None
    ignore_index: int = -100
    reduce: bool | None = None
    reduction: str = "mean"

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute it."""
        return F.nll_loss(input, target, weight=self.weight, ignore_index=self.ignore_index, reduction=self.reduction)


class NLLLoss2d(NLLLoss):
    """An old name of `NLLLoss`."""


class BCELoss(_WeightedLoss):
    """Cross entropy of probabilities with targets in [0, 1]."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute it."""
        return F.binary_cross_entropy(input, target, weight=self.weight, reduction=self.reduction)


@declared(inherit=False)
class BCEWithLogitsLoss(_Loss):
    """Cross entropy of sigmoid(input) with targets in [0, 1]; `pos_weight` weighs positive targets."""

    weight: Tensor | None = None
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"
    pos_weight: Tensor | None = None

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute it."""
        return F.binary_cross_entropy_with_logits(
            input, target, self.weight, pos_weight=self.pos_weight, reduction=self.reduction
        )


@declared
class KLDivLoss(_Loss):
    """target * (log(target) - input), input being log probabilities; with `log_target` the target too."""

    log_target: bool = False

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute it."""
        return F.kl_div(input, target, reduction=self.reduction, log_target=self.log_target)


@declared(inherit=False)
class CTCLoss(_Loss):
    """The negative log probability of target sequences, summed over alignments: log_probs [T, N, C] or [T, C]."""

    blank: int = 0
    reduction: str = "mean"
    zero_infinity: bool = False

    def forward(self, log_probs: Tensor, targets: Tensor, input_lengths: Tensor, target_lengths: Tensor) -> Tensor:
        """Compute it."""
        return F.ctc_loss(
            log_probs, targets, input_lengths, target_lengths, self.blank, self.reduction, self.zero_infinity
        )


# --- margins ---------------------------------------------------------------------------------------------------------


class MultiLabelMarginLoss(_Loss):
    """Hinge loss between every target class and every other class."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute it."""
        return F.multilabel_margin_loss(input, target, reduction=self.reduction)


class SoftMarginLoss(_Loss):
    """log(1 + exp(-target * input)), targets being 1 or -1."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute it."""
        return F.soft_margin_loss(input, target, reduction=self.reduction)


class MultiLabelSoftMarginLoss(_WeightedLoss):
    """Cross entropy of sigmoid(input) with targets 0 or 1, averaged over the classes."""

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute it."""
        return F.multilabel_soft_margin_loss(input, target, weight=self.weight, reduction=self.reduction)


@declared(inherit=False)
class HingeEmbeddingLoss(_Loss):
    """input where the target is 1, max(margin - input, 0) where it is -1."""

    margin: float = 1.0
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute it."""
        return F.hinge_embedding_loss(input, target, margin=self.margin, reduction=self.reduction)


@declared(inherit=False)
class CosineEmbeddingLoss(_Loss):
    """1 - cos(input1, input2) where the target is 1, max(cos - margin, 0) where it is -1."""

    margin: float = 0.0
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Compute it."""
        return F.cosine_embedding_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


@declared(inherit=False)
class MarginRankingLoss(_Loss):
    """max(-target * (input1 - input2) + margin, 0)."""

    margin: float = 0.0
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"

    def forward(self, input1: Tensor, input2: Tensor, target: Tensor) -> Tensor:
        """Compute it."""
        return F.margin_ranking_loss(input1, input2, target, margin=self.margin, reduction=self.reduction)


@declared(inherit=False)
class MultiMarginLoss(_WeightedLoss):
    """Hinge loss, to the power p of 1 or 2, between the target class and every other class."""

    p: int = 1
    margin: float = 1.0
    weight: Tensor | None = None
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"

    def _settle(self) -> None:
        super()._settle()
        if self.p not in (1, 2):
            raise ValueError(f"only p == 1 and p == 2 supported, got p={self.p}")
        if self.weight is not None and self.weight.dim() != 1:
            raise ValueError(
                f"MultiMarginLoss: expected weight to be None or 1D tensor, got {self.weight.dim()}D instead"
            )

    def forward(self, input: Tensor, target: Tensor) -> Tensor:
        """Compute it."""
        return F.multi_margin_loss(
            input, target, p=self.p, margin=self.margin, weight=self.weight, reduction=self.reduction
        )


@declared(inherit=False)
class TripletMarginLoss(_Loss):
    """max(d(anchor, positive) - d(anchor, negative) + margin, 0), d being the distance of norm p."""

    margin: float = 1.0
    p: float = 2.0
    eps: float = 1e-6
    swap: bool = False
    size_average: bool | None = None
    reduce: bool | None = None
    reduction: str = "mean"

    def _settle(self) -> None:
        super()._settle()
        if self.margin <= 0:
            raise ValueError(f"TripletMarginLoss: expected margin to be greater than 0, got {self.margin} instead")

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Compute it."""
        return F.triplet_margin_loss(
            anchor, positive, negative, margin=self.margin, p=self.p, eps=self.eps, swap=self.swap,
            reduction=self.reduction,
        )


class TripletMarginWithDistanceLoss(_Loss):
    """`TripletMarginLoss` with a distance of your own: a function of two tensors, the Euclidean distance if None."""

    def __init__(
        self, *, distance_function: Callable[[Tensor, Tensor], Tensor] | None = None, margin: float = 1.0,
        swap: bool = False, reduction: str = "mean",
    ):
        super().__init__(reduction=reduction)
        if margin <= 0:
            raise ValueError(
                f"TripletMarginWithDistanceLoss: expected margin to be greater than 0, got {margin} instead"
            )
        self.distance_function = F.pairwise_distance if distance_function is None else distance_function
        self.margin = margin
        self.swap = swap

    def forward(self, anchor: Tensor, positive: Tensor, negative: Tensor) -> Tensor:
        """Compute it."""
        return F.triplet_margin_with_distance_loss(
            anchor, positive, negative, distance_function=self.distance_function, margin=self.margin, swap=self.swap,
            reduction=self.reduction,
        )
