"""Nodes of the graph: what an operation leaves behind so that its derivative can be taken.

`Node` is the base of all of them, `AccumulateGrad` the end of every path, `Adjust` what a node must undo around its
formulas (broadcasting, promotion, conjugation). The engine that walks them is in `autograd/engine.py`; the classes of
single operators are made by `autograd/operator.py`.
"""

from __future__ import annotations

import itertools
import weakref
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pellucid.autograd.hooks import RemovableHandle, add_hook
from pellucid.core.dtype import dtype as element_type
from pellucid.core.dtype import dtype_of
from pellucid.core.sites import Site
from pellucid.kernels.sums import sum_to

if TYPE_CHECKING:
    from pellucid.core.tensor import Tensor

__all__ = [
    "MULTI",
    "AccumulateGrad",
    "Adjust",
    "Extra",
    "Freed",
    "Node",
    "edge_of",
    "edge_to",
    "hooked",
    "leaf_edge",
    "next_sequence",
    "numbering",
]

next_sequence = itertools.count(1).__next__
LAST = 1 << 62  # AccumulateGrad runs as soon as it is ready


class _Hooked:
    """How many nodes have an Extra now: while there are none, the engine does not ask its nodes."""

    __slots__ = ("count",)

    def __init__(self):
        self.count = 0


hooked = _Hooked()


class numbering:
    """Whether somebody has given a node another number: then numbers need not follow the order in which nodes were made."""

    changed = False


class Extra:
    """What few nodes have: hooks, metadata, the gradients that `retain_grad` wants."""

    __slots__ = ("metadata", "post_hooks", "pre_hooks", "retain", "tensor_hooks")

    def __init__(self):
        self.tensor_hooks: dict[int, dict] = {}  # output number -> hooks registered on that tensor
        self.retain: dict[int, weakref.ref] = {}  # output number -> tensor whose .grad is to be kept
        self.pre_hooks: dict = {}
        self.post_hooks: dict = {}
        self.metadata: dict = {}
        hooked.count += 1

    def __del__(self):
        hooked.count -= 1


class Fact(NamedTuple):
    """Shape and dtype of a result."""

    shape: tuple
    numpy_dtype: np.dtype

    @property
    def dtype(self) -> element_type:
        """The element type."""
        return dtype_of(self.numpy_dtype)


