"""Divergences of each pair of families: the values that PyTorch gives, and agreement with the mean over samples."""

from __future__ import annotations

import numpy as np
import pytest

import pellucid as torch
from pellucid import distributions as D
from pellucid.distributions.kl.registry import _REGISTRY

inf = np.inf


def t(*values):
    """A float64 tensor."""
    return torch.tensor(values, dtype=torch.float64)


WIDE, NARROW = t([2.0, 0.3], [0.3, 1.0]), t([1.0, -0.2], [-0.2, 0.5])
# name -> (p, q)
PAIRS = {
    "Bernoulli": (lambda: D.Bernoulli(t(0.2, 0.9)), lambda: D.Bernoulli(t(0.5, 0.6))),
    "Beta": (lambda: D.Beta(t(0.5, 3.0), t(1.5, 2.0)), lambda: D.Beta(t(2.0, 1.0), t(1.0, 4.0))),
    "Binomial": (lambda: D.Binomial(5, t(0.2, 0.9)), lambda: D.Binomial(5, t(0.5, 0.6))),
    "Categorical": (lambda: D.Categorical(t(0.1, 0.2, 0.7)), lambda: D.Categorical(t(0.3, 0.3, 0.4))),
    "Cauchy": (lambda: D.Cauchy(t(0.5, -1.0), t(1.0, 2.0)), lambda: D.Cauchy(t(0.0, 1.0), t(2.0, 0.5))),
    "ContinuousBernoulli": (lambda: D.ContinuousBernoulli(t(0.2, 0.9)), lambda: D.ContinuousBernoulli(t(0.4, 0.6))),
    "Dirichlet": (lambda: D.Dirichlet(t(0.5, 3.0, 1.5)), lambda: D.Dirichlet(t(1.0, 1.0, 2.0))),
    "Exponential": (lambda: D.Exponential(t(0.5, 2.0)), lambda: D.Exponential(t(1.0, 3.0))),
    "Gamma": (lambda: D.Gamma(t(0.5, 3.0), t(1.0, 2.0)), lambda: D.Gamma(t(2.0, 1.0), t(0.5, 3.0))),
    "Geometric": (lambda: D.Geometric(t(0.2, 0.9)), lambda: D.Geometric(t(0.5, 0.6))),
    "Gumbel": (lambda: D.Gumbel(t(0.5, -1.0), t(1.0, 2.0)), lambda: D.Gumbel(t(0.0, 1.0), t(2.0, 4.0))),
    "HalfNormal": (lambda: D.HalfNormal(t(1.0, 2.0)), lambda: D.HalfNormal(t(2.0, 0.5))),
    "Independent": (
        lambda: D.Independent(D.Normal(t(0.5, -1.0), t(1.0, 2.0)), 1),
        lambda: D.Independent(D.Normal(t(0.0, 1.0), t(2.0, 0.5)), 1),
    ),
    "Laplace": (lambda: D.Laplace(t(0.5, -1.0), t(1.0, 2.0)), lambda: D.Laplace(t(0.0, 1.0), t(2.0, 0.5))),
    "LowRankMultivariateNormal": (
        lambda: D.LowRankMultivariateNormal(t(0.5, -1.0), t([1.0], [2.0]), t(1.0, 2.0)),
        lambda: D.LowRankMultivariateNormal(t(0.0, 1.0), t([-1.0], [0.5]), t(2.0, 1.0)),
    ),
    "MultivariateNormal": (
        lambda: D.MultivariateNormal(t(0.5, -1.0), covariance_matrix=WIDE),
        lambda: D.MultivariateNormal(t(0.0, 1.0), precision_matrix=NARROW),
    ),
    "Normal": (lambda: D.Normal(t(0.5, -1.0), t(1.0, 2.0)), lambda: D.Normal(t(0.0, 1.0), t(2.0, 0.5))),
    "OneHotCategorical": (lambda: D.OneHotCategorical(t(0.1, 0.2, 0.7)), lambda: D.OneHotCategorical(t(0.3, 0.3, 0.4))),
    "Pareto": (lambda: D.Pareto(t(1.0, 2.0), t(2.5, 3.0)), lambda: D.Pareto(t(0.1, 0.2), t(1.0, 4.0))),
    "Poisson": (lambda: D.Poisson(t(0.5, 12.0)), lambda: D.Poisson(t(2.0, 9.0))),
    "TransformedDistribution": (
        lambda: D.LogNormal(t(0.5, -1.0), t(1.0, 2.0)),
        lambda: D.LogNormal(t(0.0, 1.0), t(2.0, 0.5)),
    ),
    "Uniform": (lambda: D.Uniform(t(0.25, 0.3), t(0.5, 0.75)), lambda: D.Uniform(t(-1.0, 0.0), t(2.0, 1.0))),
    "ExponentialFamily": (lambda: D.Wishart(t(5.0)[0], WIDE), lambda: D.Wishart(t(4.0)[0], precision_matrix=NARROW)),
}

