"""Looking at the variables of running functions without leaving a trace in them."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

from pellucid.core.sites import outside

__all__ = ["outer_frames", "variables"]

MOST_FRAMES = 30


def outer_frames(frame: FrameType | None) -> Iterator[FrameType]:
    """The frames outside the library from `frame` outwards, at most 30."""
    count = 0
    while frame is not None and count < MOST_FRAMES:
        if outside[frame.f_code.co_filename]:
            count += 1
            yield frame
        frame = frame.f_back


def variables(frame: FrameType) -> dict[str, Any]:
    """A copy of a frame's local variables that leaves nothing behind in the frame.

    Up to Python 3.12 asking a function's frame for its locals leaves a dictionary of them in the frame, where they
    live on after `del`. It is emptied again, unless the program itself holds it (the result of `locals()`).
    """
    local = frame.f_locals
    copy = dict(local)
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED and isinstance(local, dict) and sys.getrefcount(local) <= 3:
        local.clear()
    return copy
