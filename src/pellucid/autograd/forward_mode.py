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
from contextlib import nullcontext
from typing import Any

import numpy as np

from pellucid.autograd import declaration
from pellucid.autograd.batching import marked
from pellucid.autograd.call import called, inplace
from pellucid.autograd.declaration import Operator, array_of, formula_arguments
from pellucid.autograd.differentiate import grad
from pellucid.autograd.grad_mode import set_grad_enabled
from pellucid.autograd.saved import _before_write
from pellucid.autograd.transforms import Level, below
from pellucid.autograd.views import CopySlices, refresh
from pellucid.core.dtype import dtype_of
from pellucid.core.modes import modes
from pellucid.core.tensor import Number, Tensor, storage_of, without_history, wrap

__all__ = ["DualLevel", "check_tangent", "fence", "forward_base", "laid_out_like", "push_forward", "rule_name"]

F = declaration.tensors


class Fence:
    """The last step to a view that is none as far as tangents are concerned: `make_dual` and `unpack_dual` give such.

    `ground` stands for that view where further views ask for their base: it has its values and its tangents, no history.
    """

    __slots__ = ("ground", "step")

    def __init__(self, step, ground: Tensor):
        self.step, self.ground = step, ground

    def __call__(self, base: Tensor) -> Tensor:
        return self.step(base)


def fence(view: Tensor) -> Tensor:
    """Let a view have tangents of its own: it does not ask its base for one, nor give one to it."""
    if view._view is not None:
        ground = view._bare()
        if view.rare.tangents is None:
            view.rare.tangents = {}
        ground.rare.tangents = view.rare.tangents  # one dictionary
        *steps, last = view._view.steps
        view._view.steps = (*steps, last._replace(on_tensor=Fence(last.on_tensor, ground)))
    return view


def forward_base(tensor: Tensor) -> tuple[Tensor, tuple]:
    """The tensor of whose tangent a view's is a view, and the steps from there. What is no view is its own base."""
    view = tensor._view
    if view is None:
        return tensor, ()
    for number in range(len(view.steps), 0, -1):
        found = view.steps[number - 1].on_tensor
        if isinstance(found, Fence):
            return found.ground, view.steps[number:]
    return view.base, view.steps