# (family of p, family of q) -> the divergence of the p of the one and the q of the other
DIVERGENCES = {
    ("Bernoulli", "Bernoulli"): [0.192744757, 0.2262891612],
    ("Bernoulli", "Poisson"): [1.36096814, 6.697414907],
    ("Beta", "Beta"): [2.241564475, 2.098612289],
    ("Beta", "ContinuousBernoulli"): [0.4538917388, 0.2012008601],
    ("Beta", "Exponential"): [0.7984172947, 0.9362943611],
    ("Beta", "Gamma"): [4.446006017, 0.9362943611],
    ("Beta", "Normal"): [2.176128008, 0.8606980024],
    ("Beta", "Pareto"): [inf, inf],
    ("Beta", "Uniform"): [1.647029583, 0.2349066498],
    ("Binomial", "Binomial"): [0.9637237851, 1.131445806],
    ("Categorical", "Categorical"): 0.2007768011,
    ("Cauchy", "Cauchy"): [0.1451820098, 0.9409833445],
    ("ContinuousBernoulli", "ContinuousBernoulli"): [0.03784883418, 0.1175912678],
    ("ContinuousBernoulli", "Exponential"): [0.4644286399, 1.090659987],
    ("ContinuousBernoulli", "Normal"): [1.716806768, 0.7563981117],
    ("ContinuousBernoulli", "Pareto"): [inf, inf],
    ("ContinuousBernoulli", "Uniform"): [1.175026741, inf],
    ("Dirichlet", "Dirichlet"): 1.544525503,
    ("Exponential", "Beta"): [inf, inf],
    ("Exponential", "ContinuousBernoulli"): [inf, inf],
    ("Exponential", "Exponential"): [0.3068528194, 0.09453489189],
    ("Exponential", "Gamma"): [0.5772156649, 0.09453489189],
    ("Exponential", "Gumbel"): [0.5, 2.095797468],
    ("Exponential", "Normal"): [0.9189385332, 0.9189385332],
    ("Exponential", "Pareto"): [inf, inf],
    ("Exponential", "Uniform"): [inf, inf],
    ("ExponentialFamily", "ExponentialFamily"): 1.366356475,
    ("Gamma", "Beta"): [inf, inf],
    ("Gamma", "ContinuousBernoulli"): [inf, inf],
    ("Gamma", "Exponential"): [0.4093900701, 2.246956382],
    ("Gamma", "Gamma"): [3.509194457, 2.246956382],
    ("Gamma", "Gumbel"): [1.669033832, 1.258675121],
    ("Gamma", "Normal"): [1.615225784, 1.071360023],
    ("Gamma", "Pareto"): [inf, inf],
    ("Gamma", "Uniform"): [inf, inf],
    ("Geometric", "Geometric"): [0.9637237851, 0.2514324013],
    ("Gumbel", "Beta"): [inf, inf],
    ("Gumbel", "ContinuousBernoulli"): [inf, inf],
    ("Gumbel", "Exponential"): [inf, inf],
    ("Gumbel", "Gamma"): [inf, inf],
    ("Gumbel", "Gumbel"): [0.3447335716, 0.3656805308],
    ("Gumbel", "Normal"): [0.3855360058, 12.54487379],
    ("Gumbel", "Pareto"): [inf, inf],
    ("Gumbel", "Uniform"): [inf, inf],
    ("HalfNormal", "HalfNormal"): [0.3181471806, 6.113705639],
    ("Independent", "Independent"): 14.46310282,
    ("Laplace", "Beta"): [inf, inf],
    ("Laplace", "ContinuousBernoulli"): [inf, inf],
    ("Laplace", "Exponential"): [inf, inf],
    ("Laplace", "Gamma"): [inf, inf],
    ("Laplace", "Laplace"): [0.2464125104, 3.085223404],
    ("Laplace", "Normal"): [0.2001885332, 21.83949699],
    ("Laplace", "Pareto"): [inf, inf],
    ("Laplace", "Uniform"): [inf, inf],
    ("LowRankMultivariateNormal", "LowRankMultivariateNormal"): 3.417017856,
    ("LowRankMultivariateNormal", "MultivariateNormal"): 1.773543624,
    ("MultivariateNormal", "LowRankMultivariateNormal"): 1.74747272,
    ("MultivariateNormal", "MultivariateNormal"): 1.579712774,
    ("Normal", "Beta"): [inf, inf],
    ("Normal", "ContinuousBernoulli"): [inf, inf],
    ("Normal", "Exponential"): [inf, inf],
    ("Normal", "Gamma"): [inf, inf],
    ("Normal", "Gumbel"): [0.4067055499, 0.6424546048],
    ("Normal", "Laplace"): [0.4151523853, 2.554438051],
    ("Normal", "Normal"): [0.3493971806, 14.11370564],
    ("Normal", "Pareto"): [inf, inf],
    ("Normal", "Uniform"): [inf, inf],
    ("OneHotCategorical", "OneHotCategorical"): 0.2007768011,
    ("Pareto", "Beta"): [inf, inf],
    ("Pareto", "ContinuousBernoulli"): [inf, inf],
    ("Pareto", "Exponential"): [1.182957399, 6.973519486],
    ("Pareto", "Gamma"): [1.335918426, 6.973519486],
    ("Pareto", "Normal"): [1.753376446, 13.29792313],
    ("Pareto", "Pareto"): [2.618875825, 9.255991633],
    ("Pareto", "Uniform"): [inf, inf],
    ("Poisson", "Bernoulli"): [inf, inf],
    ("Poisson", "Binomial"): [inf, inf],
    ("Poisson", "Poisson"): [0.8068528194, 0.4521848694],
    ("TransformedDistribution", "TransformedDistribution"): [0.3493971806, 14.11370564],
    ("Uniform", "Beta"): [1.693147181, 1.766205805],
    ("Uniform", "ContinuousBernoulli"): [1.342451944, 0.7952117896],
    ("Uniform", "Exponential"): [1.761294361, 1.274895408],
    ("Uniform", "Gamma"): [3.960088722, 1.274895408],
    ("Uniform", "Gumbel"): [3.096510498, 3.192734348],
    ("Uniform", "Normal"): [3.016609242, 1.509299049],
    ("Uniform", "Pareto"): [1.688879454, 2.465857062],
    ("Uniform", "Uniform"): [2.48490665, 0.7985076962],
}


