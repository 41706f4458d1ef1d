"""`torch.cuda.amp`: the older names of `torch.amp` for GPUs. There is none here: they warn and do nothing."""

from __future__ import annotations

from pellucid import amp
from pellucid.amp.older import deprecated
from pellucid.core.dtype import float16

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]


class autocast(amp.autocast):
    """`torch.amp.autocast("cuda", ...)`, which does nothing without a GPU."""

    def __init__(self, enabled: bool = True, dtype=float16, cache_enabled: bool = True):
        deprecated("`torch.cuda.amp.autocast(args...)`", "`torch.amp.autocast('cuda', args...)`")
        super().__init__("cuda", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """`torch.amp.GradScaler("cuda", ...)`, which passes everything through without a GPU."""

    def __init__(self, init_scale: float = 65536.0, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True):  # fmt: skip
        deprecated("`torch.cuda.amp.GradScaler(args...)`", "`torch.amp.GradScaler('cuda', args...)`")
        super().__init__("cuda", init_scale, growth_factor, backoff_factor, growth_interval, enabled)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """`torch.amp.custom_fwd(..., device_type="cuda")`."""
    deprecated("`torch.cuda.amp.custom_fwd(args...)`", "`torch.amp.custom_fwd(args..., device_type='cuda')`")
    return amp.custom_fwd(fwd, device_type="cuda", cast_inputs=cast_inputs)


def custom_bwd(bwd=None):
    """`torch.amp.custom_bwd(..., device_type="cuda")`."""
    deprecated("`torch.cuda.amp.custom_bwd(args...)`", "`torch.amp.custom_bwd(args..., device_type='cuda')`")
    return amp.custom_bwd(bwd, device_type="cuda")
