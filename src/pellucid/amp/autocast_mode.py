"""Autocast around custom functions: `custom_fwd` and `custom_bwd`. The block itself is in `autograd/autocast.py`."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping

import numpy as np

from pellucid.autograd.autocast import autocast, get_autocast_dtype, is_autocast_available, is_autocast_enabled
from pellucid.core.dtype import float64
from pellucid.core.tensor import Tensor

__all__ = ["autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]


def _check_device_type(device_type) -> None:
    if not isinstance(device_type, str):
        raise ValueError(f"Expected `device_type` of type `str`, got: `{type(device_type)}`")


def custom_fwd(fwd=None, *, device_type: str, cast_inputs=None):
    """Decorate the `forward` of an `autograd.Function` that is used under autocast.

    Args:
        fwd: the method; a decorator comes back without it.
        device_type: "cpu" or "cuda".
        cast_inputs: inside a block, cast floating-point inputs (but float64) to this dtype and run without autocast; with
            None, run as the block has it.

    Raises:
        ValueError: `device_type` is not a str.
    """
    _check_device_type(device_type)
    if fwd is None:
        return functools.partial(custom_fwd, device_type=device_type, cast_inputs=cast_inputs)

    @functools.wraps(fwd)
    def decorated(ctx, *args, **kwargs):
        inside = is_autocast_enabled(device_type)
        ctx._dtype = get_autocast_dtype(device_type)
        ctx._fwd_used_autocast = inside and cast_inputs is None
        if not inside or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)
        with autocast(device_type, enabled=False):
            return fwd(ctx, *_cast(args, device_type, cast_inputs), **_cast(kwargs, device_type, cast_inputs))

    return decorated


def custom_bwd(bwd=None, *, device_type: str):
    """Decorate the `backward` of an `autograd.Function` whose `forward` has `custom_fwd`: it runs under the same autocast.

    Args:
        bwd: the method; a decorator comes back without it.
        device_type: "cpu" or "cuda".

    Raises:
        ValueError: `device_type` is not a str.
    """
    _check_device_type(device_type)
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def decorated(ctx, *args, **kwargs):
        with autocast(device_type, dtype=ctx._dtype, enabled=ctx._fwd_used_autocast):
            return bwd(ctx, *args, **kwargs)

    return decorated


def _cast(value, device_type: str, dtype):
    """Floating-point tensors in a dtype, inside of containers too; float64 and all else as it is."""
    if isinstance(value, Tensor):
        castable = value.is_floating_point() and value.dtype is not float64 and value.device.type == device_type
        return value.to(dtype) if castable else value
    if isinstance(value, (str, bytes, np.ndarray)) or not isinstance(value, Iterable):
        return value
    if isinstance(value, Mapping):
        return {_cast(k, device_type, dtype): _cast(v, device_type, dtype) for k, v in value.items()}
    made = (_cast(v, device_type, dtype) for v in value)
    return type(value)(made) if isinstance(value, (list, tuple)) else made
