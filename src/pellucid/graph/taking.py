"""Taking graphs: `of` what has been computed, `record` what is running, `backward_of` what a gradient is computed by."""

from __future__ import annotations

import sys
from typing import Any

from pellucid.autograd.differentiate import grad
from pellucid.autograd.grad_mode import enable_grad, inference_mode
from pellucid.core.tensor import Tensor
from pellucid.graph.building import gradient_of
from pellucid.graph.failures import note_failure
from pellucid.graph.names import Names, names_here
from pellucid.graph.recording import Recorder
from pellucid.graph.selecting import sinks
from pellucid.graph.snapshot import Graph
from pellucid.graph.walk import execution_order, graph_of_tensors, tensors_in
from pellucid.nn.modules.module import Module

__all__ = ["arguments_of", "backward_of", "failed_graph", "of", "put_names", "record"]


def of(*things: Any, values: bool = False) -> Graph:
    """The computation graph of tensors, or of a model run on inputs, as plain data that keeps nothing alive.

    `of(loss)`, `of(a, b)`: what autograd recorded behind these tensors. Lists and dicts of tensors are looked into. A
    tensor without a history gives a graph of one node, or shows where its history was cut off.

    `of(model, inputs)`: runs the model, recording everything, constants and cuts included. `inputs` is a tensor, a
    tuple or list of positional arguments, or a dict of keyword arguments; more arguments may follow.

    Args:
        values: put small values on the nodes, and local derivatives (Jacobians of up to 4096 entries) on the edges.

    Raises:
        TypeError: neither tensors nor a module with inputs.
        Whatever the model raises: the part that ran is then in the exception's attribute `graph`.
    """
    frame = sys._getframe(1)
    if things and isinstance(things[0], Module):
        return _of_model(things[0], things[1:], values, frame)
    return graph_of_tensors(things, values=values, frame=frame)


def arguments_of(inputs: tuple) -> tuple[tuple, dict]:
    """Positional and keyword arguments from example inputs: one tuple or list, one dict, or the arguments themselves."""
    if len(inputs) == 1 and isinstance(inputs[0], (tuple, list)):
        return tuple(inputs[0]), {}
    if len(inputs) == 1 and isinstance(inputs[0], dict):
        return (), dict(inputs[0])
    return inputs, {}


def _of_model(model: Module, inputs: tuple, values: bool, frame: Any) -> Graph:
    args, kwargs = arguments_of(inputs)
    recorder = Recorder(values)
    try:
        with recorder:
            outputs = tensors_in(model(*args, **kwargs))
            roots = [recorder.source(tensor).at for tensor in outputs]
    except Exception as error:
        failed_graph(recorder, names_here(frame), error)
        raise
    names = names_here(frame)
    graph = _finished(recorder, names)
    graph.roots = roots
    graph.title = names.modules.get(id(model), type(model).__name__)
    return graph


def failed_graph(recorder: Recorder, names: Names, error: Exception) -> None:
    """Hand the graph of the part that ran to the error that ended it."""
    graph = _finished(recorder, names, error)
    error.graph = graph  # type: ignore[attr-defined]
    if not getattr(error, "_located", False):  # by core/errors.py, which says the same
        error.add_note(str(graph.failure))
    error.add_note("The graph of the part that ran is this exception's .graph.")


class record:
    """A block whose operations are recorded: `with graph.record() as g:`, and `g` is the graph, also of a block that
    failed. Only operations of this thread are seen.

    Args:
        values: put small values on the nodes and local derivatives on the edges.

    Example:
        >>> import pellucid
        >>> from pellucid import graph
        >>> x = pellucid.ones(3, requires_grad=True)
        >>> with graph.record() as g:
        ...     y = (x * 2).detach().sum()
        >>> [node.name for node in g.operations], g.cuts[0].reason
        (['MulBackward0', 'sum_all'], 'detach')
    """

    def __init__(self, *, values: bool = False):
        self._recorder = Recorder(values)

    def __enter__(self) -> Graph:
        return self._recorder.__enter__().graph

    def __exit__(self, kind, error, traceback) -> None:
        self._recorder.__exit__(kind, error, traceback)
        graph = _finished(self._recorder, names_here(sys._getframe(1)), error)
        graph.roots = sinks(graph)
        graph.title = ", ".join(name for node, k in graph.roots if (name := graph.nodes[node].outputs[k].name))


