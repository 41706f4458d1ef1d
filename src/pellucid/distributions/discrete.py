"""Distributions over whole numbers and categories, given by probabilities or by logits."""

from __future__ import annotations

from pellucid.autograd.grad_mode import no_grad
from pellucid.core.size import Size
from pellucid.core.tensor import Tensor
from pellucid.distributions.distribution import Distribution, as_tensors
from pellucid.ops.randoms import bernoulli, multinomial

__all__ = ["Bernoulli", "Categorical", "Multinomial"]


def _one_of(probs, logits) -> None:
    if (probs is None) == (logits is None):
        raise ValueError("Either `probs` or `logits` must be specified, but not both.")


def _bounds(probs: Tensor) -> Tensor:
    """Probabilities kept away from 0 and 1 by the dtype's precision, so that their logarithms are finite."""
    from pellucid.core.limits import finfo

    eps = finfo(probs.dtype).eps
    return probs.clamp(eps, 1 - eps)


class Bernoulli(Distribution):
    """0 or 1, 1 with probability `probs` (or sigmoid(`logits`))."""

    def __init__(self, probs=None, logits=None, validate_args=None):
        _one_of(probs, logits)
        if probs is not None:
            (self.probs,) = as_tensors(probs)
            bounded = _bounds(self.probs)
            self.logits = bounded.log() - (-bounded).log1p()
        else:
            (self.logits,) = as_tensors(logits)
            self.probs = self.logits.sigmoid()
        super().__init__(self.probs.shape)

    @property
    def mean(self) -> Tensor:
        """probs."""
        return self.probs

    @property
    def variance(self) -> Tensor:
        """probs * (1 - probs)."""
        return self.probs * (1 - self.probs)

    def sample(self, sample_shape=()) -> Tensor:
        """Random zeros and ones."""
        with no_grad():
            return bernoulli(self.probs.expand(self._extended_shape(sample_shape)))

    def log_prob(self, value: Tensor) -> Tensor:
        """value * log p + (1 - value) * log(1 - p), from the logits."""
        logits = self.logits
        return value * logits - (logits.clamp(min=0) + (-logits.abs()).exp().log1p())

    def entropy(self) -> Tensor:
        """-p log p - (1 - p) log(1 - p)."""
        logits = self.logits
        return logits.clamp(min=0) + (-logits.abs()).exp().log1p() - self.probs * logits


class Categorical(Distribution):
    """One of the categories 0 .. n - 1, with probabilities along the last dimension of `probs` or softmax(`logits`)."""

    def __init__(self, probs=None, logits=None, validate_args=None):
        _one_of(probs, logits)
        given = probs if probs is not None else logits
        if given.dim() < 1:
            raise ValueError(f"`{'probs' if probs is not None else 'logits'}` parameter must be at least one-dimensional.")
        if probs is not None:
            if validate_args is not False and not bool((probs >= 0).all()):
                raise ValueError("Expected parameter probs of Categorical to be non-negative: found invalid values")
            self.probs = probs / probs.sum(-1, keepdim=True)
            self.logits = _bounds(self.probs).log()
        else:
            self.logits = logits - logits.logsumexp(-1, keepdim=True)
            self.probs = self.logits.softmax(-1)
        super().__init__(self.probs.shape[:-1])

    def sample(self, sample_shape=()) -> Tensor:
        """Random categories, int64."""
        count = Size(sample_shape).numel()
        with no_grad():
            rows = self.probs.reshape(-1, self.probs.size(-1))
            return multinomial(rows, count, True).t().reshape(self._extended_shape(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The log-probability of each category in `value`."""
        value = value.long().unsqueeze(-1)
        shape = (*value.shape[:-1], self.logits.size(-1))
        return self.logits.expand(shape).gather(-1, value).squeeze(-1)

    def entropy(self) -> Tensor:
        """-sum p log p."""
        return -(self.logits.clamp(min=-3.4e38) * self.probs).sum(-1)


class Multinomial(Distribution):
    """How often each category comes up in `total_count` independent draws."""

    def __init__(self, total_count: int = 1, probs=None, logits=None, validate_args=None):
        if not isinstance(total_count, int):
            raise NotImplementedError("inhomogeneous total_count is not supported")
        self.total_count = total_count
        self.categorical = Categorical(probs, logits, validate_args)
        super().__init__(self.categorical.batch_shape, self.categorical.probs.shape[-1:])

    @property
    def probs(self) -> Tensor:
        """The probabilities of the categories."""
        return self.categorical.probs

    @property
    def logits(self) -> Tensor:
        """Their logarithms."""
        return self.categorical.logits

    @property
    def mean(self) -> Tensor:
        """probs * total_count."""
        return self.probs * self.total_count

    @property
    def variance(self) -> Tensor:
        """total_count * probs * (1 - probs)."""
        return self.total_count * self.probs * (1 - self.probs)

    def sample(self, sample_shape=()) -> Tensor:
        """Random counts, in the type of the probabilities."""
        draws = self.categorical.sample((self.total_count, *sample_shape))
        last_first = draws.permute(*range(1, draws.dim()), 0)
        counts = self.probs.new_zeros(self._extended_shape(sample_shape))
        return counts.scatter_add_(-1, last_first, counts.new_ones(last_first.shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """log n! - sum log v! + sum v log p."""
        total = (value.sum(-1) + 1).lgamma()
        weighted = (value * self.logits).sum(-1)
        return total - (value + 1).lgamma().sum(-1) + weighted
