"""Error, gamma, Bessel and zeta functions, with the logarithms and entropies that go with them.

SciPy computes them; it is imported when the first of them is called.
"""

from __future__ import annotations

import importlib
import math
from functools import partial

import numpy as np

from pellucid.autograd.call import inplace
from pellucid.autograd.operator import Array, Promote, composite, operator
from pellucid.autograd.samples import binary, unary
from pellucid.kernels import bessel
from pellucid.ops.checks import require_kind
from pellucid.ops.powers import log_of

__all__ = ["digamma", "erf", "erfc", "erfinv", "i0", "igamma", "igammac", "lgamma", "logit", "mvlgamma", "polygamma",
           "xlogy"]

smooth = {"promote": Promote.FLOAT, "method": True, "inplace": True}
apart = {"promote": Promote.FLOAT, "module": "special"}
both = ("torch", "special")


def scipy_special(name: str, *arrays: np.ndarray) -> np.ndarray:
    """A function of scipy.special, in the dtype of the last array."""
    require_kind(f"{name}_cpu", arrays[-1], "f")
    module = importlib.import_module("scipy.special")  # slow import
    return np.asarray(getattr(module, name)(*arrays)).astype(arrays[-1].dtype, copy=False)


# --- error function --------------------------------------------------------------------------------------------------


@operator(**smooth, module=both)
class erf:
    """The error function: 2 / sqrt(pi) times the integral of exp(-t^2) from 0 to x.

    input: [*S], real. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return scipy_special("erf", input)

    def vjp_input(F, grad, input):
        return grad * (F.exp(-(input * input)) * (2 / math.sqrt(math.pi)))

    samples = unary()


@operator(**smooth, module=both)
class erfc:
    """One minus the error function, exact for large x.

    input: [*S], real. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return scipy_special("erfc", input)

    def vjp_input(F, grad, input):
        return grad * (F.exp(-(input * input)) * (-2 / math.sqrt(math.pi)))

    samples = unary()


@operator(**smooth, module=both)
class erfinv:
    """The inverse of the error function, on (-1, 1).

    input: [*S], real. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return scipy_special("erfinv", input)

    def vjp_input(F, grad, result):
        return grad * (F.exp(result * result) * (math.sqrt(math.pi) / 2))

    samples = unary(-0.9, 0.9)


@operator(**apart)
class erfcx:
    """exp(x^2) * erfc(x), without overflow or underflow.

    input: [*S], real. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return scipy_special("erfcx", input)

    def vjp_input(F, grad, input, result):
        return grad * (2 * input * result - 2 / math.sqrt(math.pi))

    samples = unary()


@operator(**apart)
class ndtr:
    """The area under the standard normal density up to x.

    input: [*S], real. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return scipy_special("ndtr", input)

    def vjp_input(F, grad, input):
        return grad * (F.exp(input * input * -0.5) * (1 / math.sqrt(2 * math.pi)))

    samples = unary()


@operator(**apart)
class ndtri:
    """The inverse of `ndtr`, on (0, 1).

    input: [*S], real. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return scipy_special("ndtri", input)

    def vjp_input(F, grad, result):
        return grad * (F.exp(result * result * 0.5) * math.sqrt(2 * math.pi))

    samples = unary(0.1, 0.9)


@operator(**apart)
class log_ndtr:
    """The logarithm of `ndtr`, exact for very negative x.

    input: [*S], real. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return scipy_special("log_ndtr", input)

    def vjp_input(F, grad, input):
        return grad / (F.erfcx(input * -math.sqrt(0.5)) * math.sqrt(math.pi / 2))

    samples = unary()


# --- gamma function --------------------------------------------------------------------------------------------------


@operator(**smooth)
class lgamma:
    """Logarithm of the absolute value of the gamma function.

    input: [*S], real. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return scipy_special("gammaln", input)

    def vjp_input(F, grad, input):
        return grad * F.digamma(input)

    samples = unary(0.3, 3.0)


