"""PyTorch's older names of the switches of autocast, one for each device type."""

from __future__ import annotations

import warnings

from pellucid.autograd.autocast import (
    get_autocast_dtype,
    is_autocast_enabled,
    set_autocast_dtype,
    set_autocast_enabled,
)

__all__ = [
    "deprecated",
    "get_autocast_cpu_dtype",
    "get_autocast_gpu_dtype",
    "is_autocast_cpu_enabled",
    "set_autocast_cpu_dtype",
    "set_autocast_cpu_enabled",
    "set_autocast_gpu_dtype",
]


def deprecated(old: str, now: str, category: type[Warning] = FutureWarning) -> None:
    """Warn the caller's caller that a name is old."""
    warnings.warn(f"{old} is deprecated. Please use {now} instead.", category, stacklevel=3)


def is_autocast_cpu_enabled() -> bool:
    """`is_autocast_enabled("cpu")`."""
    deprecated("torch.is_autocast_cpu_enabled()", "torch.is_autocast_enabled('cpu')", DeprecationWarning)
    return is_autocast_enabled("cpu")


def set_autocast_cpu_enabled(enabled: bool) -> None:
    """`set_autocast_enabled("cpu", enabled)`."""
    deprecated(
        "torch.set_autocast_cpu_enabled(enabled)", "torch.set_autocast_enabled('cpu', enabled)", DeprecationWarning
    )
    set_autocast_enabled("cpu", enabled)


def get_autocast_cpu_dtype():
    """`get_autocast_dtype("cpu")`."""
    deprecated("torch.get_autocast_cpu_dtype()", "torch.get_autocast_dtype('cpu')", DeprecationWarning)
    return get_autocast_dtype("cpu")


def set_autocast_cpu_dtype(dtype) -> None:
    """`set_autocast_dtype("cpu", dtype)`."""
    deprecated("torch.set_autocast_cpu_dtype(dtype)", "torch.set_autocast_dtype('cpu', dtype)", DeprecationWarning)
    set_autocast_dtype("cpu", dtype)


def get_autocast_gpu_dtype():
    """`get_autocast_dtype("cuda")`."""
    deprecated("torch.get_autocast_gpu_dtype()", "torch.get_autocast_dtype('cuda')", DeprecationWarning)
    return get_autocast_dtype("cuda")


def set_autocast_gpu_dtype(dtype) -> None:
    """`set_autocast_dtype("cuda", dtype)`."""
    deprecated("torch.set_autocast_gpu_dtype(dtype)", "torch.set_autocast_dtype('cuda', dtype)", DeprecationWarning)
    set_autocast_dtype("cuda", dtype)
