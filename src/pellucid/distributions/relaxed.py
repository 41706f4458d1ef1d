"""Continuous relaxations of Bernoulli and categorical variables, with samples that gradients pass through.

Source: Maddison, Mnih and Teh, The concrete distribution, 2017; Jang, Gu and Poole, Categorical reparameterization with
Gumbel-softmax, 2017.
"""

from __future__ import annotations

import math
from typing import ClassVar

from pellucid.core.tensor import Tensor
from pellucid.distributions import constraints
from pellucid.distributions.binaries import BinaryParameter
from pellucid.distributions.categories import Categorical, OverCategories
from pellucid.distributions.distribution import Distribution
from pellucid.distributions.transformed import TransformedDistribution
from pellucid.distributions.transforms import ExpTransform, SigmoidTransform
from pellucid.distributions.utils import broadcast_all, clamp_probs
from pellucid.functions.randoms import rand

__all__ = ["ExpRelaxedCategorical", "LogitRelaxedBernoulli", "RelaxedBernoulli", "RelaxedOneHotCategorical"]


class LogitRelaxedBernoulli(BinaryParameter, Distribution):
    """The log-odds of a relaxed Bernoulli variable: (logits + a logistic number) / temperature.

    temperature: a tensor; the lower, the nearer to 0 and 1. `probs` or `logits`: [*batch].
    """

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.real

    def __init__(self, temperature: Tensor, probs=None, logits=None, validate_args: bool | None = None):
        self.temperature = temperature
        self._set_parameter(probs, logits)
        super().__init__(self._param.shape, validate_args=validate_args)

    def _expand_into(self, new, batch_shape) -> None:
        super()._expand_into(new, batch_shape)
        new.temperature = self.temperature

    def rsample(self, sample_shape=()) -> Tensor:
        """Logistic numbers, from uniform ones, around the logits."""
        shape = self._extended_shape(sample_shape)
        probs = clamp_probs(self.probs.expand(shape))
        uniform = clamp_probs(rand(shape, dtype=probs.dtype))
        return (uniform.log() - (-uniform).log1p() + probs.log() - (-probs).log1p()) / self.temperature

    def log_prob(self, value: Tensor) -> Tensor:
        """log(t) + d - 2 log(1 + exp(d)), with d = logits - t value and t the temperature."""
        if self._validate_args:
            self._validate_sample(value)
        logits, value = broadcast_all(self.logits, value)
        away = logits - value * self.temperature
        return self.temperature.log() + away - 2 * away.exp().log1p()


class RelaxedBernoulli(TransformedDistribution):
    """A Bernoulli variable relaxed to (0, 1); `temperature` a tensor, `probs` or `logits` [*batch]."""

    arg_constraints: ClassVar = {"probs": constraints.unit_interval, "logits": constraints.real}
    support = constraints.unit_interval
    has_rsample = True

    def __init__(self, temperature: Tensor, probs=None, logits=None, validate_args: bool | None = None):
        base = LogitRelaxedBernoulli(temperature, probs, logits)
        super().__init__(base, SigmoidTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Tensor:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The log-odds."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probability of a value above 1/2."""
        return self.base_dist.probs


class ExpRelaxedCategorical(OverCategories):
    """The logarithm of a relaxed one-hot vector: log-softmax of (logits + Gumbel numbers) / temperature.

    temperature: a tensor; the lower, the nearer to one-hot. `probs` or `logits`: [*batch, K].
    """

    support = constraints.real_vector
    has_rsample = True

    def __init__(self, temperature: Tensor, probs=None, logits=None, validate_args: bool | None = None):
        self.temperature = temperature
        super().__init__(Categorical(probs, logits), validate_args=validate_args)

    def _expand_into(self, new, batch_shape) -> None:
        super()._expand_into(new, batch_shape)
        new.temperature = self.temperature

    def rsample(self, sample_shape=()) -> Tensor:
        """Gumbel numbers, from uniform ones, around the logits, normalised."""
        uniform = clamp_probs(rand(self._extended_shape(sample_shape), dtype=self.logits.dtype))
        scores = (self.logits - (-uniform.log()).log()) / self.temperature
        return scores - scores.logsumexp(-1, keepdim=True)

    def log_prob(self, value: Tensor) -> Tensor:
        """log((K - 1)!) + (K - 1) log(t) + sum log-softmax(logits - t value), t being the temperature."""
        if self._validate_args:
            self._validate_sample(value)
        count = self.event_shape[0]
        logits, value = broadcast_all(self.logits, value)
        score = logits - value * self.temperature
        score = (score - score.logsumexp(-1, keepdim=True)).sum(-1)
        return score + (math.lgamma(count) + self.temperature.log() * (count - 1))


class RelaxedOneHotCategorical(TransformedDistribution):
    """A one-hot vector relaxed to the inside of the simplex; `temperature` a tensor, `probs` or `logits` [*batch, K]."""

    arg_constraints: ClassVar = {"probs": constraints.simplex, "logits": constraints.real_vector}
    support = constraints.simplex
    has_rsample = True

    def __init__(self, temperature: Tensor, probs=None, logits=None, validate_args: bool | None = None):
        base = ExpRelaxedCategorical(temperature, probs, logits, validate_args=validate_args)
        super().__init__(base, ExpTransform(), validate_args=validate_args)

    @property
    def temperature(self) -> Tensor:
        """The temperature."""
        return self.base_dist.temperature

    @property
    def logits(self) -> Tensor:
        """The logarithms of the categories' probabilities."""
        return self.base_dist.logits

    @property
    def probs(self) -> Tensor:
        """The probabilities of the categories."""
        return self.base_dist.probs
