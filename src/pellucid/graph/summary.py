"""`graph.summary`: a model's modules with shapes, parameters and arithmetic, as one table.

Modules come from the model's own tree, so those that are never called, or whose `forward` is called directly, are there
too; shapes, calls and costs come from one run. A parameter is counted once, at the first module that has it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pellucid.core.dtype import dtype, float32
from pellucid.core.language import say, template
from pellucid.core.tensor import Tensor, wrap
from pellucid.graph.cost import cost
from pellucid.graph.cost_report import Cost
from pellucid.graph.names import names_here
from pellucid.graph.tables import count_text, html_table, text_table
from pellucid.graph.taking import arguments_of
from pellucid.graph.view import bytes_text
from pellucid.graph.walk import tensors_in
from pellucid.nn.modules.module import Module

__all__ = ["Summary", "SummaryRow", "summary"]


@dataclass
class SummaryRow:
    """A module of the model.

    path: from the model, "" for the model itself. name: its last part. depth: 0 for the model.
    output: the shape of what it returned last, nested as that was; "" if it was not called or no inputs were given.
    parameters: elements of its own parameters that no row above has. trainable: of these, those that require grad.
    shared: the path of the row that describes this very module, "" if this is its first place.
    calls: of its forward, by calling the module. flops, macs: of a forward, with what is in it.
    """

    path: str
    name: str
    type: str
    depth: int
    output: str = ""
    parameters: int = 0
    trainable: int = 0
    shared: str = ""
    calls: int = 0
    flops: int = 0
    macs: int = 0


class Summary:
    """The table of a model. `print` shows it; in notebooks it is an HTML table.

    rows: one for each module, parents before children.
    parameters, trainable, buffers: elements, each tensor counted once; `*_bytes` their sizes.
    input_bytes: of the inputs. output_bytes: of all results that operations made in a forward.
    cost: the forward's cost, None without inputs.
    """

    def __init__(self, model: Module, name: str, cost: Cost | None, inputs: list[Tensor]):
        self.name, self.cost = name, cost
        parameters, buffers = list(model.parameters()), list(model.buffers())
        self.parameters = sum(p.numel() for p in parameters)
        self.trainable = sum(p.numel() for p in parameters if p.requires_grad)
        self.parameter_bytes = sum(p.nbytes for p in parameters)
        self.buffers = sum(b.numel() for b in buffers)
        self.buffer_bytes = sum(b.nbytes for b in buffers)
        self.input_bytes = sum(t.nbytes for t in inputs)
        self.output_bytes = 0 if cost is None else _output_bytes(cost)
        self.rows = list(_rows(model, name, cost))

    # --- showing -----------------------------------------------------------------------------------------------------

    def text(self, depth: int = 3) -> str:
        """The table as text. depth: how deep modules are shown."""
        return f"{text_table(*self._table(depth), left=3)}\n\n" + "\n".join(self._totals()) + "\n"

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<summary of {self.name}: {self.parameters:,} parameters, {len(self.rows)} modules>"

    def _repr_html_(self) -> str:
        return html_table(*self._table(3), left=3) + "<p>" + "<br>".join(self._totals()) + "</p>"

    def _table(self, depth: int) -> tuple[list[str], list[list[str]]]:
        headers = [say("module"), say("type"), say("output"), say("parameters")]
        headers += [say("calls"), "FLOPs", "MACs"] if self.cost is not None else []
        return headers, [self._cells(row) for row in self.rows if row.depth <= depth]

    def _cells(self, row: SummaryRow) -> list[str]:
        own = f"{row.parameters:,}" if row.parameters else "-"
        if row.shared:
            own = say("(see {path})", path=row.shared)
        cells = ["  " * row.depth + (row.name or self.name), row.type, row.output, own]
        if self.cost is None:
            return cells
        if row.shared:
            return [*cells, "", "", ""]
        return [*cells, f"{row.calls}", count_text(row.flops), count_text(row.macs)]

    def _totals(self) -> list[str]:
        frozen = self.parameters - self.trainable
        text = template("parameters: {n}, of which {trainable} are trainable and {frozen} are not")
        lines = [say(text, n=f"{self.parameters:,}", trainable=f"{self.trainable:,}", frozen=f"{frozen:,}")]
        sizes = [say("parameters {size}", size=bytes_text(self.parameter_bytes))]
        if self.buffers:
            lines.append(say("buffers: {n}", n=f"{self.buffers:,}"))
            sizes.append(say("buffers {size}", size=bytes_text(self.buffer_bytes)))
        if self.cost is not None:
            flops, macs = count_text(self.cost.forward.flops), count_text(self.cost.forward.macs)
            lines.append(say("forward: {flops} FLOPs, {macs} MACs", flops=flops, macs=macs))
            lines.append(say("uncounted: {what}", what=self.cost.uncounted_text))
            sizes.append(say("inputs {size}", size=bytes_text(self.input_bytes)))
            sizes.append(say("results of all operations {size}", size=bytes_text(self.output_bytes)))
        return [*lines, say("memory: {sizes}", sizes=say(", ").join(sizes))]


def summary(model: Module, *inputs: Any, input_size: Sequence | None = None, dtypes: Sequence[dtype] | None = None) -> Summary:
    """The modules of a model in a table, with output shapes, parameters, FLOPs and MACs.

    Args:
        model: it is run once in the mode it is in, and left as it was. Without inputs it is not run.
        inputs: a tensor, a tuple or list of positional arguments, or a dict of keyword arguments; more may follow.
        input_size: instead of inputs, a shape or a list of shapes to make random inputs of.
        dtypes: their element types; float32 by default. Integers are drawn from 0 and 1.

    Raises:
        TypeError: `model` is no module, or both inputs and input_size are given.
        Whatever the model raises; the graph of the part that ran is then in the exception's attribute `graph`.
    """
    if not isinstance(model, Module):
        raise TypeError(f"summary expects a module, got {type(model).__name__}")
    if inputs and input_size is not None:
        raise TypeError("summary takes inputs or input_size, not both")
    if input_size is not None:
        inputs = _random_inputs(input_size, dtypes)
    name = names_here(sys._getframe(1)).modules.get(id(model), type(model).__name__)
    found = cost(model, *inputs, backward=False) if inputs else None
    return Summary(model, name, found, tensors_in(list(arguments_of(inputs))))


def _random_inputs(input_size: Sequence, dtypes: Sequence[dtype] | None) -> tuple[Tensor, ...]:
    """Inputs of given shapes, drawn by a generator of their own."""
    shapes = [input_size] if all(isinstance(n, int) for n in input_size) else list(input_size)
    kinds = list(dtypes or ()) + [float32] * len(shapes)
    random = np.random.default_rng(0)
    made = []
    for shape, kind in zip(shapes, kinds, strict=False):
        values = random.standard_normal(tuple(shape)) if kind.is_floating_point else random.integers(0, 2, tuple(shape))
        made.append(wrap(np.asarray(values).astype(kind.numpy)))
    return tuple(made)


def _rows(model: Module, name: str, cost: Cost | None) -> Iterator[SummaryRow]:
    """The rows of the model's tree, then those of modules that ran without being in it."""
    seen: dict[int, str] = {}
    counted: set[int] = set()
    by_path = {} if cost is None else {m.path: m for m in cost.modules}
    outputs = {} if cost is None else {call.path: call.output for call in cost.graph.calls}
    top = next((m.path for m in by_path.values()), name)
    paths = set()
    for path, module in model.named_modules(remove_duplicate=False):
        row = SummaryRow(path, path.rpartition(".")[2], type(module).__name__, path.count(".") + 1 if path else 0)
        row.shared = seen.get(id(module), "")
        seen.setdefault(id(module), path or name)
        for parameter in (p for p in module._parameters.values() if p is not None and id(p) not in counted):
            counted.add(id(parameter))
            row.parameters += parameter.numel()
            row.trainable += parameter.numel() if parameter.requires_grad else 0
        full = f"{top}.{path}" if path else top
        paths.add(full)
        _put_cost(row, by_path.get(full), outputs.get(full, ""))
        yield row
    for path, found in by_path.items():
        if path not in paths:
            row = SummaryRow(path, path, found.type, found.depth)
            _put_cost(row, found, outputs.get(path, ""))
            yield row


def _put_cost(row: SummaryRow, found: Any, output: str) -> None:
    if found is not None and not row.shared:
        row.output, row.calls = output, found.calls
        row.flops, row.macs = found.forward.flops, found.forward.macs


def _output_bytes(cost: Cost) -> int:
    """The bytes of all results of operations; views have none of their own."""
    total = 0
    for each in cost.nodes:
        if each.node is not None and each.forward.bytes:
            total += sum(_bytes(output) for output in each.node.outputs)
    return total


def _bytes(output: Any) -> int:
    size = 1
    for length in output.shape or ():
        size *= length
    return size * np.dtype(output.dtype if output.dtype != "bfloat16" else "float16").itemsize
