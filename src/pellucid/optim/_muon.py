"""Muon: momentum whose matrix is made orthogonal before it is applied."""

from __future__ import annotations

from math import sqrt

import numpy as np

from pellucid.core.dtype import bfloat16
from pellucid.core.language import message, say
from pellucid.optim.elementwise import WIDE, ElementwiseOptimizer, check_single, lerp, number

__all__ = ["Muon"]

MOST_STEPS = 100


class Muon(ElementwiseOptimizer):
    """Muon (Jordan et al., 2024), for the matrices of hidden layers.

    With g the gradient, b the momentum buffer, and orthogonal() a few Newton-Schulz iterations in bfloat16 that bring
    all singular values near 1:

        b <- momentum * b + (1 - momentum) * g
        u = orthogonal(b)                             (nesterov: (1 - momentum) * g + momentum * b instead of b)
        param <- param * (1 - lr * weight_decay) - lr * scale * u

    Args:
        params: matrices, `(name, matrix)` pairs, or dicts of groups; see `Optimizer`.
        lr: learning rate, a number or a one-element tensor.
        weight_decay: share of lr by which a parameter shrinks in a step.
        momentum: share of the buffer that is kept.
        nesterov: look ahead along the buffer.
        ns_coefficients: the three coefficients of an iteration's polynomial.
        eps: smallest norm that a matrix is divided by.
        ns_steps: number of iterations.
        adjust_lr_fn: the scale for an A x B matrix; None or "original": sqrt(max(1, A / B)); "match_rms_adamw":
            0.2 sqrt(max(A, B)).

    Raises:
        ValueError: an option out of its range, or a parameter that is not a matrix.
        RuntimeError: (in `step`) a complex parameter.
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.7750, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ):
        _check(lr, momentum, weight_decay, adjust_lr_fn)
        if ns_steps >= MOST_STEPS:
            raise ValueError(f"Number of steps must be less than {MOST_STEPS} for computational efficiency: {ns_steps}")
        if len(ns_coefficients) != 3:
            raise ValueError(f"Coefficients must be a tuple of exactly 3 values, but got {len(ns_coefficients)}")
        defaults = {
            "lr": lr,
            "weight_decay": weight_decay,
            "momentum": momentum,
            "nesterov": nesterov,
            "ns_coefficients": ns_coefficients,
            "eps": eps,
            "ns_steps": ns_steps,
            "adjust_lr_fn": adjust_lr_fn,
        }
        super().__init__(params, defaults)

    def _check_param(self, param):
        super()._check_param(param)
        if param.ndim != 2:
            first = f"Muon only supports 2D parameters whereas we found a parameter with size: {param.size()}"
            raise ValueError(message(first, say("Give vectors and embeddings to another optimizer, such as AdamW.")))

    def _read_options(self, group):
        scale_by = group["adjust_lr_fn"]
        options = super()._read_options({**group, "adjust_lr_fn": None})
        options.adjust_lr_fn = scale_by
        return options

    def _slots(self, group):
        return {"momentum_buffer": 0.0}

    def _scalars(self, group):
        return {}

    def _constants(self, o, scalars, fresh):
        return {}, ()

    def _find_slots(self, param, state, slots):
        if param._array.dtype.kind == "c":
            raise RuntimeError("Muon does not support complex parameters")
        return super()._find_slots(param, state, slots)

    def _write(self, update):
        o, param = update.options, update.param._array
        kind = WIDE.get(param.dtype.char, np.float32)
        grad = update.grad.astype(kind, copy=False)
        buffer = update.slots["momentum_buffer"]._array.astype(kind)
        work = np.empty_like(buffer)
        lerp(buffer, grad, 1 - o.momentum, work)
        update.slots["momentum_buffer"]._array[...] = buffer
        if o.nesterov:
            ahead = grad.copy()
            lerp(ahead, buffer, o.momentum, work)
            buffer = ahead
        move = orthogonal(buffer, o.ns_coefficients, o.ns_steps, o.eps).astype(kind, copy=False)
        wide = param.astype(kind)
        wide *= 1 - o.lr * o.weight_decay
        wide -= o.lr * _scale(o.adjust_lr_fn, param.shape) * move
        param[...] = wide


def orthogonal(matrix: np.ndarray, coefficients: tuple, steps: int, eps: float) -> np.ndarray:
    """A matrix with the singular vectors of `matrix` and singular values near 1, by Newton-Schulz iterations.

    Computed in float32 with every result rounded to bfloat16, as the method prescribes. Returns float32.
    """
    a, b, c = coefficients
    x = _rounded(matrix.T if matrix.shape[0] > matrix.shape[1] else matrix)
    x = _rounded(x / max(float(_rounded(np.linalg.norm(x))), eps))
    for _ in range(steps):
        gram = _rounded(x @ x.T)
        gram = _rounded(b * gram + c * (gram @ gram))
        x = _rounded(a * x + gram @ x)
    return x.T if matrix.shape[0] > matrix.shape[1] else x


def _rounded(array) -> np.ndarray:
    return np.asarray(array).astype(bfloat16.numpy).astype(np.float32)


def _scale(name: str | None, shape: tuple[int, int]) -> float:
    rows, columns = shape
    if name == "match_rms_adamw":
        return 0.2 * sqrt(max(rows, columns))
    return sqrt(max(1, rows / columns))


def _check(lr, momentum, weight_decay, adjust_lr_fn) -> None:
    check_single(lr)
    if not 0.0 <= number(lr, "lr"):
        raise ValueError(f"Learning rate should be >= 0 but is: {lr}")
    if not 0.0 <= momentum:
        raise ValueError(f"momentum should be >= 0 but is: {momentum}")
    if not 0.0 <= weight_decay:
        raise ValueError(f"weight decay should be >= 0 but is: {weight_decay}")
    if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
        raise ValueError(
            f"Adjust learning rate function {adjust_lr_fn} is not supported: expected 'original' or 'match_rms_adamw'"
        )
