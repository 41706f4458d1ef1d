"""Reverse-mode differentiation: nodes, the engine, views and in-place history, modes, hooks, custom functions.

The public names are those of `torch.autograd`.
"""

from importlib import import_module as _import_module

from pellucid.autograd import graph
from pellucid.autograd import growth as _growth
from pellucid.autograd import leaves as _leaves
from pellucid.autograd.anomaly import detect_anomaly, is_anomaly_enabled, set_detect_anomaly
from pellucid.autograd.differentiate import backward, grad
from pellucid.autograd.function import Function
from pellucid.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_multithreading_enabled,
    no_grad,
    set_grad_enabled,
    set_multithreading_enabled,
)
from pellucid.autograd.gradcheck import gradcheck, gradgradcheck
from pellucid.autograd.graph import _unsafe_preserve_version_counter
from pellucid.autograd.saved_tensor import SavedTensor
from pellucid.autograd.variable import Variable

__all__ = [
    "Function",
    "SavedTensor",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_anomaly_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]


def __getattr__(name: str):
    if name in ("forward_ad", "functional", "profiler", "profiler_util"):
        return _import_module(f"pellucid.autograd.{name}")
    if name == "_profiler_enabled":
        return _import_module("pellucid.autograd.profiler")._profiler_enabled
    raise AttributeError(f"module 'pellucid.autograd' has no attribute {name!r}")
