"""Sends Python objects between processes, large arrays through shared memory.

An object is pickled with its large buffers apart (pickle protocol 5). On Linux these go into a piece of memory without
a name, whose descriptor is sent along: the sender does not wait until the receiver reads, the receiver copies nothing,
and since there is no name there is nothing that could be left behind, whichever process dies. Elsewhere the buffers
follow through the pipe.
"""

from __future__ import annotations

import io
import mmap
import os
import pickle
import struct
import weakref
from multiprocessing import reduction
from multiprocessing.connection import Connection

__all__ = ["receive", "send"]

APART = 16384  # bytes; smaller buffers stay in the message
ALIGNMENT = 64  # bytes, so that kernels find vectors aligned
FEW = 256  # maps that may be alive at once where Python keeps a file descriptor open for each

HEADER = struct.Struct("!?q")  # whether buffers are in shared memory, how many there are
SHARED = hasattr(os, "memfd_create")

_maps: weakref.WeakSet = weakref.WeakSet()


def send(connection: Connection, value) -> None:
    """Send a picklable object; raises what pickling raises, before anything is sent."""
    buffers: list[memoryview] = []

    def keep_apart(buffer: pickle.PickleBuffer) -> bool:
        view = buffer.raw()
        if view.nbytes < APART:
            return True
        buffers.append(view)
        return False

    body = io.BytesIO()
    reduction.ForkingPickler(body, 5, True, keep_apart).dump(value)
    sizes = [view.nbytes for view in buffers]
    header = HEADER.pack(SHARED, len(sizes)) + struct.pack(f"!{len(sizes)}q", *sizes)
    descriptor = _shared_copy(buffers) if SHARED and buffers else None
    try:
        connection.send_bytes(header)
        connection.send_bytes(body.getbuffer())
        if descriptor is not None:
            reduction.send_handle(connection, descriptor, None)
        else:
            for view in buffers:
                connection.send_bytes(view)
    finally:
        if descriptor is not None:
            os.close(descriptor)


def receive(connection: Connection):
    """The next object that was sent. EOFError where the other end is closed."""
    header = connection.recv_bytes()
    shared, count = HEADER.unpack_from(header)
    sizes = struct.unpack_from(f"!{count}q", header, HEADER.size)
    body = connection.recv_bytes()
    if count and shared:
        buffers = _mapped(reduction.recv_handle(connection), sizes)
    else:
        buffers = [bytearray(connection.recv_bytes()) for _ in sizes]
    return pickle.loads(body, buffers=buffers)


def _places(sizes) -> tuple[list[int], int]:
    """Where each buffer starts, and the size of all."""
    starts, end = [], 0
    for size in sizes:
        starts.append(end)
        end += -(-size // ALIGNMENT) * ALIGNMENT
    return starts, end


def _shared_copy(buffers: list[memoryview]) -> int:
    """A descriptor of new shared memory that holds the buffers."""
    starts, total = _places([view.nbytes for view in buffers])
    descriptor = os.memfd_create("pellucid-batch", os.MFD_CLOEXEC)
    try:
        os.ftruncate(descriptor, total)
        with mmap.mmap(descriptor, total) as memory:
            for start, view in zip(starts, buffers, strict=True):
                memory[start : start + view.nbytes] = view
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _mapped(descriptor: int, sizes) -> list:
    """Writable buffers on shared memory. They keep it alive; the descriptor is closed."""
    starts, total = _places(sizes)
    try:
        memory = _map(descriptor, total)
    finally:
        os.close(descriptor)
    whole = memoryview(memory)
    return [whole[start : start + size] for start, size in zip(starts, sizes, strict=True)]


def _map(descriptor: int, total: int):
    try:
        return mmap.mmap(descriptor, total, trackfd=False)
    except TypeError:  # Python before 3.13 holds a descriptor open for each map
        memory = mmap.mmap(descriptor, total)
    if len(_maps) < FEW:
        _maps.add(memory)
        return memory
    with memory:
        return bytearray(memory)
