"""NAdam: Adam with Nesterov's look-ahead."""

from __future__ import annotations

from typing import Any, ClassVar

from pellucid.kernels import updates
from pellucid.optim.elementwise import ElementwiseOptimizer, check_options, of_gradient

__all__ = ["NAdam"]


class NAdam(ElementwiseOptimizer):
    """NAdam (Dozat, 2016).

    With g the gradient plus weight_decay * param, t the number of the step, m and v Adam's running means:

        mu_t = beta1 * (1 - 0.96^(t * momentum_decay) / 2)
        M_t = mu_1 * ... * mu_t                       d = sqrt(v / (1 - beta2^t)) + eps
        param <- param - lr * ((1 - mu_t) / (1 - M_t) * g + mu_(t+1) / (1 - M_(t+1)) * m) / d

    Args:
        params: tensors, `(name, tensor)` pairs, or dicts of groups; see `Optimizer`.
        lr: learning rate, a number or a one-element tensor.
        betas: decay rates of the means of the gradient and of its square.
        eps: keeps the denominator from zero.
        weight_decay: factor of the L2 penalty.
        momentum_decay: how fast the look-ahead grows to its full share.
        decoupled_weight_decay: shrink the parameter by lr * weight_decay instead of adding to the gradient.
        foreach, capturable: accepted, without effect.
        maximize: ascend instead of descend.
        differentiable: not supported.

    Raises:
        ValueError: an option out of its range.
    """

    _later_options: ClassVar[dict[str, Any]] = {"decoupled_weight_decay": False}
    _own_dtype = ("step", "mu_product")

    _rule = staticmethod(updates.nadam)

    def __init__(
        self,
        params,
        lr=2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ):
        check_options(lr, betas, eps=eps, weight_decay=weight_decay, momentum_decay=momentum_decay)
        defaults = {
            "lr": lr,
            "betas": betas,
            "eps": eps,
            "weight_decay": weight_decay,
            "momentum_decay": momentum_decay,
            "decoupled_weight_decay": decoupled_weight_decay,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
        }
        super().__init__(params, defaults)

    def _slots(self, group):
        return {"exp_avg": 0.0, "exp_avg_sq": 0.0}

    def _scalars(self, group):
        return {"step": 0.0, "mu_product": 1.0}

    def _constants(self, o, scalars, fresh):
        step = float(scalars["step"]) + 1
        beta1, beta2 = o.betas
        mu = beta1 * (1 - 0.5 * 0.96 ** (step * o.momentum_decay))
        mu_next = beta1 * (1 - 0.5 * 0.96 ** ((step + 1) * o.momentum_decay))
        product = scalars["mu_product"] * mu  # in the precision it is saved in, so that resuming changes nothing
        of_grad = -o.lr * (1 - mu) / (1 - float(product))
        of_mean = -o.lr * mu_next / (1 - float(product) * mu_next)
        return {"step": step, "mu_product": product}, updates.NAdamFactors(
            *of_gradient(o), 1 - beta1, beta2, 1 - beta2, 1 - beta2**step, o.eps, of_grad, of_mean
        )
