"""Samples: for a seed those of PyTorch, leaving the generator where PyTorch leaves it; no history, unless asked for."""

from __future__ import annotations

import numpy as np
import pytest
from distribution_cases import CASES

import pellucid as torch
from pellucid import distributions as D

# Two samples for seed 7, and the uniform number (float64) drawn next.
SAMPLES = {
    "Normal": ([[0.3532049025, 0.5722825974], [1.446821609, -3.228688043]], 0.9225293674529872),
    "LogNormal": ([[1.423622817, 0.5450218733], [4.249586181, 0.2107311749]], 0.9225293674529872),
    "HalfNormal": ([[0.1467950975, 1.572282597], [0.946821609, 2.228688043]], 0.9225293674529872),
    "LogisticNormal": (
        [[0.4158234985, 0.3734580237, 0.2107184778], [0.6799788111, 0.01219290312, 0.3078282858]],
        0.9225293674529872,
    ),
    "Cauchy": ([[-0.330555775, -2.722406112], [2.661892228, 0.07256665955]], 0.9225293674529872),
    "HalfCauchy": ([[0.830555775, 1.722406112], [2.161892228, 1.07256666]], 0.9225293674529872),
    "Laplace": ([[-0.08203369734, -2.205196901], [1.788028274, -0.2480606041]], 0.9225293674529872),
    "Gumbel": ([[0.2569119664, -1.518172613], [2.407896711, 0.7324047099]], 0.9225293674529872),
    "StudentT": ([[0.007335091932, 1.194001108], [2.066969571, -3.289918673]], 0.1221898423754062),
    "Uniform": ([[-0.4412391402, 2.821081141], [0.7241859228, 3.970065292]], 0.9225293674529872),
    "GeneralizedPareto": (
        [[-0.6557126809, 2.591055797, 1.981175454], [0.260468043, 4.886658129, 1.829744091]],
        0.2947121080128837,
    ),
    "Exponential": ([[0.655287846, 0.1598917356], [3.962350909, 0.5345584392]], 0.9225293674529872),
    "Gamma": ([[0.4548684681, 3.673018076], [0.02119286861, 2.613926871]], 0.06302112045357511),
    "Chi2": ([[1.412951577, 9.692491973], [0.180335453, 6.136468128]], 0.06302112045357511),
    "InverseGamma": ([[0.510805199, 0.4799091598], [0.1745204572, 1.373556697]], 0.7630434112121387),
    "FisherSnedecor": ([[0.7004349555, 6.890845846], [2.838263237, 0.4323736779]], 0.013204739557714507),
    "Pareto": ([[1.14003341, 2.224966081], [2.208845944, 2.856278271]], 0.9225293674529872),
    "Weibull": ([[0.4752638095, 1.367672138], [1.57742466, 2.045055307]], 0.9225293674529872),
    "Beta": ([[0.08580619641, 0.7917945896], [0.06363677113, 0.5809070509]], 0.10993588570774804),
    "Dirichlet": (
        [[0.04778886682, 0.7717807849, 0.1804303483], [0.006855420529, 0.7049858245, 0.288158755]],
        0.1221898423754062,
    ),
    "Kumaraswamy": ([[0.8001135816, 0.7812529466], [0.3886923001, 0.5745232117]], 0.9225293674529872),
    "VonMises": ([[0.948440571, -0.8975693229], [-1.790973213, -1.369362155]], 0.16744060179820508),
    "Wishart": (
        [
            [[[10.67489198, 9.425532952], [9.425532952, 11.84456168]]],
            [[[19.75272712, 11.76061194], [11.76061194, 14.79613296]]],
        ],
        0.9241920732946692,
    ),
    "LKJCholesky": (
        [
            [[[1.0, 0.0, 0.0], [0.07430124745, 0.997235842, 0.0], [0.6279157949, -0.381646935, 0.6782826635]]],
            [[[1.0, 0.0, 0.0], [-0.01544716631, 0.9998806854, 0.0], [-0.7822935169, -0.5279300362, 0.3306156838]]],
        ],
        0.8075633782096711,
    ),
    "MultivariateNormal": ([[0.2924003822, -0.2628904225], [1.839007961, -1.888131488]], 0.9225293674529872),
    "LowRankMultivariateNormal": ([[1.300026512, -2.869510623], [2.976931425, -0.6931951253]], 0.2947121080128837),
    "Bernoulli": ([[0.0, 1.0], [0.0, 1.0]], 0.9225293674529872),
    "ContinuousBernoulli": ([[0.1696135493, 0.2736937137], [0.7502512259, 0.6566884306]], 0.9225293674529872),
    "Geometric": ([[5.0, 0.0], [0.0, 0.0]], 0.9225293674529872),
    "Binomial": ([[0.0, 5.0], [4.0, 5.0]], 0.7630434112121387),
    "NegativeBinomial": ([[1.0, 3.0], [0.0, 1.0]], 0.9498624465599965),
    "Poisson": ([[0.0, 16.0], [0.0, 5.0]], 0.16744060179820508),
    "Categorical": ([1, 1], 0.8620929614176255),
    "OneHotCategorical": ([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]], 0.8620929614176255),
    "OneHotCategoricalStraightThrough": ([[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]], 0.8620929614176255),
    "Multinomial": ([[0.0, 2.0, 2.0], [0.0, 1.0, 3.0]], 0.7630434112121387),
    "RelaxedBernoulli": ([[0.03442154312, 0.8512780807], [0.6542653248, 0.9831336183]], 0.9225293674529872),
    "RelaxedOneHotCategorical": (
        [[0.002842470901, 0.007478477973, 0.9896790511], [0.01163642117, 0.331553299, 0.6568102798]],
        0.2947121080128837,
    ),
    "MixtureSameFamily": ([1.446821609, 2.190790126], 0.2947121080128837),
    "Independent": ([[0.3532049025, 0.5722825974], [1.446821609, -3.228688043]], 0.9225293674529872),
    "TransformedDistribution": ([[-0.4475369549, 0.9519243202], [2.332783284, -2.29714255]], 0.9225293674529872),
}


