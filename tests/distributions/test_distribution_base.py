"""What the base of distributions does: checks, texts, expansion, classes of one's own, and refused parameters."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
from distribution_cases import CASES, t

import pellucid as torch
from pellucid import distributions as D
from pellucid.distributions import constraints, utils


@pytest.mark.parametrize(
    ("make", "kind", "phrase"),
    [
        pytest.param(
            lambda: D.Normal(0.0, -1.0),
            ValueError,
            r"Expected parameter scale \(Tensor of shape \(\)\) of distribution Normal\(loc: 0.0, scale: -1.0\) to satisfy "
            r"the constraint GreaterThan\(lower_bound=0.0\), but found invalid values:\n-1.0",
            id="scale",
        ),
        pytest.param(lambda: D.Normal(torch.tensor(float("nan")), 1.0), ValueError, "parameter loc .* Real", id="nan"),
        pytest.param(
            lambda: D.Uniform(2.0, 1.0), ValueError, r"parameter low .* LessThan\(upper_bound=1.0\)", id="uniform"
        ),
        pytest.param(lambda: D.Bernoulli(1.5), ValueError, "parameter probs", id="probability"),
        pytest.param(
            lambda: D.ContinuousBernoulli(1.5, validate_args=True), ValueError, "probs has invalid values", id="CB"
        ),
        pytest.param(lambda: D.Geometric(0.0), ValueError, "to be positive but found invalid values", id="geometric"),
        pytest.param(lambda: D.Categorical(), ValueError, "Either `probs` or `logits` must be specified", id="nothing"),
        pytest.param(lambda: D.Bernoulli(0.5, 0.5), ValueError, "but not both: got both", id="both"),
        pytest.param(
            lambda: D.Categorical(torch.tensor(0.5)), ValueError, "`probs`.* at least one-dimensional", id="number"
        ),
        pytest.param(
            lambda: D.Categorical(torch.tensor([-1.0, 2.0])), ValueError, r"probs .* Simplex\(\)", id="negative"
        ),
        pytest.param(lambda: D.Dirichlet(torch.tensor(1.0)), ValueError, "at least one-dimensional", id="Dirichlet"),
        pytest.param(
            lambda: D.Multinomial(torch.tensor(2), torch.ones(2)), NotImplementedError, "inhomogeneous", id="count"
        ),
        pytest.param(
            lambda: D.Normal("a", 1.0), ValueError, "must all be instances of Number.*got str, float", id="text"
        ),
        pytest.param(lambda: D.LKJCholesky(1), ValueError, "greater than or equal to 2. Found dim=1", id="LKJ"),
        pytest.param(
            lambda: D.MultivariateNormal(torch.zeros(2)),
            ValueError,
            "Exactly one of .* specified: got none",
            id="no matrix",
        ),
        pytest.param(
            lambda: D.MultivariateNormal(torch.zeros(2), torch.tensor([[1.0, 2.0], [2.0, 1.0]])),
            ValueError,
            r"covariance_matrix .* PositiveDefinite\(\)",
            id="not definite",
        ),
        pytest.param(
            lambda: D.MultivariateNormal(torch.tensor(0.0), torch.eye(1)), ValueError, "loc must be at least", id="loc"
        ),
        pytest.param(
            lambda: D.MultivariateNormal(torch.zeros(1), torch.ones(1)),
            ValueError,
            "at least two-dimensional",
            id="matrix",
        ),
        pytest.param(
            lambda: D.LowRankMultivariateNormal(torch.zeros(2), torch.ones(3, 1), torch.ones(2)),
            ValueError,
            r"matrices with shape 2 x m, got \(3, 1\)",
            id="factor",
        ),
        pytest.param(
            lambda: D.LowRankMultivariateNormal(torch.zeros(2), torch.ones(2, 1), torch.ones(3)),
            ValueError,
            r"vectors with shape torch.Size\(\[2\]\), got \(3,\)",
            id="diagonal",
        ),
        pytest.param(
            lambda: D.LowRankMultivariateNormal(torch.zeros(2, 2), torch.ones(3, 2, 1), torch.ones(2)),
            ValueError,
            "Incompatible batch shapes",
            id="batches",
        ),
        pytest.param(lambda: D.Wishart(5.0), AssertionError, "Exactly one of", id="Wishart"),
        pytest.param(lambda: D.Wishart(1.0, torch.eye(3)), ValueError, "greater than ndim - 1 = 2", id="degrees"),
        pytest.param(
            lambda: D.Independent(D.Normal(0.0, 1.0), 1),
            ValueError,
            "Expected reinterpreted_batch_ndims <= .* 1 vs 0",
            id="ind",
        ),
        pytest.param(
            lambda: D.MixtureSameFamily(D.Normal(0.0, 1.0), D.Normal(0.0, 1.0)),
            ValueError,
            "needs to be an .*Categ",
            id="mix",
        ),
        pytest.param(
            lambda: D.MixtureSameFamily(D.Categorical(torch.ones(2)), D.Normal(torch.zeros(3), 1.0)),
            ValueError,
            r"\(2\) does not equal `component_distribution.batch_shape\[-1\]` \(3\)",
            id="components",
        ),
        pytest.param(
            lambda: D.MixtureSameFamily(D.Categorical(torch.ones(4, 2)), D.Normal(torch.zeros(3, 2), 1.0)),
            ValueError,
            "is not compatible with",
            id="mixture batches",
        ),
        pytest.param(
            lambda: D.MixtureSameFamily(D.Categorical(torch.ones(2)), 3),
            ValueError,
            "Distribution, got int",
            id="no mixture",
        ),
        pytest.param(
            lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), "exp"),
            ValueError,
            "must be a Transform or list",
            id="trans",
        ),
        pytest.param(
            lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), ["exp"]),
            ValueError,
            "a list of Transforms",
            id="list",
        ),
        pytest.param(
            lambda: D.TransformedDistribution(D.Normal(0.0, 1.0), D.StickBreakingTransform()),
            ValueError,
            "needs to have shape with size at least 1",
            id="no dimension",
        ),
        pytest.param(
            lambda: D.Distribution.set_default_validate_args("no"), ValueError, "expected True or False", id="bool"
        ),
    ],
)
def test_refused_parameters(make, kind, phrase):
    with pytest.raises(kind, match=phrase):
        make()


@pytest.mark.parametrize(
    ("call", "kind", "phrase"),
    [
        pytest.param(lambda: D.Normal(0.0, 1.0).log_prob(1.0), ValueError, "must be a Tensor, got float", id="number"),
        pytest.param(
            lambda: D.Exponential(1.0).log_prob(torch.tensor(-1.0)),
            ValueError,
            r"Expected value argument \(Tensor of shape \(\)\) to be within the support \(GreaterThanEq\(lower_bound=0.0\)\) "
            r"of the distribution Exponential\(rate: 1.0\), but found invalid values:\n-1.0",
            id="support",
        ),
        pytest.param(
            lambda: D.Normal(torch.zeros(3), 1.0).cdf(torch.zeros(2)),
            ValueError,
            "Value is not broadcastable with batch_shape.event_shape",
            id="batch",
        ),
        pytest.param(
            lambda: D.Dirichlet(torch.ones(3)).log_prob(torch.ones(2) / 2),
            ValueError,
            "right-most size of value must match event_shape",
            id="event",
        ),
        pytest.param(
            lambda: D.Binomial(torch.tensor([2.0, 3.0]), torch.tensor([0.5, 0.5])).entropy(),
            NotImplementedError,
            "Inhomogeneous total count not supported by `entropy`",
            id="entropy",
        ),
        pytest.param(
            lambda: D.Independent(D.Bernoulli(torch.ones(2) / 2), 1).enumerate_support(),
            NotImplementedError,
            "Enumeration over cartesian product",
            id="product",
        ),
        pytest.param(
            lambda: D.LogisticNormal(0.0, 1.0).mode, NotImplementedError, "does not implement mode", id="mode"
        ),
    ],
)
def test_refused_questions(call, kind, phrase):
    with pytest.raises(kind, match=phrase):
        call()


def test_checks_can_be_switched_off():
    assert D.Normal(0.0, -1.0, validate_args=False).scale.item() == -1
    assert D.Exponential(1.0, validate_args=False).log_prob(torch.tensor(-1.0)).item() == 1
    assert D.Exponential(1.0, validate_args=False).expand((2,))._validate_args is False
    D.Distribution.set_default_validate_args(False)
    try:
        D.Normal(0.0, -1.0)
    finally:
        D.Distribution.set_default_validate_args(True)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("Normal", "Normal(loc: torch.Size([2]), scale: torch.Size([2]))"),
        ("LogNormal", "LogNormal()"),
        ("Uniform", "Uniform(low: torch.Size([2]), high: torch.Size([2]))"),
        ("Independent", "Independent(Normal(loc: torch.Size([2]), scale: torch.Size([2])), 1)"),
        (
            "MixtureSameFamily",
            "MixtureSameFamily(\n  Categorical(probs: torch.Size([2]), logits: torch.Size([2])),\n"
            "  Normal(loc: torch.Size([2]), scale: torch.Size([2])))",
        ),
    ],
)
def test_texts(name, text):
    assert repr(CASES[name][0]()) == text


def test_the_text_of_numbers():
    assert repr(D.Normal(0.5, 2.0)) == "Normal(loc: 0.5, scale: 2.0)"


def test_probs_and_logits_follow_from_each_other():
    bernoulli = D.Bernoulli(logits=t(0.0, 2.0))
    np.testing.assert_allclose(bernoulli.probs, [0.5, 1 / (1 + np.exp(-2))])
    assert bernoulli.probs is bernoulli.probs
    assert bernoulli.param_shape == (2,)
    categorical = D.Categorical(t(1.0, 3.0))
    np.testing.assert_allclose(categorical.logits.exp(), [0.25, 0.75])
    assert torch.isfinite(D.Bernoulli(t(0.0, 1.0)).logits).all()
    with torch.no_grad():
        probs = D.Categorical(logits=torch.zeros(2, requires_grad=True)).probs
    assert probs.requires_grad is False  # logits were normalised without a graph


def test_numbers_and_tensors_meet_in_one_dtype():
    normal = D.Normal(torch.zeros(2, 1, dtype=torch.float64), 1)
    assert normal.scale.dtype is torch.float64
    assert D.Normal(torch.zeros(2, 1), torch.ones(3)).batch_shape == (2, 3)
    assert D.Normal(0, 1).batch_shape == ()


def test_log_prob_has_gradients():
    probs = torch.tensor([0.25, 0.75], requires_grad=True)
    D.Categorical(probs).log_prob(torch.tensor(1)).backward()
    np.testing.assert_allclose(probs.grad, [-1.0, 1 / 3], atol=1e-6)


def test_zero_probabilities():
    assert D.Multinomial(2, t(0.0, 1.0)).log_prob(t(0.0, 2.0)).item() == pytest.approx(0, abs=1e-12)
    assert D.Categorical(logits=t(-np.inf, 0.0)).entropy().item() == pytest.approx(0, abs=1e-12)
    assert D.Geometric(t(1.0)).log_prob(t(0.0)).item() == 0
    assert D.NegativeBinomial(t(0.0), t(0.5)).log_prob(t(0.0)).item() == 0
    assert D.Bernoulli(t(0.5)).mode.isnan().all()


def test_a_low_number_of_degrees_warns():
    with pytest.warns(UserWarning, match="Low df values detected"):
        D.Wishart(1.5, torch.eye(2))


class TestClassesOfOnesOwn:
    def test_without_a_constructor_it_expands(self):
        class Mine(D.Normal):
            pass

        wider = Mine(0.0, 1.0).expand((3,))
        assert type(wider) is Mine
        assert wider.loc.shape == (3,)

    def test_with_a_constructor_it_must_say_how(self):
        class Mine(D.Normal):
            def __init__(self, scale):
                super().__init__(0.0, scale)

        with pytest.raises(
            NotImplementedError, match=r"Subclass Mine of Normal .* must also define a custom .expand\(\)"
        ):
            Mine(1.0).expand((3,))

    def test_it_can_say_how(self):
        class Mine(D.Normal):
            def __init__(self, scale, extra):
                self.extra = extra
                super().__init__(0.0, scale)

            def expand(self, batch_shape, _instance=None):
                new = self._get_checked_instance(Mine, _instance)
                new.extra = self.extra
                return super().expand(batch_shape, _instance=new)

        wider = Mine(torch.tensor(2.0), "extra").expand((3,))
        assert (wider.extra, wider.scale.tolist()) == ("extra", [2.0] * 3)

    def test_a_distribution_from_nothing(self):
        class Mine(D.Distribution):
            arg_constraints = {"scale": constraints.positive}  # noqa: RUF012
            support = constraints.real

            def __init__(self, scale, validate_args=None):
                self.scale = scale
                super().__init__(scale.shape, validate_args=validate_args)

            def rsample(self, sample_shape=()):
                return torch.ones(self._extended_shape(sample_shape)) * self.scale

        assert Mine(torch.ones(2)).sample((3,)).shape == (3, 2)
        with pytest.raises(ValueError, match="of distribution Mine"):
            Mine(-torch.ones(2))
        with pytest.raises(NotImplementedError):
            Mine(torch.ones(2)).expand((2, 2))

    def test_what_is_not_declared_warns(self):
        class Mine(D.Distribution):
            pass

        with pytest.warns(UserWarning, match="does not define `arg_constraints`"):
            made = Mine()
        with pytest.warns(UserWarning, match="does not define `support` to enable sample validation"):
            made._validate_sample(torch.zeros(1))


def test_pytorchs_modules_are_there():
    names = """bernoulli beta binomial categorical cauchy chi2 constraint_registry constraints continuous_bernoulli dirichlet
    distribution exp_family exponential fishersnedecor gamma generalized_pareto geometric gumbel half_cauchy half_normal
    independent inverse_gamma kl kumaraswamy laplace lkj_cholesky log_normal logistic_normal lowrank_multivariate_normal
    mixture_same_family multinomial multivariate_normal negative_binomial normal one_hot_categorical pareto poisson
    relaxed_bernoulli relaxed_categorical studentT transformed_distribution transforms uniform utils von_mises weibull
    wishart""".split()
    for name in names:
        module = importlib.import_module(f"pellucid.distributions.{name}")
        assert getattr(D, name) is module
    for public in set(D.__all__) - {"biject_to", "transform_to"}:
        owners = [name for name in names if hasattr(getattr(D, name), public)]
        assert owners, public


def test_triangles_as_vectors():
    matrix = torch.arange(9.0).reshape(3, 3)
    assert utils.tril_matrix_to_vec(matrix).tolist() == [0, 3, 4, 6, 7, 8]
    assert utils.tril_matrix_to_vec(matrix, -1).tolist() == [3, 6, 7]
    for diag in (-1, 0, 1):
        vector = utils.tril_matrix_to_vec(matrix, diag)
        np.testing.assert_allclose(utils.vec_to_tril_matrix(vector, diag), matrix.tril(diag))
    with pytest.raises(ValueError, match=r"diag \(3\) provided is outside \[-3, 2\]"):
        utils.tril_matrix_to_vec(matrix, 3)
    with pytest.raises(ValueError, match="The size of last dimension is 4 which cannot be expressed"):
        utils.vec_to_tril_matrix(torch.ones(4))