@operator(**smooth)
class digamma:
    """Derivative of `lgamma`; minus infinity at 0, NaN at negative whole numbers.

    input: [*S], real. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        value = scipy_special("psi", input)
        pole = (input < 0) & (input == xp.floor(input))
        value = xp.where(pole, xp.nan, value)
        return xp.where(input == 0, xp.copysign(xp.inf, -input), value).astype(input.dtype)

    def vjp_input(F, grad, input):
        return grad * F.polygamma_of(input, 1)

    samples = unary(0.3, 3.0)


@operator(promote=Promote.FLOAT, module=None, node="PolygammaBackward0")
class polygamma_of:
    """The n-th derivative of `digamma`."""

    def forward(xp, input: Array, order: int):
        if order == 0:
            return scipy_special("psi", input)
        if order == 1:
            # reflection: trigamma(x) = pi^2 / sin(pi x)^2 - trigamma(1 - x); scipy's zeta knows positive numbers only
            mirrored = xp.where(input < 0.5, 1 - input, input)
            value = scipy_special("zeta", xp.full_like(input, 2), mirrored)
            sine = xp.sin(math.pi * input)
            return xp.where(input < 0.5, math.pi**2 / (sine * sine) - value, value).astype(input.dtype)
        factor = (1 if order % 2 else -1) * math.gamma(order + 1)
        return input.dtype.type(factor) * scipy_special("zeta", xp.full_like(input, order + 1), input)

    def vjp_input(F, grad, input, order):
        return grad * F.polygamma_of(input, order + 1)

    def samples(make):
        yield (make(3, 4, low=0.3), 1), {}
        yield (make(3, 4, low=0.3), 2), {}


def _check_order(n: int) -> None:
    if n < 0:
        raise RuntimeError("polygamma(n, x) does not support negative n.")


@composite(module=both)
def polygamma(n: int, input, *, out=None):
    """The n-th derivative of `digamma` at each element.

    Raises:
        RuntimeError: n is negative.
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


def mvlgamma_(input, p: int):
    """In-place form of `mvlgamma`."""
    return input.copy_(mvlgamma(input, p))


@composite(method=True, inplace=mvlgamma_)
def mvlgamma(input, p: int, *, out=None):
    """Logarithm of the multivariate gamma function of dimension p.

    Raises:
        RuntimeError: p is less than one.
    """
    if p < 1:
        raise RuntimeError(f"p has to be greater than or equal to 1: got {p}")
    if not (input.is_floating_point()):
        input = input.to(_default())
    total = sum((lgamma(input - j / 2) for j in range(p)), p * (p - 1) / 4 * math.log(math.pi))
    return total if out is None else out.copy_(total)


def _default():
    from pellucid.core.dtype import get_default_dtype

    return get_default_dtype()


@operator(promote=Promote.FLOAT, method=True, inplace=True, module="torch")
class igamma:
    """The regularised lower incomplete gamma function. Differentiable in `other` only.

    input, other: real, not negative, broadcastable to a common shape. Returns the common shape.
    """

    def forward(xp, input: Array, other: Array):
        return scipy_special("gammainc", input, other)

    def vjp_input(F, grad):
        raise NotImplementedError("the derivative for 'igamma: input' is not implemented.")

    def vjp_other(F, grad, input, other):
        return grad * F.exp((input - 1) * F.log(other) - other - F.lgamma(input))

    def samples(make):
        return ()


@operator(promote=Promote.FLOAT, method=True, inplace=True, module="torch")
class igammac:
    """The regularised upper incomplete gamma function. Differentiable in `other` only.

    input, other: real, not negative, broadcastable to a common shape. Returns the common shape.
    """

    def forward(xp, input: Array, other: Array):
        return scipy_special("gammaincc", input, other)

    def vjp_input(F, grad):
        raise NotImplementedError("the derivative for 'igammac: input' is not implemented.")

    def vjp_other(F, grad, input, other):
        return -grad * F.exp((input - 1) * F.log(other) - other - F.lgamma(input))

    def samples(make):
        return ()


# --- logarithms and entropies ----------------------------------------------------------------------------------------


@operator(**smooth, module=both)
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


@operator(promote=Promote.FLOAT, numbers=True, method=True, inplace=True, module=both)
class xlogy:
    """input * log(other), and 0 where input is 0 (unless other is NaN).

    input, other: broadcastable to a common shape. Returns the common shape, integers as the default float.
    """

    def forward(xp, input: Array, other: Array):
        require_kind("xlogy_cpu", input, "f")
        return xp.where((input == 0) & ~xp.isnan(other), 0, input * xp.log(other)).astype(input.dtype)

    def vjp_input(F, grad, input, other):
        return F.where((input == 0) & (other <= 0), 0, grad * log_of(F, other))

    def vjp_other(F, grad, input, other):
        return grad * input / other

    samples = binary(low=0.3, high=2.0)


