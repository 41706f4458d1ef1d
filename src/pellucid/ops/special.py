"""Error, gamma, Bessel and zeta functions, with the logarithms and entropies that go with them.

SciPy computes them (it is imported when the first of them is called), Bessel and Airy functions with PyTorch's error, which
`kernels/bessel.py` knows.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from pellucid.autograd.call import inplace
from pellucid.autograd.operator import Array, Promote, composite, operator
from pellucid.autograd.samples import binary, unary
from pellucid.core.checks import require_kind
from pellucid.kernels import activations, bessel
from pellucid.kernels import special as kernel
from pellucid.ops.families import SMOOTH, of_two, smooth
from pellucid.ops.powers import log_of

__all__ = ["digamma", "erf", "erfc", "erfinv", "i0", "igamma", "igammac", "lgamma", "logit", "polygamma", "xlogy"]

APART = {"method": False, "inplace": False, "module": "special"}  # PyTorch has these in `special` only
both = ("torch", "special")
ROOT_PI, ROOT_2PI = math.sqrt(math.pi), math.sqrt(2 * math.pi)


def real(name: str, values=None):
    """A forward on real numbers: `values`, or SciPy's function of that name."""

    def forward(xp, input: Array):
        require_kind(f"{name}_cpu", input, "f")
        return kernel.scipy(name, input) if values is None else values(input)

    return forward


# --- error function --------------------------------------------------------------------------------------------------


@smooth(real("erf", activations.erf), module=both)
def erf(F, grad, input):
    """The error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x. Real numbers only."""
    return grad * (F.exp(-(input * input)) * (2 / ROOT_PI))


@smooth(real("erfc"), module=both)
def erfc(F, grad, input):
    """One minus the error function, exact for large x. Real numbers only."""
    return grad * (F.exp(-(input * input)) * (-2 / ROOT_PI))


@smooth(real("erfinv", kernel.erfinv), -0.9, 0.9, module=both)
def erfinv(F, grad, result):
    """The inverse of the error function, on (-1, 1)."""
    return grad * (F.exp(result * result) * (ROOT_PI / 2))


@smooth(real("erfcx"), **APART)
def erfcx(F, grad, input, result):
    """exp(x^2) * erfc(x), without overflow or underflow. Real numbers only."""
    return grad * (2 * input * result - 2 / ROOT_PI)


@smooth(real("ndtr"), **APART)
def ndtr(F, grad, input):
    """The area under the standard normal density up to x."""
    return grad * (F.exp(input * input * -0.5) * (1 / ROOT_2PI))


@smooth(real("ndtri"), 0.1, 0.9, **APART)
def ndtri(F, grad, result):
    """The inverse of `ndtr`, on (0, 1)."""
    return grad * (F.exp(result * result * 0.5) * ROOT_2PI)


@smooth(real("log_ndtr"), **APART)
def log_ndtr(F, grad, input, result):
    """The logarithm of `ndtr`, exact for very negative x."""
    return grad * (F.exp(input * input * -0.5 - result) * (1 / ROOT_2PI))


# --- gamma function --------------------------------------------------------------------------------------------------


@smooth(real("gammaln", kernel.lgamma), 0.3, 3.0)
def lgamma(F, grad, input):
    """Logarithm of the absolute value of the gamma function. Real numbers only."""
    return grad * F.digamma(input)


@smooth(real("psi", kernel.digamma), 0.3, 3.0)
def digamma(F, grad, input):
    """Derivative of `lgamma`; minus infinity at 0, NaN at negative whole numbers."""
    return grad * F.polygamma_of(input, 1)


@operator(promote=Promote.FLOAT, module=None, node="PolygammaBackward0")
class polygamma_of:
    """The n-th derivative of `digamma`."""

    def forward(xp, input: Array, order: int):
        require_kind("psi_cpu" if order == 0 else "zeta_cpu", input, "f")
        return kernel.polygamma(order, input)

    def vjp_input(F, grad, input, order): return grad * F.polygamma_of(input, order + 1)

    def samples(make):
        yield (make(3, 4, low=0.3), 1), {}
        yield (make(3, 4, low=0.3), 2), {}


def _check_order(n: int) -> None:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")


