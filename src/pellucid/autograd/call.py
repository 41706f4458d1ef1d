"""The general road of a call: it asks about everything that the short road leaves out.

Numbers and promotion, narrow floats, `out=`, in-place writes, hooks on saved values, inference mode, observers, classes
that override operators. What is decided here (which values are saved, what is undone around a formula, where a gradient
path ended) is decided the same way in the generated code of `autograd/templates.py`.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from pellucid.autograd.around import Work, surrounded
from pellucid.autograd.declaration import NARROW, Operator, wanted
from pellucid.autograd.node import Adjust, Node, edge_of, edge_to, next_sequence
from pellucid.autograd.saved import Cast, Packed, Widened, save_input, save_result
from pellucid.autograd.views import (
    INFERENCE_WRITE,
    Kind,
    Step,
    check_inplace,
    forget_history,
    rebase,
    refresh,
    take_view,
    written,
)
from pellucid.core.dtype import category
from pellucid.core.errors import note_call, shape_text, type_name
from pellucid.core.modes import modes
from pellucid.core.sites import caller
from pellucid.core.tensor import Buffer, Cut, InferenceCounter, Number, Parameter, Tensor, counter, wrap

__all__ = [
    "called",
    "carry_cut",
    "finish",
    "flat",
    "general",
    "inplace",
    "note_views",
    "record",
    "seal_inplace",
    "view_step",
]


def general(op: Operator, values, out=None, within: bool = False):
    """Call an operator, asking about everything: numbers, promotion, narrow floats, `out`, hooks, modes, observers."""
    for value in values:
        if _overrides(value):
            return _torch_function(op, values, out)
    if modes.autocast is not None and out is None:
        values = modes.autocast(op, values)
    if modes.transforms:
        return modes.transforms[-1].call(op, values, out)
    if modes.around and not within:
        return surrounded(Work.OPERATOR, op, values, lambda: general(op, values, out, True))
    bound = op.bind(values)
    common = op.compute_dtype(bound)
    result, raw = (modes.compute or Operator.data)(op, bound, common)
    many = op.outputs is None or op.results is not None
    made = [wrap(np.asarray(r)) for r in result] if many else [wrap(np.asarray(result))]
    operands = flat(op, bound)
    need = False
    for t in operands:
        if t is not None:
            if t._view is not None:
                refresh(t)
            need = need or t._requires_grad
    if out is not None:
        return _into(op, bound, raw, made, out, need)
    node = None
    gradients = op.differentiable and need and modes.grad_enabled and not modes.inference
    if gradients and not (op.casts and made[0]._array.dtype.kind not in "fcV"):
        node = record(op, bound, raw, common, result)
    if op.view or op.multi_view:
        note_views(op, made, bound, raw)
    finish(op, made, node, operands, need)
    derived = _derived_class(operands)
    if derived is not None:
        for t in made:
            t.__class__ = derived
    for observer in modes.observers:
        observer(op, bound, raw, made)
    if op.outputs is None:
        return tuple(made)
    return op.returns(*made) if op.results else made[0]


def called(op: Operator, values, out=None):
    """Call an operator by its public function: on the short road, if nothing watches and there is no `out`."""
    if out is not None:
        return general(op, values, out)
    positional, named = op.arguments(values)
    return op.public(*positional, **named)


def flat(op: Operator, bound) -> list:
    """All operands of a call, lists spread out."""
    operands = []
    for p, value in zip(op.parameters, bound, strict=True):
        if p.kind == "arrays":
            operands.extend(value)
        elif p.kind in ("array", "index"):
            operands.append(value)
    return operands


def _inputs(op: Operator, bound) -> list:
    """The operands that can receive gradients, in the order of the node's edges."""
    chosen = []
    for p, value in zip(op.parameters, bound, strict=True):
        if p in op.inputs:
            chosen.extend(value if p.kind == "arrays" else [value])
    return chosen


