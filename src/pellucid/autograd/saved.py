"""Values saved for backward: how they are kept, checked against later writes, packed by hooks and taken out again.

A node keeps an input as the tensor itself and a result as its array (the tensor would lead back to the node). Beside
each stands the version it had; a later in-place write is found when the value is next used.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.node import AccumulateGrad, Node, edge_to, next_sequence
from pellucid.core.dtype import dtype_of
from pellucid.core.modes import modes
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
        before = modes.grad_enabled, modes.saved_hooks
        value = self.unpack(self.handle)
        if (modes.grad_enabled, modes.saved_hooks) != before:
            modes.grad_enabled, modes.saved_hooks = before
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

    def __init__(self, value: Tensor | Packed, dtype: np.dtype):
        self.value, self.dtype = value, dtype

    @property
    def _array(self) -> np.ndarray:
        return self.value._array.astype(self.dtype)

    @property
    def _counter(self):
        return self.value._counter


class Widened(Cast):
    """An operand of a 16-bit type: formulas on arrays, which compute in float32, see it in that; those on tensors as it is."""

    __slots__ = ()


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
    hooks = active_hooks()
    if isinstance(value, list):
        kept = value if hooks is None else [None if v is None else _pack(v, hooks, False) for v in value]
        setattr(node, name, tuple(kept))
        setattr(node, f"{name}_v", tuple(0 if v is None else v._version for v in value))
        return
    if value is not None and value is inplace:
        value = _before_write(value)
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
    kept = tensor._snapshot()
    kept._requires_grad = tensor._requires_grad
    kept._edge = tensor._edge
    if tensor._requires_grad and tensor._edge is None:
        kept._requires_grad = False
    return kept


def save_result(node: Node, name: str, value, inplace: Tensor | None = None) -> None:
    """Keep a result, an array or a tensor, in slot `name`, with the counter that its tensor will have."""
    hooks = active_hooks()
    count = Counter() if inplace is None else counter(inplace)
    setattr(node, f"{name}_c", count)
    setattr(node, f"{name}_v", count.value)
    if not isinstance(value, Tensor):
        value = np.asarray(value)  # NumPy makes scalars of 0-d arrays
    if hooks is not None:
        value = value._alias() if isinstance(value, Tensor) else wrap(value)
        if inplace is None:  # in place, `value` is what will be written, not the tensor's memory
            value._counter = count
        value = _pack(value, hooks, True)
    setattr(node, name, value)


def stale(node: Node, name: str, count: Counter, version: int, value=None, edge=None):
    """Raise the error about a saved value that was overwritten; `value` and its edge, where slot `name` is not it."""
    from pellucid.autograd.overwritten import overwritten_text

    raise RuntimeError(overwritten_text(node, name, count, version, value, edge))


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
    if saved.__class__ is Widened:
        return unpack_input(node, saved.value, edge)
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
    alias = tensor._alias()
    alias._requires_grad, alias._edge = True, edge
    alias._counter = tensor._counter
    return alias


def unpack_result(node: Node, saved, number: int, count) -> Tensor:
    """A saved result as a tensor whose history is the node itself."""
    if saved.__class__ is Packed:
        return tie(saved.tensor(), edge_to(node, number or 0))
    made = wrap(saved) if saved.__class__ is np.ndarray else saved._alias()
    made._counter = count
    if made._array.dtype.kind in "fcV":  # indices have no history
        made._requires_grad, made._edge = True, edge_to(node, number or 0)
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
    if not modes.grad_enabled:
        return tuple(results)
    return tuple(r if r is None or r._requires_grad else _link(node, r) for r in results)


def _link(node: Node, result: Tensor) -> Tensor:
    link = Linked()
    link.edges = tuple(e for e in node.edges if e is not None)
    link.sequence, link.adjust, link.extra = next_sequence(), None, None
    link.fact = result._array.shape, result._array.dtype
    link.code, link.lasti = node.code, node.lasti
    made = result._alias()
    made._requires_grad, made._edge = True, edge_to(link)
    return made
