"""`graph.record`: the graph of a program as it runs, with what autograd does not keep.

Beside the operations that have a derivative it sees those that have none, constants and inputs, where gradient paths
are cut, the module that was running, gradients as they pass in a backward, and the operation that failed.

It stands around operators (`modes.around`) to see operands before they are written to, and hears of results as an
observer (`modes.observers`). What it keeps is plain data; tensors and nodes it knows by id, weakly.
"""

from __future__ import annotations

import functools
import sys
from typing import Any

from pellucid.autograd.around import Work
from pellucid.autograd.declaration import Operator
from pellucid.autograd.engine import current_task
from pellucid.autograd.node import next_sequence
from pellucid.autograd.views import CopySlices, refresh
from pellucid.core.modes import modes
from pellucid.core.sites import caller
from pellucid.core.tensor import Number, Tensor
from pellucid.graph.building import Builder, attribute_text, gradient_of
from pellucid.graph.cost_rules import Call, cost_of
from pellucid.graph.derivatives import put_derivatives
from pellucid.graph.facts import fact_of
from pellucid.graph.modulecalls import ModuleCalls
from pellucid.graph.names import Names, local_names
from pellucid.graph.snapshot import Graph, Node
from pellucid.graph.walk import MOST_WITH_VALUES, Walk

__all__ = ["Recorder"]


class Source:
    """Where an operand came from, as known before the operator ran.

    needs: whether it requires grad; cut: the detachment that it is the result of.
    """

    __slots__ = ("at", "cut", "needs")

    def __init__(self, at: tuple[int, int], needs: bool, cut: Any = None):
        self.at, self.needs, self.cut = at, needs, cut


