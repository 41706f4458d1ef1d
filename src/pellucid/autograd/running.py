"""Questions to the backward that is running in this thread: its number, what it will run, which node it is at.

Hooks and custom functions ask them. The engine that answers is in `autograd/engine.py`; a backward started inside
another is the one that is asked, until it is done.
"""

from __future__ import annotations

from heapq import heappop, heappush

from pellucid.autograd.engine import Task, current_task
from pellucid.autograd.node import Node

__all__ = [
    "current_autograd_node",
    "current_graph_task_execution_order",
    "current_graph_task_id",
    "current_graph_task_keep_graph",
    "will_engine_execute_node",
]


def current_graph_task_id() -> int:
    """A number that no other backward has; -1 outside a backward."""
    task = current_task()
    return -1 if task is None else task.id


def current_graph_task_keep_graph() -> bool:
    """Whether the running backward keeps saved values for another one; True outside a backward."""
    task = current_task()
    return True if task is None else task.keep_graph


def current_autograd_node() -> Node | None:
    """The node whose derivative is being taken; None outside a backward."""
    task = current_task()
    return None if task is None else task.node


def will_engine_execute_node(node: Node) -> bool:
    """Whether the running backward runs a node, or takes the gradient there that it was asked for.

    Raises:
        RuntimeError: no backward is running, or this is no node.
    """
    if not isinstance(node, Node):
        raise RuntimeError(
            f"will_engine_execute_node expects a grad_fn, but got {type(node).__name__}. The node of a tensor t is "
            "t.grad_fn, for a leaf get_gradient_edge(t).node"
        )
    task = _running("will_engine_execute_node")
    return node in task.reached and (task.needed is None or node in task.needed)


def current_graph_task_execution_order() -> list[Node]:
    """The nodes that the running backward runs, first to last, those that have run already included.

    Raises:
        RuntimeError: no backward is running.
    """
    task = _running("current_graph_task_execution_order")
    nodes = [n for n in task.reached if task.needed is None or n in task.needed]
    waiting = dict.fromkeys(nodes, 0)
    for node in nodes:
        for child in _children(node, waiting):
            waiting[child] += 1
    ready: list = []
    for node in nodes:
        if not waiting[node]:
            heappush(ready, (-node.sequence, id(node), node))
    order = []
    while ready:
        node = heappop(ready)[2]
        order.append(node)
        for child in _children(node, waiting):
            waiting[child] -= 1
            if not waiting[child]:
                heappush(ready, (-child.sequence, id(child), child))
    return order


def _children(node: Node, among: dict) -> list[Node]:
    """The nodes that a node sends gradients to, once for each edge."""
    return [edge[0] for edge in node.edges if edge is not None and edge[0] in among]


def _running(question: str) -> Task:
    task = current_task()
    if task is None:
        raise RuntimeError(
            f"{question} should only be called during the backward pass: in a hook or in the backward of a custom "
            "Function"
        )
    return task
