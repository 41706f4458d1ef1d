"""Comparisons of arrays that are more than one function of NumPy."""

from __future__ import annotations

import numpy as np

__all__ = ["near"]


def near(input: np.ndarray, other: np.ndarray, rtol: float, atol: float, equal_nan: bool) -> np.ndarray:
    """Whether |input - other| <= atol + rtol * |other|, or both are equal, or (if asked) both NaN."""
    close = input == other
    if equal_nan and input.dtype.kind in "fc":
        close = close | (np.isnan(input) & np.isnan(other))
    if rtol == 0 and atol == 0:
        return close
    if input.dtype.kind in "iub":
        input, other = input.astype(np.float64), other.astype(np.float64)
    distance = abs(input - other)
    return close | (np.isfinite(distance) & (distance <= atol + abs(rtol * other)))
