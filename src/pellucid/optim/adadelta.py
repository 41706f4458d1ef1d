"""Adadelta: steps whose size follows from the running mean square of earlier steps."""

from __future__ import annotations

from pellucid.kernels import updates
from pellucid.optim.elementwise import ElementwiseOptimizer, check_options, of_gradient

__all__ = ["Adadelta"]


class Adadelta(ElementwiseOptimizer):
    """Adadelta (Zeiler, 2012).

    With g the gradient plus weight_decay * param, and u, v starting at zero:

        v <- rho * v + (1 - rho) * g^2
        d = sqrt(u + eps) / sqrt(v + eps) * g
        u <- rho * u + (1 - rho) * d^2
        param <- param - lr * d

    Args:
        params: tensors, `(name, tensor)` pairs, or dicts of groups; see `Optimizer`.
        lr: factor of the step, a number or a one-element tensor.
        rho: decay rate of the means, from 0 to 1.
        eps: keeps denominators from zero and lets the first step be taken.
        weight_decay: factor of the L2 penalty.
        foreach, capturable: accepted, without effect.
        maximize: ascend instead of descend.
        differentiable: not supported.

    Raises:
        ValueError: an option out of its range.
    """

    _rule = staticmethod(updates.adadelta)

    def __init__(
        self,
        params,
        lr=1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check_options(lr, rho=rho, eps=eps, weight_decay=weight_decay)
        if rho > 1.0:
            raise ValueError(f"Invalid rho value: {rho}. Expected a number from 0.0 to 1.0.")
        defaults = {
            "lr": lr,
            "rho": rho,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "capturable": capturable,
            "foreach": foreach,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _slots(self, group):
        return {"square_avg": 0.0, "acc_delta": 0.0}

    def _constants(self, o, scalars, fresh):
        numbers = o.lr, o.rho, 1 - o.rho, o.eps
        return {"step": scalars["step"] + 1}, updates.AdadeltaFactors(*of_gradient(o), *numbers)
