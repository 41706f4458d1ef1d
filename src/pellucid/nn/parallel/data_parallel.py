"""`DataParallel`: on a CPU there is one device, and so nothing to divide."""

from __future__ import annotations

from typing import Any

from pellucid.nn.modules.module import Module

__all__ = ["DataParallel", "data_parallel"]


class DataParallel(Module):
    """A module that calls another; its state has the names of the other under "module.".

    Args:
        module: the module to call.
        device_ids, output_device, dim: kept, with no effect.
    """

    def __init__(self, module: Module, device_ids: Any = None, output_device: Any = None, dim: int = 0):
        super().__init__()
        self.module = module
        self.device_ids = []
        self.output_device = output_device
        self.dim = dim

    def forward(self, *inputs, **kwargs):
        """Call the module."""
        return self.module(*inputs, **kwargs)


def data_parallel(
    module: Module, inputs: Any, device_ids: Any = None, output_device: Any = None, dim: int = 0,
    module_kwargs: dict | None = None,
) -> Any:
    """Call the module; inputs are a tuple of arguments, or one argument."""
    arguments = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*arguments, **(module_kwargs or {}))
