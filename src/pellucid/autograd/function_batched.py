"""Custom Functions inside `vmap`: their `vmap` staticmethod, or their other methods on tensors that hide the batch.

With `generate_vmap_rule` the Function becomes another one further out, whose forward, backward and jvp are those of the
Function, each called on a batch.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from pellucid.autograd import declaration
from pellucid.autograd.batching import BatchedTensor, BatchLevel, batch_of, with_batch
from pellucid.autograd.function import Function, FunctionCtx, new_context, recorded_call
from pellucid.autograd.function_context import Recording
from pellucid.autograd.function_outputs import wrap_outputs
from pellucid.autograd.hooks import user_code
from pellucid.autograd.transforms import below, opened
from pellucid.core.modes import modes
from pellucid.core.tensor import Tensor

__all__ = ["VmapInfo", "applied_further_out", "apply_batched"]

F = declaration.tensors


class VmapInfo(NamedTuple):
    """What the `vmap` staticmethod of a Function is told about the batch."""

    batch_size: int
    randomness: str


def applied_further_out(cls, args) -> tuple[Any, FunctionCtx]:
    """The results of a Function as the levels that are open now give them, and a context for further methods."""
    return modes.transforms[-1].applied(cls, args) if modes.transforms else recorded_call(cls, args)


def apply_batched(level: BatchLevel, cls, args) -> tuple[Any, FunctionCtx]:
    """Apply a Function to arguments of which some may stand for an example.

    Raises:
        RuntimeError: the Function has no `setup_context`, no way to be batched, or two.
    """
    if not any(_mine(level, a) for a in args):
        with below(level):
            return applied_further_out(cls, args)
    has_rule = cls.vmap is not Function.vmap
    if not (has_rule or cls.generate_vmap_rule) and level.takes_any_function:
        return recorded_call(cls, args)
    _check(cls, has_rule)
    ctx = new_context(cls, args)
    in_dims = tuple(0 if _mine(level, a) and a._batched else None for a in args)
    values = [a._value if _mine(level, a) else a for a in args]
    with below(level):
        if has_rule:
            output, out_dims = _two(cls, cls.vmap(VmapInfo(level.size, level.randomness), in_dims, *values))
        else:
            output, out_dims = _mapped(cls, level, in_dims).apply(*values), 0
        single = not isinstance(output, tuple)
        outputs = _wrapped(level, [output] if single else list(output), out_dims)
    result = outputs[0] if single else tuple(outputs)
    with user_code(Recording(False)):
        cls.setup_context(ctx, args, result)
    outputs = wrap_outputs(ctx, outputs, args, ctx.recorded)
    return (outputs[0] if single else tuple(outputs)), ctx


def _mine(level: BatchLevel, value) -> bool:
    return value.__class__ is BatchedTensor and value._level is level


def _check(cls, has_rule: bool) -> None:
    if cls.setup_context is None:
        raise RuntimeError(
            "In order to use an autograd.Function with functorch transforms (vmap, grad, jvp, jacrev, ...), it must override "
            f"the setup_context staticmethod: {cls.__name__} does all in forward"
        )
    if has_rule and cls.generate_vmap_rule:
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it has both generate_vmap_rule=True and an overridden vmap "
            "staticmethod. Please set generate_vmap_rule=False or delete the overridden vmap staticmethod to avoid ambiguity."
        )
    if not (has_rule or cls.generate_vmap_rule):
        raise RuntimeError(
            f"You tried to vmap over {cls.__name__}, but it does not have vmap support. Please override and implement the "
            "vmap staticmethod or set generate_vmap_rule=True."
        )


def _two(cls, returned):
    """What a `vmap` staticmethod returned, if it is the two things that it should be."""
    text = (
        "Expected the vmap staticmethod to have two returns, an output and out_dims with pytree structure compatible with the "
        "output. "
    )
    if not isinstance(returned, tuple):
        raise RuntimeError(f"{text}Got a {type(returned)} instead from {cls.__name__}")
    if len(returned) != 2:
        raise RuntimeError(f"{text}Got {len(returned)} returns instead from {cls.__name__}")
    return returned


def _wrapped(level: BatchLevel, outputs: list, out_dims) -> list:
    """Outputs as wrappers: the batch is in the dimension that `out_dims` says, or there is none."""
    dims = list(out_dims) if isinstance(out_dims, (tuple, list)) else [out_dims] * len(outputs)
    if len(dims) != len(outputs):
        raise RuntimeError(
            "The autograd.Function's vmap staticmethod returned an incompatible (output, out_dims) tuple. Expected "
            f"out_dims={out_dims} to be compatible with the structure of `output`: there are {len(outputs)} outputs"
        )
    return [_wrap(level, o, d) if isinstance(o, Tensor) else o for o, d in zip(outputs, dims, strict=True)]


def _wrap(level: BatchLevel, value: Tensor, dim: int | None = 0) -> BatchedTensor:
    if dim is None:
        return batch_of(value, level, False)
    return batch_of(value if dim == 0 else value.movedim(dim, 0), level)


# --- a Function made of another one, called on a batch ---------------------------------------------------------------


def _mapped(cls, level: BatchLevel, in_dims: tuple) -> type[Function]:
    """The Function further out: it takes and returns tensors of all examples."""

    class Mapped(Function):
        @staticmethod
        def forward(ctx, *values):
            inner = ctx.inner = cls._backward_cls()
            inner.needs_input_grad = ctx.needs_input_grad
            with opened(level):
                args = [_wrap(level, v, d) if isinstance(v, Tensor) else v for v, d in zip(values, in_dims, strict=True)]
                output = cls.forward(*args)
                cls.setup_context(inner, tuple(args), output)
            single = not isinstance(output, tuple)
            outputs = [output] if single else list(output)
            ctx.batched = _hand_over(ctx, inner)
            made = [with_batch(o, level.size) for o in outputs]
            _mark(ctx, inner, outputs, made)
            return made[0] if single else tuple(made)

        @staticmethod
        def backward(ctx, *grads):
            found = _inside(ctx, cls.backward if cls.vjp is Function.vjp else cls.vjp, grads, (0,) * len(grads))
            return tuple(_summed(g, d) for g, d in zip(found, in_dims, strict=False))

        @staticmethod
        def jvp(ctx, *tangents):
            return tuple(with_batch(t, level.size) for t in _inside(ctx, cls.jvp, tangents, in_dims))

    def _inside(ctx, method, given, dims) -> tuple:
        """Call a method of the Function on wrappers."""
        inner, batched = ctx.inner, ctx.batched[ctx.pushing]
        pairs = zip(ctx.saved_tensors, batched, strict=True)
        inner.for_forward, inner.pushing = tuple(None if v is None else batch_of(v, level, b) for v, b in pairs), True
        with opened(level):
            pairs = zip(given, dims, strict=True)
            results = method(inner, *[_wrap(level, g, d) if isinstance(g, Tensor) else g for g, d in pairs])
        inner.for_forward = ()
        return results if isinstance(results, tuple) else (results,)

    def _summed(g, dim):
        """A gradient of an argument: an argument that was the same for all gets the sum over the examples."""
        if g is None:
            return None
        if dim is None and _mine(level, g):
            return F.sum_dim(g._value, (0,), False) if g._batched else g._value * level.size
        return with_batch(g, level.size) if dim is not None else g

    Mapped.__name__ = Mapped.__qualname__ = f"Vmapped{cls.__name__}"
    return Mapped


def _hand_over(ctx: FunctionCtx, inner: FunctionCtx) -> tuple[list, list]:
    """Give what the Function saved to the node further out, which ties it to its graph.

    Returns:
        Which tensors saved for backward have a batch, and which of those saved for jvp.
    """
    for save, tensors in ((ctx.save_for_backward, inner.to_save), (ctx.save_for_forward, inner.for_forward)):
        save(*[t._value if t.__class__ is BatchedTensor else t for t in tensors])
    batched = [[t is not None and getattr(t, "_batched", False) for t in kept] for kept in (inner.to_save, inner.for_forward)]
    inner.to_save = inner.for_forward = ()
    return batched[0], batched[1]


def _mark(ctx: FunctionCtx, inner: FunctionCtx, outputs: list, made: list) -> None:
    """Carry over what the Function said of its results."""
    ctx.set_materialize_grads(inner.materialize)
    constant, dirty = ({id(t) for t in marked} for marked in (inner.non_differentiable, inner.dirty))
    ctx.mark_non_differentiable(*[m for o, m in zip(outputs, made, strict=True) if id(o) in constant])
    ctx.mark_dirty(*[m for o, m in zip(outputs, made, strict=True) if id(o) in dirty])
    inner.dirty = inner.non_differentiable = ()
