"""`why`: why `.grad` of a tensor is None, or is what it is, in words. The errors and warnings about it say the same.

A look at what the program holds now: the tensor, the graphs behind the variables of the running functions, what the
tensor's records tell of lines. The answer is plain text and numbers: it keeps no tensor, array or frame alive.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from types import FrameType
from typing import Any

from pellucid.autograd.node import AccumulateGrad, Freed, Node
from pellucid.autograd.reach import consumers_of, nodes_behind, upwards
from pellucid.core.modes import modes
from pellucid.core.names import Names, names_here
from pellucid.core.records import CONSTANT, Cut
from pellucid.core.sites import Site, at, outside
from pellucid.core.tensor import Tensor

__all__ = ["Cause", "Why", "explained", "why"]

MOST_NODES = 100_000  # that a look goes through
MOST_LEAVES = 4  # that are listed
MOST_CUTS = 3


class Cause(Enum):
    """What `.grad` of a tensor owes its value to."""

    PRESENT = "it has a gradient"
    NOT_A_LEAF = "it is not a leaf"
    NO_GRAD_WANTED = "it does not require grad"
    CUT = "its gradient path was cut"
    NOT_REACHED = "no result leads to it"
    NOT_RUN = "backward has not run"
    NOT_KEPT = "a backward ran, and left no gradient here"
    RESET = "the gradient was dropped"
    RETAIN_LOST = "retain_grad was lost by an in-place change"


@dataclass(frozen=True)
class Why:
    """The answer of `why`: printed it is the text, its fields are for programs.

    name: what the program calls the tensor; empty if nothing. cause: one of `Cause`. reason, advice: the text in two parts.
    site: the line that matters most, as (file, line, function); None if none is known. leaves: what the program calls the
    leaves that the tensor was computed from, where it is not a leaf.
    """

    name: str
    cause: Cause
    reason: str
    advice: str
    site: Site | None = None
    leaves: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.reason} {self.advice}".strip()


def why(tensor: Tensor, root: Tensor | None = None) -> Why:
    """Why `.grad` of a tensor is None, or what is in it.

    Args:
        tensor: any tensor.
        root: the result that backward was or will be called on; by default all results that variables of the running
            functions hold.

    Raises:
        TypeError: one of them is no tensor.
    """
    for value in (tensor,) if root is None else (tensor, root):
        if not isinstance(value, Tensor):
            raise TypeError(f"why(): expected a Tensor, got {type(value).__name__}")
    return explained(tensor, sys._getframe(1), root)


def explained(tensor: Tensor, frame: FrameType | None, root: Tensor | None = None) -> Why:
    """`why`, asked from a frame of the program or of the library that it has called."""
    names = names_here(frame)
    name = names.of_tensor(tensor)
    subject = f"`{name}`" if name else f"this tensor of shape {list(tensor._array.shape)}"
    if tensor._grad is not None:
        return _present(tensor, name, subject)
    try:
        needs = tensor.requires_grad
    except RuntimeError as error:  # a view whose history became invalid
        return Why(name, Cause.CUT, f"{subject} has no valid history: {error}", "")
    if not needs:
        return _without(tensor, name, subject)
    if tensor._edge is not None and not tensor.retains_grad:
        return _not_a_leaf(tensor, names, name, subject)
    return _waiting(tensor, names, name, subject, root)


# --- the cases --------------------------------------------------------------------------------------------------------


def _present(tensor: Tensor, name: str, subject: str) -> Why:
    grad = tensor._grad
    times = 0 if grad._counter is None else grad._version
    reason = f"{subject} has a gradient, of shape {list(grad._array.shape)}."
    if not times:
        return Why(name, Cause.PRESENT, reason, "Another backward will add to it.")
    return Why(
        name,
        Cause.PRESENT,
        f"{reason} It has been written to {times} time{'s' if times > 1 else ''} since it was made.",
        f"Each backward adds to it: to begin anew, set {name or 't'}.grad = None or call zero_grad() before.",
    )


def _without(tensor: Tensor, name: str, subject: str) -> Why:
    """A tensor that does not require grad."""
    rare = tensor._rare
    if rare is not None and rare.cut is not None:
        return _cut(rare.cut, name, subject)
    if tensor._array.dtype.kind not in "fcV":
        reason = f"{subject} does not require grad: tensors of type {tensor.dtype} have no gradient."
        return Why(name, Cause.NO_GRAD_WANTED, reason, "Use a floating-point type.")
    off = " Recording is off here (no_grad or inference_mode)." if modes.inference or not modes.grad_enabled else ""
    return Why(
        name,
        Cause.NO_GRAD_WANTED,
        f"{subject} does not require grad: it was made so, or nothing it was computed from requires grad.{off}",
        "Set requires_grad_() on the tensors to differentiate by before they are used.",
    )


ADVICE = {
    "detach": "Leave out detach() there if gradients are to flow through.",
    "detach_": "Leave out detach_() there if gradients are to flow through.",
    "data": "Use the tensor itself in place of its .data if gradients are to flow through.",
    "no_grad": "Move that line out of the no_grad block if gradients are to flow through.",
    "inference_mode": "Move that line out of the inference_mode block if gradients are to flow through.",
    "tensor": "torch.tensor() copies the values only: use the tensor itself, or torch.stack for several.",
}  # fmt: skip
CASTS = {"to_dtype", "to", "int", "long", "short", "char", "byte", "bool"}


def _cut(cut: Cut, name: str, subject: str) -> Why:
    site = _site(cut.code, cut.lasti)
    if cut.reason is CONSTANT:
        return Why(
            name,
            Cause.CUT,
            f"{subject} does not require grad: it is made of a derivative, taken{at(site)}, that is constant in all that requires "
            "grad. Its own derivative is 0.",
            "Count it as 0: nothing is to be differentiated.",
            site,
        )
    advice = ADVICE.get(cut.reason)
    if advice is None:
        advice = (
            f"{cut.reason} has no derivative: compute the result from what it was given, not from what it returned, by "
            "operations that have one."
        )
    reason = f"{subject} does not require grad: its gradient path was cut {_cut_text(cut)}."
    return Why(name, Cause.CUT, reason, advice, site)


def _not_a_leaf(tensor: Tensor, names: Names, name: str, subject: str) -> Why:
    node = tensor._edge[0]
    called = name or "t"
    found = [_leaf_text(leaf, names) for leaf in _leaves_behind(node)]
    leaves = tuple(names.of_tensor(leaf) for leaf in _leaves_behind(node) if names.of_tensor(leaf))
    reason = f"{subject} is not a leaf: {node.name()} made it{at(node.site)}. Gradients are kept in leaves only."
    if found:
        shown = ", ".join(found[:MOST_LEAVES]) + (f" and {len(found) - MOST_LEAVES} more" if len(found) > MOST_LEAVES else "")
        reason += f" It was computed from the {'leaf' if len(found) == 1 else 'leaves'} {shown}."
    read = " or ".join(f"{leaf}.grad" for leaf in leaves[:MOST_LEAVES])
    keep = f"call {called}.retain_grad() before backward"
    if read:
        advice = f"Read {read}, or {keep}."
    elif len(found) == 1:
        advice = f"Hold the leaf in a variable and read its grad, or {keep}."
    else:
        advice = f"{keep[0].upper()}{keep[1:]}."
    return Why(name, Cause.NOT_A_LEAF, reason, advice, node.site, leaves)


def _waiting(tensor: Tensor, names: Names, name: str, subject: str, root: Tensor | None) -> Why:
    """A tensor that keeps gradients and has none."""
    results = [root] if root is not None else [t for t in names.results.values() if t is not tensor]
    graph = Behind(results)
    lost = _lost_retain(tensor, graph, name, subject)
    if lost is not None:
        return lost
    rare = tensor._rare
    if rare is not None and rare.reset is not None:
        site = _site(*rare.reset)
        reason = f"{subject} had a gradient that was dropped{at(site)}; no backward has reached it since."
        return Why(name, Cause.RESET, reason, "Read it before that.", site)
    nodes = graph.leading_to(tensor)
    leading = [t for t in results if t._edge is not None and (t._edge[0] in nodes or _is_at(t._edge, tensor))]
    if not leading and tensor._rare.retain and tensor._counter is not None and tensor._counter.writes:
        return _passed_by(tensor, name, subject)
    if not leading:
        return _not_reached(tensor, names, name, subject, root, graph)
    last = max(leading, key=lambda t: t._edge[0].sequence)
    called = names.of_tensor(last) or "a result"
    freed = next((node.adjust for node in nodes if isinstance(node.adjust, Freed)), None)
    if freed is None:
        reason = f"{subject} waits for a gradient: `{called}` was computed from it, and no backward has run through that graph."
        return Why(name, Cause.NOT_RUN, reason, f"Call {called}.backward().", last._edge[0].site)
    site = _site(freed.code, freed.lasti)
    return Why(
        name,
        Cause.NOT_KEPT,
        f"{subject} has no gradient, though a derivative was taken{at(site)}.",
        "autograd.grad() returns gradients and fills in none, and backward(inputs=...) fills in those of its inputs only.",
        site,
    )


def _cut_text(cut: Cut) -> str:
    return f"by {cut.reason}{at(_site(cut.code, cut.lasti))}"


def _lost_retain(tensor: Tensor, graph: Behind, name: str, subject: str) -> Why | None:
    """Whether a node still knows that the tensor wanted its gradient, while another node has come to make it."""
    if tensor._edge is None:
        return None
    for node in graph.nodes:
        kept = () if node.extra is None else node.extra.retain.values()
        if node is not tensor._edge[0] and any(reference() is tensor for reference in kept):
            write = tensor._counter.writes_after(-1)[-1:] if tensor._counter is not None else []
            site = _site(write[0].code, write[0].lasti) if write else None
            return Why(
                name,
                Cause.RETAIN_LOST,
                f"{subject} was changed in place{at(site)}, itself or what it is a view of, after "
                f"retain_grad(): the result was computed from what {node.name()} made{at(node.site)}, which it is no more.",
                "Change it out of place, or compute the result after the change.",
                site,
            )
    return None


def _passed_by(tensor: Tensor, name: str, subject: str) -> Why:
    """A view whose base was written to: views of the base are then taken anew from it, past this one."""
    write = tensor._counter.writes_after(-1)[-1]
    site = _site(write.code, write.lasti)
    return Why(
        name,
        Cause.RETAIN_LOST,
        f"{subject} shares its memory with what was changed in place{at(site)}: what was taken from it "
        "before was then taken anew from the base of both, past this tensor, so that no gradient comes by here.",
        "Call retain_grad() on the base, or take the views after the change.",
        site,
    )


def _not_reached(tensor: Tensor, names: Names, name: str, subject: str, root: Tensor | None, graph: Behind) -> Why:
    """No graph leads to the tensor: the place where it was cut, if the graph tells."""
    if root is not None:
        called = names.of_tensor(root)
        what = f"{f'`{called}`' if called else 'the result asked about'} was not computed from it"
    else:
        what = "no result that a variable of the running functions holds was computed from it"
    cuts = [*graph.cuts(), *names.cuts.values()]
    made = _site(*tensor._rare.made) if tensor._rare is not None and tensor._rare.made is not None else None
    reason = f"{subject} has no gradient: {what}."
    if made is not None:
        reason += f" It was made to require grad{at(made)}: what was computed from it before does not count."
    if cuts:
        where = "; ".join(dict.fromkeys(_cut_text(cut) for cut in cuts[:MOST_CUTS]))
        return Why(name, Cause.NOT_REACHED, f"{reason} A path was cut {where}.", "If that was it, do without the cut.",
                   _site(cuts[0].code, cuts[0].lasti))  # fmt: skip
    return Why(name, Cause.NOT_REACHED, reason, "Use it in what you differentiate; why(tensor, root) asks about one result.")


# --- graphs -----------------------------------------------------------------------------------------------------------


class Behind:
    """The nodes behind some tensors."""

    def __init__(self, results: Iterable[Tensor]):
        self.nodes = nodes_behind([result._edge[0] for result in results if result._edge is not None], MOST_NODES)

    def leading_to(self, tensor: Tensor) -> set[Node]:
        """The nodes that lead to a tensor, a leaf or what a node has made."""
        users = [node for node in self.nodes if any(edge is not None and _is_at(edge, tensor) for edge in node.edges)]
        return set(upwards(users, consumers_of(self.nodes)))

    def cuts(self) -> list[Cut]:
        """Where paths into this graph were cut, as far as the operands that it saved tell."""
        found: dict[tuple, Cut] = {}
        for node in self.nodes:
            for slot in node.saved:
                value = getattr(node, slot, None)
                for each in value if isinstance(value, tuple) else (value,):
                    rare = getattr(each, "_rare", None)
                    if rare is not None and rare.cut is not None and not each._requires_grad:
                        found.setdefault((rare.cut.code, rare.cut.lasti), rare.cut)
        return list(found.values())


def _is_at(edge: tuple, tensor: Tensor) -> bool:
    """Whether an edge ends at a tensor."""
    if edge[2] is tensor:
        return True
    own = tensor._edge
    return own is not None and own[0] is edge[0] and own[1] == edge[1]


def _leaves_behind(node: Node) -> list[Tensor]:
    """The leaves that a node's results were computed from."""
    found: dict[int, Tensor] = {}
    for each in nodes_behind([node], MOST_NODES):
        for edge in each.edges:
            if edge is not None and edge[0].__class__ is AccumulateGrad:
                found.setdefault(id(edge[2]), edge[2])
    return list(found.values())


def _leaf_text(leaf: Tensor, names: Names) -> str:
    name = names.of_tensor(leaf)
    text = f"`{name}`" if name else f"of shape {list(leaf._array.shape)} that no variable holds"
    made = None if leaf._rare is None or leaf._rare.made is None else _site(*leaf._rare.made)
    return f"{text} (made{at(made)})" if made else text


def _site(code: Any, lasti: int) -> Site | None:
    """The line, if it is one of the program."""
    return Site.of(code, lasti) if code is not None and outside[code.co_filename] else None
