"""The report that `graph.memory` gives: what is kept for backward and by whom, and the course of a run."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from pellucid.core.language import counted, say, template
from pellucid.graph.snapshot import Graph, Node, Saved
from pellucid.graph.tables import html_table, text_table
from pellucid.graph.view import bytes_text

__all__ = ["Kept", "Memory", "ModuleMemory", "Moment"]


@dataclass(frozen=True)
class Moment:
    """A step of a run. `node` is the operation, or the leaf that got its gradient; `used` are the bytes of all arrays
    that are alive after it and were not there before the run, `peak` the most that was in use while it ran."""

    phase: str
    node: Node | None
    used: int
    peak: int


@dataclass(frozen=True)
class Kept:
    """A piece of memory that is kept for backward. `node` saved it first, as `saved`; `users` counts nodes that save it."""

    bytes: int
    node: Node
    saved: Saved
    users: int


@dataclass
class ModuleMemory:
    """What the operations of a module and all below it keep: each piece counted where it was saved first."""

    path: str
    type: str
    depth: int
    saved: int = 0


class Memory:
    """What a program keeps for backward, and its peak. `print` shows it; in notebooks it is a table.

    saved: bytes kept for backward, each piece of memory once; parameters and inputs, which live anyway, are not in it.
    kept: those pieces, the largest first. modules: the same by module.
    parameters, inputs: bytes of leaves and inputs that nodes save too.
    after_forward: bytes alive after the forward that were not there before: what is saved, and results; None if not run.
    peak: the moment of the largest use, None if nothing was run. moments: the whole course.
    graph: the graph that was recorded.
    """

    def __init__(self, graph: Graph, moments: list[Moment], after_forward: int | None = None):
        self.graph, self.moments, self.after_forward = graph, moments, after_forward
        self.kept = _kept(graph)
        self.saved = sum(piece.bytes for piece in self.kept)
        used = {saved.storage for node in graph.nodes for saved in node.saved}
        self.parameters = sum(graph.storages[k].bytes for k in used if graph.storages[k].kind == "leaf")
        self.inputs = sum(graph.storages[k].bytes for k in used if graph.storages[k].kind == "input")
        self.modules = _by_module(graph, self.kept)
        self.peak = max(moments, key=lambda moment: moment.peak, default=None)

    def top(self, count: int = 10) -> list[Kept]:
        """The largest pieces of memory that are kept."""
        return self.kept[:count]

    # --- showing -----------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return f"<{self._title()}: {'; '.join(self._notes())}>"

    def text(self, depth: int = 2, count: int = 10) -> str:
        """All of it. depth: how deep modules are shown; count: how many of the largest pieces."""
        parts = [self._title(), "\n".join(self._notes())]
        if self.modules:
            parts.append(text_table(*self._module_rows(depth), left=2))
        if self.kept:
            parts.append(text_table(*self._top_rows(count), left=0, last_left=True))
        return "\n\n".join(parts) + "\n"

    def __str__(self) -> str:
        return self.text()

    def _repr_html_(self) -> str:
        tables = html_table(*self._module_rows(2), left=2) if self.modules else ""
        tables += html_table(*self._top_rows(10), left=0, last_left=True)
        return f"<p>{'<br>'.join(map(escape, self._notes()))}</p>{tables}"

    def _title(self) -> str:
        return say("memory of {title}", title=self.graph.title or say("results"))

    def _notes(self) -> list[str]:
        one, many = template("{size} saved for backward in {n} piece"), template("{size} saved for backward in {n} pieces")
        notes = [counted(one, many, len(self.kept), size=bytes_text(self.saved))]
        if self.graph.freed:
            notes.append(say("a backward has freed saved values already"))
        if self.parameters or self.inputs:
            text = template("nodes also hold {parameters} of parameters and {inputs} of inputs, which live anyway")
            notes.append(say(text, parameters=bytes_text(self.parameters), inputs=bytes_text(self.inputs)))
        if self.after_forward is not None:
            notes.append(say("{size} in use after the forward", size=bytes_text(self.after_forward)))
        if self.peak is not None:
            phase, name = say(self.peak.phase), self._name(self.peak.node)
            notes.append(say("peak {size} in the {phase} of {name}", size=bytes_text(self.peak.peak), phase=phase, name=name))
        return notes

    def _name(self, node: Node | None) -> str:
        if node is None:
            return say("an operation that is not in the graph")
        if node.kind != "operation":
            return say("the gradient of {name}", name=node.label)
        module = self.graph.module_of(node)
        where = say(" in {module}", module=module) if module else ""
        return node.name + where + (say(" at {site}", site=node.site) if node.site else "")

    def _module_rows(self, depth: int) -> tuple[list[str], list[list[str]]]:
        rows = [["  " * m.depth + m.path, m.type, bytes_text(m.saved)] for m in self.modules if m.depth <= depth]
        return [say("module"), say("type"), say("saved")], rows

    def _top_rows(self, count: int) -> tuple[list[str], list[list[str]]]:
        rows = []
        for piece in self.top(count):
            shape = f"{list(piece.saved.shape)} {piece.saved.dtype}"
            name = say("{value} of {node}", value=piece.saved.name, node=self._name(piece.node))
            rows.append([bytes_text(piece.bytes), shape, f"{piece.users}", name])
        return [say("bytes"), say("value"), say("nodes"), say("saved as")], rows


def _kept(graph: Graph) -> list[Kept]:
    """The pieces of memory kept for backward, the largest first."""
    first: dict[int, tuple[Node, Saved]] = {}
    users: dict[int, set[int]] = {}
    for node in graph.nodes:
        for saved in node.saved:
            if graph.storages[saved.storage].kind == "activation":
                first.setdefault(saved.storage, (node, saved))
                users.setdefault(saved.storage, set()).add(node.id)
    pieces = [Kept(graph.storages[k].bytes, node, saved, len(users[k])) for k, (node, saved) in first.items()]
    return sorted(pieces, key=lambda piece: (-piece.bytes, piece.node.id))


def _by_module(graph: Graph, kept: list[Kept]) -> list[ModuleMemory]:
    """One row for each module that was called, in the order of the first calls."""
    rows: dict[str, ModuleMemory] = {}
    depths: dict[int | None, int] = {None: -1}
    for call in graph.calls:
        depths[call.id] = depths[call.parent] + 1
        if call.phase == "forward":
            rows.setdefault(call.path, ModuleMemory(call.path, call.type, depths[call.id]))
    for piece in kept:
        call = piece.node.call
        paths: dict[str, None] = {}
        while call is not None:
            paths[graph.calls[call].path] = None
            call = graph.calls[call].parent
        for path in paths:
            if path in rows:
                rows[path].saved += piece.bytes
    return list(rows.values())
