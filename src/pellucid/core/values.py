"""Values of Python as arrays: numbers as elements of a dtype, with PyTorch's rule for what does not fit, and nested sequences."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from pellucid.core.dtype import DTYPES, default_complex, dtype_of, get_default_dtype, promote_types
from pellucid.core.limits import finfo
from pellucid.core.tensor import Tensor

__all__ = ["array_from", "c_type", "check_castable", "differs", "number_in"]

_C = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long int",
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip


def c_type(dtype: np.dtype) -> str:
    """An element type as C calls it: float, long int, ..."""
    return _C.get(dtype.name, dtype.name)


# --- numbers ---------------------------------------------------------------------------------------------------------

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
        name = WIDTH.get(kind.name, c_type(kind))
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


# --- nested sequences ------------------------------------------------------------------------------------------------


def _first_leaf(data):
    """The first element of nested sequences that is no sequence itself; None if there is none."""
    while isinstance(data, (list, tuple)):
        if not data:
            return None
        data = data[0]
    return data


def _kind_of(data) -> Any:
    """The element type of a value, found from all of its elements; None for an empty sequence."""
    if isinstance(data, Tensor):
        return data.dtype
    if isinstance(data, (np.ndarray, np.generic)):
        return dtype_of(data.dtype)
    if isinstance(data, bool):
        return DTYPES["bool"]
    if isinstance(data, int):
        return DTYPES["int64"]
    if isinstance(data, float):
        return get_default_dtype()
    if isinstance(data, complex):
        return default_complex()
    if isinstance(data, str):
        raise TypeError(f"new(): invalid data type 'str': {data!r}")
    if not hasattr(data, "__len__") or not hasattr(data, "__getitem__") or isinstance(data, dict):
        raise RuntimeError(f"Could not infer dtype of {type(data).__name__}")
    found = None
    for element in data:
        if isinstance(element, str):
            raise ValueError("too many dimensions 'str'")
        kind = _kind_of(element)
        found = kind if found is None or kind is None else promote_types(found, kind)
    return found


def _check_shape(data, shape: tuple, depth: int = 0) -> None:
    """ValueError or TypeError where nested sequences are not of one shape."""
    if depth == len(shape):
        if isinstance(data, (list, tuple)):
            raise TypeError(f"'{type(data).__name__}' object cannot be interpreted as an integer: expected a number at depth {depth}")
        return
    if not hasattr(data, "__len__"):
        raise TypeError(f"not a sequence: expected one of length {shape[depth]} at dim {depth}, got {type(data).__name__}")
    if len(data) != shape[depth]:
        raise ValueError(f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)})")
    for element in data:
        _check_shape(element, shape, depth + 1)


def _shape_of(data) -> tuple[int, ...]:
    shape = []
    while hasattr(data, "__len__") and not isinstance(data, (str, dict)) and getattr(data, "ndim", 1):
        shape.append(len(data))
        if not len(data):
            break
        data = data[0]
    return tuple(shape)


def _plain(data):
    """Nested sequences with tensors and arrays inside them turned into lists."""
    if isinstance(data, (Tensor, np.ndarray)):
        return data.tolist()
    if isinstance(data, np.generic):
        return data.item()
    if isinstance(data, (list, tuple)):
        return [_plain(element) for element in data]
    if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, (str, dict)):
        return [_plain(data[i]) for i in range(len(data))]
    return data


def array_from(data, dtype=None) -> np.ndarray:
    """A fresh array of the values, in `dtype` or in the type that they have.

    Raises:
        ValueError: nested sequences of different lengths.
        TypeError, RuntimeError: something that is no number.
    """
    if isinstance(data, Tensor):
        return np.array(data._array, None if dtype is None else dtype.numpy, order="K")
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
        kind = dtype.numpy if dtype is not None else dtype_of(array.dtype.newbyteorder("=")).numpy
        return np.array(array, kind)
    leaf = _first_leaf(data)
    if type(leaf) in (int, float, bool, complex):
        try:
            array = np.array(data)
        except (ValueError, TypeError):
            array = np.empty(0, object)
        if array.dtype.kind in "bifc" and array.dtype != np.longdouble:
            return _typed(array, data, dtype)
    return _slow_array(data, dtype)


def _typed(array: np.ndarray, data, dtype) -> np.ndarray:
    """An array of plain Python numbers in the type that PyTorch gives them."""
    if dtype is None:
        kind = array.dtype.kind
        wanted = {"b": np.dtype(np.bool_), "i": np.dtype(np.int64)}.get(kind)
        if wanted is None:
            wanted = (get_default_dtype() if kind == "f" else default_complex()).numpy
    else:
        wanted = dtype.numpy
        check_castable(array, wanted)
    return array if array.dtype == wanted else array.astype(wanted)


def _slow_array(data, dtype) -> np.ndarray:
    """The general way: for empty sequences, sequences of tensors or arrays, and for finding what is wrong."""
    found = _kind_of(data)
    kind = dtype or found or get_default_dtype()
    shape = _shape_of(data)
    if isinstance(data, (list, tuple)) and data and isinstance(data[0], Tensor) and data[0]._array.size != 1:
        raise TypeError("only integer tensors of a single element can be converted to an index: use torch.stack to make one tensor "
                        "of several")
    _check_shape(data, shape)
    values = _plain(data)
    if kind.numpy.kind in "iu":
        _check_integers(values)
    integers = np.array(values) if kind.numpy.kind in "iu" or (found is not None and found.is_complex) else None
    if integers is not None and integers.dtype != object:
        check_castable(integers, kind.numpy)
    wide = kind.numpy if kind.numpy.kind != "V" else np.dtype(np.float32)
    made = np.array(values, wide) if integers is None or integers.dtype == object else integers
    return made.astype(kind.numpy, copy=False).reshape(shape)


def _check_integers(values) -> None:
    if isinstance(values, list):
        for value in values:
            _check_integers(value)
    elif isinstance(values, int) and not -(2**63) <= values < 2**63:
        raise ValueError(f"Overflow when unpacking long long: {values} does not fit into int64")


# --- values behind tensors --------------------------------------------------------------------------------------------


def differs(tensor) -> bool:
    """Whether a tensor stands for examples of a batch, each with values of its own."""
    return tensor._wraps and (tensor._batched or differs(tensor._value))
