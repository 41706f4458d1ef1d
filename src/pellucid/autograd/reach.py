"""Which nodes lie behind which, and before them: walks over a graph for those who explain it. The engine has its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from pellucid.autograd.node import Node

__all__ = ["consumers_of", "nodes_behind", "upwards"]


def nodes_behind(roots: Iterable[Node], most: int) -> list[Node]:
    """The nodes that some nodes lead to, themselves included, at most so many."""
    found: dict[Node, None] = {}
    waiting = list(roots)
    while waiting and len(found) < most:
        node = waiting.pop()
        if node not in found:
            found[node] = None
            waiting += [edge[0] for edge in node.edges if edge is not None]
    return list(found)


def consumers_of(nodes: Iterable[Node]) -> dict[Node, list[Node]]:
    """For each node those among some nodes that used its results."""
    found: dict[Node, list[Node]] = {}
    for node in nodes:
        for edge in node.edges:
            if edge is not None:
                found.setdefault(edge[0], []).append(node)
    return found


def upwards(starts: Iterable[Node], consumers: dict[Node, list[Node]]) -> Iterator[Node]:
    """The nodes that lead to some nodes, nearest first, these included."""
    waiting = list(dict.fromkeys(starts))
    seen = set(waiting)
    for node in waiting:  # grows
        yield node
        for consumer in consumers.get(node, ()):
            if consumer not in seen:
                seen.add(consumer)
                waiting.append(consumer)
