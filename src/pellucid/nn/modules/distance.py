"""Distances and similarities of vectors, row by row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pellucid.nn import functional as F
from pellucid.nn.modules.declared import Declared, declared
from pellucid.nn.modules.module import Module

if TYPE_CHECKING:
    from pellucid.core.tensor import Tensor

__all__ = ["CosineSimilarity", "PairwiseDistance"]


@declared
class CosineSimilarity(Declared):
    """The cosine of the angle between x1 and x2 along `dim`; norms are at least `eps`."""

    dim: int = 1
    eps: float = 1e-8

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Compute it."""
        return F.cosine_similarity(x1, x2, self.dim, self.eps)


class PairwiseDistance(Module):
    """The norm of x1 - x2 + eps along the last dimension.

    Args:
        p: the norm.
        eps: keeps the derivative finite.
        keepdim: whether the last dimension stays, with size 1.
    """

    def __init__(self, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
        super().__init__()
        self.norm = p
        self.eps = eps
        self.keepdim = keepdim

    def forward(self, x1: Tensor, x2: Tensor) -> Tensor:
        """Compute it."""
        return F.pairwise_distance(x1, x2, self.norm, self.eps, self.keepdim)
