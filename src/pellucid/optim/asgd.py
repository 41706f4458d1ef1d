"""ASGD: gradient descent that also keeps the average of the parameters it passed."""

from __future__ import annotations

from pellucid.kernels import updates
from pellucid.optim.elementwise import ElementwiseOptimizer, check_options, number

__all__ = ["ASGD"]


class ASGD(ElementwiseOptimizer):
    """Averaged stochastic gradient descent (Polyak and Juditsky, 1992).

    With g the gradient plus weight_decay * param, and t the number of the step:

        param <- (1 - lambd * eta) * param - eta * g                eta = lr / (1 + lambd * lr * t)^alpha
        ax <- ax + mu * (param - ax)                                mu = 1 / max(1, t - t0)

    eta and mu of a step are those that the step before worked out. The average is `state[param]["ax"]`.

    Args:
        params: tensors, `(name, tensor)` pairs, or dicts of groups; see `Optimizer`.
        lr: learning rate, a number or a one-element tensor.
        lambd: decay of the parameters.
        alpha: power of the fall of eta.
        t0: step from which the average is one.
        weight_decay: factor of the L2 penalty.
        foreach, capturable: accepted, without effect.
        maximize: ascend instead of descend.
        differentiable: not supported.

    Raises:
        ValueError: an option out of its range.
    """

    _own_dtype = ("step", "eta", "mu")

    _rule = staticmethod(updates.asgd)

    def __init__(
        self,
        params,
        lr=1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ):
        check_options(lr, weight_decay=weight_decay)
        defaults = {
            "lr": lr,
            "lambd": lambd,
            "alpha": alpha,
            "t0": t0,
            "weight_decay": weight_decay,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _slots(self, group):
        return {"ax": 0.0}

    def _scalars(self, group):
        return {"step": 0.0, "eta": number(group["lr"], "lr"), "mu": 1.0}

    def _constants(self, o, scalars, fresh):
        step = float(scalars["step"]) + 1
        eta = o.lr / (1 + o.lambd * o.lr * step) ** o.alpha
        mu = 1 / max(1, step - o.t0)
        now = float(scalars["eta"])
        factors = -1.0 if o.maximize else 1.0, o.weight_decay, 1 - o.lambd * now, now
        return {"step": step, "eta": eta, "mu": mu}, updates.ASGDFactors(*factors, float(scalars["mu"]))
