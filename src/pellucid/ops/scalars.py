"""Python numbers as elements of a dtype, with PyTorch's rule for what does not fit. No operator lives here."""

from __future__ import annotations

import functools

import numpy as np

from pellucid.core.dtype import dtype_of
from pellucid.core.limits import finfo
from pellucid.core.tensor import Tensor
from pellucid.ops.checks import c_name

__all__ = ["check_castable", "number_in"]

WIDTH = {"uint8": "uint8_t", "int8": "int8_t", "int16": "int16_t", "int64": "int64_t"}  # the others are called as in C


@functools.cache
def _limits(kind: np.dtype) -> tuple:
    """The smallest and largest number of a dtype, and the smallest integer that it takes."""
    if kind.kind in "iu":
        info = np.iinfo(kind)
        return info.min, info.max, -info.max if kind.kind == "u" else info.min  # negative integers wrap around
    largest = finfo(dtype_of(kind)).max
    return -largest, largest, -largest


def _fits(value, kind: np.dtype) -> bool:
    if isinstance(value, complex):
        if kind.kind == "c":
            return _fits(value.real, kind) and _fits(value.imag, kind)
        return not value.imag and _fits(value.real, kind)
    low, high, low_integer = _limits(kind)
    if kind.kind not in "iu" and (value != value or value in (np.inf, -np.inf)):
        return True
    return (low_integer if isinstance(value, int) else low) <= value <= high


def number_in(value, kind: np.dtype) -> np.ndarray:
    """A Python number, or a 0-d tensor, as a 0-d array of a dtype. Negative integers wrap around in unsigned types.

    Raises:
        RuntimeError: a number out of the dtype's range, infinite or NaN for integers, complex for real numbers.
        OverflowError: an integer of more than 64 bits.
        TypeError: a tensor of more than no dimensions.
    """
    if isinstance(value, Tensor):
        if value._array.ndim:
            raise TypeError(
                f"fill_value must be a number or a 0-d tensor, got a tensor of shape {list(value._array.shape)}"
            )
        if value._wraps:
            value.item()  # an error: there is a value for each example
        return value._array.astype(kind)
    if isinstance(value, int) and not -(2**63) <= value < 2**64:
        raise OverflowError(f"int too big to convert: {value}")
    if kind.kind == "b":
        return np.array(bool(value))
    if not _fits(value, kind):
        name = WIDTH.get(kind.name, c_name(np.empty(0, kind)))
        raise RuntimeError(f"value cannot be converted to type {name} without overflow: {value}")
    if kind.kind in "iu":
        value = int(value.real)
    return np.array(value.real if kind.kind != "c" else value).astype(kind)


def check_castable(array: np.ndarray, kind: np.dtype) -> None:
    """Whether numbers from a Python list may be brought to a dtype. Real dtypes take no complex ones, integers none too large.

    Raises:
        TypeError: complex numbers.
        RuntimeError: a number out of the range of an integer dtype.
    """
    if array.dtype.kind == "c" and kind.kind not in "cb":
        raise TypeError(
            "'complex' object cannot be interpreted as an integer" if kind.kind in "iu" else "must be real number, not complex"
        )
    if kind.kind in "iu" and array.size and array.dtype != kind and array.dtype.kind != "b":
        low, high, low_integer = _limits(kind)
        smallest, largest = array.min(), array.max()
        if not ((low_integer if array.dtype.kind in "iu" else low) <= smallest and largest <= high):
            raise RuntimeError(f"value cannot be converted to type {kind.name} without overflow: {smallest} to {largest}")
