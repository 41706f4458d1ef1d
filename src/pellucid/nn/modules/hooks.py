"""Hooks on modules: registering them, for one module or for all, and a call that runs them.

`Module.__call__` comes here only for a module whose `_hooked` is set. Backward hooks are in `backward_hooks.py`,
hooks of state dicts in `state.py`.
"""

from __future__ import annotations

import warnings
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

from pellucid.autograd.hooks import RemovableHandle
from pellucid.nn.modules.backward_hooks import Boundary, register_on_grad_fn

if TYPE_CHECKING:
    from collections.abc import Callable

    from pellucid.nn.modules.module import Module

__all__ = [
    "EVERY",
    "Hooks",
    "call_with_hooks",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]

# The tables of hooks that a module has, each by handle id. Those that end in `_with_kwargs` and `_always_called`
# hold the ids of hooks that want this.
TABLES = (
    "_backward_pre_hooks",
    "_backward_hooks",
    "_forward_hooks",
    "_forward_hooks_with_kwargs",
    "_forward_hooks_always_called",
    "_forward_pre_hooks",
    "_forward_pre_hooks_with_kwargs",
    "_state_dict_hooks",
    "_state_dict_pre_hooks",
    "_load_state_dict_pre_hooks",
    "_load_state_dict_post_hooks",
)
CALL_TABLES = ("_backward_pre_hooks", "_backward_hooks", "_forward_hooks", "_forward_pre_hooks")


class _Every:
    """The hooks of every module, in tables like those of a single one, and the hooks on registration."""

    def __init__(self):
        for table in TABLES:
            setattr(self, table, OrderedDict())
        self._is_full_backward_hook: bool | None = None
        self.parameter_registration: dict[int, Callable] = OrderedDict()
        self.buffer_registration: dict[int, Callable] = OrderedDict()
        self.module_registration: dict[int, Callable] = OrderedDict()


EVERY = _Every()


class Hooks:
    """The part of `Module` that registers hooks around its call."""

    # Whether a call has to look for hooks; set on an instance, or on the class for hooks of every module.
    _hooked = False

    def _init_hooks(self) -> None:
        """Make the tables that are not there yet."""
        for table in TABLES:
            self.__dict__.setdefault(table, OrderedDict())
        self.__dict__.setdefault("_is_full_backward_hook", None)

    def register_forward_pre_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)`, or `hook(module, args, kwargs)`, before `forward`.

        What it returns takes the place of the arguments: a value or tuple, with `with_kwargs` a pair (args, kwargs).
        """
        options = {"_forward_pre_hooks_with_kwargs": with_kwargs}
        return _add(self, self, "_forward_pre_hooks", hook, prepend, options)

    def register_forward_hook(
        self, hook: Callable, *, prepend: bool = False, with_kwargs: bool = False, always_call: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args, output)`, or `hook(module, args, kwargs, output)`, after `forward`.

        What it returns takes the place of the output. With `always_call` it is called even if `forward` raised.
        """
        options = {"_forward_hooks_with_kwargs": with_kwargs, "_forward_hooks_always_called": always_call}
        return _add(self, self, "_forward_hooks", hook, prepend, options)

    def register_full_backward_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` once the gradients of the outputs are known; it may return others."""
        return _add(self, self, "_backward_pre_hooks", hook, prepend)

    def register_full_backward_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` once the gradients of the inputs are known; it may return other
        gradients of the inputs. Only positional arguments that are tensors count as inputs; other places are None."""
        _set_kind(self, True, "on a single Module")
        return _add(self, self, "_backward_hooks", hook, prepend)

    def register_backward_hook(self, hook: Callable) -> RemovableHandle:
        """The older form of a backward hook: it sees the gradients of the last operation only.

        Use `register_full_backward_hook`.
        """
        _set_kind(self, False, "on a single Module")
        return _add(self, self, "_backward_hooks", hook)


def _add(
    owner: Hooks | _Every, flagged: Hooks | type, table: str, hook: Callable, prepend: bool = False,
    options: dict[str, bool] | None = None,
) -> RemovableHandle:
    """Put a hook into a table, note what it wants, and say that calls have to look for hooks."""
    wanted = [getattr(owner, name) for name, wants in (options or {}).items() if wants]
    hooks = getattr(owner, table)
    handle = RemovableHandle(hooks, extra_dict=wanted)
    hooks[handle.id] = hook
    for ids in wanted:
        ids[handle.id] = True
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    flagged._hooked = True
    return handle


def _set_kind(owner: Hooks | _Every, full: bool, where: str) -> None:
    """Note whether backward hooks are of the full or of the older kind; RuntimeError if both are wanted."""
    if owner._is_full_backward_hook is (not full):
        raise RuntimeError(
            f"Cannot use both regular backward hooks and full backward hooks {where}. Please use only one of them: "
            "register_full_backward_hook() for all."
        )
    owner._is_full_backward_hook = full


# --- hooks of every module -------------------------------------------------------------------------------------------


def _add_to_every(table: str, hook: Callable, options: dict[str, bool] | None = None) -> RemovableHandle:
    from pellucid.nn.modules.module import Module  # the class is made of this file's parts

    return _add(EVERY, Module, table, hook, options=options)


def register_module_forward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, args)` before `forward` of every module."""
    return _add_to_every("_forward_pre_hooks", hook)


def register_module_forward_hook(
    hook: Callable, *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call `hook(module, args, output)` after `forward` of every module; see `Module.register_forward_hook`."""
    options = {"_forward_hooks_with_kwargs": with_kwargs, "_forward_hooks_always_called": always_call}
    return _add_to_every("_forward_hooks", hook, options)


