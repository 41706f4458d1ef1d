"""Derivatives by central differences, for `gradcheck`: how results change as the inputs move a little.

Inputs are moved in their memory, past autograd: the function may itself differentiate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pellucid.core.tensor import Tensor

__all__ = [
    "GradcheckError",
    "Tolerances",
    "along",
    "differentiable",
    "jacobian_rows",
    "outputs_of",
    "real_parts",
    "tensors_in",
]


class GradcheckError(RuntimeError):
    """A derivative that finite differences do not confirm."""


class Tolerances(NamedTuple):
    """How finite differences are taken, and how far they may be off."""

    eps: float
    atol: float
    rtol: float


def tensors_in(values) -> list[Tensor]:
    """All tensors in nested tuples and lists."""
    if isinstance(values, Tensor):
        return [values]
    if isinstance(values, (tuple, list)):
        return [t for v in values for t in tensors_in(v)]
    return []


def differentiable(values) -> list[Tensor]:
    """The tensors that require grad."""
    return [t for t in tensors_in(values) if t.requires_grad]


def outputs_of(func, inputs) -> list[Tensor]:
    """What a function returns, without integers and what is no tensor."""
    return [t for t in tensors_in(func(*inputs)) if t._array.dtype.kind in "fc"]


def along(func, inputs, target: Tensor, direction: np.ndarray, eps: float) -> list[np.ndarray]:
    """The derivative of each output as one input moves in a direction.

    Raises:
        AssertionError: shape or dtype of an output changes on the way.
    """
    array = target._array
    before = array.copy()
    try:
        array[...] = before + eps * direction
        high = [o._array.copy() for o in outputs_of(func, inputs)]
        array[...] = before - eps * direction
        low = [o._array.copy() for o in outputs_of(func, inputs)]
    finally:
        array[...] = before
    for up, down in zip(high, low, strict=True):
        for what in ("shape", "dtype"):
            if getattr(up, what) != getattr(down, what):
                raise AssertionError(
                    f"Expected `func` to return outputs with the same {what} when inputs are perturbed by {eps}, but got: "
                    f"{getattr(up, what)} and {getattr(down, what)}"
                )
    return [(up - down) / (2 * eps) for up, down in zip(high, low, strict=True)]


def jacobian_rows(func, inputs, target: Tensor, eps: float) -> list[list[np.ndarray]]:
    """`along` each real (and imaginary) direction of one input in turn: a list of outputs' derivatives for each."""
    rows = []
    for index in np.ndindex(target._array.shape):
        for unit in [1.0] if target._array.dtype.kind != "c" else [1.0, 1j]:
            direction = np.zeros_like(target._array)
            direction[index] = unit
            rows.append(along(func, inputs, target, direction, eps))
    return rows


def real_parts(array) -> np.ndarray:
    """A complex array as its real and imaginary parts, flattened."""
    value: Any = np.asarray(array).reshape(-1)
    return np.stack([value.real, value.imag], 1).reshape(-1) if value.dtype.kind == "c" else value
