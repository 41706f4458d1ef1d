"""Distributions whose support ends at a parameter: uniform, and the generalised Pareto distribution of excesses."""

from __future__ import annotations

import math
from typing import ClassVar

from pellucid.core.tensor import Tensor
from pellucid.distributions import constraints
from pellucid.distributions.distribution import Distribution
from pellucid.distributions.utils import broadcast_all
from pellucid.functions.factories import zeros_like
from pellucid.functions.randoms import rand
from pellucid.ops.choosing import where
from pellucid.ops.comparison import isclose

__all__ = ["GeneralizedPareto", "Uniform"]


class Uniform(Distribution):
    """The uniform distribution over [low, high); both [*batch]."""

    has_rsample = True

    def __init__(self, low, high, validate_args: bool | None = None):
        self.low, self.high = broadcast_all(low, high)
        super().__init__(self.low.shape, validate_args=validate_args)

    @property
    def arg_constraints(self) -> dict:
        """low below high."""
        return {"low": constraints.less_than(self.high), "high": constraints.greater_than(self.low)}

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        """[low, high]."""
        return constraints.interval(self.low, self.high)

    @property
    def mean(self) -> Tensor:
        """The middle."""
        return (self.high + self.low) / 2

    @property
    def mode(self) -> Tensor:
        """NaN: no value is likelier than another."""
        return math.nan * self.high

    @property
    def stddev(self) -> Tensor:
        """The width over sqrt(12)."""
        return (self.high - self.low) / 12**0.5

    @property
    def variance(self) -> Tensor:
        """The width squared over 12."""
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape=()) -> Tensor:
        """low plus the width times uniform values in [0, 1)."""
        return self.low + rand(self._extended_shape(sample_shape), dtype=self.low.dtype) * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        """-log(width) inside, -inf outside and at high."""
        if self._validate_args:
            self._validate_sample(value)
        inside = (self.low <= value).type_as(self.low) * (self.high > value).type_as(self.low)
        return inside.log() - (self.high - self.low).log()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.low) / (self.high - self.low)).clamp(min=0, max=1)

    def icdf(self, value: Tensor) -> Tensor:
        return value * (self.high - self.low) + self.low

    def entropy(self) -> Tensor:
        """log(width)."""
        return (self.high - self.low).log()


class GeneralizedPareto(Distribution):
    """What exceeds a high threshold `loc`, on the `scale`, with a tail of index `concentration`; all [*batch].

    A concentration of 0 is the exponential distribution, a negative one has a bounded support.
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real,
        "scale": constraints.positive,
        "concentration": constraints.real,
    }
    has_rsample = True

    def __init__(self, loc, scale, concentration, validate_args: bool | None = None):
        self.loc, self.scale, self.concentration = broadcast_all(loc, scale, concentration)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=False, event_dim=0)
    def support(self):
        """From loc on, up to loc - scale / concentration if the concentration is negative."""
        end = where(self.concentration < 0, self.loc - self.scale / self.concentration, math.inf)
        return constraints.interval(self.loc, end)

    def _exponential(self) -> tuple[Tensor, Tensor]:
        """Where the concentration is 0, and a concentration that can be divided by."""
        zero = isclose(self.concentration, zeros_like(self.concentration))
        return zero, where(zero, 1.0, self.concentration)

    def rsample(self, sample_shape=()) -> Tensor:
        """Uniform values sent through the inverse of the distribution function."""
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self.loc.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        """-log(scale) - (1 / c + 1) log(1 + c z), z = (value - loc) / scale and c the concentration; -z at c = 0."""
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        zero, c = self._exponential()
        power = 1 / c + 1
        return -self.scale.log() - where(zero, z, where(power == 0, 0.0, power * (c * z).log1p()))

    def log_survival_function(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of a sample above `value`."""
        if self._validate_args:
            self._validate_sample(value)
        z = (value - self.loc) / self.scale
        zero, c = self._exponential()
        return where(zero, -z, -(c * z).log1p() / c)

    def log_cdf(self, value: Tensor) -> Tensor:
        """The logarithm of `cdf`."""
        return (-self.log_survival_function(value).exp()).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        return self.log_cdf(value).exp()

    def icdf(self, value: Tensor) -> Tensor:
        zero, c = self._exponential()
        log_rest = (-value).log1p()
        return where(zero, self.loc - self.scale * log_rest, self.loc + self.scale / c * (-c * log_rest).expm1())

    @property
    def mean(self) -> Tensor:
        """loc + scale / (1 - concentration); NaN for a concentration of 1 or more."""
        fine = self.concentration < 1
        return where(fine, self.loc + self.scale / (1 - where(fine, self.concentration, 0.5)), math.nan)

    @property
    def mode(self) -> Tensor:
        """loc."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """scale^2 / ((1 - c)^2 (1 - 2 c)); NaN for a concentration c of 1/2 or more."""
        fine = self.concentration < 0.5
        c = where(fine, self.concentration, 0.25)
        return where(fine, self.scale**2 / ((1 - c) ** 2 * (1 - 2 * c)), math.nan)

    def entropy(self) -> Tensor:
        """log(scale) + concentration + 1."""
        return self.scale.log() + self.concentration + 1
