"""Trading channels for resolution, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pellucid.nn import functional as F
from pellucid.nn.modules.declared import Declared, declared

if TYPE_CHECKING:
    from pellucid.core.tensor import Tensor

__all__ = ["PixelShuffle", "PixelUnshuffle"]


@declared
class PixelShuffle(Declared):
    """[*, C * r^2, H, W] to [*, C, H * r, W * r], for r = `upscale_factor`."""

    upscale_factor: int
    _shown = ("upscale_factor",)

    def forward(self, input: Tensor) -> Tensor:
        """Rearrange."""
        return F.pixel_shuffle(input, self.upscale_factor)


@declared
class PixelUnshuffle(Declared):
    """[*, C, H * r, W * r] to [*, C * r^2, H, W], for r = `downscale_factor`."""

    downscale_factor: int
    _shown = ("downscale_factor",)

    def forward(self, input: Tensor) -> Tensor:
        """Rearrange."""
        return F.pixel_unshuffle(input, self.downscale_factor)
