"""`torch.jit`: annotations that change nothing here."""

from __future__ import annotations

from pellucid.compiler import script

__all__ = ["export", "ignore", "is_scripting", "is_tracing", "script", "unused"]


def is_scripting() -> bool:
    """False."""
    return False


is_tracing = is_scripting


def ignore(drop=False, **kwargs):
    """The function itself, with or without arguments."""
    return drop if callable(drop) else lambda function: function


def unused(fn):
    """The function itself."""
    return fn


export = unused
