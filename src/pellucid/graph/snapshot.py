"""The computation graph as plain data: what `graph.of` and `graph.record` give, and what everything that shows it reads.

Here are the data classes only. A `Graph` holds numbers, texts and lists: no tensor, no array, no frame, so it keeps
nothing alive. It is made in `walk.py` (from the nodes that autograd left) and `recording.py` (from a program as it
runs); text, drawings and exports are made from it alone.

**Order and direction.** `nodes[i].id == i`, and nodes stand in the order of the data: every edge leads from a node to
a later one, from what was computed first to what was computed from it. (Autograd's `next_functions` point the other
way.) The number of edges is the number of operands, never the number of paths.

**Nodes** are of three kinds. `"operation"`: something that ran. `"leaf"`: a tensor that requires grad and was not
computed. `"input"`: a tensor that needs no gradient and whose origin is not known, such as data, a buffer, a constant.

**Edges** are of three kinds. `"gradient"`: in backward a gradient flows along it, against its direction. `"constant"`:
no gradient is needed. `"cut"`: a gradient would flow if the path were not broken here; `reason` is the operation or
mode that broke it (`detach`, `no_grad`, `argmax`, ...) and `site` the line.

**Modules** are recorded as calls, nested as they ran; a module that ran twice has two calls with the same path. A node
names the innermost call it ran in.

**Memory.** `storages[k].bytes` is counted once, however many nodes save the array or a view of it: `saved[j].storage`
is its index. Storages of leaves live anyway, so `saved_bytes` leaves them out.

What is not known is None (a shape, a value), an empty text (a name) or an empty list, never a guess.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from pellucid.core.language import say

if TYPE_CHECKING:
    from pellucid.graph.chain import Chain

__all__ = [
    "Derivative",
    "Edge",
    "Failure",
    "Gradient",
    "Graph",
    "Line",
    "ModuleCall",
    "Node",
    "Output",
    "Saved",
    "Storage",
]


@dataclass(slots=True)
class Line:
    """A line of the user's program: `source` is its text without indentation, empty where it cannot be read."""

    file: str
    line: int
    function: str
    source: str

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(slots=True)
class Gradient:
    """What a backward made of a gradient: `norm` is Euclidean, over finite elements; `zeros` is the share of exact
    zeros, from 0 to 1; `nan` and `inf` count elements."""

    norm: float
    zeros: float
    nan: int
    inf: int


@dataclass(slots=True)
class Output:
    """One result of a node. For a leaf or an input the tensor itself, its only output."""

    shape: tuple[int, ...] | None = None
    dtype: str = ""  # "float32"
    name: str = ""  # the Python expression under which the tensor was found: "loss", "net.fc1.weight", "xs[2]"
    requires_grad: bool = False
    value: Any = None  # number or nested lists, where asked for and small
    gradient: Gradient | None = None


@dataclass(slots=True)
class Saved:
    """A value that a node keeps for its backward."""

    name: str  # the operand's or result's name in the operator's signature
    shape: tuple[int, ...]
    dtype: str
    bytes: int  # of the value itself; the storage may be larger, and shared
    storage: int  # index into Graph.storages


@dataclass(slots=True)
class Storage:
    """A piece of memory that saved values lie in. `kind`: "activation", "leaf" (a parameter: lives anyway), "input"."""

    bytes: int
    kind: str


