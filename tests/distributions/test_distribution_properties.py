"""What holds for every distribution: densities integrate to 1, icdf inverts cdf, samples have the moments and gradients."""

from __future__ import annotations

import numpy as np
import pytest
from distribution_cases import CASES, t

import pellucid as torch
from pellucid import distributions as D

DISCRETE = {"Bernoulli", "Binomial", "Categorical", "Geometric", "NegativeBinomial", "Poisson"}
SCALARS = [name for name, (make, _) in CASES.items() if not make().event_shape and name not in DISCRETE]


def bounds(support):
    """The ends of a support over numbers."""
    low, high = getattr(support, "lower_bound", -np.inf), getattr(support, "upper_bound", np.inf)
    return [np.broadcast_to(np.asarray(b, float), np.shape(low) or np.shape(high)) for b in (low, high)]


def integral(density, low: float, high: float) -> float:
    """By the double exponential rule, which copes with poles and infinite ends."""
    u = np.linspace(-4.5, 4.5, 4001)
    step, core = u[1] - u[0], np.pi / 2 * np.sinh(u)
    slope = np.pi / 2 * np.cosh(u)
    if np.isinf(low) and np.isinf(high):
        x, weight = np.sinh(core), np.cosh(core) * slope
    elif np.isinf(high):
        x, weight = low + np.exp(core), np.exp(core) * slope
    else:
        x = low + (high - low) / (1 + np.exp(-2 * core))
        weight = (high - low) / 2 * slope / np.cosh(core) ** 2
    inside = (x > low) & (x < high) & np.isfinite(x) & (np.abs(x) < 1e150)
    return float((density(x[inside]) * weight[inside]).sum() * step)


@pytest.mark.parametrize("name", [n for n in SCALARS if n != "VonMises"])
def test_the_density_integrates_to_one(name):
    make, others = CASES[name]
    distribution = make()
    shape = distribution.batch_shape
    low, high = [np.broadcast_to(b, shape).reshape(-1) for b in bounds(distribution.support)]
    if name == "Gumbel":
        low, high = [-30.0, -50.0], [60.0, 120.0]  # its density overflows below
    for k in range(shape.numel()):

        def density(x, k=k):
            values = others.reshape(1, -1).repeat(len(x), 1)
            values[:, k] = torch.from_numpy(x)
            return distribution.log_prob(values.reshape(-1, *shape)).exp().reshape(len(x), -1)[:, k].detach().numpy()

        assert integral(density, low[k], high[k]) == pytest.approx(1, abs=1e-6)


def test_the_density_of_angles_integrates_to_one():
    angles = torch.linspace(-np.pi, np.pi, 2001, dtype=torch.float64)[:-1].unsqueeze(-1)
    total = CASES["VonMises"][0]().log_prob(angles).exp().sum(0) * (2 * np.pi / 2000)
    np.testing.assert_allclose(total, 1, atol=1e-6)


@pytest.mark.parametrize("name", sorted(DISCRETE - {"Categorical"}))
def test_probabilities_of_counts_sum_to_one(name):
    distribution = CASES[name][0]()
    last = {"Bernoulli": 1, "Binomial": 5}.get(name, 200)
    counts = torch.arange(last + 1, dtype=torch.float64).unsqueeze(-1)
    np.testing.assert_allclose(distribution.log_prob(counts).exp().sum(0), 1, atol=1e-7)


@pytest.mark.parametrize("name", SCALARS)
def test_icdf_inverts_cdf(name):
    distribution = CASES[name][0]()
    shares = torch.linspace(0.05, 0.95, 7, dtype=torch.float64).reshape((-1,) + (1,) * len(distribution.batch_shape))
    shares = shares.expand((-1, *distribution.batch_shape))
    try:
        values = distribution.icdf(shares)
    except NotImplementedError:
        pytest.skip("no icdf, as in PyTorch")
    np.testing.assert_allclose(distribution.cdf(values), shares, atol=1e-7)


@pytest.mark.parametrize("name", SCALARS)
def test_the_density_is_the_slope_of_the_cdf(name):
    make, value = CASES[name]
    distribution, value = make(), value.detach().clone().requires_grad_()
    try:
        (slope,) = torch.autograd.grad(distribution.cdf(value).sum(), value)
    except NotImplementedError:
        pytest.skip("no cdf, as in PyTorch")
    close = 3e-4 if name == "ContinuousBernoulli" else 1e-6  # near 1/2 its cdf is that of the uniform distribution
    np.testing.assert_allclose(slope, distribution.log_prob(value).exp().detach(), rtol=close)