class Recorder:
    """Puts down what runs in this thread. `graph` is what has been put down so far.

    values: keep small values and local derivatives too.
    limit: how many vertices to keep at most; at more, all is forgotten and counted in `dropped`.
    """

    def __init__(self, values: bool = False, limit: int | None = None):
        self.values, self.limit = values, limit
        self.modules = ModuleCalls()
        self.modules.on_inputs = self._note_inputs
        self.failed: tuple[int, int] | None = None  # (id of the exception, vertex) of the operation that failed last
        self._functions: list[str] = []  # custom Functions whose forward is running
        self._sources: dict[int, Source] = {}  # by id of the operand, for the operator that is running
        self._edges: tuple = ()  # of a tensor about to be written to, and of its base
        self._start(0)

    def _start(self, dropped: int) -> None:
        self.builder = Builder()
        self.builder.graph.calls = self.modules.calls
        self.builder.graph.dropped = dropped
        self.walk = Walk(self.builder, Names(), self.values)
        self.first = next_sequence()  # nodes with lower numbers were there before

    def restart(self, dropped: int = 0) -> None:
        """Begin anew."""
        self.modules.restart()
        self._start(dropped)

    @property
    def graph(self) -> Graph:
        """What has been put down so far."""
        return self.builder.graph

    # --- on and off --------------------------------------------------------------------------------------------------

    def __enter__(self):
        self.modules.__enter__()
        modes.around = (*modes.around, self._around)
        modes.observers = (*modes.observers, self._observe)
        modes.update()
        return self

    def __exit__(self, *exception):
        modes.around = tuple(a for a in modes.around if a != self._around)
        modes.observers = tuple(o for o in modes.observers if o != self._observe)
        modes.update()
        self.modules.__exit__()

    # --- what stands around calls ------------------------------------------------------------------------------------

    def _around(self, work: Work, subject: Any, arguments: tuple, call: Any) -> Any:
        if work is Work.OPERATOR or work is Work.IN_PLACE:
            return self._operator(work, subject, arguments, call)
        if work is Work.FUNCTION:
            self.walk.calls[next_sequence() - 1] = self.modules.current  # its node has just taken its number
            self._functions.append(subject.__name__)
            try:
                return call()
            finally:
                self._functions.pop()
        self._gradient(work, subject, arguments[0])
        return call()

    def _operator(self, work: Work, op: Operator, values: tuple, call: Any) -> Any:
        """Look at the operands, then run the operator; the observer hears of its result."""
        outer = self._sources, self._edges
        try:
            self._sources = self._sources_of(values)
            self._edges = _edges_of(values[0]) if work is Work.IN_PLACE else ()
            return call()
        except Exception as error:
            if self.failed is None or self.failed[0] != id(error):
                self.failed = id(error), self.put_failed(op.name, _named(op, values))
            raise
        finally:
            self._sources, self._edges = outer

    def _gradient(self, work: Work, subject: Any, grad: Any) -> None:
        """Note the gradient that arrives at a node or a leaf."""
        table = self.builder.handles
        vertex = table.nodes.get(subject) if work is Work.NODE else table.tensors.get(subject)
        if vertex is None or grad is None:
            return
        outputs = self.graph.nodes[vertex].outputs
        for output, part in zip(outputs, grad if isinstance(grad, list) else [grad], strict=False):
            if part is not None:
                output.gradient = gradient_of(part._array if isinstance(part, Tensor) else part)

    # --- operands ----------------------------------------------------------------------------------------------------

    def _sources_of(self, values: Any) -> dict[int, Source]:
        """Where the tensors among some arguments come from; those without a name get that of the plain variable which
        holds them where they are used."""
        found = {id(tensor): self.source(tensor) for tensor in _tensors(values)}
        nodes = self.graph.nodes
        unnamed = {key: nodes[at.at[0]].outputs[at.at[1]] for key, at in found.items()}
        unnamed = {key: output for key, output in unnamed.items() if not output.name}
        if unnamed:
            held = local_names(sys._getframe(1))
            for key, output in unnamed.items():
                output.name = held.get(key, "")
        return found

    def _note_inputs(self, arguments: list[tuple[str, Any]]) -> None:
        """Put down what a model is called with; a tensor without a name gets that of the parameter."""
        for name, value in arguments:
            if isinstance(value, Tensor):
                vertex, number = self.source(value).at
                output = self.graph.nodes[vertex].outputs[number]
                output.name = output.name or name

    def source(self, tensor: Tensor) -> Source:
        """Where an operand comes from; what is behind it is put down if it is not there yet."""
        _bring_up_to_date(tensor)
        table, edge = self.builder.handles, tensor._edge
        if edge is not None:
            if table.nodes.get(edge[0]) is None:
                self.walk.nodes_behind([(edge[0], edge[1], tensor)])
            return Source((table.nodes.get(edge[0]), edge[1]), True)
        if tensor._requires_grad:
            return Source((self._tensor(tensor), 0), True)
        made = table.arrays.get(tensor._array)
        if made is None:
            return Source((self._tensor(tensor), 0), False)
        # the same array with a gradient and now without: this very tensor is what detach() or .data returned
        detached = self.graph.nodes[made[0]].outputs[made[1]].requires_grad
        return Source(made, False, None if tensor._rare is None or not detached else tensor._rare.cut)

    def _tensor(self, tensor: Tensor) -> int:
        """The vertex of a leaf or input."""
        return self.builder.tensor_vertex(tensor, values=self.values)

    # --- results -----------------------------------------------------------------------------------------------------

    def _observe(self, op: Operator, bound: list, raw: list, made: list) -> Node:
        """The observer: an operator has run. Returns its vertex."""
        if self.limit is not None and len(self.graph.nodes) >= self.limit:
            self._forget(bound)
        inplace = any(m is value for m in made for value in bound)
        node = self._node_of(op, made, inplace)
        known = None if node is None else self.builder.handles.nodes.get(node)
        results = _in_node_order(op, made)
        if known is None:
            vertex = self._put_down(op, bound, results, node)
        else:  # what makes a view of a base that was written to has brought it here already
            vertex = self.graph.nodes[known]
        vertex.operator, vertex.inplace = op.name, inplace
        counted = cost_of(op, Call(op, raw, [t._array for t in made], current_task() is not None))
        vertex.flops = None if counted is None else counted[1]
        vertex.attributes = vertex.attributes or _attributes(op, bound, raw)
        self._put_place(vertex)
        shown = [results[0]._view.base] if isinstance(node, CopySlices) else results
        for position, result in enumerate(shown):
            self.builder.handles.arrays.set(result._array, (vertex.id, position))
        return vertex

    def _put_place(self, vertex: Node) -> None:
        """Note where in the program's structure a vertex stands."""
        vertex.call = self.modules.current
        vertex.inside = self._functions[-1] if self._functions else ""
        vertex.phase = "forward" if current_task() is None else "backward"

    def _forget(self, bound: list) -> None:
        """Begin anew because there is too much; the operands of the operator that has just run are kept."""
        self.restart(self.graph.dropped + len(self.graph.operations))
        self._sources = self._sources_of(bound)

    def _node_of(self, op: Operator, made: list, inplace: bool) -> Any:
        """The node that an operator's call left behind; None if it was not recorded."""
        if self._edges:
            new = [edge[0] for edge, old in zip(_edges_of(made[0]), self._edges, strict=True) if edge is not old]
            return new[-1] if new else None
        if inplace:
            return None
        return next((t._edge[0] for t in made if t._edge is not None and getattr(t._edge[0], "operator", None) is op), None)

    def _put_down(self, op: Operator, bound: list, results: list, node: Any) -> Node:
        """A vertex for a call, and the edges into it."""
        builder = self.builder
        shown = [results[0]._view.base] if isinstance(node, CopySlices) else results
        outputs = [builder.output_of(t._array, "", t._requires_grad, self.values) for t in shown]
        vertex = builder.add(Node(0, "operation", op.name if node is None else node.name(), op.name, outputs))
        vertex.site = builder.line(*(caller(sys._getframe(3)) if node is None else (node.code, node.lasti)))
        if node is not None:
            vertex.saved, vertex.sequence = builder.saved_by(node), node.sequence
            builder.handles.nodes.set(node, vertex.id)
        first = len(self.graph.edges)
        for operand in _operands(op, bound):
            self._connect(op, node, operand, vertex)
        if self.values and node is not None and len(self.graph.nodes) <= MOST_WITH_VALUES:
            facts = [fact_of(t._array) for t in shown[: node.outputs]]
            put_derivatives(node, facts, self.graph.edges[first:])
        return vertex

    def _connect(self, op: Operator, node: Any, operand: Operand, vertex: Node) -> None:
        """The edge from an operand: with a gradient, constant, or cut and why."""
        source = self._sources.get(id(operand.tensor)) or self.source(operand.tensor)
        kind, reason, site = "constant", "", None
        edge = None if node is None or operand.edge is None else node.edges[operand.edge]
        if edge is not None:
            kind = "gradient"
        elif source.needs:
            off = modes.inference or not modes.grad_enabled
            mode = "inference_mode" if modes.inference else "no_grad"
            kind, reason, site = "cut", mode if off and op.differentiable else op.name, vertex.site
        elif source.cut is not None:
            kind, reason, site = "cut", source.cut.reason, self.builder.line(source.cut.code, source.cut.lasti)
        self.builder.connect(source.at, vertex.id, operand.position, operand.name, kind, reason, site)

    def put_failed(self, operation: str, operands: list[tuple[str, Tensor]]) -> int:
        """A vertex without outputs for an operation that failed, and the edges into it."""
        vertex = self.builder.add(Node(0, "operation", operation, operation))
        vertex.site = self.builder.line(*caller(sys._getframe(1)))
        self._put_place(vertex)
        for position, (name, tensor) in enumerate(operands):
            at = self.source(tensor).at
            self.builder.connect(at, vertex.id, position, name, "gradient" if tensor._requires_grad else "constant")
        return vertex.id


