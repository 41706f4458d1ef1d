"""The node of a custom Function, which is also the `ctx` that its methods get.

What users subclass is in `autograd/function.py`; how its results are tied to the node in `autograd/function_outputs.py`.
"""

from __future__ import annotations

import warnings

import numpy as np

from pellucid.autograd.hooks import user_code
from pellucid.autograd.node import Freed, Node, edge_to
from pellucid.autograd.saved import Packed, stale, tie, unpack_result
from pellucid.autograd.saved_tensor import SavedTensor, saved_tensor
from pellucid.core.dtype import dtype_of
from pellucid.core.modes import modes
from pellucid.core.tensor import Counter, Tensor, wrap
from pellucid.kernels.sums import sum_to

__all__ = ["BackwardCFunction", "FunctionCtx", "Recording", "Saved"]


class _ReadOnce:
    """Stands in `adjust` of a node whose saved tensors went away when they were read."""

    def before(self, node: Node, grad):
        raise RuntimeError(
            f"{node.name()}: saved tensors can only be accessed once, since clear_saved_tensors_on_access is set. "
            "Read them into local variables."
        )


READ_ONCE = _ReadOnce()


class Saved:
    """One tensor of `save_for_backward`: an input or intermediate as itself, an output as its array."""

    __slots__ = ("count", "edge", "number", "value", "version")

    def __init__(self, value, number: int | None, edge, count: Counter, version: int):
        self.value, self.number, self.edge, self.count, self.version = value, number, edge, count, version


class FunctionCtx(Node):
    """The node of a custom Function, which is also the `ctx` that its methods get; attributes set on it are kept."""

    __slots__ = (
        "__dict__", "constant", "dirty", "facts", "for_forward", "function", "input_facts", "keep_outputs",
        "materialize", "needs_input_grad", "non_differentiable", "outputs", "positions", "pushing", "recorded", "saved_values", "to_save",
    )  # fmt: skip
    multi = True
    undefined = True
    # PyTorch's private switches, which `forward` may set on its ctx:
    _is_pure_view = False  # the views it returns are like a built-in view's: may be written to, with that view's gradient
    _materialize_non_diff_grads = True  # zeros, not None, stand for the gradients of non-differentiable outputs

    def __init__(self):
        self.dirty = self.non_differentiable = ()  # tensors; `constant` numbers the outputs without a derivative
        self.to_save: tuple = ()
        self.for_forward: tuple = ()  # what save_for_forward was given; kept until `jvp` has run
        self.pushing = False  # `jvp` is running
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
        """Keep tensors (or None) for `jvp`, where `saved_tensors` gives them back."""
        for tensor in tensors:
            if not (tensor is None or isinstance(tensor, Tensor)):
                raise AssertionError(
                    "save_for_forward expects all arguments to be tensors; you should save non-tensors as attributes on "
                    f"ctx. Got {type(tensor).__name__}"
                )
        self.for_forward = tensors

    def mark_dirty(self, *tensors) -> None:
        """Say which inputs `forward` changed in place; they must be among its outputs."""
        self.dirty = tensors

    def mark_non_differentiable(self, *tensors) -> None:
        """Say which outputs have no gradient."""
        self.non_differentiable = tensors

    def set_materialize_grads(self, value: bool) -> None:
        """Whether zeros (True, the default) or None stand for absent gradients in `backward`, absent tangents in `jvp`."""
        self.materialize = value

    # --- what backward may read ---------------------------------------------------------------------------------------

    @property
    def saved_tensors(self) -> tuple:
        """What `save_for_backward` was given; inside `jvp`, what `save_for_forward` was given.

        Raises:
            RuntimeError: the graph was freed, or a tensor was overwritten.
        """
        if self.pushing:
            return self.for_forward
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

    def _raw(self, saved: Saved | None) -> SavedTensor:
        def read():
            return None if saved is None or self.adjust is not None else saved.value

        return saved_tensor(self, read, lambda packed: setattr(saved, "value", packed), lambda: self._unpack(saved))

    @property
    def saved_variables(self) -> tuple:
        """The old name of `saved_tensors`."""
        warnings.warn("'saved_variables' is deprecated; use 'saved_tensors'", DeprecationWarning, stacklevel=2)
        return self.saved_tensors

    def _unpack(self, saved):
        if not isinstance(saved, Saved):
            return saved
        if saved.count is not None and saved.count.value != saved.version:
            edge = saved.edge if saved.number is None else edge_to(self, saved.number)
            stale(self, "saved_values", saved.count, saved.version, saved.value, edge)
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
        if keep is not True:
            self.release(keep)
        # a view is never taken for memory that the engine may write to: the user may hold the array
        return tuple(None if r is None else r._array.view() for r in results)

    def apply_tensors(self, grad, edges, keep):
        """Call the user's backward on tensors, recorded."""
        results = self._call([None] * self.outputs if grad is None else list(grad), modes.grad_enabled)
        if keep is not True:
            self.release(keep)
        return results

    def release(self, freed: Freed) -> None:
        """Let go of what was saved."""
        if self.saved_values:
            self.saved_values = None
            self.adjust = freed

    def _call(self, grads, recorded: bool) -> tuple:
        if isinstance(self.adjust, Freed):
            self.adjust.before(self, None)
        if self.materialize:
            grads = [
                wrap(np.zeros(*fact)) if g is None and fact is not None else g
                for g, fact in zip(grads, self.facts, strict=True)
            ]
        with user_code(Recording(recorded)):
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
            plain = not (result._requires_grad or modes.transforms)
            result = wrap(sum_to(result._array, shape)) if plain else result.sum_to_size(shape)
        if result._array.dtype != dtype:
            real = result.real if result.is_complex() and dtype.kind != "c" else result
            result = real.to(dtype_of(dtype))
        return result


BackwardCFunction = FunctionCtx  # PyTorch's name for the nodes of custom Functions


class Recording:
    """What `user_code` asks of a task."""

    def __init__(self, create_graph: bool):
        self.create_graph = create_graph
