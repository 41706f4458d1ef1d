"""State dicts: what a module saves, and loading it back.

A load is all or nothing: `_load_from_state_dict` checks and *plans* the copies, `load_state_dict` carries the plan out
once every module has agreed. Writing to files is the business of `pellucid.io`.
"""

from __future__ import annotations

from collections import OrderedDict, namedtuple
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from pellucid.autograd.grad_mode import no_grad
from pellucid.autograd.hooks import RemovableHandle
from pellucid.core.tensor import Parameter, Tensor
from pellucid.nn.parameter import is_lazy

if TYPE_CHECKING:
    from collections.abc import Callable

    from pellucid.nn.modules.module import Module

__all__ = ["EXTRA_STATE", "State"]

EXTRA_STATE = "_extra_state"
PLAN = "plan"  # the key under which load_state_dict hands its Plan to the modules, in their local metadata


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What `load_state_dict` returns: keys that the module lacked in the state, and keys it did not know."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return super().__repr__()

    __str__ = __repr__


class _TakesModule:
    """A hook that is called with the module before the other arguments."""

    def __init__(self, hook: Callable):
        self.hook = hook


class Plan:
    """Copies that have been checked and not yet made."""

    def __init__(self):
        self.copies: list[tuple[Module, str, str, Tensor, bool]] = []

    def carry_out(self, error_msgs: list[str]) -> None:
        """Make the copies, in order, unless something is wrong already; a failure is added to the messages."""
        if error_msgs:
            return
        copies, self.copies = self.copies, []
        for module, name, key, value, assign in copies:
            _put(module, name, key, value, assign, error_msgs)


