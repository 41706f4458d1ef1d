"""What a custom Function's `forward` returned, tied to its node: dirty inputs, views, saved values."""

from __future__ import annotations

import warnings
from typing import Any

from pellucid.autograd.function_context import FunctionCtx, Saved
from pellucid.autograd.node import Node, edge_to
from pellucid.autograd.saved import Packed, _pack, active_hooks
from pellucid.autograd.views import Kind, Step, View, check_inplace, rebase, take_view, written
from pellucid.core.modes import modes
from pellucid.core.tensor import Tensor, counter, wrap

__all__ = ["share_tangents", "wrap_outputs"]


def wrap_outputs(ctx: FunctionCtx, outputs: list, args, recorded: bool) -> list:
    """Tie what forward returned to the node."""
    inputs = {id(a): a for a in args if isinstance(a, Tensor)}
    dirty = {id(t) for t in ctx.dirty}
    constant = {id(t) for t in ctx.non_differentiable}
    _check_dirty(ctx, inputs, {id(o) for o in outputs})
    if recorded:
        ctx.outputs = len(outputs)
        skipped = () if ctx._materialize_non_diff_grads else constant
        ctx.facts = [
            (o._array.shape, o._array.dtype) if isinstance(o, Tensor) and id(o) not in skipped else None for o in outputs
        ]
    made: dict[int, Tensor] = {}
    wrapped = []
    for number, out in enumerate(outputs):
        if not isinstance(out, Tensor):
            wrapped.append(out)
            continue
        if id(out) not in made:
            made[id(out)] = _wrap_output(ctx, out, number, inputs, dirty, constant, recorded)
        wrapped.append(made[id(out)])
    if recorded:
        _save(ctx, outputs, wrapped)
    _forget_marks(ctx, outputs)
    return wrapped


def _forget_marks(ctx: FunctionCtx, outputs: list) -> None:
    """Note which outputs have no derivative, and let go of the marked tensors, which may lead back to the node."""
    constant = {id(t) for t in ctx.non_differentiable}
    ctx.constant = tuple([i for i, o in enumerate(outputs) if id(o) in constant])
    ctx.dirty = ctx.non_differentiable = ()


def _check_dirty(ctx: FunctionCtx, inputs: dict, returned: set) -> None:
    """What was marked as dirty must be an input and must be returned."""
    for t in ctx.dirty:
        if id(t) not in inputs:
            text = (
                f"{ctx.name()}: mark_dirty() received a tensor that was not an input. Only input Tensors that have been "
                "mutated should be passed to ctx.mark_dirty()."
            )
            if t._view is not None:
                raise RuntimeError(text)
            warnings.warn(text, stacklevel=5)
        elif id(t) not in returned:
            raise RuntimeError(
                "Some elements marked as dirty during the forward method were not returned as output. The inputs that are "
                "modified inplace must all be outputs of the Function."
            )


def _wrap_output(ctx, out: Tensor, number: int, inputs: dict, dirty: set, constant: set, recorded: bool) -> Tensor:
    is_input, changed = id(out) in inputs, id(out) in dirty and id(out) in inputs
    differentiable = recorded and id(out) not in constant and out._array.dtype.kind in "fcV"
    if changed:
        if recorded:
            check_inplace(out, True)
        written(out, ctx.name())
        if differentiable:
            if out._view is not None:
                rebase(out, _single(ctx, number))
            else:
                out._edge, out._requires_grad = edge_to(ctx, number), True
        return out
    if is_input:
        alias = out._bare()
        take_view(alias, out, _identity_step(), ctx.name(), Kind.FUNCTION)
        out = alias
    elif out._view is not None and out._edge is None:
        _claim_view(ctx, out._view, differentiable)
    if differentiable:
        out._edge, out._requires_grad = edge_to(ctx, number), True
        if out._view is not None:
            out._view.version = out._counter.value
    elif not is_input:
        out._edge, out._requires_grad = None, False
    return out


