"""Modules without initial values."""

from __future__ import annotations

import inspect

from pellucid.core.random import get_rng_state, set_rng_state
from pellucid.nn.modules.module import Module

__all__ = ["skip_init"]


def skip_init(module_cls: type, *args, **kwargs) -> Module:
    """Make a module whose parameters and buffers have values as they come, and which draws no random numbers.

    Args:
        module_cls: a class of modules whose constructor takes `device`.
        *args, **kwargs: for the constructor.

    Raises:
        RuntimeError: it is no class of modules, or takes no `device`.
    """
    if not issubclass(module_cls, Module):
        raise RuntimeError(f"Expected a Module; got {module_cls}")
    if "device" not in inspect.signature(module_cls).parameters:
        raise RuntimeError("Module must support a 'device' arg to skip initialization")
    device = kwargs.pop("device", "cpu")
    before = get_rng_state()
    try:
        return module_cls(*args, device=device, **kwargs).to_empty(device=device)
    finally:
        set_rng_state(before)
