"""Distributions by the probability of one outcome: Bernoulli, its continuous form, and counts of its trials.

Bernoulli, ContinuousBernoulli, Geometric, Binomial, NegativeBinomial; each is given by `probs` or by `logits`, log-odds.
"""

from __future__ import annotations

import math
from typing import ClassVar

from pellucid.autograd.grad_mode import no_grad
from pellucid.core.limits import finfo
from pellucid.core.size import Size
from pellucid.core.tensor import Tensor
from pellucid.distributions import constraints
from pellucid.distributions.distribution import Distribution
from pellucid.distributions.exp_family import ExponentialFamily
from pellucid.distributions.gammas import Gamma
from pellucid.distributions.utils import broadcast_all, clamp_probs, lazy_property, logits_to_probs, probs_to_logits
from pellucid.functions.factories import arange, zeros_like
from pellucid.functions.randoms import rand
from pellucid.nn.functional import binary_cross_entropy_with_logits, logsigmoid
from pellucid.ops.choosing import where
from pellucid.ops.random_gammas import binomial
from pellucid.ops.randoms import bernoulli, poisson

__all__ = [
    "Bernoulli",
    "BinaryParameter",
    "Binomial",
    "ContinuousBernoulli",
    "Geometric",
    "GivenParameter",
    "NegativeBinomial",
    "one_of",
]


def one_of(probs, logits) -> str:
    """The name of the one that is given; ValueError for none or both."""
    if (probs is None) == (logits is None):
        raise ValueError(
            "Either `probs` or `logits` must be specified, but not both: got "
            + ("neither" if probs is None else "both")
        )
    return "logits" if probs is None else "probs"


class GivenParameter:
    """A parameter that is given as `probs` or as `logits`."""

    @property
    def _param(self) -> Tensor:
        return self.__dict__["logits"] if "logits" in self.__dict__ else self.__dict__["probs"]

    @property
    def param_shape(self) -> Size:
        """The shape of the parameter."""
        return self._param.shape


class BinaryParameter(GivenParameter):
    """A parameter given as `probs` or `logits`: the other follows from it."""

    def _set_parameter(self, probs, logits, *others) -> tuple[Tensor, ...]:
        """Set the given one, broadcast with others, which are returned."""
        name = one_of(probs, logits)
        *others, value = broadcast_all(*others, probs if logits is None else logits)
        setattr(self, name, value)
        return tuple([other.type_as(value) for other in others])

    @lazy_property
    def logits(self) -> Tensor:
        """log(p / (1 - p))."""
        return probs_to_logits(self.probs, is_binary=True)

    @lazy_property
    def probs(self) -> Tensor:
        """1 / (1 + exp(-logits))."""
        return logits_to_probs(self.logits, is_binary=True)

    def _enumerated(self, count: int, expand: bool) -> Tensor:
        """0, 1, ..., count - 1 along a new first dimension."""
        values = arange(count, dtype=self._param.dtype).reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values


