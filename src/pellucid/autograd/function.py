"""`Function`: operations whose derivative the user writes. The context its methods get is the node itself."""

from __future__ import annotations

import functools
import warnings
from typing import Any

import numpy as np

from pellucid.autograd.around import Work, surrounded
from pellucid.autograd.hooks import user_code
from pellucid.autograd.node import FREED, Node, edge_of, edge_to, next_sequence, sum_to
from pellucid.autograd.saved import Packed, _pack, active_hooks, stale, tie, unpack_result
from pellucid.autograd.saved_tensor import SavedTensor, saved_tensor
from pellucid.autograd.views import Kind, Step, View, check_inplace, rebase, refresh, take_view, written
from pellucid.core.modes import modes
from pellucid.core.sites import caller
from pellucid.core.tensor import Counter, Tensor, counter, wrap

__all__ = ["BackwardCFunction", "Function", "FunctionCtx", "InplaceFunction", "once_differentiable"]


class _ReadOnce:
    """Stands in `adjust` of a node whose saved tensors went away when they were read."""

    def before(self, node: Node, grad):
        raise RuntimeError(
            f"{node.name()}: saved tensors can only be accessed once, since clear_saved_tensors_on_access is set. "
            "Read them into local variables."
        )


READ_ONCE = _ReadOnce()


class _Saved:
    """One tensor of `save_for_backward`: an input or intermediate as itself, an output as its array."""

    __slots__ = ("count", "edge", "number", "value", "version")

    def __init__(self, value, number: int | None, edge, count: Counter, version: int):
        self.value, self.number, self.edge, self.count, self.version = value, number, edge, count, version


