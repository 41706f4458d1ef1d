"""A warning about graphs that grow with every iteration (`total += loss`), at no cost to operators and backward.

Such a graph keeps the graphs of all earlier iterations alive. Python's cyclic garbage collector notices when objects
accumulate, and calls back; when some thousand nodes have been made since the last look, and enough time has passed that
looking costs next to nothing, the living nodes that a backward has already freed are counted. If they are more each
time, the living graphs are measured, and the deepest with such nodes in it is reported, once, with its line.

Here is also the measuring.
"""

from __future__ import annotations

import gc
import sys
import time
import warnings
from collections.abc import Iterable
from types import CodeType
from typing import Any, NamedTuple

from pellucid.autograd.node import AccumulateGrad, Freed, Node, next_sequence
from pellucid.core.frames import outer_frames, variables
from pellucid.core.language import say, sentences
from pellucid.core.sites import Site
from pellucid.core.tensor import Tensor

__all__ = ["GraphGrowthWarning", "Size", "living_results", "look", "measure"]

EVERY = 2000  # nodes made between two looks, at least
SHARE = 0.005  # of the time, that looking may take
MORE = 100  # freed nodes alive by which a look must exceed the one before
LOOKS = 3  # times in a row that it must
SHALLOW = 100  # a graph of less depth than this does not grow with every iteration


class GraphGrowthWarning(UserWarning):
    """A graph grows with every iteration and keeps what earlier iterations computed alive."""


class Size(NamedTuple):
    """The graph behind a tensor: operations on its longest path, operations not counted with another tensor's graph,
    and how many of these a backward has freed."""

    depth: int
    nodes: int
    freed: int


def living_results() -> list[Tensor]:
    """All tensors that are alive and were computed with a graph, the newest first."""
    found = []
    for thing in gc.get_objects():
        if Tensor in type(thing).__mro__:
            edge = getattr(thing, "_edge", None)  # one that is just being made has none yet
            if edge is not None:
                found.append(thing)
    found.sort(key=lambda tensor: -tensor._edge[0].sequence)
    return found


def measure(results: Iterable[Tensor]) -> list[Size]:
    """The sizes of the graphs behind tensors. Each node is met once and counted with the first tensor that leads to it."""
    depths: dict[Node, int] = {}
    return [_measure_one(tensor._edge[0], depths) for tensor in results]


def _measure_one(root: Node, depths: dict[Node, int]) -> Size:
    count = freed = 0
    stack = [root]
    while stack:
        node = stack[-1]
        if node in depths:
            stack.pop()
            continue
        inner = [edge[0] for edge in node.edges if edge is not None and edge[0].__class__ is not AccumulateGrad]
        waiting = [child for child in inner if child not in depths]
        if waiting:
            stack.extend(waiting)
            continue
        stack.pop()
        depths[node] = 1 + max((depths[child] for child in inner), default=0)
        count += 1
        freed += isinstance(node.adjust, Freed)
    return Size(depths[root], count, freed)


class _History:
    """What was seen so far."""

    next_node = EVERY  # when to look again: not before so many nodes were made
    next_time = 0.0  # and not before this time
    freed = 0  # nodes alive at the last look that a backward had freed
    times = 0  # looks in a row that found more of them
    search = 0  # how many there must be for the graphs to be measured
    reported: set[tuple[CodeType, int]] = set()  # noqa: RUF012 (there is one history)


def _collected(phase: str, info: dict) -> None:
    """What the garbage collector calls."""
    if phase == "stop":
        made = next_sequence()
        if made >= _History.next_node and time.perf_counter() >= _History.next_time:
            begin = time.perf_counter()
            look()
            now = time.perf_counter()
            _History.next_node, _History.next_time = made + EVERY, now + (now - begin) / SHARE


gc.callbacks.append(_collected)


def look() -> None:
    """Count the nodes that are alive though a backward has freed them; if they become ever more, find out why."""
    freed = 0
    for thing in gc.get_objects():
        if Node in type(thing).__mro__ and isinstance(getattr(thing, "adjust", None), Freed):
            freed += 1
    _History.times = _History.times + 1 if freed >= _History.freed + MORE else 0
    _History.freed = freed
    if _History.times >= LOOKS and freed >= _History.search:
        _History.search = 2 * freed
        _search()


def _search() -> None:
    """Warn of the deepest graph that has been differentiated in part."""
    results = living_results()
    found = [(size.depth, size, tensor) for tensor, size in zip(results, measure(results), strict=True) if size.freed]
    depth, size, tensor = max(found, key=lambda entry: entry[0], default=(0, None, None))
    if size is None or tensor is None or depth < SHALLOW:
        return
    node = tensor._edge[0]
    place = node.code, node.lasti
    if node.code is not None and place not in _History.reported:
        _History.reported.add(place)
        _warn(Site.of(*place), size, tensor)


def _warn(site: Any, size: Size, tensor: Tensor) -> None:
    name = _name(tensor)
    grows = say(
        "the graph of {what}, made at {site}, grows with every iteration: it is {depth} operations deep, and {freed} of its {nodes} "
        "operations have been differentiated already. It keeps the graphs of all earlier iterations alive.",
        what=f"`{name}`" if name else say("a tensor"), site=site, depth=f"{size.depth:,}", freed=f"{size.freed:,}", nodes=f"{size.nodes:,}",
    )  # fmt: skip
    advice = say(
        "To add up numbers, use loss.item() or loss.detach(); where a state is carried over, detach() it once in each iteration. "
        "pellucid.graph.live() shows which names hold graphs."
    )
    warnings.warn_explicit(sentences(grows, advice), GraphGrowthWarning, site.file, site.line)


def _name(tensor: Tensor) -> str:
    """The plain variable that holds a tensor in a running function of this thread; empty if none does."""
    for frame in outer_frames(sys._getframe(1)):
        for scope in (variables(frame), frame.f_globals):
            for name, value in list(scope.items()):
                if value is tensor:
                    return name
    return ""
