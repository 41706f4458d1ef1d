"""Tensors that operations do not compute but factories make: their flags, `out=`, and their place under vmap.

What they are filled with is said in `functions/`.
"""

from __future__ import annotations

import sys

import numpy as np

from pellucid.autograd.batching import batch_of
from pellucid.autograd.views import check_inplace, written
from pellucid.core.device import CPU, check_device
from pellucid.core.modes import modes
from pellucid.core.sites import caller
from pellucid.core.tensor import InferenceCounter, Tensor, wrap

__all__ = ["beside", "finished"]


def finished(values, requires_grad: bool = False, device=None, out: Tensor | None = None) -> Tensor:
    """The tensor of a factory: over a fresh array (or a fresh tensor itself), or that given as `out`.

    Raises: RuntimeError (another device than the CPU, or `requires_grad` for a type without gradients).
    """
    if device is not None and device is not CPU:
        check_device(device)
    made = values if isinstance(values, Tensor) else wrap(values)
    if out is not None:
        return _into(out, made)
    if requires_grad and made._array.dtype.kind not in "fcV":
        raise RuntimeError(
            f"Only Tensors of floating point and complex dtype can require gradients: requires_grad=True was asked of {made.dtype}"
        )
    if modes.inference:
        made.rare.wish, made._counter = bool(requires_grad), InferenceCounter()
    elif requires_grad:
        made._requires_grad, made.rare.made = True, caller(sys._getframe(1))
    else:
        made._requires_grad = False
    return made


def _into(out: Tensor, made: Tensor) -> Tensor:
    if not isinstance(out, Tensor):
        raise TypeError(f"argument 'out' must be Tensor, not {type(out).__name__}")
    if out._wraps or made._wraps:
        raise RuntimeError("vmap: factories with out= are not supported inside of vmap. Call them without out=.")
    array = made._array
    if out._array.shape != array.shape:
        out._array = np.empty(array.shape, out._array.dtype)
    check_inplace(out, False)
    out._array[...] = array
    written(out, "out=")
    return out


def beside(input: Tensor, make, requires_grad: bool = False, device=None) -> Tensor:
    """A new tensor for a given one: `make(array, lead)` gives its values from those of `input`.

    Under vmap it stands for each example, as `input` does, and may be written to: `array` is then that of all examples, and
    the sizes `lead` of its first dimensions count them.
    """
    if not input._wraps:
        return finished(make(input._array, ()), requires_grad, device)
    wrappers = []
    while input._wraps:
        wrappers.append(input)
        input = input._value
    lead = tuple([w._level.size for w in reversed(wrappers) if w._batched])
    made = finished(make(input._array, lead), False, device)
    for w in reversed(wrappers):
        made = batch_of(made, w._level, w._batched)
    return made.requires_grad_() if requires_grad else made
