"""`save` and `load`: objects with tensors in files that PyTorch reads and writes too.

This module knows which records a file has and what is in them. The zip container is in `zip_writer.py` and
`zip_reader.py`, the pickle in it in `pickler.py` and `unpickler.py`, what a file may name in `policy.py`, and the
format before PyTorch 1.6 in `legacy.py`.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, BinaryIO

import numpy as np

from pellucid.core.atomic import writing
from pellucid.io.legacy import load_legacy, save_legacy
from pellucid.io.locations import Restore, restorer
from pellucid.io.pickler import pickled
from pellucid.io.policy import Policy
from pellucid.io.safe_globals import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from pellucid.io.storage import Storage, StorageType
from pellucid.io.survey import Survey
from pellucid.io.trusted import TrustedUnpickler
from pellucid.io.unpickler import Machine
from pellucid.io.zip_reader import ZipReader
from pellucid.io.zip_writer import ALIGNMENT, ZipWriter

__all__ = ["DEFAULT_PROTOCOL", "add_safe_globals", "clear_safe_globals", "get_safe_globals",
           "get_unsafe_globals_in_checkpoint", "load", "safe_globals", "save"]

DEFAULT_PROTOCOL = 2
_NEWEST_VERSION = 10
_ZIP_MAGIC = b"PK"

FileLike = str | os.PathLike | BinaryIO


# --- saving ----------------------------------------------------------------------------------------------------------


def save(
    obj: Any,
    f: FileLike,
    pickle_module: Any = None,
    pickle_protocol: int = DEFAULT_PROTOCOL,
    _use_new_zipfile_serialization: bool = True,
) -> None:
    """Save an object to a file that `load`, here and in PyTorch, gives back.

    Tensors that share memory share it after loading; a view saves the whole storage under it. A file given by its path
    is written beside its target first and takes its place in one step: a save that fails or is killed leaves the file
    that was there.

    Args:
        obj: tensors, and lists, dictionaries, numbers and text around them; other objects are pickled by reference to
            their class.
        f: a path, or an open binary file (only `write` is needed).
        pickle_module: ignored; there for programs that pass it.
        pickle_protocol: of the pickle inside. PyTorch's `weights_only=True` reads only 2.
        _use_new_zipfile_serialization: False writes the format of PyTorch before 1.6.

    Raises:
        RuntimeError: the folder does not exist, or two tensors see the same memory as different element types.
        RecursionError: the object is nested too deeply.
        AttributeError: `f` is neither a path nor a file.
        pickle.PicklingError, TypeError: something in the object cannot be pickled.
    """
    if not _is_path(f) and not hasattr(f, "write"):
        raise AttributeError(
            "expected 'f' to be string, path, or a file-like object with a 'write' attribute, "
            f"got an object of type {type(f).__name__}"
        )
    if _use_new_zipfile_serialization:
        data, storages = pickled(obj, pickle_protocol)  # before a file is made: most failures happen here
        with _open_for_writing(f) as stream:
            _write_zip(stream, _folder_name(f), data, storages)
    else:
        with _open_for_writing(f) as stream:
            save_legacy(obj, stream, pickle_protocol)


def _write_zip(stream: BinaryIO, folder: str, data: bytes, storages: dict[str, Storage]) -> None:
    archive = ZipWriter(stream, folder)
    archive.write("data.pkl", data)
    archive.write(".format_version", b"1")
    archive.write(".storage_alignment", b"%d" % ALIGNMENT)
    archive.write("byteorder", sys.byteorder.encode())
    for key, storage in storages.items():
        archive.write(f"data/{key}", memoryview(storage._memory))
    archive.finish()


def _folder_name(f: FileLike) -> str:
    """The folder inside the archive: the file's name without its last suffix, if that is plain text."""
    if not _is_path(f):
        return "archive"
    name = os.path.basename(os.fsdecode(os.fspath(f)))
    stem = name.rpartition(".")[0] if "." in name else name
    return stem if stem.isascii() and stem.isprintable() and stem.strip(".") and "\\" not in stem else "archive"


@contextmanager
def _open_for_writing(f: FileLike) -> Iterator[BinaryIO]:
    if _is_path(f):
        with writing(f) as stream:
            yield stream
        return
    yield f
    if hasattr(f, "flush"):
        f.flush()


def _is_path(f: Any) -> bool:
    return isinstance(f, (str, bytes, os.PathLike))


# --- loading ---------------------------------------------------------------------------------------------------------


