"""`torch.cpu`: the CPU under the names that GPUs have."""

from __future__ import annotations

from pellucid.cpu import amp

__all__ = ["amp", "current_device", "device_count", "is_available", "set_device", "synchronize"]


def is_available() -> bool:
    """True."""
    return True


def device_count() -> int:
    """1."""
    return 1


def current_device() -> str:
    """The one device, "cpu"."""
    return "cpu"


def set_device(device) -> None:
    """There is one device only."""


def synchronize(device=None) -> None:
    """Nothing runs beside the program."""
