"""Elementwise functions of one operand: exponentials, logarithms, roots, rounding, signs.

Trigonometry lives in `trigonometry.py`, parts of complex numbers in `complex.py`, error and gamma functions in
`special.py`, what neural networks call activations in `activations.py`.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import Array, Index, operator
from pellucid.autograd.samples import unary
from pellucid.core.checks import require_kind
from pellucid.kernels.arithmetic import directions, rounded, signs
from pellucid.ops.families import SMOOTH, no_slope, smooth

__all__ = ["abs", "absolute", "ceil", "deg2rad", "exp", "exp2", "expm1", "fix", "floor", "frac", "log", "log1p",
           "log2", "log10", "nan_to_num", "rad2deg", "reciprocal", "round", "rsqrt", "sgn", "sign", "sqrt",
           "trunc"]  # fmt: skip

LN2, LN10 = math.log(2), math.log(10)
STEP = {"elementwise": True, "exact": True, "method": True, "inplace": True}
both = ("torch", "special")

# --- exponentials, logarithms, roots ---------------------------------------------------------------------------------


@smooth(np.exp, module=both)
def exp(F, grad, result):
    """e to the power of each element. Derivative: the result itself."""
    return grad * result


def _exp2(xp, input: Array):
    return xp.exp2(input) if input.dtype.kind == "f" else xp.exp(input * input.dtype.type(LN2))


@smooth(_exp2, ufunc=np.exp2, module=both)
def exp2(F, grad, result):
    """2 to the power of each element."""
    return grad * result * LN2


@smooth(np.expm1, module=both)
def expm1(F, grad, result):
    """exp(x) - 1, exact near zero."""
    return grad * (result + 1)


@smooth(np.log, 0.2, 3.0)
def log(F, grad, input):
    """Natural logarithm: -inf at zero, NaN for negative reals."""
    return grad / input


@smooth(np.log2, 0.2, 3.0)
def log2(F, grad, input):
    """Logarithm to base 2."""
    return grad / (input * LN2)


@smooth(np.log10, 0.2, 3.0)
def log10(F, grad, input):
    """Logarithm to base 10."""
    return grad / (input * LN10)


@smooth(np.log1p, -0.5, 3.0, module=both)
def log1p(F, grad, input):
    """log(1 + x), exact near zero."""
    return grad / (input + 1)


@smooth(np.sqrt, 0.2, 3.0)
def sqrt(F, grad, result):
    """Square root: NaN for negative reals. The derivative at zero is infinite."""
    return grad / (result * 2)


def _rsqrt(xp, input: Array):
    return 1 / xp.sqrt(input)


@smooth(_rsqrt, 0.2, 3.0)
def rsqrt(F, grad, result):
    """One over the square root."""
    return grad * (result * result * result) * -0.5


@smooth(np.reciprocal, 0.4, 3.0)
def reciprocal(F, grad, result):
    """One over each element."""
    return -grad * (result * result)


def _unit_of_angle(name: str, purpose: str, factor: float):
    """Declare a function that converts angles."""

    @operator(**SMOOTH, name=name)
    class function:
        __doc__ = f"{purpose}\n\n    input: [*S], real. Returns [*S], integers as the default float.\n    "

        def forward(xp, input: Array):
            if input.dtype.kind == "c":
                raise RuntimeError(f"{name} is not supported for complex tensors.")
            return input * factor

        def vjp_input(F, grad): return grad * factor
        samples = unary()

    return function


deg2rad = _unit_of_angle("deg2rad", "Degrees as radians.", math.pi / 180)
rad2deg = _unit_of_angle("rad2deg", "Radians as degrees.", 180 / math.pi)

# --- signs -----------------------------------------------------------------------------------------------------------


@operator(**STEP, holomorphic=False, ufunc=np.absolute, dunder=["__abs__"], alias=["absolute"])
class abs:
    """Absolute value; for complex numbers the modulus, which is real. The derivative at zero counts as zero.

    input: [*S], not bool. Returns [*S], complex as the real dtype of its parts.
    """

    def forward(xp, input: Array):
        require_kind("abs_cpu", input, "fci")
        return xp.absolute(input)

    def vjp_input(F, grad, input): return grad * F.sgn(input)
    def jvp_input(F, tangent, input): return tangent * F.conj(F.sgn(input))  # its real part
    samples = unary()


def _across(F, grad, input, unit, kind):
    """What a change `grad` of a complex number does to its direction `unit`: its part across, over the modulus."""
    if kind.kind != "c":
        return F.zeros_as(grad)
    size = F.abs(input)
    across = grad - F.real_copy(grad * F.conj(unit)) * unit
    return F.where(size == 0, 0, across / F.where(size == 0, 1, size))


@operator(holomorphic=False, elementwise=True, method=True, inplace=True)
class sgn:
    """Sign of each element: x / |x|, and 0 at 0. Complex numbers are scaled to modulus one.

    input: [*S]. Returns [*S] of the same dtype. The derivative of real input is zero.
    """

    def forward(xp, input: Array):
        return directions(input) if input.dtype.kind == "c" else signs(input)

    def vjp_input(F, grad, input, result, input_dtype): return _across(F, grad, input, result, input_dtype)
    def jvp_input(F, tangent, input, result, input_dtype): return _across(F, tangent, input, result, input_dtype)
    samples = unary()


@operator(**STEP)
class sign:
    """Sign of each element: -1, 0 or 1. The derivative is zero.

    input: [*S], real. Returns [*S] of the same dtype.
    Raises: NotImplementedError for complex input.
    """

    def forward(xp, input: Array):
        if input.dtype.kind == "c":
            raise NotImplementedError("Unlike NumPy, torch.sign is not intended to support complex numbers. Please use torch.sgn instead.")
        return signs(input)

    vjp_input = no_slope
    samples = unary()


# --- rounding --------------------------------------------------------------------------------------------------------


def _rounding(name: str, ufunc: np.ufunc, purpose: str, **names):
    """Declare a rounding function: integers are whole already, complex numbers and bools are refused."""

    @operator(**STEP, name=name, ufunc=ufunc, **names)
    class function:
        __doc__ = f"{purpose} The derivative is zero.\n\n    input: [*S], real. Returns [*S] of the same dtype.\n    "

        def forward(xp, input: Array):
            require_kind(f"{name}_cpu", input, "fi")
            return ufunc(input) if input.dtype.kind == "f" else input.copy()

        vjp_input = no_slope
        samples = unary()

    return function


floor = _rounding("floor", np.floor, "The largest whole number that is not greater.")
ceil = _rounding("ceil", np.ceil, "The smallest whole number that is not less.")
trunc = _rounding("trunc", np.trunc, "The whole part, towards zero.", alias=["fix"])


@operator(**STEP)
class frac:
    """The part behind the point: x - trunc(x), with the sign of x. The derivative is one.

    input: [*S], floating-point. Returns [*S] of the same dtype.
    """

    def forward(xp, input: Array):
        require_kind("frac_cpu", input, "f")
        return input - xp.trunc(input)

    def vjp_input(F, grad): return grad
    samples = unary(0.1, 0.9)


@operator(**STEP, ufunc=np.rint, module=both)
class round:
    """The nearest whole number, halves to even; with `decimals`, that many places behind the point.

    input: [*S], real. Returns [*S] of the same dtype. The derivative is zero.
    """

    def forward(xp, input: Array, *, decimals: int = 0):
        require_kind("round_cpu", input, "f" if decimals else "fi")
        return rounded(input, decimals)

    vjp_input = no_slope
    samples = unary()


# --- repairing and taking apart --------------------------------------------------------------------------------------


@operator(**STEP)
class nan_to_num:
    """NaN and infinities replaced: NaN by `nan`, infinities by `posinf` and `neginf`, by default the dtype's limits.

    input: [*S]. Returns [*S] of the same dtype. The derivative is zero where something was replaced.
    """

    def forward(xp, input: Array, nan: float | None = None, posinf: float | None = None, neginf: float | None = None):
        if input.dtype.kind in "iub":
            return input.copy()
        return xp.nan_to_num(input, copy=True, nan=0.0 if nan is None else nan, posinf=posinf, neginf=neginf)

    def vjp_input(F, grad, input): return F.where(F.isfinite(input), grad, 0)
    samples = unary()


@operator(method=True, outputs=("mantissa", "exponent"), constant=("exponent",), exact=True, elementwise=True)
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

    def vjp_input(F, grad, exponent): return F.times_power_of_two(grad, exponent)
    samples = unary(0.3, 0.45)


@operator(module=None, elementwise=True)
class times_power_of_two:
    """input * 2^-exponent, exactly."""

    def forward(xp, input: Array, exponent: Index): return xp.ldexp(input, -exponent)
    def vjp_input(F, grad, exponent): return F.times_power_of_two(grad, exponent)

    def samples(make):
        if make.dtype.kind == "f":
            yield (make(3), make.integers(3)), {}


absolute, fix = abs, trunc
