"""Dropout: modules that set a random part of their input to zero in training, and do nothing in evaluation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pellucid.nn import functional as F
from pellucid.nn.modules.declared import Declared, declared

if TYPE_CHECKING:
    from pellucid.core.tensor import Tensor

__all__ = ["AlphaDropout", "Dropout", "Dropout1d", "Dropout2d", "Dropout3d", "FeatureAlphaDropout"]


@declared
class _DropoutNd(Declared):
    """What all have: the probability `p` of an element to be dropped; the others are scaled by 1 / (1 - p).

    Raises:
        ValueError: `p` is not in [0, 1].
    """

    p: float = 0.5
    inplace: bool = False

    def _settle(self) -> None:
        if not 0 <= self.p <= 1:
            raise ValueError(f"dropout probability has to be between 0 and 1, but got {self.p}")

    def extra_repr(self) -> str:
        """Both settings."""
        return f"p={self.p}, inplace={self.inplace}"


class Dropout(_DropoutNd):
    """Drop single elements of an input of any shape."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.dropout(input, self.p, self.training, self.inplace)


class Dropout1d(_DropoutNd):
    """Drop whole channels of [N, C, L] or [C, L]."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.dropout1d(input, self.p, self.training, self.inplace)


class Dropout2d(_DropoutNd):
    """Drop whole channels of [N, C, H, W] or [C, H, W]."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.dropout2d(input, self.p, self.training, self.inplace)


class Dropout3d(_DropoutNd):
    """Drop whole channels of [N, C, D, H, W] or [C, D, H, W]."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.dropout3d(input, self.p, self.training, self.inplace)


class AlphaDropout(_DropoutNd):
    """Drop single elements so that mean and variance stay, for use with SELU.

    Source: Klambauer and others, Self-normalizing neural networks, 2017.
    """

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.alpha_dropout(input, self.p, self.training)


class FeatureAlphaDropout(_DropoutNd):
    """`AlphaDropout` of whole channels."""

    def forward(self, input: Tensor) -> Tensor:
        """Apply it."""
        return F.feature_alpha_dropout(input, self.p, self.training)
