"""`autograd.graph`: questions to the graph and hooks on what it saves."""

from __future__ import annotations

import sys
import threading

from pellucid.autograd.differentiate import GradientEdge, get_gradient_edge
from pellucid.autograd.engine import current_task
from pellucid.autograd.hooks import RemovableHandle
from pellucid.autograd.mutation import allow_mutation_on_saved_tensors
from pellucid.autograd.node import Node
from pellucid.autograd.running import (
    current_autograd_node,
    current_graph_task_execution_order,
    current_graph_task_id,
    current_graph_task_keep_graph,
    will_engine_execute_node,
)
from pellucid.autograd.saved_hooks import (
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
    saved_tensors_hooks_is_enabled,
)
from pellucid.autograd.saved_tensor import make_saved_tensor
from pellucid.core.sites import caller
from pellucid.core.tensor import Tensor, counter

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "current_autograd_node",
    "current_graph_task_execution_order",
    "current_graph_task_id",
    "current_graph_task_keep_graph",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "make_saved_tensor",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
    "saved_tensors_hooks_is_enabled",
    "will_engine_execute_node",
]


def increment_version(tensor) -> None:
    """Say that a tensor's memory (or that of several) was written to by other means."""
    for t in (tensor,) if isinstance(tensor, Tensor) else tensor:
        counter(t).bump("increment_version", *caller(sys._getframe(1)))


class _unsafe_preserve_version_counter:
    """A block whose writes to a tensor (or to several) are not counted: saved values that they spoil go unnoticed."""

    def __init__(self, tensors):
        self.tensors = (tensors,) if isinstance(tensors, Tensor) else tuple(tensors)
        self.before = [t._version for t in self.tensors]

    def __enter__(self) -> None:
        return None

    def __exit__(self, *exception) -> None:
        _unsafe_set_version_counter(self.tensors, self.before)


def _unsafe_set_version_counter(tensors, versions) -> None:
    """Set how often the memory of each tensor counts as written to; RuntimeError below zero."""
    tensors, versions = tuple(tensors), tuple(versions)
    if len(tensors) != len(versions):
        raise RuntimeError(f"expected one version for each tensor, got {len(tensors)} tensors, {len(versions)} versions")
    for t, version in zip(tensors, versions, strict=True):
        if version < 0:
            raise RuntimeError(f"Cannot set a version_counter to a value below 0: {version}")
        counter(t).value = version


class _MultiHandle(RemovableHandle):
    """The handle of a hook on several tensors."""

    def __init__(self, handles):
        self.handles = tuple(handles)

    def remove(self) -> None:
        """Take the hook back from all of them."""
        for handle in self.handles:
            handle.remove()


def register_multi_grad_hook(tensors, fn, *, mode: str = "all") -> RemovableHandle:
    """Call `fn` in each backward when the gradients of several tensors are there.

    Args:
        tensors: tensors that require grad.
        fn: with mode "all", called once with the list of gradients (None for those not reached); with "any", called
            with the first gradient to arrive.
        mode: "all" or "any".
    """
    if mode not in ("all", "any"):
        raise ValueError(f"Expects mode to be one of ('all', 'any') but got {mode}")
    lock, state = threading.Lock(), {}
    if mode == "any":

        def first(grad):
            with lock:
                task = current_task()
                seen = state.get("task") is task
                state["task"] = task
            if not seen:
                fn(grad)

        return _MultiHandle([t.register_hook(first) for t in tensors])
    edges = [get_gradient_edge(t) for t in tensors]

    def gather(index):
        def hook(grad):
            task = current_task()
            with lock:
                if id(task) not in state:
                    expected = sum(will_engine_execute_node(e.node) for e in edges)
                    state[id(task)] = [task, [None] * len(edges), expected]
                entry = state[id(task)]
                entry[1][index] = grad
                entry[2] -= 1
                done = entry[2] == 0
                if done:
                    del state[id(task)]
            if done:
                fn(entry[1])

        return hook

    return _MultiHandle([t.register_hook(gather(i)) for i, t in enumerate(tensors)])
