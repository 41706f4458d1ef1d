"""Views and in-place history.

A view remembers its base (the tensor that is no view) and the steps by which it was taken. An in-place write to a view
rewrites the history of the *base*: a `CopySlices` node puts the written part into the whole. The view written to, and
every other view of that base, notices by the shared version counter that its own history is out of date, and takes it
afresh from the base when it is next asked for (`refresh`).
"""

from __future__ import annotations

import sys
import weakref
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pellucid.autograd.node import Node, edge_of, edge_to, extra, next_sequence
from pellucid.core.language import message, say
from pellucid.core.modes import modes
from pellucid.core.sites import caller
from pellucid.core.tensor import InferenceCounter, Tensor, counter

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["CopySlices", "Kind", "Step", "View", "check_inplace", "rebase", "refresh", "take_view"]


class Kind(Enum):
    """Under which circumstances a view was made: it decides whether it may be written to."""

    PLAIN = 0
    MULTI = 1  # one of several views that one call returned
    NO_GRAD = 2
    INFERENCE = 3
    FUNCTION = 4  # made inside a custom Function
    NO_GRAD_MULTI = 5


class Step(NamedTuple):
    """One step from a base to a view, on tensors and on arrays."""

    on_tensor: Callable
    on_array: Callable


class View:
    """How a tensor was taken from its base."""

    __slots__ = ("base", "kind", "operation", "steps", "version")

    def __init__(self, base: Tensor, steps: tuple, kind: Kind, operation: str, version: int):
        self.base, self.steps, self.kind, self.operation = base, steps, kind, operation
        self.version = version  # of the shared counter, when the view's own edge was last right


def take_view(result: Tensor, source: Tensor, step: Step, operation: str, kind: Kind = Kind.PLAIN) -> None:
    """Note that `result` is a view of `source`."""
    count = result._counter = counter(source)
    if isinstance(count, InferenceCounter):
        return
    if not modes.grad_enabled or modes.inference:
        multi = kind is Kind.MULTI
        kind = Kind.INFERENCE if modes.inference else Kind.NO_GRAD_MULTI if multi else Kind.NO_GRAD
        result._requires_grad = (
            source._requires_grad
        )  # as in PyTorch: a leaf that shares its base's wish for a gradient
    above = source._view
    if above is None:
        result._view = View(source, (step,), kind, operation, count.value)
    else:
        inherited = above.kind if kind is Kind.PLAIN else kind
        name = above.operation if kind is Kind.PLAIN and above.kind is not Kind.PLAIN else operation
        result._view = View(above.base, (*above.steps, step), inherited, name, count.value)


def refresh(tensor: Tensor) -> None:
    """Bring the history of a view up to date with in-place writes to its base or to other views of it."""
    view, version = tensor._view, tensor._counter.value
    if view.version == version:
        return
    base = view.base
    if not base._requires_grad:
        view.version = version
        return
    if view.kind is not Kind.PLAIN:
        if modes.grad_enabled:
            raise RuntimeError(_forbidden(tensor, base=True))
        return
    if tensor._edge is None and tensor._requires_grad:  # a leaf in its own right
        view.version = version
        return
    before = modes.grad_enabled
    modes.grad_enabled = True
    modes.update()
    try:
        fresh = base
        for step in view.steps:
            fresh = step.on_tensor(fresh)
    finally:
        modes.grad_enabled = before
        modes.update()
    tensor._edge, tensor._requires_grad = fresh._edge, True
    view.version = version
    if tensor._rare is not None and tensor._rare.retain:
        move_retain(tensor)


def _forbidden(tensor: Tensor, base: bool = False) -> str:
    """Why a view of this kind cannot take part in an in-place change, and what to do instead."""
    view, edge = tensor._view, tensor._edge
    name, number = (edge[0].name(), edge[1]) if edge is not None else (view.operation, 0)
    happens = "its base or another view of its base has been" if base else "is being"
    subject = f"Output {number} of {name} is a view and {happens} modified inplace."
    if view.kind is Kind.MULTI:
        return (
            f"{subject} This view is the output of a function that returns multiple views. Such functions do not allow "
            "the output views to be modified inplace. You should replace the inplace operation by an out-of-place one."
        )
    if view.kind is Kind.FUNCTION:
        return (
            f"{subject} This view was created inside a custom Function (or because an input was returned as-is) and "
            "the autograd logic to handle view+inplace would override the custom backward associated with the custom "
            "Function, leading to incorrect gradients. This behavior is forbidden. You can fix this by cloning the "
            "output of the custom Function."
        )
    mode = "inference mode" if view.kind is Kind.INFERENCE else "no_grad mode"
    return (
        f"A view was created in {mode} and {happens} modified inplace with grad mode enabled. Given that this use case "
        "is ambiguous and error-prone, it is forbidden. You can clarify your code by moving both the view and the "
        f"inplace either both inside the {mode.removesuffix(' mode')} block (if you don't want the inplace to be "
        "tracked) or both outside (if you want the inplace to be tracked)."
    )


INFERENCE_WRITE = (
    "Inplace update to inference tensor outside InferenceMode is not allowed. You can make a clone to get a normal tensor "
    "before doing inplace update."
)


