"""Custom Functions in forward mode: their `jvp` makes the tangents of what `forward` returned.

What may be asked of `jvp` follows from what tangents are elsewhere: the tangent of a view is a view, that of a tensor
written to in place is written to in place.
"""

from __future__ import annotations

from typing import Any

from pellucid.autograd import declaration
from pellucid.autograd.forward_mode import DualLevel, check_tangent, forward_base, laid_out_like
from pellucid.autograd.function_batched import applied_further_out
from pellucid.autograd.function_context import FunctionCtx
from pellucid.autograd.function_outputs import share_tangents
from pellucid.autograd.transforms import below
from pellucid.core.tensor import Tensor

__all__ = ["apply_forward_mode"]

F = declaration.tensors


def apply_forward_mode(level: DualLevel, cls, args) -> tuple[Any, FunctionCtx]:
    """Apply a Function to arguments of which some may carry tangents at this level."""
    tangents = [level.tangent(a) for a in args]
    versions = [None if t is None else t._version for t in tangents]
    with below(level):
        result, ctx = applied_further_out(cls, args)
        if all(t is None for t in tangents):
            return result, ctx
        outputs = list(result) if isinstance(result, tuple) else [result]
        pushed = _pushed(cls, ctx, args, tangents, len(outputs))
        given = _Given(level, args, tangents, versions)
        for position, (output, tangent) in enumerate(zip(outputs, pushed, strict=True)):
            if isinstance(output, Tensor):
                given.settle(position, output, tangent, position in ctx.constant)
    for alias in share_tangents(ctx, outputs):
        level.watch(alias)
    return result, ctx


def _pushed(cls, ctx: FunctionCtx, args, tangents, count: int) -> tuple:
    """What the user's `jvp` returns for so many outputs, as a tuple of tangents and None."""
    given = tangents
    if ctx.materialize:
        given = [_or_zeros(a, t) for a, t in zip(args, tangents, strict=True)]
    ctx.pushing = True
    try:
        pushed = cls.jvp(ctx, *given)
    finally:
        ctx.pushing = False
    pushed = pushed if isinstance(pushed, tuple) else (pushed,)
    for position, tangent in enumerate(pushed):
        if not (tangent is None or isinstance(tangent, Tensor)):
            raise RuntimeError(
                f"expected Variable or None (got {type(tangent).__name__}) for grad output {position}. {cls.__name__}.jvp "
                "returns tangents, None for outputs that have none"
            )
    if len(pushed) != count:
        raise RuntimeError(
            f"Function's jvp returned an invalid number of forward gradients (expected {count} but got {len(pushed)}): jvp "
            "returns one for each output of forward, None where there is none"
        )
    return pushed


def _or_zeros(argument, tangent):
    """The tangent of an argument, zeros for a tensor without one that could have had one."""
    if tangent is not None or not isinstance(argument, Tensor) or argument._array.dtype.kind not in "fcV":
        return tangent
    return F.zeros_as(argument.detach())


class _Given:
    """The arguments of a call with what was known of their tangents before `jvp` ran."""

    def __init__(self, level: DualLevel, args, tangents, versions):
        self.level = level
        self.by_id = {id(a): (t, v) for a, t, v in zip(args, tangents, versions, strict=True) if isinstance(a, Tensor)}
        self.by_base = {
            id(forward_base(a)[0]): t for a, t in zip(args, tangents, strict=True) if isinstance(a, Tensor)
        }

    def settle(self, position: int, output: Tensor, tangent: Tensor | None, constant: bool) -> None:
        """Give an output its tangent, if it is one that it may have."""
        if constant or output._array.dtype.kind not in "fcV":
            if tangent is not None:
                raise RuntimeError(
                    f"Function's jvp returned a gradient at position {position}, but the corresponding forward output is not "
                    "a differentiable Tensor. You should return None at that position instead."
                )
        elif id(output) in self.by_id:
            self._written(output, tangent)
        elif tangent is not None:
            self._new(output, tangent)

    def _written(self, output: Tensor, tangent: Tensor | None) -> None:
        """An argument that forward wrote to."""
        before, version = self.by_id[id(output)]
        if before is None:
            if tangent is not None:
                self.level.write(output, tangent)
            return
        if tangent is None or tangent._version == version:
            raise RuntimeError(
                "An inplace custom Function is not modifying the forward mode gradients inplace. If the forward is modifying "
                "an input inplace, then the jvp function must modify the corresponding gradient inplace."
            )
        if tangent is not before:
            raise RuntimeError(
                "An inplace custom Function is not returning the forward mode gradients as-is. If the forward is modifying "
                "an input inplace, then the jvp function must modify the gradient inplace and return it as-is."
            )

    def _new(self, output: Tensor, tangent: Tensor) -> None:
        """A tensor that forward made."""
        check_tangent(self.level, output, tangent)
        base = forward_base(output)[0]
        if base is output or id(base) not in self.by_base:
            self.level.attach(output, laid_out_like(output, tangent))
            return
        of_input = self.by_base[id(base)]
        if of_input is None:
            self.level.write(output, tangent)
            return
        if tangent._view is None:
            raise RuntimeError(
                "A custom Function's forward is returning a view (or an input as-is) but the jvp is not returning a view."
            )
        if forward_base(tangent)[0] is not forward_base(of_input)[0]:
            which = "the given grad input" if of_input._view is None else "the same base as the given grad input"
            raise RuntimeError(
                f"A custom Function is returning a view but the jvp is not returning a view of {which}."
            )
        self.level.attach(output, tangent)