@pytest.mark.parametrize(("p", "q"), DIVERGENCES)
def test_divergence(p, q):
    found = D.kl_divergence(PAIRS[p][0](), PAIRS[q][1]())
    np.testing.assert_allclose(found.detach(), DIVERGENCES[p, q], rtol=1e-7, atol=1e-9)


def test_each_registered_pair_has_a_value():
    assert {(p.__name__, q.__name__) for p, q in _REGISTRY if p.__module__.startswith("pellucid.")} == set(DIVERGENCES)


def finite(pair) -> bool:
    return bool(np.isfinite(DIVERGENCES[pair]).all())


@pytest.mark.parametrize(("p", "q"), [pair for pair in DIVERGENCES if finite(pair)])
def test_it_is_the_mean_of_the_log_ratio(p, q):
    torch.manual_seed(1)
    first, second = PAIRS[p][0](), PAIRS[q][1]()
    drawn = first.sample((4000,))
    ratios = first.log_prob(drawn) - second.log_prob(drawn)
    error = 5 * ratios.std(0) / 4000**0.5
    assert ((ratios.mean(0) - D.kl_divergence(first, second)).abs() <= error + 1e-9).all()


@pytest.mark.parametrize("name", PAIRS)
def test_of_a_distribution_from_itself_it_is_zero(name):
    np.testing.assert_allclose(D.kl_divergence(*[PAIRS[name][0]()] * 2).detach(), 0.0, atol=1e-7)


