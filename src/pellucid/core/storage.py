"""The memory under tensors as an object of its own, in bytes or in elements of one type."""

from __future__ import annotations

import numpy as np

from pellucid.core.device import CPU
from pellucid.core.dtype import dtype_of
from pellucid.core.tensor import storage_of

__all__ = ["TypedStorage", "UntypedStorage"]


class _Memory:
    """A view of the whole memory under an array, in one dimension."""

    __slots__ = ("_memory",)

    device = CPU
    is_cuda = False

    def __init__(self, array: np.ndarray, kind: np.dtype):
        self._memory = storage_of(array).ravel(order="K").view(kind)

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._memory.ctypes.data

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._memory.nbytes

    def size(self) -> int:
        """The number of elements, or of bytes."""
        return self._memory.size

    __len__ = size

    def __getitem__(self, index):
        return self._memory[index].tolist()

    def tolist(self) -> list:
        """The elements as Python numbers."""
        return self._memory.tolist()


class UntypedStorage(_Memory):
    """Bytes that one or more tensors share. Two of them are equal if they are the same memory."""

    __slots__ = ()

    def __init__(self, array: np.ndarray):
        super().__init__(array, np.dtype(np.uint8))

    def __eq__(self, other) -> bool:
        return isinstance(other, UntypedStorage) and self._place() == other._place()

    def __hash__(self) -> int:
        return hash(self._place())

    def _place(self) -> tuple[int, int]:
        return self.data_ptr(), self.nbytes()

    def __repr__(self) -> str:
        return f"[torch.storage.UntypedStorage(device=cpu) of size {self.nbytes()}]"


class TypedStorage(_Memory):
    """Memory that tensors share, counted in elements of one type."""

    __slots__ = ("dtype",)

    def __init__(self, array: np.ndarray):
        super().__init__(array, array.dtype)
        self.dtype = dtype_of(array.dtype)

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return UntypedStorage(self._memory)

    def __setitem__(self, index, value) -> None:
        self._memory[index] = value

    def __iter__(self):
        return iter(self.tolist())

    def __repr__(self) -> str:
        lines = "".join(f" {value}\n" for value in self.tolist())
        return f"{lines}[torch.storage.TypedStorage(dtype={self.dtype}, device=cpu) of size {self.size()}]"
