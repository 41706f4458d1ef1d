"""RAdam: Adam that waits with its adaptive rate until the variance is known well enough."""

from __future__ import annotations

from typing import Any, ClassVar

from pellucid.kernels import updates
from pellucid.optim.elementwise import ElementwiseOptimizer, check_options, of_gradient, root_of_correction

__all__ = ["RAdam"]

TRUSTED = 5.0  # from this length of the averaged window on, the variance of the adaptive rate is taken as known


class RAdam(ElementwiseOptimizer):
    """RAdam (Liu et al., 2020).

    Adam's running means m and v; rho, the length of the window that v averages over, grows with the step t:

        rho_inf = 2 / (1 - beta2) - 1                 rho_t = rho_inf - 2 t beta2^t / (1 - beta2^t)
        r = sqrt((rho_t - 4)(rho_t - 2) rho_inf / ((rho_inf - 4)(rho_inf - 2) rho_t))
        step = lr * m / (1 - beta1^t) * r * sqrt(1 - beta2^t) / (sqrt(v) + eps)     where rho_t > 5
        step = lr * m / (1 - beta1^t)                                               before that

    Args:
        params: tensors, `(name, tensor)` pairs, or dicts of groups; see `Optimizer`.
        lr: learning rate, a number or a one-element tensor.
        betas: decay rates of the means of the gradient and of its square.
        eps: keeps the denominator from zero.
        weight_decay: factor of the L2 penalty.
        decoupled_weight_decay: shrink the parameter by lr * weight_decay instead of adding to the gradient.
        foreach, capturable: accepted, without effect.
        maximize: ascend instead of descend.
        differentiable: not supported.

    Raises:
        ValueError: an option out of its range.
    """

    _later_options: ClassVar[dict[str, Any]] = {"decoupled_weight_decay": False}
    _rule = staticmethod(updates.radam)

    def __init__(
        self,
        params,
        lr=1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        check_options(lr, betas, eps=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "decoupled_weight_decay": decoupled_weight_decay,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _slots(self, group):
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def _constants(self, o, scalars, fresh):
        step = float(scalars["step"]) + 1
        beta1, beta2 = o.betas
        rate = o.lr / (1 - beta1**step)
        longest = 2 / (1 - beta2) - 1
        length = longest - 2 * step * beta2**step / (1 - beta2**step)
        adaptive = length > TRUSTED
        if adaptive:
            share = (length - 4) * (length - 2) * longest / ((longest - 4) * (longest - 2) * length)
            rate *= share**0.5 * root_of_correction(beta2, step)
        return {"step": step}, updates.RAdamFactors(
            *of_gradient(o), 1 - beta1, beta2, 1 - beta2, rate, o.eps, float(adaptive)
        )
