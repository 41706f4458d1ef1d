"""Local derivatives: what lies on the edges of a textbook's graph, worked out by running a node's own formula.

A node with an output of m elements is run once for each of them, with a gradient of a single one: row by row that is
its Jacobian with respect to each operand. Large ones are left out.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from pellucid.autograd.node import AccumulateGrad, Freed
from pellucid.autograd.node import Node as GradNode
from pellucid.core.quiet import quiet
from pellucid.graph.building import plain_value
from pellucid.graph.layouts import layout_of
from pellucid.graph.snapshot import Derivative, Edge

__all__ = ["MOST_ENTRIES", "as_matrix", "local_derivatives", "put_derivatives"]

MOST_ENTRIES = 4096  # of one Jacobian
MOST_ROWS = 64


def local_derivatives(node: GradNode, facts: list) -> dict[int, Derivative]:
    """The Jacobians of a node's outputs with respect to its operands, by operand number.

    facts: shape and dtype of each output. Left out is what is large, complex, released, or refuses to be computed.
    """
    if isinstance(node.adjust, Freed) or not facts or any(fact is None for fact in facts):
        return {}
    sizes = [math.prod(shape) for shape, _ in facts]
    if sum(sizes) > MOST_ROWS or any(dtype.kind == "c" for _, dtype in facts):
        return {}
    rows: list[list[tuple]] = []  # for each output the gradients of the operands, one tuple for each element
    try:
        with quiet():
            for number, size in enumerate(sizes):
                rows.append([_run(node, facts, number, element) for element in range(size)])
    except Exception:  # the formula refuses, for example because a saved value was overwritten
        return {}
    found = {}
    for position, edge in enumerate(node.edges):
        if edge is not None:
            blocks = [_packed(_block(edge, part, position), facts[k][0]) for k, part in enumerate(rows)]
            if any(block is not None for block in blocks):
                found[position] = blocks[0] if not node.multi else Derivative("outputs", blocks)
    return {position: derivative for position, derivative in found.items() if derivative is not None}


def put_derivatives(node: GradNode, facts: list, edges: list[Edge]) -> None:
    """Put the local derivatives of a node on the edges that lead into its vertex."""
    place = layout_of(node.__class__).place
    derivatives = {place(position): found for position, found in local_derivatives(node, facts).items()}
    for edge in edges:
        if edge.kind == "gradient":
            edge.derivative = derivatives.get(edge.input)


def _run(node: GradNode, facts: list, number: int, element: int) -> tuple:
    """The gradients of the operands, from a gradient that is one at a single element of one output."""
    shape, dtype = facts[number]
    grad = np.zeros(shape, dtype)
    grad.flat[element] = 1
    given: Any = grad
    if node.multi:
        given = [None] * node.outputs
        given[number] = grad
    return tuple(None if g is None else np.array(g) for g in node.apply(given, node.edges, True))


def _block(edge: Any, rows: list[tuple], position: int) -> tuple[np.ndarray, tuple] | None:
    """The Jacobian of one output with respect to one operand, with the operand's shape; None where it is too large."""
    grads = [row[position] for row in rows]
    known = next((g for g in grads if g is not None), None)
    if known is None:
        if edge[0].__class__ is not AccumulateGrad:
            return None
        known = edge[2]._array
    if known.size * len(rows) > MOST_ENTRIES or known.dtype.kind == "c":
        return None
    flat = [np.zeros(known.size, known.dtype) if g is None else g.ravel() for g in grads]
    matrix = np.array(flat) if flat else np.zeros((0, known.size), known.dtype)
    return matrix, known.shape


def _packed(block: tuple[np.ndarray, tuple] | None, shape: tuple) -> Derivative | None:
    """A Jacobian in its shortest form."""
    if block is None:
        return None
    matrix, operand_shape = block
    if matrix.shape == (1, 1):
        return Derivative("scalar", plain_value(matrix.reshape(())))
    if shape == operand_shape:
        diagonal = np.diagonal(matrix)
        if np.array_equal(matrix, np.diag(diagonal), equal_nan=matrix.dtype.kind == "f"):
            return Derivative("diagonal", plain_value(diagonal))
    return Derivative("matrix", plain_value(matrix))


def as_matrix(derivative: Derivative, output: int = 0) -> np.ndarray | None:
    """A local derivative as a matrix in double precision; None where it was too large to keep."""
    if derivative.kind == "outputs":
        block = derivative.values[output]
        return None if block is None else as_matrix(block)
    if derivative.kind == "diagonal":
        return np.diag(np.asarray(derivative.values, np.float64))
    return np.atleast_2d(np.asarray(derivative.values, np.float64))