class DualLevel(Level):
    """One level of forward mode. Tangents live with their tensors (`rare.tangents`) and end with the level."""

    def __init__(self):
        self.carriers: list[weakref.ref] = []
        self.sweep_at = 1000  # so many carriers are looked through for dead ones

    def tangent(self, tensor) -> Tensor | None:
        """The tangent of an operand at this level. A view without one of its own has a view of its base's."""
        if not isinstance(tensor, Tensor):
            return None
        tangents = None if tensor._rare is None else tensor._rare.tangents
        found = None if tangents is None else tangents.get(self)
        if found is None and tensor._view is not None:
            base, steps = forward_base(tensor)
            found = self.tangent(base) if steps else None
            if found is not None:
                found = self._taken(found, steps)
                self.attach(tensor, found)
        return found

    def _taken(self, tangent: Tensor, steps) -> Tensor:
        with below(self) if self in modes.transforms else nullcontext():
            for step in steps:
                tangent = step.on_tensor(tangent)
        return tangent

    def attach(self, tensor: Tensor, tangent: Tensor) -> None:
        """Give a tensor a tangent."""
        if tensor.rare.tangents is None:
            tensor.rare.tangents = {}
        tensor.rare.tangents[self] = tangent
        self.watch(tensor)

    def watch(self, tensor: Tensor) -> None:
        """Remember a tensor that has a tangent."""
        if len(self.carriers) >= self.sweep_at:
            self.carriers = [reference for reference in self.carriers if reference() is not None]
            self.sweep_at = max(1000, 2 * len(self.carriers))
        self.carriers.append(weakref.ref(tensor))

    def write(self, tensor: Tensor, tangent: Tensor) -> None:
        """After an in-place operation: write to the tangent of what was written to. To be called below the level.

        A view whose base has no tangent yet gives it one of zeros, of which other views then see their part.
        """
        own = self.tangent(tensor)
        if own is None:
            base, steps = forward_base(tensor)
            if not steps:
                self.attach(tensor, laid_out_like(tensor, F.clone(tangent.to(tensor.dtype))))
                return
            self.attach(base, _zeros(base, tangent))
            own = self.tangent(tensor)
            assert own is not None
        own.copy_(tangent)

    def close(self) -> None:
        """Take all tangents away."""
        for reference in self.carriers:
            tensor = reference()
            if tensor is not None and tensor._rare is not None and tensor._rare.tangents is not None:
                tensor._rare.tangents.pop(self, None)
        self.carriers.clear()

    def _tangents(self, op: Operator, bound: list) -> list:
        """The tangent of each input, None where there is none; a list of them for an operand that is a list."""
        found = []
        for p, value in zip(op.parameters, bound, strict=True):
            if p in op.inputs:
                each: Any = [self.tangent(v) for v in value] if p.kind == "arrays" else self.tangent(value)
                found.append(None if p.kind == "arrays" and not any(t is not None for t in each) else each)
        return found

    def call(self, op: Operator, values, out):
        """An operator on tensors that may carry tangents."""
        bound = op.bind(values)
        tangents = self._tangents(op, bound) if op.differentiable else []
        moving = any(t is not None for t in tangents)
        targets: Any = () if out is None else out if isinstance(out, (tuple, list)) else (out,)
        if out is not None and (moving or any(self.tangent(t) is not None for t in targets)):
            raise NotImplementedError(
                f"Trying to use forward AD with {op.name}_out that does not support it because it is an out= function. Call "
                f"{op.name}() without out=."
            )
        with below(self):
            result = called(op, values, out)
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
        own = self.tangent(tensor)
        tangents = self._tangents(op, bound) if op.differentiable else []
        with below(self):
            if not any(t is not None for t in tangents):
                inplace(op, tensor, values)
                if own is not None:  # all of it was overwritten by what does not move
                    own.zero_()
                return tensor
            if tensor._view is not None:
                refresh(tensor)
            before = _before_write(tensor)
            bound = [before if v is tensor else v for v in bound]
            if own is not None:  # what formulas save of it must not be written to
                kept = F.clone(own)
                tangents = [kept if t is own else t for t in tangents]
            made = called(op, bound)
            pushed = push_forward(op, bound, [made], tangents)[0]
            inplace(op, tensor, values)
            if pushed is not None and tensor._array.dtype.kind in "fcV":
                self.write(tensor, pushed)
        _save_with_tangents(op, [tensor], self)
        return tensor

    def applied(self, cls, args):
        """A custom Function: its `jvp` makes the tangents of its results."""
        from pellucid.autograd.function_forward import apply_forward_mode

        return apply_forward_mode(self, cls, args)


def _save_with_tangents(op: Operator, made, level: DualLevel) -> None:
    """A result that the node of the call saved must carry its tangent into formulas: replace the bare array."""
    view = made[0]._view
    for edge in (made[0]._edge, None if view is None else view.base._edge):
        node: Any = None if edge is None else edge[0]
        node = node.function if isinstance(node, CopySlices) else node
        if getattr(type(node), "operator", None) is op:
            for name, tensor in zip(op.outputs or (), made, strict=False):
                if isinstance(getattr(node, name, None), (np.ndarray, Tensor)):
                    alias = tensor._alias()  # with the same dictionary of tangents
                    setattr(node, name, alias)
                    level.watch(alias)
            return


# --- where tangents lie in memory ------------------------------------------------------------------------------------


def laid_out_like(tensor: Tensor, tangent: Tensor, whole: bool = False) -> Tensor:
    """A tangent in memory as its tensor is, so that every view of one can be taken of the other; copied where it is not.

    Args:
        tensor: what the tangent belongs to, of the same shape.
        whole: the memory around the tensor counts as well, which `as_strided` can reach.
    """
    array, other = tensor._array, tangent._array
    if _same_strides(array, other) and not (whole and array.size and not tensor._wraps and _place(array) != _place(other)):
        return tangent
    if tensor._wraps or tangent._wraps:
        return F.clone(tangent)
    if 0 in array.strides and array.size > 1:  # expanded: elements that share memory cannot be written one by one
        return tangent
    made = wrap(_empty_around(array, other.dtype))
    return made.copy_(tangent)


