"""Divergences between different families over numbers: the cross-entropy, a mean under p, less the entropy of p.

Which means are needed depends on q alone: of x and x^2 for a normal q, of x and log x for a gamma one, and so on. Each
is written once for every p that has it.
"""

from __future__ import annotations

import math

from pellucid.core.tensor import Tensor
from pellucid.distributions.binaries import Bernoulli, Binomial, ContinuousBernoulli
from pellucid.distributions.categories import Poisson
from pellucid.distributions.gammas import Exponential, Gamma, Pareto
from pellucid.distributions.intervals import Uniform
from pellucid.distributions.kl.registry import register_kl
from pellucid.distributions.location_scale import Gumbel, Laplace
from pellucid.distributions.normals import Normal
from pellucid.distributions.simplexes import Beta
from pellucid.distributions.utils import euler_constant
from pellucid.functions.factories import full_like
from pellucid.ops.choosing import where

__all__ = []


def _register(p_types, q_type):
    """Register one function for several p."""

    def declare(function):
        for p_type in p_types:
            register_kl(p_type, q_type)(function)
        return function

    return declare


# --- means under p ---------------------------------------------------------------------------------------------------


def _mean(p) -> Tensor:
    """The mean of x; for a Pareto distribution of alpha <= 1 a number without meaning, which is replaced."""
    return p.alpha * p.scale / (p.alpha - 1) if isinstance(p, Pareto) else p.mean


def _variance(p) -> Tensor:
    """The variance of x; for a Pareto distribution of alpha <= 2 a number without meaning, which is replaced."""
    if isinstance(p, Pareto):
        return p.scale.pow(2) * p.alpha / ((p.alpha - 1).pow(2) * (p.alpha - 2))
    return p.variance


def _if_moment(p, order: int, divergence: Tensor) -> Tensor:
    """inf where a Pareto distribution has no mean (of order 1) or variance (2)."""
    return where(p.alpha <= order, math.inf, divergence) if isinstance(p, Pareto) else divergence


def _x_log_x(x: Tensor) -> Tensor:
    return x.xlogy(x)


def _mean_log_of_uniform(low: Tensor, high: Tensor) -> Tensor:
    width = high - low
    return (_x_log_x(high) - _x_log_x(low) - width) / width


def _mean_log(p) -> Tensor:
    """The mean of log x."""
    if isinstance(p, Beta):
        return p.concentration1.digamma() - (p.concentration1 + p.concentration0).digamma()
    if isinstance(p, Gamma):
        return p.concentration.digamma() - p.rate.log()
    if isinstance(p, Exponential):
        return -euler_constant - p.rate.log()
    if isinstance(p, Pareto):
        return p.scale.log() + p.alpha.reciprocal()
    return _mean_log_of_uniform(p.low, p.high)


def _mean_exp(p, rate: Tensor) -> Tensor:
    """The mean of exp(-rate x)."""
    if isinstance(p, Exponential):
        return p.rate / (p.rate + rate)
    if isinstance(p, Gamma):
        return (1 + rate / p.rate).pow(-p.concentration)
    if isinstance(p, Normal):
        return (-rate * p.loc + 0.5 * (rate * p.scale).pow(2)).exp()
    return ((-rate * p.low).exp() - (-rate * p.high).exp()) / (rate * (p.high - p.low))


# --- cross-entropies -------------------------------------------------------------------------------------------------


@_register((Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Pareto, Uniform), Normal)
def _to_normal(p, q):
    spread = (_variance(p) + (_mean(p) - q.loc).pow(2)) / (2 * q.scale.pow(2))
    return _if_moment(p, 2, 0.5 * math.log(2 * math.pi) + q.scale.log() + spread - p.entropy())


@_register((Beta, ContinuousBernoulli, Gamma, Pareto), Exponential)
def _to_exponential(p, q):
    return _if_moment(p, 1, q.rate * _mean(p) - q.rate.log() - p.entropy())


@register_kl(Uniform, Exponential)
def _uniform_to_exponential(p, q):
    return where(p.low < 0, math.inf, _to_exponential(p, q))


@_register((Beta, Exponential, Pareto), Gamma)
def _to_gamma(p, q):
    c = q.concentration
    cross = c.lgamma() - c * q.rate.log() - (c - 1) * _mean_log(p) + q.rate * _mean(p)
    return _if_moment(p, 1, cross - p.entropy())


@register_kl(Uniform, Gamma)
def _uniform_to_gamma(p, q):
    return where(p.low < 0, math.inf, _to_gamma(p, q))


@_register((Exponential, Gamma, Normal, Uniform), Gumbel)
def _to_gumbel(p, q):
    rate = q.scale.reciprocal()
    return (p.mean - q.loc) * rate + (q.loc * rate).exp() * _mean_exp(p, rate) + q.scale.log() - p.entropy()


@register_kl(Normal, Laplace)
def _normal_to_laplace(p, q):
    away = (p.loc - q.loc) / p.scale
    distance = p.scale * (math.sqrt(2 / math.pi) * (-0.5 * away.pow(2)).exp() + away * (math.sqrt(0.5) * away).erf())
    return (2 * q.scale).log() + distance / q.scale - p.entropy()


@_register((Beta, Uniform), ContinuousBernoulli)
def _to_continuous_bernoulli(p, q):
    divergence = -p.mean * q.logits - (-q.probs).log1p() - q._cont_bern_log_norm() - p.entropy()
    if isinstance(p, Beta):
        return divergence
    return where((p.high >= 1) | (p.low <= 0), math.inf, divergence)


@register_kl(Beta, Uniform)
def _beta_to_uniform(p, q):
    return where((q.low > 0) | (q.high < 1), math.inf, (q.high - q.low).log() - p.entropy())


@register_kl(ContinuousBernoulli, Uniform)
def _continuous_bernoulli_to_uniform(p, q):
    return where((q.low >= 0) | (q.high <= 1), math.inf, (q.high - q.low).log() - p.entropy())


@register_kl(Uniform, Beta)
def _uniform_to_beta(p, q):
    a, b = q.concentration1, q.concentration0
    mirrored = _mean_log_of_uniform(1 - p.high, 1 - p.low)
    norm = a.lgamma() + b.lgamma() - (a + b).lgamma()
    divergence = norm - (a - 1) * _mean_log(p) - (b - 1) * mirrored - p.entropy()
    return where((p.high > 1) | (p.low < 0), math.inf, divergence)


@register_kl(Uniform, Pareto)
def _uniform_to_pareto(p, q):
    divergence = (q.alpha + 1) * _mean_log(p) - (q.alpha * q.scale.pow(q.alpha)).log() - p.entropy()
    return where(p.low < q.scale, math.inf, divergence)


@register_kl(Bernoulli, Poisson)
def _bernoulli_to_poisson(p, q):
    return q.rate - p.probs * q.rate.log() - p.entropy()


# --- where p reaches beyond q ----------------------------------------------------------------------------------------


@_register((Exponential, Gamma, Gumbel, Laplace, Normal, Pareto), Beta)
@_register((Exponential, Gamma, Gumbel, Laplace, Normal, Pareto), ContinuousBernoulli)
@_register((Exponential, Gamma, Gumbel, Laplace, Normal, Pareto), Uniform)
@_register((Beta, ContinuousBernoulli, Exponential, Gamma, Gumbel, Laplace, Normal), Pareto)
@_register((Gumbel, Laplace, Normal), Exponential)
@_register((Gumbel, Laplace, Normal), Gamma)
@_register((Poisson,), Bernoulli)
@_register((Poisson,), Binomial)
def _infinite(p, q):
    return full_like(p.mean, math.inf)