class FunctionCtx(Node):
    """The node of a custom Function, which is also the `ctx` that its methods get; attributes set on it are kept."""

    __slots__ = (
        "__dict__", "dirty", "facts", "function", "input_facts", "keep_outputs", "materialize", "needs_input_grad",
        "non_differentiable", "outputs", "positions", "saved_values", "to_save",
    )  # fmt: skip
    multi = True
    undefined = True
    # PyTorch's private switches, which `forward` may set on its ctx:
    _is_pure_view = False  # the views it returns are like a built-in view's: may be written to, with that view's gradient
    _materialize_non_diff_grads = True  # zeros, not None, stand for the gradients of non-differentiable outputs

    def __init__(self):
        self.dirty = self.non_differentiable = ()
        self.to_save: tuple = ()
        self.saved_values: list | None = None
        self.materialize = True
        self.keep_outputs: dict = {}
        self.adjust = self.extra = None
        self.edges = ()

    # --- what forward may call ----------------------------------------------------------------------------------------

    def save_for_backward(self, *tensors) -> None:
        """Keep tensors (or None) for `backward`, where `saved_tensors` gives them back; call at most once."""
        self.to_save = tensors

    def save_for_forward(self, *tensors) -> None:
        """Keep tensors for `jvp`."""
        self.to_save = self.to_save or tensors

    def mark_dirty(self, *tensors) -> None:
        """Say which inputs `forward` changed in place; they must be among its outputs."""
        self.dirty = tensors

    def mark_non_differentiable(self, *tensors) -> None:
        """Say which outputs have no gradient."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether `backward` gets zeros (True, the default) or None for outputs that received no gradient."""
        self.materialize = value

    # --- what backward may read ---------------------------------------------------------------------------------------

    @property
    def saved_tensors(self) -> tuple:
        """What `save_for_backward` was given; RuntimeError after the graph was freed or if a tensor was overwritten."""
        if self.adjust is not None:
            self.adjust.before(self, None)
        if self.saved_values is None:  # still inside forward
            return tuple(self.to_save)
        values = tuple(self._unpack(saved) for saved in self.saved_values)
        if self.function.clear_on_access:
            self.saved_values, self.adjust = None, READ_ONCE
        return values

    @property
    def _raw_saved_tensors(self) -> tuple[SavedTensor, ...]:
        """The same before they are unpacked."""
        if self.adjust is not None:
            self.adjust.before(self, None)
        return tuple(self._raw(saved) for saved in self.saved_values or ())

    def _raw(self, saved: _Saved | None) -> SavedTensor:
        def read():
            return None if saved is None or self.adjust is not None else saved.value

        return saved_tensor(self, read, lambda packed: setattr(saved, "value", packed), lambda: self._unpack(saved))

    @property
    def saved_variables(self) -> tuple:
        """The old name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    def _unpack(self, saved):
        if not isinstance(saved, _Saved):
            return saved
        if saved.count is not None and saved.count.value != saved.version:
            stale(self, "saved_values", saved.count, saved.version, saved.value)
        if isinstance(saved.value, Packed):
            return tie(saved.value.tensor(), edge_to(self, saved.number) if saved.number is not None else saved.edge)
        if saved.number is not None:
            return unpack_result(self, saved.value, saved.number, saved.count)
        return saved.value

    def __getattr__(self, name: str):
        kept = object.__getattribute__(self, "keep_outputs")
        if name in kept:
            array, number, count = kept[name]
            return unpack_result(self, array, number, count)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}: it was not set on ctx in forward")

    # --- the node -----------------------------------------------------------------------------------------------------

    def apply(self, grad, edges, keep):
        """Call the user's backward on wrapped arrays."""
        grads = [None] * self.outputs if grad is None else [None if g is None else wrap(g) for g in grad]
        results = self._call(grads, False)
        if not keep:
            self.release()
        # a view is never taken for memory that the engine may write to: the user may hold the array
        return tuple(None if r is None else r._array.view() for r in results)

    def apply_tensors(self, grad, edges, keep):
        """Call the user's backward on tensors, recorded."""
        results = self._call([None] * self.outputs if grad is None else list(grad), modes.grad_enabled)
        if not keep:
            self.release()
        return results

    def release(self) -> None:
        """Let go of what was saved."""
        if self.saved_values:
            self.saved_values = None
            self.adjust = FREED

    def _call(self, grads, recorded: bool) -> tuple:
        if self.adjust is FREED:
            FREED.before(self, None)
        if self.materialize:
            grads = [
                wrap(np.zeros(*fact)) if g is None and fact is not None else g
                for g, fact in zip(grads, self.facts, strict=True)
            ]
        with user_code(_Recording(recorded)):
            results = self.function.backward(self, *grads)
        results = results if isinstance(results, (tuple, list)) else (results,)
        count = len(self.needs_input_grad)
        if (len(results) > count and any(r is not None for r in results[count:])) or len(results) < count:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients (expected {count}, got "
                f"{len(results)}): "
                "backward returns one value for each argument of forward, None where there is no gradient"
            )
        return tuple(
            self._checked(i, results[p], f)
            for i, (p, f) in enumerate(zip(self.positions, self.input_facts, strict=True))
        )

    def _checked(self, index: int, result, fact):
        """A gradient in the shape and dtype of its input."""
        if result is None or self.edges[index] is None:
            return None
        if not isinstance(result, Tensor):
            raise RuntimeError(
                f"{self.name()}: expected Variable or None (got {type(result).__name__}) as gradient {index}"
            )
        shape, dtype = fact
        given = result._array.shape
        if given != shape:
            lead = len(given) - len(shape)
            fits = lead >= 0 and all(b in (1, a) for a, b in zip(given[lead:], shape, strict=True))
            if not fits:
                raise RuntimeError(
                    f"Function {self.name()} returned an invalid gradient at index {index} - got {list(given)} but "
                    f"expected shape compatible with {list(shape)}"
                )
            result = result.sum_to_size(shape) if result._requires_grad else wrap(sum_to(result._array, shape))
        if result._array.dtype != dtype:
            from pellucid.core.dtype import dtype_of

            real = result.real if result.is_complex() and dtype.kind != "c" else result
            result = real.to(dtype_of(dtype))
        return result


