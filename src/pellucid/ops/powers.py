"""Powers: `pow` in its three forms (number or tensor exponent, number base), square. `float_power` is in `functions/powers.py`."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Promote, composite, operator
from pellucid.autograd.samples import binary
from pellucid.core.checks import require_kind
from pellucid.core.tensor import Tensor
from pellucid.core.values import number_in
from pellucid.kernels.powers import integer_power, real_power
from pellucid.ops.families import in_place

__all__ = ["pow", "pow_", "square"]


@operator(promote=Promote.SAME, numbers=True, node="PowBackward0", module=None)
class pow_scalar:
    """Each element to the power of a number.

    input: [*S]; exponent: a number. Returns [*S] in the common dtype.
    Raises: RuntimeError for a negative integer power of integers.
    """

    def forward(xp, input: Array, exponent: Array):
        if input.dtype.kind in "iub":
            if xp.any(exponent < 0):
                raise RuntimeError("Integers to negative integer powers are not allowed.")
            return integer_power(input, exponent)
        return real_power(input, exponent)

    def vjp_input(F, grad, input, exponent):
        if exponent == 0:
            return F.zeros_as(grad)
        if exponent == 2:
            return grad * (input * 2)
        return grad * (F.pow_less_one(input, exponent) * exponent)

    def samples(make):
        for exponent in (2, 3, -1, 0.5, 1.7, 1):
            yield (make(3, 4, low=0.3), exponent), {}


@operator(promote=Promote.SAME, numbers=True, module=None)
class pow_less_one:
    """input ** (exponent - 1) for a number `exponent`: what the derivative of a power needs."""

    def forward(xp, input: Array, exponent: Array): return real_power(input, exponent - 1)

    def vjp_input(F, grad, input, exponent):
        if exponent == 1:
            return F.zeros_as(grad)
        return grad * (F.pow_less_one(input, exponent - 1) * (exponent - 1))

    def samples(make):
        for exponent in (2, 3, 0.5, 1.7, 1):
            yield (make(3, 4, low=0.3), exponent), {}


def log_of(F, value):
    """The logarithm in a formula, where a Python number may stand for a tensor."""
    return np.log(np.asarray(value) + 0.0).item() if isinstance(value, (int, float, complex)) else F.log(value)


@operator(promote=Promote.SAME, numbers=True, node="PowBackward1", module=None)
class pow_tensor:
    """Each element to the power of the other tensor's element; the base may be a number.

    input, exponent: broadcastable to a common shape. Returns the common shape and dtype.
    """

    def forward(xp, input: Array, exponent: Array):
        require_kind("pow_cpu", input, "fci")
        return integer_power(input, exponent) if input.dtype.kind in "iu" else xp.power(input, exponent)

    def vjp_input(F, grad, input, exponent):
        return F.where(exponent == 0, 0, grad * (exponent * F.pow_tensor(input, exponent - 1)))

    def vjp_exponent(F, grad, input, exponent, result):
        return F.where(F.pow_vanishes(input, exponent), 0, grad * result * log_of(F, input))

    samples = binary(low=0.3, high=2.0)


@operator(promote=Promote.SAME, numbers=True, module=None)
class pow_vanishes:
    """Where 0 is raised to a power of at least 0: the derivative by the exponent counts as zero there."""

    def forward(xp, input: Array, exponent: Array):
        real = exponent >= 0 if exponent.dtype.kind != "c" else (exponent.imag == 0) & (exponent.real >= 0)
        return (input == 0) & real


def _form(input, exponent):
    """Which operator takes the exponent. A number is looked at before it wraps around in an unsigned type."""
    if isinstance(exponent, Tensor):
        return pow_tensor
    if exponent.__class__ is int and isinstance(input, Tensor) and input._array.dtype.kind in "iu":
        if exponent < 0:
            raise RuntimeError(f"Integers to negative integer powers are not allowed: {exponent}")
        number_in(exponent, input._array.dtype)
    return pow_scalar


pow_ = in_place("pow_", lambda input, exponent: (_form(input, exponent), exponent))


@composite(method=True, inplace=pow_, dunder=["__pow__"], idunder=["__ipow__"])
def pow(input, exponent, *, out=None):
    """`input` to the power of `exponent`, element by element.

    input, exponent: tensors or numbers, at least one a tensor, broadcastable to a common shape.
    Raises: RuntimeError (integers to a negative integer power).
    """
    return _form(input, exponent)(input, exponent, out=out)


@composite(dunder=["__rpow__"], module=None)
def rpow(input, other):
    """other ** input."""
    return pow_tensor(other, input)


@composite(method=True, inplace=in_place("square_", lambda input: (pow_scalar, 2)))
def square(input, *, out=None):
    """The square of each element."""
    return pow_scalar(input, 2, out=out)
