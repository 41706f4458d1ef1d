"""`torch.cpu.amp`: the older names of `torch.amp` for the CPU."""

from __future__ import annotations

from pellucid import amp
from pellucid.amp.older import deprecated
from pellucid.core.dtype import bfloat16

__all__ = ["GradScaler", "autocast"]


class autocast(amp.autocast):
    """`torch.amp.autocast("cpu", ...)`."""

    def __init__(self, enabled: bool = True, dtype=bfloat16, cache_enabled: bool = True):
        deprecated("`torch.cpu.amp.autocast(args...)`", "`torch.amp.autocast('cpu', args...)`")
        super().__init__("cpu", dtype=dtype, enabled=enabled, cache_enabled=cache_enabled)


class GradScaler(amp.GradScaler):
    """`torch.amp.GradScaler("cpu", ...)`."""

    def __init__(self, init_scale: float = 65536.0, growth_factor: float = 2.0, backoff_factor: float = 0.5,
                 growth_interval: int = 2000, enabled: bool = True):  # fmt: skip
        deprecated("`torch.cpu.amp.GradScaler(args...)`", "`torch.amp.GradScaler('cpu', args...)`")
        super().__init__("cpu", init_scale, growth_factor, backoff_factor, growth_interval, enabled)
