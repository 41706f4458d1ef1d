"""What the error about an overwritten saved value says: the value's name, three lines of the program, the smallest fix."""

from __future__ import annotations

import re
import sys
from typing import Any

import numpy as np

from pellucid.autograd.node import AccumulateGrad, Node, edge_to
from pellucid.core.errors import type_name
from pellucid.core.names import Names, names_here
from pellucid.core.sites import Site, at
from pellucid.core.tensor import Counter, Tensor, Write

__all__ = ["overwritten_text", "writers_text"]


def overwritten_text(node: Node, name: str, count: Counter, version: int, value: Any = None, edge: Any = None) -> str:
    """The text of the error about a value that a node saved at `version` and that has been written to since.

    name: the slot of the value. value, edge: what was saved and its history, where the slot does not say it.
    """
    if value is None:
        value, edge = getattr(node, name), _edge_of_slot(node, name)
    array = value if isinstance(value, np.ndarray) else value._array
    writes = count.writes_after(version)
    called = _name(names_here(sys._getframe(1)), value, array)
    lines = [
        "one of the variables needed for gradient computation has been modified by an inplace operation: "
        f"[torch.{type_name(array.dtype)}Tensor {list(array.shape)}]{_output(edge)} is at version {count.value}; "
        f"expected version {version} instead.",
        f"  value:        {called or 'no variable holds it now'}",
        f"  made:         {_made(value, edge)}",
        f"  saved:        by {node.name()}{at(node.site)}",
        f"  overwritten:  {writers_text(count, version)}",
        _way_out(called, edge, writes, count.writes_after(-1)),
    ]
    return "\n".join(lines)


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


def _name(names: Names, value: Any, array: np.ndarray) -> str:
    """What the program calls the value, or what it is a part of; empty if no variable holds it."""
    if isinstance(value, Tensor) and names.of_tensor(value):
        return f"`{names.of_tensor(value)}`"
    held, partly = names.of_memory(array)
    return "" if not held else f"a part of `{held}`" if partly else f"`{held}`"


def _made(value: Any, edge: tuple | None) -> str:
    if edge is not None and edge[0].__class__ is not AccumulateGrad:
        return f"by {edge[0].name()}{at(edge[0].site)}"
    if edge is not None:
        made = None if value._rare is None or value._rare.made is None else Site.of(*value._rare.made)
        return f"as a leaf{at(made)}"
    rare = value._rare if isinstance(value, Tensor) else None
    if rare is not None and rare.cut is not None:
        return f"by {rare.cut.reason}{at(Site.of(rare.cut.code, rare.cut.lasti))}"
    return "outside the graph: it needs no gradient"


def writers_text(count: Counter, version: int) -> str:
    """Who has written to a storage since a version: the first time, and how often since."""
    writes, times = count.writes_after(version), count.value - version
    if not writes:
        return f"{times} times" if times > 1 else "once"
    text = _write(writes[0])
    if times > 1 and (writes[-1].code, writes[-1].lasti) != (writes[0].code, writes[0].lasti):
        return f"{text}; {times} times in all, last {_write(writes[-1])}"
    return text + (f", {times} times" if times > 1 else "")


def _write(write: Write) -> str:
    site = Site.of(write.code, write.lasti)
    if site is not None and write.operator == "_bump_version":  # not by an operator
        return at(site).lstrip()
    name = "an assignment" if site is not None and _ASSIGNS_PART.search(site.source) else write.operator
    return f"by {name}{at(site)}"


# --- the way out ------------------------------------------------------------------------------------------------------

_ASSIGNS_PART = re.compile(r"\][\w.]* *(?:[-+*/@%&|^]|//|\*\*)?=(?!=)")
_AUGMENTED = re.compile(r"[\w\])] *(?:[-+*/@%&|^]|//|\*\*|<<|>>)=")


def _way_out(called: str, edge: tuple | None, writes: list[Write], all_writes: list[Write]) -> str:
    """The smallest change that helps."""
    held = called.removeprefix("a part of ").strip("`") or "t"
    if edge is not None and edge[0].__class__ is AccumulateGrad:
        return (
            "The values of a leaf were changed between forward and backward. Call backward() before they change (before "
            "optimizer.step()), or run the forward again after it."
        )
    site = Site.of(writes[0].code, writes[0].lasti) if writes else None
    if site is None:
        return f"Write to a copy: {held} = {held}.clone() before that."
    if _ASSIGNS_PART.search(site.source):
        places = [(write.code, write.lasti) for write in all_writes]
        if called.startswith("a part of") or len(set(places)) < len(places):
            return (
                "Where the parts of a tensor are written one by one: collect them in a list, parts.append(...), and join them "
                f"at the end, {held} = torch.stack(parts) (or torch.cat)."
            )
        return f"Write to a copy: {held} = {held}.clone() before that line."
    name = writes[0].operator.removesuffix("_")
    if f"{name}_" not in site.source and not _AUGMENTED.search(site.source):
        return f"{name}_ ran within that line: where it is a module, build it with inplace=False."
    return f"Write out of place there, {held} = {held}.{name}(...), or to a copy: {held} = {held}.clone() before that line."
