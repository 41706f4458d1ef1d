"""Tensors out of given data: numbers, nested sequences, NumPy arrays, other libraries' tensors; and the ways back.

Tensors out of sizes are made in `factories.py`.
"""

from __future__ import annotations

import warnings

import numpy as np

from pellucid.autograd.fresh import finished
from pellucid.autograd.operator import PUBLIC, composite
from pellucid.core.device import check_device
from pellucid.core.dtype import dtype_of, get_default_dtype, numpy_of
from pellucid.core.modes import modes
from pellucid.core.tensor import Tensor, wrap
from pellucid.core.values import array_from

__all__ = [
    "as_tensor", "asarray", "from_dlpack", "from_numpy", "frombuffer", "is_complex", "is_floating_point",
    "is_tensor", "numel", "tensor",
]  # fmt: skip


# --- factories -------------------------------------------------------------------------------------------------------


@composite()
def tensor(
    data, *, dtype=None, device=None, requires_grad: bool = False, pin_memory: bool = False, names=None
) -> Tensor:
    """A new tensor holding a copy of the data: a number, nested sequences of numbers, an array.

    dtype: found from the data if None (Python floats become the default dtype, ints int64).
    Raises: ValueError for ragged sequences, TypeError or RuntimeError for what is no number.
    """
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() or "
            "sourceTensor.detach().clone().requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
    return finished(_copied(data, _dtype(dtype)), requires_grad, device)


def _dtype(dtype):
    return None if dtype is None else dtype_of(numpy_of(dtype))


def _copied(data, dtype):
    """A copy of the data: an array, or of a tensor under vmap a tensor that stands for each example as well."""
    if not isinstance(data, Tensor) or not data._wraps:
        return array_from(data, dtype)
    copy = data.detach().clone()
    return copy if dtype is None else copy.to(dtype)


@composite(method=True, module=None)
def new_tensor(
    self: Tensor, data, *, dtype=None, device=None, requires_grad: bool = False, layout=None, pin_memory=False
) -> Tensor:
    """A new tensor holding a copy of the data, of this tensor's element type unless `dtype` says otherwise."""
    dtype = _dtype(dtype) or (self.dtype if not isinstance(data, Tensor) else None)
    return finished(_copied(data, dtype), requires_grad, device)


@composite()
def as_tensor(data, dtype=None, device=None) -> Tensor:
    """The data as a tensor, sharing memory (and a tensor's history) where nothing must be converted."""
    if isinstance(data, Tensor):
        return data if dtype is None and device is None else data.to(device=device, dtype=dtype)
    if isinstance(data, np.ndarray) and data.dtype.isnative and (dtype is None or data.dtype == dtype.numpy):
        return from_numpy(data)
    return finished(array_from(data, _dtype(dtype)), False, device)


@composite()
def asarray(obj, *, dtype=None, device=None, copy: bool | None = None, requires_grad: bool = False) -> Tensor:
    """A tensor of an object that is a tensor, an array, a buffer, or nested sequences.

    copy: True always copies, False never (ValueError where that is impossible), None copies where needed.
    """
    check_device(device)
    wanted = _dtype(dtype)
    if isinstance(obj, Tensor):
        found = obj if requires_grad or not obj.requires_grad else obj.detach()
        if not requires_grad and obj.requires_grad is False:
            found = obj
    elif isinstance(obj, (np.ndarray, np.generic)):
        found = from_numpy(np.asarray(obj)) if isinstance(obj, np.ndarray) else tensor(obj)
    elif hasattr(obj, "__dlpack__"):
        found = from_dlpack(obj)
    elif isinstance(obj, (bytes, bytearray, memoryview)):
        found = frombuffer(obj, dtype=wanted or get_default_dtype())
    else:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor: pass copy=None or copy=True")
        return finished(array_from(obj, wanted), requires_grad)
    if wanted is not None and found.dtype != wanted:
        if copy is False:
            raise ValueError(f"can't alias tensor with dtype '{found.dtype}' into dtype '{wanted}'")
        found = found.to(wanted)
    elif copy:
        found = found.clone()
    if isinstance(obj, Tensor) and not requires_grad:
        return found.detach() if found.requires_grad else found
    return found.requires_grad_() if requires_grad and not found.requires_grad else found


