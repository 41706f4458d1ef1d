"""NaN and Inf in words: what an array holds, what an operation was given and made, and where the first one came from.

`autograd/anomaly.py` says when these are asked for. What is remembered is text: no tensor or array lives longer for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from pellucid.autograd.node import Node
from pellucid.autograd.reach import consumers_of, upwards
from pellucid.core.names import Names
from pellucid.core.sites import Site, at
from pellucid.core.tensor import Tensor

__all__ = ["described", "has_inf", "has_nan", "made_in_backward", "made_in_forward", "operands_of", "saved_arrays", "where_text"]


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


def described(array: np.ndarray) -> str:
    """Shape, dtype, range of the finite values, and how many are not finite: "[2] float32, from 0 to 1, 1 nan"."""
    parts = [f"{list(array.shape)} {array.dtype.name}"]
    finite = array[np.isfinite(array)]
    if finite.size and array.dtype.kind != "c":
        low, high = float(finite.min()), float(finite.max())
        parts.append(f"all {low:g}" if low == high and finite.size == array.size > 1 else _range(low, high))
    nan, inf = int(np.isnan(array).sum()), int(np.isinf(array).sum())
    parts += [f"{count} {what}" for count, what in ((nan, "nan"), (inf, "inf")) if count]
    return ", ".join(parts)


def _range(low: float, high: float) -> str:
    return f"value {low:g}" if low == high else f"from {low:g} to {high:g}"


def operands_of(op: Any, values: Iterable[Any]) -> list[tuple[str, Any]]:
    """What an operator was called with, by the names of its parameters; lists spread out."""
    found = []
    for parameter, value in zip(op.parameters, values, strict=False):
        if isinstance(value, (list, tuple)):
            found += [(f"{parameter.name}[{k}]", item) for k, item in enumerate(value)]
        else:
            found.append((parameter.name, value))
    return found


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


def lines_of(label: str, pairs: Iterable[tuple[str, Any]], names: Names | None = None) -> list[str]:
    """A line for each array among some values: what it is called, and what it holds."""
    lines = []
    for name, value in pairs:
        array = array_of(value)
        if array is not None:
            held = names.of_tensor(value) if names is not None and isinstance(value, Tensor) else ""
            lines.append(f"  {label}{name}{f' `{held}`' if held else ''}: {described(array)}")
    return lines


def _first(array: np.ndarray, pairs: Iterable[tuple[str, Any]]) -> str:
    """Where the first NaN is, and what stands there in arrays of the same shape, or what a single value is."""
    place = tuple(int(k) for k in np.argwhere(np.isnan(array))[0])
    values = []
    for name, value in pairs:
        given = value if isinstance(value, (int, float)) and not isinstance(value, bool) else array_of(value)
        if isinstance(given, np.ndarray):
            given = given[place] if given.shape == array.shape else given.reshape(()) if given.size == 1 else None
        if given is not None:
            values.append(f"{name} = {given:g}" if not isinstance(given, complex) else f"{name} = {given}")
    return f"  first at {list(place)}" + (f": {', '.join(values)}" if values else "")


# --- where it was made ------------------------------------------------------------------------------------------------

GUARD = "Choose before the operation, not after it: give it a harmless input there, as pellucid.safe_where does."
UNSEEN = "A where() after it that takes other values there does not help: the gradient would be nan all the same."


def made_in_forward(
    name: str, number: int, result: np.ndarray, pairs: list[tuple[str, Any]], site: Site | None, names: Names, origin: str
) -> str:
    """The text of the error about an operation that made a NaN, in its `number`th result, of operands without one."""
    count = int(np.isnan(result).sum())
    given = "finite values" if not any(has_inf(value) for _, value in pairs) else "values that are infinite, but no nan"
    lines = [
        f"Function '{name}' returned nan values in its {number}th output: {count} of {result.size} values, made in the forward "
        f"from {given}{at(site)}",
        *lines_of("", pairs, names),
        f"  result: {described(result)}",
        _first(result, pairs),
    ]
    return "\n".join([*lines, *([origin] if origin else []), f"{UNSEEN} {GUARD}"])


def made_in_backward(
    node: Node, number: int, result: np.ndarray, grads: list, saved: list[tuple[str, np.ndarray]], origin: str, choice: str
) -> str:
    """The text of the error about a node whose derivative gave a NaN, in its `number`th gradient."""
    given = [("", grad) for grad in grads]
    lines = [
        f"Function '{node.name()}' returned nan values in its {number}th output: the operation ran at {node.site}",
        *lines_of("gradient in", given),
        *lines_of("saved ", saved),
        *lines_of("gradient out", [("", result)]),
    ]
    if any(has_nan(grad) for grad in grads):
        lines.append("The nan was in the gradient that came in: in what backward was given, or in what a hook returned.")
    elif any(has_nan(array) for _, array in saved):
        lines.append(
            "The nan is in what the forward saved: run the forward in detect_anomaly() too, and it stops at the operation that "
            "makes it."
        )
    return "\n".join([*lines, *([origin] if origin else []), *([choice] if choice else [])])


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
    return (
        f"{count} of {result.size} values belong to the branch that where() did not take{at(choice.site)}: the gradient that comes from there is 0, and 0 times inf or nan is nan. {GUARD}"
    )


def _where_behind(node: Node, nodes: Iterable[Node]) -> Node | None:
    """The where() that a node's result went into, at once or by other operations; None if it went into none."""
    return next((each for each in upwards([node], consumers_of(nodes)) if each.name() == "WhereBackward0"), None)
