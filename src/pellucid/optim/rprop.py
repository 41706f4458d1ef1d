"""Rprop: steps whose size follows from how the gradient's sign changes, not from its size."""

from __future__ import annotations

from pellucid.kernels import updates
from pellucid.optim.elementwise import ElementwiseOptimizer, check_options, number, of_gradient

__all__ = ["Rprop"]


class Rprop(ElementwiseOptimizer):
    """Resilient backpropagation (Riedmiller and Braun, 1993).

    Each element has a step size: it grows by etas[1] while the gradient keeps its sign and shrinks by etas[0] when the
    sign changes, in which case the element stays where it is for this step.

    Args:
        params: tensors, `(name, tensor)` pairs, or dicts of groups; see `Optimizer`.
        lr: the first step size of every element, a number or a one-element tensor.
        etas: factors by which a step size shrinks and grows.
        step_sizes: smallest and largest step size.
        capturable, foreach: accepted, without effect.
        maximize: ascend instead of descend.
        differentiable: not supported.

    Raises:
        ValueError: an option out of its range.
    """

    _rule = staticmethod(updates.rprop)

    def __init__(
        self,
        params,
        lr=1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ):
        check_options(lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(
                f"Invalid eta values: {etas[0]}, {etas[1]}. Expected one between 0 and 1, and one above 1."
            )
        defaults = {
            "lr": lr,
            "etas": etas,
            "step_sizes": step_sizes,
            "foreach": foreach,
            "maximize": maximize,
            "differentiable": differentiable,
            "capturable": capturable,
        }
        super().__init__(params, defaults)

    def _slots(self, group):
        return {"prev": 0.0, "step_size": number(group["lr"], "lr")}

    def _constants(self, o, scalars, fresh):
        factors = updates.RpropFactors(*of_gradient(o), *o.etas, *o.step_sizes)
        return {"step": scalars["step"] + 1}, factors
