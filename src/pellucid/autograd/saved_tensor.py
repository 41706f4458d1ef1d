"""What users may ask of saved values: `node._saved_NAME`, `node._raw_saved_NAME`, and hooks on a single one.

How values are saved, checked and packed is in `autograd/saved.py`.
"""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

from pellucid.autograd.node import Freed, Node
from pellucid.autograd.saved import Packed, _pack, active_hooks, unpack_input, unpack_result
from pellucid.core.tensor import Number, Tensor, wrap

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["SavedTensor", "make_saved_tensor", "saved_attribute", "saved_tensor"]


class SavedTensor:
    """One saved value of a node before it is unpacked, as `node._raw_saved_NAME` gives it; users cannot make one."""

    def __init__(self):
        raise RuntimeError(
            "Trying to create a SavedTensor object from Python is forbidden: a node gives those of its saved values as "
            "node._raw_saved_NAME"
        )

    node: Node | None  # the node that saved it
    _read: Callable[[], Any]  # the value as it is kept: Tensor, array, Number, Packed or None
    _write: Callable[[Packed], None]  # keep something else in its place
    unpack: Callable[[], Any]  # the value as backward sees it

    @property
    def data(self):
        """The value, or what the pack hook made of it; None once it is freed."""
        value = self._read()
        if isinstance(value, Packed):
            return value.handle
        return value if value is None or isinstance(value, Tensor) else wrap(getattr(value, "_array", value))

    @property
    def unpack_hook(self):
        """The hook that unpacks it; None if there is none."""
        value = self._read()
        return value.unpack if isinstance(value, Packed) else None

    def register_hooks(self, pack_hook, unpack_hook) -> None:
        """Pack the value now, and unpack it by `unpack_hook` when it is used.

        Raises:
            RuntimeError: hooks were set before, nothing was saved here, or the value was freed.
            TypeError: a hook cannot be called.
        """
        value = self._read()
        if isinstance(value, Packed):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor whose hooks have already been set. Hint: only one pair of hooks "
                "is allowed at a time."
            )
        if value is None and self.node is not None and isinstance(self.node.adjust, Freed):
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph "
                "are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward "
                "through the graph a second time or if you need to access saved variables after calling backward."
            )
        if value is None or isinstance(value, Number):
            raise RuntimeError("Calling register_hooks on a saved tensor with value None is forbidden")
        if not (callable(pack_hook) and callable(unpack_hook)):
            raise TypeError("register_hooks(): expected two callables, pack_hook and unpack_hook")
        is_result = not isinstance(value, Tensor)
        self._write(_pack(wrap(value) if is_result else value, (pack_hook, unpack_hook), is_result))


def saved_tensor(node: Node | None, read, write, unpack) -> SavedTensor:
    """A SavedTensor; the arguments are its attributes."""
    made = object.__new__(SavedTensor)
    made.node, made._read, made._write, made.unpack = node, read, write, unpack
    return made


def make_saved_tensor(tensor: Tensor, is_output: bool) -> SavedTensor:
    """A value saved by no node, packed by the hooks in force: for those who keep their own accounts of a graph."""
    hooks = active_hooks()
    kept: list[Any] = [tensor if hooks is None else _pack(tensor, hooks, is_output)]
    return saved_tensor(
        None,
        lambda: kept[0],
        lambda packed: kept.__setitem__(0, packed),
        lambda: kept[0].tensor() if isinstance(kept[0], Packed) else kept[0],
    )


def _of_slot(node: Node, slot: str, unpack) -> SavedTensor:
    return saved_tensor(node, lambda: getattr(node, slot), lambda packed: setattr(node, slot, packed), unpack)


def _of_list(node: Node, slot: str, position: int, unpack) -> SavedTensor:
    """The SavedTensor of one member of a saved list."""

    def write(packed):
        values = list(getattr(node, slot))
        values[position] = packed
        setattr(node, slot, tuple(values))

    return saved_tensor(node, lambda: (getattr(node, slot) or {position: None})[position], write, unpack)


def _slot(name: str) -> str:
    """Where a node keeps what PyTorch calls `_saved_NAME`: `input` is called self there, shapes are sym_sizes."""
    asked = name.removeprefix("_raw").removeprefix("_saved_")
    if asked.endswith("_sym_sizes"):
        return f"{_slot(asked.removesuffix('_sym_sizes'))}_shape"
    return {"self": "input", "output": "result"}.get(asked, asked)


def saved_attribute(node: Node, name: str):
    """The value of `node._saved_NAME` or `node._raw_saved_NAME`."""
    slot = _slot(name)
    kinds = getattr(type(node), "kinds", {})
    described = _described(node) or {}
    if name.removeprefix("_saved_") in described:
        return described[name.removeprefix("_saved_")]
    if getattr(type(node), "operator", None) is None or slot not in kinds:
        names = ", ".join(_saved_names(node))
        raise AttributeError(f"{node.name()} has no attribute {name!r}; it has {names or 'no saved values'}")
    if kinds[slot] in ("attribute", "fact"):
        return getattr(node, slot)
    if not name.startswith("_raw"):
        return _unpacked(node, slot)
    value = getattr(node, slot)
    if isinstance(value, tuple):
        return tuple(_of_list(node, slot, i, lambda i=i: _unpacked(node, slot)[i]) for i in range(len(value)))
    return _of_slot(node, slot, lambda: _unpacked(node, slot))


def _described(node: Node) -> dict[str, Any] | None:
    """What PyTorch's node keeps and this one keeps in another form: `described` of the declaration makes it from the slots."""
    operator = getattr(type(node), "operator", None)
    describe = operator and operator.declaration.__dict__.get("described")
    if not describe:
        return None
    return describe(*[getattr(node, name) for name in inspect.signature(describe).parameters])


def _saved_names(node: Node) -> list[str]:
    """The names under which the node gives what it saved."""
    described = _described(node)
    kept = [] if described is not None else [slot for slot in getattr(type(node), "kinds", {}) if not slot.endswith("_dtype")]
    names = [re.sub("_shape$", "_sym_sizes", re.sub("^input(?=$|_shape$)", "self", slot)) for slot in kept]
    return [f"_saved_{name}" for name in (*names, *(described or ()))]


def _unpacked(node: Node, slot: str) -> Any:
    """A saved operand or result as backward sees it; RuntimeError once it is freed."""
    if isinstance(node.adjust, Freed):
        node.adjust.before(node, None)
    operator: Any = type(node).operator  # pyright: ignore[reportAttributeAccessIssue]
    value = getattr(node, slot)
    if value is None:
        return None
    if type(node).kinds[slot] == "result":  # pyright: ignore[reportAttributeAccessIssue]
        return unpack_result(node, value, operator.outputs.index(slot), getattr(node, f"{slot}_c"))
    if isinstance(value, tuple):
        members: Any = unpack_input(node, value, None)
        return tuple(members)
    positions = [p.name for p in operator.inputs]
    return unpack_input(node, value, node.edges[positions.index(slot)] if slot in positions else None)


def _missing_attribute(node: Node, name: str):
    """What a node has no slot for: values it saved, by PyTorch's names for them."""
    if name.startswith(("_saved_", "_raw_saved_")):
        return saved_attribute(node, name)
    raise AttributeError(f"{type(node).__name__!r} node has no attribute {name!r}")


# Nodes stand below what is saved in them.
setattr(Node, "__getattr__", _missing_attribute)  # noqa: B010
setattr(Node, "__dir__", lambda node: [*object.__dir__(node), *_saved_names(node)])  # noqa: B010
