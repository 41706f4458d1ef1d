"""The zip container of a `.pt` file, read: which records it has, and their bytes.

Nothing is unpacked to disk, and no record is believed: its place must lie inside the file and overlap no other record,
so that all records together never take more memory than the file is long. What the records hold is in
`serialization.py`.
"""

from __future__ import annotations

import itertools
import mmap
import struct
import zlib
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from zipfile import ZipInfo

__all__ = ["ZipReader"]

_LOCAL_HEADER = struct.Struct("<4s22x2H")
_CHUNK = 1 << 20  # small enough to be in the cache still when its checksum is taken
_DAMAGED = "The file is damaged: it was cut off, changed, or not copied in full. Copy or download it again."


class _Record(NamedTuple):
    name: str
    path: bytes
    offset: int  # of the local header
    size: int
    crc: int
    limit: int  # where the next record begins, or the file ends


class ZipReader:
    """The records of an archive.

    Args:
        stream: an open binary file that can seek; the archive may begin anywhere in it.

    Raises:
        RuntimeError: this is no archive of PyTorch's format, or a damaged one.
    """

    def __init__(self, stream: BinaryIO):
        self._stream = stream
        self._length = stream.seek(0, 2)
        infos = self._read_directory()
        self._folder = self._find_folder(infos)
        self._records = self._check(infos)
        # PyTorch can be told to write without checksums; all of them are 0 then.
        self._has_checksums = any(info.CRC for info in infos)
        self._map: mmap.mmap | None = None

    def __contains__(self, name: str) -> bool:
        return name in self._records

    def size(self, name: str) -> int:
        """The length of a record in bytes; RuntimeError if there is none of that name."""
        return self._find(name).size

    def read(self, name: str) -> bytes:
        """A record's bytes.

        Raises:
            RuntimeError: there is no such record, or it is damaged.
        """
        return self.read_array(name).tobytes()

    def read_array(self, name: str) -> np.ndarray:
        """A record as new memory, [size] uint8. Raises as `read` does."""
        record = self._find(name)
        self._stream.seek(self._start(record))
        memory = np.empty(record.size, np.uint8)
        view, filled, crc = memoryview(memory), 0, 0
        while filled < record.size:
            part = view[filled : filled + _CHUNK]
            count = _read_into(self._stream, part)
            if not count:
                raise _error(f"failed reading file {record.name}: the file ends early", _DAMAGED)
            crc = zlib.crc32(part[:count], crc)
            filled += count
        if self._has_checksums and crc != record.crc:
            raise _error(f"failed reading file {record.name}: wrong checksum (CRC32)", _DAMAGED)
        return memory

    def map_array(self, name: str) -> np.ndarray:
        """A record as memory that the system fills when it is first touched; writes to it never reach the file.

        The stream must be an open file of the system. Checksums are not verified: that would read everything.
        """
        record = self._find(name)
        start = self._start(record)
        if not record.size:
            return np.empty(0, np.uint8)
        if self._map is None:
            self._map = mmap.mmap(self._stream.fileno(), 0, access=mmap.ACCESS_COPY)
        return np.frombuffer(self._map, np.uint8, record.size, start)

    # --- the directory -----------------------------------------------------------------------------------------------

    def _read_directory(self) -> list[ZipInfo]:
        import zipfile  # slow to import

        try:
            with zipfile.ZipFile(self._stream) as archive:
                return archive.infolist()
        except Exception as error:  # what the parser makes of arbitrary bytes is not ours to foresee
            reason = f"failed reading zip archive: failed finding central directory ({type(error).__name__}: {error})"
            raise _error(reason, _DAMAGED) from None

    def _find_folder(self, infos: list[ZipInfo]) -> str:
        """The folder that holds all records: the one with a `data.pkl` directly in it."""
        folders = [info.filename[: -len("data.pkl")] for info in infos if info.filename.endswith("/data.pkl")]
        folders = [folder for folder in folders if folder.count("/") == 1]
        if len(folders) == 1:
            return folders[0]
        if folders:
            raise _error("failed locating file data.pkl: it must be in one folder and is in several", _DAMAGED)
        raise _error(
            "failed locating file data.pkl: file not found",
            "This zip archive was not written by save(): PyTorch's files hold a data.pkl in their only folder.",
        )

    def _check(self, infos: list[ZipInfo]) -> dict[str, _Record]:
        records: dict[str, _Record] = {}
        ordered = sorted(infos, key=lambda info: info.header_offset)
        ends = itertools.chain((info.header_offset for info in ordered[1:]), (self._length,))
        for info, limit in zip(ordered, ends, strict=True):
            if info.filename.endswith("/") and not info.file_size:
                continue  # a folder, as general zip programs add them
            record = self._check_one(info, limit)
            if record.name in records:
                raise _error(f"failed reading zip archive: the record {record.name[:80]!r} is there twice", _DAMAGED)
            records[record.name] = record
        return records

    def _check_one(self, info: ZipInfo, limit: int) -> _Record:
        name = info.filename
        if not name.startswith(self._folder) or "\\" in name or "\0" in name or ".." in name.split("/"):
            reason = f"failed reading zip archive: the record name {name[:80]!r} leaves the archive's folder"
            raise _error(reason, "PyTorch writes no such names; do not trust this file.")
        if info.flag_bits & 1 or info.compress_type:
            how = "encrypted" if info.flag_bits & 1 else "compressed"
            raise _error(
                f"failed reading file {name[:80]}: it is {how}",
                "PyTorch's files store their records as they are. Unpack it and pack it with `zip -0 -r`.",
            )
        path = info.orig_filename.encode("utf-8" if info.flag_bits & 0x800 else "cp437", "replace")
        end = info.header_offset + 30 + len(path) + info.file_size
        if info.compress_size != info.file_size or info.header_offset < 0 or end > limit:
            raise _error(f"failed reading file {name[:80]}: its size and place do not fit the file", _DAMAGED)
        return _Record(name[len(self._folder) :], path, info.header_offset, info.file_size, info.CRC, limit)

    # --- one record --------------------------------------------------------------------------------------------------

    def _find(self, name: str) -> _Record:
        record = self._records.get(name)
        if record is None:
            raise _error(f"failed locating file {name[:80]}: file not found", _DAMAGED)
        return record

    def _start(self, record: _Record) -> int:
        """Where the bytes of a record begin, by its local header, which must agree with the directory."""
        self._stream.seek(record.offset)
        header = self._stream.read(_LOCAL_HEADER.size + len(record.path))
        if len(header) == _LOCAL_HEADER.size + len(record.path):
            magic, name_size, extra_size = _LOCAL_HEADER.unpack_from(header)
            start = record.offset + _LOCAL_HEADER.size + name_size + extra_size
            named = magic == b"PK\3\4" and header[_LOCAL_HEADER.size :] == record.path
            if named and start + record.size <= record.limit:
                return start
        raise _error(f"failed reading file {record.name}: its header does not fit the directory", _DAMAGED)


def _error(reason: str, way_out: str) -> RuntimeError:
    return RuntimeError(f"PytorchStreamReader {reason}. {way_out}")


def _read_into(stream: Any, view: memoryview) -> int:
    """Fill memory from a stream as far as one call goes; the number of bytes read."""
    if hasattr(stream, "readinto"):
        return stream.readinto(view) or 0
    data = stream.read(len(view))
    view[: len(data)] = data
    return len(data)
