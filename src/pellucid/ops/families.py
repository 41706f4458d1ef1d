"""What declarations of one kind share: functions of one operand by the formulas of their derivatives, forwards of two operands,
in-place methods of composites, second names in `torch` of what is in `linalg`.
"""

from __future__ import annotations

import inspect

import numpy as np

from pellucid.autograd.call import inplace
from pellucid.autograd.operator import Array, Promote, composite, operator
from pellucid.autograd.samples import unary
from pellucid.core.checks import require_kind

__all__ = ["SMOOTH", "by_tensor", "in_place", "no_slope", "of_two", "smooth"]

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


def of_two(ufunc: np.ufunc, kernel: str, kinds: str = "f"):
    """A forward of two operands: the ufunc, of a common dtype of these kinds; `kernel` names it where it is of another."""

    def forward(xp, input: Array, other: Array):
        require_kind(kernel, input, kinds)
        return ufunc(input, other)

    return forward


def in_place(name: str, chosen):
    """The in-place method `name` of a composite: `chosen(self, ...)` gives the operator and its further arguments."""

    def method(self, *args, **kwargs):
        form, *rest = chosen(self, *args, **kwargs)
        return inplace(form.operator, self, tuple(rest))

    method.__name__ = method.__qualname__ = name
    method.__doc__, method.__wrapped__ = f"In-place form of `{name[:-1]}`.", chosen
    return method


def by_tensor(function, name: str | None = None):
    """Make a function of `linalg` public in `torch` too, and as a method; there its first argument is called `input`."""

    def public(input, *args, **kwargs):
        return function(input, *args, **kwargs)

    public.__name__ = public.__qualname__ = name or function.__name__
    public.__doc__ = f"`linalg.{function.__name__}`."
    _, *rest = inspect.signature(function).parameters.values()
    first = inspect.Parameter("input", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    public.__signature__ = inspect.Signature([first, *rest])
    return composite(method=True)(public)


def no_slope(F, grad):
    """The derivative of a step function, as a formula."""
    return F.zeros_as(grad)