@dataclass(slots=True)
class Node:
    """One vertex of the graph.

    name: for an operation autograd's name (`AddmmBackward0`), or the operator's where no gradient is recorded
        (`argmax`); for leaves and inputs "leaf" and "input".
    operator: the operator's name (`linear`); empty for leaves, inputs and nodes that are no operator's.
    attributes: what was given beside the tensors (`dim`, `stride`, Python numbers), as texts.
    call: index into Graph.calls of the innermost module call it ran in, or None.
    phase: "forward", or "backward" for an operation that computed a derivative.
    inside: the name of the custom Function in whose forward it ran; empty for others.
    flops: forward floating-point operations, where counted; None where not.
    """

    id: int
    kind: str
    name: str
    operator: str = ""
    outputs: list[Output] = field(default_factory=list)
    saved: list[Saved] = field(default_factory=list)
    attributes: dict[str, str] = field(default_factory=dict)
    site: Line | None = None
    call: int | None = None
    sequence: int | None = None  # autograd's: the order in which operations were recorded
    phase: str = "forward"
    inside: str = ""
    flops: int | None = None
    inplace: bool = False

    @property
    def label(self) -> str:
        """The name of its first named output, else its own."""
        return next((o.name for o in self.outputs if o.name), self.name)


@dataclass(slots=True)
class Derivative:
    """The local derivative of an edge: of the target's output with respect to this operand.

    kind: "scalar" (a number), "diagonal" (a list: element by element, of the operand's size), "matrix" (rows are
    elements of the target's output, columns elements of the operand, both in row-major order).
    """

    kind: str
    values: Any


@dataclass(slots=True)
class Edge:
    """Data that goes from output number `output` of node `source` into node `target`, as its operand number `input`."""

    source: int
    output: int
    target: int
    input: int
    name: str = ""  # the operand's name in the operator's signature: "weight"
    kind: str = "gradient"  # or "constant", "cut"
    reason: str = ""  # of a cut
    site: Line | None = None  # of a cut
    derivative: Derivative | None = None


@dataclass(slots=True)
class ModuleCall:
    """One call of a module's forward.

    parameters: elements of all parameters in it and below, each parameter once.
    phase: "backward" for a call in a backward, such as the recomputation of a checkpoint.
    output: the shapes of what it returned, nested as that was: "[2, 10]", "([2, 10], [2, 4])", "{logits: [2, 10]}".
    """

    id: int
    path: str  # "net.layers.3"
    type: str  # "Linear"
    parent: int | None
    number: int = 0  # 0 for the first call of this module, 1 for the second, ...
    parameters: int = 0
    finished: bool = True
    phase: str = "forward"
    output: str = ""


@dataclass(slots=True)
class Failure:
    """The error that ended a recording.

    operation: the name of what raised it, with its operands and their names in the signature; empty if it was no
        operation of the library.
    node: the vertex that stands for it, without outputs; None where there is no operation.
    module: the path of the innermost module that was running.
    """

    error: str  # "RuntimeError"
    message: str
    operation: str = ""
    operands: list[Output] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    site: Line | None = None
    node: int | None = None
    module: str = ""

    def __str__(self) -> str:
        """In one line: `mm(input [2, 3], mat2 [4, 5]) failed at net.py:12 in net.fc: RuntimeError: ...`."""
        given = ", ".join(
            f"{name} {list(operand.shape)}" if operand.shape is not None else name
            for name, operand in zip(self.names, self.operands, strict=True)
        )
        what = f"{self.operation}({given})" if self.operation else say("the program")
        where = say(" at {site}", site=self.site) if self.site else ""
        where += say(" in {module}", module=self.module) if self.module else ""
        return say("{what} failed{where}: {error}", what=what, where=where, error=f"{self.error}: {self.message}")


