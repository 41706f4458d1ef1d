"""Elementwise functions of one operand: exponentials, logarithms, roots, rounding, signs.

Trigonometry lives in `trigonometry.py`, parts of complex numbers in `complex.py`, error and gamma functions in
`special.py`, what neural networks call activations in `activations.py`.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import Array, Index, Promote, operator
from pellucid.autograd.samples import unary
from pellucid.ops.checks import require_kind

__all__ = ["abs", "absolute", "ceil", "deg2rad", "exp", "exp2", "expm1", "fix", "floor", "frac", "log", "log1p",
           "log2", "log10", "nan_to_num", "rad2deg", "reciprocal", "round", "rsqrt", "sgn", "sign", "sqrt", "trunc"]

LN2, LN10 = math.log(2), math.log(10)
smooth = {"promote": Promote.FLOAT, "method": True, "inplace": True}
step = {"exact": True, "method": True, "inplace": True}


@operator(**smooth, ufunc=np.exp, module=("torch", "special"))
class exp:
    """e to the power of each element.

    input: [*S]. Returns [*S], integers as the default float. Derivative: the result itself.
    """

    def forward(xp, input: Array):
        return xp.exp(input)

    def vjp_input(F, grad, result):
        return grad * result

    samples = unary()


@operator(**smooth, ufunc=np.exp2, module=("torch", "special"))
class exp2:
    """2 to the power of each element.

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return xp.exp2(input) if input.dtype.kind == "f" else xp.exp(input * input.dtype.type(LN2))

    def vjp_input(F, grad, result):
        return grad * result * LN2

    samples = unary()


@operator(**smooth, ufunc=np.expm1, module=("torch", "special"))
class expm1:
    """exp(x) - 1, exact near zero.

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return xp.expm1(input)

    def vjp_input(F, grad, result):
        return grad * (result + 1)

    samples = unary()


@operator(**smooth, ufunc=np.log)
class log:
    """Natural logarithm: -inf at zero, NaN for negative reals.

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return xp.log(input)

    def vjp_input(F, grad, input):
        return grad / input

    samples = unary(0.2, 3.0)


@operator(**smooth, ufunc=np.log2)
class log2:
    """Logarithm to base 2.

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return xp.log2(input)

    def vjp_input(F, grad, input):
        return grad / (input * LN2)

    samples = unary(0.2, 3.0)


@operator(**smooth, ufunc=np.log10)
class log10:
    """Logarithm to base 10.

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return xp.log10(input)

    def vjp_input(F, grad, input):
        return grad / (input * LN10)

    samples = unary(0.2, 3.0)


@operator(**smooth, ufunc=np.log1p, module=("torch", "special"))
class log1p:
    """log(1 + x), exact near zero.

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return xp.log1p(input)

    def vjp_input(F, grad, input):
        return grad / (input + 1)

    samples = unary(-0.5, 3.0)


@operator(**smooth, ufunc=np.sqrt)
class sqrt:
    """Square root: NaN for negative reals. The derivative at zero is infinite.

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return xp.sqrt(input)

    def vjp_input(F, grad, result):
        return grad / (result * 2)

    samples = unary(0.2, 3.0)


@operator(**smooth)
class rsqrt:
    """One over the square root.

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return 1 / xp.sqrt(input)

    def vjp_input(F, grad, result):
        return grad * (result * result * result) * -0.5

    samples = unary(0.2, 3.0)


@operator(**smooth, ufunc=np.reciprocal)
class reciprocal:
    """One over each element.

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return xp.reciprocal(input)

    def vjp_input(F, grad, result):
        return -grad * (result * result)

    samples = unary(0.4, 3.0)


# --- signs -----------------------------------------------------------------------------------------------------------


@operator(holomorphic=False, exact=True, method=True, inplace=True, ufunc=np.absolute, dunder=["__abs__"],
          alias=["absolute"])  # fmt: skip
