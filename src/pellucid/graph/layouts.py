"""What a class of autograd nodes keeps: worked out once for each class, since a graph has many nodes of few classes."""

from __future__ import annotations

import functools
from typing import Any

__all__ = ["Layout", "layout_of"]


class Layout:
    """The slots of a node class and the operands its edges stand for.

    operator: the operator's name, empty for nodes that are no operator's.
    operands: names of the operands, in the order of the edges; one name in `listed` where they are a list.
    places: the number of each among all operands, those without derivatives included.
    saved: slots that hold tensors or arrays.
    attributes: slots of what was given beside the tensors.
    """

    __slots__ = ("attributes", "kinds", "listed", "operands", "operator", "places", "saved")

    def __init__(self, cls: type):
        declared = getattr(cls, "operator", None)
        self.kinds: dict[str, str] = getattr(cls, "kinds", None) or {}
        self.operator: str = "" if declared is None else declared.name
        inputs: Any = () if declared is None else declared.inputs
        self.listed: str = inputs[0].name if inputs and inputs[0].kind == "arrays" else ""
        self.operands: tuple[str, ...] = () if self.listed else tuple(p.name for p in inputs)
        everything = () if declared is None else [p.name for p in declared.operands]
        self.places: tuple[int, ...] = tuple(everything.index(p.name) for p in inputs)
        self.saved = tuple(name for name, kind in self.kinds.items() if kind in ("operand", "result"))
        self.attributes = tuple(name for name, kind in self.kinds.items() if kind == "attribute")

    def operand(self, position: int) -> str:
        """The name of the operand that an edge leads to, given the edge's number."""
        if self.listed:
            return f"{self.listed}[{position}]"
        return self.operands[position] if position < len(self.operands) else ""

    def place(self, position: int) -> int:
        """The operand's number among all operands, given the edge's number."""
        if self.listed:
            return self.places[0] + position
        return self.places[position] if position < len(self.places) else position


@functools.lru_cache(maxsize=4000)
def layout_of(cls: type) -> Layout:
    """The layout of a node class."""
    return Layout(cls)
