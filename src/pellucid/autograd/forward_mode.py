"""Forward mode: tangents travel with tensors through the operators that are called.

Inside a `DualLevel` a tensor may carry a tangent; the result of an operator then carries J times the tangents of its
operands. How J is applied follows from the declaration, in this order:

- `jvp_<input>(F, tangent, ...)`, one for each input, or a joint `jvp(F, tangents, ...)`;
- a linear operator is called on the tangents; one that is linear in each operand, once for each;
- an elementwise operator's reverse formula is its forward formula, for J is diagonal;
- otherwise the reverse formula u -> J^H u, which is linear in u, is transposed by differentiating it with respect to u.

All of it runs on tensors, outside the level: so tangents have tangents of outer levels, and histories.
"""

from __future__ import annotations

import weakref
from typing import Any

import numpy as np

from pellucid.autograd import declaration
from pellucid.autograd.batching import marked
from pellucid.autograd.call import general, inplace
from pellucid.autograd.declaration import Operator, array_of, formula_arguments
from pellucid.autograd.differentiate import grad
from pellucid.autograd.grad_mode import enable_grad
from pellucid.autograd.transforms import Level, below
from pellucid.core.dtype import dtype_of
from pellucid.core.modes import modes
from pellucid.core.tensor import Number, Tensor, without_history, wrap

__all__ = ["DualLevel", "push_forward"]

F = declaration.tensors
recording: Any = enable_grad


class DualLevel(Level):
    """One level of forward mode. Tangents live with their tensors (`rare.tangents`) and end with the level."""

    def __init__(self):
        self.carriers: list[weakref.ref] = []

    def tangent(self, tensor) -> Tensor | None:
        """The tangent of an operand at this level. A view without one of its own has a view of its base's."""
        if not isinstance(tensor, Tensor):
            return None
        tangents = None if tensor._rare is None else tensor._rare.tangents
        found = None if tangents is None else tangents.get(self)
        if found is None and tensor._view is not None:
            found = self.tangent(tensor._view.base)
            if found is not None:
                found = self._like_view(found, tensor)
                self.attach(tensor, found)
        return found

    def _like_view(self, tangent: Tensor, view: Tensor) -> Tensor:
        with below(self) if self in modes.transforms else recording():
            for step in view._view.steps:
                tangent = step.on_tensor(tangent)
        return tangent

    def attach(self, tensor: Tensor, tangent: Tensor) -> None:
        """Give a tensor a tangent."""
        if tensor.rare.tangents is None:
            tensor.rare.tangents = {}
        tensor.rare.tangents[self] = tangent
        self.carriers.append(weakref.ref(tensor))

    def detach(self, tensor: Tensor) -> None:
        """Take the tangent of a tensor away."""
        if tensor._rare is not None and tensor._rare.tangents is not None:
            tensor._rare.tangents.pop(self, None)

    def close(self) -> None:
        """Take all tangents away."""
        for reference in self.carriers:
            tensor = reference()
            if tensor is not None:
                self.detach(tensor)
        self.carriers.clear()

    def _tangents(self, op: Operator, bound: list) -> list:
        """The tangent of each input, None where there is none; a list of them for an operand that is a list."""
        found = []
        for p, value in zip(op.parameters, bound, strict=True):
            if p in op.inputs:
                each = [self.tangent(v) for v in value] if p.kind == "arrays" else self.tangent(value)
                found.append(None if p.kind == "arrays" and not any(t is not None for t in each) else each)
        return found

    def call(self, op: Operator, values, out):
        """An operator on tensors that may carry tangents."""
        bound = op.bind(values)
        tangents = self._tangents(op, bound) if op.differentiable else []
        moving = any(t is not None for t in tangents)
        targets: Any = () if out is None else out if isinstance(out, (tuple, list)) else (out,)
        if out is not None and (moving or any(self.tangent(t) is not None for t in targets)):
            raise RuntimeError(
                f"{op.name}(): out= function with a tensor that carries a forward-mode tangent is not supported. "
                "Call it without out=."
            )
        with below(self):
            result = general(op, bound, out)
            if not moving:
                return result
            many: Any = result if op.outputs is None or op.results else [result]
            made = list(many)
            pushed = push_forward(op, bound, made, tangents)
        for tensor, tangent in zip(made, pushed, strict=True):
            if tangent is not None:
                self.attach(tensor, tangent)
        _save_with_tangents(op, made, self)
        return result

    def inplace(self, op: Operator, tensor: Tensor, values):
        """An in-place operator: the tangent of what is written to is written to as well."""
        bound = op.bind((tensor, *values))
        tangents = self._tangents(op, bound) if op.differentiable else []
        with below(self):
            if not any(t is not None for t in tangents):
                inplace(op, tensor, values)
                if not op.differentiable:
                    self.detach(tensor)
                return tensor
            made: Any = general(op, (without_history(tensor), *bound[1:]))
            pushed = push_forward(op, bound, [made], tangents)[0]
            inplace(op, tensor, values)
            own = self.tangent(tensor)
            if own is None:
                own = self._new_tangent(tensor)
            own.copy_(pushed)
        return tensor

    def _new_tangent(self, tensor: Tensor) -> Tensor:
        """A tangent of zeros to write to: for a view, that of its base, which other views then share."""
        if tensor._view is None:
            made = F.zeros_as(tensor)
            self.attach(tensor, made)
            return made
        base = tensor._view.base
        self.attach(base, F.zeros_as(base))
        found = self.tangent(tensor)
        assert found is not None
        return found

    def function(self, cls, args):
        """A custom Function: its `jvp` makes the tangents of its results."""
        from pellucid.autograd.function import apply_forward_mode

        return apply_forward_mode(self, cls, args)


