"""A tensor's own place in the graph: `requires_grad`, `grad`, `grad_fn`, `detach`, hooks, `retain_grad`, `data`.

These are the properties and methods of Tensor that speak of the graph; importing this module attaches them.
"""

from __future__ import annotations

import sys
import warnings

from pellucid.autograd import differentiate
from pellucid.autograd.differentiate import backward_one
from pellucid.autograd.few_rows import RowsGradient, made_plain
from pellucid.autograd.hooks import Hooks, RemovableHandle, add_hook
from pellucid.autograd.node import extra
from pellucid.autograd.views import Kind, move_retain, refresh
from pellucid.core.dtype import dtype
from pellucid.core.language import message, say
from pellucid.core.modes import modes
from pellucid.core.sites import caller
from pellucid.core.tensor import Cut, InferenceCounter, Tensor, counter

__all__ = ["detach"]

getframe = sys._getframe


# --- requires_grad and its relatives ----------------------------------------------------------------------------------


def _get_requires_grad(self: Tensor) -> bool:
    """Whether gradients flow to this tensor. Settable on leaves of floating-point or complex dtype."""
    view = self._view
    if view is not None:
        if view.kind is not Kind.PLAIN:  # its history may be out of date, which only using it complains about
            return self._requires_grad or view.base._requires_grad
        refresh(self)
    return self._requires_grad or (self._rare is not None and self._rare.wish)


def _set_requires_grad(self: Tensor, value: bool) -> None:
    if not isinstance(value, bool):
        raise RuntimeError(f"requires_grad must be a bool, got {type(value).__name__}")
    if self._view is not None:
        refresh(self)
    if self._edge is not None:
        if value:
            return
        raise RuntimeError(
            "you can only change requires_grad flags of leaf variables. If you want to use a computed variable in a "
            "subgraph that doesn't require differentiation use var_no_grad = var.detach()."
        )
    if value and not (self.is_floating_point() or self.is_complex()):
        first = "only Tensors of floating point and complex dtype can require gradients"
        kind = say("This one is {dtype}. Convert it first, for example with .float().", dtype=self.dtype)
        raise RuntimeError(message(first, kind))
    if value and isinstance(self._counter, InferenceCounter) and not modes.inference:
        raise RuntimeError(
            "Setting requires_grad=True on inference tensor outside InferenceMode is not allowed. Make a clone() of "
            "it first."
        )
    if isinstance(self._counter, InferenceCounter):
        self.rare.wish = value
    elif value and not self._requires_grad:
        self._requires_grad = True
        self.rare.made = _made_here(sys._getframe(1))
    else:
        self._requires_grad = value


def _made_here(frame) -> tuple:
    """The line that makes a leaf, as `sites.caller` gives it; with True behind it where the program sets a tensor's
    `requires_grad` itself, and no function that makes a tensor does."""
    if frame.f_code is requires_grad_.__code__:
        frame = frame.f_back
    line = caller(frame)
    return (*line, True) if line[0] is frame.f_code else line


def requires_grad_(self: Tensor, requires_grad: bool = True) -> Tensor:
    """Set `requires_grad` and return the tensor itself; RuntimeError as for the attribute."""
    _set_requires_grad(self, requires_grad)
    return self


def _get_is_leaf(self: Tensor) -> bool:
    """Whether no recorded operation made this tensor: gradients accumulate in leaves only."""
    if self._view is not None:
        refresh(self)
    return self._edge is None


def _get_grad_fn(self: Tensor):
    """The node of the operation that made this tensor; None for a leaf."""
    if self._view is not None:
        refresh(self)
    return None if self._edge is None else self._edge[0]


def _get_volatile(self: Tensor) -> bool:
    """What `no_grad` was before there was `no_grad`: always False, with a warning."""
    warnings.warn("volatile was removed: it has no effect any more. Use `with torch.no_grad():`", stacklevel=2)
    return False


def _set_volatile(self: Tensor, value: bool) -> None:
    _get_volatile(self)


def _get_output_nr(self: Tensor) -> int:
    """Which output of its node this tensor is."""
    return 0 if self._edge is None else self._edge[1]


def _get_grad(self: Tensor):
    """The accumulated gradient of a leaf, or of a tensor that `retain_grad()` was called on; None before backward.

    Reading it on another tensor warns: gradients of intermediate results are not kept.
    """
    if self._grad is None and self._edge is not None and not (self._rare is not None and self._rare.retain):
        warnings.warn(message(NOT_A_LEAF, str(_explained(self, sys._getframe(1)))), UserWarning, stacklevel=2)
    grad = self._grad
    return made_plain(grad) if isinstance(grad, RowsGradient) else grad


NOT_A_LEAF = (
    "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated "
    "during autograd.backward(). If you indeed want the .grad field to be populated for a non-leaf Tensor, use "
    ".retain_grad() on the non-leaf Tensor before backward. If you access the non-leaf Tensor by mistake, make sure you access "
    "the leaf Tensor instead."
)


