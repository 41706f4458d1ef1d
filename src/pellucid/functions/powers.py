"""Powers in double precision, and by powers of two: `float_power`, `ldexp`. `pow` is in `ops/powers.py`."""

from __future__ import annotations

from pellucid.autograd.call import inplace
from pellucid.autograd.operator import composite
from pellucid.core.checks import require_tensors
from pellucid.core.dtype import complex128, float64
from pellucid.core.tensor import Tensor
from pellucid.ops.arithmetic import mul
from pellucid.ops.extrema import ldexp_integer
from pellucid.ops.powers import pow, pow_, pow_scalar, rpow

__all__ = ["float_power", "float_power_", "ldexp", "ldexp_"]


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


def _floating_with_integer(input, other) -> bool:
    require_tensors("ldexp", input=input, other=other)
    return input.is_floating_point() and other._array.dtype.kind in "iub"


def ldexp_(input, other):
    """In-place form of `ldexp`."""
    if _floating_with_integer(input, other):
        return inplace(ldexp_integer.operator, input, (other,))
    return input.mul_(rpow(other, 2.0))


@composite(method=True, inplace=ldexp_)
def ldexp(input, other, *, out=None):
    """input * 2^other, element by element, in the common dtype; with integer exponents in that of a floating-point input."""
    if _floating_with_integer(input, other):
        return ldexp_integer(input, other, out=out)
    return mul(input, rpow(other, 2.0), out=out)
