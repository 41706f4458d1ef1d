"""Short declarations of differentiable elementwise functions: a member of the family is the formula of its derivative."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Promote, operator
from pellucid.autograd.samples import unary

__all__ = ["SMOOTH", "no_slope", "smooth"]

SMOOTH = {"promote": Promote.FLOAT, "method": True, "inplace": True}


def smooth(values, low: float = -2.0, high: float = 2.0, **options):
    """Declare a function of one operand, [*S] to [*S], that makes integers the default float.

    The decorated function is the formula of its derivative, and gives it its name and purpose.
    values: a ufunc, or a forward `values(xp, input: Array)`.
    low, high: between which numbers its samples lie.
    options: of `operator`, beside those of `SMOOTH`.
    """
    options = {**SMOOTH, "ufunc": values if isinstance(values, np.ufunc) else None, **options}

    def declare(formula):
        @operator(name=formula.__name__, **options)
        class function:
            __doc__ = f"{formula.__doc__}\n\n    input: [*S]. Returns [*S], integers as the default float.\n    "
            vjp_input = formula
            samples = unary(low, high)

            if isinstance(values, np.ufunc):

                def forward(xp, input: Array):
                    return values(input)

            else:
                forward = values

        return function

    return declare


def no_slope(F, grad):
    """The derivative of a step function, as a formula."""
    return F.zeros_as(grad)
