"""Probability distributions, with the names of `torch.distributions`: sampling, densities, entropy."""

from pellucid.distributions.continuous import Normal, Uniform
from pellucid.distributions.discrete import Bernoulli, Categorical, Multinomial
from pellucid.distributions.distribution import Distribution

__all__ = ["Bernoulli", "Categorical", "Distribution", "Multinomial", "Normal", "Uniform"]
