"""Batching: one call of an operator on many examples at once, without the program seeing the batch.

Inside a `BatchLevel` a `BatchedTensor` stands for one example: its shape and dtype are an example's, its values are those
of all examples, along dimension 0 of the tensor it wraps. An operator's call on it becomes a call on the wrapped tensors,
one level further out. How follows from the declaration, in this order:

- `batch(F, batched, ...)`: the operands as wrapped, the names of those that have a batch in front; returns results
  that all have it;
- `batching="shift"`, or one operand and attributes that name dimensions, parts or whole shapes: these move up by one;
- `batching="leading"`: an operator on trailing dimensions, for which any dimensions may stand in front;
- `batching="fold"`: the batch is merged into the operands' own first dimension;
- an elementwise operator broadcasts by itself;
- otherwise a loop over the examples, which warns once.

Histories and tangents made inside the level belong to the wrappers, those made outside to what they wrap.
"""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from pellucid.autograd import declaration
from pellucid.autograd.call import called, finish, flat, inplace, note_views, record, seal_inplace
from pellucid.autograd.declaration import Operator, formula_arguments
from pellucid.autograd.saved import _before_write
from pellucid.autograd.transforms import Level, below, opened
from pellucid.autograd.views import check_inplace, forget_history, rebase, refresh, written
from pellucid.core.dtype import category, dtype_of
from pellucid.core.errors import shape_text, type_name
from pellucid.core.modes import modes
from pellucid.core.tensor import Number, Tensor

__all__ = [
    "BatchLevel",
    "BatchedTensor",
    "batch_level",
    "batch_of",
    "lifted",
    "marked",
    "rule_name",
    "vmap_over",
    "with_batch",
]

F = declaration.tensors
DIMENSIONS = ("dim", "dims", "dim0", "dim1", "dim2", "dimension")  # attributes that count dimensions
SHAPES = ("input_shape", "whole_shape")  # ... that are the shape of a result
PLACES = (*DIMENSIONS, "key", "keys")  # ... or are basic indices
FULL = slice(None)


@functools.cache
def _no_value(dtype: np.dtype) -> np.ndarray:
    return np.array(np.nan if dtype.kind in "fcV" else 0).astype(dtype)


def _stand_in(shape: tuple, dtype: np.dtype) -> np.ndarray:
    """An array of an example's shape and dtype, without memory: NaN where there is such a thing."""
    return np.broadcast_to(_no_value(dtype), shape)


def _example_of(array: np.ndarray) -> np.ndarray:
    """What stands for an example where only shape, dtype and strides are asked for: the first one, read-only."""
    if not array.shape[0]:
        return _stand_in(array.shape[1:], array.dtype)
    example = array[0, ...]
    example.flags.writeable = False
    return example


class BatchedTensor(Tensor):
    """One example of a batch. `_array` says shape, dtype and strides only."""

    # _value    the tensor of all examples, or a tensor that is the same for all
    # _batched  whether dimension 0 of `_value` counts the examples
    # _level    the level it belongs to
    __slots__ = ("_batched", "_level", "_value")

    _wraps = True

    def _alias(self) -> Tensor:
        made = batch_of(self._value, self._level, self._batched)
        if self._rare is not None and self._rare.tangents:
            made.rare.tangents = self._rare.tangents
        return made

    def _bare(self) -> Tensor:
        return batch_of(self._value.detach(), self._level, self._batched)

    def _snapshot(self) -> Tensor:
        made = batch_of(F.clone(self._value), self._level, self._batched)
        if self._rare is not None and self._rare.tangents:
            made.rare.tangents = {level: t._snapshot() for level, t in self._rare.tangents.items()}
        return made

    def __repr__(self, *, tensor_contents=None) -> str:
        where = "in dimension 0" if self._batched else "none"
        return f"BatchedTensor(batch {where} of {self._value!r})"

    def __reduce_ex__(self, protocol):
        _refuse(self, "pickling it")

    def __deepcopy__(self, memo):
        _refuse(self, "deepcopy()")


def _refuse(tensor, what: str, *args, **kwargs):
    """A tensor that stands for many examples has no value of its own."""
    raise RuntimeError(
        f"vmap: {what} is not possible on a Tensor that stands for each example of a batch (here of shape "
        f"{tuple(tensor._array.shape)}): its values differ from example to example. Do it outside of vmap, or write it with "
        "tensor operations."
    )


