"""`graph.cost`: the arithmetic and memory traffic of a model or function, forward and backward, by node, operator and
module.

It runs the program once, with everything counted at the level of operators: functional code counts as modules do, and
what has no rule is named. The derivatives are run on tensors, so that what their formulas compute is counted by the same
rules. How much an operator costs is in `cost_rules.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

import numpy as np

from pellucid.autograd.around import Work
from pellucid.autograd.declaration import Operator
from pellucid.autograd.engine import current_task, run
from pellucid.autograd.function_context import FunctionCtx
from pellucid.autograd.grad_mode import enable_grad, inference_mode
from pellucid.autograd.node import Node as GradNode
from pellucid.autograd.node import edge_of
from pellucid.core.modes import modes
from pellucid.core.tensor import InferenceCounter, Tensor, wrap
from pellucid.graph.cost_report import Cost, Count, NodeCost
from pellucid.graph.cost_rules import Call, cost_of
from pellucid.graph.names import names_here
from pellucid.graph.recording import Recorder
from pellucid.graph.taking import arguments_of, failed_graph, put_names
from pellucid.graph.undisturbed import undisturbed
from pellucid.graph.walk import tensors_in
from pellucid.nn.modules.module import Module
from pellucid.ops.recurrent import composed_again
from pellucid.utils.checkpoint.frame import Frame
from pellucid.utils.checkpoint.reentrant import CheckpointFunction

__all__ = ["cost"]

# In the derivative of these, a sum is the gradient of a bias, and counted with the product.
WITH_BIAS = {"linear", "addmm", "addmv", "addbmm", "baddbmm", "_convolution", "_convolution_transposed"}
SUMS = {"sum_dim", "sum_all", "sum_to_size"}


def cost(program: Callable, *inputs: Any, backward: bool = True) -> Cost:
    """What running a model or function costs, and its backward: FLOPs, MACs, bytes moved.

    It is run once, with gradients enabled whatever mode is on, so that the numbers are the same under `no_grad` and
    `inference_mode`; random numbers, buffers and gradients are put back as they were. What a checkpoint recomputes is
    counted apart, so the other numbers are the same with and without it.

    Args:
        program: a module or any callable.
        inputs: a tensor, a tuple or list of positional arguments, or a dict of keyword arguments; more may follow.
        backward: also count a backward from all results that require grad, to all leaves that do.

    Returns:
        A report with `forward`, `backward` and `total`, each with `flops`, `macs` and `bytes`; `nodes`, `operators`,
        `modules`; `parameters`; `uncounted`. `print` shows it.

    Raises:
        Whatever the program raises; the graph of the part that ran is then in the exception's attribute `graph`.
    """
    frame = sys._getframe(1)
    args, kwargs = arguments_of(inputs)
    recorder = Counter()
    model = program if isinstance(program, Module) else None
    try:
        with undisturbed(model), inference_mode(False), enable_grad(), recorder:
            recorder.run(program, *_usable((args, kwargs)), backward=backward)
    except Exception as error:
        failed_graph(recorder, names_here(frame), error)
        raise
    names = names_here(frame)
    put_names(recorder.graph, names, recorder)
    title = names.modules.get(id(program)) or getattr(program, "__name__", type(program).__name__)
    return recorder.report(title, model)


def _usable(arguments: tuple[tuple, dict]) -> tuple[tuple, dict]:
    """The arguments, inference tensors as copies that can be saved for backward."""
    args, kwargs = arguments

    def usable(value: Any) -> Any:
        if isinstance(value, Tensor) and isinstance(value._counter, InferenceCounter):
            return wrap(value._array.copy(), value._requires_grad)
        return value

    return tuple(usable(a) for a in args), {name: usable(a) for name, a in kwargs.items()}


class Counter(Recorder):
    """A recorder that counts."""

    def __init__(self):
        super().__init__()
        self.forward: dict[int, Count] = {}  # by vertex
        self.backward: dict[int, Count] = {}
        self.operators: dict[tuple[str, str], Count] = {}  # by operator and phase
        self.recomputed = Count()
        self.uncounted: dict[tuple[str, str], int] = {}  # (operator, phase) -> calls
        self._running: list[int] = []  # vertices of the nodes whose derivative is being taken; -1 for one not known
        self._reached: set[tuple[int, int]] = set()  # outputs that have received a gradient

    def run(self, program: Callable, args: tuple, kwargs: dict, backward: bool) -> None:
        """Run the program and, if asked, its backward."""
        results = [t for t in tensors_in(program(*args, **kwargs)) if t._requires_grad]
        if backward and results:
            ones: list[Any] = [np.ones_like(t._array) for t in results]
            run([edge_of(t) for t in results], ones, keep_graph=False, create_graph=False)

    # --- what stands around calls ------------------------------------------------------------------------------------

    def _around(self, work: Work, subject: Any, arguments: tuple, call: Any) -> Any:
        if work is Work.NODE:
            return self._node(subject, arguments[0], call)
        if work is Work.LEAF:
            return None  # gradients of leaves stay as they are
        if work is not Work.FUNCTION and self._running and _code_within(sys._getframe(1)) is None:
            return call()
        return super()._around(work, subject, arguments, call)

    def _node(self, node: GradNode, grad: Any, call: Any) -> Any:
        """Take the derivative of a node, on tensors, so that its operators are heard of."""
        vertex = self.builder.handles.nodes.get(node)
        self._running.append(-1 if vertex is None else vertex)
        try:
            task: Any = current_task()
            if isinstance(node, FunctionCtx) or task.tensors:
                outputs = call()
            else:
                outputs = self._on_tensors(node, grad, task)
            self._count_sums(node, outputs)
            return outputs
        finally:
            self._running.pop()

    def _on_tensors(self, node: GradNode, grad: Any, task: Any) -> tuple:
        """What `node.apply` would return, by `node.apply_tensors`."""
        given: Any = [None if g is None else wrap(g) for g in grad] if isinstance(grad, list) else wrap(grad)
        edges = node.edges
        if task.needed is not None:
            edges = tuple(edge if edge is not None and edge[0] in task.needed else None for edge in edges)
        enabled, modes.grad_enabled = modes.grad_enabled, False
        try:
            outputs = node.apply_tensors(given, edges, task.keep_graph)
        finally:
            modes.grad_enabled = enabled
        return tuple(None if output is None else output._array for output in outputs)

    def _count_sums(self, node: GradNode, outputs: tuple) -> None:
        """Where gradients meet they are added: one FLOP for each element, from the second on."""
        for edge, output in zip(node.edges, outputs, strict=False):
            if edge is None or output is None:
                continue
            array = output._array if isinstance(output, Tensor) else output
            key = id(edge[0]), edge[1]
            if key in self._reached and array.dtype.kind in "fcV":
                self._add(self.backward, self._running[-1], "add", "backward", Count(0, array.size, 3 * array.nbytes))
            self._reached.add(key)

    # --- results -----------------------------------------------------------------------------------------------------

    def _observe(self, op: Operator, bound: list, raw: list, made: list) -> Any:
        within = _code_within(sys._getframe(1)) if self._running else None
        if within in STANDS_IN:
            return None
        if self._running and within is None:
            vertex = self._running[-1]
            found = self._count(op, raw, made, "backward")
            if op.name in SUMS and vertex >= 0 and self.graph.nodes[vertex].operator in WITH_BIAS:
                found = Count(0, 0, found.bytes)
            self._add(self.backward, vertex, op.name, "backward", found)
            return None
        vertex = super()._observe(op, bound, raw, made).id
        if self._running:
            self.recomputed += self._count(op, raw, made, "recomputed")
        else:
            self._add(self.forward, vertex, op.name, "forward", self._count(op, raw, made, "forward"))
        return None

    def _count(self, op: Operator, raw: list, made: list, phase: str) -> Count:
        call = Call(op, raw, [t._array for t in made], derivative=phase == "backward")
        found = cost_of(op, call)
        if found is None:
            key = op.name, phase
            self.uncounted[key] = self.uncounted.get(key, 0) + 1
            found = 0, 0
        moved = 0 if op.view or op.multi_view else sum(array.nbytes for array in (*call.arrays(), *call.results))
        return Count(*found, moved)

    def _add(self, table: dict[int, Count], vertex: int, operator: str, phase: str, found: Count) -> None:
        table[vertex] = table.get(vertex, Count()) + found
        key = operator, phase
        self.operators[key] = self.operators.get(key, Count()) + found

    def report(self, title: str, model: Module | None) -> Cost:
        """What has been counted."""
        graph = self.graph
        nodes = [
            NodeCost(graph.nodes[v] if v >= 0 else None, self.forward.get(v, Count()), self.backward.get(v, Count()))
            for v in sorted({*self.forward, *self.backward})
        ]
        return Cost(title, graph, nodes, self.operators, self.recomputed, self.uncounted, model)


# --- recomputation ----------------------------------------------------------------------------------------------------

AGAIN: set[CodeType] = {Frame._recompute.__code__, CheckpointFunction.backward.__code__}
# A kernel goes on from what its forward has kept; the composition that is differentiated on tensors in its place begins anew.
STANDS_IN: set[CodeType] = {composed_again.__code__}
HERE: CodeType = Counter._node.__code__


def _code_within(frame: FrameType | None) -> CodeType | None:
    """Which of the functions above an operator runs in, called from the node that is running; None for none."""
    while frame is not None and frame.f_code is not HERE:
        if frame.f_code in AGAIN or frame.f_code in STANDS_IN:
            return frame.f_code
        frame = frame.f_back
    return None