def _explained(self: Tensor, frame, root: Tensor | None = None):
    from pellucid.autograd.why import explained  # not needed by programs that ask nothing

    return explained(self, frame, root)


def why(self: Tensor, root: Tensor | None = None):
    """Why `.grad` is None, or what is in it, in words: see `pellucid.graph.why`."""
    return _explained(self, sys._getframe(1), root)


def _set_grad(self: Tensor, value: Tensor | None) -> None:
    if value is not None:
        if not isinstance(value, Tensor):
            raise TypeError(
                f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
            )
        if value is self:
            raise RuntimeError("can't assign Variable as its own grad")
        if value._array.shape != self._array.shape:
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(value._array.shape)}' to a tensor of size "
                f"'{list(self._array.shape)}'. Please ensure that the gradient and the tensor are the same size"
            )
        wanted = _grad_dtype(self)
        if wanted is not None and value.dtype is not wanted:
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{value.dtype.name}' to a tensor with grad_dtype "
                f"'{wanted.name}'. The gradient must match the tensor's grad_dtype (defaults to the tensor's dtype). "
                "Convert the gradient with .to(), or set tensor.grad_dtype first."
            )
    elif self._rare is not None and self._grad is not None:
        frame = getframe(1)
        self._rare.reset = frame.f_code, frame.f_lasti
    self._grad = value


ANY = "any"  # grad_dtype was set to None: gradients keep the dtype they come in


def _grad_dtype(self: Tensor):
    """The dtype gradients of a leaf are to have; None for whatever comes."""
    chosen = None if self._rare is None else self._rare.grad_dtype
    return self.dtype if chosen is None else None if chosen is ANY else chosen


def _get_grad_dtype(self: Tensor):
    """The dtype in which gradients accumulate: the tensor's own by default, None for the dtype they come in.

    Settable on leaves that have no gradient yet.
    """
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
    return _grad_dtype(self)


def _set_grad_dtype(self: Tensor, value) -> None:
    if not self.is_leaf:
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    if value is not None and not isinstance(value, dtype):
        raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}")
    if value is not None and self._grad is not None and self._grad.dtype is not value:
        raise RuntimeError(
            f"Cannot set grad_dtype to '{value.name}' because there is already a gradient with dtype "
            f"'{self._grad.dtype.name}'. Set .grad to None first."
        )
    self.rare.grad_dtype, self.rare.watched = ANY if value is None else value, True


def _del_grad(self: Tensor) -> None:
    self._drop_grad(caller(sys._getframe(1)))


# --- cutting ----------------------------------------------------------------------------------------------------------


def detach(self: Tensor) -> Tensor:
    """The same values without a history: shares memory and version counter, never requires grad."""
    made = self._bare()
    made._counter = counter(self)
    rare = self._rare
    if self._requires_grad:  # not brought up to date: a view whose history is invalid can be detached
        made.rare.cut = Cut("detach", *caller(sys._getframe(1)))
    elif rare is not None and rare.cut is not None:
        made.rare.cut = rare.cut
    return made


def detach_(self: Tensor) -> Tensor:
    """Forget this tensor's history in place; RuntimeError for a view, whose history is its base's."""
    if self._view is not None:
        raise RuntimeError(
            "Can't detach views in-place. Use detach() instead. If you are using DistributedDataParallel (DDP) for "
            "training, "
            "and gradient_as_bucket_view is set as True, gradients are views of DDP buckets, and hence detach_() "
            "cannot be called on these gradients."
        )
    if self._edge is not None:
        self.rare.cut = Cut("detach_", *caller(sys._getframe(1)))
        self.rare.retain = False
    self._edge, self._requires_grad = None, False
    if self._rare is not None:
        self._rare.tangents = None
    return self


def _get_data(self: Tensor) -> Tensor:
    """The same values without a history and with a version counter of their own: autograd does not see writes to it."""
    made = self._bare()
    if self.requires_grad:
        made.rare.cut = Cut("data", *caller(sys._getframe(1)))
    return made


def _set_data(self: Tensor, value: Tensor) -> None:
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    if self._requires_grad and value._array.dtype.kind not in "fcV":
        raise RuntimeError(
            f"data set to a tensor that requires gradients must be floating point or complex dtype, got {value.dtype}"
        )
    self._array = value._array


# --- hooks and retained gradients -------------------------------------------------------------------------------------