def _refuse_item(self):
    raise RuntimeError(
        "vmap: It looks like you're calling .item() on a Tensor. We don't support vmap over calling .item() on a Tensor: it "
        "has a value for each example. Write it with tensor operations, or move it out of vmap."
    )


def _refuse_condition(self):
    raise RuntimeError(
        "vmap: It looks like you're attempting to use a Tensor in some data-dependent control flow. We don't support that "
        "yet: each example would take its own way. Write it with torch.where."
    )


BatchedTensor.item = _refuse_item
BatchedTensor.__bool__ = _refuse_condition
for _name in ("numpy", "tolist", "__array__", "data_ptr", "__index__", "set_", "resize_", "apply_", "map_", "untyped_storage"):
    setattr(BatchedTensor, _name, functools.partialmethod(_refuse, f"{_name}()"))


def batch_of(value: Tensor, level: BatchLevel, batched: bool = True) -> BatchedTensor:
    """A wrapper around the tensor of all examples (or, not batched, around one that is the same for all)."""
    made = object.__new__(BatchedTensor)
    made._array = _example_of(value._array) if batched else value._array
    made._value, made._batched, made._level = value, batched, level
    made._requires_grad = False
    made._edge = made._grad = made._view = made._counter = made._rare = None
    return made


def vmap_over(function, tensors, randomness: str = "error") -> list:
    """Call a function on each of the examples that dimension 0 of the tensors counts.

    It takes as many tensors and returns a sequence of tensors or None; the results have the examples in dimension 0.
    """
    level = BatchLevel(tensors[0]._array.shape[0], randomness)
    level.takes_any_function = True  # whoever wrote it does not know of the batch
    with opened(level):
        results = function(*[batch_of(t, level) for t in tensors])
    return [None if r is None else with_batch(lifted(r, level), level.size) for r in results]


def batch_level() -> BatchLevel | None:
    """The innermost open level of batching."""
    for level in reversed(modes.transforms):
        if isinstance(level, BatchLevel):
            return level
    return None


def lifted(tensor, level: BatchLevel):
    """A tensor as one of this level; tangents of levels inside it come along. What is one already stays as it is."""
    if not isinstance(tensor, Tensor) or (tensor.__class__ is BatchedTensor and tensor._level is level):
        return tensor
    made = batch_of(tensor, level, False)
    if tensor._rare is not None and tensor._rare.tangents:
        made.rare.tangents = tensor._rare.tangents
    return made


def marked(tensor: Tensor) -> Tensor:
    """The same tensor at a place of its own in the graph: what is computed from it can be told from the rest.

    Inside vmap it is one of the innermost level: histories made there belong to the wrappers.
    """
    level = batch_level()
    alias = F.alias(tensor if level is None else lifted(tensor, level))
    return alias if alias._requires_grad else alias.requires_grad_()


