"""The format of PyTorch before 1.6: pickles one after the other, then the bytes of the storages.

A number that marks the format, its version, facts about the machine, the object, the keys of the storages; then for
each storage its number of elements and the elements.
"""

from __future__ import annotations

import pickle
import struct
import sys
from collections.abc import Callable
from typing import Any, BinaryIO

import numpy as np

from pellucid.io.locations import Restore
from pellucid.io.pickler import Pickler, pickled
from pellucid.io.policy import Policy
from pellucid.io.storage import Storage, StorageType
from pellucid.io.unpickler import Machine

__all__ = ["load_legacy", "save_legacy"]

_MAGIC = 0x1950A86A20F9469CFC6C
_VERSION = 1001
_COUNT = struct.Struct("<q")
_HEAD_SIZE = 300  # bytes in which the number that marks the format lies, and the mark of a tar archive

# The object in the bytes, at a position, by a policy; and the position behind it.
ReadObject = Callable[[bytes, int, Policy], tuple[Any, int]]


def save_legacy(obj: Any, stream: BinaryIO, protocol: int) -> None:
    """Write an object in the format of PyTorch before 1.6. Raises as `pickler.pickled` does."""
    data, storages = pickled(obj, protocol, pickler=_LegacyPickler)
    facts = {
        "protocol_version": _VERSION,
        "little_endian": sys.byteorder == "little",
        "type_sizes": {"short": 2, "int": 4, "long": 4},
    }
    for part in (_MAGIC, _VERSION, facts):
        stream.write(pickle.dumps(part, protocol))
    stream.write(data)
    keys = sorted(storages)  # as text, as PyTorch sorts them
    stream.write(pickle.dumps(keys, protocol))
    for key in keys:
        storage = storages[key]
        stream.write(_COUNT.pack(storage.size()))
        stream.write(memoryview(storage._memory[: storage.size() * storage.dtype.itemsize]))


class _LegacyPickler(Pickler):
    """Names a storage with one more part: whether it is a view of another, which it never is."""

    def persistent_id(self, obj: Any) -> tuple | None:
        found = super().persistent_id(obj)
        return None if found is None else (*found, None)


def load_legacy(stream: BinaryIO, restore: Restore, read_object: ReadObject, fill: bool = True) -> Any:
    """The object in a file of that format.

    Args:
        stream: the file, at its beginning; only a file that begins as one of this format is read on.
        restore: decides where storages go.
        read_object: reads the pickle of the object itself, the only one that may hold more than numbers and text.
        fill: whether to read the storages too.

    Raises:
        pickle.UnpicklingError: it is no such file, or a damaged one.
        RuntimeError: a storage is not there in full.
    """
    head = stream.read(_HEAD_SIZE)
    position = _check_magic(head)
    data = head + stream.read()
    version, position = read_plain(data, position)
    if version != _VERSION:
        raise RuntimeError(f"Invalid protocol version: {_shown(version)}. Save the file again with a PyTorch of today.")
    _, position = read_plain(data, position)
    storages = _Storages(len(data), restore)
    obj, position = read_object(data, position, Policy(storages.make, len(data)))
    if fill:
        keys, position = read_plain(data, position)
        storages.fill(keys, data, position)
    return obj


def _check_magic(head: bytes) -> int:
    """Refuse a file that does not begin with the number that marks the format; the position behind it."""
    if head[:1] != pickle.PROTO:  # with which every pickle of protocol 2 or later begins
        raise pickle.UnpicklingError(_not_ours(head))
    try:
        magic, position = read_plain(head, 0)
    except pickle.UnpicklingError as error:
        raise pickle.UnpicklingError(f"{_not_ours(head)} ({error})") from None
    if type(magic) is not int or magic != _MAGIC:
        raise pickle.UnpicklingError("Invalid magic number; corrupt file? " + _not_ours(head))
    return position


def read_plain(data: bytes, position: int) -> tuple[Any, int]:
    """A pickle of numbers and text, and the position behind it."""
    machine = Machine(data, Policy(_no_storage, len(data)), position)
    return machine.run(), machine.position


def _no_storage(*identifier: Any) -> Storage:
    raise pickle.UnpicklingError("a storage where there can be none")


def _not_ours(data: bytes) -> str:
    kind = "a tar archive (PyTorch before 0.4)" if data[257:262] == b"ustar" else f"it begins with {data[:8]!r}"
    return (
        f"this is no file of save(): {kind}. Expected the zip format of PyTorch 1.6 or later, or the one before it. "
        "Load it with the program that wrote it, and save it again from there"
    )


def _shown(value: Any) -> str:
    return str(value) if type(value) is int and value.bit_length() < 64 else f"an object of type {type(value).__name__}"


class _Storages:
    """The storages of one load: made empty when the object names them, filled at the end."""

    def __init__(self, limit: int, restore: Restore):
        self._limit, self._restore = limit, restore
        self._made: dict[str, tuple[Storage, np.ndarray, int]] = {}

    def make(self, kind: StorageType, key: str, location: str, count: int) -> Storage:
        if key in self._made:
            storage, _, known = self._made[key]
            if storage.dtype is not kind.dtype or count != known:
                raise RuntimeError(f"the storage {key[:40]!r} is described in two ways")
            return storage
        size = count * kind.dtype.itemsize
        self._limit -= size
        if self._limit < 0:
            raise RuntimeError(f"unexpected EOF, expected {size} bytes for a storage. The file might be corrupted.")
        memory = np.zeros(size, np.uint8)
        storage = self._restore(Storage(memory, kind.dtype), location)
        self._made[key] = storage, memory, count
        return storage

    def fill(self, keys: Any, data: bytes, position: int) -> None:
        if type(keys) is not list or not all(type(key) is str for key in keys) or set(keys) != set(self._made):
            raise pickle.UnpicklingError("the file lists other storages than its tensors use")
        for key in keys:
            _, memory, count = self._made[key]
            end = position + _COUNT.size + memory.size
            if end > len(data):
                missing = end - len(data)
                raise RuntimeError(f"unexpected EOF, expected {missing} more bytes. The file might be corrupted.")
            if _COUNT.unpack_from(data, position)[0] != count:
                raise RuntimeError(f"the storage {key[:40]!r} does not have the size its tensors say")
            memory[:] = np.frombuffer(data, np.uint8, memory.size, position + _COUNT.size)
            position = end
