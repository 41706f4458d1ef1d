"""The report that `graph.cost` gives: totals, and the same by node, operator and module."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape

from pellucid.core.language import say, template, translated
from pellucid.graph.cost_rules import rule_text
from pellucid.graph.snapshot import Graph, Node
from pellucid.graph.tables import count_text, html_table, text_table
from pellucid.graph.view import bytes_text, shape_text
from pellucid.nn.modules.module import Module

__all__ = ["Cost", "Count", "ModuleCost", "NodeCost", "OperatorCost"]


@dataclass(frozen=True)
class Count:
    """What something costs: `macs` are multiply-adds of products, each of them two of the `flops`; `bytes` are read and
    written if every operand is read once and every result written once."""

    macs: int = 0
    flops: int = 0
    bytes: int = 0

    def __add__(self, other: Count) -> Count:
        return Count(self.macs + other.macs, self.flops + other.flops, self.bytes + other.bytes)


@dataclass(frozen=True)
class NodeCost:
    """What one operation costs. `node` is its vertex in `Cost.graph`, None for what belongs to no known one."""

    node: Node | None
    forward: Count
    backward: Count


@dataclass(frozen=True)
class OperatorCost:
    """What all calls of one operator cost: in the forward as such, in the backward as part of derivatives."""

    operator: str
    forward: Count
    backward: Count
    rule: str


@dataclass
class ModuleCost:
    """What a module costs with all that is in it. `calls` counts calls of its forward, `parameters` the elements of its
    parameters, each parameter once however often it is used."""

    path: str
    type: str
    depth: int
    calls: int = 0
    parameters: int = 0
    forward: Count = field(default_factory=Count)
    backward: Count = field(default_factory=Count)


class Cost:
    """What a program costs, forward and backward. `print` shows it; in notebooks it is a table.

    forward, backward, total: `Count`s. recomputed: what checkpoints ran again, not in the others.
    nodes, operators, modules: the same by operation, by operator, and by module.
    parameters, parameter_bytes: of the model, each parameter once by identity.
    uncounted: (operator, phase) -> number of calls that no rule covers; empty if all was counted.
    graph: the graph that was recorded, with `flops` on its nodes.
    """

    def __init__(self, title: str, graph: Graph, nodes: list[NodeCost], operators: dict[tuple[str, str], Count],
                 recomputed: Count, uncounted: dict[tuple[str, str], int], model: Module | None):  # fmt: skip
        self.title, self.graph, self.nodes, self.recomputed, self.uncounted = title, graph, nodes, recomputed, uncounted
        self.forward = sum((node.forward for node in nodes), Count())
        self.backward = sum((node.backward for node in nodes), Count())
        self.operators = _by_operator(operators)
        self.modules = _by_module(graph, nodes)
        parameters = [] if model is None else list(model.parameters())
        self.parameters = sum(p.numel() for p in parameters)
        self.parameter_bytes = sum(p.nbytes for p in parameters)

    @property
    def total(self) -> Count:
        """Forward and backward: one training step without the optimizer."""
        return self.forward + self.backward

    @property
    def uncounted_text(self) -> str:
        """`none`, or what was not counted and how often."""
        parts = [f"{name} ({say(phase)}, {calls} x)" for (name, phase), calls in sorted(self.uncounted.items())]
        return say(", ").join(parts) or say("none")

    def module(self, path: str) -> ModuleCost:
        """The cost of the module at a path; KeyError if it was not called."""
        found = next((m for m in self.modules if m.path == path), None)
        if found is None:
            raise KeyError(f"no module {path!r} was called; known are {', '.join(m.path for m in self.modules) or 'none'}")
        return found

    # --- showing -----------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return (
            f"<cost of {self.title}: forward {count_text(self.forward.flops)} FLOPs ({count_text(self.forward.macs)} MACs), "
            f"backward {count_text(self.backward.flops)} FLOPs ({count_text(self.backward.macs)} MACs); "
            f"uncounted: {self.uncounted_text}>"
        )

    def text(self, depth: int = 2) -> str:
        """All tables but that of nodes. depth: how deep modules are shown."""
        parts = [say("cost of {title}", title=self.title), text_table(*self._totals()), "\n".join(self._notes())]
        if self.modules:
            parts.append(text_table(*self._module_rows(depth), left=2))
        parts.append(text_table(*self._operator_rows(), last_left=True))
        return "\n\n".join(parts) + "\n"

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        tables = [html_table(*self._totals())]
        tables += [html_table(*self._module_rows(2), left=2)] if self.modules else []
        tables.append(html_table(*self._operator_rows(), last_left=True))
        return f"<p><b>{escape(say('cost of {title}', title=self.title))}</b></p>{''.join(tables)}<p>{'<br>'.join(self._notes())}</p>"

    def _totals(self) -> tuple[list[str], list[list[str]]]:
        rows = [(say("forward"), self.forward), (say("backward"), self.backward), (say("forward and backward"), self.total)]
        rows += [(say("recomputed by checkpoints"), self.recomputed)] if self.recomputed.flops else []
        return ["", "FLOPs", "MACs", say("bytes moved")], [
            [name, count_text(c.flops), count_text(c.macs), bytes_text(c.bytes)] for name, c in rows
        ]

    def _notes(self) -> list[str]:
        notes = [say("1 MAC (multiply-add) is 2 FLOPs; all else is 1 FLOP an operation, see the rules.")]
        if self.parameters:
            size = bytes_text(self.parameter_bytes)
            notes.append(say("parameters: {n} ({size}), each counted once", n=f"{self.parameters:,}", size=size))
        return [*notes, say("uncounted: {what}", what=self.uncounted_text)]

    def _module_rows(self, depth: int) -> tuple[list[str], list[list[str]]]:
        headers = [say("module"), say("type"), say("calls"), say("parameters"), *_headers()]
        return headers, [
            [
                "  " * m.depth + m.path, m.type, f"{m.calls}", f"{m.parameters:,}", count_text(m.forward.flops),
                count_text(m.forward.macs), count_text(m.backward.flops), count_text(m.backward.macs),
            ]
            for m in self.modules
            if m.depth <= depth
        ]  # fmt: skip

    def _operator_rows(self) -> tuple[list[str], list[list[str]]]:
        headers = [say("operator"), *_headers(), say("rule")]
        return headers, [
            [
                o.operator, count_text(o.forward.flops), count_text(o.forward.macs), count_text(o.backward.flops),
                count_text(o.backward.macs), translated(o.rule),
            ]
            for o in self.operators
        ]  # fmt: skip

    def node_table(self) -> str:
        """One line for each operation, in the order they ran."""
        rows = []
        for each in self.nodes:
            node = each.node
            where = "" if node is None else self.graph.module_of(node)
            shape = shape_text(node.outputs[0]) if node is not None and node.outputs else ""
            line = "" if node is None or node.site is None else str(node.site)
            label = say("(elsewhere)") if node is None else node.operator or node.name  # such as a sum of gradients at a leaf
            rows.append(
                [label, where, shape, count_text(each.forward.flops), count_text(each.forward.macs),
                 count_text(each.backward.flops), count_text(each.backward.macs), line]
            )  # fmt: skip
        headers = [say("operator"), say("module"), say("result"), *_headers(), say("line")]
        return text_table(headers, rows, left=3)


def _headers() -> list[str]:
    """Of the columns with numbers."""
    return [say("forward FLOPs"), "MACs", say("backward FLOPs"), "MACs"]


def _by_operator(counts: dict[tuple[str, str], Count]) -> list[OperatorCost]:
    """One row for each operator, the costliest first."""
    names = {name for name, _ in counts}
    rows = []
    for name in names:
        forward, backward = (counts.get((name, phase), Count()) for phase in ("forward", "backward"))
        rows.append(OperatorCost(name, forward, backward, rule_text(name) or template("no rule")))
    return sorted(rows, key=lambda row: (-(row.forward + row.backward).flops, row.operator))


def _by_module(graph: Graph, nodes: list[NodeCost]) -> list[ModuleCost]:
    """One row for each module that was called, in the order of the first calls, with all that ran in it."""
    rows: dict[str, ModuleCost] = {}
    depths: dict[int | None, int] = {None: -1}
    for call in graph.calls:
        depths[call.id] = depths[call.parent] + 1
        row = rows.setdefault(call.path, ModuleCost(call.path, call.type, depths[call.id], 0, call.parameters))
        row.calls += call.phase == "forward"
    for each in nodes:
        call = None if each.node is None else each.node.call
        paths: dict[str, None] = {}
        while call is not None:
            paths[graph.calls[call].path] = None
            call = graph.calls[call].parent
        for path in paths:
            rows[path].forward += each.forward
            rows[path].backward += each.backward
    return list(rows.values())
