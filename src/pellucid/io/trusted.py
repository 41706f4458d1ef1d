"""Unpickling with `weights_only=False`: Python's own, which runs whatever code a file names.

Only PyTorch's names are given a meaning of ours here; everything else is imported as the file says.
"""

from __future__ import annotations

import importlib
import pickle
from typing import Any, BinaryIO

from pellucid.io.policy import TORCH_VALUES, Policy, resolve_name

__all__ = ["TrustedUnpickler"]


class TrustedUnpickler(pickle.Unpickler):
    """Reads one pickle of a file that is trusted.

    Args:
        stream: where the pickle lies.
        policy: makes the storages.
        options: of `pickle.Unpickler`, such as `encoding`.
    """

    def __init__(self, stream: BinaryIO, policy: Policy, **options: Any):
        super().__init__(stream, **options)
        self._policy = policy

    def persistent_load(self, pid: Any) -> Any:
        """The storage that the pickle refers to."""
        return self._policy.load_storage(pid)

    def find_class(self, module: str, name: str) -> Any:
        """What a name stands for: of PyTorch's names, what this library calls so."""
        path = ".".join(resolve_name(module, name))
        if path in TORCH_VALUES:
            return TORCH_VALUES[path]
        if module.partition(".")[0] == "torch":
            return _counterpart(module, name)
        return super().find_class(module, name)


def _counterpart(module: str, name: str) -> Any:
    """The class or function that goes by PyTorch's name here: in the module of that name, or in a package above it."""
    parts = ["pellucid", *module.split(".")[1:]]
    while parts:
        try:
            found: Any = importlib.import_module(".".join(parts))
            for step in name.split("."):
                found = getattr(found, step)
            return found
        except (ImportError, AttributeError):
            parts.pop()
    raise pickle.UnpicklingError(f"the file names {module}.{name}, which has no counterpart in this library")
