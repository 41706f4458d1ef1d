"""Checks and texts that several families of operators share: names of dtypes in errors, ranks, equal dtypes, reductions.

Most take arrays and raise PyTorch's exceptions; no operator lives here.
"""

from __future__ import annotations

import numpy as np

__all__ = [
    "c_name", "check_integral_scale", "check_rank", "check_reduction", "every_value", "require_kind", "same_dtype", "scalar_name",
    "times", "written_to",
]  # fmt: skip

_SCALAR = {
    "bool": "Bool", "uint8": "Byte", "int8": "Char", "int16": "Short", "int32": "Int", "int64": "Long", "float16": "Half",
    "bfloat16": "BFloat16", "float32": "Float", "float64": "Double", "complex64": "ComplexFloat", "complex128": "ComplexDouble",
}  # fmt: skip
_C = {
    "bool": "bool", "uint8": "unsigned char", "int8": "signed char", "int16": "short", "int32": "int", "int64": "long int",
    "float16": "c10::Half", "bfloat16": "c10::BFloat16", "float32": "float", "float64": "double",
    "complex64": "c10::complex<float>", "complex128": "c10::complex<double>",
}  # fmt: skip


def scalar_name(array) -> str:
    """The dtype of an array as PyTorch's errors call it: Float, Long, ..."""
    return _SCALAR.get(array.dtype.name, array.dtype.name)


def c_name(array) -> str:
    """The dtype of an array as errors of matrix products call it: float, long int, ..."""
    return _C.get(array.dtype.name, array.dtype.name)


def times(shape) -> str:
    """A shape as errors of matrix products write it: 2x3."""
    return "x".join(str(s) for s in shape)


def check_rank(array, rank: int, message: str) -> None:
    """Raise RuntimeError with the message, and the shape that came, unless the array has that rank."""
    if array.ndim != rank:
        raise RuntimeError(f"{message} (expected {rank} dimensions, got shape {list(array.shape)})")


def same_dtype(a, b, message: str, what: str = "") -> None:
    """Raise RuntimeError unless both dtypes agree; `message` may use {a} and {b} for their names."""
    if a.dtype != b.dtype:
        text = message.format(a=scalar_name(a), b=scalar_name(b))
        raise RuntimeError(f"{text}. {what}Convert one of them with .to(dtype).")


def check_integral_scale(input, **scales) -> None:
    """Raise RuntimeError for a fractional factor of an integer tensor."""
    for name, value in scales.items():
        if input.dtype.kind in "iub" and isinstance(value, float):
            raise RuntimeError(
                f"For integral input tensors, argument {name} must not be a floating point number: got {value} for "
                f"{scalar_name(input)}"
            )


def check_reduction(reduction: str) -> None:
    """Raise ValueError unless `reduction` is one of none, mean, sum."""
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction: expected 'none', 'mean' or 'sum'")


KINDS = {"f": "floating-point", "c": "complex", "i": "integer", "b": "bool"}


def require_kind(name: str, array, kinds: str) -> None:
    """Raise NotImplementedError, as PyTorch's kernels do, unless the dtype is of one of the kinds (letters of `KINDS`)."""
    kind = {"u": "i", "V": "f"}.get(array.dtype.kind, array.dtype.kind)  # NumPy does not know bfloat16 for a float
    if kind not in kinds:
        takes = ", ".join(KINDS[k] for k in kinds)
        raise NotImplementedError(f"\"{name}\" not implemented for '{scalar_name(array)}': it takes {takes} tensors")


def every_value(tensor) -> np.ndarray:
    """The values of a tensor, under vmap those of all examples, for a check."""
    while tensor._wraps:
        tensor = tensor._value
    return tensor._array


def written_to(made, out):
    """The result, or `out` holding it."""
    return made if out is None else out.resize_(made.shape).copy_(made)
