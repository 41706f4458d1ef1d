"""A block that leaves no trace: random numbers and buffers are afterwards as they were."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from pellucid.core.random import get_rng_state, set_rng_state
from pellucid.nn.modules.module import Module

__all__ = ["undisturbed"]


@contextlib.contextmanager
def undisturbed(model: Module | None) -> Iterator[None]:
    """Run a model without changing it: running statistics and the stream of random numbers are put back."""
    state = get_rng_state()
    kept = [
        (module, name, buffer, buffer._array.copy())
        for module in (() if model is None else model.modules())
        for name, buffer in module._buffers.items()
        if buffer is not None
    ]
    try:
        yield
    finally:
        set_rng_state(state)
        for module, name, buffer, values in kept:
            if buffer._array.shape == values.shape and buffer._array.flags.writeable:
                buffer._array[...] = values
            module._buffers[name] = buffer
