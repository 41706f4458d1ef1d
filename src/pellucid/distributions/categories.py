"""Distributions over categories and counts of them, and Poisson counts.

Categorical, OneHotCategorical, OneHotCategoricalStraightThrough, Multinomial, Poisson.
"""

from __future__ import annotations

import math
from typing import ClassVar

from pellucid.autograd.grad_mode import no_grad
from pellucid.core.limits import finfo
from pellucid.core.size import Size
from pellucid.core.tensor import Tensor
from pellucid.distributions import constraints
from pellucid.distributions.binaries import Binomial, GivenParameter, one_of
from pellucid.distributions.distribution import Distribution
from pellucid.distributions.exp_family import ExponentialFamily
from pellucid.distributions.utils import broadcast_all, lazy_property, logits_to_probs, probs_to_logits
from pellucid.functions.broadcasting import broadcast_tensors
from pellucid.functions.factories import arange, eye, full, ones_like
from pellucid.nn.functional import one_hot
from pellucid.ops.choosing import where
from pellucid.ops.randoms import multinomial, poisson

__all__ = [
    "Categorical",
    "Multinomial",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "OverCategories",
    "Poisson",
]


class Categorical(GivenParameter, Distribution):
    """One of the categories 0 ... K - 1, by weights `probs` or log-weights `logits` [*batch, K], which need not be normalised.

    Raises:
        ValueError: a weight is negative, or the weights have no dimension.
    """

    arg_constraints: ClassVar = {"probs": constraints.simplex, "logits": constraints.real_vector}
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args: bool | None = None):
        name = one_of(probs, logits)
        given = probs if logits is None else logits
        if given.dim() < 1:
            raise ValueError(f"`{name}` parameter must be at least one-dimensional.")
        if logits is None:
            self.probs = probs / probs.sum(-1, keepdim=True)
        else:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
        super().__init__(given.shape[:-1], validate_args=validate_args)

    @lazy_property
    def logits(self) -> Tensor:
        """The logarithms of the probabilities."""
        return probs_to_logits(self.probs)

    @lazy_property
    def probs(self) -> Tensor:
        """The probabilities."""
        return logits_to_probs(self.logits)

    @property
    def _num_events(self) -> int:
        return self._param.shape[-1]

    @constraints.dependent_property(is_discrete=True, event_dim=0)
    def support(self):
        """0, 1, ..., K - 1."""
        return constraints.integer_interval(0, self._num_events - 1)

    @property
    def mean(self) -> Tensor:
        """NaN: categories have no mean."""
        return full(self._extended_shape(), math.nan, dtype=self._param.dtype)

    @property
    def mode(self) -> Tensor:
        """The likeliest category."""
        return self.probs.argmax(dim=-1)

    @property
    def variance(self) -> Tensor:
        """NaN: categories have no variance."""
        return self.mean

    def sample(self, sample_shape=()) -> Tensor:
        """Random categories, int64."""
        count = Size(sample_shape).numel()
        with no_grad():
            drawn = multinomial(self.probs.reshape(-1, self._num_events), count, True)
            return drawn.T.reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of each category in `value`."""
        if self._validate_args:
            self._validate_sample(value)
        value, logits = broadcast_tensors(value.long().unsqueeze(-1), self.logits)
        return logits.gather(-1, value[..., :1]).squeeze(-1)

    def entropy(self) -> Tensor:
        """-sum p log(p)."""
        return -(self.logits.clamp(min=finfo(self.logits.dtype).min) * self.probs).sum(-1)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        values = arange(self._num_events).reshape((-1,) + (1,) * len(self._batch_shape))
        return values.expand((-1, *self._batch_shape)) if expand else values


class OverCategories(GivenParameter, Distribution):
    """Distributions over vectors with an element for each category, which share the weights of a `Categorical`."""

    arg_constraints: ClassVar = {"probs": constraints.simplex, "logits": constraints.real_vector}

    def __init__(self, categorical: Categorical, validate_args: bool | None = None):
        self._categorical = categorical
        super().__init__(categorical.batch_shape, categorical.param_shape[-1:], validate_args=validate_args)

    def _expand_into(self, new, batch_shape) -> None:
        new._categorical = self._categorical.expand(batch_shape)

    @property
    def probs(self) -> Tensor:
        """The probabilities of the categories."""
        return self._categorical.probs

    @property
    def logits(self) -> Tensor:
        """Their logarithms."""
        return self._categorical.logits

    @property
    def _param(self) -> Tensor:
        return self._categorical._param


class OneHotCategorical(OverCategories):
    """A category as a vector of zeros and a single 1; `probs` or `logits` [*batch, K] as for `Categorical`."""

    support = constraints.one_hot
    has_enumerate_support = True

    def __init__(self, probs=None, logits=None, validate_args: bool | None = None):
        super().__init__(Categorical(probs, logits), validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """The probabilities."""
        return self.probs

    @property
    def mode(self) -> Tensor:
        """The likeliest category."""
        return self._as_vectors(self.probs.argmax(dim=-1))

    @property
    def variance(self) -> Tensor:
        """probs (1 - probs)."""
        return self.probs * (1 - self.probs)

    def _as_vectors(self, categories: Tensor) -> Tensor:
        return one_hot(categories, self.event_shape[0]).to(self.probs)

    def sample(self, sample_shape=()) -> Tensor:
        """Random vectors, in the dtype of the weights."""
        with no_grad():
            return self._as_vectors(self._categorical.sample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the probability of the category that is 1."""
        if self._validate_args:
            self._validate_sample(value)
        return self._categorical.log_prob(value.max(-1)[1])

    def entropy(self) -> Tensor:
        return self._categorical.entropy()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        size, batch = self.event_shape[0], self._batch_shape
        values = eye(size, dtype=self._param.dtype).reshape((size,) + (1,) * len(batch) + (size,))
        return values.expand((size, *batch, size)) if expand else values