@composite()
def from_numpy(ndarray: np.ndarray) -> Tensor:
    """A tensor over the memory of an array: writes to one are seen in the other.

    Raises: TypeError for what is no array or of an unsupported type, ValueError for negative strides or a foreign byte order.
    """
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    if not ndarray.dtype.isnative:
        raise ValueError("given numpy array has byte order different from the native byte order. Conversion between byte orders is "
                         "currently not supported.")
    kind = dtype_of(ndarray.dtype)
    for stride in ndarray.strides:
        if stride < 0:
            raise ValueError("At least one stride in the given numpy array is negative, and tensors with negative strides are not "
                             "currently supported. (You can probably work around this by making a copy of your array  with "
                             "array.copy().) ")
        if stride % kind.itemsize:
            raise ValueError("given numpy array strides not a multiple of the element byte size. Copy the numpy array to "
                             "reallocate the memory.")
    if not ndarray.flags.writeable:
        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support non-writable tensors. Writing to this tensor "
            "raises an error; copy the array first if you need to.",
            UserWarning,
            stacklevel=2,
        )
    return finished(np.asarray(ndarray))


@composite()
def frombuffer(buffer, *, dtype, count: int = -1, offset: int = 0, requires_grad: bool = False) -> Tensor:
    """A 1-d tensor over the memory of an object with the buffer protocol."""
    size = memoryview(buffer).nbytes
    kind = numpy_of(dtype)
    if size <= 0 or count == 0:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(f"offset ({offset} bytes) must be non-negative and no greater than buffer length ({size} bytes) minus 1")
    if count < 0 and (size - offset) % kind.itemsize:
        raise ValueError(f"buffer length ({size - offset} bytes) after offset ({offset} bytes) must be a multiple of element size "
                         f"({kind.itemsize})")
    if count > 0 and offset + count * kind.itemsize > size:
        raise ValueError(f"requested buffer length ({count} * {kind.itemsize} bytes) after offset ({offset} bytes) must not be "
                         f"greater than actual buffer length ({size} bytes)")
    return finished(np.frombuffer(buffer, kind, count, offset), requires_grad)


@composite()
def from_dlpack(ext_tensor, *, device=None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of another library's tensor (anything with `__dlpack__`), without copying."""
    if isinstance(ext_tensor, Tensor):
        return wrap(ext_tensor._array)
    array = np.from_dlpack(ext_tensor)
    if not array.flags.writeable:  # NumPy takes the exporter's word for less than it is
        array = np.lib.stride_tricks.as_strided(array, writeable=False)
    return finished(array if not copy else array.copy())


# --- the ways back ---------------------------------------------------------------------------------------------------


def numpy(self: Tensor, *, force: bool = False) -> np.ndarray:
    """The values as an array that shares this tensor's memory.

    force: detach first, as `tensor.detach().cpu().numpy()` does.
    Raises: RuntimeError for a tensor that requires grad where operations are recorded, TypeError for bfloat16.
    """
    if not force and modes.grad_enabled and not modes.inference and self.requires_grad:
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
    if self._array.dtype.kind == "V":
        raise TypeError("Got unsupported ScalarType BFloat16: NumPy has no such type. Use tensor.float().numpy().")
    return self._array.view()


def __array__(self: Tensor, dtype=None, copy: bool | None = None) -> np.ndarray:
    """For NumPy's own functions: as `numpy()`, converted if `dtype` says so."""
    array = self.numpy()
    if dtype is not None and array.dtype != dtype:
        return array.astype(dtype)
    return array.copy() if copy else array


def __dlpack__(self: Tensor, *, stream=None, max_version=None, dl_device=None, copy=None):
    """A capsule through which another library can share this tensor's memory; BufferError if it requires grad."""
    if self.requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if stream not in (None, -1):
        raise AssertionError(f"stream should be None on the CPU, got {stream}")
    return self._array.__dlpack__()


def __dlpack_device__(self: Tensor) -> tuple[int, int]:
    """The CPU, in DLPack's numbers."""
    return (1, 0)


for _method in (numpy, __array__, __dlpack__, __dlpack_device__):
    setattr(Tensor, _method.__name__, _method)


# --- questions -------------------------------------------------------------------------------------------------------


@composite()
def is_tensor(obj) -> bool:
    """Whether an object is a tensor."""
    return isinstance(obj, Tensor)


@composite()
def is_storage(obj) -> bool:
    """Whether an object is the storage of a tensor."""
    return type(obj).__name__.endswith("Storage") and hasattr(obj, "nbytes")


@composite()
def numel(input: Tensor) -> int:
    """The number of elements."""
    return input._array.size


def _question(name: str):
    def ask(input: Tensor):
        return getattr(input, name)()

    ask.__name__ = ask.__qualname__ = name
    ask.__doc__ = f"`input.{name}()`."
    return ask


for _name in ("is_signed", "is_conj", "is_neg", "is_same_size", "is_inference"):
    PUBLIC.setdefault("torch", {})[_name] = _question(_name)
PUBLIC["torch"]["is_same_size"] = lambda input, other: input.is_same_size(other)


@composite()
def is_complex(input) -> bool:
    """Whether the element type is complex."""
    return input.is_complex()


@composite()
def is_floating_point(input) -> bool:
    """Whether the element type is floating-point."""
    return input.is_floating_point()
