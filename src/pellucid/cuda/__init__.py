"""`torch.cuda` on a machine without one: queries answer, waiting and freeing do nothing, use is refused."""

from __future__ import annotations

from pellucid.cuda import amp

__all__ = ["amp", "current_device", "device_count", "empty_cache", "get_device_name", "init", "is_available",
           "is_bf16_supported", "is_initialized", "manual_seed", "manual_seed_all", "max_memory_allocated",
           "memory_allocated", "memory_reserved", "reset_peak_memory_stats", "set_device", "synchronize"]


def is_available() -> bool:
    """False."""
    return False


def is_initialized() -> bool:
    """False."""
    return False


def is_bf16_supported(including_emulation: bool = True) -> bool:
    """False."""
    return False


def device_count() -> int:
    """0."""
    return 0


def _refuse(*args, **kwargs):
    """There is no GPU to use."""
    raise RuntimeError(
        "Found no NVIDIA driver: this library computes on the CPU. Guard GPU code by torch.cuda.is_available(), "
        "which is False."
    )


set_device = current_device = get_device_name = init = _refuse


def synchronize(device=None) -> None:
    """Nothing to wait for."""


def empty_cache() -> None:
    """Nothing to free."""


def manual_seed(seed: int) -> None:
    """No GPU generator to seed."""


def manual_seed_all(seed: int) -> None:
    """No GPU generators to seed."""


def reset_peak_memory_stats(device=None) -> None:
    """Nothing was counted."""


def memory_allocated(device=None) -> int:
    """0 bytes."""
    return 0


memory_reserved = max_memory_allocated = memory_allocated
