"""What may stand around the work of this thread: functions that see an operator, a Function or a node begin and end.

An observer in `modes.observers` hears of an operator's call when it is over; what stands in `modes.around` makes the
call itself, so that it knows how long it took, whether it failed, and what else ran within it. The profiler is built on
it. With nothing standing there, operators take the short road and the engine asks nothing.
"""

from __future__ import annotations

import functools
from enum import Enum

from pellucid.core.modes import modes

__all__ = ["Work", "standing", "surrounded"]


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


class standing:
    """A block in which `around(work, subject, arguments, call)` stands around calls; it returns what `call()` does."""

    def __init__(self, around):
        self.around = around

    def __enter__(self) -> None:
        modes.around = (*modes.around, self.around)
        modes.update()

    def __exit__(self, *exception) -> None:
        modes.around = tuple(a for a in modes.around if a is not self.around)
        modes.update()