BackwardCFunction = FunctionCtx  # PyTorch's name for the nodes of custom Functions


class _Recording:
    """What `user_code` asks of a task."""

    def __init__(self, create_graph: bool):
        self.create_graph = create_graph


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

    @classmethod
    def apply(cls, *args):
        """Run `forward` and record the operation."""
        ctx = cls._backward_cls()
        ctx.function = _Methods(cls)
        positions = [i for i, a in enumerate(args) if isinstance(a, Tensor)]
        for i in positions:
            if args[i]._view is not None:
                refresh(args[i])
        needs = tuple(isinstance(a, Tensor) and a._requires_grad for a in args)
        recorded = modes.grad_enabled and not modes.inference and any(needs)
        ctx.needs_input_grad = needs if recorded else (False,) * len(args)
        versions = {id(args[i]): args[i]._version for i in positions}
        if recorded:
            ctx.positions = positions
            ctx.edges = tuple([edge_of(args[i]) for i in positions])
            ctx.input_facts = [(args[i]._array.shape, args[i]._array.dtype) for i in positions]
        ctx.sequence = next_sequence()
        ctx.code, ctx.lasti = caller(_frame())
        with user_code(_Recording(False)):
            if modes.around:
                output = surrounded(Work.FUNCTION, cls, args, lambda: _run_forward(cls, ctx, args))
            else:
                output = _run_forward(cls, ctx, args)
        single = not isinstance(output, tuple)
        outputs = _wrap_outputs(ctx, [output] if single else list(output), args, recorded, versions)
        return outputs[0] if single else tuple(outputs)


def _run_forward(cls, ctx: FunctionCtx, args: tuple):
    """What the user's forward returns; the context is set up."""
    if cls.setup_context is None:
        return cls.forward(ctx, *args)
    output = cls.forward(*_with_defaults(cls.forward, args))
    cls.setup_context(ctx, _with_defaults(cls.forward, args), output)
    return output


def _frame():
    import sys

    return sys._getframe(2)


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


@functools.lru_cache(maxsize=1000)
def _defaults(forward):
    import inspect

    return [p.default for p in inspect.signature(forward).parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]


def _with_defaults(forward, args) -> tuple:
    """The arguments of forward, completed by its default values."""
    return (*args, *(d for d in _defaults(forward)[len(args) :]))


class InplaceFunction(Function):
    """A Function that may write to its inputs: the old name of one that calls `ctx.mark_dirty`."""

    def __init__(self, inplace: bool = False):
        self.inplace = inplace


# --- outputs ---------------------------------------------------------------------------------------------------------


def _wrap_outputs(ctx: FunctionCtx, outputs: list, args, recorded: bool, versions: dict) -> list:
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
    return wrapped


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
            warnings.warn(text, stacklevel=4)
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
        alias = wrap(out._array)
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
        value: Any = t._array if own else t
        if hooks is not None:
            value = _pack(wrap(t._array) if own else t, hooks, own)
        ctx.saved_values.append(_Saved(value, number if own else None, t._edge, count, count.value))


def _break_cycles(ctx: FunctionCtx) -> None:
    """Keep outputs that were set on ctx without the tensors, which lead back to it.

    This comes before anything is given to pack hooks: one that raises must leave no cycle behind.
    """
    for name, value in list(ctx.__dict__.items()):
        if isinstance(value, Tensor) and value._edge is not None and value._edge[0] is ctx:
            del ctx.__dict__[name]
            ctx.keep_outputs[name] = (value._array, value._edge[1], counter(value))


def once_differentiable(function):
    """Mark a `backward` whose own operations are not recorded: differentiating its result again raises."""

    @functools.wraps(function)
    def wrapped(ctx, *grads):
        recording = modes.grad_enabled
        with user_code(_Recording(False)):
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
        made = wrap(tensor._array)
        made._requires_grad, made._edge = True, edge_to(node)
        return made

    def apply(self, grad, edges, keep):
        """Refuse."""
        raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")

    apply_tensors = apply
