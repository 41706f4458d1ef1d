"""What the error about a second backward says: what both share, where the first one ran, what to change."""

from __future__ import annotations

import sys
from collections.abc import Iterator

from pellucid.autograd.engine import current_task
from pellucid.autograd.node import AccumulateGrad, Freed, Node
from pellucid.autograd.reach import consumers_of, upwards
from pellucid.core.names import Names, names_here
from pellucid.core.sites import Site, at

__all__ = ["freed_text"]

FIRST = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed): saved values are freed by the first .backward() or autograd.grad() that goes through them."
)
LAST = (
    "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
    "after calling backward: the first backward then keeps them all in memory."
)
SHARED = (
    "Two results share this part of the graph: add them and call backward once, (a + b).backward(), or compute the shared part "
    "again for the second."
)
WHOLE = "This whole graph has been differentiated: run the forward again before each backward."
MOST = 3  # carried values that are named


def freed_text(node: Node, freed: Freed) -> str:
    """The text of the error about a node whose saved values `freed` took."""
    task = current_task()
    lines = [FIRST, f"  shared:          {_made(node)}"]
    first = Site.of(freed.code, freed.lasti)
    if first is not None:
        lines.append(f"  first backward: {at(first)}")
    if task is None or node not in task.reached:
        return "\n".join([*lines, "Read saved values before that backward.", LAST])
    nodes = [each for each in task.reached if each.__class__ is not AccumulateGrad]
    if nodes[0].sequence > freed.sequence:
        names = names_here(sys._getframe(1))
        crossings = list(_crossings(nodes, freed, node))[:MOST]
        lines += [_crossing_text(names, *crossing) for crossing in crossings]
        lines.append(_way_out_of_carrying(names, nodes, freed, crossings))
    elif any(each.saved and (each.adjust is task.keep or not isinstance(each.adjust, Freed)) for each in nodes):
        lines.append(SHARED)
    elif isinstance(nodes[0].adjust, Freed):
        lines.append(WHOLE)
    else:  # the first node saves nothing, and so does not tell whether a backward began there
        lines += [WHOLE, f"Or, if that backward began at another result: {SHARED[0].lower()}{SHARED[1:]}"]
    return "\n".join([*lines, LAST])


def _made(node: Node) -> str:
    return f"{node.name()}, made{at(node.site)}" if node.site else node.name()


def _crossings(nodes: list[Node], freed: Freed, shared: Node) -> Iterator[tuple[Node, tuple]]:
    """Where the graph leads from what was made after the first backward to what was made before: (node, edge).

    Only edges that lead to the shared node are of interest.
    """
    to_shared, seen = set(upwards([shared], consumers_of(nodes))), set()
    for node in nodes:
        if node.sequence > freed.sequence:
            for edge in node.edges:
                if edge is not None and edge[0] in to_shared and edge[0].sequence < freed.sequence:
                    place = edge[0], node.code, node.lasti
                    if place not in seen:
                        seen.add(place)
                        yield node, edge


def _name(names: Names, edge: tuple) -> str:
    """What the program calls the value at the end of an edge: now, or on the line that made it; empty if nothing."""
    site = edge[0].site
    return names.of_result(edge[0], edge[1]) or (site.target if site else "")


def _crossing_text(names: Names, user: Node, edge: tuple) -> str:
    name = _name(names, edge)
    made = f"made by {edge[0].name()}{at(edge[0].site)}"
    used = f"used after it by {user.name()}{at(user.site)}"
    return f"  carried over:    {f'`{name}`' if name else 'a value'}, {made}, before that backward; {used}"


def _way_out_of_carrying(names: Names, nodes: list[Node], freed: Freed, crossings: list) -> str:
    """The advice where a value made before the first backward is used after it."""
    name = next((found for _, edge in crossings if (found := _name(names, edge))), "")
    detach = f"detach it there: {name} = {name}.detach()" if name else "detach() it there"
    lines = {(each.code, each.lasti) for each in nodes if each.sequence > freed.sequence}
    if any((edge[0].code, edge[0].lasti) in lines for _, edge in crossings):
        return f"The value comes from the last iteration of a loop: {detach} before it is used again."
    return (
        f"If the value is carried over from one step to the next, {detach}. If its gradient is wanted twice, add the results "
        "and call backward once, or compute it again."
    )