class BatchLevel(Level):
    """One level of batching over `size` examples."""

    takes_any_function = False  # whether a custom Function that says nothing about batches is run on the wrappers

    def __init__(self, size: int, randomness: str = "error"):
        self.size, self.randomness = size, randomness

    def _mine(self, value) -> bool:
        if isinstance(value, (list, tuple)):
            return any(self._mine(v) for v in value)
        return value.__class__ is BatchedTensor and value._level is self

    def _lift(self, op: Operator, bound) -> list:
        return [
            v if p.kind == "attribute" else [lifted(x, self) for x in v] if isinstance(v, list) else lifted(v, self)
            for p, v in zip(op.parameters, bound, strict=True)
        ]

    def draws_apart(self, batched: bool = False) -> bool:
        """Whether a random operation draws numbers for each example; otherwise it draws once, for all of them.

        Args:
            batched: whether what it draws depends on an operand that differs between the examples.

        Raises:
            RuntimeError: this vmap allows no random operations, or was asked for the same numbers although operands differ.
        """
        if self.randomness == "error":
            raise RuntimeError(
                "vmap: called random operation while in randomness error mode. Say with vmap(..., randomness='different') that "
                "each example has numbers of its own, with randomness='same' that all have the same, or draw outside of vmap."
            )
        if batched and self.randomness == "same":
            raise RuntimeError(
                "Vmap does not currently support same randomness with a batched tensor input: what is drawn depends on it. Use "
                "randomness='different', or draw from a distribution that does not depend on the example."
            )
        return self.randomness == "different"

    def _to_draw_from(self, op: Operator, bound) -> list:
        """The operands of a random operator: with a batch each where it is to draw for each example."""
        differ = [self._mine(v) and v._batched for v in bound]
        if not self.draws_apart(any(differ)):
            return bound
        return [
            v if d or p.kind == "attribute" else v + batch_of(F.zeros_as(with_batch(lifted(v, self), self.size)), self)
            for p, v, d in zip(op.parameters, bound, differ, strict=True)
        ]

    def call(self, op: Operator, values, out):
        """An operator on operands of which some may stand for an example."""
        bound = op.bind(values)
        if "generator" in op.attributes:
            bound = self._to_draw_from(op, bound)
        if not self._mine(bound):
            with below(self):
                return called(op, bound, out)
        if out is not None:
            raise RuntimeError(f"vmap: {op.name}() with out= is not supported inside of vmap. Call it without out=.")
        bound = self._lift(op, bound)
        common, raw = _as_used(op, bound)
        made = self._compute(op, bound, raw, common)
        operands = flat(op, bound)
        need = False
        for t in operands:
            if t is not None:
                if t._view is not None:
                    refresh(t)
                need = need or t._requires_grad
        node = None
        if op.differentiable and need and modes.grad_enabled and not modes.inference:
            node = record(op, bound, raw, common, [m._array for m in made], kept=made)
        if op.view or op.multi_view:
            note_views(op, made, bound, raw)
        finish(op, made, node, operands, need)
        if op.outputs is None:
            return tuple(made)
        return op.returns(*made) if op.results else made[0]

    def _compute(self, op: Operator, bound, raw, common) -> list:
        """The results, as wrappers."""
        if not any(map(_any_batched, bound)):  # index lists too
            with below(self):
                results = called(op, [_unwrapped(v) for v in bound])
            batched = False
        else:
            arguments = [r if p.kind == "attribute" else v for p, v, r in zip(op.parameters, bound, raw, strict=True)]
            with below(self):
                results = _rule(op)(self, op, arguments, common)
            batched = True
        many = op.outputs is None or op.results is not None
        each: Any = results if many else [results]
        return [batch_of(r, self, batched) for r in each]

    def inplace(self, op: Operator, tensor: Tensor, values):
        """An in-place operator: the result is written into the tensor of all examples."""
        bound: list = op.bind((tensor, *values))
        if not self._mine(bound):
            with below(self):
                return inplace(op, tensor, values)
        bound = self._lift(op, bound)
        target: Any = bound[0] if not self._mine(tensor) else tensor
        bound[0] = target
        operands = flat(op, bound)
        others = False
        for t in operands[1:]:
            if t is not None:
                if t._view is not None:
                    refresh(t)
                others = others or t._requires_grad
        recorded = check_inplace(target, others and op.differentiable, op.fills)
        common, raw = _as_used(op, bound)
        read = bound
        if modes.grad_enabled and any(map(_has_history, bound)):  # outside, a node may save what is about to be overwritten
            before = batch_of(_before_write(target._value), self, target._batched)
            read = [before if v is target else v for v in bound]
        made = self._compute(op, read, raw, common)[0]
        _check_fits(op, target, made)
        node = None
        if recorded and op.differentiable:
            node = record(op, bound, raw, common, [made._array], inplace=target, kept=[made])
        with below(self):
            target._value.copy_(made._value)
        written(target, f"{op.name}_")
        if node is not None:
            seal_inplace(op, node, target)
            rebase(target, node)
        elif recorded and not op.differentiable and target._requires_grad:
            forget_history(op, target)
        return tensor

    def applied(self, cls, args):
        """A custom Function: its `vmap`, or its other methods on the wrappers."""
        from pellucid.autograd.function_batched import apply_batched

        return apply_batched(self, cls, args)