def register_hook(self: Tensor, hook) -> RemovableHandle:
    """Call `hook(grad)` each time a gradient for this tensor is computed; a returned tensor replaces the gradient.

    Raises:
        RuntimeError: the tensor does not require grad.
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self._edge is None:
        if self.rare.hooks is None:
            self.rare.hooks, self.rare.watched = Hooks(), True
        return add_hook(self.rare.hooks, hook)
    node, number = self._edge[:2]
    return add_hook(extra(node).tensor_hooks.setdefault(number, Hooks()), hook)


def register_post_accumulate_grad_hook(self: Tensor, hook) -> RemovableHandle:
    """Call `hook(tensor)` after a gradient was added to `.grad` of this leaf.

    Raises:
        RuntimeError: the tensor does not require grad, or is not a leaf.
    """
    if not self.requires_grad:
        raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
    if self._edge is not None:
        raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
    if self.rare.post_accumulate is None:
        self.rare.post_accumulate, self.rare.watched = Hooks(), True
    return add_hook(self.rare.post_accumulate, hook)


def retain_grad(self: Tensor) -> None:
    """Keep the gradient of this non-leaf in `.grad`; nothing to do for a leaf, RuntimeError if it needs no gradient."""
    if not self.requires_grad:
        first = "can't retain_grad on Tensor that has requires_grad=False"
        raise RuntimeError(message(first, say("No gradient is computed for it. Set requires_grad_() on the leaf it was made from.")))
    if self._edge is None or self.rare.retain:
        return
    self.rare.retain = True
    move_retain(self)


def _get_retains_grad(self: Tensor) -> bool:
    """Whether this non-leaf keeps its gradient."""
    return self._rare is not None and self._rare.retain


def _get_base(self: Tensor):
    """The tensor this one is a view of; None for no view."""
    return None if self._view is None else self._view.base


def _is_view(self: Tensor) -> bool:
    """Whether this tensor is a view that autograd tracks."""
    return self._view is not None


def _view_func(self: Tensor, new_base: Tensor) -> Tensor | None:
    """The view that this one is, taken of another tensor of its base's shape; None if there is no such view."""
    view = self._view
    if view is None or new_base._array.shape != view.base._array.shape:
        return None
    made = new_base
    for step in view.steps:
        made = step.on_tensor(made)
    return made


def is_inference(self: Tensor) -> bool:
    """Whether this tensor was made in inference mode."""
    return isinstance(self._counter, InferenceCounter)


def _get_name(self: Tensor):
    """A name for pictures and messages; settable."""
    return None if self._rare is None else self._rare.name


def _get_backward_hooks(self: Tensor):
    """The hooks on this tensor by their handles' ids; None if there are none. Settable: old programs do it by hand."""
    if self._edge is None:
        return None if self._rare is None else self._rare.hooks
    node, number = self._edge[:2]
    return None if node.extra is None else node.extra.tensor_hooks.get(number)


def _set_backward_hooks(self: Tensor, hooks: dict | None) -> None:
    if hooks is not None and not isinstance(hooks, dict):
        raise TypeError(f"_backward_hooks must be a dict or None, got {type(hooks).__name__}")
    if self._edge is None:
        self.rare.hooks, self.rare.watched = hooks, True
    else:
        node, number = self._edge[:2]
        extra(node).tensor_hooks[number] = {} if hooks is None else hooks


def _refuse(name: str):
    def refuse(self, *value):
        raise RuntimeError(f"{name} of a tensor cannot be deleted or replaced")

    return refuse


def backward(
    self: Tensor, gradient=None, retain_graph: bool | None = None, create_graph: bool = False, inputs=None
) -> None:
    """Accumulate into `.grad` of each leaf the derivative of this tensor with respect to it.

    Args:
        gradient: for a non-scalar, the vector v of the vector-Jacobian product v^T J; of this tensor's shape.
        retain_graph: keep saved values for another backward; by default what `create_graph` says.
        create_graph: record the derivative itself, so that it can be differentiated again.
        inputs: accumulate into these tensors only (non-leaves too).

    Raises:
        RuntimeError: the tensor needs no gradient, is no scalar and no gradient was given, or its graph was freed.
    """
    if gradient is None and inputs is None and not create_graph:
        backward_one(self, True if retain_graph else False)  # a call of bool takes longer
    else:
        differentiate.backward(self, gradient, retain_graph, create_graph, inputs=inputs)


for _name, _get, _set, _delete in (
    ("requires_grad", _get_requires_grad, _set_requires_grad, _refuse("requires_grad")),
    ("is_leaf", _get_is_leaf, None, None),
    ("grad_fn", _get_grad_fn, None, _refuse("grad_fn")),
    ("_grad_fn", _get_grad_fn, None, _refuse("_grad_fn")),
    ("volatile", _get_volatile, _set_volatile, None),
    ("output_nr", _get_output_nr, None, None),
    ("grad", _get_grad, _set_grad, _del_grad),
    ("grad_dtype", _get_grad_dtype, _set_grad_dtype, None),
    ("data", _get_data, _set_data, _refuse("data")),
    ("retains_grad", _get_retains_grad, None, None),
    ("_base", _get_base, None, None),
    ("_backward_hooks", _get_backward_hooks, _set_backward_hooks, _refuse("_backward_hooks")),
):
    setattr(Tensor, _name, property(_get, _set, _delete, _get.__doc__))
for _method in (
    requires_grad_,
    detach,
    detach_,
    register_hook,
    register_post_accumulate_grad_hook,
    retain_grad,
    _is_view,
    _view_func,
    is_inference,
    backward,
    why,
):
    setattr(Tensor, _method.__name__, _method)