# --- operands of a call -----------------------------------------------------------------------------------------------


class Operand:
    """A tensor among the operands of a call: its number among them, its name, the number of its edge in the node."""

    __slots__ = ("edge", "name", "position", "tensor")

    def __init__(self, tensor: Tensor, position: int, name: str, edge: int | None):
        self.tensor, self.position, self.name, self.edge = tensor, position, name, edge


@functools.lru_cache(maxsize=2000)
def _plan(op: Operator) -> list[tuple[int, str, bool, bool]]:
    """The operands of an operator: number among its parameters, name, whether it is a list, whether edges stand for it."""
    inputs = {p.name for p in op.inputs}
    return [
        (index, p.name, p.kind in ("arrays", "indices"), p.name in inputs)
        for index, p in enumerate(op.parameters)
        if p.kind != "attribute"
    ]


def _operands(op: Operator, bound: list) -> list[Operand]:
    """The tensors among the operands of a call."""
    found: list[Operand] = []
    position = edge = 0
    for index, name, listed, has_edge in _plan(op):
        for k, item in enumerate(bound[index] if listed else (bound[index],)):
            if isinstance(item, Tensor):
                found.append(Operand(item, position, f"{name}[{k}]" if listed else name, edge if has_edge else None))
            position += 1
            edge += has_edge
    return found


def _named(op: Operator, values: tuple) -> list[tuple[str, Tensor]]:
    """The tensors an operator was called with, by the names of its parameters."""
    found = []
    for p, value in zip(op.parameters, values, strict=False):
        items = [(f"{p.name}[{k}]", v) for k, v in enumerate(value)] if isinstance(value, (list, tuple)) else [(p.name, value)]
        found += [(name, item) for name, item in items if isinstance(item, Tensor)]
    return found


def _tensors(values: Any) -> list[Tensor]:
    """The tensors among the arguments of an operator, lists spread out."""
    found: list[Tensor] = []
    for value in values:
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += [item for item in value if isinstance(item, Tensor)]
    return found


def _attributes(op: Operator, bound: list, raw: list) -> dict[str, str]:
    """What was given beside tensors: attributes in canonical form that are not None, and Python numbers."""
    found = {}
    for p, given, value in zip(op.parameters, bound, raw, strict=True):
        if given.__class__ is Number:
            found[p.name] = attribute_text(given)
        elif p.kind == "attribute" and value is not None:
            found[p.name] = attribute_text(value)
    return found


def _in_node_order(op: Operator, made: list) -> list:
    """Results as the node counts them: those with a derivative first."""
    if not op.constant or not op.outputs:
        return made
    named = list(zip(op.outputs, made, strict=True))
    return [t for name, t in named if name not in op.constant] + [t for name, t in named if name in op.constant]


def _edges_of(tensor: Tensor) -> tuple:
    """The edge of a tensor, and of the base it is a view of."""
    return (tensor._edge,) if tensor._view is None else (tensor._edge, tensor._view.base._edge)


def _bring_up_to_date(tensor: Tensor) -> None:
    """Refresh a view; one that may not be used any more is left as it is: the operator will complain."""
    if tensor._view is not None:
        try:
            refresh(tensor)
        except RuntimeError:
            pass
