"""`Function`: operations whose derivative the user writes.

The context its methods get is the node itself: `autograd/function_context.py`. In forward mode its `jvp` is called by
`autograd/function_forward.py`.
"""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from typing import Any

from pellucid.autograd.around import Work, surrounded
from pellucid.autograd.function_context import BackwardCFunction, FunctionCtx, Recording
from pellucid.autograd.function_outputs import wrap_outputs
from pellucid.autograd.hooks import user_code
from pellucid.autograd.node import Node, edge_of, edge_to, next_sequence
from pellucid.autograd.views import refresh
from pellucid.core.modes import modes
from pellucid.core.sites import caller
from pellucid.core.tensor import Tensor

__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "InplaceFunction",
    "new_context",
    "once_differentiable",
    "recorded_call",
]


class FunctionMeta(type):
    """Gives each Function subclass its node class, named after it."""

    def __init__(cls, name, bases, attributes):
        super().__init__(name, bases, attributes)
        cls._backward_cls = type(f"{name}Backward", (FunctionCtx,), {"__slots__": (), "__module__": cls.__module__})


class Function(metaclass=FunctionMeta):
    """An operation with a derivative of its own: subclass it, write static `forward` and `backward`, call `apply`.

    `forward(ctx, *args)` computes; `backward(ctx, *grad_outputs)` returns a gradient for each argument of forward, None
    for those without. With a static `setup_context(ctx, inputs, output)`, forward takes no ctx.
    """

    generate_vmap_rule = False
    clear_saved_tensors_on_access = False  # free saved tensors as soon as backward has read them

    def __init__(self, *args, **kwargs):
        warnings.warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke "
            "them on the class itself. Instantiating an autograd function will raise an error in a future version.",
            DeprecationWarning,
            stacklevel=2,
        )

    def __call__(self, *args, **kwargs):
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function "
            "with static forward method. (Example: https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the result. To be written by the subclass."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def backward(ctx: Any, *grad_outputs: Any) -> Any:
        """Compute the gradients of the arguments. To be written by the subclass."""
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom autograd.Function to use it with "
            "backward mode AD."
        )

    @staticmethod
    def vmap(info: Any, in_dims: Any, *args: Any) -> Any:
        """The operation on batches. To be written by the subclass that wants to be batched."""
        raise NotImplementedError("To use autograd.Function with vmap, you must override the vmap staticmethod.")

    vjp = backward
    setup_context: Any = None

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Compute the tangents of the results from those of the arguments. To be written by the subclass."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    @classmethod
    def apply(cls, *args, **kwargs):
        """Run `forward` and record the operation; inside a transform, the transform decides how."""
        if cls.setup_context is not None:
            args = _bound(cls.forward, args, kwargs)
        elif kwargs:
            cls = _with_keywords(cls, kwargs)
        if modes.transforms:
            result, ctx = modes.transforms[-1].applied(cls, args)
        else:
            result, ctx = recorded_call(cls, args)
        ctx.for_forward = ()
        return result


def new_context(cls: type[Function], args: tuple) -> FunctionCtx:
    """A context for one call, which knows the arguments and can become the node of the results."""
    ctx = cls._backward_cls()
    ctx.function = _Methods(cls)
    positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
    for i in positions:
        if args[i]._view is not None:
            refresh(args[i])
    needs = tuple(isinstance(a, Tensor) and a._requires_grad for a in args)
    ctx.recorded = modes.grad_enabled and not modes.inference and any(needs)
    ctx.needs_input_grad = needs if ctx.recorded else (False,) * len(args)
    if ctx.recorded:
        ctx.positions = positions
        ctx.edges = tuple([edge_of(args[i]) for i in positions])
        ctx.input_facts = [(args[i]._array.shape, args[i]._array.dtype) for i in positions]
    ctx.sequence = next_sequence()
    ctx.code, ctx.lasti = caller(sys._getframe(1))
    return ctx


def recorded_call(cls: type[Function], args: tuple) -> tuple[Any, FunctionCtx]:
    """Run `forward`, tie what it returned to the context, and return both."""
    ctx = new_context(cls, args)
    with user_code(Recording(False)):
        if modes.around:
            output = surrounded(Work.FUNCTION, cls, args, lambda: _run_forward(cls, ctx, args))
        else:
            output = _run_forward(cls, ctx, args)
    single = not isinstance(output, tuple)
    outputs = wrap_outputs(ctx, [output] if single else list(output), args, ctx.recorded)
    return (outputs[0] if single else tuple(outputs)), ctx


def _run_forward(cls: type[Function], ctx: FunctionCtx, args: tuple):
    """What the user's forward returns; the context is set up."""
    if cls.setup_context is None:
        return cls.forward(ctx, *args)
    output = cls.forward(*args)
    cls.setup_context(ctx, args, output)
    return output


class _Methods:
    """The derivative a Function offers: backward, or vjp under its other name."""

    __slots__ = ("backward", "clear_on_access")

    def __init__(self, cls):
        self.clear_on_access = cls.clear_saved_tensors_on_access
        own_backward = cls.backward is not Function.backward
        own_vjp = cls.vjp is not Function.vjp
        if own_backward and own_vjp:
            raise RuntimeError(
                "Implementing both 'backward' and 'vjp' for a custom Function is not allowed. You should only "
                "implement one of them."
            )
        self.backward = cls.vjp if own_vjp else cls.backward


_signature = functools.lru_cache(maxsize=1000)(inspect.signature)


def _bound(forward, args: tuple, kwargs: dict) -> tuple:
    """The arguments of a forward in order, completed by its default values."""
    bound = _signature(forward).bind(*args, **kwargs)
    bound.apply_defaults()
    return bound.args


def _with_keywords(cls: type[Function], kwargs: dict) -> type[Function]:
    """The same Function with arguments that are no operands."""
    return FunctionMeta(cls.__name__, (cls,), {"forward": staticmethod(functools.partial(cls.forward, **kwargs))})


class InplaceFunction(Function):
    """A Function that may write to its inputs: the old name of one that calls `ctx.mark_dirty`."""

    def __init__(self, inplace: bool = False):
        self.inplace = inplace


def once_differentiable(function):
    """Mark a `backward` whose own operations are not recorded: differentiating its result again raises."""

    @functools.wraps(function)
    def wrapped(ctx, *grads):
        recording = modes.grad_enabled
        with user_code(Recording(False)):
            results = function(ctx, *grads)
        if not recording or not any(isinstance(g, Tensor) and g._requires_grad for g in grads):
            return results
        single = not isinstance(results, tuple)
        tied = tuple(Error.tie(r) if isinstance(r, Tensor) else r for r in ((results,) if single else results))
        return tied[0] if single else tied

    return wrapped


class Error(Node):
    """The history of a result that may not be differentiated again; the name is PyTorch's."""

    __slots__ = ()

    @classmethod
    def tie(cls, tensor: Tensor) -> Tensor:
        """The tensor, with a history that refuses."""
        node = cls()
        node.edges, node.adjust, node.extra, node.sequence = (None,), None, None, next_sequence()
        node.code, node.lasti = None, 0
        made = tensor._alias()
        made._requires_grad, made._edge = True, edge_to(node)
        return made

    def apply(self, grad, edges, keep):
        """Refuse."""
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")

    apply_tensors = apply
