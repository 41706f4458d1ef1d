"""Powers of integers, and of other numbers by one number."""

from __future__ import annotations

import numpy as np

__all__ = ["integer_power", "real_power"]

# What PyTorch computes by multiplication rather than by the power function.
SHORT_POWERS = {
    1: np.positive,
    2: np.square,
    3: lambda x: x * x * x,
    0.5: np.sqrt,
    -0.5: lambda x: 1 / np.sqrt(x),
    -1: np.reciprocal,
    -2: lambda x: 1 / (x * x),
}


def integer_power(input: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """Powers of integers; a negative exponent rounds the true value towards zero."""
    if input.dtype.kind == "b":
        return np.logical_or(input, np.logical_not(exponent))
    if exponent.dtype.kind == "u" or not (exponent < 0).any():
        return np.power(input, exponent)
    sign = np.where(exponent % 2 == 0, 1, input)
    negative = np.where(input == 1, 1, np.where(input == -1, sign, 0))
    return np.where(exponent < 0, negative, np.power(input, np.maximum(exponent, 0))).astype(input.dtype)


def real_power(input: np.ndarray, exponent) -> np.ndarray:
    """Powers of floating-point or complex numbers by one number, a 0-d array or a Python number."""
    number = exponent.item() if hasattr(exponent, "item") else exponent
    short = SHORT_POWERS.get(number) if input.dtype.kind == "f" or number == 2 else None
    return np.power(input, number) if short is None else short(input)
