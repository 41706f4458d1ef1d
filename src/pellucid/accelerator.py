"""`torch.accelerator`: there is none."""

from __future__ import annotations

__all__ = [
    "current_accelerator",
    "current_device_index",
    "device_count",
    "device_index",
    "is_available",
    "set_device_index",
    "synchronize",
]


def is_available() -> bool:
    """False."""
    return False


def current_accelerator(check_available: bool = False) -> None:
    """None: programs fall back to the CPU."""


def device_count() -> int:
    """0."""
    return 0


def _refuse(*args, **kwargs):
    """There is no accelerator to use."""
    raise RuntimeError(
        "No accelerator: this library computes on the CPU. Guard the call by torch.accelerator.is_available()."
    )


set_device_index = current_device_index = device_index = _refuse


def synchronize(device=None) -> None:
    """Nothing to wait for."""
