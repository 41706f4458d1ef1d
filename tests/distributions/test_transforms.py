"""Transforms: inverses, Jacobians against autograd, shapes, caches, domains, and refused inputs."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from distribution_cases import t

import pellucid as torch
from pellucid import distributions as D
from pellucid.distributions import constraints

X = t([0.3, -1.2, 0.8], [1.5, 0.1, -0.4])
POSITIVE = X.abs() + 0.1

# name -> (transform, values of its domain)
BIJECTIONS = {
    "exp": (D.ExpTransform(), X),
    "log": (D.ExpTransform().inv, POSITIVE),
    "affine": (D.AffineTransform(t(1.0, 2.0, 3.0), t(0.5, -1.0, 2.0)), X),
    "affine, event": (D.AffineTransform(t(1.0, 2.0, 3.0), t(0.5, -1.0, 2.0), event_dim=1), X),
    "affine, number": (D.AffineTransform(1.0, -2.0), X),
    "sigmoid": (D.SigmoidTransform(), X),
    "tanh": (D.TanhTransform(), X),
    "softplus": (D.SoftplusTransform(), X),
    "power": (D.PowerTransform(t(2.0, -1.0, 0.5)), POSITIVE),
    "stick breaking": (D.StickBreakingTransform(), X),
    "correlation": (D.CorrCholeskyTransform(), X),
    "reshape": (D.ReshapeTransform((3,), (3, 1)), X),
    "compose": (D.ComposeTransform([D.ExpTransform(), D.AffineTransform(0.0, 2.0), D.PowerTransform(2.0)]), X),
    "compose, event": (D.ComposeTransform([D.AffineTransform(1.0, 2.0), D.StickBreakingTransform()]), X),
    "independent": (D.IndependentTransform(D.ExpTransform(), 1), X),
    "cat": (D.CatTransform([D.ExpTransform(), D.AffineTransform(0.0, 2.0)], dim=-1, lengths=[1, 2]), X),
    "stack": (D.StackTransform([D.ExpTransform(), D.AffineTransform(0.0, 2.0), D.TanhTransform()], dim=1), X),
    "cdf": (D.CumulativeDistributionTransform(D.Normal(t(0.3)[0], t(1.2)[0])), X),
    "identity": (D.identity_transform, X),
}


@pytest.mark.parametrize("name", BIJECTIONS)
def test_the_inverse_undoes_it(name):
    transform, x = BIJECTIONS[name]
    y = transform(x)
    assert transform.bijective
    np.testing.assert_allclose(transform.inv(y), x, atol=1e-7)
    assert transform.inv.inv is transform
    assert transform.forward_shape(x.shape) == y.shape
    assert transform.inverse_shape(y.shape) == x.shape
    assert transform.domain.check(x).all()
    assert transform.codomain.check(y).all()


@pytest.mark.parametrize("name", BIJECTIONS)
def test_the_jacobian_is_that_of_autograd(name):
    transform, x = BIJECTIONS[name]
    event = transform.domain.event_dim
    found = transform.log_abs_det_jacobian(x, transform(x))
    inverse = transform.inv.log_abs_det_jacobian(transform(x), x)
    np.testing.assert_allclose(inverse, -found)
    for row in range(2):
        point = x[row].detach().clone().requires_grad_()

        def image(at, row=row):
            y = transform(torch.stack([at if r == row else x[r] for r in range(2)]))[row]
            if name == "correlation":
                return torch.stack([y[1, 0], y[2, 0], y[2, 1]])
            return y.reshape(-1)[:3]

        y = image(point)
        matrix = torch.stack([torch.autograd.grad(y[k], point, retain_graph=True)[0] for k in range(3)])
        determinants = matrix.diagonal().abs().log() if not event else torch.linalg.slogdet(matrix)[1]
        np.testing.assert_allclose(found[row].expand(determinants.shape), determinants, atol=1e-8)


def test_not_every_transform_is_a_bijection():
    for transform in (
        D.AbsTransform(),
        D.SoftmaxTransform(),
        D.LowerCholeskyTransform(),
        D.PositiveDefiniteTransform(),
    ):
        assert not transform.bijective
        with pytest.raises(NotImplementedError):
            transform.log_abs_det_jacobian(X, X)
    np.testing.assert_allclose(D.AbsTransform()(X), X.abs())
    assert D.AbsTransform().inv(POSITIVE) is POSITIVE
    shares = D.SoftmaxTransform()(X)
    np.testing.assert_allclose(shares, X.softmax(-1))
    np.testing.assert_allclose(D.SoftmaxTransform()(D.SoftmaxTransform().inv(shares)), shares)


def test_matrices():
    matrix = t([0.5, 3.0], [0.2, -0.1])
    factor = D.LowerCholeskyTransform()(matrix)
    np.testing.assert_allclose(factor, [[np.exp(0.5), 0], [0.2, np.exp(-0.1)]])
    np.testing.assert_allclose(D.LowerCholeskyTransform().inv(factor), matrix.tril())
    definite = D.PositiveDefiniteTransform()(matrix)
    np.testing.assert_allclose(definite, factor @ factor.mT)
    np.testing.assert_allclose(D.PositiveDefiniteTransform().inv(definite), matrix.tril(), atol=1e-12)


def test_zeros_break_the_stick_into_equal_shares():
    np.testing.assert_allclose(D.StickBreakingTransform()(torch.zeros(3, dtype=torch.float64)), [0.25] * 4)


def test_tanh_needs_a_cache_near_its_ends():
    transform = D.TanhTransform(cache_size=1)
    x = torch.tensor([20.0])
    assert transform.inv(transform(x)) is x
    assert torch.isinf(D.TanhTransform().inv(transform(x))).all()


def test_caches():
    transform = D.ExpTransform().with_cache(1)
    y = transform(X)
    assert transform(X) is y
    assert transform.inv(y) is X
    assert transform.with_cache(1) is transform
    assert D.ExpTransform()(X) is not D.ExpTransform()(X)
    for name, (plain, x) in BIJECTIONS.items():
        cached = plain.with_cache(1)
        assert cached.inv(cached(x)) is x or name in ("compose", "compose, event", "identity")
        np.testing.assert_allclose(cached(x), plain(x))


def test_equal_transforms():
    assert D.ExpTransform() == D.ExpTransform()
    assert D.ExpTransform() != D.SigmoidTransform()
    assert D.ExpTransform().inv == D.ExpTransform().inv
    assert D.AffineTransform(1.0, t(2.0)) == D.AffineTransform(1.0, t(2.0))
    assert D.AffineTransform(1.0, 2.0) != D.AffineTransform(1.0, 3.0)
    assert D.AffineTransform(t(1.0, 2.0), 2.0) != D.AffineTransform(t(1.0, 3.0), 2.0)
    assert D.PowerTransform(2.0) == D.PowerTransform(2.0)
    assert D.ComposeTransform([D.ExpTransform()]) == D.ComposeTransform([D.ExpTransform()])
    assert D.StickBreakingTransform() != D.SoftmaxTransform()


def test_signs():
    assert D.ExpTransform().sign == 1
    assert [D.AffineTransform(0.0, s).sign for s in (2.0, -2.0, 0.0)] == [1, -1, 0]
    assert D.AffineTransform(0.0, t(2.0, -3.0)).sign.tolist() == [1, -1]
    assert D.PowerTransform(t(2.0, -3.0)).sign.tolist() == [1, -1]
    assert D.ComposeTransform([D.ExpTransform(), D.AffineTransform(0.0, -1.0)]).sign == -1
    assert D.ExpTransform().inv.sign == 1


def test_event_dimensions():
    assert D.StickBreakingTransform().event_dim == 1
    assert D.AffineTransform(0.0, 1.0, event_dim=2).event_dim == 2
    with pytest.raises(ValueError, match=r"Please use either .domain.event_dim or .codomain.event_dim"):
        D.ReshapeTransform((4,), (2, 2)).event_dim  # noqa: B018 (a property)
    composed = D.ComposeTransform([D.ReshapeTransform((4,), (2, 2)), D.LowerCholeskyTransform()])
    assert (composed.domain.event_dim, composed.codomain.event_dim) == (1, 2)
    inner = D.ComposeTransform([D.ExpTransform(), D.StickBreakingTransform()])
    assert repr(inner.domain) == "IndependentConstraint(Real(), 1)"


def test_texts():
    assert repr(D.ExpTransform()) == "ExpTransform()"
    assert repr(D.ExpTransform().inv) == "_InverseTransform(ExpTransform())"
    assert repr(D.IndependentTransform(D.ExpTransform(), 1)) == "IndependentTransform(ExpTransform(), 1)"
    assert (
        repr(D.ComposeTransform([D.ExpTransform()] * 2))
        == "ComposeTransform(\n    ExpTransform(),\n    ExpTransform()\n)"
    )


def test_it_can_be_pickled():
    for name, (transform, x) in BIJECTIONS.items():
        transform.inv  # noqa: B018 (makes the inverse, which points back)
        copy = pickle.loads(pickle.dumps(transform))
        np.testing.assert_allclose(copy(x), transform(x), err_msg=name)


def test_a_transform_of_ones_own():
    class Cube(D.Transform):
        domain = codomain = constraints.real
        bijective = True
        sign = 1

        def _call(self, x):
            return x**3

        def _inverse(self, y):
            return y.sign() * y.abs() ** (1 / 3)

        def log_abs_det_jacobian(self, x, y):
            return (3 * x**2).log()

    cubed = D.TransformedDistribution(D.Normal(t(0.0)[0], t(1.0)[0]), Cube())
    np.testing.assert_allclose(cubed.cdf(t(8.0)), D.Normal(0.0, 1.0).cdf(t(2.0)))
    np.testing.assert_allclose(cubed.log_prob(t(8.0)), D.Normal(0.0, 1.0).log_prob(t(2.0)) - np.log(12))
    assert Cube().with_cache(1)._cache_size == 1

    class Shifted(Cube):
        def __init__(self, by, cache_size=0):
            super().__init__(cache_size)

    with pytest.raises(NotImplementedError, match=r"Shifted.*with_cache is not implemented"):
        Shifted(1.0).with_cache(1)


@pytest.mark.parametrize(
    ("call", "kind", "phrase"),
    [
        pytest.param(lambda: D.ExpTransform(cache_size=2), ValueError, "cache_size must be 0 or 1", id="cache"),
        pytest.param(
            lambda: D.ReshapeTransform((3,), (2, 2)), ValueError, "different numbers of elements: 3 and 4", id="reshape"
        ),
        pytest.param(
            lambda: D.ReshapeTransform((3,), (3, 1)).forward_shape((4,)),
            ValueError,
            "Shape mismatch",
            id="reshape shape",
        ),
        pytest.param(
            lambda: D.StickBreakingTransform().forward_shape(()), ValueError, "Too few dimensions on input", id="stick"
        ),
        pytest.param(lambda: D.SoftmaxTransform().inverse_shape(()), ValueError, "Too few dimensions", id="softmax"),
        pytest.param(
            lambda: D.CorrCholeskyTransform().forward_shape((4,)),
            ValueError,
            "Input is not a flattened lower-diagonal number",
            id="correlation",
        ),
        pytest.param(
            lambda: D.CorrCholeskyTransform().inverse_shape((2, 3)), ValueError, "Input is not square", id="not square"
        ),
        pytest.param(
            lambda: D.IndependentTransform(D.ExpTransform(), 2)(t(1.0)),
            ValueError,
            "Too few dimensions on input",
            id="too few",
        ),
        pytest.param(
            lambda: D.CatTransform([D.ExpTransform()], dim=0, lengths=[1, 2]),
            AssertionError,
            "lengths .2. must match",
            id="cat",
        ),
        pytest.param(
            lambda: D.CatTransform([D.ExpTransform()], dim=0, lengths=[2])(t(1.0)),
            AssertionError,
            "must equal length 2",
            id="size",
        ),
        pytest.param(
            lambda: D.StackTransform([D.ExpTransform()], dim=2)(X), AssertionError, "dim 2 out of range", id="stack dim"
        ),
        pytest.param(
            lambda: D.StackTransform([1]), AssertionError, "All elements of tseq must be Transform", id="stack"
        ),
    ],
)
def test_refused(call, kind, phrase):
    with pytest.raises(kind, match=phrase):
        call()
