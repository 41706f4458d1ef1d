"""Choosing between two functions, element by element, so that the gradient is right. `where` is in `ops/choosing.py`."""

from __future__ import annotations

from pellucid.autograd.operator import composite
from pellucid.ops.choosing import where

__all__ = ["safe_where"]


@composite(method=False)
def safe_where(condition, input, other, x, safe=1.0):
    """`where(condition, input(x), other(x))` whose gradient is right where the branch not taken has none.

    The gradient of `where` is 0 for the branch not taken, and 0 times an infinite derivative is NaN. Here each function gets
    `safe` in place of the elements of x that it is not wanted for, so that it never comes near its singular points.

    condition: bool, of x's shape or one that broadcasts with it.
    input, other: functions of one tensor; or a tensor or number, taken as it is.
    x: the tensor that both are functions of.
    safe: a number or tensor at which both functions and their derivatives are finite.
    Raises: RuntimeError (the condition is not bool), TypeError (it is no tensor).

    Example:
        >>> import pellucid
        >>> x = pellucid.tensor([0.0, 4.0], requires_grad=True)
        >>> pellucid.safe_where(x > 0, pellucid.sqrt, 0.0, x).sum().backward()
        >>> x.grad
        tensor([0.0000, 0.2500])
    """
    first = input(where(condition, x, safe)) if callable(input) else input
    second = other(where(condition, safe, x)) if callable(other) else other
    return where(condition, first, second)
