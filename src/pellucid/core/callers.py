"""What warnings and error texts say of the program that called: its line, and its names for things.

Where a line is noted for later is `sites.py`; names of everything in a graph are found in `pellucid.graph`.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from pellucid.core.frames import outer_frames, variables
from pellucid.core.sites import outside

__all__ = ["variable_of", "warn_caller"]


def warn_caller(message: str, category: type[Warning] = UserWarning) -> None:
    """Warn as of the line of the program that is running now, however deep in the library the cause was seen."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and not outside[frame.f_code.co_filename]:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def variable_of(value: Any) -> str:
    """The variable that holds an object in a running function of the program, nearest first; empty if none does.

    Only names that a reader knows: none that begin with an underscore, none that a tool has made.
    """
    for frame in outer_frames(sys._getframe(1)):
        for scope in (variables(frame), frame.f_globals):
            for name, held in list(scope.items()):
                if held is value and name.isidentifier() and not name.startswith("_"):
                    return name
    return ""
