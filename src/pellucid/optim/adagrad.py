"""Adagrad: gradients divided by the root of the sum of all their squares so far."""

from __future__ import annotations

import numpy as np

from pellucid.core.tensor import wrap
from pellucid.kernels import updates
from pellucid.optim.elementwise import ElementwiseOptimizer, check_options, filled, number, of_gradient, scalar_dtype

__all__ = ["Adagrad"]


class Adagrad(ElementwiseOptimizer):
    """Adagrad (Duchi, Hazan and Singer, 2011).

    With g the gradient plus weight_decay * param, t the number of the step and s the sum of squares:

        s <- s + g^2
        param <- param - lr / (1 + (t - 1) * lr_decay) * g / (sqrt(s) + eps)

    Args:
        params: tensors, `(name, tensor)` pairs, or dicts of groups; see `Optimizer`.
        lr: learning rate, a number or a one-element tensor.
        lr_decay: how fast the rate falls with the number of steps.
        weight_decay: factor of the L2 penalty.
        initial_accumulator_value: where the sum of squares starts.
        eps: keeps the denominator from zero.
        maximize: ascend instead of descend.
        foreach, fused: accepted, without effect.
        differentiable: not supported.

    Raises:
        ValueError: an option out of its range.
    """

    _rule = staticmethod(updates.adagrad)

    def __init__(
        self,
        params,
        lr=1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        check_options(
            lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            eps=eps,
        )
        defaults = {
            "lr": lr,
            "lr_decay": lr_decay,
            "eps": eps,
            "weight_decay": weight_decay,
            "initial_accumulator_value": initial_accumulator_value,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def add_param_group(self, param_group):
        """As for any optimizer; Adagrad's state exists from here on, not from the first step."""
        super().add_param_group(param_group)
        group = self.param_groups[-1]
        first = float(number(group["initial_accumulator_value"], "initial_accumulator_value"))
        for param in group["params"]:
            self.state[param] = {
                "step": wrap(np.array(0.0, scalar_dtype())),
                "sum": wrap(filled(param._array, first)),
            }

    def _slots(self, group):
        return {"sum": group["initial_accumulator_value"]}

    def _constants(self, o, scalars, fresh):
        step = float(scalars["step"]) + 1
        rate = o.lr / (1 + (step - 1) * o.lr_decay)
        return {"step": step}, updates.AdagradFactors(*of_gradient(o), rate, o.eps)
