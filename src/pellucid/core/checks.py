"""Checks and texts that several families of operators share: names of dtypes in errors, ranks, equal dtypes, reductions.

Most take arrays and raise PyTorch's exceptions; no operator lives here.
"""

from __future__ import annotations

import numpy as np

from pellucid.core.errors import type_name
from pellucid.core.tensor import Tensor
from pellucid.core.values import c_type, differs

__all__ = ["c_name", "check_integral_scale", "check_matrix", "check_rank", "check_reduction", "check_square",
           "check_two_dims", "every_value", "no_tensor", "refuse_dynamic", "require_kind", "require_tensors",
           "same_dtype", "scalar_name", "times", "written_to"]  # fmt: skip


def scalar_name(array) -> str:
    """The dtype of an array as PyTorch's errors call it: Float, Long, ..."""
    return type_name(array.dtype)


def c_name(array) -> str:
    """The dtype of an array as errors of matrix products call it: float, long int, ..."""
    return c_type(array.dtype)


def times(shape) -> str:
    """A shape as errors of matrix products write it: 2x3."""
    return "x".join(str(s) for s in shape)


def check_rank(array, rank: int, message: str) -> None:
    """Raise RuntimeError with the message, and the shape that came, unless the array has that rank."""
    if array.ndim != rank:
        raise RuntimeError(f"{message} (expected {rank} dimensions, got shape {list(array.shape)})")


def check_two_dims(function: str, name: str, array: np.ndarray) -> None:
    """RuntimeError for an array of fewer than two dimensions."""
    if array.ndim < 2:
        raise RuntimeError(f"{function}: The input tensor {name} must have at least 2 dimensions. Got shape {list(array.shape)}")


def check_matrix(function: str, name: str, array: np.ndarray) -> None:
    """RuntimeError unless the array holds floating-point or complex matrices."""
    check_two_dims(function, name, array)
    if array.dtype.kind not in "fc":
        raise RuntimeError(f"{function}: Expected a floating point or complex tensor as input. Got {scalar_name(array)}")


def check_square(function: str, name: str, array: np.ndarray) -> None:
    """RuntimeError unless the array holds square floating-point or complex matrices."""
    if array.ndim >= 2 and array.shape[-1] != array.shape[-2]:
        raise RuntimeError(f"{function}: {name} must be batches of square matrices, but they are {array.shape[-2]} by "
                           f"{array.shape[-1]} matrices")
    check_matrix(function, name, array)


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


def no_tensor(function: str, name: str, value, position: int | None = None) -> TypeError:
    """The error of an argument that is no tensor. position: where it stands, if the text is to say so."""
    where = "" if position is None else f" (position {position})"
    return TypeError(f"{function}(): argument '{name}'{where} must be Tensor, not {type(value).__name__}")


def require_tensors(function: str, **arguments) -> None:
    """Raise TypeError for an argument, given by name, that is no tensor."""
    for name, value in arguments.items():
        if not isinstance(value, Tensor):
            raise no_tensor(function, name, value)


KINDS = {"f": "floating-point", "c": "complex", "i": "integer", "b": "bool"}


def require_kind(name: str, array, kinds: str) -> None:
    """Raise NotImplementedError, as PyTorch's kernels do, unless the dtype is of one of the kinds (letters of `KINDS`)."""
    letter: str = array.dtype.kind
    kind = {"u": "i", "V": "f"}.get(letter, letter)  # NumPy does not know bfloat16 for a float
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


def refuse_dynamic(name: str, *tensors) -> None:
    """RuntimeError where values that differ between the examples of a batch would decide the shape of a result."""
    for tensor in tensors:
        if differs(tensor):
            raise RuntimeError(
                f"vmap: We do not support batching operators that can output dynamic shape. Attempted to vmap over {name}: the "
                "size of its result depends on the values of each example. Call it outside of vmap."
            )
