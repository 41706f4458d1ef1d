"""`Graph.text()`: a graph for terminals, from its results back to its leaves.

Each line is an operation or a module; what it is computed from stands below it. Operands that were not computed (leaves,
inputs) stand on the line itself. Where several computed operands come together, each has a branch, down to the place
where all branches meet; there the main line goes on (`←`). What several use is shown once and referred to by its name or
number. Equal blocks that follow one another are folded (`12 x`).
"""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import NamedTuple

from pellucid.core.language import counted, say
from pellucid.graph.dominators import meeting_points
from pellucid.graph.folding import runs
from pellucid.graph.pausing import collector_paused
from pellucid.graph.snapshot import Edge, Graph, Node
from pellucid.graph.tables import cells
from pellucid.graph.view import Unit, View, bytes_text, view_of

__all__ = ["graph_text", "heading"]

SITE_COLUMN = 68
MOST_DEPTH = 30  # of branches within branches; what lies deeper is counted, not shown


@collector_paused()
def graph_text(graph: Graph, *, expand: int | str | None = None, fold: bool = True) -> str:
    """The graph as text.

    expand: levels of modules to open, see `view_of`.
    fold: whether equal blocks are folded.
    """
    lines = _Writer(view_of(graph, expand), fold).lines()
    width = max((min(cells(line.text), SITE_COLUMN) for line in lines), default=0)
    rows = [f"{line.text}{' ' * (width - cells(line.text))}  {line.site}".rstrip() for line in lines]
    return "\n".join([heading(graph), "", *rows, ""])


def heading(graph: Graph) -> str:
    """What is in a graph, in one line or, if it failed, two."""
    elements = sum(_size(leaf) for leaf in graph.leaves)
    leaves = counted("{n} leaf", "{n} leaves", len(graph.leaves))
    counts = [counted("{n} operation", "{n} operations", len(graph.operations))]
    counts += [say("{leaves} ({elements})", leaves=leaves, elements=counted("{n} element", "{n} elements", elements))]
    inputs = len(graph.nodes) - len(graph.operations) - len(graph.leaves)
    counts += [counted("{n} input or constant", "{n} inputs and constants", inputs)] if inputs else []
    counts += [counted("{n} cut", "{n} cuts", len(graph.cuts))] if graph.cuts else []
    saved = say("saved values freed") if graph.freed else say("{size} saved for backward", size=bytes_text(graph.saved_bytes))
    what = say(", ").join(counts)
    text = say("graph of {title}: {counts}; {saved}", title=graph.title or say("results"), counts=what, saved=saved)
    if graph.dropped:
        text += say("; ") + say("{n} earlier operations were not kept", n=f"{graph.dropped:,}")
    return text if graph.failure is None else f"{text}\n{graph.failure}"


def _size(node: Node) -> int:
    size = 1
    for length in node.outputs[0].shape or ():
        size *= length
    return size


class Line(NamedTuple):
    """A line of the text. `key` is equal for lines that say the same of different things."""

    text: str
    site: str
    key: Hashable
    path: str = ""  # of the module it stands for

    def indented(self, by: str) -> Line:
        """The line, further to the right."""
        return Line(by + self.text, self.site, (by, self.key), self.path)


