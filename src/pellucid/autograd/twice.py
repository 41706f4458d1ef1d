"""What the error about a second backward says: what both share, where the first one ran, what to change."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator

from pellucid.autograd.engine import current_task
from pellucid.autograd.node import AccumulateGrad, Freed, Node
from pellucid.autograd.reach import consumers_of, upwards
from pellucid.core.language import message, say, sentences
from pellucid.core.names import Names, names_here
from pellucid.core.sites import Site, at

__all__ = ["freed_text"]

FIRST = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been "
    "freed): saved values are freed by the first .backward() or autograd.grad() that goes through them."
)
MOST = 3  # carried values that are named


def freed_text(node: Node, freed: Freed) -> str:
    """The text of the error about a node whose saved values `freed` took."""
    first = Site.of(freed.code, freed.lasti)
    lines = [
        FIRST,
        say("  shared:          {what}", what=_made(node)),
        say("  first backward: {place}", place=at(first)) if first is not None else "",
    ]
    task = current_task()
    if task is None or node not in task.reached:
        lines.append(say("Read saved values before that backward."))
    else:
        lines += _ways_out(node, freed, task, names_here(sys._getframe(1)))
    return message(*lines, _keeping())


def _keeping() -> str:
    """What PyTorch advises. It comes last: it hides most mistakes that lead here, and costs memory."""
    return say(
        "Specify retain_graph=True if you need to backward through the graph a second time or if you need to access saved tensors "
        "after calling backward: the first backward then keeps them all in memory."
    )


def _ways_out(node: Node, freed: Freed, task, names: Names) -> list[str]:
    """What to change, by how the second backward came to the node; with the values that led it there."""
    nodes = [each for each in task.reached if each.__class__ is not AccumulateGrad]
    if nodes[0].sequence > freed.sequence:
        crossings = list(_crossings(nodes, freed, node))[:MOST]
        return [*(_crossing_text(names, *each) for each in crossings), _way_out_of_carrying(names, nodes, freed, crossings)]
    if any(each.saved and (each.adjust is task.keep or not isinstance(each.adjust, Freed)) for each in nodes):
        return [
            say(
                "Two results share this part of the graph: add them and call backward once, (a + b).backward(), or compute the shared "
                "part again for the second."
            )
        ]
    whole = say("This whole graph has been differentiated: run the forward again before each backward.")
    if isinstance(nodes[0].adjust, Freed):
        return [whole]
    return [  # the first node saves nothing, and so does not tell whether a backward began there
        whole,
        say(
            "Or, if that backward began at another result: two results share this part of the graph: add them and call backward once, "
            "(a + b).backward(), or compute the shared part again for the second."
        ),
    ]


def _made(node: Node) -> str:
    return say("{operation}, made{place}", operation=node.name(), place=at(node.site)) if node.site else node.name()


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


def _names(names: Names, edge: tuple) -> tuple[str, ...]:
    """What the program calls the value at the end of an edge, now or on the line that made it; several if it is one of them."""
    held = names.of_result(edge[0], edge[1])
    if held:
        return (held,)
    site = edge[0].site
    if site is None:
        return ()
    return (site.target,) if site.target else _passed_round(site.source)


def _passed_round(source: str) -> tuple[str, ...]:
    """The names to which a line assigns what it makes of them: `hidden` of `out, hidden = rnn(x, hidden)`."""
    left, equals, right = source.partition("=")
    if not equals or not re.fullmatch(r"[\w.,() *]+", left):
        return ()
    used = set(_WORDS.findall(right))
    return tuple(word for word in _WORDS.findall(left) if word in used)


_WORDS = re.compile(r"[A-Za-z_][\w.]*")


def _detached(names: Names, called: tuple[str, ...]) -> str:
    """The statement that detaches what goes by these names; a part of a tuple with the whole tuple."""
    if not called:
        return ".detach()"
    item = re.fullmatch(r"(.+)\[\d+\]", called[0])
    whole = item[1] if item else called[0]
    if item or f"{whole}[0]" in names.tensors.values():
        return f"{whole} = tuple(part.detach() for part in {whole})"
    return f"{', '.join(called)} = {', '.join(f'{name}.detach()' for name in called)}"


def _crossing_text(names: Names, user: Node, edge: tuple) -> str:
    called = say(" or ").join(f"`{name}`" for name in _names(names, edge))
    return say(
        "  carried over:    {value}, made by {maker}{made}, before that backward; used after it by {user}{used}",
        value=called or say("a value"), maker=edge[0].name(), made=at(edge[0].site), user=user.name(), used=at(user.site),
    )  # fmt: skip


def _way_out_of_carrying(names: Names, nodes: list[Node], freed: Freed, crossings: list) -> str:
    """The advice where a value made before the first backward is used after it."""
    detach = _detached(names, next((called for _, edge in crossings if (called := _names(names, edge))), ()))
    lines = {(each.code, each.lasti) for each in nodes if each.sequence > freed.sequence}
    if any((edge[0].code, edge[0].lasti) in lines for _, edge in crossings):
        return say(
            "The value comes from the last iteration of a loop: detach it there: {detach} before it is used again.", detach=detach
        )
    return sentences(
        say("If the value is carried over from one step to the next, detach it there: {detach}.", detach=detach),
        say("If its gradient is wanted twice, add the results and call backward once, or compute it again."),
    )
