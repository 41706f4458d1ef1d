"""Operators, and the public names they go by, known before the families that declare them are imported.

Importing the library reads an index of names (`announce`); a family of operators is imported when one of its names is
first asked for: as an attribute of a public module, as a method of Tensor, or as `F.name` in a formula.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from pellucid.core.tensor import Tensor

__all__ = ["OPERATORS", "PUBLIC", "Registry", "announce", "announce_families", "public_names"]


class Registry(dict):
    """A dict whose entries may be announced before they are there: whoever asks for one imports the module that makes it.

    Looking at the whole (`in` apart) imports all of them.
    """

    def __init__(self):
        super().__init__()
        self.homes: dict[str, str] = {}  # name -> module that enters it

    def __missing__(self, name: str):
        if name not in self.homes:
            raise KeyError(name)
        importlib.import_module(self.homes[name])
        return super().__getitem__(name)

    def __contains__(self, name) -> bool:
        return super().__contains__(name) or name in self.homes

    def declared(self, name: str) -> bool:
        """Whether the entry is there already."""
        return super().__contains__(name)

    def get(self, name, default=None):
        return self[name] if name in self else default

    def _complete(self) -> None:
        for home in dict.fromkeys(self.homes.values()):
            importlib.import_module(home)

    def names(self) -> set[str]:
        """All names, without importing anything."""
        return {*super().keys(), *self.homes}

    def __iter__(self):
        self._complete()
        return super().__iter__()

    def __len__(self) -> int:
        self._complete()
        return super().__len__()

    def keys(self):
        self._complete()
        return super().keys()

    def values(self):
        self._complete()
        return super().values()

    def items(self):
        self._complete()
        return super().items()


OPERATORS: Registry = Registry()  # name -> Operator
PUBLIC: dict[str, Registry] = {}  # public module ("torch", "nn.functional", "linalg", ...) -> name -> function


class _Later:
    """An attribute of Tensor whose family has not been imported: it makes way for the real one when it is touched."""

    __slots__ = ("home", "name")

    def __init__(self, home: str, name: str):
        self.home, self.name = home, name

    def _real(self) -> Any:
        importlib.import_module(self.home)
        real = Tensor.__dict__.get(self.name, self)
        if real is self:
            raise AttributeError(f"{self.home} did not make Tensor.{self.name}")
        return real

    def __get__(self, tensor, owner=None):
        real = self._real()  # not by getattr: `super().name` in a subclass means this one
        return real.__get__(tensor, owner) if hasattr(real, "__get__") else real

    def __set__(self, tensor, value) -> None:
        self._real()
        setattr(tensor, self.name, value)

    def __delete__(self, tensor) -> None:
        self._real()
        delattr(tensor, self.name)


def announce(home: str, names: dict[str, str]) -> None:
    """Say what the module `home` will make: under "operators", "Tensor" or a public module, names between spaces."""
    for where, text in names.items():
        if where == "Tensor":
            for name in text.split():
                setattr(Tensor, name, _Later(home, name))
        else:
            registry = OPERATORS if where == "operators" else PUBLIC.setdefault(where, Registry())
            registry.homes.update(dict.fromkeys(text.split(), home))


def announce_families(room: str, families: dict[str, dict[str, str]]) -> None:
    """Announce the modules of a package by its index: family -> places between spaces -> names between spaces."""
    for family, groups in families.items():
        for places, names in groups.items():
            announce(f"{room}.{family}", dict.fromkeys(places.split(), names))


def public_names(where: str, scope: dict[str, Any]) -> tuple[list[str], Callable[[str], Any]]:
    """`__all__` and `__getattr__` of the public module `where`, whose globals are `scope`."""
    names = PUBLIC[where].names()

    def get(name: str):
        if name not in names:
            raise AttributeError(f"module 'torch.{where}' has no attribute {name!r}")
        found = scope[name] = PUBLIC[where][name]
        return found

    return sorted(names), get