class _Writer:
    """Writes the lines of a view."""

    def __init__(self, view: View, fold: bool):
        self.view, self.fold = view, fold
        self.written: set[int] = set()
        self.computed = [self._computed_operands(unit) for unit in view.units]
        self.meets = meeting_points([[source for source, _ in computed] for computed in self.computed])

    def lines(self) -> list[Line]:
        """All lines, result after result."""
        failure, units = self.view.graph.failure, self.view.units
        ends = self.view.roots or [unit.number for unit in units if not unit.users and unit.kind != "leaf"]
        if failure is not None and failure.node is not None:
            ends = [*ends, *(unit.number for unit in units if failure.node in unit.nodes and unit.number not in ends)]
        found: list[Line] = []
        for end in ends:
            found += self._main_line(end, None, None, 0)
        return found

    # --- structure ---------------------------------------------------------------------------------------------------

    def _main_line(self, first: int, via: Edge | None, stop: int | None, depth: int) -> list[Line]:
        """A unit, and from meeting point to meeting point what it is computed from, up to `stop`."""
        segments: list[list[Line]] = []
        number: int | None = first
        lead = _via(via)
        while number is not None and number != stop:
            if number in self.written:
                segments.append([Line(lead + say("{name} (above)", name=self._reference(number)), "", (_without_number(lead), "above"))])
                break
            self.written.add(number)
            segments.append(self._segment(self.view.units[number], lead, depth))
            computed = self.computed[number]
            lead = _via(computed[0][1]) if len(computed) == 1 and computed[0][1].kind == "cut" else "← "
            number = self.meets[number]
        if number is not None and number == stop and number != first and lead != "← ":
            segments.append([self._below(number, lead)])
        return self._folded(segments)

    def _segment(self, unit: Unit, lead: str, depth: int) -> list[Line]:
        """The line of a unit, and the branches between it and the place where they meet."""
        lines = [self._line(unit, lead)]
        computed, meet = self._computed(unit), self.meets[unit.number]
        if len(computed) == 1:
            return lines
        branches = self._folded_branches([self._branch(source, edge, meet, depth) for source, edge in computed])
        for position, branch in enumerate(branches):
            last = position == len(branches) - 1
            lines.append(branch[0].indented("└─ " if last else "├─ "))
            lines += [line.indented("   " if last else "│  ") for line in branch[1:]]
        return lines

    def _folded_branches(self, branches: list[list[Line]]) -> list[list[Line]]:
        """Branches side by side, runs of equal ones folded."""
        keys = [tuple(line.key for line in branch) for branch in branches]
        found: list[list[Line]] = []
        for start, length, times in runs(keys, longest=1) if self.fold else [(k, 1, 1) for k in range(len(branches))]:
            if times < 3:
                found += branches[start : start + length * times]
            else:
                found += [branches[start], [Line(say("... and {n} more like it", n=f"{times - 1:,}"), "", (times, "branches"))]]
        return found

    def _branch(self, source: int, edge: Edge, meet: int | None, depth: int) -> list[Line]:
        if source == meet:
            return [self._below(source, _via(edge))]
        if depth >= MOST_DEPTH and source not in self.written:
            hidden = say("... ({n} more, nested too deep to show)", n=f"{self._hidden(source):,}")
            return [Line(_via(edge) + hidden, "", None)]
        return self._main_line(source, edge, meet, depth + 1)

    def _below(self, number: int, lead: str) -> Line:
        return Line(lead + say("{name} (below)", name=self._reference(number)), "", (_without_number(lead), "below"))

    def _hidden(self, source: int) -> int:
        """How many units lie behind one that is not shown; they count as shown."""
        stack, count = [source], 0
        while stack:
            number = stack.pop()
            if number not in self.written:
                self.written.add(number)
                count += 1
                stack.extend(source for source, _ in self._computed(self.view.units[number]))
        return count

    def _computed(self, unit: Unit) -> list[tuple[int, Edge]]:
        return self.computed[unit.number]

    def _computed_operands(self, unit: Unit) -> list[tuple[int, Edge]]:
        """The operands of a unit that were computed, each once."""
        found: dict[int, Edge] = {}
        for source, edge in unit.sources:
            if self.view.units[source].kind in ("operation", "module"):
                found.setdefault(source, edge)
        return list(found.items())

    def _folded(self, segments: list[list[Line]]) -> list[Line]:
        """Segments one after another, runs of equal ones folded."""
        keys = [tuple(line.key for line in segment) for segment in segments]
        lines: list[Line] = []
        for start, length, times in runs(keys) if self.fold else [(k, 1, 1) for k in range(len(segments))]:
            block = [line for segment in segments[start : start + length] for line in segment]
            if times > 1:
                block = _repeated(block, times, segments[start + length * (times - 1)][0])
            lines += block
        return lines

    # --- one line ----------------------------------------------------------------------------------------------------

    def _reference(self, number: int) -> str:
        unit = self.view.units[number]
        return unit.name or (unit.title if unit.kind == "module" else f"#{number}")

    def _line(self, unit: Unit, lead: str) -> Line:
        """One unit: its name, what it is, its shape, the operands that were not computed, the line."""
        name = unit.name or (f"#{unit.number}" if unit.users > 1 and unit.kind == "operation" else "")
        facts = self._module_facts(unit) if unit.kind == "module" else ""
        operands = self._plain_operands(unit)
        text = " ".join(part for part in (unit.title, unit.shape, facts, say("of {operands}", operands=operands) if operands else "") if part)
        node = self.view.graph.nodes[unit.nodes[-1]]
        text += _gradient(node)
        site = f"{node.site.file.rpartition('/')[2]}:{node.site.line}" if node.site and unit.kind == "operation" else ""
        key = (_without_number(lead), self.view.signature(unit), tuple(sorted(node.attributes.items())) if not facts else ())
        path = "" if unit.call is None else self.view.graph.calls[unit.call].path
        return Line(lead + (f"{name} = " if name else "") + text, site, key, path)

    def _module_facts(self, unit: Unit) -> str:
        parameters = self.view.graph.calls[unit.call or 0].parameters
        parts = [counted("{n} operation", "{n} operations", len(unit.nodes))]
        parts += [counted("{n} parameter", "{n} parameters", parameters)] if parameters else []
        return f"({say(', ').join(parts)})"

    def _plain_operands(self, unit: Unit) -> str:
        """Leaves, inputs and numbers that go into a unit, and how often a computed operand does, if more than once."""
        found: dict[str, None] = {}
        computed = []
        for source, edge in unit.sources:
            operand = self.view.units[source]
            if operand.kind in ("leaf", "input"):
                if unit.kind == "module" and not operand.name:
                    continue  # a constant that the module makes itself
                name = f"{operand.name or say(operand.kind)} {operand.shape}{_broken(edge)}{_slope(edge)}"
                found[name + _gradient(self.view.graph.nodes[operand.nodes[0]], " (", ")")] = None
            else:
                computed.append(source)
        if unit.kind == "operation":
            attributes = self.view.graph.nodes[unit.nodes[0]].attributes.items()
            found.update({f"{name}={text}": None for name, text in attributes if _tells(name, text)})
            if len(computed) > 1 and len(set(computed)) == 1:
                again = len(computed)
                found[say("the same twice") if again == 2 else say("the same {n} times", n=again)] = None
        return say(", ").join(found)