class abs:
    """Absolute value; for complex numbers the modulus, which is real. The derivative at zero counts as zero.

    input: [*S], not bool. Returns [*S], complex as the real dtype of its parts.
    """

    def forward(xp, input: Array):
        require_kind("abs_cpu", input, "fci")
        return xp.absolute(input)

    def vjp_input(F, grad, input):
        return grad * F.sgn(input)

    samples = unary()


@operator(holomorphic=False, method=True, inplace=True)
class sgn:
    """Sign of each element: x / |x|, and 0 at 0. Complex numbers are scaled to modulus one.

    input: [*S]. Returns [*S] of the same dtype. The derivative of real input is zero.
    """

    def forward(xp, input: Array):
        if input.dtype.kind == "b":
            return input.copy()
        if input.dtype.kind != "c":
            return xp.sign(input)
        modulus = xp.absolute(input)
        return xp.where(modulus == 0, 0, input / modulus).astype(input.dtype)

    def vjp_input(F, grad, input):
        return F.sgn_backward(grad, input)

    samples = unary()


@operator(holomorphic=False, module=None)
class sgn_backward:
    """Gradient of `sgn`: zero for reals; for complex numbers the part of grad across the direction of "
    "input, over |input|."""

    def forward(xp, input: Array, point: Array):
        if point.dtype.kind != "c":
            return xp.zeros(input.shape, input.dtype)
        modulus = xp.absolute(point)
        unit = point / modulus
        across = input - (input * xp.conj(unit)).real * unit
        return xp.where(modulus == 0, 0, across / modulus).astype(point.dtype)

    def vjp_input(F, grad, point):
        return F.sgn_backward(grad, point)

    def vjp_point(F, grad, input, point):
        return F.sgn_bend(grad, input, point)


@operator(holomorphic=False, module=None)
class sgn_bend:
    """Second derivative of `sgn` by its operand, contracted with two directions; see `sgn_backward`."""

    def forward(xp, input: Array, first: Array, point: Array):
        if point.dtype.kind != "c":
            return xp.zeros(input.shape, input.dtype)
        modulus = xp.absolute(point)
        unit = point / modulus
        along, along_first = (input * xp.conj(unit)).real, (first * xp.conj(unit)).real
        product = (input * xp.conj(first)).real
        bend = 3 * along * along_first * unit - along * first - along_first * input - product * unit
        return xp.where(modulus == 0, 0, bend / modulus**2).astype(point.dtype)


@operator(**step, ufunc=np.sign)
class sign:
    """Sign of each element: -1, 0 or 1. The derivative is zero.

    input: [*S], real. Returns [*S] of the same dtype.
    Raises: RuntimeError for complex input.
    """

    def forward(xp, input: Array):
        if input.dtype.kind == "c":
            raise NotImplementedError(
                "Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead."
            )
        return xp.sign(input) if input.dtype.kind != "b" else input.copy()

    def vjp_input(F, grad):
        return F.zeros_as(grad)

    samples = unary()


# --- rounding --------------------------------------------------------------------------------------------------------


def rounded(name: str, function, array: np.ndarray) -> np.ndarray:
    """Apply a rounding function; integers are already whole. NotImplementedError for complex numbers and bools."""
    require_kind(f"{name}_cpu", array, "fi")
    return function(array) if array.dtype.kind == "f" else array.copy()


@operator(**step, ufunc=np.floor)
class floor:
    """The largest whole number that is not greater. The derivative is zero.

    input: [*S], real. Returns [*S] of the same dtype.
    """

    def forward(xp, input: Array):
        return rounded("floor", xp.floor, input)

    def vjp_input(F, grad):
        return F.zeros_as(grad)

    samples = unary()


@operator(**step, ufunc=np.ceil)
class ceil:
    """The smallest whole number that is not less. The derivative is zero.

    input: [*S], real. Returns [*S] of the same dtype.
    """

    def forward(xp, input: Array):
        return rounded("ceil", xp.ceil, input)

    def vjp_input(F, grad):
        return F.zeros_as(grad)

    samples = unary()


