"""What the tests of checkpoints share: the two forms, functions that count or change, graphs to walk."""

import pytest
from library import torch

lib = torch.utils.checkpoint


def checkpoint(function, *args, **kwargs):
    """The form that needs no reentrant backward."""
    return lib.checkpoint(function, *args, use_reentrant=False, **kwargs)


def reentrant(function, *args, **kwargs):
    """The form that starts a backward of its own."""
    return lib.checkpoint(function, *args, use_reentrant=True, **kwargs)


FORMS = pytest.mark.parametrize("form", [checkpoint, reentrant], ids=["plain", "reentrant"])
EARLY_STOP = pytest.mark.parametrize("early_stop", [True, False], ids=["early stop", "to the end"])


class Counted:
    """A function that counts its calls."""

    def __init__(self, function):
        self.function, self.count = function, 0

    def __call__(self, *args):
        self.count += 1
        return self.function(*args)


def changing(first, later):
    """A function that is another one after its first call."""
    calls = []

    def function(x):
        calls.append(x)
        return first(x) if len(calls) == 1 else later(x)

    return function


def wave(x):
    """Three operators, each of which saves something."""
    return x.sin().exp().cos()


def save_four(x):
    """Saves four tensors: sines and cosines save their operands, exp its result."""
    return x.sin().exp().sin().cos()


def save_two(x):
    """Saves two tensors."""
    return x.sin().exp() * 2


class Mark:
    """Something that can be watched."""


def mark(node):
    """Something that lives as long as a node."""
    return node.metadata.setdefault("mark", Mark())


def nodes_of(tensor):
    """All nodes that a tensor's node leads to, itself included."""
    found, stack = [], [tensor.grad_fn]
    while stack:
        node = stack.pop()
        if node is not None and node not in found:
            found.append(node)
            stack.extend(child for child, _ in node.next_functions)
    return found