def load(
    f: FileLike,
    map_location: Any = None,
    pickle_module: Any = None,
    *,
    weights_only: bool | None = True,
    mmap: bool | None = None,
    **pickle_load_args: Any,
) -> Any:
    """Load an object that was saved here or by PyTorch.

    With `weights_only=True` a file can only hold data: tensors, containers, numbers, text, and classes that the program
    declared safe (`add_safe_globals`). No file, however it was made, runs code, reaches memory that is not its own,
    or takes memory out of proportion to its length.

    Args:
        f: a path, or an open binary file that can seek. A path that ends in `.safetensors` is read as that format.
        map_location: a device, its name, a dict of location tags, or a function of (storage, tag); here every storage
            ends on the CPU, and files from other devices ask to be told so.
        pickle_module: ignored unless `weights_only`, which refuses it; there for programs that pass it.
        weights_only: False lets the file run any code. Only for files you trust.
        mmap: map the file into memory, so that values are read when first used. Needs a path; verifies no checksums.
        pickle_load_args: options of `pickle.Unpickler`, for `weights_only=False`.

    Raises:
        FileNotFoundError, IsADirectoryError: there is no such file.
        EOFError: the file is empty.
        pickle.UnpicklingError: the file is not of this format, or asks for something that is not allowed.
        RuntimeError: the file is damaged, or comes from a device that does not exist here.
    """
    weights_only = True if weights_only is None else bool(weights_only)
    if weights_only and pickle_module is not None:
        raise RuntimeError(
            "Can not safely load weights when explicit pickle_module is specified: leave out pickle_module, or pass "
            "weights_only=False for a file you trust"
        )
    if weights_only and pickle_load_args:
        warnings.warn("pickle_load_args only works if `weights_only=False`.", UserWarning, stacklevel=2)
    if mmap and not _is_path(f):
        raise ValueError("f must be a file path in order to use the mmap argument")
    if _is_path(f) and os.fsdecode(os.fspath(f)).endswith(".safetensors"):
        return _load_safetensors(os.fsdecode(os.fspath(f)), map_location)
    options = {} if weights_only else {"encoding": "utf-8", **pickle_load_args}
    loading = _Loading(restorer(map_location), None if weights_only else options, bool(mmap))
    with _open_for_reading(f) as stream:
        return loading.load(stream, _label(f))


def get_unsafe_globals_in_checkpoint(f: FileLike) -> list[str]:
    """The names in a file that `load` refuses by default and that have not been declared safe, as `module.name`.

    Raises as `load` does for files that cannot be read. Nothing in the file is run, and no storage is read.
    """
    survey = Survey()
    loading = _Loading(restorer(None), None, False, survey)
    with _open_for_reading(f) as stream:
        loading.load(stream, _label(f))
    return survey.refused()


class _Loading:
    """One load.

    Args:
        restore: decides where storages go.
        trusted: options of Python's unpickler, to use it; None for the restricted one.
        mapped: whether storages are mapped and not read.
        survey: notes the names in the file, and stands in for a policy; for looking instead of loading.
    """

    def __init__(self, restore: Restore, trusted: dict[str, Any] | None, mapped: bool, survey: Survey | None = None):
        self._ask, self._trusted, self._mapped, self._survey = restore, trusted, mapped, survey
        self._refusal: Exception | None = None

    def load(self, stream: BinaryIO, label: str) -> Any:
        """The object in a stream. Whatever the bytes are, there is one error, and it names the file."""
        head = _head(stream, label)
        try:
            if head == _ZIP_MAGIC:
                return self._load_zip(ZipReader(stream))
            return self._load_old(stream)
        except (OSError, MemoryError):
            raise
        except Exception as error:
            ours = isinstance(error, (RuntimeError, pickle.UnpicklingError, EOFError))
            if error is self._refusal or (self._trusted is not None and not ours):
                error.add_note(f"while loading {label}")
                raise
            raise _explained(error, label, self._trusted is None) from (None if ours else error)

    def _load_old(self, stream: BinaryIO) -> Any:
        if self._mapped:
            raise RuntimeError(
                "mmap can only be used with files saved with `torch.save(_use_new_zipfile_serialization=True)`; "
                "load this one without mmap, or save it again"
            )
        return load_legacy(stream, self._restore, self._read_object, fill=self._survey is None)

    def _load_zip(self, reader: ZipReader) -> Any:
        if "constants.pkl" in reader:
            raise RuntimeError(
                "Cannot use ``weights_only=True`` with TorchScript archives: this file holds a compiled program. In "
                "PyTorch, save its values: torch.save(torch.jit.load(file).state_dict(), other_file)"
            )
        _check_version(reader)
        data = reader.read("data.pkl")
        records = _Records(reader, self._restore, self._mapped)
        return self._read_object(data, 0, Policy(records.load_storage, len(data)))[0]

    def _read_object(self, data: bytes, position: int, policy: Policy) -> tuple[Any, int]:
        if self._trusted is None:
            machine = Machine(data, self._survey or policy, position)
            return machine.run(), machine.position
        stream = io.BytesIO(data)
        stream.seek(position)
        return TrustedUnpickler(stream, policy, **self._trusted).load(), stream.tell()

    def _restore(self, storage: Storage, tag: str) -> Storage:
        """Ask `map_location`, and remember what it raises: that is the program's own error, not the file's."""
        try:
            return self._ask(storage, tag)
        except Exception as error:
            self._refusal = error
            raise


