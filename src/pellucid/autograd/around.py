"""What may stand around the work of this thread: functions that see an operator, a Function or a node begin and end.

An observer in `modes.observers` hears of an operator's call when it is over; what stands in `modes.around` makes the
call itself, so that it knows how long it took, whether it failed, and what else ran within it. The profiler is built on
it. With nothing standing there, operators take the short road and the engine asks nothing.
"""

from __future__ import annotations

import functools
from enum import Enum

from pellucid.core.modes import modes

__all__ = ["Work", "observing", "standing", "surrounded"]


class Work(Enum):
    """What is being done."""

    OPERATOR = 0  # an operator computes and is recorded
    IN_PLACE = 1  # an operator writes into its first operand
    FUNCTION = 2  # the forward of a custom Function
    NODE = 3  # the derivative of one node
    LEAF = 4  # a gradient is added to `.grad`


def surrounded(work: Work, subject, arguments: tuple, call):
    """Make a call inside all that stands around calls, and return what it returned.

    Args:
        work: what is being done.
        subject: the operator, Function class, node, or leaf.
        arguments: what the operator or Function was called with, the gradient that the node or leaf got.
        call: does the work; takes no arguments.
    """
    for around in reversed(modes.around):
        call = functools.partial(around, work, subject, arguments, call)
    return call()


class _Listed:
    """A block in which something is listed in one of the switches, last. Blocks may end in any order."""

    switch: str

    def __init__(self, member):
        self.member = member

    def __enter__(self) -> None:
        setattr(modes, self.switch, (*getattr(modes, self.switch), self.member))
        modes.update()

    def __exit__(self, *exception) -> None:
        setattr(modes, self.switch, tuple(m for m in getattr(modes, self.switch) if m is not self.member))
        modes.update()


class standing(_Listed):
    """A block in which `around(work, subject, arguments, call)` stands around calls; it returns what `call()` does."""

    switch = "around"


class observing(_Listed):
    """A block in which `observer(operator, operands, arguments as used, results)` is called after each operator."""

    switch = "observers"