@operator(promote=Promote.FLOAT, numbers=True, module="special")
class xlog1py:
    """input * log(1 + other), and 0 where input is 0 (unless other is NaN).

    input, other: broadcastable to a common shape. Returns the common shape, integers as the default float.
    """

    def forward(xp, input: Array, other: Array):
        return xp.where((input == 0) & ~xp.isnan(other), 0, input * xp.log1p(other)).astype(input.dtype)

    def vjp_input(F, grad, input, other):
        return F.where((input == 0) & (other <= -1), 0, grad * log_of(F, other + 1))

    def vjp_other(F, grad, input, other):
        return F.where((input == 0) & ~F.isnan(other), 0, grad * input / (other + 1))

    samples = binary(low=0.3, high=2.0)


@operator(**apart)
class entr:
    """-x log(x): 0 at 0, minus infinity for negative numbers.

    input: [*S], real. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return scipy_special("entr", input)

    def vjp_input(F, grad, input):
        return grad * (-F.log(input) - 1)

    samples = unary(0.2, 2.0)


# --- Bessel functions and others -------------------------------------------------------------------------------------


@operator(**smooth, module=both)
class i0:
    """Modified Bessel function of the first kind, order zero.

    input: [*S], real. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return scipy_special("i0", input)

    def vjp_input(F, grad, input):
        return grad * F.i1(input)

    samples = unary()


@operator(**apart)
class i0e:
    """`i0` scaled by exp(-|x|).

    input: [*S], real. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return scipy_special("i0e", input)

    def vjp_input(F, grad, input, result):
        return grad * (F.i1e(input) - F.sgn(input) * result)

    samples = unary(0.2, 2.0)


@operator(**apart)
class i1:
    """Modified Bessel function of the first kind, order one.

    input: [*S], real. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return scipy_special("i1", input)

    def vjp_input(F, grad, input, result):
        return grad * F.where(input == 0, 0.5, F.i0(input) - result / F.where(input == 0, 1.0, input))

    samples = unary(0.2, 2.0)


@operator(**apart)
class i1e:
    """`i1` scaled by exp(-|x|).

    input: [*S], real. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return scipy_special("i1e", input)

    def vjp_input(F, grad, input, result):
        slope = F.i0e(input) - result * (F.sgn(input) + 1 / F.where(input == 0, 1.0, input))
        return grad * F.where(input == 0, 0.5, slope)

    samples = unary(0.2, 2.0)


@operator(promote=Promote.FLOAT, numbers=True, module="special")
class zeta:
    """The Hurwitz zeta function: the sum of (k + other) ** -input over k = 0, 1, 2, ... Not differentiable in `input`.

    input, other: real, broadcastable to a common shape. Returns the common shape, integers as the default float.
    """

    def forward(xp, input: Array, other: Array):
        return scipy_special("zeta", input, other)

    def vjp_input(F, grad):
        raise NotImplementedError("the derivative for 'zeta: self' is not implemented.")

    def vjp_other(F, grad, input, other):
        return grad * (-input * F.zeta(input + 1, other))

    def samples(make):
        yield (make.integers(3, 4, low=2, high=4), make(4, low=0.5)), {}


def _without_derivative(name: str, values, purpose: str) -> None:
    """Declare a function of one operand that PyTorch does not differentiate either."""

    def forward(xp, input: Array):
        return values(input)

    doc = f"{purpose}.\n\ninput: [*S], real. Returns [*S], integers as the default float. Not differentiable.\n"
    operator(**apart)(type(name, (), {"forward": forward, "__doc__": doc, "__qualname__": name}))


for _order, _text in enumerate(("zero", "one")):
    for _name, _values, _purpose in (
        ("bessel_j{}", partial(bessel.first_kind, _order), "Bessel function of the first kind"),
        ("bessel_y{}", partial(bessel.second_kind, _order), "Bessel function of the second kind"),
        ("modified_bessel_i{}", partial(scipy_special, f"i{_order}"), "Modified Bessel function of the first kind"),
        ("modified_bessel_k{}", partial(scipy_special, f"k{_order}"), "Modified Bessel function of the second kind"),
        ("scaled_modified_bessel_k{}", partial(scipy_special, f"k{_order}e"),
         "Modified Bessel function of the second kind times exp(x)"),
    ):  # fmt: skip
        _without_derivative(_name.format(_order), _values, f"{_purpose}, order {_text}")
_without_derivative("spherical_bessel_j0", bessel.spherical, "Spherical Bessel function of the first kind, order zero")
_without_derivative("airy_ai", bessel.airy_ai, "The Airy function Ai")


# --- further names ---------------------------------------------------------------------------------------------------

for _name, _function in (("gammaln", lgamma), ("digamma", digamma), ("psi", digamma), ("multigammaln", mvlgamma),
                         ("gammainc", igamma), ("gammaincc", igammac)):  # fmt: skip
    composite(name=_name, module="special")(_function)
