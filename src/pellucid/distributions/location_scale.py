"""Distributions with a location and a scale: Cauchy, Laplace, Gumbel, Student's t, and the magnitude of Cauchy numbers."""

from __future__ import annotations

import math
from typing import ClassVar

from pellucid.core.limits import finfo
from pellucid.core.tensor import Tensor
from pellucid.distributions import constraints
from pellucid.distributions.distribution import Centred, Distribution
from pellucid.distributions.gammas import Chi2
from pellucid.distributions.intervals import Uniform
from pellucid.distributions.normals import Folded
from pellucid.distributions.transformed import TransformedDistribution
from pellucid.distributions.transforms import AbsTransform, AffineTransform, ExpTransform
from pellucid.distributions.utils import broadcast_all, euler_constant
from pellucid.functions.factories import full_like, ones_like
from pellucid.functions.randoms import randn
from pellucid.ops.choosing import where

__all__ = ["Cauchy", "Gumbel", "HalfCauchy", "Laplace", "StudentT"]


class Cauchy(Distribution):
    """The ratio of two normal numbers of mean 0, times `scale`, plus `loc`; both [*batch]. It has no mean."""

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """NaN."""
        return full_like(self.loc, math.nan)

    @property
    def mode(self) -> Tensor:
        """loc."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """inf."""
        return full_like(self.loc, math.inf)

    def rsample(self, sample_shape=()) -> Tensor:
        """loc plus scale times standard Cauchy values."""
        return self.loc + self.loc.new_empty(self._extended_shape(sample_shape)).cauchy_() * self.scale

    def log_prob(self, value: Tensor) -> Tensor:
        """-log(pi scale) - log(1 + ((value - loc) / scale)^2)."""
        if self._validate_args:
            self._validate_sample(value)
        return -math.log(math.pi) - self.scale.log() - (((value - self.loc) / self.scale) ** 2).log1p()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        return ((value - self.loc) / self.scale).atan() / math.pi + 0.5

    def icdf(self, value: Tensor) -> Tensor:
        return (math.pi * (value - 0.5)).tan() * self.scale + self.loc

    def entropy(self) -> Tensor:
        """log(4 pi scale)."""
        return math.log(4 * math.pi) + self.scale.log()


class HalfCauchy(Folded):
    """The magnitude of Cauchy numbers of location 0 and scale `scale`."""

    def __init__(self, scale, validate_args: bool | None = None):
        super().__init__(Cauchy(0, scale, validate_args=False), AbsTransform(), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """inf."""
        return full_like(self.scale, math.inf)

    @property
    def variance(self) -> Tensor:
        """inf."""
        return self.base_dist.variance


class Laplace(Centred, Distribution):
    """Numbers whose distance from `loc` is exponential of mean `scale`, on either side; both [*batch]."""

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, loc, scale, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        super().__init__(self.loc.shape, validate_args=validate_args)

    @property
    def stddev(self) -> Tensor:
        """sqrt(2) scale."""
        return 2**0.5 * self.scale

    @property
    def variance(self) -> Tensor:
        """2 scale^2."""
        return 2 * self.scale.pow(2)

    def rsample(self, sample_shape=()) -> Tensor:
        """Uniform values in (-1, 1) sent through the inverse of the distribution function."""
        shape = self._extended_shape(sample_shape)
        u = self.loc.new_empty(shape).uniform_(finfo(self.loc.dtype).eps - 1, 1)
        return self.loc - self.scale * u.sign() * (-u.abs()).log1p()

    def log_prob(self, value: Tensor) -> Tensor:
        """-log(2 scale) - |value - loc| / scale."""
        if self._validate_args:
            self._validate_sample(value)
        return -(2 * self.scale).log() - (value - self.loc).abs() / self.scale

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        away = value - self.loc
        return 0.5 - 0.5 * away.sign() * (-away.abs() / self.scale).expm1()

    def icdf(self, value: Tensor) -> Tensor:
        above = value - 0.5
        return self.loc - self.scale * above.sign() * (-2 * above.abs()).log1p()

    def entropy(self) -> Tensor:
        """1 + log(2 scale)."""
        return 1 + (2 * self.scale).log()


class Gumbel(TransformedDistribution):
    """loc - scale * log(-log u), u being uniform: the limit of maxima; `loc` and `scale` [*batch]."""

    arg_constraints: ClassVar = {"loc": constraints.real, "scale": constraints.positive}
    support = constraints.real

    def __init__(self, loc, scale, validate_args: bool | None = None):
        self.loc, self.scale = broadcast_all(loc, scale)
        info = finfo(self.loc.dtype)
        base = Uniform(full_like(self.loc, info.tiny), full_like(self.loc, 1 - info.eps), validate_args=validate_args)
        log = ExpTransform().inv
        negated = AffineTransform(loc=0, scale=-ones_like(self.scale))
        super().__init__(
            base, [log, negated, log, AffineTransform(loc=loc, scale=-self.scale)], validate_args=validate_args
        )

    @property
    def mean(self) -> Tensor:
        """loc plus Euler's constant times scale."""
        return self.loc + self.scale * euler_constant

    @property
    def mode(self) -> Tensor:
        """loc."""
        return self.loc

    @property
    def stddev(self) -> Tensor:
        """pi / sqrt(6) scale."""
        return (math.pi / math.sqrt(6)) * self.scale

    @property
    def variance(self) -> Tensor:
        """pi^2 / 6 scale^2."""
        return self.stddev.pow(2)

    def log_prob(self, value: Tensor) -> Tensor:
        """y - exp(y) - log(scale) with y = (loc - value) / scale."""
        if self._validate_args:
            self._validate_sample(value)
        y = (self.loc - value) / self.scale
        return (y - y.exp()) - self.scale.log()

    def entropy(self) -> Tensor:
        """1 + Euler's constant + log(scale)."""
        return self.scale.log() + (1 + euler_constant)


