"""`graph.live`: which graphs are alive, how large they are, what they keep, and under which names the program holds them."""

from __future__ import annotations

import gc
import itertools
import re
import sys
import threading
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from types import FrameType
from typing import Any

from pellucid.autograd.growth import GraphGrowthWarning, living_results
from pellucid.autograd.node import AccumulateGrad, Freed
from pellucid.autograd.node import Node as GradNode
from pellucid.core.frames import outer_frames, variables
from pellucid.core.language import counted, say
from pellucid.core.sites import outside
from pellucid.core.tensor import Tensor, storage_of
from pellucid.graph.building import Builder, array_of, saved_values
from pellucid.graph.names import names_in
from pellucid.graph.snapshot import Line
from pellucid.graph.tables import html_table, text_table
from pellucid.graph.view import bytes_text
from pellucid.graph.walk import execution_order

__all__ = ["GraphGrowthWarning", "Live", "LiveGraph", "live"]

MOST_ITEMS = 100_000  # of a container that is searched for tensors
MOST_TEXT = 90  # characters of a line that are shown


@dataclass(frozen=True)
class LiveGraph:
    """A graph that is alive, seen from a tensor that nothing else that is alive was computed from; or several that one
    container holds and one line computed.

    names: the expressions under which the program holds the tensors; where none was found, what holds it in words.
    count: how many tensors. nodes: operations that are not counted with a graph listed before. depth: operations on the longest path.
    freed: how many of the nodes a backward has freed. bytes: kept by these nodes for backward, each piece of memory
    once over all graphs. site: the line that computed the tensor.
    """

    names: list[str]
    count: int
    shape: tuple[int, ...]
    operation: str
    depth: int
    nodes: int
    freed: int
    bytes: int
    site: Line | None


class Live:
    """All graphs that are alive, the largest first. `print` shows them; in notebooks it is a table."""

    def __init__(self, graphs: list[LiveGraph]):
        self.graphs = graphs

    def __iter__(self) -> Iterator[LiveGraph]:
        return iter(self.graphs)

    def __len__(self) -> int:
        return len(self.graphs)

    def __repr__(self) -> str:
        nodes, kept = sum(g.nodes for g in self.graphs), sum(g.bytes for g in self.graphs)
        graphs = sum(g.count for g in self.graphs)
        count = counted("{n} graph alive", "{n} graphs alive", graphs)
        return f"<{say('{graphs}: {n} operations, {size} kept for backward', graphs=count, n=f'{nodes:,}', size=bytes_text(kept))}>"

    def __str__(self) -> str:
        return f"{repr(self)[1:-1]}\n\n{text_table(*self._rows(), left=2, last_left=True)}\n"

    def _repr_html_(self) -> str:
        return f"<p>{repr(self)[1:-1]}</p>{html_table(*self._rows(), left=2, last_left=True)}"

    def _rows(self) -> tuple[list[str], list[list[str]]]:
        rows = []
        for graph in self.graphs:
            site = "" if graph.site is None else f"{graph.site}  {graph.site.source}"[:MOST_TEXT]
            rows.append(
                [_names_text(graph), f"{graph.operation} {list(graph.shape)}", f"{graph.nodes:,}", f"{graph.depth:,}",
                 f"{graph.freed:,}", bytes_text(graph.bytes), site]
            )  # fmt: skip
        headers = [say("held by"), say("computed by"), say("operations"), say("depth"), say("freed"), say("kept"), say("line")]
        return headers, rows


def _names_text(graph: LiveGraph) -> str:
    names = graph.names
    if graph.count > 1:
        return f"{names[0]} ... {names[-1]} ({graph.count:,})"
    rest = [say("and {n} more", n=len(names) - 3)] if len(names) > 3 else []
    return say(", ").join([*names[:3], *rest])


def live() -> Live:
    """Which graphs are alive in this process.

    A graph is alive as long as a tensor that it leads to is. Listed are tensors that are not part of another living
    graph, with the names that hold them: variables of running functions and modules, items of their containers,
    attributes of their objects.
    """
    results = living_results()
    found = _measured(results)
    names = _holders({id(tensor): tensor for tensor, *_ in found}, sys._getframe(1))
    builder = Builder()
    graphs = []
    for tensor, nodes, depth, freed, kept in found:
        node = tensor._edge[0]
        held = names.get(id(tensor)) or [_in_words(tensor, results)]
        site = builder.line(node.code, node.lasti)
        graphs.append(LiveGraph(held, 1, tuple(tensor._array.shape), node.name(), depth, nodes, freed, kept, site))
    return Live(sorted(_together(graphs), key=lambda graph: (-graph.bytes, -graph.nodes)))


