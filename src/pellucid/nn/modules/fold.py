"""Sliding blocks of images: taking them out, and adding them back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pellucid.nn import functional as F
from pellucid.nn.modules.declared import Declared, declared

if TYPE_CHECKING:
    from pellucid.core.tensor import Tensor

    Size = int | tuple[int, ...]

__all__ = ["Fold", "Unfold"]


@declared
class Fold(Declared):
    """Put blocks, as `Unfold` gives them, back to [N, C, *output_size], adding where they overlap."""

    output_size: Size
    kernel_size: Size
    dilation: Size = 1
    padding: Size = 0
    stride: Size = 1
    _shown = ("output_size", "kernel_size", "dilation", "padding", "stride")

    def forward(self, input: Tensor) -> Tensor:
        """Fold."""
        return F.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)


@declared
class Unfold(Declared):
    """Take sliding blocks out of [N, C, *spatial]: [N, C * block, number of blocks]."""

    kernel_size: Size
    dilation: Size = 1
    padding: Size = 0
    stride: Size = 1
    _shown = ("kernel_size", "dilation", "padding", "stride")

    def forward(self, input: Tensor) -> Tensor:
        """Unfold."""
        return F.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)
