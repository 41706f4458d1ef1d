"""For the tests of files: archives and pickles with any content, and a watch for what a load must never do."""

import contextlib
import io
import pickle
import struct
import sys
import time
import tracemalloc
import zipfile
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from pellucid.io import load, save

DATA = Path(__file__).parent / "data"
STOP = b"."
NO_TENSORS = b"\x80\x02}q\x00."


def bytes_of(obj, **options) -> bytes:
    """What `save` writes for an object."""
    stream = io.BytesIO()
    save(obj, stream, **options)
    return stream.getvalue()


def from_bytes(data: bytes, **options):
    """What `load` makes of the bytes of a file."""
    return load(io.BytesIO(data), **options)


def records_of(data: bytes) -> dict[str, bytes]:
    """The records of an archive by name, without its folder."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        return {name.split("/", 1)[1]: archive.read(name) for name in archive.namelist()}


def archive(records: dict[str, bytes], compression: int = zipfile.ZIP_STORED, folder: str = "archive/") -> bytes:
    """An archive of these records, with the right checksums."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as packed:
        for name, data in records.items():
            packed.writestr(folder + name, data)
    return stream.getvalue()


def with_pickle(program: bytes, **records: bytes) -> bytes:
    """An archive whose pickle is `program` (protocol and end mark are added); storages by their key, as `_0=b"..."`."""
    storages = {f"data/{key.removeprefix('_')}": data for key, data in records.items()}
    return archive({"data.pkl": b"\x80\x02" + program + STOP, "version": b"3\n", **storages})


# --- pieces of pickles -----------------------------------------------------------------------------------------------


def named(path: str) -> bytes:
    """Push what a name stands for."""
    module, _, name = path.rpartition(".")
    return pickle.GLOBAL + f"{module}\n{name}\n".encode()


def text(value: str) -> bytes:
    """Push text."""
    data = value.encode()
    return pickle.BINUNICODE + struct.pack("<I", len(data)) + data


def number(value: int) -> bytes:
    """Push an integer."""
    data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
    return pickle.LONG1 + bytes([len(data)]) + data


def sequence(*items: bytes) -> bytes:
    """Push a tuple of pieces."""
    return pickle.MARK + b"".join(items) + pickle.TUPLE


def listed(*items: bytes) -> bytes:
    """Push a list of pieces."""
    return pickle.EMPTY_LIST + pickle.MARK + b"".join(items) + pickle.APPENDS


def call(path: str, *arguments: bytes) -> bytes:
    """Push the result of calling a name."""
    return named(path) + sequence(*arguments) + pickle.REDUCE


def storage(count: bytes, key: str = "0", kind: str = "torch.FloatStorage", location: str = "cpu") -> bytes:
    """Push a storage."""
    return sequence(text("storage"), named(kind), text(key), text(location), count) + pickle.BINPERSID


def tensor(store: bytes, offset: bytes, size: tuple, stride: tuple, grad=pickle.NEWFALSE, *more: bytes) -> bytes:
    """Push a tensor on a storage; `size` and `stride` are tuples of integers."""
    hooks = named("collections.OrderedDict") + pickle.EMPTY_TUPLE + pickle.REDUCE
    places = sequence(*map(number, size)), sequence(*map(number, stride))
    return call("torch._utils._rebuild_tensor_v2", store, offset, *places, grad, hooks, *more)


FLOATS = np.arange(4, dtype=np.float32).tobytes()


# --- what a load must not do -----------------------------------------------------------------------------------------


class _Watch:
    """Events that Python reports while a watch is on. A hook cannot be removed, so there is one, and a switch."""

    on = installed = False
    events: ClassVar[list] = []
    # Looking at objects is no event of interest; all else is: opening, importing, compiling, running, connecting.
    harmless = ("object.__getattr__", "builtins.id", "sys._getframe", "gc.")


def _note(event: str, arguments: tuple) -> None:
    if _Watch.on and not event.startswith(_Watch.harmless):
        _Watch.events.append((event, str(arguments)[:200]))


@contextmanager
def nothing_runs():
    """A block in which no file is opened and nothing imported, compiled, executed or connected to."""
    if not _Watch.installed:
        from_bytes(bytes_of([np.arange(2), {1}]))  # imports what a first load imports
        b"x".decode("cp437")
        sys.addaudithook(_note)
        _Watch.installed = True
    _Watch.events.clear()
    _Watch.on = True
    try:
        yield
    finally:
        _Watch.on = False
    assert not _Watch.events


def refused(data: bytes, error, match: str, **options) -> None:
    """Loading gives this error, says where, and does nothing else on the way; in little time and memory."""
    with nothing_runs(), contextlib.suppress(error):
        from_bytes(data, **options)  # what is imported on first use is not the file's memory
    tracemalloc.start()
    start = time.thread_time()
    try:
        with nothing_runs(), pytest.raises(error, match=match) as caught:
            from_bytes(data, **options)
        assert tracemalloc.get_traced_memory()[1] < 150 * len(data) + 2_000_000  # an empty list takes a hundred bytes
    finally:
        tracemalloc.stop()
    assert time.thread_time() - start < 2  # the measurement of memory slows it down
    notes = " ".join(getattr(caught.value, "__notes__", ()))
    assert "the BytesIO object" in str(caught.value) + notes
