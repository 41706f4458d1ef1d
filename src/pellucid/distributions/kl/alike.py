"""Divergences between two distributions of one family of numbers, counts or shares."""

from __future__ import annotations

import math

from pellucid.distributions.binaries import Bernoulli, Binomial, ContinuousBernoulli, Geometric
from pellucid.distributions.categories import Categorical, OneHotCategorical, Poisson
from pellucid.distributions.exp_family import ExponentialFamily
from pellucid.distributions.gammas import Exponential, Gamma, Pareto
from pellucid.distributions.intervals import Uniform
from pellucid.distributions.kl.registry import kl_divergence, register_kl
from pellucid.distributions.location_scale import Cauchy, Gumbel, Laplace
from pellucid.distributions.normals import HalfNormal, Normal
from pellucid.distributions.simplexes import Beta, Dirichlet
from pellucid.distributions.transformed import Independent, TransformedDistribution
from pellucid.distributions.utils import euler_constant, sum_rightmost
from pellucid.nn.functional import softplus
from pellucid.ops.choosing import where

__all__ = []


# --- counts and categories -------------------------------------------------------------------------------------------


@register_kl(Bernoulli, Bernoulli)
def _bernoulli(p, q):
    ones = p.probs * (softplus(-q.logits) - softplus(-p.logits))
    zeros = (1 - p.probs) * (softplus(q.logits) - softplus(p.logits))
    ones = where(p.probs == 0, 0.0, where(q.probs == 0, math.inf, ones))
    return ones + where(p.probs == 1, 0.0, where(q.probs == 1, math.inf, zeros))


@register_kl(Binomial, Binomial)
def _binomial(p, q):
    if bool((p.total_count < q.total_count).any()):
        raise NotImplementedError("KL between Binomials where q.total_count > p.total_count is not implemented")
    single = p.probs * (p.logits - q.logits) + (-p.probs).log1p() - (-q.probs).log1p()
    return where(p.total_count > q.total_count, math.inf, p.total_count * single)


@register_kl(Categorical, Categorical)
def _categorical(p, q):
    terms = where(q.probs == 0, math.inf, p.probs * (p.logits - q.logits))
    return where(p.probs == 0, 0.0, terms).sum(-1)


@register_kl(OneHotCategorical, OneHotCategorical)
def _one_hot_categorical(p, q):
    return _categorical(p._categorical, q._categorical)


@register_kl(Geometric, Geometric)
def _geometric(p, q):
    return -p.entropy() - (-q.probs).log1p() / p.probs - q.logits


@register_kl(Poisson, Poisson)
def _poisson(p, q):
    return p.rate * (p.rate.log() - q.rate.log()) - (p.rate - q.rate)


# --- shares and intervals --------------------------------------------------------------------------------------------


@register_kl(ContinuousBernoulli, ContinuousBernoulli)
def _continuous_bernoulli(p, q):
    norms = p._cont_bern_log_norm() + (-p.probs).log1p() - q._cont_bern_log_norm() - (-q.probs).log1p()
    return p.mean * (p.logits - q.logits) + norms


@register_kl(Dirichlet, Dirichlet)
def _dirichlet(p, q):
    """Twice the same normaliser, and the means of the logarithms of the shares."""
    total = p.concentration.sum(-1)
    norms = (
        total.lgamma()
        - q.concentration.sum(-1).lgamma()
        - (p.concentration.lgamma() - q.concentration.lgamma()).sum(-1)
    )
    mean_logs = p.concentration.digamma() - total.digamma().unsqueeze(-1)
    return norms + ((p.concentration - q.concentration) * mean_logs).sum(-1)


@register_kl(Beta, Beta)
def _beta(p, q):
    return _dirichlet(p._dirichlet, q._dirichlet)


@register_kl(Uniform, Uniform)
def _uniform(p, q):
    inside = ((q.high - q.low) / (p.high - p.low)).log()
    return where((q.low > p.low) | (q.high < p.high), math.inf, inside)


