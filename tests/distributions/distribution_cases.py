"""One of each distribution, made by a short name, with values in its support: what several test files walk through."""

from __future__ import annotations

import pellucid as torch
from pellucid import distributions as D


def t(*values):
    """A float64 tensor."""
    return torch.tensor(values, dtype=torch.float64)


SPREAD = t([2.0, 0.3], [0.3, 1.0])

# name -> (how to make it, values in its support)
CASES = {
    "Normal": (lambda: D.Normal(t(0.5, -1.0), t(1.0, 2.0)), t(0.25, 3.0)),
    "LogNormal": (lambda: D.LogNormal(t(0.5, -1.0), t(1.0, 0.5)), t(0.25, 3.0)),
    "HalfNormal": (lambda: D.HalfNormal(t(1.0, 2.0)), t(0.25, 3.0)),
    "LogisticNormal": (lambda: D.LogisticNormal(t(0.5, -1.0), t(1.0, 2.0)), t(0.2, 0.5, 0.3)),
    "Cauchy": (lambda: D.Cauchy(t(0.5, -1.0), t(1.0, 2.0)), t(0.25, 3.0)),
    "HalfCauchy": (lambda: D.HalfCauchy(t(1.0, 2.0)), t(0.25, 3.0)),
    "Laplace": (lambda: D.Laplace(t(0.5, -1.0), t(1.0, 2.0)), t(0.25, 3.0)),
    "Gumbel": (lambda: D.Gumbel(t(0.5, -1.0), t(1.0, 2.0)), t(0.25, 3.0)),
    "StudentT": (lambda: D.StudentT(t(1.5, 5.0), t(0.5, -1.0), t(1.0, 2.0)), t(0.25, 3.0)),
    "Uniform": (lambda: D.Uniform(t(-1.0, 2.0), t(1.0, 5.0)), t(0.25, 3.0)),
    "GeneralizedPareto": (
        lambda: D.GeneralizedPareto(t(-1.0, 2.0, 0.0), t(1.0, 2.0, 1.0), t(0.3, -0.5, 0.0)),
        t(0.25, 3.0, 1.5),
    ),
    "Exponential": (lambda: D.Exponential(t(0.5, 2.0)), t(0.25, 3.0)),
    "Gamma": (lambda: D.Gamma(t(0.5, 3.0), t(1.0, 2.0)), t(0.25, 3.0)),
    "Chi2": (lambda: D.Chi2(t(1.5, 3.0)), t(0.25, 3.0)),
    "InverseGamma": (lambda: D.InverseGamma(t(2.5, 3.0), t(1.0, 2.0)), t(0.25, 3.0)),
    "FisherSnedecor": (lambda: D.FisherSnedecor(t(3.0, 5.0), t(6.0, 5.0)), t(0.25, 3.0)),
    "Pareto": (lambda: D.Pareto(t(1.0, 2.0), t(2.5, 3.0)), t(1.25, 3.0)),
    "Weibull": (lambda: D.Weibull(t(1.0, 2.0), t(1.5, 3.0)), t(0.25, 3.0)),
    "Beta": (lambda: D.Beta(t(0.5, 3.0), t(1.5, 2.0)), t(0.25, 0.6)),
    "Dirichlet": (lambda: D.Dirichlet(t(0.5, 3.0, 1.5)), t(0.2, 0.5, 0.3)),
    "Kumaraswamy": (lambda: D.Kumaraswamy(t(2.5, 3.0), t(1.5, 2.0)), t(0.25, 0.6)),
    "VonMises": (lambda: D.VonMises(t(0.5, -1.0), t(1.0, 20.0)), t(0.25, -0.8)),
    "Wishart": (lambda: D.Wishart(t(5.0), covariance_matrix=SPREAD.unsqueeze(0)), t([3.0, 0.5], [0.5, 2.0])),
    "LKJCholesky": (lambda: D.LKJCholesky(3, t(1.5)), t([1.0, 0.0, 0.0], [0.6, 0.8, 0.0], [0.0, 0.6, 0.8])),
    "MultivariateNormal": (lambda: D.MultivariateNormal(t(0.5, -1.0), covariance_matrix=SPREAD), t(0.25, 3.0)),
    "LowRankMultivariateNormal": (
        lambda: D.LowRankMultivariateNormal(t(0.5, -1.0), t([1.0], [2.0]), t(1.0, 2.0)),
        t(0.25, 3.0),
    ),
    "Bernoulli": (lambda: D.Bernoulli(t(0.2, 0.9)), t(1.0, 0.0)),
    "ContinuousBernoulli": (lambda: D.ContinuousBernoulli(t(0.2, 0.4995)), t(0.25, 0.6)),
    "Geometric": (lambda: D.Geometric(t(0.2, 0.9)), t(3.0, 0.0)),
    "Binomial": (lambda: D.Binomial(5, t(0.2, 0.9)), t(3.0, 0.0)),
    "NegativeBinomial": (lambda: D.NegativeBinomial(t(2.5, 4.0), t(0.2, 0.6)), t(3.0, 0.0)),
    "Poisson": (lambda: D.Poisson(t(0.5, 12.0)), t(3.0, 9.0)),
    "Categorical": (lambda: D.Categorical(t(0.1, 0.2, 0.7)), torch.tensor(2)),
    "OneHotCategorical": (lambda: D.OneHotCategorical(logits=t(0.1, 0.2, 0.7)), t(0.0, 1.0, 0.0)),
    "OneHotCategoricalStraightThrough": (
        lambda: D.OneHotCategoricalStraightThrough(t(0.1, 0.2, 0.7)),
        t(0.0, 1.0, 0.0),
    ),
    "Multinomial": (lambda: D.Multinomial(4, t(0.1, 0.2, 0.7)), t(1.0, 1.0, 2.0)),
    "RelaxedBernoulli": (lambda: D.RelaxedBernoulli(t(0.7)[0], t(0.2, 0.9)), t(0.25, 0.6)),
    "RelaxedOneHotCategorical": (lambda: D.RelaxedOneHotCategorical(t(0.7)[0], t(0.1, 0.2, 0.7)), t(0.2, 0.5, 0.3)),
    "MixtureSameFamily": (
        lambda: D.MixtureSameFamily(D.Categorical(t(0.3, 0.7)), D.Normal(t(0.5, -1.0), t(1.0, 2.0))),
        t(0.25)[0],
    ),
    "Independent": (lambda: D.Independent(D.Normal(t(0.5, -1.0), t(1.0, 2.0)), 1), t(0.25, 3.0)),
    "TransformedDistribution": (
        lambda: D.TransformedDistribution(
            D.Uniform(t(0.0)[0], t(1.0)[0]), [D.SigmoidTransform().inv, D.AffineTransform(t(0.5, -1.0), t(1.0, -2.0))]
        ),
        t(0.25, 3.0),
    ),
}