def record(op: Operator, bound, raw, common, result, inplace: Tensor | None = None, kept=None) -> Node | None:
    """Make the node of a call: edges, saved values, what must be undone around the formulas.

    `result` is the array, or all of them, for their shapes and dtypes; `kept` the tensors to save in their place.
    """
    node = object.__new__(op.node)
    inputs = _inputs(op, bound)
    node.edges = tuple([None if t is None else edge_of(t) for t in inputs])
    if not any(node.edges):
        return None
    node.sequence, node.extra = next_sequence(), None
    node.code, node.lasti = caller(sys._getframe(2))
    node.adjust = _adjust(op, inputs, node.edges, common, result)
    by_name = {p.name: v for p, v in zip(op.parameters, bound, strict=True)}
    raw_by_name = {p.name: v for p, v in zip(op.parameters, raw, strict=True)}
    kinds = {p.name: p.kind for p in op.parameters}
    needed = needed_values(op, node.edges, by_name)
    for name in op.node.slots:
        if name not in needed:
            setattr(node, name, None)
        elif name in by_name and name not in op.attributes:
            save_input(node, name, by_name[name], inplace)
            saved = getattr(node, name) if kinds[name] == "array" else None
            if (
                common is not None
                and common.kind == "c"
                and isinstance(saved, Tensor)
                and saved._array.dtype.kind != "c"
            ):
                setattr(node, name, Cast(saved, common))
            elif isinstance(saved, (Tensor, Packed)) and node.adjust is not None and node.adjust.wide is not None:
                if by_name[name]._array.dtype in NARROW:
                    setattr(node, name, Widened(saved, node.adjust.wide))
        elif name in op.attributes:
            setattr(node, name, raw_by_name[name])
        elif name.endswith("_shape"):
            setattr(node, name, _fact(by_name[name.removesuffix("_shape")], "shape"))
        elif name.endswith("_dtype"):
            setattr(node, name, _fact(by_name[name.removesuffix("_dtype")], "dtype"))
        else:
            outputs = kept or (result if op.results else (result,))
            save_result(node, name, outputs[op.outputs.index(name)], inplace)
    if not op.multi:
        first = result[0] if isinstance(result, (tuple, list)) else result
        node.fact = np.shape(first), first.dtype
    else:
        kept = [
            r for r, name in zip(result, op.outputs or [None] * len(result), strict=True) if name not in op.constant
        ]
        node.outputs = len(kept)
        node.facts = tuple((np.shape(r), r.dtype) for r in kept)
    return node


def needed_values(op: Operator, edges, by_name) -> set:
    """The slots of a node that some needed formula names."""
    if op.joint is not None:
        return set(wanted(op.joint)) if any(edges) else set()
    needed: set = set()
    position = 0
    for p in op.inputs:
        count = len(by_name[p.name]) if p.kind == "arrays" else 1
        if any(edges[position : position + count]):
            needed.update(wanted(op.formulas[p.name]))
        position += count
    return needed


def seal_inplace(op: Operator, node: Node, tensor: Tensor) -> None:
    """After an in-place write: a saved result is the tensor that was written to, at the version it now has."""
    for name in op.outputs or ():
        if getattr(node, name, None).__class__ not in (type(None), Packed):  # what a hook has packed stays so
            count = counter(tensor)
            setattr(node, name, tensor._alias() if tensor._wraps else tensor._array)
            setattr(node, f"{name}_c", count)
            setattr(node, f"{name}_v", count.value)


def _fact(value, what: str):
    if isinstance(value, list):
        return tuple(getattr(v._array, what) for v in value)
    return None if value is None or value.__class__ is Number else getattr(value._array, what)


def _adjust(op: Operator, inputs, edges, common, result) -> Adjust | None:
    """What must be undone around the formulas; None for nothing."""
    first = result[0] if isinstance(result, (tuple, list)) else result
    kinds = [None if e is None else t._array.dtype for t, e in zip(inputs, edges, strict=True)]
    # a holomorphic function has one compute dtype; complex if any operand was
    complex_ = (
        op.holomorphic
        and any(t is not None and t.__class__ is not Number and t._array.dtype.kind == "c" for t in inputs)
    ) or (op.holomorphic and common is not None and common.kind == "c")
    narrow = op.widen and first.dtype in NARROW
    # an operand of another dtype, even one without a gradient, makes formulas compute in what NumPy promotes to
    cast = common is not None and any(
        t is not None and t.__class__ is not Number and t._array.dtype != common for t in inputs
    )
    shapes: Any = [None] * len(kinds)
    if op.broadcast:
        target = np.shape(first)
        shapes = [
            None if e is None or t._array.shape == target else t._array.shape
            for t, e in zip(inputs, edges, strict=True)
        ]
    if not (complex_ or narrow or cast or any(s is not None for s in shapes)):
        return None
    return Adjust(shapes, kinds, complex_, np.dtype(np.float32) if narrow else None)


