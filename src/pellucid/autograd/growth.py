"""A warning about graphs that grow with every iteration (`total += loss`), at no cost to operators and backward.

Such a graph keeps the graphs of all earlier iterations alive. Python's cyclic garbage collector notices when objects
accumulate, and calls back; when some thousand nodes have been made since the last look, and enough time has passed that
looking costs next to nothing, the living graphs are measured. One that is deeper each time, and parts of which have been
differentiated already, is reported once, with its line.

Here is also the measuring, which `graph.live` uses.
"""

from __future__ import annotations

import gc
import sys
import time
import warnings
from collections.abc import Iterable
from types import CodeType
from typing import Any, NamedTuple

from pellucid.autograd.node import FREED, AccumulateGrad, Node, next_sequence
from pellucid.core.sites import Site, outside
from pellucid.core.tensor import Tensor

__all__ = ["GraphGrowthWarning", "Size", "living_results", "look", "measure"]

EVERY = 2000  # nodes made between two looks, at least
SHARE = 0.02  # of the time, that looking may take
SHALLOW = 100  # a graph of less depth than this is not worth a word
DEEPER = 20  # operations by which a graph must have grown
FREED_ENOUGH = 20  # nodes differentiated already
LOOKS = 3  # times in a row that a graph must have grown


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
        freed += node.adjust is FREED
    return Size(depths[root], count, freed)


class _History:
    """What was seen so far. `depths`: for each line, how deep its graph was at each look that found it deeper."""

    next_node = EVERY  # when to look again: not before so many nodes were made
    next_time = 0.0  # and not before this time
    depths: dict[tuple[CodeType, int], list[int]] = {}  # noqa: RUF012 (there is one history)
    reported: set[tuple[CodeType, int]] = set()  # noqa: RUF012


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
    """Measure the living graphs, and warn of one that has been deeper each of the last times."""
    results = living_results()
    deepest: dict[tuple[CodeType, int], tuple[Size, Tensor]] = {}
    for tensor, size in zip(results, measure(results), strict=True):
        node = tensor._edge[0]
        place = node.code, node.lasti
        if node.code is not None and (place not in deepest or size.depth > deepest[place][0].depth):
            deepest[place] = size, tensor
    for place in [place for place in _History.depths if place not in deepest]:
        del _History.depths[place]
    for place, (size, tensor) in deepest.items():
        _follow(place, size, tensor)


def _follow(place: tuple[CodeType, int], size: Size, tensor: Tensor) -> None:
    """Add a look at the deepest graph of a line."""
    depths = _History.depths.setdefault(place, [0])
    if size.depth < SHALLOW or size.freed < FREED_ENOUGH or size.depth < depths[-1] + DEEPER:
        _History.depths[place] = [size.depth]
        return
    depths.append(size.depth)
    if len(depths) > LOOKS and place not in _History.reported:
        _History.reported.add(place)
        _warn(Site.of(*place), size, tensor, depths[-2])


def _warn(site: Any, size: Size, tensor: Tensor, before: int) -> None:
    name = _name(tensor)
    what = f"`{name}`, " if name else "a tensor "
    message = (
        f"the graph of {what}made at {site}, grows with every iteration: it is {size.depth:,} operations deep, "
        f"{before:,} at the last look, and {size.freed:,} of its operations have been differentiated already. It keeps the "
        "graphs of all earlier iterations alive. To add up numbers, use loss.item() or loss.detach(); where a state is "
        "carried over, detach() it once in each iteration. pellucid.graph.live() shows which names hold graphs."
    )
    warnings.warn_explicit(message, GraphGrowthWarning, site.file, site.line)


def _name(tensor: Tensor) -> str:
    """The plain variable that holds a tensor in a running function of this thread; empty if none does."""
    frame: Any = sys._getframe(1)
    while frame is not None:
        if outside[frame.f_code.co_filename]:
            for name, value in (*frame.f_locals.items(), *frame.f_globals.items()):
                if value is tensor:
                    return name
        frame = frame.f_back
    return ""
