"""The base of every optimizer: parameter groups, state, hooks, saving and loading.

No update rule lives here: `elementwise.py` runs the rules that treat each element alone, and one file a family declares
them. Learning rates over time are in `lr_scheduler/`.
"""

from __future__ import annotations

import copy
import functools
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import numpy as np

from pellucid.autograd.grad_mode import enable_grad
from pellucid.autograd.hooks import Hooks, RemovableHandle
from pellucid.core.callers import warn_caller
from pellucid.core.language import message, say, template
from pellucid.core.sites import caller
from pellucid.core.tensor import Tensor, wrap

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook", "required"]


class _Required:
    """Stands in `defaults` for an option that every group has to give."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _Required()

_global_pre_hooks = Hooks()
_global_post_hooks = Hooks()


def register_optimizer_step_pre_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before each step of every optimizer.

    The hook may return None or a new `(args, kwargs)`. Returns a handle; its `remove()` takes the hook back.
    """
    return _register(_global_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after each step of every optimizer; the handle's `remove()` ends that."""
    return _register(_global_post_hooks, hook)


def _register(hooks: Hooks, hook: Callable, prepend: bool = False) -> RemovableHandle:
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _with_hooks(step: Callable) -> Callable:
    """Wrap a class's `step` so that hooks run around it and schedules learn that the optimizer moved.

    A `step` that calls its parent's `step` counts once: only the outermost call runs the hooks.
    """

    @functools.wraps(step)
    def stepped(self, *args, **kwargs):
        if self._stepping:
            return step(self, *args, **kwargs)
        self._stepping = True
        try:
            if self._step_pre_hooks or _global_pre_hooks:
                args, kwargs = self._run_pre_hooks(step, args, kwargs)
            result = step(self, *args, **kwargs)
            if self._step_post_hooks or _global_post_hooks:
                for hook in (*self._step_post_hooks.values(), *_global_post_hooks.values()):
                    hook(self, args, kwargs)
        finally:
            self._stepping = False
        if self._opt_called is False:
            self._opt_called = True
        self._loaded_rates = None
        return result

    stepped.hooked = True
    return stepped


class Optimizer:
    """Base class of all optimizers. A subclass gives its options' defaults and a `step`.

    Args:
        params: the tensors to optimize, or `(name, tensor)` pairs as `named_parameters()` gives them, or dicts, one a
            parameter group, whose "params" entry is such an iterable and whose other entries override the defaults.
        defaults: options of groups that do not give their own; `required` marks one that has no default.

    Attributes:
        param_groups: list of dicts; "params" holds the tensors, the rest are the group's options.
        state: what the optimizer remembers of each parameter, a dict keyed by parameter.
        defaults: as given.

    Raises:
        TypeError: `params` is a tensor, a set, or holds something else than tensors.
        ValueError: no parameters, a non-leaf tensor, a parameter in two groups, a required option that is missing.
    """

    _opt_called: bool | None = None  # None: no schedule is attached; False: one is, and no step was taken since
    _loaded_rates: list[float] | None = None  # the rates that load_state_dict brought, until the next step
    _stepping = False
    _own_dtype: tuple[str, ...] = ("step",)  # state that keeps its precision, whatever the parameter's is

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        step = cls.__dict__.get("step")
        if callable(step) and not hasattr(step, "hooked"):
            cls.step = _with_hooks(step)

    def __init__(self, params: Iterable, defaults: dict[str, Any]):
        self.defaults = defaults
        self._make_hooks()
        if isinstance(params, Tensor):
            first = "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
            raise TypeError(message(first + _type_name(params), say("Pass [tensor] for a single one.")))
        self.state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = list(params)
        if not groups:
            once = say("Expected at least one tensor. An iterator, such as model.parameters(), can be used only once.")
            raise ValueError(message("optimizer got an empty parameter list", once))
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    def _make_hooks(self) -> None:
        self._step_pre_hooks, self._step_post_hooks = Hooks(), Hooks()
        self._state_dict_pre_hooks, self._state_dict_post_hooks = Hooks(), Hooks()
        self._load_state_dict_pre_hooks, self._load_state_dict_post_hooks = Hooks(), Hooks()

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if "_step_pre_hooks" not in self.__dict__:
            self._make_hooks()

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"Parameter Group {number}")
            lines += [f"    {key}: {group[key]}" for key in sorted(group) if key != "params"]
        return "\n".join(lines) + "\n)"

    # --- groups ------------------------------------------------------------------------------------------------------

    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add a group of parameters, for instance layers that are to be trained from now on.

        Args:
            param_group: "params" as in the constructor; other entries are options, filled up from the defaults.

        Raises:
            TypeError, ValueError: as the constructor. The optimizer is as before then.
        """
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params, names = _split_names(param_group["params"])
        for param in params:
            self._check_param(param)
        for name, default in self.defaults.items():
            if default is required and name not in param_group:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
        if len(set(params)) != len(params):
            first = "optimizer contains a parameter group with duplicate parameters; in future, this will cause an error"
            text = template(
                "It has {entries} entries and {tensors} different tensors: a tensor that stands there twice is updated "
                "twice a step."
            )
            warn_caller(message(first, say(text, entries=len(params), tensors=len(set(params)))))
        self._check_other_groups(params, names)
        param_group["params"] = params
        if names:
            param_group["param_names"] = names
        for name, default in self.defaults.items():
            param_group.setdefault(name, default)
        self.param_groups.append(param_group)

    def _check_param(self, param) -> None:
        if not isinstance(param, Tensor):
            raise TypeError(f"optimizer can only optimize Tensors, but one of the params is {_type_name(param)}")
        if param._edge is not None and not (param.is_leaf or param.retains_grad):
            text = template(
                "One of shape {shape} is a result of {operation}. Optimize the tensors it was computed from, or its "
                "detach().requires_grad_()."
            )
            explanation = say(text, shape=tuple(param._array.shape), operation=param.grad_fn.name())
            raise ValueError(message("can't optimize a non-leaf Tensor", explanation))

    def _check_other_groups(self, params: list[Tensor], names: list[str]) -> None:
        for group in self.param_groups:
            if ("param_names" in group) != bool(names):
                raise ValueError(
                    "all optimizer param groups should be with/without names. cannot add param group "
                    f"{'with names' if names else 'without names'} to the optimizer"
                )
            twice = set(params).intersection(group["params"])
            if twice:
                raise ValueError(
                    "some parameters appear in more than one parameter group: "
                    f"{len(twice)} of them, the first of shape {tuple(next(iter(twice))._array.shape)}"
                )

    # --- stepping ----------------------------------------------------------------------------------------------------

    def step(self, closure: Callable | None = None):
        """Update every parameter that has a gradient.

        Args:
            closure: clears the gradients, computes the loss, calls `backward` and returns the loss; run with grad mode
                on. Optional for most optimizers.

        Returns:
            What the closure returned, or None.
        """
        raise NotImplementedError(f"{type(self).__name__} has to define step()")

    def _run_pre_hooks(self, step: Callable, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
        for hook in (*_global_pre_hooks.values(), *self._step_pre_hooks.values()):
            result = hook(self, args, kwargs)
            if result is None:
                continue
            if not (isinstance(result, tuple) and len(result) == 2):
                raise RuntimeError(f"{step} must return None or a tuple of (new_args, new_kwargs), but got {result}.")
            args, kwargs = result
        return args, kwargs

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters.

        Args:
            set_to_none: drop them, so that a parameter without a new gradient is left alone by `step`. If False they
                are filled with zeros, which momentum and weight decay do act on.
        """
        line = caller(sys._getframe(1))
        for group in self.param_groups:
            for param in group["params"]:
                grad = param._grad
                if grad is None:
                    continue
                if set_to_none:
                    param._drop_grad(line)
                    continue
                if grad._edge is not None:
                    grad.detach_()
                else:
                    grad.requires_grad_(False)
                grad.zero_()

    # --- hooks -------------------------------------------------------------------------------------------------------

    def register_step_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before each step; it may return None or a new `(args, kwargs)`."""
        return _register(self._step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after each step."""
        return _register(self._step_post_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before `state_dict` looks at anything."""
        return _register(self._state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` with the made state; what it returns, if not None, takes its place."""
        return _register(self._state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before loading; what it returns, if not None, is loaded instead."""
        return _register(self._load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable, prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after loading."""
        return _register(self._load_state_dict_post_hooks, hook, prepend)

    # --- saving and loading ------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything needed to go on later, in PyTorch's layout.

        Returns:
            "state": what is remembered of each parameter, by the parameter's number; "param_groups": the options of
            each group, its "params" being such numbers. Tensors are the live ones, not copies.
        """
        for hook in self._state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups, start = [], 0
        for group in self.param_groups:
            for position, param in enumerate(group["params"], start):
                numbers.setdefault(id(param), position)
            start += len(group["params"])
            packed = {key: value for key, value in group.items() if key != "params"}
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            groups.append(packed)
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        result = {"state": state, "param_groups": groups}
        for hook in self._state_dict_post_hooks.values():
            replaced = hook(self, result)
            result = result if replaced is None else replaced
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state that `state_dict` returned, from here or from PyTorch.

        Groups and parameters are matched by position. Tensors are copied and brought to the parameter's dtype.

        Raises:
            ValueError: another number of groups, another number of parameters in a group, or the state of another kind
                of optimizer. The optimizer is as before then.
        """
        state_dict = state_dict.copy()
        for hook in self._load_state_dict_pre_hooks.values():
            replaced = hook(self, state_dict)
            state_dict = state_dict if replaced is None else replaced
        saved_groups = copy.deepcopy(state_dict["param_groups"])
        self._check_sizes(saved_groups)
        self._check_kind(saved_groups, state_dict["state"])
        params = chain.from_iterable(group["params"] for group in self.param_groups)
        by_number = dict(zip(chain.from_iterable(group["params"] for group in saved_groups), params, strict=True))
        state: defaultdict[Any, dict[str, Any]] = defaultdict(dict)
        for number, value in state_dict["state"].items():
            if number in by_number:
                state[by_number[number]] = _copied(value, by_number[number], self._own_dtype)
            else:
                state[number] = value
        groups = [_merged(mine, saved) for mine, saved in zip(self.param_groups, saved_groups, strict=True)]
        self.__setstate__({"state": state, "param_groups": groups})
        self._loaded_rates = [float(group["lr"]) for group in groups] if all("lr" in g for g in groups) else None
        for hook in self._load_state_dict_post_hooks.values():
            hook(self)

    def _check_sizes(self, saved_groups: list[dict]) -> None:
        if len(saved_groups) != len(self.param_groups):
            raise ValueError(
                "loaded state dict has a different number of parameter groups: "
                f"expected {len(self.param_groups)}, got {len(saved_groups)}"
            )
        for number, (mine, saved) in enumerate(zip(self.param_groups, saved_groups, strict=True)):
            if len(mine["params"]) != len(saved["params"]):
                raise ValueError(
                    "loaded state dict contains a parameter group that doesn't match the size of optimizer's group: "
                    f"group {number} has {len(mine['params'])} parameters, the loaded one {len(saved['params'])}"
                )

    def _check_kind(self, saved_groups: list[dict], saved_states: dict) -> None:
        """Refuse the state of another kind of optimizer; a subclass that knows its options overrides this."""


def evaluate(closure: Callable | None):
    """Run a step's closure with grad mode on; None without one."""
    if closure is None:
        return None
    with enable_grad():
        return closure()


def _split_names(params) -> tuple[list, list[str]]:
    """The tensors of a group's "params" entry, and their names where it holds `(name, tensor)` pairs."""
    if isinstance(params, Tensor):
        return [params], []
    if isinstance(params, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    entries = list(params)
    named = [entry for entry in entries if isinstance(entry, tuple)]
    if not named:
        return entries, []
    if len(named) != len(entries):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    return [entry[1] for entry in entries], [entry[0] for entry in entries]


def _merged(mine: dict, saved: dict) -> dict:
    """A saved group with this optimizer's tensors in it."""
    saved["params"] = mine["params"]
    if "param_names" in mine:
        saved.setdefault("param_names", mine["param_names"])
    return saved


def _copied(value, param: Tensor, own_dtype: tuple[str, ...], key=None):
    """A copy of saved state, its tensors in the dtype of their parameter except those named in `own_dtype`."""
    if isinstance(value, Tensor):
        kind = value._array.dtype
        if key not in own_dtype and param.is_floating_point():
            kind = param._array.dtype
        return wrap(np.array(value._array, kind, order="K"))
    if isinstance(value, dict):
        return {name: _copied(item, param, own_dtype, name) for name, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_copied(item, param, own_dtype) for item in value)
    return value


def _type_name(value) -> str:
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
