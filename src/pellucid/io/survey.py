"""Looking at a file instead of loading it: which names does its pickle mention?"""

from __future__ import annotations

import pickle
from typing import Any

from pellucid.io.policy import Policy, resolve_name
from pellucid.io.unpickler import KeyGuard

__all__ = ["Survey"]


class _Anything(dict):
    """Stands for whatever the pickle would make."""

    __hash__ = object.__hash__


class Survey:
    """A policy that allows every name, notes it, and makes nothing of it."""

    def __init__(self):
        self.keys = KeyGuard(1 << 30)
        self._names: dict[tuple[str, str], None] = {}

    def refused(self) -> list[str]:
        """The names that a load would stop at."""
        policy, found = Policy(_no_storage, 0), []
        for module, name in self._names:
            try:
                policy.find(module, name)
            except pickle.UnpicklingError:
                found.append(".".join(resolve_name(module, name)))
        return found

    def find(self, module: str, name: str) -> Any:
        self._names[module, name] = None
        return _Anything()

    def call(self, function: Any, args: Any) -> Any:
        return _Anything()

    new = call

    def build(self, target: Any, state: Any) -> None:
        """Nothing: what was made has no state."""

    def load_storage(self, identifier: Any) -> Any:
        return _Anything()

    def is_mapping(self, target: Any) -> bool:
        return isinstance(target, dict)


def _no_storage(*identifier: Any) -> Any:
    raise pickle.UnpicklingError("no storages are read here")
