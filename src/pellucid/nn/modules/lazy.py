"""Modules that learn their sizes from the first input."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pellucid.nn.parameter import is_lazy

if TYPE_CHECKING:
    from pellucid.nn.modules.module import Module

__all__ = ["LazyModuleMixin"]


class LazyModuleMixin:
    """To be put before a Module in the bases of a class whose parameters are uninitialized until the first call.

    A subclass defines `initialize_parameters(*args)`, which materializes them, and may name in `cls_to_become` the
    class that the module then turns into. To initialize a model, call it once before the optimizer is made.
    """

    cls_to_become: type[Module] | None = None

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self._register_load_state_dict_pre_hook(_materialize_for_load, with_module=True)
        self.register_forward_pre_hook(_initialize, with_kwargs=True)

    def initialize_parameters(self, *args, **kwargs) -> None:
        """Materialize the parameters; `args` are those of the call."""
        raise NotImplementedError(f"initialize_parameters is not implemented for {type(self).__name__}")

    def has_uninitialized_params(self) -> bool:
        """Whether some parameter or buffer has no shape yet."""
        return any(is_lazy(value) for value in (*self._parameters.values(), *self._buffers.values()))

    def _replicate_for_data_parallel(self):
        raise RuntimeError(
            "Modules with uninitialized parameters can't be used with `DataParallel`. Run a dummy forward pass to "
            "correctly "
            "initialize the modules"
        )


def _initialize(module, args: tuple, kwargs: dict) -> None:
    """The forward pre-hook: initialize the parameters, and be a lazy module no longer."""
    module.initialize_parameters(*args, **kwargs)
    if module.has_uninitialized_params():
        raise RuntimeError(
            f"module {type(module).__name__} has not been fully initialized: initialize_parameters() left parameters "
            "without a shape"
        )
    for key, hook in list(module._forward_pre_hooks.items()):  # not by a handle: that of a copy leads to the original
        if hook is _initialize:
            del module._forward_pre_hooks[key], module._forward_pre_hooks_with_kwargs[key]
    if module.cls_to_become is not None:
        module.__class__ = module.cls_to_become


def _materialize_for_load(module, state_dict, prefix: str, *_) -> None:
    """The hook before a state is loaded: give parameters without a shape the one they have in the state."""
    for name, value in (*module._parameters.items(), *module._buffers.items()):
        given = state_dict.get(prefix + name)
        if is_lazy(value) and given is not None and not is_lazy(given):
            value.materialize(given.shape)
