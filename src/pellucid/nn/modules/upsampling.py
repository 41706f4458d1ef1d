"""Resizing images and volumes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pellucid.nn import functional as F
from pellucid.nn.modules.module import Module

if TYPE_CHECKING:
    from pellucid.core.tensor import Tensor

    Size = int | tuple[int, ...]
    Scale = float | tuple[float, ...]

__all__ = ["Upsample", "UpsamplingBilinear2d", "UpsamplingNearest2d"]


class Upsample(Module):
    """Resize [N, C, *] in the dimensions after the second.

    Args:
        size: the size to reach, or None.
        scale_factor: how many times larger to make it, or None.
        mode: "nearest", "linear", "bilinear", "bicubic", "trilinear".
        align_corners: whether the corner elements keep their values; not for "nearest".
        recompute_scale_factor: whether the factor is computed anew from the rounded size.
    """

    def __init__(
        self, size: Size | None = None, scale_factor: Scale | None = None, mode: str = "nearest",
        align_corners: bool | None = None, recompute_scale_factor: bool | None = None,
    ):
        super().__init__()
        self.name = type(self).__name__
        self.size = size
        self.scale_factor = _floats(scale_factor)
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: Tensor) -> Tensor:
        """Resize."""
        return F.interpolate(
            input, self.size, self.scale_factor, self.mode, self.align_corners,
            recompute_scale_factor=self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        """The factor or the size, and the mode."""
        which = "size" if self.scale_factor is None else "scale_factor"
        return f"{which}={getattr(self, which)!r}, mode={self.mode!r}"


def _floats(value: Any) -> Any:
    """A factor, or one for each dimension, as floats."""
    if isinstance(value, tuple):
        return tuple(float(factor) for factor in value)
    return float(value) if value else None


class UpsamplingNearest2d(Upsample):
    """Resize images by repeating the nearest pixel."""

    def __init__(self, size: Size | None = None, scale_factor: Scale | None = None):
        super().__init__(size, scale_factor, mode="nearest")


class UpsamplingBilinear2d(Upsample):
    """Resize images by bilinear interpolation, the corners keeping their values."""

    def __init__(self, size: Size | None = None, scale_factor: Scale | None = None):
        super().__init__(size, scale_factor, mode="bilinear", align_corners=True)
