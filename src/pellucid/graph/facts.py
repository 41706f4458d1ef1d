"""Shapes and dtypes of what the nodes of a finished graph computed, which the nodes themselves do not keep.

A node knows what its derivative needs: saved operands and results, the shapes its formulas name, what broadcasting must
be undone. With the root's shape that gives the shapes of all operands, from the root backwards. What is still missing
then comes from the shape of the gradient that the node's own formula computes from zeros.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from pellucid.autograd.function_context import FunctionCtx
from pellucid.autograd.node import FREED, AccumulateGrad, Adjust, Node
from pellucid.autograd.saved import Packed
from pellucid.autograd.views import CopySlices
from pellucid.core.quiet import quiet
from pellucid.core.tensor import Tensor
from pellucid.graph.layouts import Layout, layout_of

__all__ = ["Facts", "fact_of", "known_outputs", "output_facts"]

Facts = list  # for each output of a node: (shape, NumPy dtype), or None where unknown


def fact_of(array: Any) -> tuple:
    """Shape and dtype of an array."""
    return tuple(array.shape), array.dtype


def output_facts(nodes: Iterable[Node], roots: Iterable[tuple[Node, int, tuple]]) -> dict[Node, Facts]:
    """Shape and dtype of every output of every node.

    Args:
        nodes: the nodes of the graph, consumers before what they consume.
        roots: (node, output number, fact) of the outputs that are known from outside.
    """
    facts: dict[Node, Facts] = {}
    for node, number, fact in roots:
        _note(facts, node, number, fact)
    for node in nodes:
        own = facts.get(node)
        if own is None:
            own = facts[node] = known_outputs(node)
        if node.adjust is None and own[0] is not None and layout_of(node.__class__).broadcast:
            for edge in node.edges:  # element by element, without broadcasting: operands are like the result
                if edge is not None and edge[0].__class__ is not AccumulateGrad:
                    _note(facts, edge[0], edge[1], own[0])
            continue
        wanted = [k for k, edge in enumerate(node.edges) if edge is not None and _unknown(facts, edge)]
        if wanted:
            for k, fact in zip(wanted, _operand_facts(node, own, wanted), strict=True):
                if fact is not None:
                    edge: Any = node.edges[k]
                    _note(facts, edge[0], edge[1], fact)
    return facts


def _unknown(facts: dict, edge: Any) -> bool:
    node, number = edge[:2]
    if node.__class__ is AccumulateGrad:
        return False
    own = facts.get(node)
    if own is None:
        own = facts[node] = known_outputs(node)
    return number < len(own) and own[number] is None


def _note(facts: dict, node: Node, number: int, fact: tuple) -> None:
    own = facts.get(node)
    if own is None:
        own = facts[node] = known_outputs(node)
    if number < len(own) and own[number] is None:
        own[number] = fact


def known_outputs(node: Node) -> Facts:
    """What a node says of its own outputs: kept facts, saved results."""
    if node.multi:
        kept = getattr(node, "facts", None)
        if kept is not None:
            return [None if fact is None else (tuple(fact[0]), fact[1]) for fact in kept]
    own: Facts = [None] * max(node.outputs, 1)
    for slot in layout_of(node.__class__).results:
        value = getattr(node, slot, None)
        if isinstance(value, np.ndarray) and not node.multi:
            own[0] = fact_of(value)
    return own


def _operand_facts(node: Node, own: Facts, wanted: list[int]) -> list:
    """Shape and dtype of the operands with these numbers, as far as the node can tell."""
    if isinstance(node, FunctionCtx):
        return [(tuple(node.input_facts[k][0]), node.input_facts[k][1]) for k in wanted]
    if isinstance(node, CopySlices):
        return [own[0] if k == 0 else None for k in wanted]
    layout = layout_of(node.__class__)
    told = [_told(node, layout, k, own[0]) if layout.operator else None for k in wanted]
    if any(fact is None for fact in told):
        computed = _computed(node, own)
        told = [computed[k] if fact is None else fact for k, fact in zip(wanted, told, strict=True)]
    return told


def _told(node: Any, layout: Layout, k: int, own: tuple | None) -> tuple | None:
    """What the saved values say of operand k."""
    if layout.listed:
        shapes = getattr(node, f"{layout.listed}_shape") if f"{layout.listed}_shape" in layout.facts else None
        return None if shapes is None or own is None else (tuple(shapes[k]), own[1])
    name = layout.operands[k]
    value = getattr(node, name) if name in layout.kinds else None
    if isinstance(value, Tensor):
        return fact_of(value._array)
    shape = getattr(node, f"{name}_shape") if f"{name}_shape" in layout.facts else None
    dtype = getattr(node, f"{name}_dtype") if f"{name}_dtype" in layout.facts else None
    adjust = node.adjust
    if own is None or adjust is FREED:
        return None
    if shape is None and layout.broadcast:
        undone = None if adjust is None else adjust.shapes[k]
        shape = own[0] if undone is None else undone
    if dtype is None:
        dtype = adjust.dtypes[k] if isinstance(adjust, Adjust) and adjust.dtypes[k] is not None else own[1]
    return None if shape is None else (tuple(shape), dtype)


def _computed(node: Node, own: Facts) -> list:
    """What the node's formula says: gradients of the operands from a gradient of zeros."""
    nothing: list = [None] * len(node.edges)
    if None in own or node.adjust is FREED or _is_packed(node):
        return nothing
    zeros = [np.zeros(shape, dtype) for shape, dtype in own]
    try:
        with quiet():
            grads = node.apply(zeros if node.multi else zeros[0], node.edges, True)
    except Exception:  # a formula may refuse, for example because a saved value was overwritten
        return nothing
    return [None if g is None else fact_of(g) for g in grads]


def _is_packed(node: Node) -> bool:
    """Whether reading the saved values would run a user's hook."""
    return any(getattr(node, slot, None).__class__ is Packed for slot in node.saved)
