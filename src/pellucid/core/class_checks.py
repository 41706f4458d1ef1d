"""Checks of scores, class numbers and weights of classes."""

from __future__ import annotations

import numpy as np

from pellucid.core.checks import require_kind, scalar_name

__all__ = ["check_nll"]


def check_nll(input, target, weight) -> None:
    """Raise RuntimeError or NotImplementedError unless class numbers and weights fit scores [N, C, *S] or [C]."""
    if target.dtype not in (np.int64, np.uint8):
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {scalar_name(target)}. Convert the target with .long()")
    require_kind("nll_loss_out_frame", input, "f")
    if input.ndim <= 2 and target.ndim > 1:
        raise RuntimeError(f"0D or 1D target tensor expected, multi-target not supported: input has shape {list(input.shape)}, "
                           f"target {list(target.shape)}")
    classes = input.shape[min(1, input.ndim - 1)]
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor "
                           f"of shape: {list(weight.shape)}")
