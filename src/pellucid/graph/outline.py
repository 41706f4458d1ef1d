"""The tree of module calls with the operations in them, equal calls that follow one another folded: for a page to open
and close. Plain dictionaries; leaves and inputs are not in it."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from pellucid.graph.folding import runs
from pellucid.graph.snapshot import Graph, Node

__all__ = ["Group", "grouped", "outline", "what_it_does"]


class Group:
    """A module call with what ran in it; `call` is None for the whole program.

    items: groups and node numbers in the order they ran. count: of all operations in it. signature: equal for groups
    that do the same.
    """

    def __init__(self, call: int | None):
        self.call = call
        self.items: list[Group | int] = []
        self.count = 0
        self.signature: Hashable = None


def outline(graph: Graph) -> dict[str, Any]:
    """The outermost group: `{call, path, type, times, calls, nodes, items}`.

    items: groups and node numbers in the order they ran. times: how many equal calls were folded into this one; `calls`
    names all of them, `items` are those of the first. nodes: how many operations are in one of them.
    """
    return _as_dict(graph, grouped(graph))


def grouped(graph: Graph) -> Group:
    """The outermost group, with all groups in it. Leaves, inputs and what ran in custom Functions are left out."""
    top = Group(None)
    groups: dict[int | None, Group] = {None: top}
    for node in graph.nodes:
        if node.kind == "operation" and not node.inside:
            _group(graph, groups, node.call).items.append(node.id)
    seen: dict[Hashable, int] = {}
    for group in sorted(groups.values(), key=lambda g: -1 if g.call is None else g.call, reverse=True):
        _sign(graph, group, seen)
    return top


def _group(graph: Graph, groups: dict[int | None, Group], call: int | None) -> Group:
    """The group of a call; it is put into that of its parent on first sight, and so on outwards."""
    missing = []
    while call not in groups:
        missing.append(call)
        call = graph.calls[call or 0].parent
    group = groups[call]
    for each in reversed(missing):
        inner = groups[each] = Group(each)
        group.items.append(inner)
        group = inner
    return group


def _sign(graph: Graph, group: Group, seen: dict[Hashable, int]) -> None:
    """Number what a group does: equal groups get equal numbers. Inner groups have been signed."""
    kind = "" if group.call is None else graph.calls[group.call].type
    parts = tuple(i.signature if isinstance(i, Group) else what_it_does(graph.nodes[i]) for i in group.items)
    group.count = sum(i.count if isinstance(i, Group) else 1 for i in group.items)
    group.signature = seen.setdefault((kind, parts), len(seen))


def what_it_does(node: Node) -> Hashable:
    """Equal for operations that do the same on data of the same shape."""
    return node.name, tuple(o.shape for o in node.outputs), tuple(sorted(node.attributes.items()))


def _as_dict(graph: Graph, group: Group, calls: list[int] | None = None) -> dict[str, Any]:
    """A group as a dictionary. Its depth is that of module calls within module calls, which Python's stack has held."""
    items: list[Any] = []
    keys = [i.signature if isinstance(i, Group) else ("node", i) for i in group.items]
    for start, _, times in runs(keys, longest=1):
        item = group.items[start]
        if isinstance(item, Group):
            folded = [g.call for g in group.items[start : start + times] if isinstance(g, Group) and g.call is not None]
            items.append(_as_dict(graph, item, folded))
        else:
            items.append(item)
    call = None if group.call is None else graph.calls[group.call]
    return {
        "call": group.call,
        "path": "" if call is None else call.path,
        "type": "" if call is None else call.type,
        "times": len(calls) if calls else 1,
        "calls": calls or [],
        "nodes": group.count,
        "items": items,
    }