# --- half-lines ------------------------------------------------------------------------------------------------------


@register_kl(Exponential, Exponential)
def _exponential(p, q):
    ratio = q.rate / p.rate
    return ratio - 1 - ratio.log()


@register_kl(Gamma, Gamma)
def _gamma(p, q):
    norms = q.concentration.lgamma() - p.concentration.lgamma() + q.concentration * (p.rate / q.rate).log()
    shapes = (p.concentration - q.concentration) * p.concentration.digamma()
    return norms + shapes + (q.rate - p.rate) * (p.concentration / p.rate)


@register_kl(Pareto, Pareto)
def _pareto(p, q):
    ratio = q.alpha / p.alpha
    inside = q.alpha * (p.scale / q.scale).log() - ratio.log() + ratio - 1
    return where(p.scale < q.scale, math.inf, inside)


@register_kl(HalfNormal, HalfNormal)
def _half_normal(p, q):
    return _normal(p.base_dist, q.base_dist)


# --- the line --------------------------------------------------------------------------------------------------------


@register_kl(Normal, Normal)
def _normal(p, q):
    ratio = (p.scale / q.scale).pow(2)
    return 0.5 * (ratio + ((p.loc - q.loc) / q.scale).pow(2) - 1 - ratio.log())


@register_kl(Laplace, Laplace)
def _laplace(p, q):
    """Source: Gil, On Rényi divergence measures for continuous alphabet sources, 2011."""
    ratio, distance = p.scale / q.scale, (p.loc - q.loc).abs()
    return distance / q.scale + ratio * (-distance / p.scale).exp() - 1 - ratio.log()


@register_kl(Cauchy, Cauchy)
def _cauchy(p, q):
    """Source: Chyzak and Nielsen, A closed-form formula for the Kullback-Leibler divergence between Cauchy
    distributions, 2019."""
    return ((p.scale + q.scale).pow(2) + (p.loc - q.loc).pow(2)).log() - (4 * p.scale * q.scale).log()


@register_kl(Gumbel, Gumbel)
def _gumbel(p, q):
    ratio, shift = p.scale / q.scale, (p.loc - q.loc) / q.scale
    raised = ((1 + ratio).lgamma() - shift).exp()
    return shift + raised + ratio * euler_constant - ratio.log() - (1 + euler_constant)


# --- made from others ------------------------------------------------------------------------------------------------


@register_kl(ExponentialFamily, ExponentialFamily)
def _exponential_family(p, q):
    """The Bregman divergence of the log-normaliser."""
    if type(p) is not type(q):
        raise NotImplementedError(
            "The cross KL-divergence between different exponential families cannot be computed using Bregman divergences"
        )
    p_parameters, p_normalizer, means = p._normalizer_and_means()
    q_parameters = q._natural_params
    result = q._log_normalizer(*q_parameters) - p_normalizer
    for mine, other, mean in zip(p_parameters, q_parameters, means, strict=True):
        term = (other - mine) * mean
        result = result - sum_rightmost(term, term.dim() - result.dim())
    return result


@register_kl(TransformedDistribution, TransformedDistribution)
def _transformed(p, q):
    """A bijection applied to both changes nothing."""
    if p.transforms != q.transforms or p.event_shape != q.event_shape:
        raise NotImplementedError(
            "the KL-divergence of transformed distributions needs equal transforms and event shapes"
        )
    return kl_divergence(p.base_dist, q.base_dist)


@register_kl(Independent, Independent)
def _independent(p, q):
    if p.reinterpreted_batch_ndims != q.reinterpreted_batch_ndims:
        raise NotImplementedError(
            "the KL-divergence of Independent distributions needs equal reinterpreted_batch_ndims"
        )
    return sum_rightmost(kl_divergence(p.base_dist, q.base_dist), p.reinterpreted_batch_ndims)