@composite(module=both)
def polygamma(n: int, input, *, out=None):
    """The n-th derivative of `digamma` at each element.

    Raises: RuntimeError (n is negative).
    """
    _check_order(n)
    return digamma(input, out=out) if n == 0 else polygamma_of(input, n, out=out)


@composite(method=True, name="polygamma", module=None)
def _polygamma(self, n: int):
    """The n-th derivative of `digamma` at each element; see `pellucid.polygamma`."""
    return polygamma(n, self)


@composite(method=True, name="polygamma_", module=None)
def polygamma_(self, n: int):
    """In-place form of `polygamma`."""
    _check_order(n)
    return self.digamma_() if n == 0 else inplace(polygamma_of.operator, self, (n,))


def _incomplete(name: str, which: str, scipy_name: str, sign: int):
    """Declare one of the two regularised incomplete gamma functions, which add up to one."""

    @operator(promote=Promote.FLOAT, method=True, inplace=True, name=name)
    class function:
        __doc__ = f"""The regularised {which} incomplete gamma function. Differentiable in `other` only.

        input, other: real, not negative, broadcastable to a common shape. Returns the common shape.
        """

        forward = of_two(functools.partial(kernel.scipy, scipy_name), f"{scipy_name}_cpu")
        def vjp_input(F, grad): raise NotImplementedError(f"the derivative for '{name}: input' is not implemented.")

        def vjp_other(F, grad, input, other):
            return sign * grad * F.exp((input - 1) * F.log(other) - other - F.lgamma(input))

    return function


igamma = _incomplete("igamma", "lower", "gammainc", 1)
igammac = _incomplete("igammac", "upper", "gammaincc", -1)


# --- logarithms and entropies ----------------------------------------------------------------------------------------


@operator(**SMOOTH, module=both)
class logit:
    """log(x / (1 - x)), the inverse of sigmoid; with `eps`, x is first clamped to [eps, 1 - eps].

    input: [*S], real. Returns [*S], integers as the default float. The derivative is zero where x was clamped.
    """

    def forward(xp, input: Array, eps: float | None = None):
        require_kind("logit_cpu", input, "f")
        clamped = input if eps is None else xp.clip(input, eps, 1 - eps)
        return xp.log(clamped / (1 - clamped))

    def vjp_input(F, grad, input, eps):
        slope = grad / (input * (1 - input))
        low = 0.0 if eps is None else eps
        outside = (input < low) | (input > 1 - low)
        return F.where(outside, math.nan if eps is None else 0.0, slope)

    samples = unary(0.1, 0.9)


def _times_log(name: str, purpose: str, log: np.ufunc, shift: int, **names):
    """Declare input * log(other + shift), which is 0 where input is 0."""

    @operator(promote=Promote.FLOAT, numbers=True, name=name, **names)
    class function:
        __doc__ = f"""{purpose}, and 0 where input is 0 (unless other is NaN).

        input, other: real, broadcastable to a common shape. Returns the common shape, integers as the default float.
        """

        def forward(xp, input: Array, other: Array):
            require_kind(f"{name}_cpu", input, "f")
            return xp.where((input == 0) & ~xp.isnan(other), 0, input * log(other)).astype(input.dtype)

        def vjp_input(F, grad, input, other):
            return F.where((input == 0) & (other <= -shift), 0, grad * log_of(F, other + shift))

        def vjp_other(F, grad, input, other): return grad * input / (other + shift)
        samples = binary(low=0.3, high=2.0)

    return function


xlogy = _times_log("xlogy", "input * log(other)", np.log, 0, method=True, inplace=True, module=both)
xlog1py = _times_log("xlog1py", "input * log(1 + other)", np.log1p, 1, module="special")


@smooth(real("entr"), 0.2, 2.0, **APART)
def entr(F, grad, input):
    """-x log(x): 0 at 0, minus infinity for negative numbers."""
    return grad * (-F.log(input) - 1)


# --- Bessel functions and others -------------------------------------------------------------------------------------


@smooth(real("i0"), module=both)
def i0(F, grad, input):
    """Modified Bessel function of the first kind, order zero. Real numbers only."""
    return grad * F.i1(input)