def _finished(recorder: Recorder, names: Names, error: BaseException | None = None) -> Graph:
    """Give the recorded graph its names and, if it ended in an error, its failure."""
    graph = recorder.graph
    put_names(graph, names, recorder)
    if error is not None:
        note_failure(recorder, error)
    return graph


def put_names(graph: Graph, names: Names, recorder: Recorder) -> None:
    """Name what is still alive as the program names it, and note gradients that leaves have."""
    table = graph._handles
    for (_, number), tensor in names.results.items():
        if table.nodes.get(tensor._edge[0]) is None and tensor._edge[0].sequence > recorder.first:
            recorder.source(tensor)  # a result that no operator has used, such as a custom Function's
        vertex = table.nodes.get(tensor._edge[0])
        if vertex is not None and number < len(graph.nodes[vertex].outputs):
            graph.nodes[vertex].outputs[number].name = names.of_tensor(tensor)
    for array, (vertex, number) in table.arrays.living():
        if id(array) in names.arrays and number < len(graph.nodes[vertex].outputs):
            output = graph.nodes[vertex].outputs[number]
            output.name = output.name if output.requires_grad and output.name else names.arrays[id(array)]
    for tensor, vertex in table.tensors.living():
        output = graph.nodes[vertex].outputs[0]
        held = names.of_tensor(tensor)
        output.name = held or output.name
        if tensor._grad is not None:
            output.gradient = gradient_of(tensor._grad._array)
        if held and graph.nodes[vertex].kind == "input":  # the program holds it, whatever is saved for backward
            recorder.builder.storage(tensor._array, "input")


def backward_of(*outputs: Any, inputs: Any = None, values: bool = False) -> Graph:
    """The graph by which the gradient of `outputs` is computed: the second-order graph, which `create_graph` records.

    Args:
        outputs: tensors to differentiate, summed where they have several elements.
        inputs: tensors to differentiate with respect to; by default all leaves.
        values: as for `of`.

    Returns:
        A graph whose roots are the gradients, in the order of the inputs, named `grad of NAME`. Nodes that were there
        before have the phase "forward", those that compute the derivative "backward".

    Raises:
        RuntimeError: the outputs do not depend on any leaf.
    """
    frame = sys._getframe(1)
    roots = [tensor for tensor in tensors_in(outputs) if tensor.requires_grad]
    if not roots:
        raise RuntimeError(
            "backward_of expects tensors that require grad: nothing these were computed from does, or the path was cut"
        )
    names = names_here(frame)
    wanted = leaves_behind(roots) if inputs is None else tensors_in(inputs)
    last = max((node.sequence for node in execution_order(root._edge[0] for root in roots if root._edge)), default=0)
    with inference_mode(False), enable_grad():
        ones = [root.new_ones(root.shape) for root in roots]
        grads = grad(roots, wanted, ones, create_graph=True, allow_unused=True)
    found = [(names.of_tensor(leaf), g) for leaf, g in zip(wanted, grads, strict=True) if g is not None]
    for name, g in found:
        names.add(f"grad of {name}" if name else "grad", g)
    graph = graph_of_tensors([g for _, g in found], values=values, names=names)
    for node in graph.nodes:
        if node.sequence is not None and node.sequence > last:
            node.phase = "backward"
    return graph


def leaves_behind(roots: list[Tensor]) -> list[Tensor]:
    """The leaves that tensors were computed from, in the order of their first use."""
    found: dict[int, Tensor] = {id(root): root for root in roots if root._edge is None}
    for node in execution_order(root._edge[0] for root in roots if root._edge is not None):
        for edge in node.edges:
            if edge is not None and isinstance(edge[2], Tensor):
                found.setdefault(id(edge[2]), edge[2])
    return list(found.values())
