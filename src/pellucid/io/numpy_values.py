"""NumPy scalars and arrays inside a pickle: numbers and text only, checked before NumPy sees them.

Checkpoints often hold a loss or an accuracy as a NumPy scalar. An array of Python objects is refused.
"""

from __future__ import annotations

import math
import pickle
import re

import numpy as np

__all__ = ["build_array", "check_dtype_state", "from_buffer", "make_dtype", "new_array", "scalar"]

_PLAIN = re.compile(r"[?bhilqpBHILQPefdgFDG]|b1|[iu][1248]|f(2|4|8|16)|c(8|16|32)|[SU][0-9]{1,9}")


def make_dtype(name, align=False, copy=False) -> np.dtype:
    """The dtype of a name such as `f8`; UnpicklingError for one that is not a plain number or text."""
    if type(name) is not str or not _PLAIN.fullmatch(name):
        raise pickle.UnpicklingError("NumPy values in the file must be plain numbers or text")
    return np.dtype(name)


def check_dtype_state(kind: np.dtype, state) -> None:
    """Accept the state that NumPy writes for plain dtypes in this machine's byte order; it changes nothing."""
    plain = type(state) is tuple and len(state) == 8 and state[2:5] == (None, None, None)
    if not plain or state[1] not in ("<" if np.little_endian else ">", "|", "="):
        raise pickle.UnpicklingError("NumPy values in the file must be plain and in this machine's byte order")


def scalar(kind: np.dtype, data: bytes) -> np.generic:
    """The scalar that NumPy wrote as a dtype and its bytes."""
    if not isinstance(kind, np.dtype) or type(data) is not bytes or len(data) != kind.itemsize:
        raise pickle.UnpicklingError("a NumPy scalar in the file is damaged")
    return np.frombuffer(data, kind)[0] if kind.itemsize else kind.type()


def new_array(kind: type, shape, code) -> np.ndarray:
    """The empty array that NumPy writes first, to be filled by `build_array`."""
    if kind is not np.ndarray or shape != (0,):
        raise pickle.UnpicklingError("a NumPy array in the file is damaged, or of a subclass")
    return np.empty(0, np.int8)


def from_buffer(data, kind, shape, order, axes=None) -> np.ndarray:
    """The array that NumPy writes as bytes, dtype, shape and order with pickle protocol 5."""
    if type(data) not in (bytes, bytearray) or order not in ("C", "F") or axes is not None:
        raise pickle.UnpicklingError("a NumPy array in the file is damaged, or in an order that is not supported")
    _check_array(kind, shape, data)
    return np.frombuffer(data, kind).reshape(shape, order=order).copy(order="K")


def build_array(array: np.ndarray, state) -> None:
    """Fill an array with the state that NumPy writes: (version, shape, dtype, whether in column order, bytes)."""
    if type(state) is not tuple or len(state) != 5:
        raise pickle.UnpicklingError("a NumPy array in the file is damaged")
    version, shape, kind, columns, data = state
    if array.size or version != 1 or type(columns) is not bool or type(data) is not bytes:
        raise pickle.UnpicklingError("a NumPy array in the file is damaged, or holds Python objects")
    _check_array(kind, shape, data)
    array.__setstate__(state)


def _check_array(kind, shape, data: bytes | bytearray) -> None:
    whole = type(shape) is tuple and len(shape) <= 64 and all(type(n) is int and n >= 0 for n in shape)
    if not whole or not isinstance(kind, np.dtype) or kind.hasobject:
        raise pickle.UnpicklingError("a NumPy array in the file is damaged, or holds Python objects")
    if math.prod(shape) * kind.itemsize != len(data):
        raise pickle.UnpicklingError("a NumPy array in the file does not have the size it says")
