"""Distributions: values that PyTorch gives for the same seed, gradients, and refused parameters."""

from __future__ import annotations

import numpy as np
import pytest

import pellucid as torch
from pellucid import distributions as D


def test_the_same_seed_gives_pytorchs_values():
    torch.manual_seed(0)
    categorical = D.Categorical(torch.tensor([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]))
    drawn = categorical.sample((4,))
    assert drawn.tolist() == [[2, 2], [2, 2], [2, 0], [2, 1]]
    np.testing.assert_allclose(
        categorical.log_prob(drawn),
        [[-0.35667, -0.91629], [-0.35667, -0.91629], [-0.35667, -1.20397], [-0.35667, -1.20397]],
        atol=1e-5,
    )
    np.testing.assert_allclose(categorical.entropy(), [0.80182, 1.0889], atol=1e-5)
    normal = D.Normal(torch.tensor([0.0, 1.0]), torch.tensor([1.0, 2.0]))
    np.testing.assert_allclose(normal.sample((2,)), [[-0.7193, 0.1933], [-0.5966, 1.3641]], atol=1e-4)
    multinomial = D.Multinomial(10, torch.tensor([0.2, 0.3, 0.5]))
    counts = multinomial.sample()
    assert counts.tolist() == [0.0, 6.0, 4.0]
    np.testing.assert_allclose(multinomial.log_prob(counts).item(), -4.64932, atol=1e-5)
    bernoulli = D.Bernoulli(torch.tensor([0.2, 0.9]))
    assert bernoulli.sample((3,)).tolist() == [[1.0, 1.0], [0.0, 1.0], [0.0, 1.0]]
    np.testing.assert_allclose(bernoulli.entropy(), [0.5004, 0.32508], atol=1e-5)


def test_gradients_flow_through_rsample_and_log_prob():
    loc = torch.tensor([1.0], requires_grad=True)
    D.Normal(loc, 2.0).rsample((3,)).sum().backward()
    assert loc.grad.item() == 3.0
    probs = torch.tensor([0.25, 0.75], requires_grad=True)
    D.Categorical(probs).log_prob(torch.tensor(1)).backward()
    np.testing.assert_allclose(probs.grad, [-1.0, 1 / 3], atol=1e-6)


def test_samples_have_no_history():
    loc = torch.tensor([1.0], requires_grad=True)
    assert not D.Normal(loc, 2.0).sample().requires_grad


def test_uniform_is_flat_inside_and_nothing_outside():
    uniform = D.Uniform(0.0, 4.0)
    np.testing.assert_allclose(uniform.log_prob(torch.tensor([1.0, 5.0])), [np.log(0.25), -np.inf])


@pytest.mark.parametrize(
    ("make", "kind", "phrase"),
    [
        pytest.param(
            lambda: D.Categorical(), ValueError, "Either `probs` or `logits` must be specified", id="nothing given"
        ),
        pytest.param(
            lambda: D.Categorical(torch.tensor(0.5)), ValueError, "must be at least one-dimensional", id="a number"
        ),
        pytest.param(lambda: D.Categorical(torch.tensor([-1.0, 2.0])), ValueError, "to be non-negative", id="negative"),
        pytest.param(lambda: D.Normal(0.0, -1.0), ValueError, "scale of Normal to be positive", id="scale"),
        pytest.param(lambda: D.Uniform(2.0, 1.0), ValueError, "Uniform is not defined when low>= high", id="bounds"),
        pytest.param(
            lambda: D.Multinomial(torch.tensor(2), torch.ones(2)), NotImplementedError, "inhomogeneous", id="count"
        ),
        pytest.param(
            lambda: D.Categorical(torch.ones(2)).rsample(), NotImplementedError, "has no rsample", id="rsample"
        ),
    ],
)
def test_refused(make, kind, phrase):
    with pytest.raises(kind, match=phrase):
        make()


def test_autocast_is_refused_on_the_cpu_and_idle_elsewhere():
    with pytest.raises(NotImplementedError, match="autocast on the CPU is not available"):
        torch.autocast("cpu", dtype=torch.bfloat16)
    with pytest.warns(UserWarning, match="CUDA is not available"), torch.autocast("cuda"):
        assert (torch.ones(2) * 2).dtype is torch.float32
