"""Powers: `pow` in its three forms (number or tensor exponent, number base), square, float_power."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.call import inplace
from pellucid.autograd.operator import Array, Promote, composite, operator
from pellucid.autograd.samples import binary
from pellucid.core.dtype import complex128, float64
from pellucid.core.tensor import Tensor
from pellucid.ops.checks import require_kind
from pellucid.ops.scalars import number_in

__all__ = ["float_power", "pow", "pow_", "square"]

# What PyTorch computes by multiplication rather than by the power function.
SHORT_POWERS = {
    1: np.positive,
    2: np.square,
    3: lambda x: x * x * x,
    0.5: np.sqrt,
    -0.5: lambda x: 1 / np.sqrt(x),
    -1: np.reciprocal,
    -2: lambda x: 1 / (x * x),
}


def integer_power(xp, input: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """Powers of integers; a negative exponent rounds the true value towards zero."""
    if input.dtype.kind == "b":
        return xp.logical_or(input, xp.logical_not(exponent))
    if exponent.dtype.kind == "u" or not (exponent < 0).any():
        return xp.power(input, exponent)
    sign = xp.where(exponent % 2 == 0, 1, input)
    negative = xp.where(input == 1, 1, xp.where(input == -1, sign, 0))
    return xp.where(exponent < 0, negative, xp.power(input, xp.maximum(exponent, 0))).astype(input.dtype)


def real_power(xp, input: np.ndarray, exponent) -> np.ndarray:
    """Powers of floating-point or complex numbers by one number, a 0-d array or a Python number."""
    number = exponent.item() if hasattr(exponent, "item") else exponent
    short = SHORT_POWERS.get(number) if input.dtype.kind == "f" or number == 2 else None
    return xp.power(input, number) if short is None else short(input)


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
            return integer_power(xp, input, exponent)
        return real_power(xp, input, exponent)

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

    def forward(xp, input: Array, exponent: Array): return real_power(xp, input, exponent - 1)

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
        return integer_power(xp, input, exponent) if input.dtype.kind in "iu" else xp.power(input, exponent)

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


def pow_(input, exponent):
    """In-place form of `pow`."""
    return inplace(_form(input, exponent).operator, input, (exponent,))


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


def square_(input):
    """In-place form of `square`."""
    return inplace(pow_scalar.operator, input, (2,))


@composite(method=True, inplace=square_)
def square(input, *, out=None):
    """The square of each element."""
    return pow_scalar(input, 2, out=out)


def _wide(value):
    """A tensor in float64 or complex128; a number as it is."""
    if not isinstance(value, Tensor):
        return value
    return value.to(complex128 if value.is_complex() else float64)


def float_power_(input, exponent):
    """In-place form of `float_power`: the tensor must have the result's dtype, float64 or complex128."""
    other_complex = exponent.is_complex() if isinstance(exponent, Tensor) else isinstance(exponent, complex)
    wanted = complex128 if input.is_complex() or other_complex else float64
    if input.dtype is not wanted:
        raise RuntimeError(f"the base given to float_power_ has dtype {input.dtype} but the operation's result requires dtype {wanted}")
    return pow_(input, _wide(exponent))


@composite(method=True, inplace=float_power_)
def float_power(input, exponent, *, out=None):
    """`input` to the power of `exponent`, computed and returned in float64 (complex128 for complex operands)."""
    base, exponent = _wide(input), _wide(exponent)
    if isinstance(base, Tensor) and not isinstance(exponent, (Tensor, complex)):
        return pow_scalar(base, exponent, out=out)
    if isinstance(exponent, complex) and not base.is_complex():
        base = base.to(complex128)
    return pow(base, exponent, out=out)