def check_inplace(tensor: Tensor, others_need: bool, fills: bool = False) -> bool:
    """Whether an in-place write to a tensor is recorded; RuntimeError where it is forbidden.

    `fills` says that every element gets the same value, so that elements may share memory.

    Raises:
        RuntimeError: a leaf that requires grad, a view of one, one of several views returned together, a view made
            under no_grad, an inference tensor outside inference mode, or memory that several elements share.
    """
    if isinstance(tensor._counter, InferenceCounter) and not modes.inference:
        raise RuntimeError(INFERENCE_WRITE)
    array = tensor._array
    if not tensor._wraps and (not array.flags.writeable or (not fills and 0 in array.strides and _overlaps(array))):
        first = (
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
        why = say("The tensor of shape {shape} was expanded, or its array is read-only.", shape=tuple(array.shape))
        raise RuntimeError(message(first, why))
    if modes.mutation is not None:
        modes.mutation.before_write(tensor)
    if tensor._view is not None:
        refresh(tensor)
    if not modes.grad_enabled or not (tensor._requires_grad or others_need):
        return False
    view = tensor._view
    if view is not None:
        if view.kind is not Kind.PLAIN:
            raise RuntimeError(_forbidden(tensor))
        if tensor._requires_grad and view.base._edge is None:
            first = "a view of a leaf Variable that requires grad is being used in an in-place operation."
            raise RuntimeError(message(first, say("Write to it under torch.no_grad(), or to a clone() of the leaf.")))
    if tensor._requires_grad and tensor._edge is None:
        first = "a leaf Variable that requires grad is being used in an in-place operation."
        raise RuntimeError(message(first, say("Write to it under torch.no_grad(), or to a clone() of it.")))
    return True


def _overlaps(array: np.ndarray) -> bool:
    """Whether some dimension longer than 1 has stride 0."""
    return array.size > 0 and any(s == 0 and n > 1 for s, n in zip(array.strides, array.shape, strict=True))


def written(tensor: Tensor, operator: str) -> None:
    """Count an in-place write, and note who did it and where."""
    counter(tensor).bump(operator, *caller(sys._getframe(1)))


def rebase(tensor: Tensor, node: Node) -> None:
    """Make `node`, an in-place operation that has just been recorded, the history of the tensor it wrote to."""
    view = tensor._view
    if view is None:
        tensor._edge, tensor._requires_grad = edge_to(node), True
    else:
        base = view.base
        if base._view is not None:
            raise RuntimeError("the base of a view is itself a view")
        base._edge, base._requires_grad = edge_to(CopySlices(base, view.steps, node)), True
        base_rare = base._rare
        if base_rare is not None and base_rare.retain:
            move_retain(base)
        view.version = -1
        refresh(tensor)
    if tensor._rare is not None and tensor._rare.retain:
        move_retain(tensor)


def move_retain(tensor: Tensor) -> None:
    """Let a retained gradient follow the tensor to the node that now makes it."""
    node, number = tensor._edge[:2]
    retain = extra(node).retain
    retain[number] = weakref.ref(tensor)


def forget_history(op, tensor: Tensor) -> None:
    """After an in-place operation without a derivative: the old history does not hold any more."""
    node = zero_node(op, tensor)
    rebase(tensor, node)


def zero_node(op, tensor: Tensor):
    """A node through which nothing flows, for an in-place operation whose result does not depend on its input."""
    cls = type(op.node_name, (Node,), {"__slots__": (), "apply": _no_gradient, "apply_tensors": _no_gradient})
    node = cls.__new__(cls)
    node.edges, node.adjust, node.extra, node.sequence = (None,), None, None, next_sequence()
    node.code, node.lasti = caller(sys._getframe(1))
    node.fact = tensor._array.shape, tensor._array.dtype
    return node


def _no_gradient(node, grad, edges, keep):
    return (None,) * len(edges)


class CopySlices(Node):
    """An in-place operation on a view, seen from the base: the gradient of the written part goes through the operation,
    the rest passes by."""

    __slots__ = ("function", "order", "steps")
    saved = ("function",)

    def __init__(self, base: Tensor, steps: tuple, function: Node):
        self.function, self.steps = function, steps
        self.order = None if base._wraps else _order(base._array)  # the steps may need a gradient laid out as the base is
        self.edges = (edge_of(base), *function.edges[1:])
        self.sequence, self.adjust, self.extra = next_sequence(), None, None
        self.fact = base._array.shape, base._array.dtype
        self.code, self.lasti = function.code, function.lasti

    def apply(self, grad, edges, keep):
        """The gradient of the base's old value, then those of the operation's other inputs."""
        if self.adjust is not None:
            self.adjust.before(self, grad)
        result = grad.copy() if self.order is None else grad.transpose(self.order[0]).copy().transpose(self.order[1])
        part = result
        for step in self.steps:
            part = step.on_array(part)
        inner = self.function.apply(part.copy(), self._inner_edges(edges), keep)
        part[...] = 0 if inner[0] is None else inner[0]
        if keep is not True:
            self.release(keep)
        return (result if edges[0] is not None else None, *inner[1:])

    def apply_tensors(self, grad, edges, keep):
        """`apply`, on tensors."""
        if self.adjust is not None:
            self.adjust.before(self, grad)
        result = grad.contiguous().clone()
        if self.order is not None:
            result = grad.permute(self.order[0]).contiguous().clone().permute(self.order[1])
        part = result
        for step in self.steps:
            part = step.on_tensor(part)
        inner = self.function.apply_tensors(part.clone(), self._inner_edges(edges), keep)
        if inner[0] is None:
            part.zero_()
        else:
            part.copy_(inner[0])
        if keep is not True:
            self.release(keep)
        return (result if edges[0] is not None else None, *inner[1:])

    def _inner_edges(self, edges):
        return (self.function.edges[0] if edges[0] is not None else None, *edges[1:])


def _order(array: np.ndarray) -> tuple | None:
    """The dimensions by falling stride, and the way back; None for an array in row-major order."""
    if array.flags.c_contiguous:
        return None
    order = tuple(sorted(range(array.ndim), key=lambda d: -array.strides[d]))
    return order, tuple(sorted(range(array.ndim), key=order.__getitem__))
