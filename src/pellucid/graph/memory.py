"""`graph.memory`: what is kept for backward, by node and module, and how much memory a run needs at most and when.

What is kept is counted from what the nodes save, each piece of memory once. The course of a run is followed by the arrays
that operators and derivatives give and take, from their first sight to their end; what a kernel needs beside them while
it runs is measured with `tracemalloc`, to which NumPy reports its memory.
"""

from __future__ import annotations

import sys
import tracemalloc
import weakref
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from pellucid.autograd.around import Work
from pellucid.autograd.engine import run
from pellucid.autograd.grad_mode import enable_grad, inference_mode
from pellucid.autograd.node import edge_of
from pellucid.core.tensor import Tensor, storage_of
from pellucid.graph.memory_report import Memory, Moment
from pellucid.graph.names import names_here
from pellucid.graph.recording import Recorder
from pellucid.graph.snapshot import Node
from pellucid.graph.taking import arguments_of, failed_graph, put_names
from pellucid.graph.undisturbed import undisturbed
from pellucid.graph.walk import graph_of_tensors, tensors_in
from pellucid.nn.modules.module import Module

__all__ = ["memory"]


def memory(program: Any, *inputs: Any, backward: bool = True) -> Memory:
    """What is saved for backward, by node and module, and the peak of a run with its moment.

    `memory(model, inputs)`, `memory(function, inputs)`: runs it, and a backward from all results that require grad; twice, if it
    uses compiled kernels.
    Gradients, buffers and random numbers are put back as they were.

    `memory(loss)`: what the graph behind a tensor keeps now; nothing is run, and there is no peak.

    Args:
        program: a module, a callable or a tensor.
        inputs: a tensor, a tuple or list of positional arguments, or a dict of keyword arguments; more may follow.
        backward: run the backward too.

    Raises:
        Whatever the program raises; the graph of the part that ran is then in the exception's attribute `graph`.
    """
    frame = sys._getframe(1)
    if isinstance(program, Tensor):
        return Memory(graph_of_tensors([program, *inputs], frame=frame), [])
    args, kwargs = arguments_of(inputs)
    given = tensors_in([args, kwargs])
    recorder = _measured(program, args, kwargs, backward, frame)
    if "pellucid.kernels.compiled" in sys.modules:  # kernels have perhaps been loaded or compiled, and that was measured, too
        recorder = _measured(program, args, kwargs, backward, frame)
    names = names_here(frame)
    put_names(recorder.graph, names, recorder)
    for tensor in given + recorder.older():
        recorder.builder.storage(tensor._array, "leaf" if tensor._requires_grad else "input")
    recorder.graph.title = names.modules.get(id(program)) or getattr(program, "__name__", type(program).__name__)
    return Memory(recorder.graph, recorder.moments, recorder.kept)


def _measured(program: Any, args: tuple, kwargs: dict, backward: bool, frame: FrameType) -> Meter:
    """A recorder that has followed one run."""
    recorder = Meter()
    try:
        with undisturbed(program if isinstance(program, Module) else None), recorder:
            recorder.run(program, args, kwargs, backward)
    except Exception as error:
        failed_graph(recorder, names_here(frame), error)
        raise
    return recorder


class Ledger:
    """The arrays of a run that are alive: `live` is their bytes, each piece of memory once."""

    def __init__(self):
        self.live = 0
        self._known: dict[int, weakref.ref] = {}
        self.older: set[int] = set()  # ids of arrays that were there before the run, and stay

    def see(self, array: np.ndarray) -> None:
        """Note an array, unless it is known or older than the run."""
        owner = storage_of(array)
        key = id(owner)
        if key in self._known or key in self.older:
            return
        if tracemalloc.get_object_traceback(owner) is None:  # made while nobody listened
            self.older.add(key)
            return
        size = owner.nbytes
        self.live += size

        def gone(_: weakref.ref) -> None:
            self.live -= size
            self._known.pop(key, None)

        self._known[key] = weakref.ref(owner, gone)


