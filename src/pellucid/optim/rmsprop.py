"""RMSprop: gradients divided by the root of their running mean square."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from pellucid.optim.elementwise import ElementwiseOptimizer, add_scaled, check_options, lerp, penalised

__all__ = ["RMSprop"]


class RMSprop(ElementwiseOptimizer):
    """RMSprop (Hinton's lecture 6e, 2012), optionally centred (Graves, 2013) and with momentum.

    With g the gradient plus weight_decay * param, and everything starting at zero:

        v <- alpha * v + (1 - alpha) * g^2            (centered: a <- alpha * a + (1 - alpha) * g)
        d = g / (sqrt(v) + eps)                       (centered: sqrt(v - a^2))
        param <- param - lr * d                       (momentum: b <- momentum * b + d, and b in place of d)

    Args:
        params: tensors, `(name, tensor)` pairs, or dicts of groups; see `Optimizer`.
        lr: learning rate, a number or a one-element tensor.
        alpha: decay rate of the means.
        eps: keeps the denominator from zero.
        weight_decay: factor of the L2 penalty.
        momentum: share of the last update that is kept.
        centered: divide by an estimate of the standard deviation.
        maximize: ascend instead of descend.
        capturable, foreach: accepted, without effect.
        differentiable: not supported.

    Raises:
        ValueError: an option out of its range.
    """

    _later_options: ClassVar[dict[str, Any]] = {"momentum": 0, "centered": False}

    def __init__(
        self,
        params,
        lr=1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check_options(lr, eps=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha)
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "alpha": alpha,
            "eps": eps,
            "centered": centered,
            "weight_decay": weight_decay,
            "capturable": capturable,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _slots(self, group):
        slots = {"square_avg": 0.0}
        if group["momentum"] > 0:
            slots["momentum_buffer"] = 0.0
        if group["centered"]:
            slots["grad_avg"] = 0.0
        return slots

    @staticmethod
    def _update(o, constants, param, grad, slots, work, spare):
        square_avg = slots[0]
        grad = penalised(o, param, grad, spare)
        square_avg *= o.alpha
        np.multiply(grad, grad, out=work)
        add_scaled(square_avg, work, 1 - o.alpha, work)
        if o.centered:
            grad_avg = slots[-1]
            lerp(grad_avg, grad, 1 - o.alpha, work)
            np.multiply(grad_avg, grad_avg, out=work)
            np.subtract(square_avg, work, out=work)
            np.sqrt(work, out=work)
        else:
            np.sqrt(square_avg, out=work)
        work += o.eps
        move = np.divide(grad, work, out=work)
        if o.momentum > 0:
            buffer = slots[1]
            buffer *= o.momentum
            buffer += move
            move = buffer
        add_scaled(param, move, -o.lr, work)
