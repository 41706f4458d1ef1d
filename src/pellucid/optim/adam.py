"""Adam, and the rule it shares with AdamW."""

from __future__ import annotations

from typing import Any, ClassVar

from pellucid.core.tensor import Tensor
from pellucid.kernels import updates
from pellucid.optim.elementwise import ElementwiseOptimizer, check_options, of_gradient, root_of_correction

__all__ = ["Adam"]


class Adam(ElementwiseOptimizer):
    """Adam (Kingma and Ba, 2015): steps scaled by running means of the gradient and of its square.

    With g the gradient plus weight_decay * param, t the number of the step, m and v starting at zero:

        m <- beta1 * m + (1 - beta1) * g              v <- beta2 * v + (1 - beta2) * g^2
        param <- param - lr * (m / (1 - beta1^t)) / (sqrt(v / (1 - beta2^t)) + eps)

    Args:
        params: tensors, `(name, tensor)` pairs, or dicts of groups; see `Optimizer`.
        lr: learning rate, a number or a one-element tensor.
        betas: decay rates of the two means.
        eps: keeps the denominator from zero.
        weight_decay: factor of the L2 penalty.
        amsgrad: divide by the largest v so far (Reddi et al., 2018).
        maximize: ascend instead of descend.
        foreach, capturable, fused: accepted, without effect.
        differentiable: not supported.
        decoupled_weight_decay: shrink the parameter by lr * weight_decay instead of adding to the gradient, as AdamW.

    Raises:
        ValueError: an option out of its range.
    """

    _later_options: ClassVar[dict[str, Any]] = {"amsgrad": False, "decoupled_weight_decay": False}
    _rule = staticmethod(updates.adam)

    def __init__(
        self,
        params,
        lr=1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ):
        if isinstance(lr, Tensor) and foreach and not capturable:
            raise ValueError("lr as a Tensor is not supported for capturable=False and foreach=True: leave foreach out")
        _check_kinds(betas)
        check_options(lr, betas, eps=eps, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "betas": tuple(betas),
            "eps": eps,
            "weight_decay": weight_decay,
            "amsgrad": amsgrad,
            "maximize": maximize,
            "foreach": foreach,
            "capturable": capturable,
            "differentiable": differentiable,
            "fused": fused,
            "decoupled_weight_decay": decoupled_weight_decay,
        }
        super().__init__(params, defaults)

    def _slots(self, group):
        slots = {"exp_avg": 0.0, "exp_avg_sq": 0.0}
        return slots | {"max_exp_avg_sq": 0.0} if group["amsgrad"] else slots

    def _constants(self, o, scalars, fresh):
        step = float(scalars["step"]) + 1
        beta1, beta2 = o.betas
        correction = root_of_correction(beta2, step)
        # sqrt(v) / correction + eps is (sqrt(v) + eps * correction) / correction: one operation less
        rate, eps = o.lr / (1 - beta1**step) * correction, o.eps * correction
        numbers = 1 - beta1, beta2, 1 - beta2, rate, eps, float(o.amsgrad)
        return {"step": step}, updates.AdamFactors(*of_gradient(o), *numbers)



def _check_kinds(betas) -> None:
    first, second = betas
    both = [(float, float), (Tensor, Tensor)]
    if not any(isinstance(first, a) and isinstance(second, b) for a, b in both):
        raise ValueError(
            "betas must be either both floats or both Tensors, "
            f"but got {type(first).__name__} and {type(second).__name__}"
        )
    for index, beta in enumerate(betas):
        if isinstance(beta, Tensor) and beta.numel() != 1:
            raise ValueError(f"Tensor betas[{index}] must be 1-element, but it has shape {tuple(beta.shape)}")
