"""The norm of many arrays as one vector, and scaling them all: what clipping gradients does, in one pass over memory each.

`norm` and `scale` say None and False where the compiled form is not for these arrays; the caller then goes array by array.
"""

from __future__ import annotations

import numpy as np

from .choice import FLOATS, compiled

__all__ = ["norm", "scale"]


def norm(arrays: list[np.ndarray]) -> np.ndarray | None:
    """The Euclidean norm of all elements of arrays of one dtype, without dimensions; None where there is no fast way."""
    fast = _fast(arrays)
    return None if fast is None else np.asarray(fast.norm(arrays), arrays[0].dtype)


def scale(arrays: list[np.ndarray], factor: float) -> bool:
    """Multiply every array by a number in place; whether that was done."""
    if len({id(a) for a in arrays}) < len(arrays) or not all([a.flags.writeable and a.flags.owndata for a in arrays]):
        return False  # what shares memory is scaled as often as it is named
    fast = _fast(arrays)
    if fast is None:
        return False
    fast.scale(arrays, factor)
    return True


def _fast(arrays: list[np.ndarray]):
    kind = arrays[0].dtype
    if kind not in FLOATS or not all([a.dtype == kind and a.flags.c_contiguous for a in arrays]):
        return None
    return compiled("clipping", sum([a.size for a in arrays]), arrays[0])
