"""Writing a file so that at any moment it is either the old one or the new one, whole.

What is written into it is the caller's business.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

__all__ = ["writing"]


@contextmanager
def writing(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """A binary stream whose content becomes the file `path` when the block ends without an exception.

    The bytes go to a temporary file beside the target, readable by its owner alone, and take the target's place in one
    step, once they are on the disk. A process killed in between leaves the target as it was, and at most a file
    `.pellucid-*.tmp` beside it. A symbolic link is followed: the file it points to is replaced, the link stays. A
    target that exists keeps its permissions; a new one gets those the umask grants. What is no regular file (a device,
    a pipe) is written to directly.

    Raises:
        RuntimeError: the folder does not exist.
        IsADirectoryError: the path is a folder.
        PermissionError: the file is write-protected, or the folder lets no file be made in it.
    """
    target = os.path.realpath(os.fsdecode(os.fspath(path)))
    existing = _status(target)
    if existing is not None and not stat.S_ISREG(existing.st_mode):
        with open(target, "wb") as stream:  # also raises IsADirectoryError for a folder
            yield stream
        return
    _check_target(target, existing)
    temporary, stream, mode = _open_private(target, 0o666 if existing is None else 0o600)
    try:
        with stream:
            yield stream
            stream.flush()
            _set_owner_and_mode(stream.fileno(), existing, mode)
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:  # an interrupt too must not leave the temporary file behind
        with suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(os.path.dirname(target))


def _status(target: str) -> os.stat_result | None:
    try:
        return os.stat(target)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _check_target(target: str, existing: os.stat_result | None) -> None:
    folder = os.path.dirname(target)
    if not os.path.isdir(folder):
        raise RuntimeError(f"Parent directory {folder} does not exist.")
    if existing is not None and not os.access(target, os.W_OK):
        raise PermissionError(13, "the file is write-protected: save under another name, or allow writing", target)


def _open_private(target: str, mode: int) -> tuple[str, BinaryIO, int]:
    """A new file beside the target that only its owner may read, and what the umask leaves of `mode`."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0) | getattr(os, "O_CLOEXEC", 0)
    temporary = os.path.join(os.path.dirname(target), f".pellucid-{os.urandom(8).hex()}.tmp")
    try:
        descriptor = os.open(temporary, flags, mode)
    except PermissionError as error:
        raise PermissionError(
            error.errno,
            "the folder lets no file be made in it, so the save cannot be made atomic. Allow writing to the folder, or "
            "pass an open file instead of a path to write in place",
            target,
        ) from None
    try:
        # The umask is read off a file made under it: asking for it would mean changing it for the whole process.
        granted = stat.S_IMODE(os.fstat(descriptor).st_mode)
        if hasattr(os, "fchmod"):
            os.fchmod(descriptor, 0o600)
        return temporary, os.fdopen(descriptor, "wb"), granted
    except BaseException:
        os.close(descriptor)
        os.unlink(temporary)
        raise


def _set_owner_and_mode(descriptor: int, existing: os.stat_result | None, granted: int) -> None:
    if not hasattr(os, "fchmod"):  # Windows has no permissions of this kind
        return
    if existing is None:
        os.fchmod(descriptor, granted)
        return
    with suppress(PermissionError):  # only a privileged process may give a file away, as it would by writing in place
        os.fchown(descriptor, existing.st_uid, existing.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(existing.st_mode))


def _sync_folder(folder: str) -> None:
    """Bring the new name to the disk too; file systems that cannot are left to do it in their own time."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