class State:
    """The part of `Module` that saves and loads."""

    _version = 1  # of the layout of the state; a subclass that changes its layout counts up

    # --- saving ------------------------------------------------------------------------------------------------------

    def get_extra_state(self) -> Any:
        """What to save beside parameters and buffers; a module with such state overrides this and `set_extra_state`."""
        raise RuntimeError(f"{type(self).__name__} has no extra state: override get_extra_state() to save some.")

    def set_extra_state(self, state: Any) -> None:
        """Take back what `get_extra_state` gave."""
        raise RuntimeError(f"{type(self).__name__} has no extra state: override set_extra_state() to load some.")

    def state_dict(self, *args, destination: dict | None = None, prefix: str = "", keep_vars: bool = False):
        """Parameters and persistent buffers of the whole tree by dotted name, sharing memory with the module.

        Args:
            destination: a dictionary to add to instead of a new one.
            prefix: put before every name.
            keep_vars: whether the values are the Parameter objects themselves, not detached tensors.

        Returns:
            An OrderedDict whose `_metadata` has the version of every module.
        """
        if args:  # an old way to call it
            destination, prefix, keep_vars = (*args, *(destination, prefix, keep_vars)[len(args) :])
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local_metadata = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local_metadata
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=prefix + name + ".", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            returned = hook(self, destination, prefix, local_metadata)
            if returned is None:
                continue
            if getattr(hook, "_from_public_api", False):
                kind = type(returned).__name__
                raise RuntimeError(f"state_dict post-hook must return None: {hook!r} returned {kind}")
            destination = returned
        return destination

    def _save_to_state_dict(self, destination: dict, prefix: str, keep_vars: bool) -> None:
        """Add this module's own state, without that of its children."""
        for name, value in (*self._parameters.items(), *self._persistent_buffers().items()):
            if value is not None:
                destination[prefix + name] = value if keep_vars else value.detach()
        if type(self).get_extra_state is not State.get_extra_state:
            destination[prefix + EXTRA_STATE] = self.get_extra_state()

    def _persistent_buffers(self) -> dict[str, Tensor | None]:
        """The buffers that are part of the state."""
        return {name: b for name, b in self._buffers.items() if name not in self._non_persistent_buffers_set}

    # --- loading -----------------------------------------------------------------------------------------------------

    def load_state_dict(self, state_dict: Mapping[str, Any], strict: bool = True, assign: bool = False):
        """Copy a state into this module and all below it. After an error nothing has changed.

        Args:
            state_dict: tensors by dotted name, as `state_dict()` gives them.
            strict: whether the names must be exactly those of this module.
            assign: take the tensors themselves instead of copying their values; a parameter's `requires_grad` stays.

        Returns:
            (missing_keys, unexpected_keys)

        Raises:
            TypeError: `state_dict` is no mapping.
            RuntimeError: names are missing or unexpected (under `strict`), or shapes differ; all are listed.
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        keys, error_msgs, plan = _IncompatibleKeys([], []), [], Plan()
        metadata = getattr(state_dict, "_metadata", None)
        state_dict = OrderedDict(state_dict)  # hooks may change it
        if metadata is not None:
            state_dict._metadata = metadata
        _load(self, state_dict, "", metadata or {}, {PLAN: plan, "assign_to_params_buffers": assign}, keys, error_msgs)
        messages = [*(_key_messages(keys) if strict else []), *error_msgs]
        plan.carry_out(messages)
        if messages:
            listed = "\n\t".join(messages)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}")
        return keys

    def _load_from_state_dict(
        self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
    ) -> None:
        """Load this module's own part of a state, without that of its children.

        Errors are added to the three lists, never raised. `local_metadata` is what `state_dict` noted of this module,
        its `version` above all.
        """
        for hook in self._load_state_dict_pre_hooks.values():
            takes_module = isinstance(hook, _TakesModule)
            lead, call = ((self,), hook.hook) if takes_module else ((), hook)
            call(*lead, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        plan = local_metadata.get(PLAN)
        direct = plan is None  # called by itself, not by load_state_dict
        plan = Plan() if direct else plan
        members = {**self._parameters, **self._persistent_buffers()}
        members = {name: value for name, value in members.items() if value is not None}
        for name, value in members.items():
            key = prefix + name
            if key in state_dict:
                given, error = _fitting(key, state_dict[key], value)
                if error:
                    error_msgs.append(error)
                else:
                    plan.copies.append((self, name, key, given, local_metadata.get("assign_to_params_buffers", False)))
            elif strict:
                missing_keys.append(key)
        self._load_extra_state(state_dict, prefix, strict, missing_keys, unexpected_keys)
        if strict:
            unexpected_keys += self._unknown(state_dict, prefix, members)
        if direct:
            plan.carry_out(error_msgs)

    _load_from_state_dict.planned = True

    def _load_extra_state(self, state_dict, prefix: str, strict: bool, missing_keys, unexpected_keys) -> None:
        """Hand the extra state, if there is one, to `set_extra_state`."""
        key = prefix + EXTRA_STATE
        if type(self).set_extra_state is not State.set_extra_state:
            if key in state_dict:
                self.set_extra_state(state_dict[key])
            elif strict:
                missing_keys.append(key)
        elif strict and key in state_dict:
            unexpected_keys.append(key)

    def _unknown(self, state_dict, prefix: str, members: dict) -> list[str]:
        """The keys of this module's part of a state for which there is neither a member nor a child."""
        unknown = []
        for key in state_dict:
            if key.startswith(prefix) and key != prefix + EXTRA_STATE:
                name, dot, _ = key[len(prefix) :].partition(".")
                if name not in (self._modules if dot else members):
                    unknown.append(key)
        return unknown

    # --- hooks -------------------------------------------------------------------------------------------------------

    def register_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before the state is taken."""
        return _register(self._state_dict_pre_hooks, hook)

    def register_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after the state is taken; it may change the dict."""
        hook._from_public_api = True
        return _register(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Callable) -> RemovableHandle:
        """The older form of a post-hook, which may return another dict."""
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return _register(self._state_dict_hooks, hook)

    def register_load_state_dict_pre_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)`
        before this module's part is loaded; it may change the dict and the lists."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def _register_load_state_dict_pre_hook(self, hook: Callable, with_module: bool = False) -> RemovableHandle:
        """The older form, which is not given the module unless `with_module`."""
        return _register(self._load_state_dict_pre_hooks, _TakesModule(hook) if with_module else hook)

    def register_load_state_dict_post_hook(self, hook: Callable) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after this module and its children are loaded; it may change the lists
        of keys in place, so as to allow what would be an error."""
        return _register(self._load_state_dict_post_hooks, hook)


def _register(hooks: dict, hook: Callable) -> RemovableHandle:
    """Add a hook and return its handle."""
    handle = RemovableHandle(hooks)
    hooks[handle.id] = hook
    return handle


def _load(module: Module, state_dict, prefix: str, metadata: dict, context: dict, keys, error_msgs: list[str]) -> None:
    """Load a module and all below it. User code that may look at the values gets to see them loaded."""
    plan = context[PLAN]
    local_metadata = {**metadata.get(prefix[:-1], {}), **context}
    if not context["assign_to_params_buffers"]:
        del local_metadata["assign_to_params_buffers"]
    module._load_from_state_dict(state_dict, prefix, local_metadata, True, *keys, error_msgs)
    if not getattr(type(module)._load_from_state_dict, "planned", False):
        plan.carry_out(error_msgs)
    for name, child in module._modules.items():
        if child is not None:
            start = prefix + name + "."
            part = OrderedDict((k, v) for k, v in state_dict.items() if k.startswith(start))
            _load(child, part, start, metadata, context, keys, error_msgs)
    for hook in module._load_state_dict_post_hooks.values():
        plan.carry_out(error_msgs)
        if hook(module, keys) is not None:
            raise AssertionError(
                "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new values, "
                "if "
                "incompatible_keys need to be modified, it should be done inplace."
            )


def _fitting(key: str, given: Any, value: Tensor) -> tuple[Any, str | None]:
    """What is to be copied into `value`, and the error if it does not fit."""
    if not isinstance(given, Tensor):
        return given, (
            f'While copying the parameter named "{key}", expected Tensor or Tensor-like object from checkpoint but '
            f"received {type(given)}"
        )
    if is_lazy(value):
        return given, None
    if not value.ndim and given.shape == (1,):  # states of very old programs keep numbers so
        given = given[0]
    if given.shape != value.shape:
        return given, (
            f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, "
            f"the shape in current model is {value.shape}."
        )
    return given, None


def _put(module: Module, name: str, key: str, given: Tensor, assign: bool, error_msgs: list[str]) -> None:
    """Copy one value into a member of a module, or make it the member."""
    value = getattr(module, name)
    try:
        with no_grad():
            if is_lazy(value):  # and so is what was given: there is nothing to copy
                pass
            elif not assign:
                value.copy_(given)
            elif isinstance(value, Parameter):
                setattr(module, name, _as_parameter(given, value.requires_grad))
            else:
                setattr(module, name, given)
    except Exception as error:
        error_msgs.append(
            f'While copying the parameter named "{key}", whose dimensions in the model are {value.shape} and whose '
            f"dimensions in the checkpoint are {given.shape}, an exception occurred : {error.args}."
        )


def _as_parameter(given: Tensor, requires_grad: bool) -> Parameter:
    """The given tensor as a parameter; itself if it is one."""
    if isinstance(given, Parameter):
        return given.requires_grad_(requires_grad)
    return Parameter(given, requires_grad=requires_grad)


def _key_messages(keys: _IncompatibleKeys) -> list[str]:
    """The lines that tell of missing and unexpected keys."""
    lines = []
    for what, names in (("Missing", keys.missing_keys), ("Unexpected", keys.unexpected_keys)):
        if names:
            lines.append("{} key(s) in state_dict: {}. ".format(what, ", ".join(f'"{name}"' for name in names)))
    return lines
