"""NaN and Inf in words: what an array holds, what an operation was given and made, and where the first one came from.

`autograd/anomaly.py` says when these are asked for. What is remembered is text: no tensor or array lives longer for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import Any

import numpy as np

from pellucid.autograd.node import Node
from pellucid.autograd.reach import consumers_of, upwards
from pellucid.core.errors import spread
from pellucid.core.language import message, say, sentences
from pellucid.core.names import Names
from pellucid.core.sites import Site, at
from pellucid.core.tensor import Tensor

__all__ = ["Bad", "described", "has_inf", "has_nan", "made_in_backward", "made_in_forward", "operands_of", "saved_arrays", "where_text"]


def array_of(value: Any) -> np.ndarray | None:
    """The array of a tensor or array whose type has NaN and Inf; None for anything else."""
    array = getattr(value, "_array", value)
    return array if isinstance(array, np.ndarray) and array.dtype.kind in "fcV" else None


def has_nan(value: Any) -> bool:
    """Whether a tensor, array or number is or holds a NaN."""
    array = array_of(value)
    return value != value if isinstance(value, (float, complex)) else array is not None and bool(np.isnan(array).any())


def has_inf(value: Any) -> bool:
    """Whether a tensor, array or number is or holds an infinite value."""
    if isinstance(value, (float, complex)):
        return bool(np.isinf(value))
    array = array_of(value)
    return array is not None and bool(np.isinf(array).any())


class Bad(Enum):
    """What values are looked for."""

    NAN = "nan"
    INF = "inf"

    def where(self, array: np.ndarray) -> np.ndarray:
        """Which elements are such values."""
        return np.isnan(array) if self is Bad.NAN else np.isinf(array)

    def held_by(self, value: Any) -> bool:
        """Whether a tensor, array or number is or holds such a value."""
        return has_nan(value) if self is Bad.NAN else has_inf(value)


def described(array: np.ndarray) -> str:
    """Shape, dtype, range of the finite values, and how many are not finite: "[2] float32, from 0 to 1, 1 nan"."""
    parts = [f"{list(array.shape)} {array.dtype.name}"]
    finite = array[np.isfinite(array)]
    if finite.size and array.dtype.kind != "c":
        parts.append(_range(float(finite.min()), float(finite.max()), finite.size == array.size > 1))
    nan, inf = int(np.isnan(array).sum()), int(np.isinf(array).sum())
    parts += [f"{count} {what}" for count, what in ((nan, "nan"), (inf, "inf")) if count]
    return say(", ").join(parts)


def _range(low: float, high: float, several: bool) -> str:
    if low != high:
        return say("from {low} to {high}", low=f"{low:g}", high=f"{high:g}")
    return say("all {value}", value=f"{low:g}") if several else say("value {value}", value=f"{low:g}")


def operands_of(op: Any, values: Iterable[Any]) -> list[tuple[str, Any]]:
    """What an operator was called with, by the names of its parameters; lists spread out."""
    return [pair for parameter, value in zip(op.parameters, values, strict=False) for pair in spread(parameter.name, value)]


def saved_arrays(node: Any) -> list[tuple[str, np.ndarray]]:
    """The arrays that a node saved, by name."""
    node = getattr(node, "function", node) if not hasattr(node, "saved_values") else node
    if hasattr(node, "saved_values"):
        pairs = [(f"saved_tensors[{k}]", getattr(each, "value", each)) for k, each in enumerate(node.saved_values or ())]
    else:
        pairs = [(slot, getattr(node, slot, None)) for slot in node.saved]
    found = []
    for name, value in pairs:
        if isinstance(value, (Tensor, np.ndarray)) and (array := array_of(value)) is not None:
            found.append((name, array))
    return found


def lines_of(pairs: Iterable[tuple[str, Any]], names: Names | None = None) -> list[str]:
    """A line for each array among some values: what it is called, and what it holds."""
    lines = []
    for name, value in pairs:
        array = array_of(value)
        if array is not None:
            held = names.of_tensor(value) if names is not None and isinstance(value, Tensor) else ""
            lines.append(say("  {name}: {what}", name=f"{name} `{held}`" if held else name, what=described(array)))
    return lines


def _first(array: np.ndarray, bad: Bad, pairs: Iterable[tuple[str, Any]]) -> str:
    """Where the first such value is, and what stands there in arrays of the same shape, or what a single value is."""
    place = tuple(int(k) for k in np.argwhere(bad.where(array))[0])
    values = []
    for name, value in pairs:
        given = value if isinstance(value, (int, float)) and not isinstance(value, bool) else array_of(value)
        if isinstance(given, np.ndarray):
            given = given[place] if given.shape == array.shape else given.reshape(()) if given.size == 1 else None
        if given is not None:
            values.append(f"{name} = {given:g}" if not isinstance(given, complex) else f"{name} = {given}")
    if not values:
        return say("  first at {place}", place=list(place))
    return say("  first at {place}: {values}", place=list(place), values=say(", ").join(values))


# --- where it was made ------------------------------------------------------------------------------------------------


def _returned(name: str, bad: Bad, number: int) -> str:
    """The line of the error that programs match on."""
    return f"Function '{name}' returned {bad.value} values in its {number}th output."


def _guard() -> str:
    return say("Choose before the operation, not after it: give it a harmless input there, as pellucid.safe_where does.")


def made_in_forward(
    op_name: str, number: int, result: np.ndarray, bad: Bad, pairs: list[tuple[str, Any]], site: Site | None, names: Names, origin: str
) -> str:
    """The text of the error about an operation that made such values, in its `number`th result, of operands without one."""
    count, place = int(bad.where(result).sum()), at(site)
    if any(has_inf(value) for _, value in pairs):
        given = say("{n} of {size} values were made in the forward from values that are infinite, but no nan{place}",
                    n=count, size=result.size, place=place)  # fmt: skip
    else:
        given = say("{n} of {size} values were made in the forward from finite values{place}", n=count, size=result.size, place=place)
    unseen = say("A where() after it that takes other values there does not help: the gradient would be nan all the same.")
    return message(
        _returned(op_name, bad, number),
        given,
        *lines_of(pairs, names),
        say("  result: {what}", what=described(result)),
        _first(result, bad, pairs),
        origin,
        sentences(unseen, _guard()),
    )


def made_in_backward(
    node: Node, number: int, result: np.ndarray, bad: Bad, grads: list, saved: list[tuple[str, np.ndarray]], origin: str, choice: str
) -> str:
    """The text of the error about a node whose derivative gave such values, in its `number`th gradient."""
    given = [(say("gradient in"), grad) for grad in grads]
    blame = ""
    if any(has_nan(grad) for grad in grads):
        blame = say("The nan was in the gradient that came in: in what backward was given, or in what a hook returned.")
    elif any(has_nan(array) for _, array in saved):
        blame = say(
            "The nan is in what the forward saved: run the forward in detect_anomaly() too, and it stops at the operation that "
            "makes it."
        )
    return message(
        _returned(node.name(), bad, number),
        say("The operation ran{place}", place=at(node.site)) if node.site else "",
        *lines_of(given),
        *lines_of([(say("saved {name}", name=name), array) for name, array in saved]),
        *lines_of([(say("gradient out"), result)]),
        blame,
        origin,
        choice,
    )


def where_text(node: Node, nodes: Iterable[Node], grads: list, result: np.ndarray) -> str:
    """What to say of a where() behind which the gradient of a branch not taken is 0, and 0 times inf NaN; else empty."""
    choice = _where_behind(node, nodes)
    if choice is None or len(grads) != 1:
        return ""
    grad = array_of(grads[0])
    if grad is None or grad.shape != result.shape:
        return ""
    count = int((np.isnan(result) & (grad == 0)).sum())
    if not count:
        return ""
    unused = say(
        "{n} of {size} values belong to the branch that where() did not take{place}: the gradient that comes from there is 0, and 0 "
        "times inf or nan is nan.", n=count, size=result.size, place=at(choice.site),
    )  # fmt: skip
    return sentences(unused, _guard())


def _where_behind(node: Node, nodes: Iterable[Node]) -> Node | None:
    """The where() that a node's result went into, at once or by other operations; None if it went into none."""
    return next((each for each in upwards([node], consumers_of(nodes)) if each.name() == "WhereBackward0"), None)
