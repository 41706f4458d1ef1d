"""The chain rule on a graph: the paths from one value to another, the product along each, and their sum.

    ∂z/∂a = Σ over all paths from a to z of the product of the local derivatives along the path

How many paths there are is counted by dynamic programming, and so is the sum; only some paths are listed. For tensors
with several elements the factors are Jacobians and the products matrix products, written in the order of the formula.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from pellucid.core.language import counted, say
from pellucid.core.tensor import Tensor
from pellucid.graph.derivatives import as_matrix
from pellucid.graph.pausing import collector_paused
from pellucid.graph.selecting import feeding
from pellucid.graph.snapshot import Edge, Graph
from pellucid.graph.walk import graph_of_tensors

__all__ = ["Chain", "Path", "chain", "chain_in"]

MOST_PATHS = 20
MOST_STEPS = 20_000  # of all listed paths together
MOST_FACTORS = 8  # of a path that are written out


@dataclass
class Path:
    """One path, from the result to the variable.

    names: of the values on the way, those without a name by number (`#3`); factors: the local derivative of each step,
    a number or a matrix as nested lists; product: that of all of them. Factors and product are None where a local
    derivative is not known.
    """

    names: list[str]
    factors: list[Any]
    product: Any

    def __str__(self) -> str:
        steps = _shortened([f"∂{z}/∂{a}" for z, a in zip(self.names, self.names[1:], strict=False)])
        if self.product is None:
            return steps
        return f"{steps} = {_shortened(list(map(_text, self.factors)))} = {_text(self.product)}"


@dataclass
class Chain:
    """The derivative of one value with respect to another, path by path.

    count: how many paths there are. paths: the first of them. total: the sum over all, listed or not, as a number or a
    Jacobian in nested lists; None where a local derivative is not known (the graph was taken without values, is too
    large, or has been freed).
    """

    result: str
    variable: str
    count: int
    paths: list[Path]
    total: Any

    def __str__(self) -> str:
        derivative = f"∂{self.result}/∂{self.variable}"
        if not self.count:
            none = say("no path leads from {variable} to {result}", variable=self.variable, result=self.result)
            return f"{derivative}: {none}"
        paths = counted("{n} path", "{n} paths", self.count)
        value = "" if self.total is None else f" = {_text(self.total)}"
        lines = [derivative + value + say(", the sum over {paths}:", paths=paths)]
        lines += [f"  {path}" for path in self.paths]
        if self.count > len(self.paths):
            lines.append("  ... " + say("and {n} more", n=f"{self.count - len(self.paths):,}"))
        if self.total is None:
            lines.append("  " + say("(not all local derivatives are known: take the graph with values=True before backward)"))
        return "\n".join(lines)


def _shortened(parts: list[str]) -> str:
    """A product of at most MOST_FACTORS written factors."""
    if len(parts) > MOST_FACTORS:
        parts = [*parts[:3], say("... ({n} more) ...", n=len(parts) - 5), *parts[-2:]]
    return " * ".join(parts) or "1"


def _text(value: Any) -> str:
    if not isinstance(value, list):
        return f"{value:g}"
    array = np.asarray(value)
    if array.size > 16:
        return f"[{array.shape[0]} x {array.shape[1]}]"
    return "[" + ", ".join("[" + ", ".join(f"{x:g}" for x in row) + "]" for row in array) + "]"


def chain(result: Tensor, variable: Tensor, *, most: int = MOST_PATHS) -> Chain:
    """The derivative of a tensor with respect to another one, path by path through the graph.

    Args:
        result, variable: tensors of at most 64 elements; larger ones have paths but no numbers.
        most: how many paths to list.

    Raises:
        ValueError: `variable` is not in the graph of `result`.
    """
    return chain_in(graph_of_tensors([result], values=True, frame=sys._getframe(1)), result, variable, most)


@collector_paused()
def chain_in(graph: Graph, result: Any, variable: Any, most: int = MOST_PATHS) -> Chain:
    """`Graph.chain`: see there."""
    end, start = _place(graph, result), _place(graph, variable)
    into = feeding(graph)
    counts = _path_counts(graph, into, start, end)
    names = _label(graph, *end), _label(graph, *start)
    count = counts.get(end[0], 0) if end != start else 1
    paths = [_path(graph, edges, end, start) for edges in _paths(into, counts, start, end, most)]
    return Chain(*names, count, paths, _plain(_total(into, counts, start, end)) if count else 0.0)


def _place(graph: Graph, what: Any) -> tuple[int, int]:
    """The node and output that a name, a tensor or a node's number stands for."""
    if isinstance(what, str):
        for node in reversed(graph.nodes):
            for number, output in enumerate(node.outputs):
                if output.name == what:
                    return node.id, number
        known = ", ".join(sorted({output.name for node in graph.nodes for output in node.outputs if output.name}))
        raise ValueError(f"nothing in the graph is called {what!r}; known names are {known or 'none'}")
    if isinstance(what, int):
        if not 0 <= what < len(graph.nodes):
            raise ValueError(f"there is no node {what}: the graph has nodes 0 to {len(graph.nodes) - 1}")
        return what, 0
    if isinstance(what, Tensor):
        return _place_of_tensor(graph, what)
    raise TypeError(f"expected a name, a tensor or a node's number, got {type(what).__name__}")