def _together(graphs: list[LiveGraph]) -> list[LiveGraph]:
    """Graphs of one container and one line as one."""
    groups: dict[Any, list[LiveGraph]] = {}
    for number, graph in enumerate(graphs):
        container = re.sub(r"\[\d+\]$", "[]", graph.names[0])
        alone = number if container == graph.names[0] else None
        groups.setdefault((container, graph.operation, str(graph.site), alone), []).append(graph)
    return [group[0] if len(group) == 1 else _as_one(group) for group in groups.values()]


def _as_one(group: list[LiveGraph]) -> LiveGraph:
    names = [graph.names[0] for graph in reversed(group)]  # the newest came first
    nodes, freed, kept = (sum(getattr(graph, what) for graph in group) for what in ("nodes", "freed", "bytes"))
    first, depth = group[0], max(graph.depth for graph in group)
    return LiveGraph(names, len(group), first.shape, first.operation, depth, nodes, freed, kept, first.site)


def _measured(results: list[Tensor]) -> list[tuple[Tensor, int, int, int, int]]:
    """Tensor, nodes, depth, freed nodes and bytes, for each tensor that leads to a node no newer one leads to."""
    depths: dict[GradNode, int] = {}
    storages: set[int] = set()
    found = []
    for tensor in results:
        order = execution_order([tensor._edge[0]], depths.__contains__)
        for node in order:
            before = [edge[0] for edge in node.edges if edge is not None and edge[0].__class__ is not AccumulateGrad]
            depths[node] = 1 + max((depths[each] for each in before), default=0)
        if order:
            freed = sum(isinstance(node.adjust, Freed) for node in order)
            kept = sum(_kept(node, storages) for node in order)
            found.append((tensor, len(order), depths[tensor._edge[0]], freed, kept))
    return found


def _kept(node: GradNode, storages: set[int]) -> int:
    """The bytes that a node keeps, without what is counted already and without leaves."""
    total = 0
    for _, value in saved_values(node):
        array = array_of(value)
        is_leaf = isinstance(value, Tensor) and value._requires_grad and value._edge is None
        if array is not None and not is_leaf:
            owner = storage_of(array)
            if id(owner) not in storages:
                storages.add(id(owner))
                total += owner.nbytes
    return total


# --- who holds them ---------------------------------------------------------------------------------------------------


def _holders(wanted: dict[int, Tensor], here: FrameType) -> dict[int, list[str]]:
    """The names under which tensors are held, by id."""
    found: dict[int, list[str]] = {}
    for scope in _scopes(here):
        for name, value in scope.items():
            for expression, tensor in names_in(name, value, MOST_ITEMS):
                if id(tensor) in wanted:
                    found.setdefault(id(tensor), []).append(expression)
    return {key: list(dict.fromkeys(names)) for key, names in found.items()}


def _scopes(here: FrameType) -> Iterator[dict[str, Any]]:
    """The variables of all running functions and of the modules they belong to."""
    seen: list[dict] = []
    # not the frame of this thread, which is that of this function: a variable that holds it would be a cycle
    others = [frame for thread, frame in sys._current_frames().items() if thread != threading.get_ident()]
    for frame in itertools.chain(outer_frames(here), *(outer_frames(other) for other in others)):
        if frame.f_locals is not frame.f_globals:
            yield variables(frame)
        if all(frame.f_globals is not scope for scope in seen):
            seen.append(frame.f_globals)
    for module in list(sys.modules.values()):
        scope = getattr(module, "__dict__", None)
        file = getattr(module, "__file__", None)
        if isinstance(scope, dict) and isinstance(file, str) and outside[file] and "site-packages" not in file:
            if all(scope is not each for each in seen):
                seen.append(scope)
    for scope in seen:
        yield {name: value for name, value in list(scope.items()) if not name.startswith("__")}


def _in_words(tensor: Tensor, results: list[Tensor]) -> str:
    """What holds a tensor that no name was found for."""
    for holder in gc.get_referrers(tensor):
        if holder is results or isinstance(holder, (FrameType, GradNode)):
            continue
        if isinstance(holder, dict):
            for key, value in list(holder.items()):
                if value is tensor:
                    return say("{key} of {owner}", key=repr(key), owner=_owner(holder))
        elif isinstance(holder, (list, tuple, deque, set)):
            if not (isinstance(holder, tuple) and len(holder) == 5):  # one of the tuples of this search
                return say("an item of a {type} of {n}", type=type(holder).__name__, n=len(holder))
        elif type(holder).__name__ == "cell":
            return say("a closure")
    return say("(not found)")


def _owner(attributes: dict) -> str:
    """The object whose attributes a dictionary holds."""
    for holder in gc.get_referrers(attributes):
        if getattr(holder, "__dict__", None) is attributes:
            return say("a {type}", type=type(holder).__name__)
    return say("a dict of {n}", n=len(attributes))