def register_module_full_backward_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, grad_output)` for every module; see `Module.register_full_backward_pre_hook`."""
    return _add_to_every("_backward_pre_hooks", hook)


def register_module_full_backward_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, grad_input, grad_output)` for every module; see `Module.register_full_backward_hook`."""
    _set_kind(EVERY, True, "as a global Module hook")
    return _add_to_every("_backward_hooks", hook)


def register_module_backward_hook(hook: Callable) -> RemovableHandle:
    """The older form of `register_module_full_backward_hook`."""
    _set_kind(EVERY, False, "as a global Module hook")
    return _add_to_every("_backward_hooks", hook)


def _add_registration(hooks: dict, hook: Callable) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def register_module_parameter_registration_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, name, parameter)` before a parameter is registered; it may return another parameter."""
    return _add_registration(EVERY.parameter_registration, hook)


def register_module_buffer_registration_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, name, buffer)` before a buffer is registered; it may return another buffer."""
    return _add_registration(EVERY.buffer_registration, hook)


def register_module_module_registration_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(module, name, submodule)` before a submodule is registered; it may return another module."""
    return _add_registration(EVERY.module_registration, hook)


# --- the call --------------------------------------------------------------------------------------------------------


def call_with_hooks(module: Module, args: tuple, kwargs: dict) -> Any:
    """What calling a module does when hooks may be there."""
    if not _any_hooks(module):
        _settle(module)
        return module.forward(*args, **kwargs)
    call = _Call(module, args, kwargs)
    try:
        return call.run()
    except Exception:
        call.run_always_called()
        raise


def _any_hooks(module: Module) -> bool:
    return any(getattr(module, table) or getattr(EVERY, table) for table in CALL_TABLES)


def _settle(module: Module) -> None:
    """All hooks are gone: let calls be short again. A hook that another thread adds meanwhile is not lost."""
    module.__dict__.pop("_hooked", None)
    if any(getattr(module, table) for table in CALL_TABLES):
        module._hooked = True
    if type(module)._hooked and not any(getattr(EVERY, table) for table in CALL_TABLES):
        from pellucid.nn.modules.module import Module  # the class is made of this file's parts

        Module._hooked = False
        Module._hooked = any(getattr(EVERY, table) for table in CALL_TABLES)


class _Call:
    """One call of a module: the arguments and the result as hooks leave them."""

    def __init__(self, module: Module, args: tuple, kwargs: dict):
        self.module, self.args, self.kwargs = module, args, kwargs
        self.result: Any = None
        self.done: set[int] = set()  # forward hooks that have been called

    def run(self) -> Any:
        """Hooks, `forward`, hooks."""
        full, older, before = self._backward_hooks()
        self._run_pre_hooks()
        if full or before:
            boundary = Boundary(self.module, full, before)
            self.args = boundary.enter(self.args)
            try:
                self._forward()
                self.result = boundary.mark_outputs(self.result)
            finally:
                boundary.leave()
        else:
            self._forward()
        if older:
            register_on_grad_fn(self.module, older, self.args, self.result)
        return self.result

    def _forward(self) -> None:
        self.result = self.module.forward(*self.args, **self.kwargs)
        self._run_forward_hooks()

    def _backward_hooks(self) -> tuple[list, list, list]:
        """Full backward hooks, older backward hooks, and backward pre-hooks; those of every module come first."""
        full, older, before = [], [], []
        for owner in (EVERY, self.module):
            before += owner._backward_pre_hooks.values()
            if owner._is_full_backward_hook is not None:
                (full if owner._is_full_backward_hook else older).extend(owner._backward_hooks.values())
        return full, older, before

    def _run_pre_hooks(self) -> None:
        for hook_id, hook in (*EVERY._forward_pre_hooks.items(), *self.module._forward_pre_hooks.items()):
            if hook_id in self.module._forward_pre_hooks_with_kwargs:
                changed = hook(self.module, self.args, self.kwargs)
                if changed is None:
                    continue
                if not isinstance(changed, tuple) or len(changed) != 2:
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                    )
                self.args, self.kwargs = changed
            else:
                changed = hook(self.module, self.args)
                if changed is not None:
                    self.args = changed if isinstance(changed, tuple) else (changed,)

    def _forward_hooks(self) -> list[tuple[int, Callable, _Every | Module]]:
        return [(key, hook, owner) for owner in (EVERY, self.module) for key, hook in owner._forward_hooks.items()]

    def _run_forward_hooks(self) -> None:
        for hook_id, hook, owner in self._forward_hooks():
            self.done.add(hook_id)
            self._run_forward_hook(hook_id, hook, owner)

    def _run_forward_hook(self, hook_id: int, hook: Callable, owner: _Every | Module) -> None:
        arguments = (self.args, self.kwargs) if hook_id in owner._forward_hooks_with_kwargs else (self.args,)
        changed = hook(self.module, *arguments, self.result)
        if changed is not None:
            self.result = changed

    def run_always_called(self) -> None:
        """After an error: call the hooks that want to be called all the same, if they have not been."""
        for hook_id, hook, owner in self._forward_hooks():
            if hook_id not in owner._forward_hooks_always_called or hook_id in self.done:
                continue
            try:
                self._run_forward_hook(hook_id, hook, owner)
            except Exception as error:
                whose = "global module" if owner is EVERY else "module"
                warnings.warn(
                    f"{whose} forward hook with ``always_call=True`` raised an exception that was silenced as another "
                    f"error was raised in forward: {error}",
                    stacklevel=4,
                )