def _place_of_tensor(graph: Graph, tensor: Tensor) -> tuple[int, int]:
    table, edge = graph._handles, tensor._edge
    if table is not None:
        vertex = table.tensors.get(tensor) if edge is None else table.nodes.get(edge[0])
        if vertex is not None:
            return vertex, 0 if edge is None else edge[1]
    shape = list(tensor.shape)
    raise ValueError(f"the tensor of shape {shape} is not in this graph: the result was not computed from it")


def _label(graph: Graph, node: int, output: int) -> str:
    outputs = graph.nodes[node].outputs
    return (outputs[output].name if output < len(outputs) else "") or f"#{node}"


def _path_counts(graph: Graph, into: list[list[Edge]], start: tuple[int, int], end: tuple[int, int]) -> dict[int, int]:
    """How many paths lead from `start` to each node between it and `end`; nodes that none reaches are left out."""
    counts = {start[0]: 1}
    for node in range(start[0] + 1, end[0] + 1):
        found = sum(counts.get(edge.source, 0) for edge in into[node] if _on_path(edge, start))
        if found:
            counts[node] = found
    return counts


def _on_path(edge: Edge, start: tuple[int, int]) -> bool:
    return edge.kind == "gradient" and (edge.source != start[0] or edge.output == start[1])


def _paths(into: list[list[Edge]], counts: dict[int, int], start: tuple, end: tuple, most: int) -> list[list[Edge]]:
    """The first paths, each as its edges from the result back to the variable."""
    found: list[list[Edge]] = []
    steps = 0
    stack: list[tuple[int, tuple]] = [(end[0], ())]  # a node, and the edges that led to it as a linked list
    while stack and len(found) < most and steps < MOST_STEPS:
        node, trail = stack.pop()
        if node == start[0]:
            found.append(_unlinked(trail))
            steps += len(found[-1])
            continue
        for edge in reversed(into[node]):
            if edge.source in counts and _on_path(edge, start):
                stack.append((edge.source, (edge, trail)))
    return found


def _unlinked(trail: tuple) -> list[Edge]:
    edges = []
    while trail:
        edges.append(trail[0])
        trail = trail[1]
    return edges[::-1]


def _path(graph: Graph, edges: list[Edge], end: tuple[int, int], start: tuple[int, int]) -> Path:
    """The names, factors and product of a path."""
    names = [_label(graph, *end), *(_label(graph, edge.source, edge.output) for edge in edges)]
    outputs = [end[1], *(edge.output for edge in edges)]
    factors = [_factor(edge, output) for edge, output in zip(edges, outputs, strict=False)]
    if any(factor is None for factor in factors):
        return Path(names, [None] * len(factors), None)
    product = np.eye(1) if not factors else factors[0]
    for factor in factors[1:]:
        product = product @ factor
    return Path(names, [_plain(factor) for factor in factors], _plain(product))


def _factor(edge: Edge, output: int) -> np.ndarray | None:
    return None if edge.derivative is None else as_matrix(edge.derivative, output)


def _total(into: list[list[Edge]], counts: dict[int, int], start: tuple, end: tuple) -> np.ndarray | None:
    """The sum over all paths: gradients from the result back, each node once, as the engine does it."""
    if start == end:
        return np.eye(1)
    sums: dict[int, dict[int, Any]] = {end[0]: {end[1]: None}}  # node -> output -> derivative; None: the identity
    for node in range(end[0], start[0], -1):
        for output, arrived in sums.pop(node, {}).items():
            for edge in into[node]:
                if edge.source in counts and _on_path(edge, start):
                    factor = _factor(edge, output)
                    if factor is None:
                        return None
                    part = factor if arrived is None else arrived @ factor
                    at = sums.setdefault(edge.source, {})
                    at[edge.output] = part if edge.output not in at else at[edge.output] + part
    return sums.get(start[0], {}).get(start[1])


def _plain(matrix: np.ndarray | None) -> Any:
    """A 1 x 1 matrix as a number, others as nested lists."""
    if matrix is None:
        return None
    return float(matrix[0, 0]) if matrix.shape == (1, 1) else matrix.tolist()