def _check_fits(op: Operator, target: BatchedTensor, made: BatchedTensor) -> None:
    """Whether a result can be written into a tensor."""
    if made._batched and not target._batched:
        raise RuntimeError(
            f"output with shape {shape_text(target._array)} doesn't match the broadcast shape {shape_text(made._value._array)}: "
            f"vmap: inplace arithmetic(self, *extra_args) is not possible in {op.name}_() because there exists a Tensor `other` in "
            "extra_args that has more elements than `self`: `other` is vmapped over and `self` is not. Use an out-of-place "
            "operator, or make `self` inside of vmap, for example with zeros_like() of a tensor that is vmapped over."
        )
    if made._array.shape != target._array.shape:
        raise RuntimeError(
            f"output with shape {shape_text(target._array)} doesn't match the broadcast shape {shape_text(made._array)}: "
            f"{op.name}_ writes into its first argument, which cannot grow"
        )
    if category(made._array.dtype) > category(target._array.dtype):
        raise RuntimeError(
            f"result type {type_name(made._array.dtype)} can't be cast to the desired output type {type_name(target._array.dtype)}: use the "
            f"out-of-place {op.name}(), or convert the tensor first"
        )


def _as_used(op: Operator, bound):
    """The compute dtype, and the arguments with stand-ins for operands and attributes in canonical form."""
    common = op.compute_dtype(bound)
    raw = []
    for p, value in zip(op.parameters, bound, strict=True):
        raw.append(value if p.kind == "attribute" else _arrays(value, common if p.kind in ("array", "arrays") else None))
    if op.canonical is not None:
        raw = op.canonicalised(raw)
    return common, raw


def _arrays(value, common):
    if value is None:
        return None
    if isinstance(value, list):
        return [_arrays(v, common) for v in value]
    array = value._array
    if common is None or (value.__class__ is not Number and array.dtype == common):
        return array
    return np.asarray(array, common) if value.__class__ is Number else _stand_in(array.shape, common)


def _unwrapped(value):
    """What wrappers hold, in a list or alone."""
    if isinstance(value, list):
        return [_unwrapped(v) for v in value]
    return value._value if value.__class__ is BatchedTensor else value


# --- rules -----------------------------------------------------------------------------------------------------------
# A rule gets the wrapped operands, and attributes in canonical form; it returns tensors with the batch in dimension 0.


def _rule(op: Operator):
    """How an operator is called on a batch, by what its declaration says."""
    if op.batch is not None:
        return _by_declaration
    if op.batching is not None:
        return RULES[op.batching]
    arrays = [p for p in op.operands if p.kind != "attribute"]
    if len(arrays) == 1 and arrays[0].kind == "array" and any(a in PLACES for a in op.attributes):
        return _shift
    return _elementwise if op.elementwise else _loop


def rule_name(op: Operator) -> str:
    """The rule in a word: formula, shift, leading, fold, elementwise or loop."""
    return "formula" if op.batch is not None else _rule(op).__name__.strip("_")


def _is_batched(value) -> bool:
    return value.__class__ is BatchedTensor and value._batched


def with_batch(value, size: int):
    """The tensor behind a wrapper, with a batch in front: repeated, without copying, where it has none."""
    if value.__class__ is not BatchedTensor:
        return value
    if value._batched:
        return value._value
    return F.expand(F.unsqueeze(value._value, 0), (size, *value._array.shape))


def _by_declaration(level, op: Operator, arguments, common):
    batched = {p.name for p, v in zip(op.parameters, arguments, strict=True) if _any_batched(v)}
    values: dict = {p.name: _unwrapped(v) for p, v in zip(op.parameters, arguments, strict=True)}
    values |= {"batched": batched, "size_of_batch": level.size}
    for p, v in zip(op.parameters, arguments, strict=True):
        if isinstance(v, list) and p.name in batched:
            values[p.name] = [with_batch(x, level.size) for x in v]
    return op.batch(F, *[values[name] for name in formula_arguments(op.batch)])


def _has_history(value) -> bool:
    """Whether what a wrapper, or a list of them, stands for requires grad outside of its level."""
    if isinstance(value, list):
        return any(map(_has_history, value))
    if value.__class__ is not BatchedTensor:
        return False
    return value._value._requires_grad or _has_history(value._value)


def _any_batched(value) -> bool:
    return any(map(_is_batched, value)) if isinstance(value, list) else _is_batched(value)


def _elementwise(level, op: Operator, arguments, common):
    ranks = [v._array.ndim for p, v in zip(op.parameters, arguments, strict=True) if _is_operand(p, v)]
    rank = max(ranks)
    return called(
        op,
        [
            _aligned(p, v, rank, common) if _is_operand(p, v) else v
            for p, v in zip(op.parameters, arguments, strict=True)
        ],
    )


