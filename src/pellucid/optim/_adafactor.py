"""Adafactor: mean squares of a matrix kept as one number a row and one a column."""

from __future__ import annotations

from math import sqrt

import numpy as np

from pellucid.core.tensor import wrap
from pellucid.optim.elementwise import WIDE, ElementwiseOptimizer, check_single, lerp, number
from pellucid.optim.kinds import missing_state

__all__ = ["Adafactor"]


class Adafactor(ElementwiseOptimizer):
    """Adafactor (Shazeer and Stern, 2018), with relative step sizes capped by lr.

    For a gradient g of two or more dimensions, R and C are running means of g^2 over its last and its last but one
    dimension, and V = R C / mean(R); for a vector, V is the running mean of g^2. With t the number of the step:

        share of the new term in a mean = t^beta2_decay
        u = g / sqrt(V)                               rho = min(lr, 1 / sqrt(t))
        param <- param - max(eps2, rms(param)) * rho * u / max(1, rms(u) / d)

    Args:
        params: tensors, `(name, tensor)` pairs, or dicts of groups; see `Optimizer`.
        lr: largest relative step, a number or a one-element tensor.
        beta2_decay: power of t, not positive.
        eps: (eps1, eps2): eps1, squared, is the smallest V, the dtype's epsilon if None; eps2 the smallest scale of a
            parameter.
        d: a root mean square of the update above d is clipped.
        weight_decay: share of lr by which a parameter shrinks in a step.
        foreach: accepted, without effect.
        maximize: ascend instead of descend.

    Raises:
        ValueError: an option out of its range.
        RuntimeError: (in `step`) a complex parameter.
    """

    def __init__(
        self,
        params,
        lr=1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ):
        _check(lr, beta2_decay, eps, d, weight_decay)
        defaults = {
            "lr": lr,
            "beta2_decay": beta2_decay,
            "eps": eps,
            "d": d,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
        }
        super().__init__(params, defaults)

    def _find_slots(self, param, state, slots):
        array = param._array
        if array.dtype.kind == "c":
            raise RuntimeError("Adafactor does not support complex parameters")
        if array.ndim > 1:
            shapes = {"row_var": (*array.shape[:-1], 1), "col_var": (*array.shape[:-2], 1, array.shape[-1])}
        else:
            shapes = {"variance": array.shape}
        if not state:
            return {name: wrap(np.zeros(shape, array.dtype)) for name, shape in shapes.items()}, True
        for name, shape in shapes.items():
            if name not in state:
                raise missing_state(self, name, state)
            if state[name]._array.shape != shape:
                raise RuntimeError(f"The size of {name} {tuple(state[name]._array.shape)} must match {shape}")
        return {name: state[name] for name in shapes}, False

    def _constants(self, o, scalars, fresh):
        step = float(scalars["step"]) + 1
        return {"step": step}, (step**o.beta2_decay, min(o.lr, 1 / sqrt(step)))

    def _write(self, update):
        kind = WIDE.get(update.param._array.dtype.char, np.float32)
        param, grad = update.param._array.astype(kind), update.grad.astype(kind, copy=False)
        slots = {name: slot._array.astype(kind) for name, slot in update.slots.items()}
        eps1 = update.options.eps[0]
        if eps1 is None:
            eps1 = _epsilon(update.param._array.dtype)
        _move(update.options, update.constants, eps1, param, -grad if update.options.maximize else grad, slots)
        update.param._array[...] = param
        for name, slot in update.slots.items():
            slot._array[...] = slots[name]


def _move(o, constants: tuple, eps1: float, param, grad, slots: dict) -> None:
    """The update of one parameter and its means, in place."""
    if not param.size:
        return
    new_share, rho = constants
    scale = max(o.eps[1], _rms(param)) * rho
    if o.weight_decay != 0:
        param *= 1 - o.lr * o.weight_decay
    squared = grad * grad
    if grad.ndim > 1:
        rows, columns = slots["row_var"], slots["col_var"]
        lerp(rows, squared.mean(axis=-1, keepdims=True), new_share, np.empty_like(rows))
        lerp(columns, squared.mean(axis=-2, keepdims=True), new_share, np.empty_like(columns))
        variance = rows * columns
        variance /= np.maximum(rows.mean(axis=-2, keepdims=True), eps1)
    else:
        lerp(slots["variance"], squared, new_share, np.empty_like(squared))
        variance = slots["variance"].copy()
    np.maximum(variance, eps1 * eps1, out=variance)
    update = grad / np.sqrt(variance, out=variance)
    update *= -scale / max(1.0, _rms(update) / o.d)
    param += update


def _rms(array) -> float:
    return float(np.linalg.norm(array.reshape(-1))) / sqrt(array.size)


def _epsilon(kind: np.dtype) -> float:
    if kind.kind == "V":  # bfloat16: 7 bits after the point
        return 2.0**-7
    return float(np.finfo(kind).eps)


def _check(lr, beta2_decay, eps, d, weight_decay) -> None:
    check_single(lr)
    if not 0.0 <= number(lr, "lr"):
        raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
    if not 0.0 >= beta2_decay:
        raise ValueError(f"beta2_decay should be <= 0 but is: {beta2_decay}")
    if eps[0] is not None and not 0.0 <= eps[0]:
        raise ValueError(f"epsilon1 should be >= 0 but is: {eps[0]}")
    if not 0.0 <= eps[1]:
        raise ValueError(f"epsilon2 should be >= 0 but is: {eps[1]}")
    if not 1.0 <= d:
        raise ValueError(f"Clipping threshold d should be >= 1 but is: {d}")
    if not 0.0 <= weight_decay:
        raise ValueError(f"weight_decay should be >= 0 but is: {weight_decay}")
