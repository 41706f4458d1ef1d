"""`why`: why `.grad` of a tensor is None, or is what it is, in words. The errors and warnings about it say the same.

A look at what the program holds now: the tensor, the graphs behind the variables of the running functions, what the
tensor's records tell of lines. The answer is plain text and numbers: it keeps no tensor, array or frame alive.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from types import FrameType
from typing import Any

from pellucid.autograd.node import AccumulateGrad, Freed, Node
from pellucid.autograd.reach import consumers_of, nodes_behind, upwards
from pellucid.core.frames import outer_frames, variables
from pellucid.core.language import counted, say, sentences, template
from pellucid.core.modes import modes
from pellucid.core.names import Names, is_module, names_here
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

    name: what the program calls the tensor; empty if nothing. cause: one of `Cause`. reason, advice: the text in two parts,
    in the language of `core/language.py`. site: the line that matters most, as (file, line, function); None if none is
    known. leaves: what the program calls the leaves that the tensor was computed from, where it is not a leaf.
    """

    name: str
    cause: Cause
    reason: str
    advice: str
    site: Site | None = None
    leaves: tuple[str, ...] = ()

    def __str__(self) -> str:
        return sentences(self.reason, self.advice)


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
    subject = f"`{name}`" if name else say("this tensor of shape {shape}", shape=list(tensor._array.shape))
    if tensor._grad is not None:
        return _present(tensor, name, subject)
    try:
        needs = tensor.requires_grad
    except RuntimeError as error:  # a view whose history became invalid
        return Why(name, Cause.CUT, say("{subject} has no valid history: {error}", subject=subject, error=error), "")
    if not needs:
        return _without(tensor, name, subject, frame)
    if tensor._edge is not None and not tensor.retains_grad:
        return _not_a_leaf(tensor, names, name, subject)
    return _waiting(tensor, names, name, subject, root)


# --- the cases --------------------------------------------------------------------------------------------------------


def _present(tensor: Tensor, name: str, subject: str) -> Why:
    grad = tensor._grad
    times = 0 if grad._counter is None else grad._version
    reason = say("{subject} has a gradient, of shape {shape}.", subject=subject, shape=list(grad._array.shape))
    if not times:
        return Why(name, Cause.PRESENT, reason, say("Another backward will add to it."))
    written = counted(
        "It has been written to {n} time since it was made.", "It has been written to {n} times since it was made.", times
    )
    advice = say("Each backward adds to it: to begin anew, set {name}.grad = None or call zero_grad() before.", name=name or "t")
    return Why(name, Cause.PRESENT, sentences(reason, written), advice)


def _without(tensor: Tensor, name: str, subject: str, frame: FrameType | None) -> Why:
    """A tensor that does not require grad."""
    rare = tensor._rare
    if rare is not None and rare.cut is not None:
        return _cut(rare.cut, name, subject)
    site = _taken_out(frame, name)
    if site is not None:
        reason = say("{subject} does not require grad: it is made of values that were taken out of the graph{place}.",
                     subject=subject, place=at(site))  # fmt: skip
        advice = say("Compute it from the tensors themselves, by operations that have a derivative.")
        return Why(name, Cause.CUT, reason, advice, site)
    if tensor._array.dtype.kind not in "fcV":
        reason = say("{subject} does not require grad: tensors of type {dtype} have no gradient.", subject=subject, dtype=tensor.dtype)
        return Why(name, Cause.NO_GRAD_WANTED, reason, say("Use a floating-point type."))
    reason = say("{subject} does not require grad: it was made so, or nothing it was computed from requires grad.", subject=subject)
    off = modes.inference or not modes.grad_enabled
    return Why(
        name,
        Cause.NO_GRAD_WANTED,
        sentences(reason, say("Recording is off here (no_grad or inference_mode).") if off else ""),
        say("Set requires_grad_() on the tensors to differentiate by before they are used."),
    )


ADVICE = {
    "detach": template("Leave out detach() there if gradients are to flow through."),
    "detach_": template("Leave out detach_() there if gradients are to flow through."),
    "data": template("Use the tensor itself in place of its .data if gradients are to flow through."),
    "no_grad": template("Move that line out of the no_grad block if gradients are to flow through."),
    "inference_mode": template("Move that line out of the inference_mode block if gradients are to flow through."),
}  # fmt: skip
NO_DERIVATIVE = template(
    "{operation} has no derivative: compute the result from what it was given, not from what it returned, by operations that "
    "have one."
)


def _cut(cut: Cut, name: str, subject: str) -> Why:
    site = _site(cut.code, cut.lasti)
    if cut.reason is CONSTANT:
        reason = say(
            "{subject} does not require grad: it is made of a derivative, taken{place}, that is constant in all that requires grad. "
            "Its own derivative is 0.", subject=subject, place=at(site),
        )  # fmt: skip
        return Why(name, Cause.CUT, reason, say("Count it as 0: nothing is to be differentiated."), site)
    reason = say("{subject} does not require grad: its gradient path was cut {how}.", subject=subject, how=_cut_text(cut))
    return Why(name, Cause.CUT, reason, say(ADVICE.get(cut.reason, NO_DERIVATIVE), operation=cut.reason), site)