def _same_strides(a: np.ndarray, b: np.ndarray) -> bool:
    """Whether two arrays of one shape are laid out alike; dimensions of size 1 do not count, nor empty arrays."""
    steps = zip(a.shape, a.strides, b.strides, strict=True)
    return not a.size or all(n == 1 or s // a.itemsize == t // b.itemsize for n, s, t in steps)


def _place(array: np.ndarray) -> tuple[int, int]:
    """How many elements stand before an array in its memory, and in all of it."""
    storage = storage_of(array)
    return (array.ctypes.data - storage.ctypes.data) // array.itemsize, storage.nbytes // array.itemsize


def _empty_around(array: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Zeros with the strides of an array, at the same place in memory of the same size."""
    if not array.size:
        return np.zeros(array.shape, dtype)
    before, count = _place(array)
    strides = tuple(s // array.itemsize * dtype.itemsize for s in array.strides)
    return np.ndarray(array.shape, dtype, np.zeros(count, dtype), before * dtype.itemsize, strides)


def _zeros(base: Tensor, tangent: Tensor) -> Tensor:
    """A tangent of zeros for a tensor of which a part gets the given one."""
    if base._wraps or tangent._wraps:  # with all batches that the tangent has
        return F.clone(F.expand(F.zeros_as(tangent).sum().to(base.dtype), base.shape))
    return wrap(_empty_around(base._array, base._array.dtype))


def check_tangent(level: DualLevel, tensor: Tensor, tangent: Tensor) -> None:
    """RuntimeError for a tangent of another size than its tensor, and for one that carries a tangent itself."""
    if level.tangent(tangent) is not None:
        raise RuntimeError(
            "Setting a forward grad that itself has a forward gradient at the same level 0 is not supported. Give its "
            "primal: unpack_dual(tangent).primal"
        )
    if tensor._array.shape != tangent._array.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of the original Tensor, this is not "
            f"supported. Tensor is of size {list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )


# --- pushing tangents through one operator ---------------------------------------------------------------------------


def push_forward(op: Operator, bound, made, tangents) -> list:
    """The tangents of an operator's results: J times the tangents of its inputs.

    Args:
        bound: the operands and attributes of the call.
        made: its results.
        tangents: for each input its tangent, or None.

    Returns:
        A tangent of the shape and dtype of each result; None for results without a derivative.

    Raises:
        NotImplementedError: the operator has no derivative with respect to an input that has a tangent.
    """
    rule = _rule(op, bound)
    try:
        pushed = rule(op, bound, made, tangents)
    except NotImplementedError as error:
        raise NotImplementedError(
            f"Trying to use forward AD with {op.name} that does not support it because it has not been implemented yet: "
            f"{error}"
        ) from error
    if not isinstance(pushed, (list, tuple)):
        pushed = [pushed]
    names = op.outputs or [None] * len(made)
    kept = iter(pushed)
    wanted = [None if name in op.constant else next(kept, None) for name in names]
    shares = op.view or op.multi_view
    # a formula may hand on the tangent of an operand, which an in-place operation on the result must not write to
    given = [t for each in tangents for t in (each if isinstance(each, list) else [each])]
    own = [F.clone(t) if t is not None and not shares and any(t is g for g in given) else t for t in wanted]
    return [
        None if t is None or r._array.dtype.kind not in "fcV" else _fitted(t, r, shares)
        for t, r in zip(own, made, strict=True)
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


def rule_name(op: Operator) -> str:
    """How real tangents pass an operator, in a word: formula, linear, elementwise or transposed."""
    if op.jvp is not None or op.jvp_formulas:
        return "formula"
    return "linear" if op.linear else "elementwise" if op.elementwise else "transposed"


def _complex(op: Operator, bound) -> bool:
    return any(
        isinstance(v, Tensor) and v._array.dtype.kind == "c"
        for p, v in zip(op.parameters, bound, strict=True)
        if p.kind == "array"
    )


def _fitted(tangent: Tensor, result: Tensor, shares: bool) -> Tensor:
    """A tangent in the shape and dtype of its result, and laid out as it is unless both are views."""
    if tangent._array.dtype != result._array.dtype:
        if tangent.is_complex() and not result.is_complex():
            tangent = tangent.real
        tangent = tangent.to(result.dtype)
    if tangent._array.shape != result._array.shape:
        tangent = F.clone(tangent.expand(result.shape))
    return tangent if shares else laid_out_like(result, tangent)


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
    return called(op, [new.get(p.name, v) for p, v in zip(op.parameters, bound, strict=True)])


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
    with set_grad_enabled(True):
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
        results = called(op, again)
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
