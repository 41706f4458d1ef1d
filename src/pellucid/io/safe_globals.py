"""Classes and functions that the program declares safe to load, beside those that always are."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "safe_globals", "user_globals"]

SafeGlobal = Callable | tuple[Callable, str]


class _Declared:
    """The process-wide list; read through this object, never copied."""

    values: tuple[SafeGlobal, ...] = ()


def add_safe_globals(safe_globals: list[SafeGlobal]) -> None:
    """Let files that are loaded with `weights_only=True` name these classes and functions.

    A file may then make instances of these classes with any content, and call these functions with any arguments.

    Args:
        safe_globals: classes and functions, or pairs of one and the full name it has in files.

    Raises:
        ValueError, TypeError: an entry is neither.
    """
    for entry in safe_globals:
        _path(entry)
    _Declared.values = (*_Declared.values, *(e for e in safe_globals if not _holds(_Declared.values, e)))


def get_safe_globals() -> list[SafeGlobal]:
    """What has been declared safe."""
    return list(_Declared.values)


def clear_safe_globals() -> None:
    """Declare nothing safe any more."""
    _Declared.values = ()


class safe_globals:
    """A context in which classes and functions are safe to load; see `add_safe_globals`.

    Example:
        with safe_globals([MyModel]):
            model = load("model.pt")
    """

    def __init__(self, safe_globals: list[SafeGlobal]):
        self._entries = list(safe_globals)
        self._before: list[tuple[SafeGlobal, ...]] = []

    def __enter__(self) -> None:
        before = _Declared.values
        add_safe_globals(self._entries)
        self._before.append(before)

    def __exit__(self, *exception: object) -> None:
        before = self._before.pop()
        # Only what this context added goes; what was added by others inside it stays.
        _Declared.values = tuple(v for v in _Declared.values if _holds(before, v) or not _holds(self._entries, v))


def user_globals() -> dict[str, Any]:
    """What has been declared safe, by the full name that files use; our own classes also by PyTorch's name for them."""
    found = {_path(entry): entry[0] if isinstance(entry, tuple) else entry for entry in _Declared.values}
    own = {path: value for path, value in found.items() if path.startswith("pellucid.")}
    return {"torch" + path.removeprefix("pellucid"): value for path, value in own.items()} | found


def _holds(entries, wanted: SafeGlobal) -> bool:
    return any(_path(e) == _path(wanted) and e == wanted for e in entries)


def _path(entry: SafeGlobal) -> str:
    if not isinstance(entry, tuple):
        return f"{entry.__module__}.{entry.__qualname__}"
    if len(entry) != 2:
        raise ValueError(
            f"Expected tuple of length 2 (global, str of callable full path), but got tuple of length: {len(entry)}"
        )
    if type(entry[1]) is not str:
        raise TypeError(f"Expected second item in tuple to be str of callable full path, but got: {type(entry[1])}")
    return entry[1]
