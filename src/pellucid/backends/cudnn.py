"""`torch.backends.cudnn`: not here."""

from __future__ import annotations


def is_available() -> bool:
    """False."""
    return False


def version() -> None:
    """No version."""


enabled = benchmark = deterministic = allow_tf32 = False  # programs assign these
