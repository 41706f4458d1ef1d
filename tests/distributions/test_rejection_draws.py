"""Gamma, Dirichlet and binomial numbers: PyTorch's for a seed, and how they move with their parameters."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

import pellucid as torch
from pellucid.core.random import rejection
from pellucid.kernels.implicit_gradients import beta_gradient, gamma_gradient
from pellucid.ops.random_gammas import (
    binomial,
    dirichlet_grad,
    sample_dirichlet,
    standard_gamma,
    standard_gamma_grad,
)


@pytest.mark.parametrize(
    ("draw", "dtype", "expected", "following"),
    [
        pytest.param(
            "gamma",
            torch.float32,
            [0.029947083, 0.14875078, 0.88855469, 3.537545, 274.14581],
            0.43148738145828247,
            id="gamma float32",
        ),
        pytest.param(
            "dirichlet",
            torch.float32,
            [0.00010743325, 0.00053363387, 0.0031876331, 0.012690715, 0.98348057],
            0.43148738145828247,
            id="dirichlet float32",
        ),
        pytest.param(
            "binomial",
            torch.float32,
            [0, 5, 17, 76, 996126],
            0.42555153369903564,
            id="binomial float32",
        ),
        pytest.param(
            "gamma",
            torch.float64,
            [0.02994708456041371, 0.14875077594238797, 0.8885546987423915, 3.5375449035440933, 274.1458200210103],
            0.43148738145828247,
            id="gamma float64",
        ),
        pytest.param(
            "dirichlet",
            torch.float64,
            [
                0.00010743324922734628,
                0.0005336338885456749,
                0.003187633113652322,
                0.012690715936260439,
                0.9834805838123142,
            ],
            0.43148738145828247,
            id="dirichlet float64",
        ),
        pytest.param(
            "binomial",
            torch.float64,
            [0.0, 5.0, 17.0, 76.0, 996126.0],
            0.42555153369903564,
            id="binomial float64",
        ),
    ],
)
def test_the_same_seed_gives_pytorchs_numbers(draw, dtype, expected, following):
    torch.manual_seed(11)
    parameter = torch.tensor([0.05, 0.7, 1.0, 3.0, 250.0], dtype=dtype)
    made = {
        "gamma": lambda: standard_gamma(parameter),
        "dirichlet": lambda: sample_dirichlet(parameter),
        "binomial": lambda: binomial(
            torch.tensor([1.0, 9.0, 30.0, 100.0, 1e6], dtype=dtype), parameter / (parameter + 1)
        ),
    }[draw]()
    assert made.dtype == dtype
    np.testing.assert_allclose(made, expected, rtol=1e-6 if dtype == torch.float32 else 1e-14)
    assert torch.rand(1).item() == following


def test_no_number_is_zero_and_no_share_one():
    tiny = np.finfo(np.float32).tiny
    assert standard_gamma(torch.tensor([0.0, 1e-5, -1.0, float("nan")])).min().item() == pytest.approx(tiny)
    shares = sample_dirichlet(torch.tensor([1e-30, 1e6]))
    assert shares[0].item() == pytest.approx(tiny)
    assert shares[1].item() == np.nextafter(np.float32(1), np.float32(0))
    assert sample_dirichlet(torch.zeros(0)).shape == (0,)


def test_counts_at_the_ends():
    counts = binomial(torch.tensor([0.0, 5.0, 2.0, 7.0]), torch.tensor([0.5, 0.0, 1.0, 1.5]))
    assert counts.tolist() == [0, 0, 2, 7]


@pytest.mark.parametrize("concentration", [1e-3, 0.3, 1.0, 2.5, 40.0, 3e4])
def test_a_gamma_number_moves_along_its_quantile(concentration):
    quantiles = np.array([0.02, 0.3, 0.6, 0.95, 0.9999])
    step = 1e-5 * concentration
    ends = [stats.gamma.ppf(quantiles, concentration + s) for s in (-step, step)]
    values = stats.gamma.ppf(quantiles, concentration)
    kept = values > 1e-250
    found = gamma_gradient(np.full(5, concentration), values)
    np.testing.assert_allclose(found[kept], ((ends[1] - ends[0]) / (2 * step))[kept], rtol=2e-4)


@pytest.mark.parametrize("first", [0.1, 1.0, 30.0])
@pytest.mark.parametrize("second", [0.2, 1.0, 5.0, 400.0])
def test_a_beta_number_moves_along_its_quantile(first, second):
    quantiles = np.array([0.1, 0.3, 0.6, 0.9])
    values = stats.beta.ppf(quantiles, first, second)
    step = 1e-5 * first
    risen = special.betainc(first + step, second, values) - special.betainc(first - step, second, values)
    expected = -risen / (2 * step) / stats.beta.pdf(values, first, second)
    np.testing.assert_allclose(beta_gradient(np.full(4, first), np.full(4, second), values), expected, rtol=1e-5)


def test_exponential_and_power_numbers_have_known_gradients():
    # Gamma(1) is exponential; of Beta(a, 1) the value at quantile q is q^(1 / a)
    x = np.array([0.1, 1.0, 5.0])
    expected = np.exp(x) * ((np.log(x) + np.euler_gamma) * np.exp(-x) + special.exp1(x))
    np.testing.assert_allclose(gamma_gradient(np.ones(3), x), expected, rtol=1e-9)
    a, z = np.array([0.5, 2.0, 7.0]), np.array([0.1, 0.5, 0.9])
    np.testing.assert_allclose(beta_gradient(a, np.ones(3), z), -z * np.log(z) / a, rtol=1e-11)


def test_operators_have_these_gradients():
    concentration = torch.tensor([0.5, 3.0], dtype=torch.float64, requires_grad=True)
    drawn = standard_gamma(concentration)
    drawn.backward(torch.ones_like(drawn))
    np.testing.assert_allclose(
        concentration.grad, gamma_gradient(concentration.detach().numpy(), drawn.detach().numpy())
    )
    shares = sample_dirichlet(concentration)
    concentration.grad = None
    shares[0].backward()
    x = shares.detach().numpy()
    slopes = beta_gradient(np.array([0.5, 3.0]), np.array([3.0, 0.5]), x)
    np.testing.assert_allclose(concentration.grad, [slopes[0], -slopes[1]], rtol=1e-10)


def test_large_arrays_and_several_dtypes():
    a = torch.rand(5000) + 0.1
    assert standard_gamma_grad(a, a).dtype == torch.float32
    assert dirichlet_grad(torch.full((2, 2), 0.5), torch.ones(2, 2), torch.full((2, 1), 2.0)).shape == (2, 2)
    np.testing.assert_allclose(
        standard_gamma_grad(a, a), gamma_gradient(a.double().numpy(), a.double().numpy()), rtol=1e-5
    )


half = torch.ones(2, dtype=torch.float16)


@pytest.mark.parametrize(
    ("make", "kind", "phrase"),
    [
        pytest.param(
            lambda: standard_gamma(torch.tensor([1])),
            NotImplementedError,
            "\"gamma_cpu\" not implemented for 'Long'",
            id="gamma",
        ),
        pytest.param(
            lambda: sample_dirichlet(half),
            NotImplementedError,
            "\"dirichlet\" not implemented for 'Half'",
            id="dirichlet",
        ),
        pytest.param(
            lambda: standard_gamma_grad(half, half),
            NotImplementedError,
            "\"_standard_gamma_grad_cpu\" not implemented for 'Half'",
            id="gradient",
        ),
        pytest.param(
            lambda: binomial(torch.tensor([1]), torch.tensor([0.5])),
            ValueError,
            "binomial only supports floating-point dtypes for count, got: Long",
            id="count",
        ),
        pytest.param(
            lambda: binomial(torch.tensor([1.0]), torch.tensor([1])),
            ValueError,
            "binomial only supports floating-point dtypes for prob, got: Long",
            id="prob",
        ),
        pytest.param(
            lambda: binomial(torch.tensor([1.0]), torch.tensor([0.5]).double()),
            RuntimeError,
            "Found dtype Double but expected Float",
            id="two dtypes",
        ),
        pytest.param(
            lambda: binomial(torch.ones(2), torch.ones(3)),
            RuntimeError,
            r"size of tensor a \(2\) must match",
            id="shapes",
        ),
        pytest.param(
            lambda: binomial(torch.tensor(float("nan")), torch.tensor(0.5)),
            RuntimeError,
            "binomial expects finite numbers",
            id="no number",
        ),
        pytest.param(
            lambda: binomial(half, half), NotImplementedError, '"binomial_cpu" not implemented', id="binomial"
        ),
    ],
)
def test_refused(make, kind, phrase):
    with pytest.raises(kind, match=phrase):
        make()


def test_there_is_no_second_derivative():
    concentration = torch.ones(2, requires_grad=True)
    (slope,) = torch.autograd.grad(standard_gamma(concentration).sum(), concentration, create_graph=True)
    with pytest.raises(NotImplementedError, match="the derivative for '_standard_gamma_grad' is not implemented"):
        slope.sum().backward()


def test_draws_are_shared_with_the_generator():
    generator = torch.Generator()
    numbers = [rejection.gamma(np.ones(3), generator.manual_seed(1)) for _ in range(2)]
    assert (numbers[0] == numbers[1]).all()
