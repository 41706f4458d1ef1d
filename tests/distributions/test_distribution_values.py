"""Densities and moments of each distribution: the values that PyTorch gives.

The mode of the Kumaraswamy distribution is that of the formula: PyTorch's is NaN.
"""

from __future__ import annotations

import numpy as np
import pytest
from distribution_cases import CASES

from pellucid import distributions as D

inf, nan = np.inf, np.nan

VALUES = {
    "Normal": {
        "log_prob": [-0.9501885332, -3.612085714],
        "mean": [0.5, -1.0],
        "mode": [0.5, -1.0],
        "variance": [1.0, 4.0],
        "entropy": [1.418938533, 2.112085714],
        "cdf": [0.4012936743, 0.9772498681],
    },
    "LogNormal": {
        "log_prob": [-1.31169738, -10.13275072],
        "mean": [2.718281828, 0.4168620197],
        "mode": [0.6065306597, 0.2865047969],
        "variance": [12.69648082, 0.0493562167],
        "entropy": [1.918938533, -0.2742086474],
        "cdf": [0.02962764937, 0.9999864897],
    },
    "HalfNormal": {
        "log_prob": [-0.2570413526, -2.043938533],
        "mean": [0.7978845608, 1.595769122],
        "mode": [0.0, 0.0],
        "variance": [0.3633802276, 1.453520911],
        "entropy": [0.7257913526, 1.418938533],
        "cdf": [0.1974126514, 0.8663855975],
    },
    "LogisticNormal": {
        "log_prob": -0.02159070507,
    },
    "Cauchy": {
        "log_prob": [-1.205354508, -3.447314979],
        "mean": [nan, nan],
        "mode": [0.5, -1.0],
        "variance": [inf, inf],
        "entropy": [2.531024247, 3.224171428],
        "cdf": [0.4220208696, 0.8524163823],
    },
    "HalfCauchy": {
        "log_prob": [-0.5122073271, -2.323384882],
        "mean": [inf, inf],
        "mode": [0.0, 0.0],
        "variance": [inf, inf],
        "entropy": [1.837877066, 2.531024247],
        "cdf": [0.1559582608, 0.6256659164],
    },
    "Laplace": {
        "log_prob": [-0.9431471806, -3.386294361],
        "mean": [0.5, -1.0],
        "mode": [0.5, -1.0],
        "variance": [2.0, 8.0],
        "entropy": [1.693147181, 2.386294361],
        "cdf": [0.3894003915, 0.9323323584],
    },
    "Gumbel": {
        "log_prob": [-1.034025417, -2.828482464],
        "mean": [1.077215665, 0.1544313298],
        "mode": [0.5, -1.0],
        "variance": [1.644934067, 6.579736267],
        "entropy": [1.577215665, 2.270362845],
        "cdf": [0.2769203341, 0.8734230185],
    },
    "StudentT": {
        "log_prob": [-1.127677778, -3.425126764],
        "mean": [0.5, -1.0],
        "mode": [0.5, -1.0],
        "variance": [inf, 6.666666667],
        "entropy": [2.149659468, 2.320649853],
    },
    "Uniform": {
        "log_prob": [-0.6931471806, -1.098612289],
        "mean": [0.0, 3.5],
        "mode": [nan, nan],
        "variance": [0.3333333333, 0.75],
        "entropy": [0.6931471806, 1.098612289],
        "cdf": [0.625, 0.3333333333],
    },
    "GeneralizedPareto": {
        "log_prob": [-1.379966168, -0.980829253, -1.5],
        "mean": [0.4285714286, 3.333333333, 1.0],
        "mode": [-1.0, 2.0, 0.0],
        "variance": [5.102040816, 0.8888888889, 1.0],
        "entropy": [1.3, 1.193147181, 1.0],
        "cdf": [0.6540677862, 0.4375, 0.7768698399],
    },
    "Exponential": {
        "log_prob": [-0.8181471806, -5.306852819],
        "mean": [2.0, 0.5],
        "mode": [0.0, 0.0],
        "variance": [4.0, 0.25],
        "entropy": [1.693147181, 0.3068528194],
        "cdf": [0.1175030974, 0.9975212478],
    },
    "Gamma": {
        "log_prob": [-0.1292177624, -2.416481062],
        "mean": [0.5, 1.5],
        "mode": [0.0, 1.0],
        "variance": [0.5, 0.75],
        "entropy": [0.09060992991, 1.15443133],
        "cdf": [0.5204998778, 0.9380311956],
    },
    "Chi2": {
        "log_prob": [-0.5015677466, -1.869632389],
        "mean": [1.5, 3.0],
        "mode": [0.0, 1.0],
        "variance": [3.0, 6.0],
        "entropy": [1.374962912, 2.054119956],
        "cdf": [0.2169565807, 0.6083748237],
    },
    "InverseGamma": {
        "log_prob": [0.5673473934, -3.67482146],
        "mean": [0.6666666667, 1.0],
        "mode": [0.2857142857, 0.5],
        "variance": [0.8888888889, 1.0],
        "entropy": [0.3236346282, 0.6951570207],
        "cdf": [0.1562356276, 0.9697878915],
    },
    "FisherSnedecor": {
        "log_prob": [-0.3815199839, -2.674865283],
        "mean": [1.5, 1.666666667],
        "mode": [0.25, 0.4285714286],
        "variance": [5.25, 8.888888889],
    },
    "Pareto": {
        "log_prob": [0.1352883023, -1.216395324],
        "mean": [1.666666667, 3.0],
        "mode": [1.0, 2.0],
        "variance": [2.222222222, 3.0],
        "entropy": [0.4837092681, 0.9278682252],
        "cdf": [0.4275665978, 0.7037037037],
    },
    "Weibull": {
        "log_prob": [-0.4126820725, -2.158604676],
        "mean": [0.902745293, 1.785959023],
        "mode": [0.4807498568, 1.747160929],
        "variance": [0.3756902848, 0.4213315395],
        "entropy": [0.7869401135, 0.9793453352],
        "cdf": [0.1175030974, 0.9657818817],
    },
    "Beta": {
        "log_prob": [0.09772343904, 0.5469646704],
        "mean": [0.25, 0.6],
        "mode": [0.0, 0.6666666667],
        "variance": [0.0625, 0.04],
        "entropy": [-0.5484172947, -0.2349066498],
    },
    "Dirichlet": {
        "log_prob": 0.8497621374,
        "mean": [0.1, 0.6, 0.3],
        "mode": [0.0, 0.8, 0.2],
        "variance": [0.015, 0.04, 0.035],
        "entropy": -1.866657278,
    },
    "Kumaraswamy": {
        "log_prob": [-0.7735600509, 0.5267619631],
        "mean": [0.6454550843, 0.6428571429],
        "mode": [0.7846995907, 0.7368062997],
        "variance": [0.04478328303, 0.03673469388],
        "entropy": [-0.2201991233, -0.2917594692],
        "cdf": [0.04650685901, 0.385344],
    },
    "VonMises": {
        "log_prob": [-1.10487898, 0.1738439881],
        "mean": [0.5, -1.0],
        "mode": [0.5, -1.0],
        "variance": [0.5536100287, 0.02532966369],
    },
    "Wishart": {
        "log_prob": [-5.945268668],
        "mean": [[[10.0, 1.5], [1.5, 5.0]]],
        "mode": [[[4.0, 0.6], [0.6, 2.0]]],
        "variance": [[[40.0, 10.45], [10.45, 10.0]]],
        "entropy": [7.781203242],
    },
    "LKJCholesky": {
        "log_prob": [-1.696377504],
    },
    "MultivariateNormal": {
        "log_prob": -10.71182136,
        "mean": [0.5, -1.0],
        "mode": [0.5, -1.0],
        "variance": [2.0, 1.0],
        "entropy": 3.161428687,
    },
    "LowRankMultivariateNormal": {
        "log_prob": -5.151035337,
        "mean": [0.5, -1.0],
        "mode": [0.5, -1.0],
        "variance": [2.0, 6.0],
        "entropy": 3.877597837,
    },
    "Bernoulli": {
        "log_prob": [-1.609437912, -2.302585093],
        "mean": [0.2, 0.9],
        "mode": [0.0, 1.0],
        "variance": [0.16, 0.09],
        "entropy": [0.5004024235, 0.3250829734],
    },
    "ContinuousBernoulli": {
        "log_prob": [0.2677427422, -0.0002001667334],
        "mean": [0.3880141871, 0.4998333333],
        "variance": [0.07589780081, 0.08333331667],
        "entropy": [-0.0764144528, -1.666667612e-07],
        "cdf": [0.3905242918, 0.6],
    },
    "Geometric": {
        "log_prob": [-2.278868566, -0.1053605157],
        "mean": [4.0, 0.1111111111],
        "mode": [0.0, 0.0],
        "variance": [20.0, 0.1234567901],
        "entropy": [2.502012118, 0.3612033038],
    },
    "Binomial": {
        "log_prob": [-2.972015747, -11.51292546],
        "mean": [1.0, 4.5],
        "mode": [1.0, 5.0],
        "variance": [0.8, 0.45],
        "entropy": [1.243024162, 0.9102051202],
    },
    "NegativeBinomial": {
        "log_prob": [-3.504800988, -3.665162927],
        "mean": [0.625, 6.0],
        "mode": [0.0, 4.0],
        "variance": [0.78125, 15.0],
    },
    "Poisson": {
        "log_prob": [-4.371201011, -2.437667632],
        "mean": [0.5, 12.0],
        "mode": [0.0, 12.0],
        "variance": [0.5, 12.0],
    },
    "Categorical": {
        "log_prob": -0.3566749439,
        "mean": nan,
        "mode": 2,
        "variance": nan,
        "entropy": 0.8018185525,
    },
    "OneHotCategorical": {
        "log_prob": -1.267949549,
        "mean": [0.254628528, 0.281408044, 0.463963428],
        "mode": [0.0, 0.0, 1.0],
        "variance": [0.1897928407, 0.2022175568, 0.2487013655],
        "entropy": 1.061430688,
    },
    "OneHotCategoricalStraightThrough": {
        "log_prob": -1.609437912,
        "mean": [0.1, 0.2, 0.7],
        "mode": [0.0, 0.0, 1.0],
        "variance": [0.09, 0.16, 0.21],
        "entropy": 0.8018185525,
    },
    "Multinomial": {
        "log_prob": -2.140466244,
        "mean": [0.4, 0.8, 2.8],
        "variance": [0.36, 0.64, 0.84],
        "entropy": 1.911042474,
    },
    "RelaxedBernoulli": {
        "log_prob": [-0.1627722318, -1.118264712],
    },
    "RelaxedOneHotCategorical": {
        "log_prob": -0.773037174,
    },
    "MixtureSameFamily": {
        "log_prob": -1.465957787,
        "mean": -0.55,
        "variance": 3.5725,
        "cdf": 0.634198232,
    },
    "Independent": {
        "log_prob": -4.562274247,
        "mean": [0.5, -1.0],
        "mode": [0.5, -1.0],
        "variance": [1.0, 4.0],
        "entropy": 3.531024247,
    },
    "TransformedDistribution": {
        "log_prob": [-1.40187884, -2.947003203],
        "cdf": [0.4378234991, 0.880797078],
    },
}