class OneHotCategoricalStraightThrough(OneHotCategorical):
    """`OneHotCategorical` whose samples pass gradients on as if they were the probabilities.

    Source: Bengio, Léonard and Courville, Estimating or propagating gradients through stochastic neurons, 2013.
    """

    has_rsample = True

    def rsample(self, sample_shape=()) -> Tensor:
        """Samples, plus the probabilities less their values."""
        return self.sample(sample_shape) + (self.probs - self.probs.detach())


class Multinomial(OverCategories):
    """How often each category comes up in `total_count` draws; `probs` or `logits` [*batch, K] as for `Categorical`."""

    def __init__(self, total_count: int = 1, probs=None, logits=None, validate_args: bool | None = None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported: give one integer")
        self.total_count = total_count
        super().__init__(Categorical(probs, logits), validate_args=validate_args)

    def _expand_into(self, new, batch_shape) -> None:
        super()._expand_into(new, batch_shape)
        new.total_count = self.total_count

    @constraints.dependent_property(is_discrete=True, event_dim=1)
    def support(self):
        """Counts that sum to at most total_count."""
        return constraints.multinomial(self.total_count)

    @property
    def mean(self) -> Tensor:
        """total_count probs."""
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        """total_count probs (1 - probs)."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()) -> Tensor:
        """Random counts, in the dtype of the weights."""
        draws = self._categorical.sample(Size((self.total_count,)) + Size(sample_shape))
        draws = draws.permute(*range(1, draws.dim()), 0)
        counts = draws.new_zeros(self._extended_shape(sample_shape))
        return counts.scatter_add_(-1, draws, ones_like(draws)).type_as(self.probs)

    def log_prob(self, value: Tensor) -> Tensor:
        """log(n!) - sum log(k!) + sum k log(p)."""
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        logits = where((value == 0) & (logits == -math.inf), 0.0, logits)  # 0 log(0) is 0
        return (value.sum(-1) + 1).lgamma() - (value + 1).lgamma().sum(-1) + (logits * value).sum(-1)

    def entropy(self) -> Tensor:
        """n H - log(n!) + the means of log(k!), H being the entropy of a draw."""
        single = Binomial(self.total_count, self.probs)
        counts = single.enumerate_support(expand=False)[1:]
        spread = (single.log_prob(counts).exp() * (counts + 1).lgamma()).sum((0, -1))
        return self.total_count * self._categorical.entropy() - math.lgamma(self.total_count + 1) + spread


class Poisson(ExponentialFamily):
    """Counts of events of mean number `rate`, [*batch]."""

    arg_constraints: ClassVar = {"rate": constraints.nonnegative}
    support = constraints.nonnegative_integer

    def __init__(self, rate, validate_args: bool | None = None):
        (self.rate,) = broadcast_all(rate)
        super().__init__(self.rate.shape, validate_args=validate_args)

    @property
    def mean(self) -> Tensor:
        """rate."""
        return self.rate

    @property
    def mode(self) -> Tensor:
        """rate, rounded down."""
        return self.rate.floor()

    @property
    def variance(self) -> Tensor:
        """rate."""
        return self.rate

    def sample(self, sample_shape=()) -> Tensor:
        """Random counts, as `pellucid.poisson` draws them."""
        with no_grad():
            return poisson(self.rate.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """k log(rate) - rate - log(k!)."""
        if self._validate_args:
            self._validate_sample(value)
        rate, value = broadcast_all(self.rate, value)
        return value.xlogy(rate) - rate - (value + 1).lgamma()

    @property
    def _natural_params(self) -> tuple[Tensor]:
        return (self.rate.log(),)

    def _log_normalizer(self, x: Tensor) -> Tensor:
        return x.exp()