@pytest.mark.parametrize("name", SAMPLES)
def test_the_same_seed_gives_pytorchs_samples(name):
    expected, following = SAMPLES[name]
    torch.manual_seed(7)
    np.testing.assert_allclose(CASES[name][0]().sample((2,)), expected, rtol=1e-7, atol=1e-9)
    assert torch.rand(1, dtype=torch.float64).item() == following


@pytest.mark.parametrize("name", SAMPLES)
def test_shapes_of_samples(name):
    distribution = CASES[name][0]()
    single = distribution.batch_shape + distribution.event_shape
    assert distribution.sample().shape == single
    drawn = distribution.sample((3, 1))
    assert drawn.shape == (3, 1, *single)
    assert distribution.log_prob(drawn).shape == (3, 1, *distribution.batch_shape)
    wider = distribution.expand((4, *distribution.batch_shape))
    assert type(wider) is type(distribution)
    assert wider.batch_shape == (4, *distribution.batch_shape)
    assert wider.event_shape == distribution.event_shape
    assert wider.sample((2,)).shape == (2, 4, *single)
    log_prob = distribution.log_prob(drawn[0])
    np.testing.assert_allclose(wider.log_prob(drawn[0]), log_prob.expand(4, *log_prob.shape[1:]))


@pytest.mark.parametrize("name", SAMPLES)
def test_samples_are_valid_and_have_the_parameters_dtype(name):
    distribution = CASES[name][0]()
    drawn = distribution.sample((50,))
    assert distribution.support.check(drawn).all()
    assert drawn.dtype == (torch.int64 if name == "Categorical" else torch.float64)


def test_sample_has_no_history_and_rsample_has():
    loc = torch.tensor([1.0], requires_grad=True)
    normal = D.Normal(loc, 2.0)
    assert not normal.sample().requires_grad
    normal.rsample((3,)).sum().backward()
    assert loc.grad.item() == 3.0


@pytest.mark.parametrize("name", ["Categorical", "Bernoulli", "VonMises"])
def test_no_rsample(name):
    distribution = CASES[name][0]()
    assert not distribution.has_rsample
    with pytest.raises(NotImplementedError, match="has no rsample: use sample"):
        distribution.rsample()


def test_straight_through_samples_pass_gradients_to_the_probabilities():
    logits = torch.tensor([0.1, 0.2, 0.7], requires_grad=True)
    drawn = D.OneHotCategoricalStraightThrough(logits=logits).rsample()
    assert sorted(drawn.tolist()) == pytest.approx([0, 0, 1], abs=1e-6)
    weights = torch.tensor([1.0, 2.0, 3.0])
    (drawn * weights).sum().backward()
    probs = logits.detach().softmax(0)
    np.testing.assert_allclose(logits.grad, probs * (weights - (probs * weights).sum()), rtol=1e-5)


def test_old_name_of_sample():
    with pytest.warns(FutureWarning, match=r"`sample_n\(n\)` will be deprecated"):
        assert D.Normal(0.0, 1.0).sample_n(4).shape == (4,)


def test_relaxed_samples_near_temperature_zero_are_categories():
    torch.manual_seed(0)
    relaxed = D.RelaxedOneHotCategorical(torch.tensor(0.01), torch.tensor([0.2, 0.8]))
    share = relaxed.sample((2000,)).round().mean(0)
    np.testing.assert_allclose(share, [0.2, 0.8], atol=0.03)
