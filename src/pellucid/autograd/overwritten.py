"""What the error about an overwritten saved value says: the value's name, three lines of the program, the smallest fix."""

from __future__ import annotations

import re
import sys
from typing import Any, NamedTuple

import numpy as np

from pellucid.autograd.node import AccumulateGrad, Node, edge_to
from pellucid.core.errors import type_name
from pellucid.core.language import counted, message, say
from pellucid.core.names import Names, names_here
from pellucid.core.sites import Site, at
from pellucid.core.tensor import Counter, Tensor, Write

__all__ = ["overwritten_text", "writers_text"]

MOST_MODULES = 3  # that are listed


def overwritten_text(node: Node, name: str, count: Counter, version: int, value: Any = None, edge: Any = None) -> str:
    """The text of the error about a value that a node saved at `version` and that has been written to since.

    name: the slot of the value. value, edge: what was saved and its history, where the slot does not say it.
    """
    if value is None:
        value, edge = getattr(node, name), _edge_of_slot(node, name)
    array = value if isinstance(value, np.ndarray) else value._array
    writes = count.writes_after(version)
    names = names_here(sys._getframe(1))
    held = _name(names, value, array)
    called = held or _name_on_line(writes)
    shown = f"`{called.name}`" if not called.partly else say("a part of `{name}`", name=called.name)
    return message(
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{type_name(array.dtype)}Tensor {list(array.shape)}]{_output(edge)} is at version {count.value}; "
        f"expected version {version} instead.",
        say("  value:        {value}", value=shown if called.name else say("no variable holds it now")),
        say("  made:         {how}", how=_made(value, edge)),
        say("  saved:        {how}", how=say("by {operation}{place}", operation=node.name(), place=at(node.site))),
        say("  overwritten:  {how}", how=writers_text(count, version)),
        _way_out(called, edge, writes, count.writes_after(-1), names),
    )


class _Called(NamedTuple):
    """What the program calls a value, or what it calls a whole that the value is a part of."""

    name: str
    partly: bool

    def __bool__(self) -> bool:
        return bool(self.name)


def _edge_of_slot(node: Node, name: str) -> tuple | None:
    """The history of the value in a slot of an operator's node."""
    op: Any = getattr(type(node), "operator", None)
    if op is None:
        return None
    results = [output for output in op.outputs or () if output not in op.constant]
    if name in results:
        return edge_to(node, results.index(name))
    inputs = [p.name for p in op.inputs]
    return node.edges[inputs.index(name)] if name in inputs else None


def _output(edge: tuple | None) -> str:
    """PyTorch's words for a value that an operation made."""
    if edge is None or edge[0].__class__ is AccumulateGrad:
        return ""
    return f", which is output {edge[1]} of {edge[0].name()},"


def _name(names: Names, value: Any, array: np.ndarray) -> _Called:
    """What the program calls the value, or what it is a part of; an empty name if no variable holds it."""
    if isinstance(value, Tensor) and names.of_tensor(value):
        return _Called(names.of_tensor(value), False)
    return _Called(*names.of_memory(array))


# What a line writes to: `h += 1`, `h[0] = 1`, `self.h.mul_(2)`; not `h[0].mul_(2)`, where `h` may be a list.
_WRITTEN = re.compile(r"([A-Za-z_][\w.]*?)(?:(\[.*?\])? *(?:[-+*/@%&|^]|//|\*\*|<<|>>)=(?!=)|(\[.*?\]) *=(?!=)|\.\w+_\()")


def _name_on_line(writes: list[Write]) -> _Called:
    """What the value was called on the line that overwrote it, in a function that has returned since."""
    site = Site.of(writes[0].code, writes[0].lasti) if writes else None
    found = _WRITTEN.match(site.source) if site is not None else None
    return _Called(found[1], bool(found[2] or found[3])) if found else _Called("", False)


def _made(value: Any, edge: tuple | None) -> str:
    if edge is not None and edge[0].__class__ is not AccumulateGrad:
        return say("by {operation}{place}", operation=edge[0].name(), place=at(edge[0].site))
    rare = value._rare if isinstance(value, Tensor) else None
    if edge is not None:
        made = None if rare is None or rare.made is None else Site.of(*rare.made[:2])
        return say("as a leaf{place}", place=at(made))
    if rare is not None and rare.cut is not None:
        return say("by {operation}{place}", operation=rare.cut.reason, place=at(Site.of(rare.cut.code, rare.cut.lasti)))
    return say("outside the graph: it needs no gradient")


def writers_text(count: Counter, version: int) -> str:
    """Who has written to a storage since a version: the first time, and how often since."""
    writes, times = count.writes_after(version), count.value - version
    if not writes:
        return counted("once", "{n} times", times)
    first = _write(writes[0])
    if times > 1 and (writes[-1].code, writes[-1].lasti) != (writes[0].code, writes[0].lasti):
        return say("{first}; {n} times in all, last {last}", first=first, n=times, last=_write(writes[-1]))
    return counted("{first}", "{first}, {n} times", times, first=first)


def _write(write: Write) -> str:
    site = Site.of(write.code, write.lasti)
    if site is not None and write.operator == "_bump_version":  # not by an operator
        return at(site).lstrip()
    name = say("an assignment") if site is not None and _ASSIGNS_PART.search(site.source) else write.operator
    return say("by {operation}{place}", operation=name, place=at(site))


# --- the way out ------------------------------------------------------------------------------------------------------

_ASSIGNS_PART = re.compile(r"\][\w.]* *(?:[-+*/@%&|^]|//|\*\*)?=(?!=)")
_AUGMENTED = re.compile(r"[\w\])] *(?:[-+*/@%&|^]|//|\*\*|<<|>>)=")


def _way_out(called: _Called, edge: tuple | None, writes: list[Write], all_writes: list[Write], names: Names) -> str:
    """The smallest change that helps."""
    if edge is not None and edge[0].__class__ is AccumulateGrad:
        return say(
            "The values of a leaf were changed between forward and backward. Call backward() before they change (before "
            "optimizer.step()), or run the forward again after it."
        )
    name = called.name or "t"
    site = Site.of(writes[0].code, writes[0].lasti) if writes else None
    if site is None:
        return say("Write to a copy: {name} = {name}.clone() before that.", name=name)
    if _ASSIGNS_PART.search(site.source):
        places = [(write.code, write.lasti) for write in all_writes]
        if called.partly or len(set(places)) < len(places):
            return say(
                "Where the parts of a tensor are written one by one: collect them in a list, parts.append(...), and join them at the "
                "end, {name} = torch.stack(parts) (or torch.cat).", name=name,
            )  # fmt: skip
        return say("Write to a copy: {name} = {name}.clone() before that line.", name=name)
    operation = writes[0].operator.removesuffix("_")
    if f"{operation}_" not in site.source and not _AUGMENTED.search(site.source):
        return _way_out_of_a_module(operation, names)
    return say(
        "Write out of place there, {name} = {name}.{operation}(...), or to a copy: {name} = {name}.clone() before that line.",
        name=name, operation=operation,
    )  # fmt: skip


def _way_out_of_a_module(operation: str, names: Names) -> str:
    """The advice where no line of the program writes: a module does, one of those with `inplace=True`, or another function."""
    found = [path for path, kind in names.in_place.items() if kind.lower() == operation.replace("_", "")]
    if found:
        modules = say(" or ").join(f"{path} ({names.in_place[path]})" for path in found[:MOST_MODULES])
        return say("{operation}_ ran within that line: build {modules} with inplace=False.", operation=operation, modules=modules)
    return say("{operation}_ ran within that line: where it is a module, build it with inplace=False.", operation=operation)