def asked(name: str, question: str):
    make, value = CASES[name]
    distribution = make()
    if question in ("log_prob", "cdf"):
        return getattr(distribution, question)(value)
    found = getattr(distribution, question)
    return found() if question == "entropy" else found


@pytest.mark.parametrize(("name", "question"), [(name, q) for name, known in VALUES.items() for q in known])
def test_value(name, question):
    np.testing.assert_allclose(asked(name, question).detach(), VALUES[name][question], rtol=1e-7, atol=1e-9)


def test_each_distribution_has_a_case():
    public = {n for n in D.__all__ if isinstance(getattr(D, n), type) and issubclass(getattr(D, n), D.Distribution)}
    assert public - {"Distribution", "ExponentialFamily"} == set(CASES) == set(VALUES)


@pytest.mark.parametrize("name", CASES)
def test_standard_deviation_and_perplexity_follow(name):
    distribution = CASES[name][0]()
    if "variance" in VALUES[name]:
        np.testing.assert_allclose(distribution.stddev, np.sqrt(VALUES[name]["variance"]), rtol=1e-7)
    if "entropy" in VALUES[name]:
        np.testing.assert_allclose(distribution.perplexity().detach(), np.exp(VALUES[name]["entropy"]), rtol=1e-7)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("Bernoulli", [[0, 0], [1, 1]]),
        ("Binomial", [[k, k] for k in range(6)]),
        ("Categorical", [0, 1, 2]),
        ("OneHotCategorical", [[1, 0, 0], [0, 1, 0], [0, 0, 1]]),
    ],
)
def test_enumerated_support(name, values):
    distribution = CASES[name][0]()
    found = distribution.enumerate_support()
    assert found.tolist() == values
    np.testing.assert_allclose(distribution.log_prob(found).exp().sum(0), np.ones(distribution.batch_shape))
    thin = distribution.enumerate_support(expand=False)
    assert thin.shape == (len(values), *[1] * len(distribution.batch_shape), *distribution.event_shape)
