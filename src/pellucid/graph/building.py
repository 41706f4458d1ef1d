"""Making a `Graph`: vertices and edges are added here, in the order of the data, by `walk.py` and `recording.py`.

A builder knows which tensor, array and node became which vertex, by id and weakly; what it puts into the graph is plain
data.
"""

from __future__ import annotations

import functools
import weakref
from types import CodeType
from typing import Any

import numpy as np

from pellucid.autograd.function_context import FunctionCtx
from pellucid.autograd.saved import Cast, Packed
from pellucid.autograd.views import CopySlices
from pellucid.core.dtype import dtype_of
from pellucid.core.sites import Site
from pellucid.core.tensor import Number, Tensor, storage_of
from pellucid.graph.layouts import layout_of
from pellucid.graph.snapshot import Edge, Gradient, Graph, Line, Node, Output, Saved, Storage

__all__ = ["SMALL", "Builder", "WeakTable", "attribute_text", "gradient_of", "plain_value"]

SMALL = 64  # elements of a value that is kept with the graph


class WeakTable:
    """A number for each of many objects, which are not kept alive: an entry ends with its object."""

    __slots__ = ("entries",)

    def __init__(self):
        self.entries: dict[int, tuple] = {}

    def get(self, thing: Any) -> Any:
        """The number of a thing, None if it has none."""
        entry = self.entries.get(id(thing))
        return entry[1] if entry is not None and entry[0]() is thing else None

    def set(self, thing: Any, value: Any) -> None:
        """Give a thing its number."""
        self.entries[id(thing)] = weakref.ref(thing), value

    def living(self) -> list[tuple[Any, Any]]:
        """The things that are still there, with their numbers."""
        return [(thing, value) for reference, value in self.entries.values() if (thing := reference()) is not None]


class Handles:
    """Which autograd node, tensor and array became which vertex of a graph; all of them weakly."""

    __slots__ = ("arrays", "nodes", "tensors")

    def __init__(self):
        self.nodes = WeakTable()  # autograd node -> vertex
        self.tensors = WeakTable()  # leaf or input -> vertex
        self.arrays = WeakTable()  # array of a result -> (vertex, output number)


