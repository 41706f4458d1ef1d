"""What is switched on in this thread: grad mode, inference mode, hooks on saved tensors, anomaly mode, observers.

`modes` is one thread-local object. Operators read a single attribute of it, `road`; everything that changes a switch
calls `modes.update()`, so that no switch is ever copied by value.
"""

from __future__ import annotations

import threading
from typing import Any

__all__ = ["GENERAL", "RECORD", "SILENT", "modes"]

GENERAL = 0  # something watches or transforms operators: take the road that asks about everything
SILENT = 1  # plain arithmetic, no graph
RECORD = 2  # plain arithmetic, with a graph


class Modes(threading.local):
    """The switches of one thread; class attributes are the defaults of a new thread."""

    road = RECORD
    grad_enabled = True
    inference = False
    saved_hooks: tuple = ()  # stack of (pack, unpack) pairs; the last is in force
    saved_hooks_disabled: str | None = None  # the message to raise, where hooks are forbidden
    anomaly: bool | str = False  # "nan": also look for NaN
    mutation: Any = None  # what allow_mutation_on_saved_tensors keeps; see autograd/mutation.py
    multithreading = True  # PyTorch's switch; backward runs in the calling thread either way
    observers: tuple = ()  # called after each operator's call, with (operator, operands, arguments as used, results)
    around: tuple = ()  # each stands around what operators, Functions and nodes do; see autograd/around.py
    autocast: Any = None  # casts an operator's operands while an autocast block is open; see autograd/autocast.py
    compute: Any = None  # stands in for Operator.data: gives an operator's results and its arguments as used
    execution_group: Any = None  # backwards that share what checkpoints recompute; see utils/checkpoint
    overriding: tuple = ()  # classes whose __torch_function__ is running
    transforms: tuple = ()  # levels of forward-mode and batching, innermost last
    apart: Any = False  # whether even the plainest backward must ask for transforms or anomaly mode

    def update(self) -> None:
        """Derive the road from the switches."""
        watched = self.observers or self.around or self.compute or self.autocast
        if watched or self.inference or self.saved_hooks or self.saved_hooks_disabled or self.transforms:
            self.road = GENERAL
        else:
            self.road = RECORD if self.grad_enabled else SILENT
        self.apart = self.transforms or self.anomaly


modes = Modes()
