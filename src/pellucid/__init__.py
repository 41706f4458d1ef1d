"""Pellucid: PyTorch's define-by-run autograd as readable Python, with a graph you can see and question.

`import pellucid as torch` runs PyTorch programs. This file holds names and nothing else; submodules load when
first named.
"""

from importlib import import_module as _import_module
from math import e, inf, nan, pi

from pellucid import autograd, functions, ops
from pellucid.autograd.anomaly import is_anomaly_check_nan_enabled, is_anomaly_enabled
from pellucid.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from pellucid.autograd.registry import PUBLIC as _PUBLIC
from pellucid.compiler import compile
from pellucid.core.device import device
from pellucid.core.dtype import (
    bfloat16,
    bool,
    can_cast,
    cdouble,
    cfloat,
    complex64,
    complex128,
    double,
    dtype,
    float16,
    float32,
    float64,
    get_default_dtype,
    half,
    int8,
    int16,
    int32,
    int64,
    long,
    promote_types,
    result_type,
    set_default_dtype,
    short,
    uint8,
)
from pellucid.core.dtype import float32 as float
from pellucid.core.dtype import int32 as int
from pellucid.core.memory_format import channels_last, contiguous_format, preserve_format
from pellucid.core.printing import get_printoptions, set_printoptions
from pellucid.core.size import Size
from pellucid.core.tensor import Tensor, strided
from pellucid.threads import get_num_interop_threads, get_num_threads, set_num_interop_threads, set_num_threads
from pellucid.version import __version__

_SUBMODULES = (
    "accelerator",
    "amp",
    "backends",
    "cpu",
    "cuda",
    "distributed",
    "distributions",
    "fft",
    "func",
    "graph",
    "io",
    "jit",
    "linalg",
    "masked",
    "multiprocessing",
    "nn",
    "optim",
    "profiler",
    "serialization",
    "signal",
    "special",
    "utils",
    "version",
)
_ELSEWHERE = {
    "Generator": "pellucid.core.random",
    "GradScaler": "pellucid.amp",
    "autocast": "pellucid.amp",
    "default_generator": "pellucid.core.random",
    "save": "pellucid.io",
    "vmap": "pellucid.func",
    "load": "pellucid.io",
    "finfo": "pellucid.core.limits",
    "iinfo": "pellucid.core.limits",
    "autocast_decrement_nesting": "pellucid.autograd.autocast",
    "autocast_increment_nesting": "pellucid.autograd.autocast",
    "clear_autocast_cache": "pellucid.autograd.autocast",
    "get_autocast_cpu_dtype": "pellucid.amp.older",
    "get_autocast_dtype": "pellucid.autograd.autocast",
    "get_autocast_gpu_dtype": "pellucid.amp.older",
    "is_autocast_cache_enabled": "pellucid.autograd.autocast",
    "is_autocast_cpu_enabled": "pellucid.amp.older",
    "is_autocast_enabled": "pellucid.autograd.autocast",
    "set_autocast_cache_enabled": "pellucid.autograd.autocast",
    "set_autocast_cpu_dtype": "pellucid.amp.older",
    "set_autocast_cpu_enabled": "pellucid.amp.older",
    "set_autocast_dtype": "pellucid.autograd.autocast",
    "set_autocast_enabled": "pellucid.autograd.autocast",
    "set_autocast_gpu_dtype": "pellucid.amp.older",
}


def __getattr__(name: str):
    if name in _SUBMODULES:
        return _import_module(f"pellucid.{name}")
    if name in _ELSEWHERE:
        found = globals()[name] = getattr(_import_module(_ELSEWHERE[name]), name)
        return found
    if name in _PUBLIC["torch"]:
        found = globals()[name] = _PUBLIC["torch"][name]
        return found
    if name == "__all__":
        return [each for each in __dir__() if not each.startswith("_")]
    raise AttributeError(f"module 'pellucid' has no attribute {name!r}")


def __dir__():
    return sorted({*globals(), *_SUBMODULES, *_ELSEWHERE, *_PUBLIC["torch"].names()})
