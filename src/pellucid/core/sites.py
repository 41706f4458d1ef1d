"""Which line of the user's program did it: cheap to note, resolved only when somebody asks.

A site is `(code object, instruction offset)` of the first frame outside this library. Taking one costs a frame
look-up; it keeps the code object alive, never the frame, so no variable of the program lives longer for it.
"""

from __future__ import annotations

import linecache
import os
import re
import sys
from types import CodeType, FrameType
from typing import NamedTuple

from pellucid.core.language import say

__all__ = ["Site", "at", "caller", "outside"]

_ASSIGNMENT = re.compile(r"([A-Za-z_]\w*(?:\.\w+|\[[\w'\".-]+\])*) *(?::[^=]*|[-+*/@%&|^]|//|\*\*)?=(?!=)")
_ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


class _Outside(dict):
    """Whether a source file lies outside the library; asked once a file."""

    def __missing__(self, filename: str) -> bool:
        self[filename] = answer = not (filename.startswith(_ROOT) or filename.startswith("<pellucid"))
        return answer


outside = _Outside()


def caller(frame: FrameType | None) -> tuple[CodeType | None, int]:
    """Code and instruction of the first frame outside the library, from `frame` outwards."""
    while frame is not None:
        code = frame.f_code
        if outside[code.co_filename]:
            return code, frame.f_lasti
        frame = frame.f_back
    return None, 0


class Site(NamedTuple):
    """A line of the user's program."""

    file: str
    line: int
    function: str

    @classmethod
    def of(cls, code: CodeType | None, lasti: int) -> Site | None:
        """Resolve what `caller` returned; None where nothing was noted."""
        if code is None:
            return None
        positions = list(code.co_positions())
        line = positions[lasti // 2][0] if 0 <= lasti // 2 < len(positions) else None
        return cls(code.co_filename, line or code.co_firstlineno, code.co_qualname)

    @classmethod
    def here(cls) -> Site | None:
        """The line of the user's program that is running now."""
        return cls.of(*caller(sys._getframe(1)))

    @property
    def source(self) -> str:
        """The text of the line, without its indentation; empty where the file cannot be read."""
        return linecache.getline(self.file, self.line).strip()

    @property
    def target(self) -> str:
        """The name that the line assigns to; empty where it is no assignment to a single name."""
        found = _ASSIGNMENT.match(self.source)
        return found[1] if found else ""

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" + (f", `{self.source}`" if self.source else "")


def at(site: Site | None) -> str:
    """ " at FILE:LINE, `source`", for the end of a clause; empty where no line is known."""
    return say(" at {site}", site=site) if site else ""
