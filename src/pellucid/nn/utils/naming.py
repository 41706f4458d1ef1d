"""What the program calls its parameters: for error texts of functions that are handed bare tensors."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from pellucid.core.frames import outer_frames, variables
from pellucid.core.tensor import Tensor
from pellucid.nn.modules.module import Module

__all__ = ["parameter_names"]


def parameter_names() -> dict[int, str]:
    """Names by the tensor's id: its path in a module that a variable holds (`net.fc1.weight`), else a variable's own.

    Looks through the running functions of the program, nearest first, and one level into plain instances.
    """
    in_modules: dict[int, str] = {}
    variables_alone: dict[int, str] = {}
    for name, value in _held():
        if isinstance(value, Tensor):
            variables_alone.setdefault(id(value), name)
        elif isinstance(value, Module):
            for path, parameter in value.named_parameters():
                in_modules.setdefault(id(parameter), f"{name}.{path}")
    return variables_alone | in_modules


def _held() -> Iterator[tuple[str, Any]]:
    for frame in outer_frames(sys._getframe(1)):
        for scope in (variables(frame), frame.f_globals):
            for name, value in list(scope.items()):
                if name.startswith("_"):
                    continue
                yield name, value
                if not isinstance(value, (Module, Tensor, type)) and isinstance(getattr(value, "__dict__", None), dict):
                    yield from (
                        (f"{name}.{key}", item) for key, item in list(vars(value).items()) if isinstance(item, Module)
                    )