class Bernoulli(BinaryParameter, ExponentialFamily):
    """0 or 1, 1 with probability `probs` or log-odds `logits` [*batch]."""

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.boolean
    has_enumerate_support = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, validate_args: bool | None = None):
        self._set_parameter(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """probs."""
        return self.probs

    @property
    def mode(self) -> Tensor:
        """The likelier value; NaN for 1/2."""
        return where(self.probs == 0.5, math.nan, (self.probs >= 0.5).to(self.probs))

    @property
    def variance(self) -> Tensor:
        """probs (1 - probs)."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=()) -> Tensor:
        """Random zeros and ones, in the dtype of the parameter."""
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """value log(p) + (1 - value) log(1 - p), from the logits."""
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none")

    def entropy(self) -> Tensor:
        """-p log(p) - (1 - p) log(1 - p)."""
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none")

    def enumerate_support(self, expand: bool = True) -> Tensor:
        return self._enumerated(2, expand)

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.probs.logit(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.exp().log1p()


class ContinuousBernoulli(BinaryParameter, ExponentialFamily):
    """Numbers in [0, 1] of density proportional to p^x (1 - p)^(1 - x); `probs` or `logits` [*batch].

    Args:
        lims: between these probabilities, around 1/2, series are used, since the formulas cancel there.

    Source: Loaiza-Ganem and Cunningham, The continuous Bernoulli: fixing a pervasive error in variational autoencoders, 2019.
    """

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(self, probs=None, logits=None, lims=(0.499, 0.501), validate_args: bool | None = None):
        self._set_parameter(probs, logits)
        if probs is not None:
            if validate_args is not None and not bool(constraints.unit_interval.check(self.probs).all()):
                raise ValueError(f"The parameter probs has invalid values: expected values in [0, 1], got {self.probs}")
            self.probs = clamp_probs(self.probs)
        self._lims = lims
        super().__init__(self._param.shape, validate_args=validate_args)

    def _expand_into(self, new, batch_shape) -> None:
        super()._expand_into(new, batch_shape)
        new._lims = self._lims

    @lazy_property
    def probs(self) -> Tensor:
        """1 / (1 + exp(-logits)), kept off 0 and 1."""
        return clamp_probs(logits_to_probs(self.logits, is_binary=True))

    def _outside(self) -> Tensor:
        """Where the formulas can be used."""
        return (self.probs <= self._lims[0]) | (self.probs > self._lims[1])

    def _safe_probs(self) -> Tensor:
        """The probabilities, and one away from 1/2 in place of those near it."""
        return where(self._outside(), self.probs, self._lims[0])

    def _cont_bern_log_norm(self) -> Tensor:
        """The logarithm of what p^x (1 - p)^(1 - x) is multiplied by: 2 artanh(1 - 2 p) / (1 - 2 p)."""
        p = self._safe_probs()
        below = where(p <= 0.5, p, 0.0)
        above = where(p >= 0.5, p, 1.0)
        gap = where(p <= 0.5, (-2.0 * below).log1p(), (2.0 * above - 1.0).log())
        square = (self.probs - 0.5).pow(2)
        series = math.log(2.0) + (4.0 / 3.0 + 104.0 / 45.0 * square) * square
        return where(self._outside(), ((-p).log1p() - p.log()).abs().log() - gap, series)

    @property
    def mean(self) -> Tensor:
        """p / (2 p - 1) + 1 / (2 artanh(1 - 2 p))."""
        p, x = self._safe_probs(), self.probs - 0.5
        series = 0.5 + (1.0 / 3.0 + 16.0 / 45.0 * x.pow(2)) * x
        return where(self._outside(), p / (2.0 * p - 1.0) + 1.0 / ((-p).log1p() - p.log()), series)

    @property
    def variance(self) -> Tensor:
        """p (p - 1) / (1 - 2 p)^2 + 1 / (2 artanh(1 - 2 p))^2."""
        p, square = self._safe_probs(), (self.probs - 0.5).pow(2)
        formula = p * (p - 1.0) / (1.0 - 2.0 * p).pow(2) + 1.0 / ((-p).log1p() - p.log()).pow(2)
        return where(self._outside(), formula, 1.0 / 12.0 - (1.0 / 15.0 - 128.0 / 945.0 * square) * square)

    def rsample(self, sample_shape=()) -> Tensor:
        """Uniform values sent through the inverse of the distribution function."""
        return self.icdf(rand(self._extended_shape(sample_shape), dtype=self.probs.dtype))

    def log_prob(self, value: Tensor) -> Tensor:
        """value log(p) + (1 - value) log(1 - p) + the logarithm of the normaliser."""
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        return -binary_cross_entropy_with_logits(logits, value, reduction="none") + self._cont_bern_log_norm()

    def cdf(self, value: Tensor) -> Tensor:
        if self._validate_args:
            self._validate_sample(value)
        p = self._safe_probs()
        formula = (p.pow(value) * (1.0 - p).pow(1.0 - value) + p - 1.0) / (2.0 * p - 1.0)
        inside = where(self._outside(), formula, value)
        return where(value <= 0.0, 0.0, where(value >= 1.0, 1.0, inside))

    def icdf(self, value: Tensor) -> Tensor:
        p = self._safe_probs()
        formula = ((-p + value * (2.0 * p - 1.0)).log1p() - (-p).log1p()) / (p.log() - (-p).log1p())
        return where(self._outside(), formula, value)

    def entropy(self) -> Tensor:
        """mean (log(1 - p) - log(p)) - log(1 - p) - the logarithm of the normaliser."""
        log0, log1 = (-self.probs).log1p(), self.probs.log()
        return self.mean * (log0 - log1) - self._cont_bern_log_norm() - log0

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.logits,)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        outside = (x <= self._lims[0] - 0.5) | (x > self._lims[1] - 0.5)
        safe = where(outside, x, self._lims[0] - 0.5)
        series = 0.5 * x + x.pow(2) / 24.0 - x.pow(4) / 2880.0
        return where(outside, safe.expm1().abs().log() - safe.abs().log(), series)


class Geometric(BinaryParameter, Distribution):
    """How many trials fail before the first success, of probability `probs` or log-odds `logits` [*batch]."""

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.nonnegative_integer

    def __init__(self, probs=None, logits=None, validate_args: bool | None = None):
        self._set_parameter(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)
        if self._validate_args and probs is not None and not bool((self.probs > 0).all()):
            value = self.probs
            raise ValueError(
                f"Expected parameter probs ({type(value).__name__} of shape {tuple(value.shape)}) of distribution {self!r} "
                f"to be positive but found invalid values:\n{value.detach()[~(value > 0)]}"
            )

    @property
    def mean(self) -> Tensor:
        """1 / probs - 1."""
        return 1.0 / self.probs - 1.0

    @property
    def mode(self) -> Tensor:
        """0."""
        return zeros_like(self.probs)

    @property
    def variance(self) -> Tensor:
        """(1 / probs - 1) / probs."""
        return (1.0 / self.probs - 1.0) / self.probs

    def sample(self, sample_shape=()) -> Tensor:
        """Random counts, in the dtype of the parameter."""
        with no_grad():
            u = self.probs.new_empty(self._extended_shape(sample_shape)).uniform_(finfo(self.probs.dtype).tiny, 1)
            return (u.log() / (-self.probs).log1p()).floor()

    def log_prob(self, value: Tensor) -> Tensor:
        """value log(1 - p) + log(p)."""
        if self._validate_args:
            self._validate_sample(value)
        value, probs = broadcast_all(value, self.probs)
        probs = where((probs == 1) & (value == 0), 0.0, probs)  # 0 log(0) is 0
        return value * (-probs).log1p() + self.probs.log()

    def entropy(self) -> Tensor:
        """That of a trial, over p."""
        return binary_cross_entropy_with_logits(self.logits, self.probs, reduction="none") / self.probs


class Binomial(BinaryParameter, Distribution):
    """How many of `total_count` trials succeed, each with probability `probs` or log-odds `logits`; all [*batch]."""

    arg_constraints: ClassVar = {
        "total_count": constraints.nonnegative_integer,
        "probs": constraints.unit_interval,
        "logits": constraints.real,
    }
    has_enumerate_support = True

    def __init__(self, total_count=1, probs=None, logits=None, validate_args: bool | None = None):
        (self.total_count,) = self._set_parameter(probs, logits, total_count)
        super().__init__(self._param.shape, validate_args=validate_args)

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        """0, 1, ..., total_count."""
        return constraints.integer_interval(0, self.total_count)

    @property
    def mean(self) -> Tensor:
        """total_count probs."""
        return self.total_count * self.probs

    @property
    def mode(self) -> Tensor:
        """(total_count + 1) probs, rounded down."""
        return ((self.total_count + 1) * self.probs).floor().clamp(max=self.total_count)

    @property
    def variance(self) -> Tensor:
        """total_count probs (1 - probs)."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()) -> Tensor:
        """Random counts, as `pellucid.binomial` draws them."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return binomial(self.total_count.expand(shape), self.probs.expand(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """log(n choose k) + k log(p) + (n - k) log(1 - p), from the logits."""
        if self._validate_args:
            self._validate_sample(value)
        n, logits = self.total_count, self.logits
        # n log(1 - p) is -n (max(logits, 0) + log(1 + exp(-|logits|))), finite for all logits
        failures = n * _positive_part(logits) + n * (-logits.abs()).exp().log1p()
        chosen = (value + 1).lgamma() + (n - value + 1).lgamma() - (n + 1).lgamma()
        return value * logits - chosen - failures

    def _one_count(self, asker: str) -> int:
        count = int(self.total_count.max())
        if not bool(self.total_count.min() == count):
            raise NotImplementedError(f"Inhomogeneous total count not supported by `{asker}`.")
        return count

    def entropy(self) -> Tensor:
        """The sum over all values; NotImplementedError if the counts differ."""
        self._one_count("entropy")
        log_prob = self.log_prob(self.enumerate_support(False))
        return -(log_prob.exp() * log_prob).sum(0)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """0, 1, ..., total_count; NotImplementedError if the counts differ."""
        return self._enumerated(1 + self._one_count("enumerate_support"), expand)


def _positive_part(x: Tensor) -> Tensor:
    """max(x, 0), with derivative 1/2 at 0, as PyTorch has it here."""
    return (x.abs() + x) / 2


class NegativeBinomial(BinaryParameter, Distribution):
    """How many trials succeed before `total_count` fail, each with probability `probs` or log-odds `logits`; all [*batch].

    `total_count` need not be whole.
    """

    arg_constraints: ClassVar = {
        "total_count": constraints.greater_than_eq(0),
        "probs": constraints.half_open_interval(0.0, 1.0),
        "logits": constraints.real,
    }
    support = constraints.nonnegative_integer

    def __init__(self, total_count, probs=None, logits=None, validate_args: bool | None = None):
        (self.total_count,) = self._set_parameter(probs, logits, total_count)
        super().__init__(self._param.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """total_count exp(logits)."""
        return self.total_count * self.logits.exp()

    @property
    def mode(self) -> Tensor:
        """(total_count - 1) exp(logits), rounded down, at least 0."""
        return ((self.total_count - 1) * self.logits.exp()).floor().clamp(min=0.0)

    @property
    def variance(self) -> Tensor:
        """The mean over 1 - probs."""
        return self.mean / (-self.logits).sigmoid()

    def sample(self, sample_shape=()) -> Tensor:
        """Poisson numbers whose rates are gamma numbers."""
        with no_grad():
            rates = Gamma(self.total_count, (-self.logits).exp(), validate_args=False)  # total_count may be 0
            return poisson(rates.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """n log(1 - p) + k log(p) + log Gamma(n + k) - log k! - log Gamma(n)."""
        if self._validate_args:
            self._validate_sample(value)
        n = self.total_count
        powers = n * logsigmoid(-self.logits) + value * logsigmoid(self.logits)
        norm = -(n + value).lgamma() + (1.0 + value).lgamma() + n.lgamma()
        return powers - norm.masked_fill(n + value == 0.0, 0.0)  # probability 1, though lgamma(0) is infinite
