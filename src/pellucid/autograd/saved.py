"""Values saved for backward: how they are kept, checked against later writes, packed by hooks and taken out again.

A node keeps an input as the tensor itself and a result as its array (the tensor would lead back to the node). Beside
each stands the version it had; a later in-place write is found when the value is next used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from pellucid.autograd.node import FREED, AccumulateGrad, Node, edge_to, next_sequence
from pellucid.core.dtype import dtype_of
from pellucid.core.errors import type_name
from pellucid.core.modes import modes
from pellucid.core.sites import Site
from pellucid.core.tensor import Counter, Number, Tensor, counter, wrap

__all__ = ["Packed", "save_input", "save_result", "stale", "unpack_input", "unpack_result"]


class Packed:
    """A saved value that a pack hook has taken away; reading it calls the unpack hook."""

    __slots__ = ("handle", "is_result", "unpack")
    _counter = None
    _rare = _view = None

    def __init__(self, handle, unpack, is_result: bool = False):
        self.handle, self.unpack, self.is_result = handle, unpack, is_result

    def tensor(self) -> Tensor:
        """The value, as the unpack hook returns it."""
        before = modes.grad_enabled
        value = self.unpack(self.handle)
        if modes.grad_enabled != before:
            modes.grad_enabled = before
            modes.update()
        if not isinstance(value, Tensor):
            raise TypeError(
                "Output of saved tensor unpack_hook expected to be a Tensor but got result of type "
                f"{type(value).__name__}"
            )
        return value

    @property
    def _array(self) -> np.ndarray:
        return self.tensor()._array


class Cast:
    """A real operand saved by a complex operation: formulas see it in the complex dtype."""

    __slots__ = ("dtype", "value")
    _rare = _view = None

    def __init__(self, value: Tensor, dtype: np.dtype):
        self.value, self.dtype = value, dtype

    @property
    def _array(self) -> np.ndarray:
        return self.value._array.astype(self.dtype)

    @property
    def _counter(self):
        return self.value._counter


def _pack(tensor: Tensor, hooks, is_result: bool) -> Packed:
    """Give a tensor to the pack hook."""
    pack, unpack = hooks
    version = tensor._version
    grad_mode = modes.grad_enabled
    handle = pack(tensor)
    if modes.grad_enabled != grad_mode:
        modes.grad_enabled = grad_mode
        modes.update()
    if tensor._version != version:
        raise RuntimeError(
            "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can "
            "not be "
            "modified by in-place operations as this can lead to unexpected side-effects. Please open an issue if "
            "you need to perform in-place operations on the input to a pack hook."
        )
    return Packed(handle, unpack, is_result)


def active_hooks():
    """The pair of hooks in force, or None; RuntimeError where hooks are forbidden and one is set."""
    if not modes.saved_hooks:
        return None
    if modes.saved_hooks_disabled:
        raise RuntimeError(modes.saved_hooks_disabled)
    return modes.saved_hooks[-1]


def save_input(node: Node, name: str, value, inplace: Tensor | None = None) -> None:
    """Keep an operand in slot `name`, with its version."""
    if isinstance(value, list):
        setattr(node, name, tuple(value))
        setattr(node, f"{name}_v", tuple(0 if v is None else v._version for v in value))
        return
    if value is not None and value is inplace:
        value = _before_write(value)
    hooks = active_hooks()
    if hooks is not None and isinstance(value, Tensor):
        count = counter(value).value  # an inference tensor refuses here
        packed = _pack(value, hooks, False)
        setattr(node, name, packed)
        setattr(node, f"{name}_v", count)
        return
    setattr(node, name, value)
    count = None if value is None else value._counter
    setattr(node, f"{name}_v", 0 if count is None else count.value)


def _before_write(tensor: Tensor) -> Tensor:
    """The value of a tensor that is about to be overwritten, with the history it has now."""
    kept = wrap(tensor._array.copy())
    kept._requires_grad = tensor._requires_grad
    kept._edge = tensor._edge
    if tensor._requires_grad and tensor._edge is None:
        kept._requires_grad = False
    return kept


def save_result(node: Node, name: str, array: np.ndarray, inplace: Tensor | None = None) -> None:
    """Keep a result in slot `name`, with the counter that its tensor will have."""
    hooks = active_hooks()
    count = Counter() if inplace is None else counter(inplace)
    setattr(node, f"{name}_c", count)
    setattr(node, f"{name}_v", count.value)
    if hooks is not None:
        setattr(node, name, _pack(wrap(array), hooks, True))
    else:
        setattr(node, name, array)


def stale(node, name: str, count: Counter, version: int, value=None):
    """Raise the error about a saved value that was overwritten."""
    operator = getattr(type(node), "operator", None)
    kind = "saved tensor" if operator is None else "result" if name in (operator.outputs or ()) else f"input {name!r}"
    value = getattr(node, name) if value is None else value
    array = value._array if hasattr(value, "_array") else value
    site = Site.of(count.code, count.lasti)
    writer = (f" by {count.operator}" if count.operator else "") + (f" at {site}" if site else "")
    raise RuntimeError(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{type_name(array.dtype)}Tensor {list(np.shape(array))}], which is the {kind} of {node.name()}, is at version "
        f"{count.value}; expected version {version} instead. {node.name()} ran at {node.site} and saved it; it was "
        f"overwritten{writer}. Write out of place there, or give the operation a clone()."
    )


def unpack_input(node: Node, saved, edge):
    """A saved operand as a tensor that is tied to the graph as it was when it was saved."""
    if saved is None:
        return None
    if saved.__class__ is Number:
        return saved._array.item() if isinstance(saved._array, np.ndarray) else saved._array
    if saved.__class__ is tuple:
        return [unpack_input(node, s, e) for s, e in zip(saved, edge or (None,) * len(saved), strict=True)]
    if saved.__class__ is Packed:
        return tie(saved.tensor(), edge)
    if saved.__class__ is Cast:
        return unpack_input(node, saved.value, edge).to(dtype_of(saved.dtype))
    if edge is None or saved._edge is edge:
        return saved
    if edge[0].__class__ is AccumulateGrad:
        if edge[0].variable is saved:
            return saved
    elif saved._edge is None and saved._view is None:
        raise RuntimeError(
            "Trying to use a saved tensor that has been detached in-place, i.e. with .detach_(). This is not "
            "supported, please use out-of-place `.detach()` instead"
        )
    elif saved._edge is not None and saved._edge[0] is edge[0] and saved._edge[1] == edge[1]:
        return saved
    return tie(saved, edge)


def tie(tensor: Tensor, edge) -> Tensor:
    """The same values, with the given history."""
    if edge is None:
        return tensor
    if edge[0].__class__ is AccumulateGrad:
        leaf = edge[0].variable
        if leaf._array is tensor._array:
            return leaf
    alias = wrap(tensor._array)
    alias._requires_grad, alias._edge = True, edge
    alias._counter = tensor._counter
    return alias


def unpack_result(node: Node, saved, number: int, count) -> Tensor:
    """A saved result as a tensor whose history is the node itself."""
    if saved.__class__ is Packed:
        return tie(saved.tensor(), edge_to(node, number or 0))
    made = wrap(saved)
    made._requires_grad, made._edge, made._counter = True, edge_to(node, number or 0), count
    return made


# --- gradients that formally depend on operands ------------------------------------------------------------------------


class Linked(Node):
    """The history of a gradient that is constant in the operands of a fused operator: nothing flows through it."""

    __slots__ = ()

    def apply(self, grad, edges, keep):
        """No gradient."""
        return (None,) * len(edges)

    apply_tensors = apply


def linked(node: Node, results) -> tuple:
    """A fused operator's gradients, all of them tied to its operands."""
    return tuple(r if r is None or r._requires_grad else _link(node, r) for r in results)


