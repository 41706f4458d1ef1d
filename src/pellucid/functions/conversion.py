"""Conversions of element type, device and order in memory: `to` and its relatives, by the operators of `ops/conversion.py`.

Old typed constructors (`FloatTensor`, ...) and `type()` are in `legacy.py`.
"""

from __future__ import annotations

import warnings

import numpy as np

from pellucid.autograd.operator import PUBLIC, composite
from pellucid.core import memory_format as formats
from pellucid.core.device import check_device
from pellucid.core.device import device as device_class
from pellucid.core.dtype import DTYPES, dtype_of
from pellucid.core.dtype import dtype as dtype_class
from pellucid.core.memory_format import contiguous_format, has_format, memory_format
from pellucid.core.tensor import Tensor
from pellucid.ops.conversion import clone, to_copy

__all__ = ["contiguous", "to"]


for _name in ("channels_last", "channels_last_3d", "contiguous_format", "memory_format", "preserve_format"):
    PUBLIC["torch"][_name] = getattr(formats, _name)


def is_contiguous(self: Tensor, memory_format: memory_format | None = None) -> bool:
    """Whether the elements lie in memory in row-major order, or in that of `memory_format`."""
    return has_format(self._array, memory_format)


Tensor.is_contiguous = is_contiguous


@composite(method=True, module=None)
def contiguous(input: Tensor, memory_format: memory_format = contiguous_format) -> Tensor:
    """The tensor itself if its elements lie in row-major order (or that of `memory_format`), else a copy in which they do."""
    if has_format(input._array, memory_format):
        return input
    return clone(input, memory_format=memory_format)


def _converted(input: Tensor, kind: np.dtype, copy: bool = False, order=None) -> Tensor:
    """The tensor in another element type and order of memory; itself where nothing changes."""
    if input._array.dtype == kind and not copy and (order is None or has_format(input._array, order)):
        return input
    if input._array.dtype.kind == "c" and kind.kind not in "cb":
        warnings.warn("Casting complex values to real discards the imaginary part", UserWarning, stacklevel=3)
    return to_copy(input, kind, order)


def _read_target(args, device, dtype, other):
    """The device and dtype that the arguments of `to` name."""
    for arg in args:
        if isinstance(arg, dtype_class):
            dtype = arg
        elif isinstance(arg, Tensor):
            other = arg
        elif isinstance(arg, (str, device_class)):
            device = arg
        elif arg is not None and not isinstance(arg, bool):
            if isinstance(arg, int):
                raise RuntimeError(f"Cannot access accelerator device when none is available: to({arg}) names one; use 'cpu'.")
            raise TypeError(
                "to() received an invalid combination of arguments - expected a dtype, a device or a tensor, "
                f"but got ({type(arg).__name__})"
            )
    if other is not None:
        dtype = other.dtype
    if device is not None:
        check_device(device)
    return dtype


@composite(method=True, module=None)
def to(input: Tensor, *args, device=None, dtype=None, other=None, non_blocking: bool = False, copy: bool = False,
       memory_format: memory_format | None = None) -> Tensor:  # fmt: skip
    """The tensor in another element type: `to(dtype)`, `to(device, dtype)`, `to(other)`.

    Returns the tensor itself if nothing changes and `copy` is false. RuntimeError for a device that is not the CPU.
    """
    dtype = _read_target(args, device, dtype, other)
    flags = [a for a in args if isinstance(a, bool)]
    copy = copy or (len(flags) > 1 and flags[1])
    return _converted(input, input._array.dtype if dtype is None else dtype.numpy, copy, memory_format)


@composite(method=True, module=None)
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor in the element type of another."""
    return _converted(input, other._array.dtype)


def _cast_method(name: str, kind: np.dtype) -> None:
    def method(self: Tensor, memory_format: memory_format | None = None) -> Tensor:
        return _converted(self, kind, order=memory_format)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"The tensor as {dtype_of(kind).name}; itself if it is that already."
    setattr(Tensor, name, method)


for _name, _kind in (
    ("float", "float32"),
    ("double", "float64"),
    ("half", "float16"),
    ("bfloat16", "bfloat16"),
    ("int", "int32"),
    ("long", "int64"),
    ("short", "int16"),
    ("bool", "bool"),
    ("char", "int8"),
    ("byte", "uint8"),
    ("cfloat", "complex64"),
    ("cdouble", "complex128"),
):
    _cast_method(_name, DTYPES[_kind].numpy)


@composite(method=True, module=None)
def cuda(input: Tensor, device=None, non_blocking: bool = False, memory_format=None) -> Tensor:
    """RuntimeError: there is no CUDA device."""
    check_device("cuda" if device is None or isinstance(device, int) else device)
    return input


def _only_here(name: str, doc: str, answer) -> None:
    """A method about devices and processes, whose answer is always the same: all memory is this process's, on the CPU."""

    def method(self: Tensor, device=None, memory_format=None):
        return self if answer is None else answer

    method.__name__ = method.__qualname__ = name
    method.__doc__ = doc
    setattr(Tensor, name, method)


_only_here("cpu", "The tensor itself: it is on the CPU.", None)
_only_here("pin_memory", "The tensor itself: without an accelerator there is nothing to pin memory for.", None)
_only_here("is_pinned", "False: there is no accelerator to pin memory for.", False)
_only_here("share_memory_", "The tensor itself; threads share all memory, and processes get copies.", None)
_only_here("is_shared", "False: memory is not shared with other processes.", False)
