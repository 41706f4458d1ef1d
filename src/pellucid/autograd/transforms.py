"""Levels: what a running transform (forward mode, batching) is to the operators called inside it.

`modes.transforms` is the stack of levels that are open in this thread, innermost last. While there is one, an operator's
call goes to the innermost level, which handles it in terms of calls one level further out (`below`); with none left it is
an ordinary call. Reverse mode needs no level: a graph is a graph, whatever the tensors in it stand for.
"""

from __future__ import annotations

from pellucid.core.modes import modes

__all__ = ["Level", "below", "opened"]


class Level:
    """One open transform."""

    def call(self, op, values, out):
        """Call an operator whose operands may belong to this level."""
        raise NotImplementedError

    def inplace(self, op, tensor, values):
        """Call an operator and write its result into its first operand."""
        raise NotImplementedError

    def applied(self, cls, args):
        """Apply a custom Function: its results, and a context that its further methods can be given at this level."""
        raise NotImplementedError

    def close(self) -> None:
        """Let go of everything that belongs to the level."""


class _Stack:
    """A context in which another stack of levels is open."""

    __slots__ = ("before", "levels")

    def __init__(self, levels: tuple):
        self.levels = levels

    def __enter__(self):
        self.before = modes.transforms
        modes.transforms = self.levels
        modes.update()

    def __exit__(self, *exception):
        modes.transforms = self.before
        modes.update()


def below(level: Level) -> _Stack:
    """The context in which a level and those inside it are out of sight."""
    return _Stack(modes.transforms[: modes.transforms.index(level)])


class opened:
    """The context in which a new level is open; it is closed at the end."""

    def __init__(self, level: Level):
        self.level = level

    def __enter__(self):
        self.stack = _Stack((*modes.transforms, self.level))
        self.stack.__enter__()
        return self.level

    def __exit__(self, *exception):
        self.stack.__exit__(*exception)
        self.level.close()