class StudentT(Distribution):
    """loc + scale times a normal number over the root of a chi-squared one divided by `df`; all [*batch]."""

    arg_constraints: ClassVar = {"df": constraints.positive, "loc": constraints.real, "scale": constraints.positive}
    support = constraints.real
    has_rsample = True

    def __init__(self, df, loc=0.0, scale=1.0, validate_args: bool | None = None):
        self.df, self.loc, self.scale = broadcast_all(df, loc, scale)
        super().__init__(self.df.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """loc; NaN for df <= 1."""
        return where(self.df <= 1, math.nan, self.loc)

    @property
    def mode(self) -> Tensor:
        """loc."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """scale^2 df / (df - 2); inf for df <= 2, NaN for df <= 1."""
        heavy = where(self.df > 1, math.inf, full_like(self.df, math.nan))
        df = where(self.df > 2, self.df, 3.0)
        return where(self.df > 2, self.scale.pow(2) * df / (df - 2), heavy)

    def rsample(self, sample_shape=()) -> Tensor:
        """The quotient of the definition."""
        normal = randn(self._extended_shape(sample_shape), dtype=self.df.dtype)
        squares = Chi2(self.df, validate_args=False).rsample(sample_shape)
        return self.loc + self.scale * (normal * (squares / self.df).rsqrt())

    def _log_beta(self) -> Tensor:
        """The logarithm of the beta function at df / 2 and 1 / 2."""
        return (0.5 * self.df).lgamma() + 0.5 * math.log(math.pi) - (0.5 * (self.df + 1.0)).lgamma()

    def log_prob(self, value: Tensor) -> Tensor:
        """-(df + 1) / 2 log(1 + y^2 / df) - log(scale sqrt(df) B(df / 2, 1 / 2)), y being standardised."""
        if self._validate_args:
            self._validate_sample(value)
        y = (value - self.loc) / self.scale
        norm = self.scale.log() + 0.5 * self.df.log() + self._log_beta()
        return -0.5 * (self.df + 1.0) * (y**2.0 / self.df).log1p() - norm

    def entropy(self) -> Tensor:
        """(df + 1) / 2 (psi((df + 1) / 2) - psi(df / 2)) + log(scale sqrt(df) B(df / 2, 1 / 2))."""
        half, more = 0.5 * self.df, 0.5 * (self.df + 1)
        return self.scale.log() + more * (more.digamma() - half.digamma()) + 0.5 * self.df.log() + self._log_beta()
