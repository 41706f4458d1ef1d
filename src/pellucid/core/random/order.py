"""The order in which an in-place draw visits the elements of an array."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

__all__ = ["fill"]


def fill(out: np.ndarray, draw: Callable[[tuple[int, ...]], np.ndarray]) -> None:
    """Write `draw(shape)` into `out` in place, visiting elements in the order of their addresses, as PyTorch does."""
    if out.flags.c_contiguous:
        out[...] = draw(out.shape)
        return
    by_address = sorted(range(out.ndim), key=lambda dim: -abs(out.strides[dim]))
    view = out.transpose(by_address)
    view[...] = draw(view.shape)