@dataclass(slots=True, repr=False)
class Graph:
    """A computation graph as plain data; see the module's first lines for what order, direction and kinds mean."""

    title: str = ""
    nodes: list[Node] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    roots: list[tuple[int, int]] = field(default_factory=list)  # (node, output) of what was asked about
    calls: list[ModuleCall] = field(default_factory=list)
    storages: list[Storage] = field(default_factory=list)
    failure: Failure | None = None
    freed: bool = False  # whether a backward has released saved values already, so that `saved` is not complete
    dropped: int = 0  # operations that a recording with a limit has forgotten
    _handles: Any = field(default=None, repr=False, compare=False)  # weak: which tensors and nodes became which node

    @property
    def leaves(self) -> list[Node]:
        """The nodes that are leaves: tensors that require grad and were not computed."""
        return [node for node in self.nodes if node.kind == "leaf"]

    @property
    def operations(self) -> list[Node]:
        """The nodes that are operations."""
        return [node for node in self.nodes if node.kind == "operation"]

    @property
    def cuts(self) -> list[Edge]:
        """The edges at which a gradient path ends."""
        return [edge for edge in self.edges if edge.kind == "cut"]

    @property
    def saved_bytes(self) -> int:
        """Bytes kept for backward: each storage once, without leaves and inputs, which live anyway."""
        used = {saved.storage for node in self.nodes for saved in node.saved}
        return sum(self.storages[k].bytes for k in used if self.storages[k].kind == "activation")

    def module_of(self, node: Node) -> str:
        """The path of the innermost module that a node ran in; empty if none is known."""
        return "" if node.call is None else self.calls[node.call].path

    # --- looking at it -----------------------------------------------------------------------------------------------

    def text(self, *, expand: int | str | None = None, fold: bool = True) -> str:
        """The graph for terminals, from its results back to its leaves.

        Args:
            expand: how many levels of modules to open; "all" for all. By default outermost modules are one line each.
            fold: whether equal blocks that follow one another are shown once (`12 x`).
        """
        from pellucid.graph.text import graph_text

        return graph_text(self, expand=expand, fold=fold)

    def dot(self, *, expand: int | str | None = None) -> str:
        """The graph in Graphviz's language."""
        from pellucid.graph.export import to_dot

        return to_dot(self, expand)

    def svg(self, *, expand: int | str | None = None, direction: str = "down") -> str:
        """A still picture as the text of an SVG, for documents.

        Args:
            expand: how many levels of modules to open; "all" for all. By default outermost modules are opened as long
                as the picture stays small. Equal modules in a row are drawn once (`12 x`).
            direction: where the data flows in the picture, "down" or "right".

        Raises:
            ValueError: there are more than 500 operations and modules to draw.
        """
        from pellucid.graph.page import static_svg

        return static_svg(self, expand, direction)

    def html(self, path: str | os.PathLike[str] | None = None) -> str:
        """The picture that opens modules on a click, searches, and replays the forward and the backward pass: one HTML
        file that needs no network, as text; written to `path` if that is given."""
        from pellucid.graph.page import document, write_page

        return document(self) if path is None else write_page(self, path)

    def show(self) -> str | None:
        """Show `html()`: in the notebook, or else in the web browser, from a temporary file whose path is returned."""
        from pellucid.graph.page import show_page

        return show_page(self)

    def _repr_html_(self) -> str:
        from pellucid.graph.page import notebook_frame

        return notebook_frame(self)

    def to_dict(self) -> dict[str, Any]:
        """All of it as nested dictionaries and lists."""
        from pellucid.graph.export import to_dict

        return to_dict(self)

    def json(self, *, indent: int | None = None) -> str:
        """The same as JSON text. NaN and infinities are the texts "nan", "inf" and "-inf"."""
        from pellucid.graph.export import to_json

        return to_json(self, indent)

    def to_networkx(self) -> Any:
        """A `networkx.MultiDiGraph`; ImportError without NetworkX."""
        from pellucid.graph.export import to_networkx

        return to_networkx(self)

    def chain(self, result: Any, variable: Any, *, most: int = 20) -> Chain:
        """The paths from `variable` to `result`, the product of local derivatives along each, and their sum.

        Args:
            result, variable: names, node numbers, or tensors that the graph was taken of.
            most: how many paths to list; the count and the sum are over all.

        Raises:
            ValueError: one of them is not in the graph.
        """
        from pellucid.graph.chain import chain_in

        return chain_in(self, result, variable, most)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        from pellucid.graph.text import heading

        return f"<{heading(self).splitlines()[0]}>"

    def __getstate__(self):
        return {name: getattr(self, name) for name in self.__dataclass_fields__ if name != "_handles"}

    def __setstate__(self, state):
        for name, value in state.items():
            setattr(self, name, value)
        self._handles = None
