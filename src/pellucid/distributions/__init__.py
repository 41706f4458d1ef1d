"""Probability distributions, with the names of `torch.distributions`: samples, densities, moments, divergences."""

import sys as _sys

from pellucid.distributions import constraints, kl, transforms, utils
from pellucid.distributions.binaries import Bernoulli, Binomial, ContinuousBernoulli, Geometric, NegativeBinomial
from pellucid.distributions.categories import (
    Categorical,
    Multinomial,
    OneHotCategorical,
    OneHotCategoricalStraightThrough,
    Poisson,
)
from pellucid.distributions.circular import VonMises
from pellucid.distributions.constraint_registry import biject_to, transform_to
from pellucid.distributions.distribution import Distribution
from pellucid.distributions.exp_family import ExponentialFamily
from pellucid.distributions.gammas import Chi2, Exponential, FisherSnedecor, Gamma, InverseGamma, Pareto, Weibull
from pellucid.distributions.intervals import GeneralizedPareto, Uniform
from pellucid.distributions.kl import kl_divergence, register_kl
from pellucid.distributions.location_scale import Cauchy, Gumbel, HalfCauchy, Laplace, StudentT
from pellucid.distributions.mixtures import MixtureSameFamily
from pellucid.distributions.multivariate_normals import LowRankMultivariateNormal, MultivariateNormal
from pellucid.distributions.normals import HalfNormal, LogisticNormal, LogNormal, Normal
from pellucid.distributions.random_matrices import LKJCholesky, Wishart
from pellucid.distributions.relaxed import RelaxedBernoulli, RelaxedOneHotCategorical
from pellucid.distributions.simplexes import Beta, Dirichlet, Kumaraswamy
from pellucid.distributions.transformed import Independent, TransformedDistribution
from pellucid.distributions.transforms import (
    AbsTransform,
    AffineTransform,
    CatTransform,
    ComposeTransform,
    CorrCholeskyTransform,
    CumulativeDistributionTransform,
    ExpTransform,
    IndependentTransform,
    LowerCholeskyTransform,
    PositiveDefiniteTransform,
    PowerTransform,
    ReshapeTransform,
    SigmoidTransform,
    SoftmaxTransform,
    SoftplusTransform,
    StackTransform,
    StickBreakingTransform,
    TanhTransform,
    Transform,
    identity_transform,
)

__all__ = [
    "AbsTransform",
    "AffineTransform",
    "Bernoulli",
    "Beta",
    "Binomial",
    "CatTransform",
    "Categorical",
    "Cauchy",
    "Chi2",
    "ComposeTransform",
    "ContinuousBernoulli",
    "CorrCholeskyTransform",
    "CumulativeDistributionTransform",
    "Dirichlet",
    "Distribution",
    "ExpTransform",
    "Exponential",
    "ExponentialFamily",
    "FisherSnedecor",
    "Gamma",
    "GeneralizedPareto",
    "Geometric",
    "Gumbel",
    "HalfCauchy",
    "HalfNormal",
    "Independent",
    "IndependentTransform",
    "InverseGamma",
    "Kumaraswamy",
    "LKJCholesky",
    "Laplace",
    "LogNormal",
    "LogisticNormal",
    "LowRankMultivariateNormal",
    "LowerCholeskyTransform",
    "MixtureSameFamily",
    "Multinomial",
    "MultivariateNormal",
    "NegativeBinomial",
    "Normal",
    "OneHotCategorical",
    "OneHotCategoricalStraightThrough",
    "Pareto",
    "Poisson",
    "PositiveDefiniteTransform",
    "PowerTransform",
    "RelaxedBernoulli",
    "RelaxedOneHotCategorical",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "SoftplusTransform",
    "StackTransform",
    "StickBreakingTransform",
    "StudentT",
    "TanhTransform",
    "Transform",
    "TransformedDistribution",
    "Uniform",
    "VonMises",
    "Weibull",
    "Wishart",
    "biject_to",
    "identity_transform",
    "kl_divergence",
    "register_kl",
    "transform_to",
]

# PyTorch has a module for each distribution; here related ones share one. The modules go by its names as well.
_MODULES = {
    "binaries": "bernoulli binomial continuous_bernoulli geometric negative_binomial",
    "categories": "categorical multinomial one_hot_categorical poisson",
    "circular": "von_mises",
    "gammas": "chi2 exponential fishersnedecor gamma inverse_gamma pareto weibull",
    "intervals": "generalized_pareto uniform",
    "location_scale": "cauchy gumbel half_cauchy laplace studentT",
    "mixtures": "mixture_same_family",
    "multivariate_normals": "lowrank_multivariate_normal multivariate_normal",
    "normals": "half_normal log_normal logistic_normal normal",
    "random_matrices": "lkj_cholesky wishart",
    "relaxed": "relaxed_bernoulli relaxed_categorical",
    "simplexes": "beta dirichlet kumaraswamy",
    "transformed": "independent transformed_distribution",
}
for _module, _names in _MODULES.items():
    for _name in _names.split():
        globals()[_name] = _sys.modules[f"{__name__}.{_name}"] = globals()[_module]
