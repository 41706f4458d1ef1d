"""Under which Python names a program holds its tensors and modules: variables, items of containers, parameters.

A name is the expression a reader would write at that place: `loss`, `net.fc1.weight`, `xs[2]`, `self.net.fc1.bias`.
A table of names is for the moment of the look: it is thrown away when the graph or the error text is made. A module is
known here by what it offers, `named_modules`: its class lies above.
"""

from __future__ import annotations

import inspect
import sys
from collections import deque
from collections.abc import Iterator
from types import FrameType, FunctionType
from typing import Any

from pellucid.core.frames import outer_frames, variables
from pellucid.core.records import Cut
from pellucid.core.tensor import Tensor, storage_of

__all__ = ["Names", "is_module", "local_names", "module_path", "names_here", "names_in", "running_modules"]

MOST_ITEMS = 500  # of a container or an instance; longer ones are data


def is_module(value: Any) -> bool:
    """Whether a value is a module of a model."""
    return hasattr(type(value), "named_modules") and hasattr(value, "_modules")


class Names:
    """What names were found. The first that is found for a thing is kept: nearest frame, plain variables first; only
    that parameters and buffers go by the module they belong to."""

    def __init__(self):
        self.tensors: dict[int, str] = {}  # id of a tensor -> name
        self.results: dict[tuple[int, int], Tensor] = {}  # (id of the node that made it, output number) -> tensor
        self.arrays: dict[int, str] = {}  # id of a tensor's array -> name
        self.storages: dict[int, str] = {}  # id of the array that owns a tensor's memory -> name
        self.cuts: dict[str, Cut] = {}  # name of a tensor whose gradient path was cut -> where
        self.modules: dict[int, str] = {}  # id of a module -> path from a variable
        self.in_place: dict[str, str] = {}  # path of a module that overwrites its input -> its class
        self._owned: set[int] = set()  # ids of parameters and buffers that were found in a module

    def add(self, name: str, value: Any) -> None:
        """Note what a variable holds: the thing itself, or what is in it, one level deep."""
        for part, item in _parts(name, value, MOST_ITEMS):
            if isinstance(item, Tensor):
                self._add_tensor(part, item)
            elif is_module(item):
                self.add_module(part, item)

    def add_module(self, name: str, module: Any) -> None:
        """Note a module, everything below it, and their parameters and buffers."""
        if id(module) in self.modules:
            return
        for path, part in module.named_modules():
            self.modules.setdefault(id(part), _joined(name, path))
            if part.__dict__.get("inplace") is True:
                self.in_place[_joined(name, path)] = type(part).__name__
        for path, tensor in (*module.named_parameters(), *module.named_buffers()):
            if id(tensor) not in self._owned:  # a loop variable that holds a parameter is no name for it
                self._owned.add(id(tensor))
                self.tensors[id(tensor)] = self.arrays[id(tensor._array)] = _joined(name, path)
                self.storages[id(storage_of(tensor._array))] = _joined(name, path)

    def of_tensor(self, tensor: Tensor) -> str:
        """The name of a tensor, empty if it has none."""
        return self.tensors.get(id(tensor), "")

    def of_result(self, node: Any, number: int) -> str:
        """The name of a node's output, empty if it has none."""
        tensor = self.results.get((id(node), number))
        return "" if tensor is None else self.of_tensor(tensor)

    def of_memory(self, array: Any) -> tuple[str, bool]:
        """The name under which an array's memory is held, and whether it names a larger whole; empty if there is none."""
        if id(array) in self.arrays:
            return self.arrays[id(array)], False
        return self.storages.get(id(storage_of(array)), ""), True

    def _add_tensor(self, name: str, tensor: Tensor) -> None:
        self.tensors.setdefault(id(tensor), name)
        self.arrays.setdefault(id(tensor._array), name)
        self.storages.setdefault(id(storage_of(tensor._array)), name)
        if tensor._rare is not None and tensor._rare.cut is not None and not tensor._requires_grad:
            self.cuts.setdefault(name, tensor._rare.cut)
        if tensor._edge is not None:
            node, number = tensor._edge[:2]
            self.results.setdefault((id(node), number), tensor)


def _joined(name: str, path: str) -> str:
    return f"{name}.{path}" if name and path else name or path


def names_in(name: str, value: Any, most: int) -> Iterator[tuple[str, Tensor]]:
    """The tensors that a variable holds, two levels deep, each with its expression; containers of at most `most` items."""
    for part, item in _parts(name, value, most):
        if isinstance(item, Tensor):
            yield part, item
        elif item is not value:
            yield from ((inner, t) for inner, t in _parts(part, item, most) if isinstance(t, Tensor))


