"""Storages: the flat memory under tensors, as files know it, and the names PyTorch gives to their types.

How a tensor lies on a storage is in `tensors.py`; reading and writing the bytes is the containers' business.
"""

from __future__ import annotations

import numpy as np

from pellucid.core import dtype as dtypes
from pellucid.core.device import device
from pellucid.core.dtype import dtype

__all__ = ["STORAGE_DTYPES", "Storage", "StorageType", "storage_name"]

# The class PyTorch names for a storage of each element type; files carry these names.
STORAGE_DTYPES: dict[str, dtype] = {
    "DoubleStorage": dtypes.float64,
    "FloatStorage": dtypes.float32,
    "HalfStorage": dtypes.float16,
    "BFloat16Storage": dtypes.bfloat16,
    "LongStorage": dtypes.int64,
    "IntStorage": dtypes.int32,
    "ShortStorage": dtypes.int16,
    "CharStorage": dtypes.int8,
    "ByteStorage": dtypes.uint8,
    "BoolStorage": dtypes.bool,
    "ComplexDoubleStorage": dtypes.complex128,
    "ComplexFloatStorage": dtypes.complex64,
}
_NAMES = {kind: name for name, kind in STORAGE_DTYPES.items()}


def storage_name(kind: dtype) -> str:
    """The name of the storage class of an element type, such as `FloatStorage`."""
    return _NAMES[kind]


class StorageType:
    """Stands for a storage class that a file names: it carries the element type and makes nothing."""

    __slots__ = ("dtype", "name")

    def __init__(self, name: str, kind: dtype):
        self.name, self.dtype = name, kind

    def __repr__(self) -> str:
        return f"StorageType(dtype={self.dtype})"


class Storage:
    """Flat memory with an element type: what `map_location` functions are given and give back.

    Args:
        memory: the bytes, [nbytes] uint8; shared, not copied.
        kind: the element type in which the file counts it.
    """

    __slots__ = ("_memory", "dtype")

    def __init__(self, memory: np.ndarray, kind: dtype):
        self._memory, self.dtype = memory, kind

    def nbytes(self) -> int:
        """Size in bytes."""
        return self._memory.size

    def size(self) -> int:
        """Number of whole elements."""
        return self._memory.size // self.dtype.itemsize

    __len__ = size

    def element_size(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    def data_ptr(self) -> int:
        """Address of the first byte."""
        return self._memory.ctypes.data

    @property
    def device(self) -> device:
        """Always the CPU."""
        return device("cpu")

    is_cuda = False

    def cpu(self) -> Storage:
        """The storage itself: it is on the CPU already."""
        return self

    def cuda(self, device=None, non_blocking: bool = False):
        """Raises RuntimeError: there is no CUDA device here."""
        raise RuntimeError(
            "Torch not compiled with CUDA enabled: this library computes on the CPU, so a storage cannot move to "
            f"{'cuda' if device is None else f'cuda:{device}'}. Return the storage as it is, or call .cpu()."
        )

    def tolist(self) -> list:
        """The elements as Python numbers."""
        values = self._elements()
        return (values.astype(np.float32) if self.dtype is dtypes.bfloat16 else values).tolist()

    def __getitem__(self, index: int):
        return self.tolist()[index]

    def _elements(self) -> np.ndarray:
        return self._memory[: self.size() * self.dtype.itemsize].view(self.dtype.numpy)

    def __repr__(self) -> str:
        return f"Storage(dtype={self.dtype}, size={self.size()})"
