"""Softmax over many classes, most of them rare: the rare ones stand in clusters behind one entry each of the head."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from pellucid.nn import functional as F
from pellucid.nn.modules.container import ModuleList, Sequential
from pellucid.nn.modules.linear import Linear
from pellucid.nn.modules.module import Module
from pellucid.ops.joining import cat

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pellucid.core.tensor import Tensor

__all__ = ["AdaptiveLogSoftmaxWithLoss"]


class _ASMoutput(NamedTuple):
    """The log probability of each target, and the mean loss."""

    output: Tensor
    loss: Tensor


class AdaptiveLogSoftmaxWithLoss(Module):
    """The log probability of target classes, and the loss: [N, in_features], [N] to ([N], scalar); or without N.

    Args:
        in_features: size of the input.
        n_classes: how many classes there are, the most frequent first.
        cutoffs: the first class of each cluster.
        div_value: how many times smaller the hidden size of each next cluster is.
        head_bias: whether the head has a bias.
        device, dtype: of the weights.

    Raises:
        ValueError: the cutoffs are not rising integers between 1 and n_classes - 1.

    Source: Grave and others, Efficient softmax approximation for GPUs, 2016.
    """

    def __init__(
        self, in_features: int, n_classes: int, cutoffs: Sequence[int], div_value: float = 4.0, head_bias: bool = False,
        device=None, dtype=None,
    ):
        super().__init__()
        _check_cutoffs(list(cutoffs), n_classes)
        factory = {"device": device, "dtype": dtype}
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, **factory)
        self.tail = ModuleList()
        for number, (low, high) in enumerate(itertools.pairwise(self.cutoffs), 1):
            hidden = int(in_features // (div_value**number))
            narrow = Linear(in_features, hidden, bias=False, **factory)
            self.tail.append(Sequential(narrow, Linear(hidden, high - low, bias=False, **factory)))

    def reset_parameters(self) -> None:
        """Draw all weights anew."""
        self.head.reset_parameters()
        for cluster in self.tail:
            for layer in cluster:
                layer.reset_parameters()

    def forward(self, input_: Tensor, target_: Tensor) -> _ASMoutput:
        """Compute both; RuntimeError if shapes do not fit or a target is no class."""
        _check_shapes(input_, target_)
        batched = target_.dim() > 0
        input, target = (input_, target_) if batched else (input_.unsqueeze(0), target_.unsqueeze(0))
        self._check_targets(target)
        in_head, parts = target, []
        for number, (low, high) in enumerate(itertools.pairwise(self.cutoffs)):
            chosen = (target >= low) & (target < high)
            if not chosen.any():
                continue
            rows = chosen.nonzero().squeeze(1)
            in_head = in_head.masked_fill(chosen, self.shortlist_size + number)
            log_prob = F.log_softmax(self.tail[number](input.index_select(0, rows)), dim=1)
            parts.append((rows, log_prob.gather(1, (target[rows] - low).unsqueeze(1)).squeeze(1)))
        output = F.log_softmax(self.head(input), dim=1).gather(1, in_head.unsqueeze(1)).squeeze(1)
        for rows, log_prob in parts:
            output = output.index_add(0, rows, log_prob)
        loss = (-output).mean()
        return _ASMoutput(output if batched else output.squeeze(0), loss)

    def _check_targets(self, target: Tensor) -> None:
        if target.numel() and not ((target >= 0) & (target < self.n_classes)).all():
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range "
                f"[{target.min().item()}, {target.max().item()}] were found."
            )

    def log_prob(self, input: Tensor) -> Tensor:
        """The log probability of every class: [N, n_classes]."""
        return self._get_full_log_prob(input, self.head(input))

    def _get_full_log_prob(self, input: Tensor, head_output: Tensor) -> Tensor:
        head = F.log_softmax(head_output, dim=1)
        parts = [head[:, : self.shortlist_size]]
        for number, cluster in enumerate(self.tail):
            entry = self.shortlist_size + number
            parts.append(F.log_softmax(cluster(input), dim=1) + head[:, entry : entry + 1])
        return cat(parts, 1)

    def predict(self, input: Tensor) -> Tensor:
        """The most probable class of each row: [N]."""
        head_output = self.head(input)
        output = head_output.argmax(dim=1)
        in_cluster = output >= self.shortlist_size
        if in_cluster.any():
            rows = in_cluster.nonzero().squeeze(1)
            full = self._get_full_log_prob(input.index_select(0, rows), head_output.index_select(0, rows))
            output[rows] = full.argmax(dim=1)
        return output


def _check_cutoffs(cutoffs: list[int], n_classes: int) -> None:
    if not cutoffs:
        raise ValueError("cutoffs should be a sequence of length larger than 0")
    rising = all(low < high for low, high in itertools.pairwise(cutoffs))
    if not rising or cutoffs[0] <= 0 or cutoffs[-1] > n_classes - 1 or any(int(c) != c for c in cutoffs):
        raise ValueError(
            "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each "
            "value is "
            f"between 1 and n_classes-1: got {cutoffs} with n_classes={n_classes}"
        )


def _check_shapes(input: Tensor, target: Tensor) -> None:
    if target.dim() > 1:
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported: got {target.dim()}D")
    if input.dim() != target.dim() + 1:
        raise RuntimeError(
            f"{target.dim()}D target tensor expects {target.dim() + 1}D input tensors, but found inputs with size "
            f"{tuple(input.shape)}"
        )
    if target.dim() == 1 and input.size(0) != target.size(0):
        raise RuntimeError(
            "Input and target should have the same size in the batch dimension: "
            f"got {input.size(0)} and {target.size(0)}"
        )
