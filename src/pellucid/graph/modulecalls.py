"""Which module is running: a stack of calls, kept by hooks on the call of every module while somebody listens.

With nobody listening there are no hooks, and calling a module costs what it always does.
"""

from __future__ import annotations

import inspect
import sys
import threading
from dataclasses import replace
from typing import Any

from pellucid.autograd.engine import current_task
from pellucid.core.tensor import Tensor
from pellucid.graph.building import WeakTable
from pellucid.graph.names import names_here
from pellucid.graph.snapshot import ModuleCall
from pellucid.nn.modules.hooks import register_module_forward_hook, register_module_forward_pre_hook
from pellucid.nn.modules.module import Module

__all__ = ["ModuleCalls"]

MOST_SHOWN, MOST_NESTED = 8, 6  # of the shapes of a result


class ModuleCalls:
    """A block in which the calls of modules in this thread are noted: `calls`, and the innermost one, `current`."""

    def __init__(self):
        self.calls: list[ModuleCall] = []
        self.on_inputs: Any = None  # called with the arguments of outermost calls: pairs of a parameter's name and a value
        self._stack: list[tuple[int, BaseException | None]] = []
        self._paths = WeakTable()  # module -> path
        self._counts = WeakTable()  # module -> how often it has been called
        self._sizes = WeakTable()  # module -> elements of its parameters
        self._thread = threading.get_ident()
        self._handles: list[Any] = []

    @property
    def current(self) -> int | None:
        """The number of the call that is running, innermost."""
        return self._stack[-1][0] if self._stack else None

    def __enter__(self):
        self._handles = [
            register_module_forward_pre_hook(self._begin),
            register_module_forward_hook(self._end, always_call=True),
        ]
        return self

    def __exit__(self, *exception):
        for handle in self._handles:
            handle.remove()
        self._stack.clear()

    def restart(self) -> None:
        """Forget what is over, for a recording that begins anew while modules may be running."""
        self._counts = WeakTable()
        running = [call for call, _ in self._stack]
        new: dict[int | None, int | None] = {None: None} | {old: number for number, old in enumerate(running)}
        # a new list of new calls: the old one belongs to the graph that has been recorded
        self.calls = [replace(self.calls[old], id=new[old], parent=new.get(self.calls[old].parent)) for old in running]
        self._stack = [(number, error) for number, (_, error) in enumerate(self._stack)]

    def _begin(self, module: Module, args: Any) -> None:
        if threading.get_ident() != self._thread:
            return
        if not self._stack and self.on_inputs is not None:
            self.on_inputs(list(zip(_parameter_names(module), args, strict=False)))
        number = (self._counts.get(module) or 0) + 1
        self._counts.set(module, number)
        size = self._sizes.get(module)
        if size is None:
            size = sum(parameter.numel() for parameter in module.parameters())
            self._sizes.set(module, size)
        made = ModuleCall(len(self.calls), self._path(module), type(module).__name__, self.current, number - 1, size, False)
        made.phase = "forward" if current_task() is None else "backward"
        self.calls.append(made)
        self._stack.append((made.id, sys.exc_info()[1]))

    def _end(self, module: Module, args: Any, output: Any) -> None:
        if threading.get_ident() != self._thread or not self._stack:
            return
        call, error = self._stack.pop()
        self.calls[call].finished = sys.exc_info()[1] is error
        self.calls[call].output = _shapes(output) if output is not None else ""

    def _path(self, module: Module) -> str:
        """The path of a module: from the variable that holds it or what it is part of, else from the class's name."""
        path = self._paths.get(module)
        if path is None and self._stack:
            self._learn(type(module).__name__, module)
        elif path is None:
            found = names_here(sys._getframe(2)).modules.get(id(module)) or type(module).__name__
            self._learn(found, module)
        return self._paths.get(module)

    def _learn(self, name: str, module: Module) -> None:
        """Note the paths of a module and all below it."""
        for path, part in module.named_modules():
            if self._paths.get(part) is None:
                self._paths.set(part, f"{name}.{path}" if path else name)

    def name_root(self, module: Module, name: str) -> None:
        """Say by which name a module goes, before it is called."""
        self._learn(name, module)


def _parameter_names(module: Module) -> list[str]:
    """The names of the positional parameters of a module's forward."""
    try:
        return list(inspect.signature(module.forward).parameters)
    except (TypeError, ValueError):
        return []


def _shapes(value: Any, depth: int = 0) -> str:
    """The shapes of the tensors in a result, nested as it is."""
    if isinstance(value, Tensor):
        return str(list(value._array.shape))
    if depth > MOST_NESTED:
        return "..."
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {_shapes(item, depth + 1)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        opening, closing = "[]" if isinstance(value, list) else "()"
        items = [_shapes(item, depth + 1) for item in value[:MOST_SHOWN]]
        more = [f"... {len(value) - MOST_SHOWN} more"] if len(value) > MOST_SHOWN else []
        return opening + ", ".join(items + more) + closing
    if hasattr(type(value), "__dataclass_fields__"):
        return _shapes({name: getattr(value, name) for name in value.__dataclass_fields__}, depth)
    return type(value).__name__