HEAVY = {"Cauchy", "HalfCauchy", "StudentT", "FisherSnedecor"}


@pytest.mark.parametrize("name", [n for n in CASES if n not in HEAVY and "Categorical" not in n])
def test_samples_have_the_mean_and_variance(name):
    distribution = CASES[name][0]()
    try:
        mean, variance = distribution.mean, distribution.variance
    except NotImplementedError:
        pytest.skip("no mean, as in PyTorch")
    torch.manual_seed(2)
    drawn = distribution.sample((3000,))
    if name == "VonMises":  # a circular variance
        np.testing.assert_allclose(1 - (drawn - mean).cos().mean(0), variance, atol=0.05)
        return
    error = 6 * (variance / 3000).sqrt()
    assert ((drawn.mean(0) - mean).abs() <= error).all()
    np.testing.assert_allclose(drawn.var(0), variance, rtol=0.6, atol=1e-6)


@pytest.mark.parametrize("name", [n for n, (make, _) in CASES.items() if make().has_rsample and n in SCALARS])
def test_gradients_of_samples_keep_the_quantile(name):
    """A sample moves with a parameter so that the distribution function at it stays: dF/dp + f dx/dp = 0."""
    distribution = CASES[name][0]()
    parameters = [n for n in distribution.arg_constraints if isinstance(getattr(distribution, n, None), torch.Tensor)]
    given = {n: getattr(distribution, n).detach().clone().requires_grad_() for n in parameters if n not in ("logits",)}
    if name in ("RelaxedBernoulli", "MixtureSameFamily", "TransformedDistribution", "Independent"):
        pytest.skip("its parameters are those of others")
    torch.manual_seed(3)
    drawn = getattr(D, name)(**given).rsample()
    moved = torch.autograd.grad(drawn.sum(), list(given.values()))
    try:
        quantile = getattr(D, name)(**given).cdf(drawn.detach())
        risen = torch.autograd.grad(quantile.sum(), list(given.values()))
    except NotImplementedError:
        pytest.skip("no cdf to compare with")
    density = distribution.log_prob(drawn).exp().detach()
    for parameter, dx, df in zip(given, moved, risen, strict=True):
        np.testing.assert_allclose(dx * density, -df, atol=1e-7, err_msg=parameter)


ON_A_SURFACE = {
    "OneHotCategoricalStraightThrough",
    "LogisticNormal",
    "Dirichlet",
    "RelaxedOneHotCategorical",
    "Wishart",
}


@pytest.mark.parametrize("name", [n for n, (make, _) in CASES.items() if make().has_rsample])
def test_log_prob_has_the_gradient_of_finite_differences(name):
    make, value = CASES[name]
    if name in ON_A_SURFACE or name == "Uniform":
        pytest.skip("values lie on a surface, or the density is flat")
    distribution = make()
    value = value.detach().clone().requires_grad_()
    (slope,) = torch.autograd.grad(distribution.log_prob(value).sum(), value)
    flat = value.detach().reshape(-1)
    for k in range(flat.numel()):
        ends = []
        for step in (1e-6, -1e-6):
            moved = flat.clone()
            moved[k] += step
            ends.append(distribution.log_prob(moved.reshape(value.shape)).sum().item())
        assert slope.reshape(-1)[k].item() == pytest.approx((ends[0] - ends[1]) / 2e-6, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("name", ["Normal", "Exponential", "Bernoulli", "ContinuousBernoulli"])
def test_entropy_of_an_exponential_family_follows_from_its_normaliser(name):
    distribution = CASES[name][0]()
    found = D.ExponentialFamily.entropy(distribution).detach()
    np.testing.assert_allclose(found, distribution.entropy(), rtol=1e-6)


def test_mixture_of_one_is_its_component():
    component = D.Normal(t(0.5), t(2.0))
    mixture = D.MixtureSameFamily(D.Categorical(t(1.0)), component)
    value = t(0.3)[0]
    np.testing.assert_allclose(mixture.log_prob(value), component.log_prob(value)[0], rtol=1e-12)
    np.testing.assert_allclose(mixture.cdf(value), component.cdf(value)[0], rtol=1e-12)
    assert mixture.mean.item() == 0.5
    assert mixture.variance.item() == 4.0
