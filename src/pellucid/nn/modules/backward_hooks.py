"""The boundary of a module in the graph, where backward hooks of modules hear the gradients pass.

A boundary is an identity node on the way in and one on the way out. It is put *under* the tensors, by moving their
edge, and not around them: the module gets the very tensor it was called with, no view of it, so that an in-place
operation in the module or after it works as without hooks.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from pellucid.autograd.node import Node, edge_of, edge_to, next_sequence
from pellucid.autograd.views import refresh
from pellucid.core.modes import modes
from pellucid.core.tensor import Tensor, wrap

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from pellucid.nn.modules.module import Module

__all__ = ["Boundary", "register_on_grad_fn"]


class BackwardHookFunctionBackward(Node):
    """The identity, on several tensors at once: a place for hooks to listen."""

    __slots__ = ("outputs",)
    multi = True
    aliases = True

    def __init__(self, edges: tuple):
        self.edges, self.outputs = edges, len(edges)
        self.sequence, self.adjust, self.extra = next_sequence(), None, None
        self.code, self.lasti = None, 0

    def apply(self, grad, edges, keep):
        """The gradients as they come."""
        return tuple(grad)

    apply_tensors = apply


class Boundary:
    """What one call of a module with backward hooks puts into the graph.

    The node on the way out notes the gradients of the outputs; the node on the way in, which runs later, has those
    of the inputs, and calls the hooks with both.
    """

    def __init__(self, module: Module, hooks: list[Callable], pre_hooks: list[Callable]):
        self.module, self.hooks, self.pre_hooks = module, hooks, pre_hooks
        self.inputs = self.outputs = 0  # how many arguments and results there are, tensors or not
        self.input_places: list[int] | None = None  # which of them are tensors; None if none needs a gradient
        self.input_kinds: list[tuple] = []  # shape and dtype of each of those
        self.output_places: list[int] = []
        self.grad_outputs: tuple | None = None
        self.moved: list[tuple[Tensor, tuple, tuple]] = []  # (tensor, its own edge, the edge it has meanwhile)

    # --- forward -----------------------------------------------------------------------------------------------------

    def enter(self, args: tuple) -> tuple:
        """Let the inputs that need a gradient come from an identity node, until `leave`."""
        self.inputs = len(args)
        places = [i for i, value in enumerate(args) if isinstance(value, Tensor)]
        node = _identity([args[i] for i in places])
        if node is None:
            return args
        self.input_places = places
        self.input_kinds = [(args[i]._array.shape, args[i]._array.dtype) for i in places]
        node.register_hook(self._inputs_known)
        entered = list(args)
        for number, place in enumerate(places):
            entered[place] = self._enter_one(args[place], edge_to(node, number))
        return tuple(entered)

    def _enter_one(self, tensor: Tensor, edge: tuple) -> Tensor:
        """A leaf, or a tensor that stands in two places, is entered by a view; every other one as it is."""
        if not tensor._requires_grad:
            return tensor
        if tensor._edge is None or any(tensor is other for other, _, _ in self.moved):
            return _view_with_edge(tensor, edge)
        self.moved.append((tensor, tensor._edge, edge))
        tensor._edge = edge
        return tensor

    def leave(self) -> None:
        """Give the inputs their own edges back, but for those that were written to in place."""
        moved, self.moved = self.moved, []  # the edges lead to the node that holds this object: keep no cycle
        for tensor, own, meanwhile in moved:
            if tensor._edge is meanwhile:
                tensor._edge = own

    def mark_outputs(self, result: Any) -> Any:
        """Put an identity node behind the outputs."""
        if not isinstance(result, (Tensor, tuple)):
            warnings.warn(
                "For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but received "
                f"{type(result)}",
                stacklevel=5,
            )
        single = not isinstance(result, tuple)
        results = (result,) if single else result
        self.outputs = len(results)
        places = [i for i, value in enumerate(results) if isinstance(value, Tensor)]
        node = _identity([results[i] for i in places])
        if node is None:
            return result
        self.output_places = places
        node.register_hook(self._outputs_known)
        marked = list(results)
        for number, place in enumerate(places):
            marked[place] = self._mark_one(results[place], edge_to(node, number))
        if single:
            return marked[0]
        return type(result)(*marked) if hasattr(result, "_fields") else tuple(marked)

    def _mark_one(self, tensor: Tensor, edge: tuple) -> Tensor:
        """An input that is returned as it came, and a leaf, are given out as views; others keep the new edge."""
        if not tensor._requires_grad:
            return tensor
        returned_input = any(tensor is other and tensor._edge is meanwhile for other, _, meanwhile in self.moved)
        if tensor._edge is None or tensor._edge[0] is edge[0] or returned_input:
            return _view_with_edge(tensor, edge)
        tensor._edge = edge
        return tensor

    # --- backward ----------------------------------------------------------------------------------------------------

    def _outputs_known(self, _, grads: tuple) -> tuple:
        """The gradients of the outputs are there: let pre-hooks change them, and keep them for the hooks."""
        self.grad_outputs = _spread(grads, self.output_places, self.outputs)
        for hook in self.pre_hooks:
            changed = hook(self.module, self.grad_outputs)
            if changed is not None:
                changed = changed if isinstance(changed, tuple) else (changed,)
                _check_count("pre hook", "grad_output", changed, self.outputs)
                self.grad_outputs = changed
        passed_on = tuple(self.grad_outputs[i] for i in self.output_places)
        if self.input_places is None:
            self._no_input_needs_grad()
        return passed_on

    def _inputs_known(self, grads: tuple, _) -> tuple | None:
        """The gradients of the inputs are there: call the hooks."""
        if self.grad_outputs is None:  # they came past the outputs, as in a second derivative
            return None
        known = [
            wrap(np.zeros(*kind)) if grad is None else grad for grad, kind in zip(grads, self.input_kinds, strict=True)
        ]
        grad_inputs = _spread(known, self.input_places, self.inputs)
        for hook in self.hooks:
            changed = hook(self.module, grad_inputs, self.grad_outputs)
            if changed is not None:
                changed = changed if isinstance(changed, tuple) else (changed,)
                _check_count("hook", "grad_input", changed, self.inputs)
                grad_inputs = changed
        self.grad_outputs = None
        return tuple(grad_inputs[i] for i in self.input_places)

    def _no_input_needs_grad(self) -> None:
        """Call the hooks at the outputs, for there will be nothing at the inputs."""
        warnings.warn(
            "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
            "require gradients: grad_input is None throughout.",
            stacklevel=2,
        )
        for hook in self.hooks:
            changed = hook(self.module, (None,) * self.inputs, self.grad_outputs)
            if changed is not None and not (isinstance(changed, tuple) and all(value is None for value in changed)):
                raise RuntimeError(
                    "Backward hook for Modules where no input requires gradient should always return None or None for "
                    f"all gradients: {hook!r} returned {type(changed).__name__}."
                )
        self.grad_outputs = None


def _identity(tensors: list[Tensor]) -> BackwardHookFunctionBackward | None:
    """A node under these tensors; None if no gradient is recorded for any."""
    if not modes.grad_enabled:
        return None
    for tensor in tensors:
        if tensor._view is not None:
            refresh(tensor)
    edges = tuple(edge_of(tensor) for tensor in tensors)
    return BackwardHookFunctionBackward(edges) if any(edge is not None for edge in edges) else None


def _view_with_edge(tensor: Tensor, edge: tuple) -> Tensor:
    """Another tensor over the same memory, with this edge. It is a view, so that writing to it in place is refused or
    recorded as for any view."""
    view = tensor.view_as(tensor)
    view._edge, view._requires_grad = edge, True
    return view


def _spread(values: Sequence, places: list[int], count: int) -> tuple:
    """A tuple of `count` with the values at their places and None elsewhere."""
    spread = [None] * count
    for place, value in zip(places, values, strict=True):
        spread[place] = value
    return tuple(spread)


def _check_count(what: str, which: str, given: tuple, expected: int) -> None:
    if len(given) != expected:
        raise RuntimeError(
            f"Backward {what} returned an invalid number of {which}, got {len(given)}, but expected {expected}"
        )


# --- the older kind --------------------------------------------------------------------------------------------------


def register_on_grad_fn(module: Module, hooks: list[Callable], args: tuple, result: Any) -> None:
    """Register older backward hooks on the node that made the (first) result."""
    tensor = _first_tensor(result)
    node = tensor.grad_fn if tensor is not None else None
    if node is None:
        return
    for hook in hooks:
        node.register_hook(_OlderHook(hook, module))
    sources = {value.grad_fn for value in args if isinstance(value, Tensor) and value.grad_fn is not None}
    if sources != {source for source, _ in node.next_functions}:
        warnings.warn(
            "Using a non-full backward hook when the forward contains multiple autograd Nodes is deprecated and will "
            "be "
            "removed in future versions. This hook will be missing some grad_input. Please use "
            "register_full_backward_hook to get the documented behavior.",
            FutureWarning,
            stacklevel=5,
        )


class _OlderHook:
    """A hook of a module in the form that nodes call."""

    def __init__(self, hook: Callable, module: Module):
        self.hook, self.module = hook, module

    def __call__(self, grad_inputs: tuple, grad_outputs: tuple):
        return self.hook(self.module, grad_inputs, grad_outputs)


def _first_tensor(value: Any) -> Tensor | None:
    """The first tensor in nested tuples, lists and dicts."""
    if isinstance(value, Tensor):
        return value
    items = value.values() if isinstance(value, dict) else value if isinstance(value, (tuple, list)) else ()
    return next((found for item in items if (found := _first_tensor(item)) is not None), None)
