"""Kullback-Leibler divergences, with the names of `torch.distributions.kl`. Importing it registers all of them."""

from pellucid.distributions.kl import alike, crossed, normal_vectors
from pellucid.distributions.kl.registry import kl_divergence, register_kl

__all__ = ["kl_divergence", "register_kl"]