@smooth(real("i0e"), 0.2, 2.0, **APART)
def i0e(F, grad, input, result):
    """`i0` scaled by exp(-|x|)."""
    return grad * (F.i1e(input) - F.sgn(input) * result)


def _not_tiny(F, input, kind):
    """Where a number is neither tiny nor NaN, and the numbers with what is not replaced by something to divide by."""
    tiny = float(np.finfo(kind).eps)
    large = F.abs(input) > tiny
    return large, F.where(large, input, tiny)


@smooth(real("i1"), 0.2, 2.0, **APART)
def i1(F, grad, input, input_dtype, result):
    """Modified Bessel function of the first kind, order one."""
    large, safe = _not_tiny(F, input, input_dtype)
    return grad * F.where(large, F.i0(safe) - result / safe, 0.5)


@smooth(real("i1e"), 0.2, 2.0, **APART)
def i1e(F, grad, input, input_dtype, result):
    """`i1` scaled by exp(-|x|)."""
    large, safe = _not_tiny(F, input, input_dtype)
    return grad * F.where(large, F.i0e(safe) - result * (F.sgn(safe) + 1 / safe), 0.5)


@operator(promote=Promote.FLOAT, numbers=True, module="special")
class zeta:
    """The Hurwitz zeta function: the sum of (k + other) ** -input over k = 0, 1, 2, ... Not differentiable in `input`.

    input, other: real, broadcastable to a common shape. Returns the common shape, integers as the default float.
    """

    def forward(xp, input: Array, other: Array):
        require_kind("zeta_cpu", other, "f")  # formulas call it with integers for input
        return kernel.zeta(input, other)

    def vjp_input(F, grad): raise NotImplementedError("the derivative for 'zeta: self' is not implemented.")
    def vjp_other(F, grad, input, other): return grad * (-input * F.zeta(input + 1, other))
    def samples(make): yield (make.integers(3, 4, low=2, high=4), make(4, low=0.5)), {}


def _without_derivative(name: str, purpose: str, values) -> None:
    """Declare a function that PyTorch does not differentiate either, from its values on arrays or its name in SciPy."""

    @operator(promote=Promote.FLOAT, module="special", name=name)
    class function:
        __doc__ = f"{purpose}.\n\n    input: [*S], real. Returns [*S], integers as the default float. Not differentiable.\n    "
        forward = real(name, functools.partial(kernel.scipy, values) if isinstance(values, str) else values)
        samples = unary(0.2, 2.0)


BESSEL = "Bessel function of the {} kind, order {}"
for _name, _purpose, _values in (
    ("airy_ai", "The Airy function Ai", bessel.airy_ai),
    ("bessel_j0", BESSEL.format("first", "zero"), functools.partial(bessel.first_kind, 0)),
    ("bessel_j1", BESSEL.format("first", "one"), functools.partial(bessel.first_kind, 1)),
    ("bessel_y0", BESSEL.format("second", "zero"), functools.partial(bessel.second_kind, 0)),
    ("bessel_y1", BESSEL.format("second", "one"), functools.partial(bessel.second_kind, 1)),
    ("modified_bessel_i0", "Modified " + BESSEL.format("first", "zero"), "i0"),
    ("modified_bessel_i1", "Modified " + BESSEL.format("first", "one"), "i1"),
    ("modified_bessel_k0", "Modified " + BESSEL.format("second", "zero"), "k0"),
    ("modified_bessel_k1", "Modified " + BESSEL.format("second", "one"), "k1"),
    ("scaled_modified_bessel_k0", "`modified_bessel_k0` scaled by exp(x)", "k0e"),
    ("scaled_modified_bessel_k1", "`modified_bessel_k1` scaled by exp(x)", "k1e"),
    ("spherical_bessel_j0", "Spherical " + BESSEL.format("first", "zero") + ": sin(x) / x, and 1 at 0", bessel.spherical),
):
    _without_derivative(_name, _purpose, _values)


# --- further names ---------------------------------------------------------------------------------------------------

for _name, _function in (("gammaln", lgamma), ("digamma", digamma), ("psi", digamma),
                         ("gammainc", igamma), ("gammaincc", igammac)):  # fmt: skip
    composite(name=_name, module="special")(_function)
