"""What losses say of an input and a target of two shapes: which values meet which, on which line, and the way out."""

from __future__ import annotations

import math

import numpy as np

from pellucid.core.callers import variable_of, warn_caller
from pellucid.core.language import message, say, sentences
from pellucid.core.sites import Site
from pellucid.core.tensor import Tensor

__all__ = ["advice", "same_sizes", "warn_of_crossing"]


def same_sizes(input: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    """Both, broadcast to a common shape; with a warning if their shapes differ, RuntimeError if there is none."""
    a, b = input._array.shape, target._array.shape
    if a == b:
        return input, target
    first = (
        f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will likely "
        "lead to incorrect results due to broadcasting. Please ensure they have the same size."
    )
    warn_caller(message(first, advice(input, target)))
    shape = _common(a, b)
    if shape is None:
        back = next(d for d in range(1, min(len(a), len(b)) + 1) if a[-d] != b[-d] and 1 not in (a[-d], b[-d]))
        raise RuntimeError(
            f"The size of tensor a ({a[-back]}) must match the size of tensor b ({b[-back]}) at non-singleton dimension "
            f"{max(len(a), len(b)) - back}: the loss got input {list(a)} and target {list(b)}"
        )
    return input.expand(shape), target.expand(shape)


def warn_of_crossing(input: Tensor, target: Tensor) -> None:
    """Warn where broadcasting pairs values that do not belong together, (n,) with (n, 1), in losses that may broadcast."""
    a, b = input._array.shape, target._array.shape
    if a == b:
        return
    shape = _common(a, b)
    if shape is not None and math.prod(shape) > max(math.prod(a), math.prod(b)):
        first = (
            f"The loss of an input of size {input.shape} with a target of size {target.shape} is taken of every pair of "
            "their values."
        )
        warn_caller(message(first, advice(input, target)))


def advice(input: Tensor, target: Tensor) -> str:
    """What the two shapes do, the line that brought them together, and what to write instead."""
    a, b = input._array.shape, target._array.shape
    input_name, target_name = variable_of(input) or "input", variable_of(target) or "target"
    shape = _common(a, b)
    if shape is None:
        effect = say("do not broadcast")
    else:
        effect = say("broadcast to {shape}, so that the loss has {n} terms", shape=shape, n=math.prod(shape))
    met = say("Here {input} of shape {a} and {target} of shape {b} {effect}.",
              input=input_name, a=a, target=target_name, b=b, effect=effect)  # fmt: skip
    site = Site.here()
    return sentences(met, _way_out(input_name, target_name, a, b), say("At {site}", site=site) if site else "")


def _common(a: tuple, b: tuple) -> tuple | None:
    try:
        return np.broadcast_shapes(a, b)
    except ValueError:
        return None


def _way_out(input: str, target: str, a: tuple, b: tuple) -> str:
    if math.prod(a) == math.prod(b):
        for longer, shorter, name in ((a, b, input), (b, a, target)):
            for d in range(len(longer)):
                if longer[d] == 1 and longer[:d] + longer[d + 1 :] == shorter:
                    return say("If they belong together one by one, use {code}.", code=f"{name}.squeeze({d})")
        return say("If they belong together one by one, use {code}.", code=f"{target}.reshape({input}.shape)")
    if _common(a, b) == a:
        return say("If that is meant, say so: {code}.", code=f"{target}.expand_as({input})")
    if _common(a, b) == b:
        return say("If that is meant, say so: {code}.", code=f"{input}.expand_as({target})")
    return say("Each value of the input needs one of the target.")
