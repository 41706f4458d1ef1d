"""Hooks: handles, and how the engine calls each kind. Hooks always see tensors, whatever the engine runs on.

Order for one node: hooks of the tensors it made, the gradients `retain_grad` keeps, captures for `grad()`, the node's
pre-hooks, its formula, its post-hooks. For a leaf: tensor hooks, pre-hooks, accumulation, post-accumulate hooks,
post-hooks.
"""

from __future__ import annotations

import itertools
import weakref
from collections import OrderedDict

from pellucid.core.modes import modes
from pellucid.core.tensor import Tensor, wrap

__all__ = [
    "RemovableHandle",
    "add_hook",
    "run_leaf_hooks",
    "run_post_accumulate",
    "run_post_hooks",
    "run_pre_hooks",
    "run_tensor_hooks",
]


class RemovableHandle:
    """What registering a hook returns: `remove()` takes the hook back; also a context manager."""

    _ids = itertools.count()

    def __init__(self, hooks: dict, *, extra_dict=()):
        self.hooks_dict_ref = weakref.ref(hooks)
        self.id = next(self._ids)
        self.extra_dict_ref = tuple(
            weakref.ref(d) for d in (extra_dict if isinstance(extra_dict, (list, tuple)) else [extra_dict])
        )

    def remove(self) -> None:
        """Take the hook back; nothing happens if it is gone already."""
        for reference in (self.hooks_dict_ref, *self.extra_dict_ref):
            hooks = reference()
            if hooks is not None:
                hooks.pop(self.id, None)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.remove()


class Hooks(OrderedDict):
    """Hooks by handle id; a dictionary that can be referred to weakly."""


def add_hook(hooks: dict, hook) -> RemovableHandle:
    """Register and return the handle. `hooks` may be a plain dict kept alive by its owner."""
    handle = _Handle(hooks)
    hooks[handle.id] = hook
    return handle


class _Handle(RemovableHandle):
    """A handle on a plain dict, which cannot be referred to weakly: it holds the dict, not the node."""

    def __init__(self, hooks: dict):
        self.hooks = hooks
        self.id = next(self._ids)

    def remove(self) -> None:
        self.hooks.pop(self.id, None)


class _UserCode:
    """Run user code with grad mode as the running backward has it."""

    __slots__ = ("before", "enabled")

    def __init__(self, enabled: bool):
        self.enabled = enabled

    def __enter__(self):
        self.before = modes.grad_enabled
        modes.grad_enabled = self.enabled
        modes.update()

    def __exit__(self, *exception):
        modes.grad_enabled = self.before
        modes.update()


def user_code(task) -> _UserCode:
    """The context in which hooks and custom functions run."""
    return _UserCode(task.create_graph)


def _to_tensor(task, value):
    if value is None or isinstance(value, Tensor):
        return value
    return wrap(value if value.flags.writeable else value.copy())


def _from_tensor(task, value):
    return value if value is None or task.tensors else value._array


def _checked(result, given, what: str):
    """What a hook returned, if it can take the place of the gradient it was given."""
    if not isinstance(result, Tensor):
        raise TypeError(f"expected Tensor, but {what} returned {type(result).__name__}")
    if given is not None and result._array.shape != given._array.shape:
        raise RuntimeError(
            f"{what} has changed the size of value: expected {list(given._array.shape)}, got "
            f"{list(result._array.shape)}"
        )
    return result


def _run_each(task, hooks: dict, grad):
    """Pass a gradient through hooks, each seeing what the one before returned."""
    with user_code(task):
        for hook in list(hooks.values()):
            result = hook(grad)
            if result is not None:
                grad = _checked(result, grad, f"hook {getattr(hook, '__name__', repr(hook))!r}")
    return grad


def run_tensor_hooks(task, node, grad):
    """Hooks on the tensors a node made, then retain_grad."""
    grads = grad if node.multi else [grad]
    if grads is None:
        grads = [None] * node.outputs
    grads = [_to_tensor(task, g) for g in grads]
    for number, hooks in node.extra.tensor_hooks.items():
        grads[number] = _run_each(task, hooks, grads[number])
    for number, reference in node.extra.retain.items():
        tensor, value = reference(), grads[number]
        if tensor is not None and value is not None and tensor._edge[0] is node:  # not written to in place since
            tensor._grad = _kept(task, tensor._grad, value)
    grads = [_from_tensor(task, g) for g in grads]
    if all(g is None for g in grads):
        return None
    return grads if node.multi else grads[0]


def _kept(task, before, value: Tensor) -> Tensor:
    """A retained gradient: a copy, so that nothing the engine does later shows in it."""
    if before is not None:
        return before + value
    return value if task.tensors else wrap(value._array.copy())


def run_leaf_hooks(task, variable: Tensor, grad):
    """Hooks on a leaf, before its gradient is accumulated."""
    return _from_tensor(task, _run_each(task, variable._rare.hooks, _to_tensor(task, grad)))


def run_pre_hooks(task, node, grad):
    """Pre-hooks of a node: each gets and may replace the tuple of gradients of its results."""
    grads = tuple(_to_tensor(task, g) for g in (grad if node.multi else (grad,)))
    with user_code(task):
        for hook in list(node.extra.pre_hooks.values()):
            result = hook(grads)
            if result is not None:
                result = result if isinstance(result, tuple) else (result,)
                if len(result) != len(grads):
                    raise RuntimeError(f"hook returned {len(result)} gradients, expected {len(grads)}")
                grads = tuple(r if r is None else _checked(r, g, "hook") for r, g in zip(result, grads, strict=True))
    values = [_from_tensor(task, g) for g in grads]
    return values if node.multi else values[0]


def run_post_hooks(task, node, grads, outputs):
    """Post-hooks of a node: `hook(gradients of inputs, gradients of results)`."""
    given = tuple(_to_tensor(task, g) for g in grads) if grads is not None else (None,) * node.outputs
    made = tuple(_to_tensor(task, o) for o in outputs)
    with user_code(task):
        for hook in list(node.extra.post_hooks.values()):
            result = hook(made, given)
            if result is not None:
                result = result if isinstance(result, tuple) else (result,)
                if len(result) != len(made):
                    raise RuntimeError(f"hook returned {len(result)} gradients, expected {len(made)}")
                made = result
    return tuple(_from_tensor(task, o) for o in made)


def run_post_accumulate(task, variable: Tensor) -> None:
    """Hooks that run once `.grad` of a leaf holds the new sum."""
    with user_code(task):
        for hook in list(variable._rare.post_accumulate.values()):
            if hook(variable) is not None:
                raise RuntimeError("Tensor post accumulate grad hooks should return None.")