def _repeated(block: list[Line], times: int, last: Line) -> list[Line]:
    """The first of several equal blocks, marked with how many there are; `last` begins the last of them."""
    if len(block) == 1:
        line = block[0]
        arrow = "← " if line.text.startswith("← ") else ""
        text = line.text.removeprefix(arrow)
        if line.path:
            text = f"{last.path} ... {text[text.index(line.path) :]}"
        return [Line(f"{arrow}{times} x {text}", line.site, (times, line.key))]
    header = Line(f"← {times} x", "", (times, "block"))
    return [header, *(line.indented("│  ") for line in block)]


def _tells(name: str, text: str) -> bool:
    """Whether an attribute is worth a reader's time."""
    return len(text) <= 24 and (name, text) not in (("alpha", "1"), ("keepdim", "False"))


def _without_number(lead: str) -> str:
    """How a branch is introduced, the same for all operands of a list."""
    return re.sub(r"\[\d+\]|:\d+", "", lead)


def _via(edge: Edge | None) -> str:
    """How a branch is introduced: by the operand's name, or by what cuts it off."""
    if edge is None:
        return ""
    return f"{edge.name}{_broken(edge)}{_slope(edge)} ← ".lstrip()


def _broken(edge: Edge) -> str:
    if edge.kind != "cut":
        return ""
    where = f", {edge.site.file.rpartition('/')[2]}:{edge.site.line}" if edge.site else ""
    return say(" (cut by {reason})", reason=f"{edge.reason}{where}")


def _slope(edge: Edge) -> str:
    """The local derivative of an edge, where it is a number."""
    derivative = edge.derivative
    return f" (∂ = {derivative.values:g})" if derivative is not None and derivative.kind == "scalar" else ""


def _gradient(node: Node, opening: str = "  [", closing: str = "]") -> str:
    """What a backward found at a node."""
    gradient = next((output.gradient for output in node.outputs if output.gradient is not None), None)
    if gradient is None:
        return ""
    notes = [say("|grad| {norm}", norm=f"{gradient.norm:.3g}")]
    notes += [say("{share} zeros", share=f"{gradient.zeros:.0%}")] if gradient.zeros >= 0.5 else []
    notes += [say("{n} NaN", n=gradient.nan)] if gradient.nan else []
    notes += [say("{n} infinite", n=gradient.inf)] if gradient.inf else []
    return f"{opening}{say(', ').join(notes)}{closing}"