# What takes values out of the graph without leaving a trace in what is made of them.
_TAKES_OUT = re.compile(r"\.(item|tolist|numpy|long|int|bool|short|byte)\(|\b(as_|from_)?(tensor|numpy|asarray)\(|\b(float|int)\(")


def _taken_out(frame: FrameType | None, name: str) -> Site | None:
    """The line that assigns to a variable in the function that asks, if it takes values out of what requires grad."""
    inner = next(outer_frames(frame), None)
    if inner is None or not name.isidentifier():
        return None
    code = inner.f_code
    for line in sorted({line for _, _, line in code.co_lines() if line is not None and line <= inner.f_lineno}, reverse=True):
        site = Site(code.co_filename, line, code.co_qualname)
        if site.target == name:
            _, _, right = site.source.partition("=")
            return site if _TAKES_OUT.search(right) and _mentions_graph(right, inner) else None
    return None


def _mentions_graph(expression: str, frame: FrameType) -> bool:
    """Whether an expression names a variable that holds a tensor which requires grad, or a module with one."""
    scope = {**frame.f_globals, **variables(frame)}
    held: list[Any] = [scope.get(word) for word in re.findall(r"[A-Za-z_]\w*", expression)]
    tensors = [value for value in held if isinstance(value, Tensor)]
    tensors += [parameter for value in held if is_module(value) for parameter in value.parameters()]
    return any(tensor._requires_grad for tensor in tensors)


def _not_a_leaf(tensor: Tensor, names: Names, name: str, subject: str) -> Why:
    node = tensor._edge[0]
    behind = _leaves_behind(node)
    leaves = tuple(names.of_tensor(leaf) for leaf in behind if names.of_tensor(leaf))
    reason = say("{subject} is not a leaf: {operation} made it{place}. Gradients are kept in leaves only.",
                 subject=subject, operation=node.name(), place=at(node.site))  # fmt: skip
    return Why(
        name,
        Cause.NOT_A_LEAF,
        sentences(reason, _computed_from(behind, names)),
        _where_to_read(name or "t", leaves[:MOST_LEAVES], len(behind) == 1),
        node.site,
        leaves,
    )


def _computed_from(leaves: list[Tensor], names: Names) -> str:
    if not leaves:
        return ""
    shown = say(", ").join(_leaf_text(leaf, names) for leaf in leaves[:MOST_LEAVES])
    if len(leaves) == 1:
        return say("It was computed from the leaf {leaf}.", leaf=shown)
    if len(leaves) <= MOST_LEAVES:
        return say("It was computed from the leaves {leaves}.", leaves=shown)
    return say("It was computed from the leaves {leaves} and {n} more.", leaves=shown, n=len(leaves) - MOST_LEAVES)


def _where_to_read(name: str, leaves: tuple[str, ...], single: bool) -> str:
    """What to read in place of the gradient of a computed tensor, or to do before."""
    if leaves:
        read = say(" or ").join(f"{leaf}.grad" for leaf in leaves)
        return say("Read {grads}, or call {name}.retain_grad() before backward.", grads=read, name=name)
    if single:
        return say("Hold the leaf in a variable and read its grad, or call {name}.retain_grad() before backward.", name=name)
    return say("Call {name}.retain_grad() before backward.", name=name)


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
        reason = say("{subject} had a gradient that was dropped{place}; no backward has reached it since.",
                     subject=subject, place=at(site))  # fmt: skip
        return Why(name, Cause.RESET, reason, say("Read it before that."), site)
    late = _retained_late(tensor, name, subject)
    if late is not None:
        return late
    nodes = graph.leading_to(tensor)
    leading = [t for t in results if t._edge is not None and (t._edge[0] in nodes or _is_at(t._edge, tensor))]
    if not leading and rare is not None and rare.retain and tensor._counter is not None and tensor._counter.writes:
        return _passed_by(tensor, name, subject)
    if not leading:
        return _not_reached(tensor, names, name, subject, root, graph)
    last = max(leading, key=lambda t: t._edge[0].sequence)
    freed = next((node.adjust for node in nodes if isinstance(node.adjust, Freed)), None)
    if freed is None:
        saves = any(node.saved for node in nodes)
        return _not_run(name, subject, names.of_tensor(last) or say("a result"), saves, last._edge[0].site)
    site = _site(freed.code, freed.lasti)
    return Why(
        name,
        Cause.NOT_KEPT,
        say("{subject} has no gradient, though a derivative was taken{place}.", subject=subject, place=at(site)),
        say("autograd.grad() returns gradients and fills in none, and backward(inputs=...) fills in those of its inputs only."),
        site,
    )


