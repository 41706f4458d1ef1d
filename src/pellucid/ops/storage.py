"""The memory under a tensor as an object of its own: `untyped_storage()` and `storage()`."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import PUBLIC
from pellucid.core.device import CPU
from pellucid.core.dtype import dtype_of
from pellucid.core.tensor import Tensor, storage_of

__all__ = ["TypedStorage", "UntypedStorage"]


class UntypedStorage:
    """Bytes that one or more tensors share. Two of them are equal if they are the same memory."""

    __slots__ = ("_memory",)

    def __init__(self, array: np.ndarray):
        self._memory = storage_of(array)

    device = CPU
    is_cuda = False

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._memory.ctypes.data

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._memory.nbytes

    size = __len__ = nbytes

    def _bytes(self) -> np.ndarray:
        return self._memory.ravel(order="K").view(np.uint8)

    def __getitem__(self, index):
        return self._bytes()[index].tolist()

    def tolist(self) -> list[int]:
        """The bytes as integers."""
        return self._bytes().tolist()

    def __eq__(self, other) -> bool:
        return isinstance(other, UntypedStorage) and (self.data_ptr(), self.nbytes()) == (
            other.data_ptr(),
            other.nbytes(),
        )

    def __hash__(self) -> int:
        return hash((self.data_ptr(), self.nbytes()))

    def __repr__(self) -> str:
        return f"[torch.storage.UntypedStorage(device=cpu) of size {self.nbytes()}]"


class TypedStorage:
    """Memory that tensors share, counted in elements of one type."""

    __slots__ = ("_memory", "dtype")

    def __init__(self, array: np.ndarray):
        self._memory = storage_of(array).ravel(order="K").view(array.dtype)
        self.dtype = dtype_of(array.dtype)

    device = CPU
    is_cuda = False

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return UntypedStorage(self._memory)

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._memory.ctypes.data

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._memory.nbytes

    def size(self) -> int:
        """The number of elements."""
        return self._memory.size

    __len__ = size

    def __getitem__(self, index):
        return self._memory[index].tolist()

    def __setitem__(self, index, value) -> None:
        self._memory[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def tolist(self) -> list:
        """The elements as Python numbers."""
        return self._memory.tolist()

    def __repr__(self) -> str:
        lines = "".join(f" {value}\n" for value in self.tolist())
        return f"{lines}[torch.storage.TypedStorage(dtype={self.dtype}, device=cpu) of size {self.size()}]"


def untyped_storage(self: Tensor) -> UntypedStorage:
    """The memory under this tensor, as bytes; shared by all of its views."""
    return UntypedStorage(self._array)


def storage(self: Tensor) -> TypedStorage:
    """The memory under this tensor, counted in its elements; shared by all of its views."""
    return TypedStorage(self._array)


Tensor.untyped_storage, Tensor.storage = untyped_storage, storage
PUBLIC["torch"].update(UntypedStorage=UntypedStorage, TypedStorage=TypedStorage)