class Node:
    """One differentiable operation that ran.

    `next_functions` leads to the nodes that made its inputs. A node saves only what its formulas name, holds its inputs
    as tensors and its results as arrays, so that no reference cycle arises and reference counting frees a graph.
    """

    # edges       for each input the edge to what made it (see edge_to), or None where no gradient is needed
    # sequence    creation order; later nodes are differentiated first
    # adjust      None where the formulas' results need nothing undone; an Adjust otherwise; after backward a Freed
    # code, lasti the line that made it, see core/sites.py
    # extra       hooks and metadata, or None
    # fact        shape and dtype of the result; nodes with several outputs have `facts` instead
    __slots__ = ("__weakref__", "adjust", "code", "edges", "extra", "fact", "lasti", "sequence")

    multi = False  # with several outputs, gradients come as a list with None for outputs that had none
    saved: tuple[str, ...] = ()  # slots that release() empties
    outputs: int = 1
    undefined = False  # whether it wants to run even if none of its outputs got a gradient

    if TYPE_CHECKING:
        edges: tuple
        fact: Any
        sequence: int
        adjust: Any
        extra: Extra | None

    def apply(self, grad, edges, keep):
        """Gradients of the inputs whose edge is not None, as arrays, from the gradient of the result as an array.

        Saved values are released unless `keep` is True: it is True, or the Freed to leave in their place. What is
        returned belongs to the engine, which may write to it, except `grad` itself and views.
        """
        raise NotImplementedError

    def apply_tensors(self, grad, edges, keep):
        """The same on tensors, recorded, so that the result can be differentiated again."""
        raise NotImplementedError

    def release(self, freed: Freed) -> None:
        """Let go of saved values after the last use."""
        if self.saved:
            for slot in self.saved:
                setattr(self, slot, None)
            self.adjust = freed

    # --- what users ask ----------------------------------------------------------------------------------------------

    def name(self) -> str:
        """The name of the operation, such as `MulBackward0`."""
        return type(self).__name__

    @property
    def next_functions(self) -> tuple:
        """For each input the pair (node, output number) that made it; (None, 0) where no gradient is needed."""
        return tuple((None, 0) if edge is None else edge[:2] for edge in self.edges)

    @property
    def metadata(self) -> dict:
        """A dictionary for the user's own notes."""
        return extra(self).metadata

    @property
    def _input_metadata(self) -> tuple:
        """Shape and dtype of each output."""
        facts = getattr(self, "facts", None)
        if facts is None:
            facts = (getattr(self, "fact", None),)
        return tuple(Fact(*fact) for fact in facts if fact is not None)

    @property
    def site(self) -> Site | None:
        """The line of the user's program that ran the operation."""
        return Site.of(self.code, self.lasti)

    def _sequence_nr(self) -> int:
        return self.sequence

    def _set_sequence_nr(self, number: int) -> None:
        numbering.changed = True
        self.sequence = number

    def register_hook(self, hook) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after each run; a returned tuple replaces the gradients."""
        return add_hook(extra(self).post_hooks, hook)

    def register_prehook(self, hook) -> RemovableHandle:
        """Call `hook(grad_outputs)` before each run; a returned tuple replaces the gradients."""
        return add_hook(extra(self).pre_hooks, hook)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} object at {id(self):#x}>"


def extra(node: Node) -> Extra:
    """The record of hooks and metadata, made on demand."""
    if node.extra is None:
        node.extra = Extra()
    return node.extra


class AccumulateGrad(Node):
    """The end of a path: adds the gradient to `.grad` of a leaf.

    A leaf owns its node; the node knows its leaf weakly. What keeps a leaf alive as long as a graph needs it is the
    third member of the edges that end in it.
    """

    __slots__ = ("_variable",)

    def __init__(self, variable: Tensor):
        self._variable = weakref.ref(variable)
        self.edges, self.sequence, self.adjust, self.extra = (), LAST, None, None
        self.code, self.lasti = None, 0

    @property
    def variable(self) -> Any:
        """The leaf; None if it is gone."""
        return self._variable()


MULTI: Any = "multi"


def edge_to(node: Node, number: int = 0) -> tuple:
    """The edge to one output of a node: (node, output number, kind, the node's edges, the node's apply).

    The kind is None, MULTI for a node with several outputs, or the leaf itself for an AccumulateGrad. The last two
    members repeat what the node knows: nodes are of many classes, and reading their attributes in the engine's
    loop costs more than all the rest of it.
    """
    return (node, number, MULTI if node.multi else None, node.edges, type(node).apply)


def leaf_edge(tensor: Tensor) -> tuple:
    """The edge to the AccumulateGrad of a leaf."""
    rare = tensor._rare
    if rare is None or rare.accumulator is None:
        tensor.rare.accumulator = AccumulateGrad(tensor)
        rare = tensor._rare
    return (rare.accumulator, 0, tensor, (), None)


def edge_of(tensor) -> tuple | None:
    """Where a gradient for this operand goes: None if it needs none. The caller has refreshed views."""
    if not tensor._requires_grad:
        return None
    return tensor._edge or leaf_edge(tensor)


# --- undoing what happened around a formula --------------------------------------------------------------------------


class Adjust:
    """What lies between a formula and the inputs' gradients.

    Formulas speak of operands that already have the common dtype and shape, and of derivatives without conjugates.
    Around them: a holomorphic function's gradient is conj(formula(conj(grad))), sums undo broadcasting, casts undo
    promotion (a real input of a complex operation gets the real part).
    """

    __slots__ = ("conjugate", "dtypes", "shapes", "wide")

    def __init__(self, shapes, dtypes, conjugate: bool, wide: np.dtype | None):
        self.shapes, self.dtypes = shapes, dtypes  # for each input; None where there is nothing to undo
        self.conjugate = conjugate
        self.wide = wide  # the dtype to compute in where the operands' own is a narrow float

    def before(self, node: Node, grad):
        """The gradient as the formulas want it; a list of gradients for a node with several outputs."""
        if grad.__class__ is list:
            return [None if g is None else self.before(node, g) for g in grad]
        if self.conjugate:
            grad = np.conj(grad)
        return grad if self.wide is None else grad.astype(self.wide)

    def after(self, grads: tuple) -> tuple:
        """The formulas' results as the inputs want them."""
        done = []
        grad: Any
        for grad, shape, dtype in zip(grads, self.shapes, self.dtypes, strict=True):
            if grad is not None:
                if self.conjugate:
                    grad = np.asarray(np.conj(grad))  # NumPy makes scalars of 0-d arrays
                spread = shape is not None and grad.shape != shape
                if spread and self.wide is None:  # summed in the wider dtype, then cast
                    grad = sum_to(grad, shape)  # pyright: ignore[reportArgumentType]
                if dtype is not None and grad.dtype != dtype:
                    grad = (grad.real if grad.dtype.kind == "c" and dtype.kind != "c" else grad).astype(dtype)
                if spread and self.wide is not None:
                    grad = sum_to(grad, shape)  # pyright: ignore[reportArgumentType]
            done.append(grad)
        return tuple(done)

    def before_tensors(self, node: Node, grad):
        """`before`, on tensors."""
        if not self.conjugate:
            return grad
        if grad.__class__ is list:
            return [None if g is None else g.conj() for g in grad]
        return grad.conj()

    def after_tensors(self, grads: tuple) -> tuple:
        """`after`, on tensors."""
        done = []
        for grad, shape, dtype in zip(grads, self.shapes, self.dtypes, strict=True):
            if grad is not None:
                if self.conjugate:
                    grad = grad.conj()
                if shape is not None and grad._array.shape != shape:
                    grad = grad.sum_to_size(shape)
                if dtype is not None and grad._array.dtype != dtype:
                    grad = (grad.real if grad.is_complex() and dtype.kind != "c" else grad).to(dtype_of(dtype))
            done.append(grad)
        return tuple(done)


class Freed:
    """Stands in `adjust` of a node whose saved values are gone: the backward that they went with.

    `code` and `lasti` are its line, as for nodes, `sequence` the number that the next node would have had.
    """

    __slots__ = ("code", "lasti", "sequence")

    if TYPE_CHECKING:
        code: Any
        lasti: int
        sequence: int

    def before(self, node: Node, grad):
        """What asks for the saved values comes here."""
        from pellucid.autograd.twice import freed_text

        raise RuntimeError(freed_text(node, self))

    before_tensors = before
