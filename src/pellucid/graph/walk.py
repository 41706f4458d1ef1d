"""`graph.of`: the graph that autograd left behind a tensor, read from its nodes and put down as plain data.

Every walk is iterative and meets each node once: linear in nodes and edges, whatever the number of paths.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from pellucid.autograd.node import AccumulateGrad, Freed
from pellucid.autograd.node import Node as GradNode
from pellucid.autograd.views import CopySlices, refresh
from pellucid.core.tensor import Number, Tensor
from pellucid.graph.building import Builder, attribute_text, dtype_name, gradient_of
from pellucid.graph.derivatives import put_derivatives
from pellucid.graph.facts import output_facts
from pellucid.graph.layouts import Layout, layout_of
from pellucid.graph.names import Names, names_here
from pellucid.graph.pausing import collector_paused
from pellucid.graph.snapshot import Edge, Graph, Node, Output

__all__ = ["Walk", "execution_order", "graph_of_tensors", "tensors_in"]

MOST_WITH_VALUES = 2000  # nodes whose local derivatives are worked out, when asked for


def tensors_in(values: Any) -> list[Tensor]:
    """All tensors in nested tuples, lists and dicts (and instances of dataclasses), in order."""
    found, waiting = [], [values]
    while waiting:
        value = waiting.pop()
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, dict):
            waiting.extend(reversed(list(value.values())))
        elif isinstance(value, (list, tuple, set, frozenset)):
            waiting.extend(reversed(list(value)))
        elif hasattr(type(value), "__dataclass_fields__"):
            waiting.extend(getattr(value, name) for name in reversed(list(type(value).__dataclass_fields__)))
    return found


def graph_of_tensors(tensors: Any, *, values: bool = False, names: Names | None = None, frame=None) -> Graph:
    """The graph of tensors that have been computed, with names found in the frames around.

    Raises:
        TypeError: there is no tensor among what was given.
    """
    roots = tensors_in(tensors)
    if not roots:
        given = ", ".join(type(t).__name__ for t in tensors) or "nothing"
        raise TypeError(f"graph.of expects tensors, or a module and its inputs; got {given}")
    names = names or names_here(frame or sys._getframe(1))
    builder = Builder()
    walk = Walk(builder, names, values)
    with collector_paused():
        builder.graph.roots = [walk.root(tensor) for tensor in roots]
    builder.graph.title = ", ".join(t for t in (names.of_tensor(root) for root in roots) if t)
    return builder.graph


def execution_order(roots: Iterable[GradNode], known: Callable[[GradNode], bool] = lambda node: False) -> list[GradNode]:
    """The nodes behind `roots`, leaves left out, in the order they ran: what was computed first comes first.

    known: nodes for which it is true are left out, with all that is behind them.
    """
    seen: dict[GradNode, None] = {}
    stack = [node for node in roots if node.__class__ is not AccumulateGrad]
    while stack:
        node = stack.pop()
        if node in seen or known(node):
            continue
        seen[node] = None
        for edge in node.edges:
            if edge is not None and edge[0] not in seen and edge[0].__class__ is not AccumulateGrad:
                stack.append(edge[0])
    order = sorted(seen, key=operator.attrgetter("sequence"))
    position = {node: k for k, node in enumerate(order)}
    if all(position.get(edge[0], -1) < k for node, k in position.items() for edge in node.edges if edge is not None):
        return order
    return _by_dependence(order, position)


def _by_dependence(order: list[GradNode], position: dict[GradNode, int]) -> list[GradNode]:
    """A topological order, for graphs whose sequence numbers the user has changed."""
    waiting = {node: 0 for node in order}
    consumers: dict[GradNode, list[GradNode]] = {node: [] for node in order}
    for node in order:
        for edge in node.edges:
            if edge is not None and edge[0] in position:
                waiting[node] += 1
                consumers[edge[0]].append(node)
    ready = [node for node in reversed(order) if not waiting[node]]
    done = []
    while ready:
        node = ready.pop()
        done.append(node)
        for consumer in consumers[node]:
            waiting[consumer] -= 1
            if not waiting[consumer]:
                ready.append(consumer)
    return done


class Walk:
    """Reads autograd nodes into a builder."""

    def __init__(self, builder: Builder, names: Names, values: bool):
        self.builder, self.names, self.values = builder, names, values
        self._here: dict[GradNode, int] = {}  # vertices put down by the walk that is going on
        self._named: set[int] = set()  # ids of nodes of which the program holds a result
        self.calls: dict[int, int | None] = {}  # sequence number of a custom Function's node -> module call it ran in

    def root(self, tensor: Tensor) -> tuple[int, int]:
        """The vertex and output of a tensor, with everything behind it."""
        if tensor._view is not None:
            refresh(tensor)
        edge = tensor._edge
        if edge is None:
            return self._computed_without_gradient(tensor), 0
        self.nodes_behind([(edge[0], edge[1], tensor)])
        found = self.builder.handles.nodes.get(edge[0])
        output = self.builder.graph.nodes[found].outputs[edge[1]]
        if self.values:
            output.value = self.builder.output_of(tensor._array, values=True).value
        return found, edge[1]

    def nodes_behind(self, roots: list[tuple[GradNode, int, Tensor]]) -> None:
        """Put down the nodes that lead to some outputs, as far as they are not there yet."""
        table = self.builder.handles.nodes
        order = execution_order([root[0] for root in roots], lambda node: table.get(node) is not None)
        known = [(node, number, (tuple(t._array.shape), t._array.dtype)) for node, number, t in roots]
        known += [
            (tensor._edge[0], number, (tuple(tensor._array.shape), tensor._array.dtype))
            for (_, number), tensor in self.names.results.items()
        ]
        facts = output_facts(reversed(order), known)
        derive = self.values and len(order) <= MOST_WITH_VALUES
        self._here = {}
        self._named = {node for node, _ in self.names.results}
        for node in order:
            self._node(node, facts.get(node, []), derive)
        self._here = {}

    def _node(self, node: GradNode, facts: list, derive: bool) -> None:
        """Put down one node and the edges that lead into it."""
        builder, graph = self.builder, self.builder.graph
        inner = node.function if node.__class__ is CopySlices else node
        layout = layout_of(inner.__class__)
        first = len(graph.edges)
        edges = self._edges(node, layout)
        made = Node(
            len(graph.nodes), "operation", node.name(), layout.operator, self._outputs(node, facts),
            builder.saved_by(node) if layout.kinds or not layout.operator else [],
            _attributes(inner, layout) if layout.kinds else {}, builder.line(node.code, node.lasti),
            self.calls.get(node.sequence), node.sequence,
        )  # fmt: skip
        graph.nodes.append(made)
        for edge in edges:
            edge.target = made.id
        graph.edges += edges
        self._here[node] = made.id
        builder.handles.nodes.set(node, made.id)
        if isinstance(node.adjust, Freed):
            graph.freed = True
        if derive:
            self._derive(node, facts, len(graph.edges) - first)

    def _derive(self, node: GradNode, facts: list, count: int) -> None:
        """Put the local derivatives on the `count` edges that were made last, and saved values where they belong."""
        edges = self.builder.graph.edges[len(self.builder.graph.edges) - count :]
        put_derivatives(node, facts, edges)
        for edge in edges:
            if edge.kind == "gradient":
                self._value_of_operand(node, edge)

    def _value_of_operand(self, node: GradNode, edge: Edge) -> None:
        """A saved operand tells the value of what made it."""
        name = edge.name if edge.name in layout_of(node.__class__).kinds else ""
        saved = getattr(node, name, None) if name else None
        output = self.builder.graph.nodes[edge.source].outputs[edge.output]
        if output.value is None and isinstance(saved, Tensor):
            output.value = self.builder.output_of(saved._array, values=True).value

    def _outputs(self, node: GradNode, facts: list) -> list[Output]:
        """The results of a node, as far as they are known."""
        made = [
            Output(None, "", "", True) if fact is None else Output(fact[0], dtype_name(fact[1]), "", True) for fact in facts
        ]
        if id(node) in self._named or (node.extra is not None and node.extra.retain):
            for number, output in enumerate(made):
                self._tell(node, number, output)
        return made

    def _tell(self, node: GradNode, number: int, output: Output) -> None:
        """What is known of a result from a tensor that the program holds: name, value, retained gradient."""
        tensor = self.names.results.get((id(node), number))
        if tensor is not None:
            output.name = self.names.of_tensor(tensor)
            if self.values:
                output.value = self.builder.output_of(tensor._array, values=True).value
        retained = node.extra.retain.get(number) if node.extra is not None else None
        kept = retained() if retained is not None else None
        if kept is not None and kept._grad is not None:
            output.gradient = gradient_of(kept._grad._array)

    def _edges(self, node: GradNode, layout: Layout) -> list[Edge]:
        """The edges into a node that is about to be put down; their target is set when it is."""
        found = []
        for position, edge in enumerate(node.edges):
            if edge is None:
                constant = self._constant(node, layout, position)
                if constant is not None:
                    found.append(constant)
                continue
            if edge[0].__class__ is AccumulateGrad:
                source = self._tensor(edge[2])
            else:
                source = self._here.get(edge[0])
                if source is None:
                    source = self.builder.handles.nodes.get(edge[0])
            found.append(Edge(source, edge[1], -1, layout.place(position), layout.operand(position)))
        return found

    def _constant(self, node: GradNode, layout: Layout, position: int) -> Edge | None:
        """The edge from an operand without a gradient, if the node saved it."""
        name = "" if layout.listed else layout.operand(position)
        value = getattr(node, name, None) if name in layout.kinds else None
        if not isinstance(value, Tensor) or value._edge is not None:
            return None
        made = Edge(self._tensor(value), 0, -1, layout.place(position), name, "constant")
        cut = None if value._rare is None else value._rare.cut
        if cut is not None:
            made.kind, made.reason, made.site = "cut", cut.reason, self.builder.line(cut.code, cut.lasti)
        return made

    def _tensor(self, tensor: Tensor) -> int:
        return self.builder.tensor_vertex(tensor, self.names.of_tensor(tensor), self.values)

    def _computed_without_gradient(self, tensor: Tensor) -> int:
        """A root without a history: a leaf, an input, or the operation that cut its history off."""
        cut = None if tensor._rare is None else tensor._rare.cut
        if cut is None:
            return self._tensor(tensor)
        before = self.builder.add(Node(0, "input", "input", outputs=[Output(requires_grad=True)])).id
        site = self.builder.line(cut.code, cut.lasti)
        output = self.builder.output_of(tensor._array, self.names.of_tensor(tensor), False, self.values)
        made = self.builder.add(Node(0, "operation", cut.reason, outputs=[output], site=site)).id
        self.builder.handles.tensors.set(tensor, made)
        self.builder.connect((before, 0), made, 0, "", "cut", cut.reason, site)
        return made


def _attributes(node: Any, layout: Layout) -> dict[str, str]:
    """What a node keeps beside tensors: attributes and Python numbers."""
    found = {}
    for slot in layout.attributes:
        value = getattr(node, slot)
        if value is not None and not isinstance(value, np.ndarray):
            found[slot] = attribute_text(value)
    for slot in layout.saved:
        value = getattr(node, slot)
        if value.__class__ is Number:
            found[slot] = attribute_text(value)
    return found
