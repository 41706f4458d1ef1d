"""relu, what keeps numbers between two bounds, and the gradients of both: NumPy where arrays are small, all threads where they are large."""

from __future__ import annotations

import numpy as np

from .choice import compiled
from .threads import threads_for

__all__ = ["between", "pass_above", "pass_inside", "relu"]

ALONE = 1 << 17  # elements; below it one thread does all


def relu(x: np.ndarray) -> np.ndarray:
    """max(x, 0); NaN stays, and so does -0."""
    fast = compiled("rectifiers", x.size, x)
    if fast is None or not x.flags.c_contiguous:
        return np.maximum(0, x)  # in this order -0 stays what it is
    out = np.empty(x.shape, x.dtype)
    fast.relu(threads_for(x.size, ALONE), x.reshape(-1), out.reshape(-1))
    return out


def between(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """min(max(x, low), high), the bounds as numbers of x's dtype; NaN stays, and so does -0."""
    number = x.dtype.type
    fast = compiled("rectifiers", x.size, x)
    if fast is None or not x.flags.c_contiguous:
        return np.minimum(number(high), np.maximum(number(low), x))
    out = np.empty(x.shape, x.dtype)
    fast.between(threads_for(x.size, ALONE), x.reshape(-1), number(low), number(high), out.reshape(-1))
    return out


def pass_above(grad: np.ndarray, point: np.ndarray, low: float) -> np.ndarray:
    """grad where point is over `low` or NaN, else 0."""
    fast = _gate(grad, point)
    if fast is None:
        return np.where(point <= low, 0, grad)
    out = np.empty(grad.shape, grad.dtype)
    fast.pass_above(threads_for(grad.size, ALONE), grad.reshape(-1), point.reshape(-1), grad.dtype.type(low), out.reshape(-1))
    return out


def pass_inside(grad: np.ndarray, point: np.ndarray, low: float, high: float) -> np.ndarray:
    """grad where point is strictly between two numbers or NaN, else 0."""
    fast = _gate(grad, point)
    if fast is None:
        return np.where((point <= low) | (point >= high), 0, grad)
    out, number = np.empty(grad.shape, grad.dtype), grad.dtype.type
    fast.pass_inside(threads_for(grad.size, ALONE), grad.reshape(-1), point.reshape(-1), number(low), number(high), out.reshape(-1))
    return out


def _gate(grad: np.ndarray, point: np.ndarray):
    """The compiled forms, if the two arrays lie in memory alike."""
    alike = grad.shape == point.shape and grad.flags.c_contiguous and point.flags.c_contiguous
    return compiled("rectifiers.gate", grad.size, grad, point) if alike else None