def _parts(name: str, value: Any, most: int) -> Iterator[tuple[str, Any]]:
    """A tensor or module itself, the items of a container, the attributes of a plain instance, the closure of a function."""
    if isinstance(value, Tensor) or is_module(value):
        yield name, value
    elif isinstance(value, FunctionType):
        yield from _closure(value)
    elif isinstance(value, (list, tuple, dict, deque)):
        if len(value) <= most:
            pairs = value.items() if isinstance(value, dict) else enumerate(value)
            yield from ((f"{name}[{key!r}]", item) for key, item in list(pairs) if isinstance(key, (int, str)))
    else:
        yield from ((f"{name}.{attribute}", item) for attribute, item in _attributes(value))


def _closure(function: FunctionType) -> Iterator[tuple[str, Any]]:
    """What a function has taken along from the one that made it, under the names it has there."""
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            yield name, cell.cell_contents
        except ValueError:  # not assigned yet
            continue


def _attributes(value: Any) -> list[tuple[str, Any]]:
    """The attributes of a plain instance, without running any of its code."""
    if isinstance(value, type) or inspect.ismodule(value) or inspect.isroutine(value):
        return []
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return []
    if not isinstance(own, dict) or len(own) > MOST_ITEMS:
        return []
    return [(name, item) for name, item in list(own.items()) if isinstance(name, str)]


def names_here(frame: FrameType | None = None) -> Names:
    """The names at the place in the user's program that is running now, nearest frames first.

    frame: where to begin; by default the caller of this function.
    """
    found = Names()
    seen: list[dict] = []
    for each in outer_frames(frame or sys._getframe(1)):
        if each.f_locals is not each.f_globals:
            _add_scope(found, variables(each))
        if all(each.f_globals is not scope for scope in seen):
            seen.append(each.f_globals)
            _add_scope(found, each.f_globals)
    return found


def local_names(frame: FrameType | None) -> dict[int, str]:
    """The plain variables of the nearest frame of the program that hold tensors, by the tensor's id."""
    for each in outer_frames(frame):
        if len(each.f_code.co_varnames) > MOST_ITEMS or (each.f_locals is each.f_globals and len(each.f_globals) > MOST_ITEMS):
            return {}
        return {id(value): name for name, value in variables(each).items() if isinstance(value, Tensor) and is_plain(name)}
    return {}


def is_plain(name: str) -> bool:
    """Whether a variable is one that a reader knows: no private one, none that a tool has made (`@py_assert1`)."""
    return name.isidentifier() and not name.startswith("_")


def _add_scope(found: Names, scope: dict[str, Any]) -> None:
    """Plain variables first, then what is in containers, modules and instances."""
    values = [(name, value) for name, value in list(scope.items()) if is_plain(name) and name != "Out"]
    for name, value in values:
        if isinstance(value, Tensor):
            found.add(name, value)
    for name, value in values:
        if not isinstance(value, Tensor):
            found.add(name, value)


def running_modules(frame: FrameType | None) -> tuple[list[Any], FrameType | None]:
    """The modules that are running at a frame, innermost first, and the frame of the outermost one."""
    running: list[Any] = []
    outermost = None
    while frame is not None:
        held = variables(frame).get("self") if "self" in frame.f_code.co_varnames else None
        if is_module(held):
            outermost = frame
            if all(held is not each for each in running):
                running.append(held)
        frame = frame.f_back
    return running, outermost


def module_path(running: list[Any], outermost: FrameType | None) -> str:
    """The innermost of the modules that `running_modules` found, by its path from the variable that holds the outermost one,
    and its class: "net.layers.0 (Linear)". Empty where none is running.
    """
    if not running:
        return ""
    inner, root = running[0], running[-1]
    path = next((path for path, module in root.named_modules() if module is inner), "...")
    name = _variable_above(outermost, root) or type(root).__name__
    return f"{_joined(name, path)} ({type(inner).__name__})"


def _variable_above(frame: FrameType | None, value: Any) -> str:
    """The variable that holds a value in the frames of the program above one; empty if none does."""
    for each in outer_frames(None if frame is None else frame.f_back):
        for scope in (variables(each), each.f_globals):
            for name, held in list(scope.items()):
                if held is value and is_plain(name) and name != "self":
                    return name
    return ""