def note_views(op: Operator, made, bound, raw) -> None:
    """Say of each result that it is a view of the first operand."""
    source = bound[0]
    kind = Kind.MULTI if op.multi_view else Kind.PLAIN
    rest = raw[1:]
    for number, result in enumerate(made):
        if op.multi_view:
            step = Step(lambda t, k=number: general(op, (t, *rest))[k], lambda a, k=number: op.forward(np, a, *rest)[k])
        else:
            step = Step(lambda t: general(op, (t, *rest)), lambda a: op.forward(np, a, *rest))
        take_view(result, source, step, op.node_name, kind)


def view_step(op: Operator, rest: tuple) -> Step:
    """How to take a view again from another base: used by the short road of view operators."""
    return Step(lambda t: general(op, (t, *rest)), lambda a: op.forward(np, a, *rest))


def finish(op: Operator, made, node, operands, need: bool) -> None:
    """Tie results to their node, or note where the gradient path ended."""
    number = 0
    for position, t in enumerate(made):
        name = op.outputs[position] if op.outputs else None
        if node is not None and name not in op.constant and t._array.dtype.kind in "fcV":
            t._edge, t._requires_grad = edge_to(node, number), True
            saved = getattr(node, f"{name}_c", None) if name else None
            if saved is not None:
                t._counter = saved
        if name not in op.constant:
            number += 1
        if modes.inference and not (op.view or op.multi_view):
            t._counter = InferenceCounter()
    if node is None and (need or any(t is not None and t._rare is not None for t in operands)):
        for t in made:
            carry_cut(t, operands, need, op.name)


def carry_cut(result: Tensor, operands, need: bool, operation: str) -> None:
    """Note on a result without a gradient where its path ended: here, or where that of an operand did."""
    if need:
        if operation == "_to_copy":  # what `long()`, `to(dtype)` and the like are made of
            operation = f"to({result.dtype})"
        reason = operation if modes.grad_enabled else "inference_mode" if modes.inference else "no_grad"
        result.rare.cut = Cut(reason, *caller(sys._getframe(2)))
        return
    for t in operands:
        if t is not None and t._rare is not None and t._rare.cut is not None:
            result.rare.cut = t._rare.cut
            return


def _into(op: Operator, bound, raw, made, out, need: bool):
    """Write results into the tensors given as `out`, resized where they are empty or of another shape."""
    targets = list(out) if isinstance(out, (tuple, list)) else [out]
    if len(targets) != len(made):
        raise TypeError(f"{op.name}(): expected {len(made)} out tensors, got {len(targets)}")
    for target in targets:
        if not isinstance(target, Tensor):
            raise TypeError(f"{op.name}(): argument 'out' must be Tensor, not {type(target).__name__}")
        if modes.grad_enabled and (need or target._requires_grad) and op.differentiable:
            raise RuntimeError(
                f"{op.name}(): functions with out=... arguments don't support automatic differentiation, but one of "
                "the arguments requires grad. Call it without out=, or under torch.no_grad()."
            )
    for target, value in zip(targets, made, strict=True):
        if category(value._array.dtype) > category(target._array.dtype):
            raise RuntimeError(
                f"result type {type_name(value.dtype)} can't be cast to the desired output type {type_name(target.dtype)}"
            )
        if isinstance(target._counter, InferenceCounter) and not modes.inference:
            raise RuntimeError(INFERENCE_WRITE)
    for target, value in zip(targets, made, strict=True):
        if modes.mutation is not None:
            modes.mutation.before_write(target)
        if target._array.shape != value._array.shape:
            target._array = value._array.astype(target._array.dtype)
        else:
            target._array[...] = value._array
        written(target, op.name)
    for observer in modes.observers:
        observer(op, bound, raw, targets)
    return op.returns(*targets) if op.results else targets[0]


