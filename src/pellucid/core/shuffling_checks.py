"""Checks of images whose channels are rearranged."""

from __future__ import annotations

__all__ = ["check_images", "positive_factor"]


def positive_factor(name: str, what: str, value) -> int:
    """A factor as an int. Raises: TypeError (no integer), RuntimeError (not positive)."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{name}(): argument '{what}' must be int, not {type(value).__name__}")
    value = value.__index__()
    if value <= 0:
        raise RuntimeError(f"{name} expects a positive {what}, but got {value}")
    return value


def check_images(name: str, input) -> None:
    """Raise RuntimeError for fewer than three dimensions."""
    if input.ndim < 3:
        raise RuntimeError(f"{name} expects input to have at least 3 dimensions, but got input with {input.ndim} dimension(s): "
                           f"{list(input.shape)} is not [*, C, H, W]")
