"""A graph as people look at it: modules collapsed into one unit each, down to a chosen depth, leaves beside their users.

Text and pictures are made from a `View`. The units of a view follow one another in the order of the data.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from pellucid.core.language import say
from pellucid.graph.selecting import feeding
from pellucid.graph.snapshot import Edge, Graph, Node, Output

__all__ = ["Unit", "View", "bytes_text", "shape_text", "view_of"]


@dataclass(slots=True)
class Unit:
    """An operation, a leaf, an input, or a call of a module with all the operations in it.

    sources: for each operand from outside: (number of the unit it comes from, the edge).
    """

    number: int
    kind: str  # "operation", "module", "leaf", "input"
    nodes: list[int]
    call: int | None = None
    title: str = ""
    name: str = ""
    shape: str = ""
    sources: list[tuple[int, Edge]] = field(default_factory=list)
    users: int = 0


@dataclass(slots=True)
class View:
    """The units of a graph, and in which of them its roots are."""

    graph: Graph
    units: list[Unit]
    roots: list[int]

    def signature(self, unit: Unit) -> tuple:
        """What is the same for units that do the same on data of the same shape."""
        into = tuple(
            (edge.name, edge.kind, self.units[source].kind)
            for source, edge in unit.sources
            if self.units[source].name or self.units[source].kind != "input"
        )
        title = unit.title if unit.call is None else self.graph.calls[unit.call].type
        return unit.kind, title, unit.shape, len(unit.nodes), into, unit.users > 1


def view_of(graph: Graph, expand: int | str | None = None) -> View:
    """The view of a graph.

    expand: how many levels of modules to open: 0 shows each outermost call as one unit, "all" opens all; None opens
    none, or one level where there is a single module and nothing else to see.

    Operations in the forward of a custom Function are part of it and are not shown.

    Raises:
        ValueError: `expand` is something else.
    """
    if expand is None:
        view = _view(graph, 0)
        shown = [unit for unit in view.units if unit.kind not in ("leaf", "input")]
        return _view(graph, 1) if len(shown) == 1 and shown[0].kind == "module" else view
    if expand != "all" and (not isinstance(expand, int) or expand < 0):
        raise ValueError(f"expand must be a number of levels from 0 up, 'all' or None, got {expand!r}")
    return _view(graph, None if expand == "all" else int(expand))


def _view(graph: Graph, expand: int | None) -> View:
    depth_of = _depths(graph)
    number_of: dict[tuple, int] = {}  # what a unit stands for -> its number
    unit_of: list[int] = []  # for each node
    units: list[Unit] = []
    for node in graph.nodes:
        key = _unit_key(graph, node, depth_of, expand)
        if key not in number_of:
            number_of[key] = len(units)
            units.append(_unit(graph, node, key, len(units)))
        units[number_of[key]].nodes.append(node.id)
        unit_of.append(number_of[key])
    _collect(graph, units, unit_of)
    view = View(graph, units, list(dict.fromkeys(unit_of[node] for node, _ in graph.roots)))
    calls = Counter(unit.title for unit in units if unit.kind == "module")
    for unit in units:
        _describe(graph, unit, calls[unit.title] > 1)
    return _arranged(view, _shown(view))


def _depths(graph: Graph) -> list[int]:
    """How deep each module call is nested; 0 for the outermost."""
    depths: list[int] = []
    for call in graph.calls:
        depths.append(0 if call.parent is None else depths[call.parent] + 1)
    return depths


def _unit_key(graph: Graph, node: Node, depths: list[int], expand: int | None) -> tuple:
    """What the unit of a node stands for: a call of a module that stays closed, or the node alone."""
    call = node.call
    if expand is None or call is None or node.kind != "operation" or depths[call] < expand:
        return "node", node.id
    while depths[call] > expand:
        call = graph.calls[call].parent or 0
    return "call", call


def _unit(graph: Graph, node: Node, key: tuple, number: int) -> Unit:
    if key[0] == "node":
        return Unit(number, node.kind, [], title=node.name)
    call = graph.calls[key[1]]
    return Unit(number, "module", [], call=call.id, title=f"{call.path}: {call.type}")


def _collect(graph: Graph, units: list[Unit], unit_of: list[int]) -> None:
    """Tie the units together."""
    for edges in feeding(graph):
        for edge in edges:
            source, target = unit_of[edge.source], unit_of[edge.target]
            if source != target:
                units[target].sources.append((source, edge))


def _describe(graph: Graph, unit: Unit, again: bool) -> None:
    """The name and shape of what a unit gives to others: of a module what it computed last.

    again: whether the module stands there several times, so that its calls must be told apart.
    """
    if again:
        unit.title += f" {say('(call {n})', n=graph.calls[unit.call or 0].number + 1)}"
    output = _given(graph, unit)
    if output is not None:
        unit.shape = shape_text(output)
        unit.name = output.name


def _given(graph: Graph, unit: Unit) -> Output | None:
    last = graph.nodes[unit.nodes[-1]]
    return next((o for o in last.outputs if o.name), last.outputs[0] if last.outputs else None)


def _shown(view: View) -> list[Unit]:
    """The units to show: not what ran inside custom Functions, which stand for it, nor parameters and buffers of closed
    modules."""
    users: dict[int, set[int]] = {}
    for unit in view.units:
        for source, _ in unit.sources:
            users.setdefault(source, set()).add(unit.number)
    nodes, paths = view.graph.nodes, {call.path for call in view.graph.calls}
    inside = {unit.number for unit in view.units if all(nodes[n].inside for n in unit.nodes)}
    inside -= {number for number in inside if users.get(number, set()) - inside}
    closed = {unit.number for unit in view.units if unit.kind == "module"} | inside
    parameters = {
        unit.number
        for unit in view.units
        if unit.kind in ("leaf", "input")
        and unit.name.rpartition(".")[0] in paths
        and users.get(unit.number, {-1}) <= closed
    }
    hidden = (inside | parameters) - set(view.roots)
    return [unit for unit in view.units if unit.number not in hidden]


def _arranged(view: View, units: list[Unit]) -> View:
    """These units in the order of the data, a module after all that goes into it."""
    units.sort(key=lambda unit: (unit.nodes[-1], unit.nodes[0]))
    new = {unit.number: number for number, unit in enumerate(units)}
    for unit in units:
        unit.number = new[unit.number]
        unit.sources = [(new[source], edge) for source, edge in unit.sources if source in new]
        unit.users = 0
    for unit in units:
        for source in {source for source, _ in unit.sources}:
            units[source].users += 1
    return View(view.graph, units, [new[root] for root in view.roots if root in new])


# --- texts ------------------------------------------------------------------------------------------------------------


def shape_text(output: Output) -> str:
    """The shape of an output, `[2, 3]`; `[?]` where it is not known. Other element types than float32 are named."""
    shape = "[?]" if output.shape is None else f"[{', '.join(map(str, output.shape))}]"
    return shape if output.dtype in ("", "float32") else f"{shape} {output.dtype}"


def bytes_text(count: int) -> str:
    """A number of bytes in a unit that suits it: `12 B`, `3.4 kB`, `1.2 MB` (1 kB is 1000 B)."""
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{count} B" if unit == "B" else f"{size:.3g} {unit}"