def _save_with_tangents(op: Operator, made, level: DualLevel) -> None:
    """A result saved by the node of the call must carry its tangent into formulas: replace the bare array."""
    edge = made[0]._edge
    node = None if edge is None else edge[0]
    if getattr(type(node), "operator", None) is not op:
        return
    for name, tensor in zip(op.outputs or (), made, strict=False):
        kept: Any = getattr(node, name, None)
        if kept.__class__ is np.ndarray or isinstance(kept, Tensor):
            if not isinstance(kept, Tensor):
                kept = wrap(kept)
                setattr(node, name, kept)
            kept.rare.tangents = tensor.rare.tangents  # one dictionary: emptied once


# --- pushing tangents through one operator ---------------------------------------------------------------------------


def push_forward(op: Operator, bound, made, tangents) -> list:
    """The tangents of an operator's results: J times the tangents of its inputs.

    Args:
        bound: the operands and attributes of the call.
        made: its results.
        tangents: for each input its tangent, or None.

    Returns:
        A tangent of the shape and dtype of each result; None for results without a derivative.
    """
    rule = _rule(op, bound)
    pushed = rule(op, bound, made, tangents)
    if not isinstance(pushed, (list, tuple)):
        pushed = [pushed]
    names = op.outputs or [None] * len(made)
    kept = iter(pushed)
    wanted = [None if name in op.constant else next(kept, None) for name in names]
    return [
        None if t is None or r._array.dtype.kind not in "fcV" else _fitted(t, r)
        for t, r in zip(wanted, made, strict=True)
    ]


def _rule(op: Operator, bound):
    """How tangents pass an operator, by what its declaration says."""
    if op.jvp is not None:
        return _by_joint_formula
    if op.jvp_formulas:
        return _by_formulas
    if op.linear:
        return _each_linear if op.linear == "each" else _linear
    if op.elementwise and (op.holomorphic or not _complex(op, bound)):
        return _diagonal
    return _transposed


def _complex(op: Operator, bound) -> bool:
    return any(
        isinstance(v, Tensor) and v._array.dtype.kind == "c"
        for p, v in zip(op.parameters, bound, strict=True)
        if p.kind == "array"
    )


def _fitted(tangent: Tensor, result: Tensor) -> Tensor:
    """A tangent in the shape and dtype of its result."""
    if tangent._array.dtype != result._array.dtype:
        if tangent.is_complex() and not result.is_complex():
            tangent = tangent.real
        tangent = tangent.to(result.dtype)
    if tangent._array.shape != result._array.shape:
        tangent = F.clone(tangent.expand(result.shape))
    return tangent


def _values(op: Operator, bound, made) -> dict:
    """What formulas may name, on tensors: operands in the compute dtype, results, attributes in canonical form, facts."""
    common = op.compute_dtype(bound)
    raw = [array_of(p.kind, v, common) for p, v in zip(op.parameters, bound, strict=True)]
    if op.canonical is not None:
        raw = op.canonicalised(raw)
    values: dict = dict(zip(op.outputs or (), made, strict=False))
    for p, value, array in zip(op.parameters, bound, raw, strict=True):
        if p.kind == "attribute":
            values[p.name] = array
            continue
        many = p.kind in ("arrays", "indices")
        values[f"{p.name}_shape"] = tuple(np.shape(a) for a in array) if many else np.shape(array)
        values[f"{p.name}_dtype"] = None if array is None else tuple(a.dtype for a in array) if many else array.dtype
        if many:
            values[p.name] = [_in_dtype(v, common) for v in value]
        else:
            values[p.name] = _in_dtype(value, common) if p.kind == "array" else value
    return values


def _in_dtype(value, common):
    """An operand as formulas see it: in the compute dtype; a Python number for a Number."""
    if value.__class__ is Number:
        return value._array
    if value is None or common is None or value._array.dtype == common:
        return value
    return value.to(dtype_of(common))


def _sum(parts) -> Tensor:
    """The sum of the contributions of several inputs."""
    total, *rest = parts
    for part in rest:
        total = total + part
    return total


def _arguments(formula, values: dict) -> list:
    return [values[name] for name in formula_arguments(formula)]