class Meter(Recorder):
    """A recorder that follows the memory of a run."""

    def __init__(self):
        super().__init__()
        self.moments: list[Moment] = []
        self.kept: int | None = None  # bytes alive after the forward
        self.ledger = Ledger()
        self._gradients: list[tuple[Tensor, Any, Any]] = []  # leaves with what they had before
        self._extra = 0  # what the operator that is running needed beside what was there before it
        self._vertex: Node | None = None  # of the operator that ran last
        self._stop = False  # whether tracing is to end with the recording

    def __enter__(self):
        self._stop = not tracemalloc.is_tracing()
        tracemalloc.start()
        return super().__enter__()

    def __exit__(self, *exception):
        super().__exit__(*exception)
        if self._stop:
            tracemalloc.stop()
        for leaf, grad, hooks in self._gradients:
            leaf._grad, leaf._rare.post_accumulate = grad, hooks
        self._gradients.clear()

    def run(self, program: Callable, args: tuple, kwargs: dict, backward: bool) -> None:
        """Run the program and, if asked, its backward."""
        if not backward:
            program(*args, **kwargs)
            return
        with inference_mode(False), enable_grad():
            results = [t for t in tensors_in(program(*args, **kwargs)) if t._requires_grad]
            self.kept = self.ledger.live
            if results:
                ones: list[Any] = [np.ones_like(t._array) for t in results]
                edges = [edge_of(t) for t in results]
                results.clear()
                run(edges, ones, keep_graph=False, create_graph=False)

    def older(self) -> list[Tensor]:
        """The leaves and inputs that were there before the run, and live on whatever is saved."""
        living = [tensor for tensor, _ in self.builder.handles.tensors.living()]
        return [tensor for tensor in living if id(storage_of(tensor._array)) in self.ledger.older]

    # --- measuring ---------------------------------------------------------------------------------------------------

    def _around(self, work: Work, subject: Any, arguments: tuple, call: Any) -> Any:
        if work is Work.NODE:
            return self._backward_step(subject, arguments[0], call)
        if work is Work.LEAF:
            self._gradients.append((subject, subject._grad, subject._rare.post_accumulate))
            subject._grad = subject._rare.post_accumulate = None
            return self._backward_step(subject, arguments[0], call)
        return super()._around(work, subject, arguments, call)

    def _operator(self, work: Work, op: Any, values: tuple, call: Any) -> Any:
        """An operator: measured from when the recorder has looked at its operands to when it hears of the results."""
        started: list[int] = []

        def inner():
            for tensor in tensors_in(list(values)):
                self.ledger.see(tensor._array)
            started.append(self.ledger.live)
            tracemalloc.reset_peak()
            self._before = tracemalloc.get_traced_memory()[0]
            return call()

        result = super()._operator(work, op, values, inner)
        self.moments.append(Moment("forward", self._vertex, self.ledger.live, started[0] + self._extra))
        return result

    def _observe(self, op: Any, bound: list, raw: list, made: list) -> Any:
        self._extra = max(tracemalloc.get_traced_memory()[1] - self._before, 0)
        for tensor in made:
            self.ledger.see(tensor._array)
        self._vertex = super()._observe(op, bound, raw, made)
        return self._vertex

    def _backward_step(self, subject: Any, grads: Any, call: Any) -> Any:
        """Run a node of the backward, or add a gradient to a leaf."""
        for grad in grads if isinstance(grads, list) else [grads]:
            if grad is not None:
                self.ledger.see(grad)
        started = self.ledger.live
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        result = call()
        extra = max(tracemalloc.get_traced_memory()[1] - before, 0)
        for output in result or ():
            if output is not None:
                self.ledger.see(output)
        table, is_leaf = self.builder.handles, isinstance(subject, Tensor)
        if is_leaf:
            self.ledger.see(subject._grad._array)
        number = table.tensors.get(subject) if is_leaf else table.nodes.get(subject)
        vertex = None if number is None else self.graph.nodes[number]
        self.moments.append(Moment("backward", vertex, self.ledger.live, started + extra))
        return result
