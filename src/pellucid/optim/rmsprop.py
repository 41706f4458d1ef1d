"""RMSprop: gradients divided by the root of their running mean square."""

from __future__ import annotations

from typing import Any, ClassVar

from pellucid.kernels import updates
from pellucid.optim.elementwise import ElementwiseOptimizer, check_options, of_gradient

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
    _rule = staticmethod(updates.rmsprop)

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

    def _constants(self, o, scalars, fresh):
        numbers = o.lr, o.alpha, 1 - o.alpha, o.eps, o.momentum, float(o.centered)
        return {"step": scalars["step"] + 1}, updates.RMSpropFactors(*of_gradient(o), *numbers)
