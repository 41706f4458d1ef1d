"""Element types: the `dtype` objects, the default dtype, and PyTorch's promotion rules.

Arrays carry NumPy dtypes; users see these objects. `dtype_of` goes from the first to the second,
`dtype.numpy` back. Promotion works on NumPy dtypes, since operators call it on arrays.
"""

from __future__ import annotations

import builtins
from typing import Any

import ml_dtypes
import numpy as np

__all__ = [
    "DTYPES",
    "Category",
    "can_cast",
    "default_complex",
    "dtype",
    "dtype_of",
    "get_default_dtype",
    "numpy_of",
    "promote_types",
    "result_type",
    "set_default_dtype",
]  # fmt: skip


class dtype:
    """An element type, such as `pellucid.float32`. Compared by identity; there is one object for each type."""

    __slots__ = ("is_complex", "is_floating_point", "is_signed", "itemsize", "name", "numpy")

    def __init__(self, name: str, numpy_dtype):
        self.name = name
        self.numpy = np.dtype(numpy_dtype)
        self.itemsize = self.numpy.itemsize
        self.is_complex = name.startswith("complex")
        self.is_floating_point = name.startswith(("float", "bfloat"))
        self.is_signed = name not in ("uint8", "bool")

    def __repr__(self) -> str:
        return f"torch.{self.name}"  # PyTorch's text, so that printed output can be laid beside it

    def __reduce__(self):
        return (_by_name, (self.name,))

    def to_complex(self) -> dtype:
        """The complex type whose parts have this precision (float32 for types without one of their own)."""
        return {"float64": complex128, "complex128": complex128}.get(self.name, complex64)

    def to_real(self) -> dtype:
        """The real type of the parts of a complex type; other types are their own."""
        return {"complex64": float32, "complex128": float64}.get(self.name, self)


float16 = dtype("float16", np.float16)
bfloat16 = dtype("bfloat16", ml_dtypes.bfloat16)
float32 = dtype("float32", np.float32)
float64 = dtype("float64", np.float64)
int8 = dtype("int8", np.int8)
int16 = dtype("int16", np.int16)
int32 = dtype("int32", np.int32)
int64 = dtype("int64", np.int64)
uint8 = dtype("uint8", np.uint8)
bool = dtype("bool", np.bool_)
complex64 = dtype("complex64", np.complex64)
complex128 = dtype("complex128", np.complex128)

DTYPES = {
    t.name: t
    for t in (float16, bfloat16, float32, float64, int8, int16, int32, int64, uint8, bool, complex64, complex128)
}
half, double, short, long, cfloat, cdouble = float16, float64, int16, int64, complex64, complex128
_OF_NUMPY = {t.numpy: t for t in DTYPES.values()}


def _by_name(name: str) -> dtype:
    return DTYPES[name]


def dtype_of(numpy_dtype: np.dtype) -> dtype:
    """The element type of an array; TypeError for one that tensors do not have."""
    found = _OF_NUMPY.get(numpy_dtype)
    if found is None:
        raise TypeError(
            f"can't convert np.ndarray of type {numpy_dtype}. The only supported types are: {', '.join(DTYPES)}."
        )
    return found


class _Defaults:
    """The process-wide default, as in PyTorch; read through this object, never copied."""

    floating = float32


def get_default_dtype() -> dtype:
    """The type of floating-point tensors made without naming one."""
    return _Defaults.floating


def set_default_dtype(d: dtype) -> None:
    """Make `d` the default for new floating-point tensors; TypeError unless it is floating-point."""
    if not isinstance(d, dtype) or not d.is_floating_point:
        raise TypeError(f"only floating-point types are supported as the default type, got {d!r}")
    _Defaults.floating = d


def default_complex() -> dtype:
    """The complex type that goes with the default dtype."""
    return _Defaults.floating.to_complex()


# --- promotion -------------------------------------------------------------------------------------------------------


class Category:
    """The four categories of types, ordered: within one, a 0-d tensor or a Python number does not widen a result."""

    BOOL, INTEGER, FLOAT, COMPLEX = range(4)


_BFLOAT16 = bfloat16.numpy
_CATEGORY = {
    t.numpy: Category.COMPLEX
    if t.is_complex
    else Category.FLOAT
    if t.is_floating_point
    else Category.BOOL
    if t is bool
    else Category.INTEGER
    for t in DTYPES.values()
}


