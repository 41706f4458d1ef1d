"""Distributions over real numbers."""

from __future__ import annotations

import math

from pellucid.autograd.grad_mode import no_grad
from pellucid.core.tensor import Tensor
from pellucid.distributions.distribution import Distribution, as_tensors
from pellucid.ops.randoms import normal, rand, randn

__all__ = ["Normal", "Uniform"]


class Normal(Distribution):
    """The normal distribution of mean `loc` and standard deviation `scale`."""

    has_rsample = True

    def __init__(self, loc, scale, validate_args=None):
        self.loc, self.scale = as_tensors(loc, scale)
        if validate_args is not False and not bool((self.scale > 0).all()):
            raise ValueError("Expected parameter scale of Normal to be positive: found invalid values")
        super().__init__(self.loc.shape)

    @property
    def mean(self) -> Tensor:
        """loc."""
        return self.loc

    @property
    def variance(self) -> Tensor:
        """scale squared."""
        return self.scale.pow(2)

    def sample(self, sample_shape=()) -> Tensor:
        """Random values, as `pellucid.normal` draws them."""
        shape = self._extended_shape(sample_shape)
        with no_grad():
            return normal(self.loc.expand(shape), self.scale.expand(shape))

    def rsample(self, sample_shape=()) -> Tensor:
        """loc + scale times standard normal values."""
        return self.loc + self.scale * randn(self._extended_shape(sample_shape), dtype=self.loc.dtype)

    def log_prob(self, value: Tensor) -> Tensor:
        """-(value - loc)^2 / (2 scale^2) - log(scale) - log(2 pi) / 2."""
        return -((value - self.loc) ** 2) / (2 * self.variance) - self.scale.log() - math.log(math.sqrt(2 * math.pi))

    def entropy(self) -> Tensor:
        """1/2 + log(2 pi) / 2 + log(scale)."""
        return 0.5 + 0.5 * math.log(2 * math.pi) + self.scale.log()


class Uniform(Distribution):
    """The uniform distribution over [low, high)."""

    has_rsample = True

    def __init__(self, low, high, validate_args=None):
        self.low, self.high = as_tensors(low, high)
        if validate_args is not False and not bool((self.low < self.high).all()):
            raise ValueError("Uniform is not defined when low>= high")
        super().__init__(self.low.shape)

    @property
    def mean(self) -> Tensor:
        """The middle."""
        return (self.high + self.low) / 2

    @property
    def variance(self) -> Tensor:
        """Width squared over 12."""
        return (self.high - self.low).pow(2) / 12

    def rsample(self, sample_shape=()) -> Tensor:
        """low + width times uniform values in [0, 1)."""
        return self.low + rand(self._extended_shape(sample_shape), dtype=self.low.dtype) * (self.high - self.low)

    def log_prob(self, value: Tensor) -> Tensor:
        """-log(width) inside, -inf outside."""
        inside = ((self.low <= value) & (self.high > value)).to(self.low.dtype)
        return inside.log() - (self.high - self.low).log()

    def entropy(self) -> Tensor:
        """log(width)."""
        return (self.high - self.low).log()
