"""The data of a page: the whole graph, and what its pictures need, as one JSON text."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any

from pellucid.graph.page.blocks import Block
from pellucid.graph.page.content import Content
from pellucid.graph.page.labels import GRAD_CHARACTERS
from pellucid.graph.page.texts import page_texts

__all__ = ["MOST_UNFOLDED", "page_data", "page_json"]

MOST_UNFOLDED = 60  # equal blocks that can be shown one by one
DERIVED = ("outline", "edges", "format", "version")  # is in the page in another form


def page_json(content: Content, opened: Collection[int], graph: dict[str, Any]) -> str:
    """The data as JSON that can stand in an HTML page: no name in it can end the element that it is in."""
    text = json.dumps(page_data(content, opened, graph), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def page_data(content: Content, opened: Collection[int], graph: dict[str, Any]) -> dict[str, Any]:
    """The data as dictionaries and lists.

    graph: `Graph.to_dict()`. What is empty in it is left out, and each line of the program is in a list of sites once;
    an edge is a list: source, output, target, input, name, kind, reason, site, derivative.
    """
    sites = _Sites()
    edges = [_edge(edge, sites) for edge in graph["edges"]]
    edges += [[e.source, e.output, e.target, e.input, e.name, e.kind] for e in content.edges[len(edges) :]]
    nodes = [_node(node, sites) for node in graph["nodes"]]
    kept = {name: value for name, value in graph.items() if name not in DERIVED}
    labels = {str(number): rows for number in range(len(edges)) if (rows := content.edge_rows([number]))}
    things = [*range(len(graph["nodes"]) + len(content.constants))]
    return {
        "format": graph["format"],
        "version": graph["version"],
        "graph": {**kept, "nodes": nodes, "sites": sites.found},
        "edges": edges,
        "constants": content.constants,
        "labels": labels,
        "blocks": [_block(content, block) for block in content.blocks],
        "boxes": [_box(content, thing) for thing in things],
        "opened": sorted(opened),
        "learning": content.learning,
        "most_unfolded": MOST_UNFOLDED,
        "grad_characters": GRAD_CHARACTERS,
        "texts": page_texts(),
    }


class _Sites:
    """Lines of the program, each once."""

    def __init__(self):
        self.found: list[dict[str, Any]] = []
        self._numbers: dict[tuple, int] = {}

    def number(self, site: dict[str, Any] | None) -> int | None:
        if site is None:
            return None
        key = tuple(site.values())
        if key not in self._numbers:
            self._numbers[key] = len(self.found)
            self.found.append(site)
        return self._numbers[key]


def _node(node: dict[str, Any], sites: _Sites) -> dict[str, Any]:
    made = _trimmed({name: value for name, value in node.items() if name not in ("id", "site", "label", "module")})
    if node["site"] is not None:
        made["site"] = sites.number(node["site"])
    return made


def _edge(edge: dict[str, Any], sites: _Sites) -> list[Any]:
    made = [edge[name] for name in ("source", "output", "target", "input", "name", "kind", "reason")]
    made += [sites.number(edge["site"]), edge["derivative"]]
    while made[-1] in (None, ""):
        made.pop()
    return made


def _trimmed(value: dict[str, Any]) -> dict[str, Any]:
    """A dictionary, and those in its lists, without what is empty. Zero is not empty, nor is the shape of a scalar."""
    made = {}
    for name, item in value.items():
        if isinstance(item, list) and item and isinstance(item[0], dict):
            item = [_trimmed(each) for each in item]
        if name in ("shape", "value") or not _is_empty(item):
            made[name] = item
    return made


def _is_empty(item: Any) -> bool:
    return item is None or item is False or (isinstance(item, (str, list, dict)) and not item)


def _block(content: Content, block: Block) -> dict[str, Any]:
    label = content.label(block)
    return {
        "kind": block.kind,
        "parent": None if block.parent is None else block.parent.id,
        "items": [-1 - item.id if isinstance(item, Block) else item for item in block.items],
        "leaves": [*block.leaves, *content.constants_in(block)],
        "call": block.call,
        "first": block.first,
        "last": block.last,
        "count": block.count,
        "look": content.kind(block),
        "label": [label.name, label.what, label.rows],
        "size": content.size(block),
        "root": content.holds_root(block),
    }


def _box(content: Content, thing: int) -> list[Any]:
    label = content.label(thing)
    box = [content.kind(thing), [label.name, label.what, label.rows], content.size(thing)]
    return [*box, 1] if content.holds_root(thing) else box