def _by_joint_formula(op: Operator, bound, made, tangents):
    values = _values(op, bound, made)
    common = op.compute_dtype(bound)
    values["tangents"] = [
        [_in_dtype(t, common) for t in each] if isinstance(each, list) else _in_dtype(each, common) for each in tangents
    ]
    return op.jvp(F, *_arguments(op.jvp, values))


def _by_formulas(op: Operator, bound, made, tangents):
    values, common = _values(op, bound, made), op.compute_dtype(bound)
    parts = []
    for p, tangent in zip(op.inputs, tangents, strict=True):
        if tangent is not None:
            values["tangent"] = (
                [_in_dtype(t, common) for t in tangent] if isinstance(tangent, list) else _in_dtype(tangent, common)
            )
            formula = op.jvp_formulas[p.name]
            parts.append(formula(F, *_arguments(formula, values)))
    return _sum(parts)


def _replaced(op: Operator, bound, new: dict):
    """Call the operator with some operands replaced."""
    return general(op, [new.get(p.name, v) for p, v in zip(op.parameters, bound, strict=True)])


def _zero(value):
    """No tangent, as an operand."""
    if value is None:
        return None
    return 0 if value.__class__ is Number else F.zeros_as(value)


def _linear(op: Operator, bound, made, tangents):
    values = {p.name: v for p, v in zip(op.parameters, bound, strict=True)}
    new: dict = {}
    for p, tangent in zip(op.inputs, tangents, strict=True):
        value = values[p.name]
        if p.kind == "arrays":
            each = tangent or [None] * len(value)
            new[p.name] = [_zero(v) if t is None else t for t, v in zip(each, value, strict=True)]
        else:
            new[p.name] = _zero(value) if tangent is None else tangent
    return _replaced(op, bound, new)


def _each_linear(op: Operator, bound, made, tangents):
    return _sum(
        [_replaced(op, bound, {p.name: t}) for p, t in zip(op.inputs, tangents, strict=True) if t is not None]
    )


def _diagonal(op: Operator, bound, made, tangents):
    values, common = _values(op, bound, made), op.compute_dtype(bound)
    parts = []
    for position, (p, tangent) in enumerate(zip(op.inputs, tangents, strict=True)):
        if tangent is None:
            continue
        values["grad"] = _in_dtype(tangent, common)
        if op.joint is not None:
            values["needs"] = tuple(k == position for k in range(len(op.inputs)))
            parts.append(op.joint(F, *_arguments(op.joint, values))[position])
        else:
            formula: Any = op.formulas[p.name]
            parts.append(formula(F, *_arguments(formula, values)))
    parts = [part for part in parts if part is not None]
    return _sum(parts) if parts else F.zeros_as(made[0])


def _transposed(op: Operator, bound, made, tangents):
    """The reverse formula, transposed: d/du of (J^H u) is J."""
    recorded = modes.grad_enabled and not modes.inference
    flat = [t for each in tangents for t in (each if isinstance(each, list) else [each])]
    with recording():
        inputs: list = []  # an alias of each operand that has a tangent
        again, position = [], 0
        for p, value in zip(op.parameters, bound, strict=True):
            if p not in op.inputs:
                again.append(value)
                continue
            each = value if p.kind == "arrays" else [value]
            taken = [marked(v) if flat[position + k] is not None else v for k, v in enumerate(each)]
            inputs += [t if flat[position + k] is not None else None for k, t in enumerate(taken)]
            position += len(each)
            again.append(taken if p.kind == "arrays" else taken[0])
        results = general(op, again)
        results = list(results) if op.outputs is None or op.results else [results]
        names = op.outputs or [None] * len(results)
        chosen = [r for r, name in zip(results, names, strict=True) if name not in op.constant]
        pushed = _adjoint(chosen, [i for i in inputs if i is not None], [t for t in flat if t is not None])
        history = recorded and any(v._requires_grad for v in (*_tensors(bound), *(t for t in flat if t is not None)))
    return [p if history else without_history(p) for p in pushed]


def _tensors(bound):
    for value in bound:
        for v in value if isinstance(value, list) else [value]:
            if isinstance(v, Tensor):
                yield v


def _adjoint(results, inputs, tangents) -> list:
    """J times tangents, from a graph that leads from results to inputs."""
    moving = [r for r in results if r._requires_grad]
    covectors = [F.zeros_as(r).requires_grad_() for r in moving]
    pulled = grad(moving, inputs, covectors, create_graph=True, allow_unused=True) if moving else ()
    pairs = [(g, t) for g, t in zip(pulled, tangents, strict=False) if g is not None and g._requires_grad]
    pushed: Any = [None] * len(moving)
    if pairs:
        pulled, vectors = zip(*pairs, strict=True)
        vectors = [v if v.dtype is g.dtype else v.to(g.dtype) for g, v in zip(pulled, vectors, strict=True)]
        pushed = grad(pulled, covectors, vectors, create_graph=True, allow_unused=True)
    found = dict(zip(map(id, moving), pushed, strict=True))
    return [F.zeros_as(r) if found.get(id(r)) is None else found[id(r)] for r in results]
