"""Arithmetic, element by element, where PyTorch's values are not those of one ufunc."""

from __future__ import annotations

import math

import numpy as np

__all__ = ["directions", "floored", "floored_remainder", "log_of_exponentials", "rounded", "signs", "truncated"]


def floored(input: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The quotient rounded down; division of floats by zero gives what true division gives."""
    if input.dtype.kind != "f":
        return np.floor_divide(input, other)
    quotient = np.floor_divide(input, other)
    return np.where(other == 0, np.true_divide(input, other), quotient)


def truncated(input: np.ndarray, other: np.ndarray) -> np.ndarray:
    """The quotient rounded towards zero."""
    if input.dtype.kind == "f":
        return np.trunc(np.true_divide(input, other))
    quotient = np.floor_divide(input, other)
    inexact = quotient * other != input
    return quotient + np.asarray(inexact & ((input < 0) != (other < 0)), quotient.dtype)


def floored_remainder(input: np.ndarray, other: np.ndarray) -> np.ndarray:
    """NumPy's remainder, but that of a floating-point multiple is a zero with the sign of the dividend."""
    made = np.remainder(input, other)
    return made if made.dtype.kind in "iu" else np.where(made == 0, np.copysign(made, input), made)


def signs(input: np.ndarray) -> np.ndarray:
    """-1, 0 or 1 for each element, 0 for NaN."""
    if input.dtype.kind == "b":
        return input.copy()
    found = np.sign(input)
    return found if input.dtype.kind in "iu" else np.where(found == found, found, 0).astype(input.dtype)


def directions(input: np.ndarray) -> np.ndarray:
    """Complex numbers scaled to modulus one; 0 for 0."""
    modulus = np.absolute(input)
    return np.where(modulus == 0, 0, input / modulus).astype(input.dtype)


def rounded(input: np.ndarray, decimals: int) -> np.ndarray:
    """The nearest number with so many places behind the point, halves to even."""
    if decimals == 0:
        return np.rint(input) if input.dtype.kind == "f" else input.copy()
    ten = input.dtype.type(10.0 ** math.fabs(decimals))
    return np.rint(input * ten) / ten if decimals > 0 else np.rint(input / ten) * ten


def log_of_exponentials(input, other):
    """`logaddexp` of complex numbers."""
    upper = np.where(input.real >= other.real, input, other)
    return np.log(np.exp(input - upper) + np.exp(other - upper)) + upper