def _link(node: Node, result: Tensor) -> Tensor:
    link = Linked()
    link.edges = tuple(e for e in node.edges if e is not None)
    link.sequence, link.adjust, link.extra = next_sequence(), None, None
    link.code, link.lasti = node.code, node.lasti
    made = wrap(result._array)
    made._requires_grad, made._edge = True, edge_to(link)
    return made


# --- what users may ask of a node ------------------------------------------------------------------------------------


class SavedTensor:
    """One saved value of a node, before it is unpacked: what `node._raw_saved_NAME` gives."""

    def __init__(self, node: Node, slot: str):
        self.node, self.slot = node, slot

    @property
    def data(self) -> Tensor:
        """The value, or what the pack hook made of it."""
        value = getattr(self.node, self.slot)
        if isinstance(value, Packed):
            return value.handle
        return value if isinstance(value, Tensor) else wrap(value)

    @property
    def unpack_hook(self):
        """The hook that unpacks it; None if there is none."""
        value = getattr(self.node, self.slot)
        return value.unpack if isinstance(value, Packed) else None

    def register_hooks(self, pack_hook, unpack_hook) -> None:
        """Pack the value now, and unpack it by `unpack_hook` when it is used; possible once."""
        value = getattr(self.node, self.slot)
        if isinstance(value, Packed):
            raise RuntimeError("Setting hooks on a saved tensor whose hooks have already been set is not allowed.")
        if value is None:
            raise RuntimeError(
                "Calling register_hooks on a saved tensor after it has been freed. Saved intermediate values of the graph "
                "are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if you need to backward "
                "through the graph a second time or if you need to access saved variables after calling backward."
            )
        if not (callable(pack_hook) and callable(unpack_hook)):
            raise TypeError("register_hooks(): expected two callables, pack_hook and unpack_hook")
        is_result = not isinstance(value, (Tensor, Number))
        kept: Any = wrap(value) if is_result else value
        packed = _pack(kept, (pack_hook, unpack_hook), is_result)
        setattr(self.node, self.slot, packed)


def saved_attribute(node: Node, name: str):
    """The value of `node._saved_NAME` or `node._raw_saved_NAME`: `input` goes by the name `self`, as in PyTorch."""
    operator = getattr(type(node), "operator", None)
    asked = name.removeprefix("_raw").removeprefix("_saved_")
    slot = {"self": "input", "output": "result"}.get(asked, asked)
    kinds = getattr(type(node), "kinds", {})
    if operator is None or slot not in kinds:
        names = ", ".join(f"_saved_{'self' if n == 'input' else n}" for n in kinds)
        raise AttributeError(f"{node.name()} has no attribute {name!r}; it has {names or 'no saved values'}")
    if kinds[slot] in ("attribute", "fact"):
        return getattr(node, slot)
    if name.startswith("_raw"):
        return SavedTensor(node, slot)
    if node.adjust is FREED:
        FREED.before(node, None)
    value = getattr(node, slot)
    if kinds[slot] == "result":
        count = getattr(node, f"{slot}_c")
        return None if value is None else unpack_result(node, value, operator.outputs.index(slot), count)
    positions = [p.name for p in operator.inputs]
    edge = node.edges[positions.index(slot)] if slot in positions and not isinstance(value, tuple) else None
    return unpack_input(node, value, edge)


def _missing_attribute(node: Node, name: str):
    """What a node has no slot for: values it saved, by PyTorch's names for them."""
    if name.startswith(("_saved_", "_raw_saved_")):
        return saved_attribute(node, name)
    raise AttributeError(f"{type(node).__name__!r} node has no attribute {name!r}")


setattr(Node, "__getattr__", _missing_attribute)  # noqa: B010 (nodes stand below what is saved in them)