def _claim_view(ctx: FunctionCtx, view: View, differentiable: bool) -> None:
    """Decide whether a view that forward made may be written to: only the user can say that its gradient is a view's."""
    if ctx._is_pure_view:
        view.kind = Kind.PLAIN
    elif differentiable or modes.grad_enabled:
        view.kind, view.operation = Kind.FUNCTION, ctx.name()


def _single(ctx, number: int) -> Node:
    """One output of a Function as a node of its own, for the history of a view it wrote to."""
    return _OneOutput(ctx, number)


class _OneOutput(Node):
    """Stands for one output of a node with several, where a node with one is expected."""

    __slots__ = ("node", "number")

    def __init__(self, node: FunctionCtx, number: int):
        self.node, self.number = node, number
        self.edges, self.sequence = node.edges, node.sequence
        self.adjust = self.extra = None
        self.code, self.lasti = node.code, node.lasti

    def apply(self, grad, edges, keep):
        """Run the whole node with this one gradient."""
        return self.node.apply(self._spread(grad), edges, keep)

    def apply_tensors(self, grad, edges, keep):
        """Run the whole node with this one gradient."""
        return self.node.apply_tensors(self._spread(grad), edges, keep)

    def _spread(self, grad):
        grads = [None] * self.node.outputs
        grads[self.number] = grad
        return grads

    def name(self) -> str:
        """The name of the Function's node."""
        return self.node.name()


def _identity_step() -> Step:
    return Step(lambda t: t.view_as(t), lambda a: a)


def _save(ctx: FunctionCtx, outputs: list, wrapped: list) -> None:
    """Keep what save_for_backward was given."""
    numbers = {id(o): i for i, o in enumerate(outputs) if isinstance(o, Tensor)}
    numbers |= {id(o): i for i, o in enumerate(wrapped) if isinstance(o, Tensor)}
    ctx.saved_values = []
    to_save, ctx.to_save = ctx.to_save, ()
    _break_cycles(ctx)
    hooks = active_hooks()
    for t in to_save:
        if t is None or not isinstance(t, Tensor):
            if t is not None:
                raise TypeError(
                    f"save_for_backward can only save variables, but argument is of type {type(t).__name__}"
                )
            ctx.saved_values.append(None)
            continue
        number = numbers.get(id(t))
        own = number is not None and wrapped[number]._edge is not None and wrapped[number]._edge[0] is ctx
        count = counter(t)
        value: Any = _without_node(t) if own else t
        if hooks is not None:
            value = _pack(wrap(t._array) if own else t, hooks, own)
        ctx.saved_values.append(Saved(value, number if own else None, t._edge, count, count.value))


def _break_cycles(ctx: FunctionCtx) -> None:
    """Keep outputs that were set on ctx without the tensors, which lead back to it.

    This comes before anything is given to pack hooks: one that raises must leave no cycle behind.
    """
    for name, value in list(ctx.__dict__.items()):
        if isinstance(value, Tensor) and value._edge is not None and value._edge[0] is ctx:
            del ctx.__dict__[name]
            ctx.keep_outputs[name] = (_without_node(value), value._edge[1], counter(value))


def _without_node(output: Tensor):
    """The values of an output, which itself would lead back to the node."""
    return output._alias() if output._wraps else output._array


def share_tangents(ctx: FunctionCtx, outputs) -> list[Tensor]:
    """Let what the node keeps of its outputs carry their tangents; returns what carries them now."""
    kept = []
    for saved in ctx.saved_values or ():
        if isinstance(saved, Saved) and saved.number is not None and not isinstance(saved.value, Packed):
            saved.value = outputs[saved.number]._alias()
            kept.append(saved.value)
    for name, (_, number, count) in ctx.keep_outputs.items():
        alias = outputs[number]._alias()
        ctx.keep_outputs[name] = (alias, number, count)
        kept.append(alias)
    return kept