class _Records:
    """The storages of an archive, each read when it is first named."""

    def __init__(self, reader: ZipReader, restore: Restore, mapped: bool):
        self._reader, self._restore = reader, restore
        self._read: Callable[[str], np.ndarray] = reader.map_array if mapped else reader.read_array
        self._swap = _is_other_byteorder(reader)
        self._loaded: dict[str, Storage] = {}

    def load_storage(self, kind: StorageType, key: str, location: str, count: int) -> Storage:
        """The storage of a key; RuntimeError if its record is missing, damaged or of another size."""
        storage = self._loaded.get(key)
        if storage is None:
            memory = self._read(f"data/{key}")
            if self._swap:
                _swap_bytes(memory, kind.dtype.numpy)
            storage = self._restore(Storage(memory, kind.dtype), location)
            self._loaded[key] = storage
        if storage.dtype is not kind.dtype:
            raise RuntimeError(f"the storage {key[:40]!r} is described as {storage.dtype} and as {kind.dtype}")
        size = count * kind.dtype.itemsize
        if size > storage.nbytes():
            raise RuntimeError(
                f"record size ({storage.nbytes()} bytes) does not match expected size ({size} bytes = {count} elements "
                f"* {kind.dtype.itemsize} bytes/element) for the storage {key[:40]!r}. The file is damaged"
            )
        return storage


def _check_version(reader: ZipReader) -> None:
    text = reader.read("version").strip() if "version" in reader else b"3"
    if not text.isdigit() or len(text) > 9:
        raise RuntimeError("the file's version is no number; it is damaged")
    if int(text) > _NEWEST_VERSION:
        raise RuntimeError(
            f"Attempted to read a PyTorch file with version {int(text)}, but the maximum supported version for reading "
            f"is {_NEWEST_VERSION}. Save it again with an older PyTorch, or update this library."
        )


def _is_other_byteorder(reader: ZipReader) -> bool:
    order = reader.read("byteorder") if "byteorder" in reader else b"little"
    if order not in (b"little", b"big"):
        raise RuntimeError(f"Unknown endianness type: {order[:20]!r}, expected little or big. The file is damaged")
    return order.decode() != sys.byteorder


def _swap_bytes(memory: np.ndarray, kind: np.dtype) -> None:
    if kind.itemsize == 1:
        return
    words = memory[: memory.size // kind.itemsize * kind.itemsize]
    words.view(np.uint16 if kind.itemsize == 2 else kind).byteswap(inplace=True)


# --- files and errors ------------------------------------------------------------------------------------------------


@contextmanager
def _open_for_reading(f: FileLike) -> Iterator[BinaryIO]:
    if _is_path(f):
        with open(f, "rb") as stream:
            yield stream
        return
    try:
        f.seek(f.tell())
    except (io.UnsupportedOperation, AttributeError) as error:
        raise type(error)(
            f"{error}. You can only torch.load from a file that is seekable. Please pre-load the data into a buffer "
            "like io.BytesIO and try to load from it instead."
        ) from None
    yield f


def _head(stream: BinaryIO, label: str) -> bytes:
    """The first bytes of a stream, which is left where it was."""
    start = stream.tell()
    head = stream.read(len(_ZIP_MAGIC))
    if not isinstance(head, bytes):
        raise TypeError(f"{label}: expected a file opened in binary mode (\"rb\"), this one gives text")
    if not head:
        raise EOFError(f"{label}: Ran out of input: the file is empty")
    stream.seek(start)
    return head


def _load_safetensors(path: str, map_location: Any) -> dict:
    from pellucid.io.safetensors import load_file  # needs a package that other files do not

    if map_location is not None and (isinstance(map_location, dict) or callable(map_location)):
        raise RuntimeError(
            f"Loading safetensors file with {'dict' if isinstance(map_location, dict) else 'callable'} map_location is "
            "not supported. Use a device string or torch.device instead."
        )
    return load_file(path, device="cpu" if map_location is None else map_location)


def _label(f: FileLike) -> str:
    name = f if _is_path(f) else getattr(f, "name", None)
    return repr(os.fsdecode(os.fspath(name))) if _is_path(name) else f"the {type(f).__name__} object"


def _explained(error: Exception, label: str, weights_only: bool) -> Exception:
    """The error to raise for one that a file's content caused."""
    if isinstance(error, RuntimeError) and not isinstance(error, RecursionError):
        return RuntimeError(f"{label}: {error}")
    start = "Weights only load failed. " if weights_only else ""
    if isinstance(error, (pickle.UnpicklingError, EOFError)):
        return pickle.UnpicklingError(f"{start}{label}: {error}.")
    return pickle.UnpicklingError(
        f"{start}{label}: the file is damaged, or a class in it does not take what the file gives it "
        f"({type(error).__name__}: {error})"
    )