def category(numpy_dtype: np.dtype) -> int:
    """The category of an array's dtype."""
    return _CATEGORY[numpy_dtype]


def _promote_numpy(a: np.dtype, b: np.dtype) -> np.dtype:
    """The smallest type that PyTorch promotes two arrays of equal rank to."""
    if a == b:
        return a
    ca, cb = _CATEGORY[a], _CATEGORY[b]
    if ca != cb and Category.FLOAT in (ca, cb) and Category.COMPLEX not in (ca, cb):
        return a if ca > cb else b  # an integer never widens a float
    if ca != cb and max(ca, cb) == Category.COMPLEX:
        wide, narrow = (a, b) if ca > cb else (b, a)
        return complex128.numpy if narrow == float64.numpy else wide
    if _BFLOAT16 in (a, b):
        return np.promote_types(float32.numpy, b if a == _BFLOAT16 else a)
    return np.promote_types(a, b)


def promote_types(type1: dtype, type2: dtype) -> dtype:
    """The smallest type to which both types can be promoted.

    Raises:
        TypeError: an argument is not a dtype.
    """
    for value in (type1, type2):
        if not isinstance(value, dtype):
            raise TypeError(f"promote_types(): argument must be torch.dtype, not {type(value).__name__}")
    return dtype_of(_promote_numpy(type1.numpy, type2.numpy))


def number_dtype(value) -> np.dtype:
    """The type that a Python number has before it gives way to tensors."""
    if isinstance(value, (np.bool_, builtins.bool)):
        return bool.numpy
    if isinstance(value, (builtins.int, np.integer)):
        return int64.numpy
    if isinstance(value, (builtins.float, np.floating)):
        return _Defaults.floating.numpy
    if isinstance(value, (complex, np.complexfloating)):
        return default_complex().numpy
    raise TypeError(f"expected a number, got {type(value).__name__}")


def _combine(higher: np.dtype | None, lower: np.dtype | None) -> Any:
    """The higher-ranked type, widened only where the lower-ranked one is of a higher category."""
    if higher is None or lower is None:
        return lower if higher is None else higher
    ch, cl = _CATEGORY[higher], _CATEGORY[lower]
    if ch == Category.COMPLEX:
        return higher
    if ch == Category.FLOAT:
        return dtype_of(higher).to_complex().numpy if cl == Category.COMPLEX else higher
    if ch == Category.BOOL or cl >= Category.FLOAT:
        return _promote_numpy(higher, lower)
    return higher


def promoted(arrays, numbers) -> np.dtype:
    """The dtype in which arrays and Python numbers meet: dimensioned arrays rule, then 0-d arrays, then numbers."""
    ranked: list[np.dtype | None] = [None, None, None]
    for array in arrays:
        rank = 0 if array.ndim else 1
        seen = ranked[rank]
        ranked[rank] = array.dtype if seen is None else _promote_numpy(seen, array.dtype)
    for number in numbers:
        seen, kind = ranked[2], number_dtype(number)
        ranked[2] = kind if seen is None else _promote_numpy(seen, kind)
    return _combine(ranked[0], _combine(ranked[1], ranked[2]))


def result_type(tensor1, tensor2) -> dtype:
    """The dtype of an arithmetic operation on two tensors or Python numbers."""
    arrays = [t._array for t in (tensor1, tensor2) if hasattr(t, "_array")]
    numbers = [t for t in (tensor1, tensor2) if not hasattr(t, "_array")]
    return dtype_of(promoted(arrays, numbers))


def can_cast(from_: dtype, to: dtype) -> builtins.bool:
    """Whether an in-place operation may write a result of the first type into a tensor of the second."""
    return _CATEGORY[from_.numpy] <= _CATEGORY[to.numpy]


def numpy_of(dtype, default: np.dtype | None = None) -> np.dtype:
    """The NumPy dtype of an element type given by the user; None stands for `default`, or else the default dtype."""
    if dtype is None:
        return get_default_dtype().numpy if default is None else default
    if hasattr(dtype, "numpy"):
        return dtype.numpy
    python = {float: np.float64, int: np.int64, builtins.bool: np.bool_, np.complex128: np.complex128}
    if dtype in python:
        return np.dtype(python[dtype])
    raise TypeError(f"argument 'dtype' must be torch.dtype, not {type(dtype).__name__}")
