"""Shapes and dtypes of what the nodes of a graph computed."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pellucid.autograd.node import Node

__all__ = ["Facts", "fact_of", "output_facts"]

Facts = list  # for each output of a node: (shape, NumPy dtype), or None where unknown


def fact_of(array: Any) -> tuple:
    """Shape and dtype of an array."""
    return tuple(array.shape), array.dtype


def output_facts(nodes: Iterable[Node], roots: Iterable[tuple[Node, int, tuple]]) -> dict[Node, Facts]:
    """Shape and dtype of every output of every node.

    Args:
        nodes: the nodes of the graph.
        roots: (node, output number, fact) of the outputs that are known from outside.
    """
    facts = {node: _known(node) for node in nodes}
    for node, number, fact in roots:
        own = facts.setdefault(node, _known(node))
        if number < len(own) and own[number] is None:
            own[number] = fact
    return facts


def _known(node: Node) -> Facts:
    """What a node keeps of its outputs; a custom Function keeps nothing of outputs that are no tensors."""
    kept = getattr(node, "facts", None) or [getattr(node, "fact", None)]
    known = [None if fact is None else (tuple(fact[0]), fact[1]) for fact in kept]
    return known + [None] * (max(node.outputs, 1) - len(known))
