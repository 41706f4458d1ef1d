"""Parts of a graph: what is behind some outputs, what nothing uses, who feeds whom."""

from __future__ import annotations

import copy
from collections.abc import Iterable

from pellucid.graph.snapshot import Edge, Graph

__all__ = ["behind", "consumers", "feeding", "leading_to", "sinks"]


def feeding(graph: Graph) -> list[list[Edge]]:
    """For each node the edges that lead into it, by operand number."""
    found: list[list[Edge]] = [[] for _ in graph.nodes]
    for edge in graph.edges:
        found[edge.target].append(edge)
    for edges in found:
        edges.sort(key=_input)
    return found


def _input(edge: Edge) -> int:
    return edge.input


def consumers(graph: Graph) -> list[list[Edge]]:
    """For each node the edges that lead out of it."""
    found: list[list[Edge]] = [[] for _ in graph.nodes]
    for edge in graph.edges:
        found[edge.source].append(edge)
    return found


def sinks(graph: Graph) -> list[tuple[int, int]]:
    """The outputs of operations at which the computation ends: those that require grad and from which no gradient path
    leads on, else those that nothing uses; among them those with a name, if there are any."""
    passed_on = {edge.source for edge in graph.edges if edge.kind == "gradient"}
    used = {edge.source for edge in graph.edges}
    results = [node for node in graph.nodes if node.kind == "operation" and node.outputs and not node.inside]
    found = [n for n in results if n.id not in passed_on and any(o.requires_grad for o in n.outputs)]
    found = found or [n for n in results if n.id not in used]
    named = [n for n in found if any(o.name for o in n.outputs)]
    return [(node.id, 0) for node in named or found]


def leading_to(graph: Graph, roots: Iterable[tuple[int, int]]) -> set[int]:
    """The nodes that some outputs were computed from, those included."""
    into = feeding(graph)
    wanted: set[int] = set()
    stack = [node for node, _ in roots]
    while stack:
        node = stack.pop()
        if node not in wanted:
            wanted.add(node)
            stack.extend(edge.source for edge in into[node] if edge.source not in wanted)
    return wanted


def behind(graph: Graph, roots: Iterable[tuple[int, int]]) -> Graph:
    """The part of a graph that some outputs were computed from, cut-off branches included, as a graph of its own."""
    roots = list(roots)
    wanted = leading_to(graph, roots)
    numbers = {old: new for new, old in enumerate(sorted(wanted))}
    part = copy.copy(graph)
    part.nodes = [copy.copy(graph.nodes[old]) for old in numbers]
    for new, node in enumerate(part.nodes):
        node.id = new
    part.edges = [copy.copy(edge) for edge in graph.edges if edge.target in wanted]
    for edge in part.edges:
        edge.source, edge.target = numbers[edge.source], numbers[edge.target]
    part.roots = [(numbers[node], output) for node, output in roots]
    part._handles = None
    return part
