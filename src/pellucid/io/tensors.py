"""How a tensor lies on a storage: taking tensors apart for writing, putting them together from what a file says.

All that this folder knows about `Tensor` is here. Everything a file says is checked: no array is ever made that reaches
beyond its storage.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from pellucid.core.dtype import dtype
from pellucid.core.tensor import Buffer, Parameter, Tensor, storage_of, wrap
from pellucid.io.storage import Storage

__all__ = ["Layout", "buffer_state", "lay_out", "owner_of", "python_state", "rebuild_from_type", "rebuild_parameter",
           "rebuild_parameter_with_state", "rebuild_tensor", "rebuild_tensor_v2", "set_plain_attributes"]

_MAX_DIMS = 64  # NumPy's limit
_MAX_BYTES = 2**63 - 1


class Layout(NamedTuple):
    """Where a tensor lies: `owner` keeps the memory alive and tells storages apart; offset and strides in elements."""

    owner: np.ndarray
    storage: Storage
    offset: int
    size: tuple[int, ...]
    stride: tuple[int, ...]


# --- taking apart ----------------------------------------------------------------------------------------------------


def lay_out(tensor: Tensor) -> Layout:
    """The storage under a tensor, whole, and the tensor's place on it.

    Memory that no storage can describe (negative strides, elements between the elements of a foreign buffer) is copied.
    """
    array, kind = tensor._array, tensor.dtype
    owner = owner_of(array)
    memory = _bytes_of(owner)
    offset = None if memory is None else _offset(memory, array)
    if memory is None or offset is None:
        owner = np.array(array, order="C")
        storage = Storage(owner.reshape(-1).view(np.uint8), kind)
        return Layout(owner, storage, 0, array.shape, _packed_strides(array.shape))
    return Layout(owner, Storage(memory, kind), offset, array.shape, tensor.stride())


def owner_of(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory of a view, also of one made by `as_strided`, which puts an object in between."""
    owner = storage_of(array)
    while isinstance(getattr(owner.base, "base", None), np.ndarray):
        owner = storage_of(owner.base.base)
    return owner


def _bytes_of(owner: np.ndarray) -> np.ndarray | None:
    """The memory of an array that fills it without gaps, in address order, as bytes; None for any other array."""
    by_stride = sorted(range(owner.ndim), key=lambda axis: -owner.strides[axis])
    ordered = owner.transpose(by_stride)
    if not ordered.flags.c_contiguous:
        return None
    return ordered.reshape(-1).view(np.uint8)


def _offset(memory: np.ndarray, array: np.ndarray) -> int | None:
    """Elements from the start of the memory to a view of it; None if it cannot be said in elements."""
    if not array.size:
        return 0
    start, itemsize = array.ctypes.data - memory.ctypes.data, array.itemsize
    if start % itemsize or any(step < 0 or step % itemsize for step in array.strides):
        return None
    extent = sum((n - 1) * step for n, step in zip(array.shape, array.strides, strict=True)) + itemsize
    return start // itemsize if 0 <= start <= memory.size - extent else None


def _packed_strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def python_state(tensor: Tensor) -> dict | None:
    """The attributes a program hung on a tensor; None if there are none."""
    return tensor.__dict__ or None


def buffer_state(buffer: Buffer) -> dict:
    """The attributes by which PyTorch tells a buffer from other tensors."""
    return {**buffer.__dict__, "persistent": buffer.persistent, "_is_buffer": True}


# --- putting together ------------------------------------------------------------------------------------------------


def rebuild_tensor(storage: Storage, offset: int, size: tuple, stride: tuple) -> Tensor:
    """The tensor at a place on a storage.

    Raises:
        RuntimeError: the place is not wholly inside the storage, or is no place at all.
    """
    return wrap(_place(storage, offset, size, stride))


def rebuild_tensor_v2(storage, offset, size, stride, requires_grad, backward_hooks, metadata=None) -> Tensor:
    """A tensor as files of today describe it. Hooks are never restored; `metadata` may ask for conjugation or negation.

    Raises:
        RuntimeError: the place is not wholly inside the storage, or the type cannot require gradients.
    """
    array = _place(storage, offset, size, stride)
    flags = metadata if isinstance(metadata, dict) else {}
    unknown = set(flags) - {"conj", "neg"}
    if unknown:
        raise RuntimeError("the file asks for a property of a tensor that is not known: conj and neg are")
    if flags.get("conj"):
        array = array.conj()
    if flags.get("neg"):
        array = np.negative(array)
    return wrap(array, _may_require_grad(requires_grad, storage.dtype))


def rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks=None) -> Parameter:
    """A parameter over a rebuilt tensor; hooks are never restored."""
    if not isinstance(data, Tensor):
        raise RuntimeError(f"a parameter is made of a tensor, the file gives a {type(data).__name__}")
    return Parameter(data, _may_require_grad(requires_grad, data.dtype))


def rebuild_parameter_with_state(data: Tensor, requires_grad: bool, backward_hooks, state) -> Parameter:
    """A parameter with the attributes a program hung on it."""
    made = rebuild_parameter(data, requires_grad)
    set_plain_attributes(made, state)
    return made


def rebuild_from_type(function, kind: type, args: tuple, state) -> Tensor:
    """A tensor with attributes, a buffer, or a tensor of a subclass; the caller has checked `function` and `kind`."""
    made = function(*args)
    if kind is Tensor and isinstance(state, dict) and state.get("_is_buffer") is True:
        rest = dict(state)
        del rest["_is_buffer"]
        made = Buffer(made, persistent=rest.pop("persistent", True) is not False)
        state = rest
    elif type(made) is not kind:
        made = wrap(made._array, made.requires_grad, kind)
    set_plain_attributes(made, state)
    return made


def set_plain_attributes(target, state) -> None:
    """Set attributes from a file: only names that are new to the object's class, and no private ones but `_metadata`.

    Raises:
        RuntimeError: another name, or a state that is not a dictionary.
    """
    if state is None:
        return
    if isinstance(state, tuple) and len(state) == 2:  # (attributes, slots), as pickle writes classes with slots
        set_plain_attributes(target, state[0])
        set_plain_attributes(target, state[1])
        return
    if type(state) is not dict:
        kinds = type(target).__name__, type(state).__name__
        raise RuntimeError("the state of a {} must be a dictionary, the file gives a {}".format(*kinds))
    for name, value in state.items():
        free = type(name) is str and name.isidentifier() and not hasattr(type(target), name)
        if not free or (name.startswith("_") and name != "_metadata"):
            kind = type(target).__name__
            raise RuntimeError(f"the file sets the attribute {_short(name)} on a {kind}, which is not its to set")
        setattr(target, name, value)


def _short(name) -> str:
    return repr(name[:60]) if type(name) is str else f"of type {type(name).__name__}"


def _may_require_grad(requires_grad, kind: dtype) -> bool:
    if type(requires_grad) is not bool:
        raise RuntimeError(f"requires_grad must be a bool, the file gives a {type(requires_grad).__name__}")
    if requires_grad and not (kind.is_floating_point or kind.is_complex):
        raise RuntimeError(
            f"only Tensors of floating point dtype can require gradients, the file asks it of a tensor of {kind}"
        )
    return requires_grad


def _place(storage: Storage, offset: int, size: tuple, stride: tuple) -> np.ndarray:
    """The array at a place on a storage; RuntimeError unless the place is wholly inside."""
    if not isinstance(storage, Storage):
        raise RuntimeError(f"a tensor is built on a storage, the file gives a {type(storage).__name__}")
    kind = storage.dtype
    _check_place(storage, offset, size, stride)
    itemsize = kind.itemsize
    if not math.prod(size):
        return np.ndarray(tuple(size), kind.numpy, buffer=storage._memory if storage.nbytes() else None)
    strides = tuple(step * itemsize for step in stride)
    array = np.ndarray(tuple(size), kind.numpy, storage._memory, offset * itemsize, strides)
    return array if array.flags.aligned else array.copy()


def _check_place(storage: Storage, offset, size, stride) -> None:
    whole = isinstance(size, tuple) and isinstance(stride, tuple) and len(size) == len(stride) <= _MAX_DIMS
    if not whole or not all(type(n) is int and n >= 0 for n in (offset, *size, *stride)):
        raise RuntimeError(
            "a tensor's offset, size and stride must be non-negative integers, one size and one stride for each of at "
            f"most {_MAX_DIMS} dimensions; the file gives others"
        )
    itemsize = storage.dtype.itemsize
    elements = math.prod(size)
    needed = offset + sum((n - 1) * s for n, s in zip(size, stride, strict=True)) + 1 if elements else 0
    if needed * itemsize > storage.nbytes() or elements * itemsize > _MAX_BYTES:
        raise RuntimeError(
            f"setStorage: sizes {_listed(size)}, strides {_listed(stride)}, storage offset {offset}, and itemsize "
            f"{itemsize} requiring a storage size of {needed * itemsize} are out of bounds for storage of size "
            f"{storage.nbytes()}"
        )


def _listed(numbers: tuple) -> str:
    return f"[{', '.join(map(str, numbers))}]"
