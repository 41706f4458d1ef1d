"""SGD: gradient descent, with momentum, Nesterov's look-ahead and weight decay."""

from __future__ import annotations

from typing import Any, ClassVar

from pellucid.kernels import updates
from pellucid.optim.elementwise import ElementwiseOptimizer, check_options, of_gradient

__all__ = ["SGD"]


class SGD(ElementwiseOptimizer):
    """Stochastic gradient descent.

    With g the gradient plus weight_decay * param, and b the momentum buffer, which starts as the first g:

        b <- momentum * b + (1 - dampening) * g
        param <- param - lr * b                       (nesterov: g + momentum * b instead of b)

    Args:
        params: tensors, `(name, tensor)` pairs, or dicts of groups; see `Optimizer`.
        lr: learning rate, a number or a one-element tensor.
        momentum: share of the buffer that is kept.
        dampening: share of each new gradient that is left out of the buffer.
        weight_decay: factor of the L2 penalty.
        nesterov: look ahead along the buffer (Sutskever et al., 2013); needs momentum and no dampening.
        maximize: ascend instead of descend.
        foreach, fused: accepted, without effect.
        differentiable: not supported.

    Raises:
        ValueError: an option out of its range.
    """

    _later_options: ClassVar[dict[str, Any]] = {"nesterov": False}
    _starts_late = True
    _rule = staticmethod(updates.sgd)

    def __init__(
        self,
        params,
        lr=1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        check_options(lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError(
                "Nesterov momentum requires a momentum and zero dampening: "
                f"got momentum {momentum} and dampening {dampening}"
            )
        defaults = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
            "maximize": maximize,
            "foreach": foreach,
            "differentiable": differentiable,
            "fused": fused,
        }
        super().__init__(params, defaults)

    def _slots(self, group):
        return {"momentum_buffer": 0.0} if group["momentum"] != 0 else {}

    def _scalars(self, group):
        return {}

    def _constants(self, o, scalars, fresh):
        numbers = o.lr, o.momentum, 1 - o.dampening, float(o.nesterov), float(fresh)
        return {}, updates.SGDFactors(*of_gradient(o), *numbers)
