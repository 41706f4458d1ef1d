"""A graph in the forms of other tools: nested dictionaries, JSON, Graphviz's language, NetworkX.

`to_dict` gives the data classes of `snapshot.py` as they are, with what can be derived from them beside them.
"""

from __future__ import annotations

import functools
import json
import math
from itertools import pairwise
from typing import Any

from pellucid.graph.outline import outline
from pellucid.graph.pausing import collector_paused
from pellucid.graph.snapshot import Edge, Graph, Node
from pellucid.graph.view import Unit, View, view_of

__all__ = ["FORMAT", "VERSION", "to_dict", "to_dot", "to_json", "to_networkx"]

FORMAT, VERSION = "pellucid graph", 1


@collector_paused()
def to_dict(graph: Graph) -> dict[str, Any]:
    """The graph as nested dictionaries and lists of numbers and texts, as `Graph.json` writes it."""
    made = {"format": FORMAT, "version": VERSION, **_plain(graph)}
    for node, data in zip(graph.nodes, made["nodes"], strict=True):
        data["label"], data["module"] = node.label, graph.module_of(node)
    made["saved_bytes"] = graph.saved_bytes
    made["outline"] = outline(graph)
    return made


def _plain(value: Any) -> Any:
    """Data classes as dictionaries; numbers that JSON has no form for as texts."""
    kind = value.__class__
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is list or kind is tuple:
        return [_plain(item) for item in value] if value else []
    if kind is dict:
        return {key: _plain(item) for key, item in value.items()}
    if kind is float:
        return value if math.isfinite(value) else str(value)
    if kind is complex:
        return str(value)
    return {name: _plain(getattr(value, name)) for name in _field_names(kind)}


@functools.cache
def _field_names(kind: type) -> tuple[str, ...]:
    return tuple(name for name in kind.__dataclass_fields__ if not name.startswith("_"))


@collector_paused()
def to_json(graph: Graph, indent: int | None = None) -> str:
    """The graph as JSON text."""
    return json.dumps(to_dict(graph), indent=indent, ensure_ascii=False, allow_nan=False)


# --- NetworkX --------------------------------------------------------------------------------------------------------


@collector_paused()
def to_networkx(graph: Graph) -> Any:
    """A `networkx.MultiDiGraph` with the data on its nodes and edges.

    Raises:
        ImportError: NetworkX is not installed.
    """
    try:
        import networkx
    except ImportError as error:
        raise ImportError("to_networkx needs the package networkx: pip install networkx") from error
    made = networkx.MultiDiGraph(title=graph.title)
    for node in graph.nodes:
        made.add_node(node.id, label=node.label, module=graph.module_of(node), **_fields(node, "id"))
    for edge in graph.edges:
        made.add_edge(edge.source, edge.target, **_fields(edge, "source", "target"))
    return made


def _fields(value: Node | Edge, *without: str) -> dict[str, Any]:
    return {name: getattr(value, name) for name in value.__dataclass_fields__ if name not in without}


# --- Graphviz --------------------------------------------------------------------------------------------------------

STYLES = {
    "leaf": 'shape=box, style="rounded,filled", fillcolor="#dcf2d8", color="#2e7d32"',
    "input": 'shape=box, style="rounded,filled", fillcolor="#eeeeee", color="#777777"',
    "operation": 'shape=box, style=filled, fillcolor="#dceafb", color="#1f5fa8"',
    "module": 'shape=box3d, style=filled, fillcolor="#efe4fb", color="#6a3fa0"',
}


@collector_paused()
def to_dot(graph: Graph, expand: int | str | None = None) -> str:
    """The graph in Graphviz's language: opened modules are clusters, cuts are dashed red."""
    view = view_of(graph, expand)
    lines = ["digraph {", "  rankdir=BT", '  node [fontname="monospace", fontsize=10]', '  edge [fontname="monospace", fontsize=9]']
    lines += _clusters(view)
    for unit in view.units:
        for source, edge in unit.sources:
            lines.append(f"  n{source} -> n{unit.number}{_edge_style(edge)}")
    return "\n".join([*lines, "}", ""])


def _clusters(view: View) -> list[str]:
    """The units, in a cluster for each opened module that they are in."""
    inside: dict[int | None, list[Unit | int]] = {None: []}  # call -> units and inner calls, in order
    for unit in view.units:
        calls: list[int | None] = [None, *_opened(view, unit)]
        for outer, call in pairwise(calls):
            if call is not None and call not in inside:
                inside[call] = []
                inside[outer].append(call)
        inside[calls[-1]].append(unit)
    return _cluster_lines(view, inside, None, "  ")


def _cluster_lines(view: View, inside: dict, call: int | None, indent: str) -> list[str]:
    """The lines of one cluster; as deep as modules are nested."""
    lines = []
    for item in inside[call]:
        if isinstance(item, int):
            each = view.graph.calls[item]
            lines.append(f"{indent}subgraph cluster_{item} {{ label={_quoted(f'{each.path}: {each.type}')}")
            lines += [*_cluster_lines(view, inside, item, indent + "  "), f"{indent}}}"]
        else:
            label = "\n".join(text for text in _label(item) if text)
            lines.append(f"{indent}n{item.number} [label={_quoted(label)}, {STYLES[item.kind]}]")
    return lines


def _label(unit: Unit) -> tuple[str, ...]:
    title = "" if unit.name and unit.kind in ("leaf", "input") else unit.title
    return unit.name, title, unit.shape


def _opened(view: View, unit: Unit) -> list[int]:
    """The module calls around a unit, outermost first."""
    graph = view.graph
    call = graph.nodes[unit.nodes[0]].call if unit.call is None else graph.calls[unit.call].parent
    found: list[int] = []
    while call is not None:
        found.append(call)
        call = graph.calls[call].parent
    return found[::-1]


def _edge_style(edge: Edge) -> str:
    if edge.kind == "cut":
        where = f" {edge.site}" if edge.site else ""
        return f' [style=dashed, color="#c62828", label={_quoted(f"{edge.reason}{where}")}]'
    return ' [color="#999999"]' if edge.kind == "constant" else ""


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