def _is_operand(p, value) -> bool:
    return p.kind in ("array", "index") and value.__class__ is BatchedTensor


def _aligned(p, value: BatchedTensor, rank: int, common) -> Tensor:
    """An operand whose dimensions after the batch line up with those of an example of the given rank."""
    tensor = value._value
    if p.kind == "array" and common is not None and tensor._array.dtype != common:
        tensor = tensor.to(dtype_of(common))  # a batch of numbers is no number: promotion would see the difference
    missing = rank - value._array.ndim
    if value._batched and missing:
        shape = tensor._array.shape
        tensor = F.view(tensor, (shape[0], *(1,) * missing, *shape[1:]))
    return tensor


def _shifted(name: str, value, size: int):
    """An attribute as the tensor of all examples needs it."""
    if value is None or name not in (*PLACES, *SHAPES):
        return value
    if name in SHAPES:
        return (size, *value)
    if name == "key":
        return (FULL, *value)
    if name == "keys":
        return tuple((FULL, *key) for key in value)
    return _next(value) if isinstance(value, int) else tuple(map(_next, value))


def _next(dim: int) -> int:
    return dim + 1 if dim >= 0 else dim


def _shift(level, op: Operator, arguments, common):
    operands = [v for p, v in zip(op.parameters, arguments, strict=True) if p.kind in ("array", "index") and v is not None]
    numbers = all(v.__class__ is BatchedTensor and not v._array.ndim for v in operands)
    scalar = numbers and not op.view and not any(a in SHAPES for a in op.attributes)  # dimension 0 of a number is not there
    given = []
    for p, v in zip(op.parameters, arguments, strict=True):
        if p.kind == "attribute":
            given.append((1,) if scalar and v == () and p.name in DIMENSIONS else _shifted(p.name, v, level.size))
        elif isinstance(v, list):
            given.append([with_batch(x, level.size) for x in v])
        else:
            value = with_batch(v, level.size)
            given.append(F.unsqueeze(value, 1) if scalar and value is not None else value)
    results = called(op, given)
    return _each(results, _as_number) if scalar else results


def _as_number(result):
    """A batch of numbers that were given a dimension."""
    return F.squeeze_one(result, 1) if result._array.ndim == 2 and result._array.shape[1] == 1 else result


def _each(results, function):
    """The one result, or each of several, changed."""
    return function(results) if isinstance(results, Tensor) else [function(r) for r in results]


def _leading(level, op: Operator, arguments, common):
    return called(op, [with_batch(v, level.size) for v in arguments])


def _fold(level, op: Operator, arguments, common):
    """For operators whose operands have a dimension of independent entries in front: the batch joins it."""
    given, first = [], 0
    for p, v in zip(op.parameters, arguments, strict=True):
        if p.kind == "attribute" or v is None:
            given.append(v)
            continue
        value = with_batch(v, level.size)
        first = value._array.shape[1]
        given.append(F.reshape_to(value, (level.size * first, *value._array.shape[2:])))
    return _each(called(op, given), lambda r: F.reshape_to(r, (level.size, first, *r._array.shape[1:])))


_warned: set = set()


def _loop(level, op: Operator, arguments, common):
    """Call the operator on one example after the other."""
    if op.name not in _warned:
        _warned.add(op.name)
        warnings.warn(
            "There is a performance drop because we have not yet implemented the batching rule for "
            f"{op.name}: vmap calls it once for each example.",
            UserWarning,
            stacklevel=2,
        )
    rows = [called(op, [_example(v, i) for v in arguments]) for i in range(level.size)]
    if not rows:
        raise RuntimeError(f"vmap: {op.name} has no batching rule, and cannot be looped over a batch of size 0")
    if isinstance(rows[0], Tensor):
        return F.stack(rows, 0)
    return [F.stack(list(column), 0) for column in zip(*rows, strict=True)]


def _example(value, i: int):
    if isinstance(value, list):
        return [_example(v, i) for v in value]
    if value.__class__ is not BatchedTensor:
        return value
    return F.select(value._value, 0, i) if value._batched else value._value


RULES = {"shift": _shift, "leading": _leading, "fold": _fold, "elementwise": _elementwise, "loop": _loop}
