"""`torch.cuda.amp`: the older names of `torch.amp` for GPUs. There is none here: they warn and do nothing."""

from __future__ import annotations

import warnings

from pellucid import amp
from pellucid.core.dtype import float16

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


def _deprecated(name: str, now: str = "('cuda', args...)") -> None:
    warnings.warn(
        f"`torch.cuda.amp.{name}(args...)` is deprecated. Please use `torch.amp.{name}{now}` instead.",
        category=FutureWarning,
        stacklevel=3,
    )


class autocast(amp.autocast):
    """`torch.amp.autocast("cuda", ...)`, which does nothing without a GPU."""

    def __init__(self, enabled: bool = True, dtype=float16, cache_enabled: bool = True):
        _deprecated("autocast")
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """`torch.amp.GradScaler("cuda", ...)`, which passes everything through without a GPU."""

    def __init__(self, init_scale: float = 65536.0, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True):  # fmt: skip
        _deprecated("GradScaler")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """`torch.amp.custom_fwd(..., device_type="cuda")`."""
    _deprecated("custom_fwd", now="(args..., device_type='cuda')")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd=None):
    """`torch.amp.custom_bwd(..., device_type="cuda")`."""
    _deprecated("custom_bwd", now="(args..., device_type='cuda')")
    return amp.custom_bwd(bwd, device_type="cuda")