@operator(**step, ufunc=np.trunc, alias=["fix"])
class trunc:
    """The whole part, towards zero. The derivative is zero.

    input: [*S], real. Returns [*S] of the same dtype.
    """

    def forward(xp, input: Array):
        return rounded("trunc", xp.trunc, input)

    def vjp_input(F, grad):
        return F.zeros_as(grad)

    samples = unary()


@operator(**step)
class frac:
    """The part behind the point: x - trunc(x), with the sign of x. The derivative is one.

    input: [*S], floating-point. Returns [*S] of the same dtype.
    """

    def forward(xp, input: Array):
        require_kind("frac_cpu", input, "f")
        return input - xp.trunc(input)

    def vjp_input(F, grad):
        return grad

    samples = unary(0.1, 0.9)


@operator(**step, ufunc=np.rint, module=("torch", "special"))
class round:
    """The nearest whole number, halves to even; with `decimals`, that many places behind the point.

    input: [*S], real. Returns [*S] of the same dtype. The derivative is zero.
    """

    def forward(xp, input: Array, *, decimals: int = 0):
        if decimals == 0:
            return rounded("round", xp.rint, input)
        require_kind("round_cpu", input, "f")
        ten = input.dtype.type(10.0 ** math.fabs(decimals))
        return xp.rint(input * ten) / ten if decimals > 0 else xp.rint(input / ten) * ten

    def vjp_input(F, grad):
        return F.zeros_as(grad)

    samples = unary()


# --- scaling and repairing -------------------------------------------------------------------------------------------


@operator(**smooth)
class deg2rad:
    """Degrees as radians.

    input: [*S], real. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        if input.dtype.kind == "c":
            raise RuntimeError("deg2rad is not supported for complex tensors.")
        return input * (math.pi / 180)

    def vjp_input(F, grad):
        return grad * (math.pi / 180)

    samples = unary()


@operator(**smooth)
class rad2deg:
    """Radians as degrees.

    input: [*S], real. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        if input.dtype.kind == "c":
            raise RuntimeError("rad2deg is not supported for complex tensors.")
        return input * (180 / math.pi)

    def vjp_input(F, grad):
        return grad * (180 / math.pi)

    samples = unary()


@operator(**step)
class nan_to_num:
    """NaN and infinities replaced: NaN by `nan`, infinities by `posinf` and `neginf`, by default the dtype's limits.

    input: [*S]. Returns [*S] of the same dtype. The derivative is zero where something was replaced.
    """

    def forward(xp, input: Array, nan: float | None = None, posinf: float | None = None, neginf: float | None = None):
        if input.dtype.kind in "iub":
            return input.copy()
        return xp.nan_to_num(input, copy=True, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)

    def vjp_input(F, grad, input):
        return F.where(F.isfinite(input), grad, 0)

    samples = unary()


@operator(method=True, outputs=("mantissa", "exponent"), constant=("exponent",), exact=True)
class frexp:
    """Each element as mantissa * 2^exponent, the mantissa in [0.5, 1) or its negative, or zero.

    input: [*S], floating-point. Returns the pair (mantissa, exponent), the exponent as int32.
    Raises: RuntimeError for other dtypes.
    """

    def forward(xp, input: Array):
        if input.dtype.kind != "f":
            raise RuntimeError(f"torch.frexp() only supports floating-point dtypes: got {input.dtype.name}")
        mantissa, exponent = xp.frexp(input)
        return xp.asarray(mantissa), xp.asarray(exponent, np.int32)

    def vjp_input(F, grad, exponent):
        return F.times_power_of_two(grad, exponent)

    samples = unary(0.3, 0.45)


@operator(module=None)
class times_power_of_two:
    """input * 2^-exponent, exactly."""

    def forward(xp, input: Array, exponent: Index):
        return xp.ldexp(input, -exponent)

    def vjp_input(F, grad, exponent):
        return F.times_power_of_two(grad, exponent)

    def samples(make):
        if make.dtype.kind == "f":
            yield (make(3), make.integers(3)), {}


absolute, fix = abs, trunc
