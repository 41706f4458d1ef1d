"""Checks of searches in sorted values, and for the largest elements."""

from __future__ import annotations

import numpy as np

from pellucid.core.checks import require_kind, scalar_name

__all__ = ["check_search", "check_sorter", "check_top", "side_of"]


def side_of(name: str, right: bool, side: str | None) -> str:
    """"right" or "left", where both may be given; RuntimeError where they contradict each other."""
    if side not in (None, "left", "right"):
        raise RuntimeError(f"{name}(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(f"{name}(): side and right can't be set to opposites, got side of left while right was True")
    return "right" if right or side == "right" else "left"


def check_sorter(sorter: np.ndarray, rows: np.ndarray) -> None:
    """RuntimeError unless the sorter holds indices into the rows, of their shape."""
    if sorter.shape != rows.shape:
        raise RuntimeError(
            "torch.searchsorted(): boundary and sorter must have the same size, but got boundary tensor "
            f"{list(rows.shape)} and got sorter tensor {list(sorter.shape)}"
        )
    if sorter.dtype != np.int64:
        raise RuntimeError(f"torch.searchsorted(): sorter must be a tensor of long dtype but got dtype {scalar_name(sorter)}")
    if sorter.size and (sorter.min() < 0 or sorter.max() >= rows.shape[-1]):
        raise RuntimeError("torch.searchsorted(): sorter index out of range")


def check_search(rows: np.ndarray, value: np.ndarray) -> None:
    """Refuse sorted rows that are no rows, or not as many as those of the values looked for."""
    require_kind("searchsorted_out_cpu", rows, "fi")
    if not rows.ndim:
        raise RuntimeError("torch.searchsorted(): boundaries tensor should have positive dimension, but got 0 dimension")
    if rows.ndim > 1 and not value.ndim:
        raise RuntimeError(
            "torch.searchsorted(): input value can be a scalar only when boundaries tensor dimension is 1, but we got "
            f"boundaries tensor dim({rows.ndim})"
        )
    if rows.ndim > 1 and rows.shape[:-1] != value.shape[:-1]:
        raise RuntimeError(
            "torch.searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
            f"and input value tensor must match, but we got boundaries tensor {list(rows.shape)} and input value tensor {list(value.shape)}"
        )


def check_top(input: np.ndarray, k: int, dim: int) -> None:
    """Refuse arrays of which there are no k largest elements along a dimension."""
    if input.dtype == bool:
        raise RuntimeError("topk does not support bool dtypes on CPU")
    require_kind("topk_cpu", input, "fi")
    if not 0 <= k <= (input.shape[dim] if input.ndim else 1):
        raise RuntimeError(
            f"selected index k out of range: k is {k}, dimension {dim} has {input.shape[dim] if input.ndim else 1} elements"
        )
