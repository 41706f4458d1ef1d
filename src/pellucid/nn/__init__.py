"""Building models: modules, parameters, initial values, functions; the names of `torch.nn`."""

from pellucid.nn import functional, init, modules, parallel, parameter, utils
from pellucid.nn.modules import *  # noqa: F403 (the names in modules.__all__)
from pellucid.nn.parallel import DataParallel
from pellucid.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    *modules.__all__, "Buffer", "DataParallel", "Parameter", "UninitializedBuffer", "UninitializedParameter",
    "functional",
    "init", "modules", "parallel", "parameter", "utils",
]
