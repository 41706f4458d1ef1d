"""Losses over pairs and triplets: targets of 1 and -1 say whether two things belong together or which ranks higher.

Distances themselves are in distances.py.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import check_reduction, scalar_name
from pellucid.core.loss_shapes import advice, warn_of_crossing
from pellucid.core.tensor import Tensor, wrap
from pellucid.functions.distances import pairwise_distance
from pellucid.functions.losses import legacy_reduction, reduce_loss

__all__ = [
    "cosine_embedding_loss", "hinge_embedding_loss", "margin_ranking_loss", "soft_margin_loss", "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
]  # fmt: skip


def _zero(like: Tensor) -> Tensor:
    return wrap(np.zeros((), like._array.dtype))


# --- pairs ------------------------------------------------------------------------------------------------------------


def _check_cosine(input1: Tensor, input2: Tensor, target: Tensor) -> None:
    if target.dim() > 1:
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported: got target {list(target.shape)}")
    wanted = target.dim() + 1
    if input1.dim() != wanted or input2.dim() != wanted:
        raise RuntimeError(f"{target.dim()}D target tensor expects {wanted}D input tensors, but found inputs with sizes "
                           f"{list(input1.shape)} and {list(input2.shape)}.")


@composite(module="nn.functional")
def cosine_embedding_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """1 - cos of two vectors whose target is 1, max(0, cos - margin) where it is -1.

    input1, input2: [N, D] or [D]; target: [N] or []. Returns a 0-d tensor, or the target's shape for reduction "none".
    Raises: RuntimeError for ranks that do not fit, ValueError for an unknown reduction.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    _check_cosine(input1, input2, target)
    squares1, squares2 = ((x * x).sum(-1) + 1e-12 for x in (input1, input2))
    cosine = (input1 * input2).sum(-1) / (squares1 * squares2).sqrt()
    zero = _zero(cosine)
    together = T.where(target == 1, 1 - cosine, zero)
    return reduce_loss(together + T.where(target == -1, (cosine - margin).clamp_min(0), zero), reduction)


@composite(module="nn.functional")
def hinge_embedding_loss(input, target, margin=1.0, size_average=None, reduce=None, reduction="mean"):
    """The input (a distance) where the target is 1, max(0, margin - input) where it is -1.

    input, target: [*S] (broadcast). Returns a 0-d tensor, or [*S] for reduction "none".
    Raises: ValueError for an unknown reduction.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    warn_of_crossing(input, target)
    zero = _zero(input)
    apart = T.where(target != 1, (margin - input).clamp_min(0), zero)
    return reduce_loss(apart + T.where(target != -1, input, zero), reduction)


@composite(module="nn.functional")
def margin_ranking_loss(input1, input2, target, margin=0, size_average=None, reduce=None, reduction="mean"):
    """max(0, margin - target (input1 - input2)): target 1 asks that the first ranks higher, -1 the second.

    input1, input2, target: one rank, broadcast to [*S]. Returns a 0-d tensor, or [*S] for reduction "none".
    Raises: RuntimeError for different ranks, ValueError for an unknown reduction.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if not input1.dim() == input2.dim() == target.dim():
        raise RuntimeError("margin_ranking_loss : All input tensors should have same dimension but got sizes: input1: "
                           f"{input1.size()}, input2: {input2.size()}, target: {target.size()} ")
    return reduce_loss((-target * (input1 - input2) + float(margin)).clamp_min(0), reduction)


@composite(module="nn.functional")
def soft_margin_loss(input, target, size_average=None, reduce=None, reduction="mean"):
    """log(1 + exp(-target input)), the logistic loss of targets 1 and -1.

    input: [*S], float; target: broadcastable to [*S]. Returns a 0-d tensor, or [*S] for reduction "none".
    Raises: RuntimeError for an integer input or a larger target, ValueError for an unknown reduction.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    if not input.is_floating_point():
        raise RuntimeError(f"result type Float can't be cast to the desired output type {scalar_name(input._array)}: convert the "
                           "input with .float()")
    loss = T.soft_margin_loss(input, target)
    if loss.shape != input.shape:
        raise RuntimeError(f"output with shape {list(input.shape)} doesn't match the broadcast shape {list(loss.shape)}. "
                           f"{advice(input, target)}")
    return reduce_loss(loss, reduction)


# --- triplets ---------------------------------------------------------------------------------------------------------


def _check_triplet(anchor: Tensor, positive: Tensor, negative: Tensor, margin: float) -> None:
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")
    if not anchor.dim() == positive.dim() == negative.dim():
        raise RuntimeError("The anchor, positive, and negative tensors are expected to have the same number of dimensions, but "
                           f"got: anchor {anchor.dim()}D, positive {positive.dim()}D, and negative {negative.dim()}D inputs")


def _triplet(distance, anchor, positive, negative, margin: float, swap: bool, reduction: str) -> Tensor:
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = T.minimum(far, distance(positive, negative))
    return reduce_loss((margin + near - far).clamp_min(0), reduction)


@composite(module="nn.functional")
def triplet_margin_loss(anchor, positive, negative, margin=1.0, p=2, eps=1e-6, swap=False, size_average=None, reduce=None,
                        reduction="mean"):  # fmt: skip
    """max(0, margin + |anchor - positive| - |anchor - negative|), in the p-norm of the last dimension.

    anchor, positive, negative: [N, D] or [D]. `swap` takes |positive - negative| where that is smaller than the second
    distance. Returns a 0-d tensor, or [N] for reduction "none".
    Raises: ValueError for a margin that is not positive, RuntimeError for different ranks.
    Source: Balntas and others, Learning shallow convolutional feature descriptors with triplet losses, 2016.
    """
    reduction = legacy_reduction(size_average, reduce, reduction)
    _check_triplet(anchor, positive, negative, margin)
    return _triplet(lambda a, b: pairwise_distance(a, b, p, eps), anchor, positive, negative, margin, swap, reduction)


@composite(module="nn.functional")
def triplet_margin_with_distance_loss(
    anchor, positive, negative, *, distance_function=None, margin=1.0, swap=False, reduction="mean"
):
    """max(0, margin + d(anchor, positive) - d(anchor, negative)), of any distance; by default the Euclidean one.

    anchor, positive, negative: tensors of one rank that the distance takes. Returns a 0-d tensor, or what the distance
    returns for reduction "none". Raises: ValueError for a margin that is not positive, RuntimeError for different ranks.
    """
    check_reduction(reduction)
    _check_triplet(anchor, positive, negative, margin)
    distance = pairwise_distance if distance_function is None else distance_function
    return _triplet(distance, anchor, positive, negative, margin, swap, reduction)
