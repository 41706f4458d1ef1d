"""Adamax: Adam with the largest gradient in place of the mean square."""

from __future__ import annotations

from pellucid.kernels import updates
from pellucid.optim.elementwise import ElementwiseOptimizer, check_options, of_gradient

__all__ = ["Adamax"]


class Adamax(ElementwiseOptimizer):
    """Adamax (Kingma and Ba, 2015, section 7.1).

    With g the gradient plus weight_decay * param, t the number of the step, m and u starting at zero:

        m <- beta1 * m + (1 - beta1) * g              u <- max(beta2 * u, |g| + eps)
        param <- param - lr / (1 - beta1^t) * m / u

    Args:
        params: tensors, `(name, tensor)` pairs, or dicts of groups; see `Optimizer`.
        lr: learning rate, a number or a one-element tensor.
        betas: decay rates of the mean and of the maximum.
        eps: keeps the denominator from zero.
        weight_decay: factor of the L2 penalty.
        foreach, capturable: accepted, without effect.
        maximize: ascend instead of descend.
        differentiable: not supported.

    Raises:
        ValueError: an option out of its range.
    """

    _rule = staticmethod(updates.adamax)

    def __init__(
        self,
        params,
        lr=2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        check_options(lr, betas, eps=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _slots(self, group):
        return {"exp_avg": 0.0, "exp_inf": 0.0}

    def _constants(self, o, scalars, fresh):
        step = float(scalars["step"]) + 1
        numbers = 1 - o.betas[0], o.betas[1], o.lr / (1 - o.betas[0] ** step), o.eps
        return {"step": step}, updates.AdamaxFactors(*of_gradient(o), *numbers)