class Builder:
    """A graph under construction."""

    def __init__(self, title: str = ""):
        self.graph = Graph(title=title)
        self.handles = self.graph._handles = Handles()
        self._storages = WeakTable()
        self._lines: dict[int, tuple] = {}  # id of a code object -> it, line of each instruction, instruction -> Line

    # --- vertices and edges ------------------------------------------------------------------------------------------

    def add(self, node: Node) -> Node:
        """Put a vertex at the end."""
        node.id = len(self.graph.nodes)
        self.graph.nodes.append(node)
        return node

    def connect(self, source: tuple[int, int], target: int, position: int, name: str, kind: str = "gradient",
                reason: str = "", site: Line | None = None) -> None:  # fmt: skip
        """Put an edge from an output (vertex, number) into an operand of a vertex."""
        self.graph.edges.append(Edge(*source, target, position, name, kind, reason, site))

    def tensor_vertex(self, tensor: Tensor, name: str = "", values: bool = False) -> int:
        """The vertex of a leaf or an input, made on first sight."""
        known = self.handles.tensors.get(tensor)
        if known is not None:
            return known
        kind = "leaf" if tensor._requires_grad else "input"
        output = self.output_of(tensor._array, name, tensor._requires_grad, values)
        if tensor._grad is not None:
            output.gradient = gradient_of(tensor._grad._array)
        vertex = self.add(Node(0, kind, kind, outputs=[output])).id
        self.handles.tensors.set(tensor, vertex)
        self.handles.arrays.set(tensor._array, (vertex, 0))
        self.storage(tensor._array, kind if tensor._requires_grad or name else "activation")
        return vertex

    def output_of(self, array: np.ndarray, name: str = "", requires_grad: bool = False, values: bool = False) -> Output:
        """What is kept of a result: shape, dtype, and its values if they are few and asked for."""
        value = plain_value(array) if values and array.size <= SMALL else None
        return Output(tuple(array.shape), dtype_name(array.dtype), name, requires_grad, value)

    # --- what nodes save ---------------------------------------------------------------------------------------------

    def saved_by(self, node: Any) -> list[Saved]:
        """The arrays that a node keeps for its backward."""
        if isinstance(node, CopySlices):
            return self.saved_by(node.function) if node.function is not None else []
        found = []
        for name, value in saved_values(node):
            array = array_of(value)
            if array is not None:
                is_leaf = isinstance(value, Tensor) and value._requires_grad and value._edge is None
                storage = self.storage(array, "leaf" if is_leaf else "activation")
                found.append(Saved(name, array.shape, dtype_name(array.dtype), array.nbytes, storage))
        return found

    def storage(self, array: np.ndarray, kind: str) -> int:
        """The number of the memory an array lies in; a piece known to live anyway stays so."""
        owner = array if array.base is None else storage_of(array)
        known = self._storages.get(owner)
        if known is None:
            known = len(self.graph.storages)
            self.graph.storages.append(Storage(owner.nbytes, kind))
            self._storages.set(owner, known)
        elif kind == "leaf" or (kind == "input" and self.graph.storages[known].kind == "activation"):
            self.graph.storages[known].kind = kind
        return known

    # --- lines -------------------------------------------------------------------------------------------------------

    def line(self, code: CodeType | None, lasti: int) -> Line | None:
        """The line of the user's program at an instruction; resolved once for each."""
        if code is None:
            return None
        entry = self._lines.get(id(code))  # by identity: code objects are hashed by their contents, which takes long
        if entry is None:
            entry = self._lines[id(code)] = code, [position[0] for position in code.co_positions()], {}
        known = entry[2].get(lasti)
        if known is None:
            numbers = entry[1]
            number = numbers[lasti // 2] if 0 <= lasti // 2 < len(numbers) else None
            site = Site(code.co_filename, number or code.co_firstlineno, code.co_qualname)
            known = entry[2][lasti] = Line(site.file, site.line, site.function, site.source)
        return known


def saved_values(node: Any) -> list[tuple[str, Any]]:
    """Names and values of what a node saves: arrays, tensors, or what a hook packed; lists spread out."""
    if isinstance(node, FunctionCtx):
        return _saved_by_function(node)
    layout = layout_of(node.__class__)
    found: list[tuple[str, Any]] = []
    for name in layout.saved:
        value = getattr(node, name)
        if value.__class__ is tuple:
            found.extend((f"{name}[{i}]", item) for i, item in enumerate(value))
        elif value is not None:
            found.append((name, value))
    for name in layout.attributes:  # an operator may keep arrays among its attributes, such as positions
        value = getattr(node, name)
        if isinstance(value, np.ndarray):
            found.append((name, value))
    return found


def _saved_by_function(node: FunctionCtx) -> list[tuple[str, Any]]:
    """What a custom Function saved, and tensors that were set on its context."""
    kept = [s.value if hasattr(s, "value") else s for s in node.saved_values or ()]
    found = [(f"saved_tensors[{i}]", value) for i, value in enumerate(kept)]
    found += [(name, value) for name, value in vars(node).items() if isinstance(value, Tensor)]
    return found


def array_of(value: Any) -> np.ndarray | None:
    """The array of a saved value; None where a hook has taken it away or nothing is there."""
    if isinstance(value, np.ndarray):
        return value
    if value.__class__ is Packed:
        return value.handle._array if isinstance(value.handle, Tensor) else None
    if value.__class__ is Cast:
        value = value.value
    return value._array if isinstance(value, Tensor) else None


# --- plain values ----------------------------------------------------------------------------------------------------


@functools.cache
def dtype_name(kind: np.dtype) -> str:
    """The name of an element type, as PyTorch spells it: "float32", "bool"."""
    try:
        return dtype_of(kind).name
    except TypeError:
        return str(kind)


def plain_value(array: np.ndarray) -> Any:
    """The values as a number or nested lists; bfloat16 and complex in forms that Python has."""
    return (array.astype(np.float32) if array.dtype.kind == "V" else array).tolist()


def attribute_text(value: Any, most: int = 60) -> str:
    """An argument that is no tensor, as a short text."""
    if value.__class__ is Number:
        value = value._array
    if isinstance(value, np.ndarray):
        return str(value.item()) if value.ndim == 0 else f"array {list(value.shape)}"
    text = repr(value)
    return text if len(text) <= most else text[: most - 3] + "..."


def gradient_of(array: np.ndarray) -> Gradient:
    """What is worth knowing of a gradient: norm of the finite elements, share of zeros, how many are not finite."""
    values = array.astype(np.float32) if array.dtype.kind == "V" or array.dtype.itemsize < 4 else array
    finite = np.isfinite(values)
    nan = int(np.isnan(values).sum())
    good = values if finite.all() else values[finite]
    return Gradient(
        norm=float(np.linalg.norm(good.ravel())) if good.size else 0.0,
        zeros=float((values == 0).mean()) if values.size else 0.0,
        nan=nan,
        inf=int(values.size - finite.sum()) - nan,
    )
