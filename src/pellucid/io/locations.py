"""`map_location`: where a storage goes whose file says on which device it was.

There is one place to go to, the CPU; the rest is about saying so.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pellucid.core.device import device
from pellucid.io.storage import Storage

__all__ = ["Restore", "restorer"]

Restore = Callable[[Storage, str], Storage]


def restorer(map_location: Any) -> Restore:
    """The function that takes a storage and the tag its file gives it, and returns the storage to use.

    Args:
        map_location: None, a device or its name, a dict from tags to tags, or a function of storage and tag that
            returns a storage or None ("as if no map_location were given").

    Raises:
        TypeError: `map_location` is none of these.
    """
    if map_location is None:
        return _restore
    if isinstance(map_location, dict):
        return lambda storage, tag: _restore(storage, _text(map_location.get(tag, tag)))
    if isinstance(map_location, (str, bytes, device)):
        wanted = _text(map_location)
        return lambda storage, tag: _restore(storage, wanted)
    if callable(map_location):
        return lambda storage, tag: _by_function(map_location, storage, tag)
    raise TypeError(
        f"map_location must be None, a device, a string, a dict or a function, not {type(map_location).__name__}: "
        f"'{type(map_location).__name__}' object is not callable"
    )


def _text(tag: str | bytes | device) -> str:
    return tag.decode("ascii", "replace") if isinstance(tag, bytes) else str(tag)


def _by_function(function: Callable, storage: Storage, tag: str) -> Storage:
    found = function(storage, tag)
    if found is None:
        return _restore(storage, tag)
    if not isinstance(found, Storage):
        raise TypeError(
            f"the map_location function must return a storage or None, not {type(found).__name__}: "
            f"return the storage it is given to keep it on the CPU"
        )
    return found


def _restore(storage: Storage, tag: str) -> Storage:
    kind = tag.partition(":")[0]
    if kind == "cpu":
        return storage
    if kind == "cuda":
        raise RuntimeError(
            "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is False. "
            "If you are running on a CPU-only machine, please use torch.load with map_location=torch.device('cpu') "
            f"to map your storages to the CPU. (The storage is tagged {tag[:40]!r}; this library computes on the CPU.)"
        )
    raise RuntimeError(
        f"don't know how to restore data location of torch.storage.UntypedStorage (tagged with {tag[:40]}): this "
        "library computes on the CPU. Pass map_location='cpu' to load the values all the same."
    )