def inplace(op: Operator, tensor: Tensor, values, within: bool = False) -> Tensor:
    """Call an operator and write its result into its first operand. Nothing is written if anything is refused."""
    for value in values:
        if _overrides(value):
            return _torch_function(op, (tensor, *values), None)
    if modes.transforms:
        return modes.transforms[-1].inplace(op, tensor, values)
    if modes.around and not within:
        return surrounded(Work.IN_PLACE, op, (tensor, *values), lambda: inplace(op, tensor, values, True))
    bound = op.bind((tensor, *values))
    operands = flat(op, bound)
    others = False
    for t in operands[1:]:
        if t is not None:
            if t._view is not None:
                refresh(t)
            others = others or t._requires_grad
    try:
        recorded = check_inplace(tensor, others and op.differentiable, op.fills)
        common = op.compute_dtype(bound)
        result, raw = (modes.compute or Operator.data)(op, bound, common)
        result = np.asarray(result)
        target = tensor._array
        if result.shape != target.shape or category(result.dtype) > category(target.dtype):
            raise RuntimeError(_misfit(op, target, result))
    except (RuntimeError, IndexError) as error:
        note_call(op, error, bound, f"{op.name}_")
        raise
    node = None
    if recorded:
        node = record(op, bound, raw, common, result, inplace=tensor) if op.differentiable else None
    target[...] = result
    written(tensor, f"{op.name}_")
    if node is not None:
        seal_inplace(op, node, tensor)
        rebase(tensor, node)
    elif recorded and not op.differentiable and tensor._requires_grad:
        forget_history(op, tensor)
    for observer in modes.observers:
        observer(op, bound, raw, [tensor])
    return tensor


def _misfit(op: Operator, target: np.ndarray, result: np.ndarray) -> str:
    """Why a result cannot be written into the operand that it is to replace."""
    if result.shape != target.shape:
        return (
            f"output with shape {shape_text(target)} doesn't match the broadcast shape {shape_text(result)}: "
            f"{op.name}_ writes into its first argument, which cannot grow"
        )
    return (
        f"result type {type_name(result.dtype)} can't be cast to the desired output type {type_name(target.dtype)}: use the "
        f"out-of-place {op.name}(), or convert the tensor first"
    )


# --- classes derived from Tensor --------------------------------------------------------------------------------------


def _default_torch_function(cls, func, types, args=(), kwargs=None):
    """What an operator does with a derived class that overrides nothing: results are of that class."""
    with _without_override(cls):
        return func(*args, **(kwargs or {}))


class _without_override:
    """A block in which a class's own `__torch_function__` is not asked (it has just been)."""

    def __init__(self, cls):
        self.cls = cls

    def __enter__(self):
        modes.overriding = (*modes.overriding, self.cls)

    def __exit__(self, *exception):
        modes.overriding = modes.overriding[:-1]


setattr(Tensor, "__torch_function__", classmethod(_default_torch_function))  # noqa: B010 (typed classes forbid it)


def _overrides(value) -> bool:
    cls = value.__class__
    method = getattr(cls, "__torch_function__", None)
    return (
        method is not None
        and getattr(method, "__func__", None) is not _default_torch_function
        and cls not in modes.overriding
    )


def _torch_function(op: Operator, values, out):
    """Give the call to the class of an operand that wants it."""
    types = tuple({type(v) for v in values if isinstance(v, Tensor)})
    positional = tuple(v for p, v in zip(op.parameters, values, strict=True) if not p.keyword)
    kwargs = {p.name: v for p, v in zip(op.parameters, values, strict=True) if p.keyword and v is not p.default}
    if out is not None:
        kwargs["out"] = out
    for value in values:
        if _overrides(value):
            answer = type(value).__torch_function__(op.public, types, positional, kwargs)
            if answer is not NotImplemented:
                return answer
    raise TypeError(
        f"no implementation found for 'torch.{op.name}' on types that implement __torch_function__: {list(types)}"
    )


def _derived_class(operands):
    """The class derived from Tensor that results are to have; None for plain tensors."""
    for t in operands:
        cls = t.__class__
        if cls is not Tensor and cls not in PLAIN and t is not None:
            if cls._wraps:
                raise RuntimeError(
                    "vmap: a Tensor that stands for one example of a batch is used outside of the vmap it was made in. "
                    "Return it from the function instead of keeping it."
                )
            return cls
    return None


PLAIN = (Number, Parameter, Buffer)
