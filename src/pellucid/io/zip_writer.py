"""The zip container of a `.pt` file, written: records stored as they are, each beginning at a multiple of 64 bytes.

The layout is PyTorch's to the byte (data descriptors, padding in an extra field "FB", a zip64 directory end), because
its reader can compute the place of a record from the sizes of those before it. What the records hold is in
`serialization.py`.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, NamedTuple, Protocol

__all__ = ["ALIGNMENT", "ZipWriter"]

ALIGNMENT = 64
_LIMIT_16 = 0xFFFF
_LIMIT_32 = 0xFFFFFFFF
_UTF8, _HAS_DESCRIPTOR = 0x0800, 0x0008

_LOCAL_HEADER = struct.Struct("<4s5H3I2H")
_DIRECTORY_ENTRY = struct.Struct("<4s6H3I5H2I")
_ZIP64_END = struct.Struct("<4sQ2H2I4Q")
_ZIP64_LOCATOR = struct.Struct("<4sIQI")
_END = struct.Struct("<4s4H2IH")


class _Record(NamedTuple):
    name: bytes
    flags: int
    crc: int
    size: int
    offset: int


class _Sink(Protocol):
    def write(self, data: Any, /) -> Any: ...


class ZipWriter:
    """Writes records one after the other to a stream that needs only a `write` method, and never seeks.

    Args:
        stream: where the bytes go.
        folder: the folder inside the archive in which all records lie.
    """

    def __init__(self, stream: _Sink, folder: str):
        self._stream, self._folder = stream, folder
        self._offset = 0
        self._records: list[_Record] = []

    def write(self, name: str, data: bytes | memoryview) -> None:
        """Write one record."""
        data = memoryview(data).cast("B")
        path = f"{self._folder}/{name}".encode()
        flags = _UTF8 | (_HAS_DESCRIPTOR if data.nbytes else 0)
        record = _Record(path, flags, zlib.crc32(data), data.nbytes, self._offset)
        zip64 = self._zip64_extra(record, packed_size=0)  # in a local header PyTorch leaves it out
        extra = zip64 + self._padding(record, len(zip64))
        header = _LOCAL_HEADER.pack(b"PK\3\4", 0, record.flags, 0, 0, 0, 0, 0, 0, len(path), len(extra))
        self._put(header + path + extra)
        self._put(data)
        if data.nbytes:
            sizes = struct.pack("<2Q" if zip64 else "<2I", record.size, record.size)
            self._put(b"PK\7\x08" + struct.pack("<I", record.crc) + sizes)
        self._records.append(record)

    def finish(self) -> None:
        """Write the format's version, an identifier of the content, and the directory."""
        self.write("version", b"3\n")
        self.write(".data/serialization_id", self._identifier())
        start = self._offset
        for record in self._records:
            self._put(self._directory_entry(record))
        self._put(self._directory_end(start, self._offset - start))

    def _put(self, data: bytes | memoryview) -> None:
        self._stream.write(data)
        self._offset += len(data)

    @staticmethod
    def _zip64_extra(record: _Record, packed_size: int) -> bytes:
        """The extra field for what does not fit into 32 bits; nothing for the records of usual files."""
        large = [record.size, packed_size] if record.size >= _LIMIT_32 else []
        if record.offset >= _LIMIT_32:
            large.append(record.offset)
        return struct.pack(f"<2H{len(large)}Q", 1, 8 * len(large), *large) if large else b""

    @staticmethod
    def _padding(record: _Record, zip64_size: int) -> bytes:
        """An extra field "FB" that brings the record's data to the next multiple of the alignment."""
        start = record.offset + _LOCAL_HEADER.size + len(record.name) + zip64_size + 4
        count = -start % ALIGNMENT
        return b"FB" + struct.pack("<H", count) + b"Z" * count

    def _identifier(self) -> bytes:
        """Forty digits: twenty for the names of the records, twenty for their content."""
        import hashlib  # slow to import

        names = hashlib.blake2b(b"\0".join(r.name for r in self._records), digest_size=8).digest()
        content = hashlib.blake2b(b"".join(struct.pack("<I", r.crc) for r in self._records), digest_size=8).digest()
        return b"".join(b"%020d" % int.from_bytes(digest, "little") for digest in (names, content))

    def _directory_entry(self, record: _Record) -> bytes:
        extra = self._zip64_extra(record, record.size)
        size, offset = min(record.size, _LIMIT_32), min(record.offset, _LIMIT_32)
        head = _DIRECTORY_ENTRY.pack(b"PK\1\2", 0, 0, record.flags, 0, 0, 0, record.crc, size, size, len(record.name),
                                     len(extra), 0, 0, 0, 0, offset)
        return head + record.name + extra

    def _directory_end(self, start: int, size: int) -> bytes:
        count = len(self._records)
        end64 = _ZIP64_END.pack(b"PK\6\6", _ZIP64_END.size - 12, 0x031E, 45, 0, 0, count, count, size, start)
        locator = _ZIP64_LOCATOR.pack(b"PK\6\7", 0, start + size, 1)
        short = min(count, _LIMIT_16)
        end = _END.pack(b"PK\5\6", 0, 0, short, short, min(size, _LIMIT_32), min(start, _LIMIT_32), 0)
        return end64 + locator + end
