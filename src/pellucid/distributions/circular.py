"""The von Mises distribution of angles."""

from __future__ import annotations

import functools
import math
from typing import ClassVar

from pellucid.autograd.grad_mode import no_grad
from pellucid.core.dtype import bool as bool_dtype
from pellucid.core.dtype import float64
from pellucid.core.tensor import Tensor
from pellucid.distributions import constraints
from pellucid.distributions.distribution import Centred, Distribution
from pellucid.distributions.utils import broadcast_all, lazy_property
from pellucid.functions.factories import zeros
from pellucid.functions.randoms import rand
from pellucid.ops.choosing import where

__all__ = ["VonMises"]


# Abramowitz and Stegun, Handbook of mathematical functions, 9.8.1 to 9.8.4, for orders 0 and 1: polynomials in
# (x / 3.75)^2 for I0(x) and I1(x) / x, and in 3.75 / x for sqrt(x) exp(-x) I(x). Seven digits, as PyTorch has them here.
_NEAR = (
    (1.0, 3.5156229, 3.0899424, 1.2067492, 0.2659732, 0.0360768, 0.0045813),
    (0.5, 0.87890594, 0.51498869, 0.15084934, 0.02658733, 0.00301532, 0.00032411),
)
_FAR = (
    (0.39894228, 0.01328592, 0.00225319, -0.00157565, 0.00916281, -0.02057706, 0.02635537, -0.01647633, 0.00392377),
    (0.39894228, -0.03988024, -0.00362018, 0.00163801, -0.01031555, 0.02282967, -0.02895312, 0.01787654, -0.00420059),
)


def _polynomial(x: Tensor, coefficients: tuple[float, ...]) -> Tensor:
    return functools.reduce(lambda value, c: c + x * value, reversed(coefficients[:-1]), coefficients[-1])


def _log_bessel(x: Tensor, order: int) -> Tensor:
    """The logarithm of the modified Bessel function of order 0 or 1, for x > 0."""
    near = _polynomial((x / 3.75).square(), _NEAR[order])
    near = (x * near if order else near).log()
    far = x - 0.5 * x.log() + _polynomial(3.75 / x, _FAR[order]).log()
    return where(x < 3.75, near, far)


class VonMises(Centred, Distribution):
    """Angles around `loc`, of density proportional to exp(concentration cos(angle - loc)); both [*batch].

    Angles of any size can be given to `log_prob`; samples are in [-pi, pi).
    """

    arg_constraints: ClassVar = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False

    def __init__(self, loc, concentration, validate_args: bool | None = None):
        self.loc, self.concentration = broadcast_all(loc, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @lazy_property
    def variance(self) -> Tensor:
        """The circular variance 1 - I1(concentration) / I0(concentration)."""
        return 1 - (_log_bessel(self.concentration, 1) - _log_bessel(self.concentration, 0)).exp()

    def log_prob(self, value: Tensor) -> Tensor:
        """concentration cos(value - loc) - log(2 pi I0(concentration))."""
        if self._validate_args:
            self._validate_sample(value)
        aligned = self.concentration * (value - self.loc).cos()
        return aligned - math.log(2 * math.pi) - _log_bessel(self.concentration, 0)

    def _wrapped_cauchy(self, concentration: Tensor) -> Tensor:
        """The parameter of the proposals; for tiny concentrations by its series."""
        tau = 1 + (1 + 4 * concentration**2).sqrt()
        rho = (tau - (2 * tau).sqrt()) / (2 * concentration)
        return where(concentration < 1e-5, 1 / concentration + concentration, (1 + rho**2) / (2 * rho))

    def sample(self, sample_shape=()) -> Tensor:
        """Random angles, in float64 by rejection from wrapped Cauchy numbers.

        Source: Best and Fisher, Efficient simulation of the von Mises distribution, 1979.
        """
        shape = self._extended_shape(sample_shape)
        with no_grad():
            loc, concentration = self.loc.to(float64), self.concentration.to(float64)
            r = self._wrapped_cauchy(concentration)
            angle, done = zeros(shape, dtype=float64), zeros(shape, dtype=bool_dtype)
            while not bool(done.all()):
                first, second, third = rand((3, *shape), dtype=float64).unbind()
                z = (math.pi * first).cos()
                cosine = (1 + r * z) / (r + z)
                c = concentration * (r - cosine)
                accepted = (c * (2 - c) > second) | ((c / second).log() + 1 - c >= 0)
                angle = where(accepted, (third - 0.5).sign() * cosine.acos(), angle)
                done = done | accepted
            return ((angle + math.pi + loc) % (2 * math.pi) - math.pi).to(self.loc.dtype)
