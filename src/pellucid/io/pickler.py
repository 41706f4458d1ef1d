"""Pickling with PyTorch's names: tensors, element types, sizes and devices are written so that PyTorch reads its own.

The storages under the tensors are kept aside, in the order in which they were met, for the container to write.
"""

from __future__ import annotations

import io
import pickle
import sys
from collections import OrderedDict
from typing import Any

from pellucid.core.device import device
from pellucid.core.tensor import Buffer, Parameter, Tensor, strided_layout, wrap
from pellucid.io import tensors
from pellucid.io.policy import TORCH_VALUES, get_layout
from pellucid.io.storage import Storage, StorageType, storage_name

__all__ = ["Pickler", "pickled"]

_PATHS = {id(value): path for path, value in TORCH_VALUES.items()}  # the table keeps the values alive


def pickled(obj: Any, protocol: int, pickler: type[Pickler] | None = None) -> tuple[bytes, dict[str, Storage]]:
    """An object as a pickle, and the storages that the pickle refers to by key.

    Raises:
        RecursionError: the object is nested too deeply.
        RuntimeError: two tensors see the same memory as different element types.
        pickle.PicklingError, TypeError, AttributeError: something in it cannot be pickled, as Python says.
    """
    stream = io.BytesIO()
    writer = (pickler or Pickler)(stream, protocol)
    try:
        writer.dump(obj)
    except RecursionError:
        raise RecursionError(
            "the object is nested too deeply to be saved: maximum recursion depth exceeded while pickling. Save its "
            "parts in a flat list or dictionary instead"
        ) from None
    return stream.getvalue(), writer.storages


class Pickler(pickle._Pickler):  # the one written in Python: the other cannot write a name that it cannot import
    """Writes one pickle; afterwards `storages` holds what it refers to, by key."""

    def __init__(self, stream, protocol: int):
        super().__init__(stream, protocol)
        self.storages: dict[str, Storage] = {}
        self._keys: dict[int, str] = {}  # of the storages in `storages`, by id
        self._known: dict[Any, Storage] = {}
        self._owners: list[Any] = []  # kept alive, so that addresses stay taken while the pickle is written

    def persistent_id(self, obj: Any) -> tuple | None:
        """How the pickle refers to a storage."""
        if type(obj) is not Storage:
            return None
        storage = obj if id(obj) in self._keys else self._register(obj, obj._memory)
        return ("storage", _type_of(storage), self._keys[id(storage)], "cpu", storage.size())

    def reducer_override(self, obj: Any) -> Any:
        """How to write the objects that have a name or a form of PyTorch's."""
        if id(obj) in _PATHS:
            return _PATHS[id(obj)]
        if isinstance(obj, Tensor):
            return self._reduce_tensor(obj)
        if isinstance(obj, device):
            return device, (obj.type,) if obj.index is None else (obj.type, obj.index)
        if isinstance(obj, strided_layout):
            return get_layout, ("torch.strided",)
        return NotImplemented

    def save_global(self, obj: Any, name: str | None = None) -> None:
        """Write a reference by name, PyTorch's if it has one."""
        path = _PATHS.get(id(obj))
        if path is None:
            super().save_global(obj, name)
            return
        module, _, name = path.rpartition(".")
        if self.proto >= 4:
            self.save(sys.intern(module))  # one object for each name, so that it is written once
            self.save(sys.intern(name))
            self.write(pickle.STACK_GLOBAL)
        else:
            self.write(pickle.GLOBAL + f"{module}\n{name}\n".encode())
        self.memoize(obj)

    # --- tensors -----------------------------------------------------------------------------------------------------

    def _reduce_tensor(self, tensor: Tensor) -> tuple:
        kind = type(tensor)
        if kind is Parameter:
            data, state = wrap(tensor._array), tensors.python_state(tensor)
            args = (data, tensor.requires_grad, OrderedDict())
            if state is None:
                return tensors.rebuild_parameter, args
            return tensors.rebuild_parameter_with_state, (*args, state)
        state = tensors.buffer_state(tensor) if kind is Buffer else tensors.python_state(tensor)
        args = self._tensor_args(tensor)
        if kind is Tensor and state is None:
            return tensors.rebuild_tensor_v2, args
        return tensors.rebuild_from_type, (tensors.rebuild_tensor_v2, Tensor if kind is Buffer else kind, args, state)

    def _tensor_args(self, tensor: Tensor) -> tuple:
        place = tensors.lay_out(tensor)
        storage = self._register(place.storage, place.owner)
        return storage, place.offset, place.size, place.stride, tensor.requires_grad, OrderedDict()

    def _register(self, storage: Storage, owner: Any) -> Storage:
        """The one object that stands for all storages of the same memory, under a key."""
        identity = (storage.data_ptr(), storage.nbytes()) if storage.nbytes() else id(owner)
        if identity not in self._known:
            key = str(len(self._known))
            self._known[identity], self.storages[key], self._keys[id(storage)] = storage, storage, key
            self._owners.append(owner)
        known = self._known[identity]
        if known.dtype is not storage.dtype:
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as different types: one is "
                f"{known.dtype}, another {storage.dtype}. Save a clone() of one of them"
            )
        return known


def _type_of(storage: Storage) -> StorageType:
    return TORCH_VALUES[f"torch.{storage_name(storage.dtype)}"]
