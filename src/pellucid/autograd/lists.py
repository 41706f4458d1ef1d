"""The short road of operators on one list of tensors (`cat`) and of those that return several results (`split`).

As in the code that `templates.py` writes: plain real tensors of one dtype, nothing watching. Both functions return None
where the general road has to be taken.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from pellucid.autograd.call import carry_cut
from pellucid.autograd.declaration import Operator
from pellucid.autograd.node import Node, edge_to, leaf_edge, next_sequence
from pellucid.autograd.views import Kind, Step, refresh, take_view
from pellucid.core.errors import fail
from pellucid.core.modes import RECORD, modes
from pellucid.core.quiet import quiet
from pellucid.core.sites import caller
from pellucid.core.tensor import Parameter, Tensor, wrap

__all__ = ["joined", "pieces", "short_form"]

PLAIN = (np.dtype(np.float32), np.dtype(np.float64))


def short_form(op: Operator) -> str | None:
    """Which of the two functions (by its name in generated code) may stand before the general road of an operator, if any."""
    if len(op.operands) != 1 or any(kind not in ("attribute", "fact") for kind in op.node.kinds.values()):
        return None
    if any(p.keyword for p in op.parameters):
        return None
    if op.operands[0].kind == "arrays":
        return "joined_list" if op.outputs is not None and len(op.outputs) == 1 else None
    return "pieces_of_list" if op.outputs is None and op.operands[0].kind == "array" else None


def joined(op: Operator, tensors, *attributes) -> Tensor | None:
    """Call an operator on a list of tensors."""
    road = modes.road
    if not road:
        return None
    arrays, kind, need, rare = [], None, False, False
    for t in tensors:
        if t.__class__ is not Tensor and t.__class__ is not Parameter:
            return None
        array = t._array
        if array.dtype is not kind:
            if kind is not None or array.dtype not in PLAIN:
                return None
            kind = array.dtype
        if t._view is not None:
            refresh(t)
        need, rare = need or t._requires_grad, rare or t._rare is not None
        arrays.append(array)
    if kind is None:
        return None
    result, attributes = _run(op, arrays, tensors, attributes)
    made = wrap(np.asarray(result))
    if need and road is RECORD:
        node = _node(op, [(t._edge or leaf_edge(t)) if t._requires_grad else None for t in tensors], attributes)
        node.fact = made._array.shape, made._array.dtype
        for name, what in op.node.kinds.items():
            if what == "fact":
                setattr(node, name, tuple([getattr(a, name.rpartition("_")[2]) for a in arrays]))
        made._edge, made._requires_grad = edge_to(node), True
    elif need or rare:
        carry_cut(made, tensors, need, op.name)
    return made


def pieces(op: Operator, tensor, *attributes) -> tuple[Tensor, ...] | None:
    """Call an operator that takes one tensor and returns several."""
    road = modes.road
    if not road or (tensor.__class__ is not Tensor and tensor.__class__ is not Parameter):
        return None
    array = tensor._array
    if array.dtype not in PLAIN:
        return None
    if tensor._view is not None:
        refresh(tensor)
    results, attributes = _run(op, array, tensor, attributes)
    made = tuple([wrap(r) for r in results])
    if tensor._requires_grad and road is RECORD:
        node: Any = _node(op, [tensor._edge or leaf_edge(tensor)], attributes)
        node.outputs, node.facts = len(made), tuple([(r.shape, r.dtype) for r in results])
        for name, what in op.node.kinds.items():
            if what == "fact":
                setattr(node, name, getattr(array, name.rpartition("_")[2]))
        for number, t in enumerate(made):
            t._edge, t._requires_grad = edge_to(node, number), True
    elif tensor._requires_grad or tensor._rare is not None:
        for t in made:
            carry_cut(t, (tensor,), tensor._requires_grad, op.name)
    if op.multi_view:
        for number, t in enumerate(made):
            take_view(t, tensor, _step(op, attributes, number), op.node_name, Kind.MULTI)
    return made


def _run(op: Operator, values, operand, attributes: tuple):
    """The result, and the attributes in canonical form."""
    try:
        if op.canonical is not None:
            attributes = op.canonical(values, *attributes)
            attributes = (attributes,) if len(op.attributes) == 1 else attributes
        if op.exact:
            return op.forward(np, values, *attributes), attributes
        with quiet():
            return op.forward(np, values, *attributes), attributes
    except Exception as error:
        fail(op, error, (operand, *attributes))


def _node(op: Operator, edges: list, attributes: tuple) -> Node:
    """The node of a call, with its attributes."""
    node = object.__new__(op.node)
    node.edges, node.adjust, node.extra, node.sequence = tuple(edges), None, None, next_sequence()
    node.code, node.lasti = caller(sys._getframe(3))
    for name, value in zip(op.attributes, attributes, strict=True):
        if name in op.node.kinds:
            setattr(node, name, value)
    return node


def _step(op: Operator, attributes: tuple, number: int) -> Step:
    return Step(lambda t: op.public(t, *attributes)[number], lambda a: op.forward(np, a, *attributes)[number])