@pytest.mark.parametrize(
    ("p", "q", "expected"),
    [
        pytest.param(lambda: D.Bernoulli(t(0.0, 1.0)), lambda: D.Bernoulli(t(0.5, 0.5)), [0.6931472] * 2, id="certain"),
        pytest.param(lambda: D.Bernoulli(t(0.5, 0.0)), lambda: D.Bernoulli(t(0.0, 0.0)), [inf, 0.0], id="impossible"),
        pytest.param(
            lambda: D.Categorical(t(0.0, 0.5, 0.5)), lambda: D.Categorical(t(0.5, 0.5, 0.0)), inf, id="categories"
        ),
        pytest.param(lambda: D.Uniform(t(0.0), t(2.0)), lambda: D.Uniform(t(0.5), t(3.0)), [inf], id="uniform"),
        pytest.param(lambda: D.Pareto(t(1.0), t(2.0)), lambda: D.Pareto(t(1.5), t(2.0)), [inf], id="Pareto"),
        pytest.param(lambda: D.Pareto(t(1.0), t(1.0)), lambda: D.Exponential(t(1.0)), [inf], id="no mean"),
        pytest.param(lambda: D.Pareto(t(1.0), t(1.0)), lambda: D.Gamma(t(1.0), t(1.0)), [inf], id="no mean, gamma"),
        pytest.param(lambda: D.Pareto(t(1.0), t(2.0)), lambda: D.Normal(t(1.0), t(1.0)), [inf], id="no variance"),
        pytest.param(lambda: D.Uniform(t(-1.0), t(2.0)), lambda: D.Exponential(t(1.0)), [inf], id="below 0"),
        pytest.param(lambda: D.Uniform(t(-1.0), t(2.0)), lambda: D.Gamma(t(1.0), t(1.0)), [inf], id="below 0, gamma"),
        pytest.param(lambda: D.Uniform(t(0.5), t(2.0)), lambda: D.Beta(t(1.0), t(1.0)), [inf], id="above 1"),
        pytest.param(
            lambda: D.Uniform(t(0.5), t(1.0)), lambda: D.ContinuousBernoulli(t(0.3)), [inf], id="up to 1, as PyTorch"
        ),
        pytest.param(lambda: D.Binomial(6, t(0.5)), lambda: D.Binomial(5, t(0.5)), [inf], id="more trials"),
    ],
)
def test_where_p_reaches_beyond_q(p, q, expected):
    np.testing.assert_allclose(D.kl_divergence(p(), q()), expected, rtol=1e-6)


def test_normal_vectors_of_batches():
    p = D.MultivariateNormal(torch.zeros(2, 2), torch.eye(2))
    q = D.LowRankMultivariateNormal(torch.zeros(3, 1, 2), torch.ones(2, 1), torch.ones(2))
    assert D.kl_divergence(p, q).shape == (3, 2)
    np.testing.assert_allclose(D.kl_divergence(p, q), np.full((3, 2), (np.log(3) + 4 / 3 - 2) / 2), rtol=1e-5)


@pytest.mark.parametrize(
    ("p", "q", "phrase"),
    [
        pytest.param("Normal", "Cauchy", "No KL.* is implemented for p type Normal and q type Cauchy", id="no formula"),
        pytest.param(
            "Exponential", "Poisson", "cross KL-divergence between different exponential families", id="families"
        ),
        pytest.param("HalfNormal", "TransformedDistribution", "needs equal transforms", id="transforms"),
    ],
)
def test_pairs_without_a_divergence(p, q, phrase):
    with pytest.raises(NotImplementedError, match=phrase):
        D.kl_divergence(PAIRS[p][0](), PAIRS[q][1]())


def test_shapes_that_do_not_fit():
    normal = D.Normal(torch.zeros(2, 3), 1.0)
    with pytest.raises(NotImplementedError, match="equal reinterpreted_batch_ndims"):
        D.kl_divergence(D.Independent(normal, 1), D.Independent(normal, 2))
    with pytest.raises(ValueError, match="different event shapes cannot be computed"):
        D.kl_divergence(*[D.MultivariateNormal(torch.zeros(n), torch.eye(n)) for n in (2, 3)])
    with pytest.raises(NotImplementedError, match=r"where q.total_count > p.total_count"):
        D.kl_divergence(D.Binomial(5, t(0.5)), D.Binomial(6, t(0.5)))


class TestRegistering:
    @pytest.fixture(autouse=True)
    def _restored(self):
        before = dict(_REGISTRY)
        yield
        _REGISTRY.clear()
        _REGISTRY.update(before)

    def test_the_nearest_class_counts(self):
        class Base(D.Distribution):
            arg_constraints = {}  # noqa: RUF012
            support = D.constraints.real

        class Derived(Base):
            pass

        D.register_kl(Base, Base)(lambda p, q: "base")
        assert D.kl_divergence(Derived(), Derived()) == "base"
        D.register_kl(Derived, Derived)(lambda p, q: "derived")
        assert D.kl_divergence(Derived(), Derived()) == "derived"
        assert D.kl_divergence(Base(), Derived()) == "base"

    def test_an_ambiguous_pair_warns(self):
        class Left(D.Normal):
            pass

        class Right(D.Normal):
            pass

        D.register_kl(Left, D.Normal)(lambda p, q: "left")
        D.register_kl(D.Normal, Right)(lambda p, q: "right")
        with pytest.warns(
            RuntimeWarning, match=r"Ambiguous kl_divergence\(Left, Right\). Please register_kl\(Left, Right"
        ):
            assert D.kl_divergence(Left(0.0, 1.0), Right(0.0, 1.0)) == "left"

    def test_only_distributions_can_be_registered(self):
        with pytest.raises(TypeError, match="Expected type_q to be a Distribution subclass but got <class 'int'>"):
            D.register_kl(D.Normal, int)