def _not_run(name: str, subject: str, result: str, saves: bool, site: Site | None) -> Why:
    if saves:
        reason = say("{subject} waits for a gradient: `{result}` was computed from it, and no backward has run through that graph.",
                     subject=subject, result=result)  # fmt: skip
    else:  # such a graph bears no trace of a backward
        reason = say("{subject} waits for a gradient: `{result}` was computed from it, and no backward has filled it in.",
                     subject=subject, result=result)  # fmt: skip
    return Why(name, Cause.NOT_RUN, reason, say("Call {result}.backward().", result=result), site)


def _cut_text(cut: Cut) -> str:
    return say("by {operation}{place}", operation=cut.reason, place=at(_site(cut.code, cut.lasti)))


def _lost_retain(tensor: Tensor, graph: Behind, name: str, subject: str) -> Why | None:
    """Whether a node still knows that the tensor wanted its gradient, while another node has come to make it."""
    if tensor._edge is None:
        return None
    for node in graph.nodes:
        kept = () if node.extra is None else node.extra.retain.values()
        if node is not tensor._edge[0] and any(reference() is tensor for reference in kept):
            write = tensor._counter.writes_after(-1)[-1:] if tensor._counter is not None else []
            site = _site(write[0].code, write[0].lasti) if write else None
            reason = say(
                "{subject} was changed in place{place}, itself or what it is a view of, after retain_grad(): the result was computed "
                "from what {operation} made{made}, which it is no more.",
                subject=subject, place=at(site), operation=node.name(), made=at(node.site),
            )  # fmt: skip
            return Why(name, Cause.RETAIN_LOST, reason, say("Change it out of place, or compute the result after the change."), site)
    return None


def _retained_late(tensor: Tensor, name: str, subject: str) -> Why | None:
    """Whether a backward came through what made the tensor and left no gradient: nobody had asked for it yet."""
    freed = tensor._edge[0].adjust if tensor._edge is not None else None
    if not isinstance(freed, Freed):
        return None
    site = _site(freed.code, freed.lasti)
    reason = say("{subject} has no gradient: the backward{place} went through it before retain_grad() was called.",
                 subject=subject, place=at(site))  # fmt: skip
    advice = say("Call {name}.retain_grad() before that backward.", name=name or "t")
    return Why(name, Cause.NOT_KEPT, reason, advice, site)


def _passed_by(tensor: Tensor, name: str, subject: str) -> Why:
    """A view whose base was written to: views of the base are then taken anew from it, past this one."""
    write = tensor._counter.writes_after(-1)[-1]
    site = _site(write.code, write.lasti)
    reason = say(
        "{subject} shares its memory with what was changed in place{place}: what was taken from it before was then taken anew from "
        "the base of both, past this tensor, so that no gradient comes by here.", subject=subject, place=at(site),
    )  # fmt: skip
    return Why(name, Cause.RETAIN_LOST, reason, say("Call retain_grad() on the base, or take the views after the change."), site)


def _not_reached(tensor: Tensor, names: Names, name: str, subject: str, root: Tensor | None, graph: Behind) -> Why:
    """No graph leads to the tensor: the place where it was cut, if the graph tells."""
    if root is None:
        reason = say("{subject} has no gradient: no result that a variable of the running functions holds was computed from it.",
                     subject=subject)  # fmt: skip
    elif names.of_tensor(root):
        reason = say("{subject} has no gradient: `{result}` was not computed from it.", subject=subject, result=names.of_tensor(root))
    else:
        reason = say("{subject} has no gradient: the result asked about was not computed from it.", subject=subject)
    cuts = [*graph.cuts(), *names.cuts.values()]
    where = say("; ").join(dict.fromkeys(_cut_text(cut) for cut in cuts[:MOST_CUTS]))
    return Why(
        name,
        Cause.NOT_REACHED,
        sentences(reason, _came_late(tensor), say("A path was cut {where}.", where=where) if cuts else ""),
        say("If that was it, do without the cut.")
        if cuts
        else say("Use it in what you differentiate; why(tensor, root) asks about one result."),
        _site(cuts[0].code, cuts[0].lasti) if cuts else None,
    )


def _came_late(tensor: Tensor) -> str:
    """That a tensor came to require grad some time after it was made."""
    rare = tensor._rare
    if rare is None or rare.made is None or len(rare.made) == 2:
        return ""
    place = at(_site(*rare.made[:2]))
    return say("It was made to require grad{place}: what was computed from it before does not count.", place=place)


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
                    rare = each._rare if isinstance(each, Tensor) and not each._requires_grad else None
                    if rare is not None and rare.cut is not None:
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
    text = f"`{name}`" if name else say("of shape {shape} that no variable holds", shape=list(leaf._array.shape))
    made = None if leaf._rare is None or leaf._rare.made is None else _site(*leaf._rare.made[:2])
    return say("{leaf} (made{place})", leaf=text, place=at(made)) if made else text


def _site(code: Any, lasti: int) -> Site | None:
    """The line, if it is one of the program."""
    return Site.of(code, lasti) if code is not None and outside[code.co_filename] else None
