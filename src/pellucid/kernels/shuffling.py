"""Rearranging channels: trading them for resolution, and dealing them out to groups."""

from __future__ import annotations

import numpy as np

__all__ = ["dealt", "spread", "stacked"]


def spread(images: np.ndarray, r: int) -> np.ndarray:
    """Each block of r * r channels as r * r neighbours: [*, C * r^2, H, W] to [*, C, H * r, W * r]."""
    *batch, channels, height, width = images.shape
    blocks = images.reshape(*batch, channels // (r * r), r, r, height, width)
    moved = np.moveaxis(blocks, (-4, -3), (-3, -1))  # [*, C, H, r, W, r]
    return moved.copy(order="C").reshape(*batch, channels // (r * r), height * r, width * r)


def stacked(images: np.ndarray, r: int) -> np.ndarray:
    """The inverse of `spread`: [*, C, H * r, W * r] to [*, C * r^2, H, W]."""
    *batch, channels, height, width = images.shape
    blocks = images.reshape(*batch, channels, height // r, r, width // r, r)
    moved = np.moveaxis(blocks, (-3, -1), (-4, -3))  # [*, C, r, r, H, W]
    return moved.copy(order="C").reshape(*batch, channels * r * r, height // r, width // r)


def dealt(images: np.ndarray, groups: int) -> np.ndarray:
    """Channels [N, C, *S] in turn: the first of each of `groups` blocks, then the second of each, and so on."""
    batch, channels, *rest = images.shape
    blocks = images.reshape(batch, groups, channels // groups, *rest)
    return blocks.swapaxes(1, 2).copy(order="C").reshape(images.shape)
