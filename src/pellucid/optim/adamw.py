"""AdamW: Adam with weight decay apart from the gradient."""

from __future__ import annotations

from pellucid.optim.adam import Adam

__all__ = ["AdamW"]


class AdamW(Adam):
    """Adam with decoupled weight decay (Loshchilov and Hutter, 2019).

    Before Adam's update, with g the plain gradient, each step does `param <- param * (1 - lr * weight_decay)`.

    Args:
        params: tensors, `(name, tensor)` pairs, or dicts of groups; see `Optimizer`.
        lr: learning rate, a number or a one-element tensor.
        betas: decay rates of the means of the gradient and of its square.
        eps: keeps the denominator from zero.
        weight_decay: share of lr by which a parameter shrinks in a step.
        amsgrad: divide by the largest mean square so far.
        maximize: ascend instead of descend.
        foreach, capturable, fused: accepted, without effect.
        differentiable: not supported.

    Raises:
        ValueError: an option out of its range.
    """

    def __init__(
        self,
        params,
        lr=1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ):
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state):
        super().__setstate__(state)
        for group in self.param_groups:  # a state saved before the option existed says nothing, or Adam's value
            group["decoupled_weight_decay"] = True
