"""Constraints: what they let through, and the transforms that lead into them."""

from __future__ import annotations

import numpy as np
import pytest
from distribution_cases import t

import pellucid as torch
from pellucid import distributions as D
from pellucid.distributions import constraints as C

nan = float("nan")
SYMMETRIC = [[2.0, -1.0], [-1.0, 2.0]]


@pytest.mark.parametrize(
    ("constraint", "fine", "wrong"),
    [
        (C.real, [0.0, -3.0, np.inf], [nan]),
        (C.boolean, [0.0, 1.0], [0.5, 2.0, nan]),
        (C.positive, [0.1, np.inf], [0.0, -1.0, nan]),
        (C.nonnegative, [0.0, 2.0], [-1.0, nan]),
        (C.greater_than(2.0), [3.0], [2.0]),
        (C.greater_than_eq(2.0), [2.0], [1.9]),
        (C.less_than(2.0), [1.9], [2.0]),
        (C.unit_interval, [0.0, 1.0], [-0.1, 1.1]),
        (C.half_open_interval(0.0, 1.0), [0.0], [1.0]),
        (C.interval(t(0.0, 5.0), t(1.0, 6.0)), [[1.0, 6.0]], [[1.1, 4.0]]),
        (C.nonnegative_integer, [0.0, 3.0], [-1.0, 0.5]),
        (C.positive_integer, [1.0], [0.0]),
        (C.integer_interval(1, 3), [1.0, 3.0], [0.0, 4.0, 1.5]),
        (C._IntegerLessThan(3), [-5.0, 3.0], [4.0, 0.5]),
        (C.real_vector, [[1.0, 2.0]], [[1.0, nan]]),
        (C.simplex, [[0.2, 0.8], [1.0, 0.0]], [[0.2, 0.7], [-0.1, 1.1]]),
        (C.one_hot, [[0.0, 1.0, 0.0]], [[1.0, 1.0, 0.0], [0.0, 0.5, 0.5]]),
        (C.multinomial(4), [[1.0, 3.0], [0.0, 0.0]], [[-1.0, 2.0], [3.0, 2.0]]),
        (C.lower_triangular, [[[1.0, 0.0], [2.0, -1.0]]], [[[1.0, 3.0], [2.0, 1.0]]]),
        (C.lower_cholesky, [[[1.0, 0.0], [2.0, 1.0]]], [[[1.0, 0.0], [2.0, -1.0]], [[1.0, 3.0], [2.0, 1.0]]]),
        (C.corr_cholesky, [[[1.0, 0.0], [0.6, 0.8]]], [[[1.0, 0.0], [0.6, 0.9]]]),
        (C.square, [[[1.0, 0.0], [2.0, 1.0]]], [[[1.0, 2.0, 3.0]]]),
        (C.symmetric, [SYMMETRIC], [[[1.0, 2.0], [2.5, 1.0]]]),
        (C.positive_semidefinite, [SYMMETRIC, [[1.0, 0.0], [0.0, 0.0]]], [[[1.0, 2.0], [2.0, 1.0]]]),
        (C.positive_definite, [SYMMETRIC], [[[1.0, 2.0], [2.0, 1.0]], [[0.0, 0.0], [0.0, 0.0]]]),
        (C.independent(C.positive, 2), [[[1.0, 2.0]]], [[[1.0, 0.0]]]),
        (C.MixtureSameFamilyConstraint(C.positive), [1.0], [0.0]),
    ],
    ids=repr,
)
def test_check(constraint, fine, wrong):
    for values, verdict in ((fine, True), (wrong, False)):
        for value in values:
            found = constraint.check(t(value)[0])
            assert found.dtype is torch.bool
            assert found.shape == t(value)[0].shape[: t(value)[0].dim() - constraint.event_dim]
            assert (found == verdict).all(), value


def test_a_batch_with_one_matrix_that_is_not_definite():
    batch = torch.tensor([SYMMETRIC, [[1.0, 2.0], [2.0, 1.0]]])
    assert C.positive_definite.check(batch).tolist() == [True, False]
    assert C.positive_definite.check(batch.expand(2, 2, 2, 2)).tolist() == [[True, False]] * 2


def test_regions_side_by_side():
    assert C.cat([C.positive, C.real], -1, [1, 2]).check(t(-1.0, -2.0, 3.0)).tolist() == [False, True, True]
    assert C.cat([C.positive, C.real]).check(t(1.0, -2.0, 7.0)).tolist() == [True, True]
    stacked = C.stack([C.positive, C.unit_interval], -1)
    assert stacked.check(t([1.0, 0.5], [0.0, 2.0])).tolist() == [[True, True], [False, False]]
    assert not stacked.is_discrete
    assert C.stack([C.real_vector, C.real_vector], 0).event_dim == 1
    assert C.stack([C.real_vector, C.real_vector], -1).event_dim == 1
    assert C.stack([C.real_vector, C.real_vector], -2).event_dim == 2
    assert C.cat([C.boolean, C.simplex]).is_discrete
    assert C.cat([C.boolean, C.simplex]).event_dim == 1


def test_texts():
    assert repr(C.positive) == "GreaterThan(lower_bound=0.0)"
    assert repr(C.integer_interval(0, t(3.0)[0])) == "IntegerInterval(lower_bound=0, upper_bound=3.0)"
    assert repr(C.independent(C.real, 2)) == "IndependentConstraint(Real(), 2)"
    assert repr(C.MixtureSameFamilyConstraint(C.real)) == "MixtureSameFamilyConstraint(Real())"


def test_dependent_constraints():
    assert C.is_dependent(C.dependent)
    assert C.is_dependent(D.Uniform.support)
    assert not C.is_dependent(C.real)
    assert D.Uniform.support.event_dim == 0
    known = C.dependent(is_discrete=True, event_dim=2)
    assert known.is_discrete
    assert known(event_dim=1).event_dim == 1
    assert known(event_dim=1).is_discrete
    for name in ("is_discrete", "event_dim"):
        with pytest.raises(NotImplementedError, match=f".{name} cannot be determined statically"):
            getattr(C.dependent, name)
    with pytest.raises(ValueError, match="Cannot determine validity of dependent constraint"):
        C.dependent.check(t(1.0))


@pytest.mark.parametrize(
    "constraint",
    [
        C.real, C.positive, C.nonnegative, C.greater_than(2.0), C.greater_than_eq(2.0), C.less_than(-1.0), C.unit_interval,
        C.interval(t(1.0, 2.0, 3.0), t(2.0, 4.0, 9.0)), C.half_open_interval(-1.0, 4.0), C.simplex, C.real_vector,
        C.independent(C.positive, 1), C.corr_cholesky, C.cat([C.positive, C.real], -1, [1, 2]),
        C.stack([C.positive, C.real, C.unit_interval], -1),
    ],
    ids=repr,
)  # fmt: skip
@pytest.mark.parametrize("registry", [D.biject_to, D.transform_to], ids=["biject_to", "transform_to"])
def test_transforms_lead_into_constraints(registry, constraint):
    transform = registry(constraint)
    y = transform(t([0.3, -1.2, 0.8], [1.5, 0.1, -0.4]))
    assert constraint.check(y).all()
    assert transform.codomain.check(y).all()
    if registry is D.biject_to:
        assert transform.bijective
        np.testing.assert_allclose(transform.inv(y), t([0.3, -1.2, 0.8], [1.5, 0.1, -0.4]), atol=1e-7)


@pytest.mark.parametrize("constraint", [C.lower_cholesky, C.positive_definite], ids=repr)
def test_matrices_can_be_optimised_into_constraints(constraint):
    assert constraint.check(D.transform_to(constraint)(t([0.5, 3.0], [0.2, -0.1])))
    with pytest.raises(NotImplementedError, match="Cannot transform _"):
        D.biject_to(constraint)


def test_registering():
    class Even(C.Constraint):
        is_discrete = True

        def check(self, value):
            return value % 2 == 0

    even = Even()
    D.transform_to.register(even, lambda constraint: D.AffineTransform(0, 2))
    assert even.check(D.transform_to(even)(t(3.0)))

    @D.biject_to.register(Even)
    def _(constraint):
        return D.AffineTransform(0, 2)

    assert D.biject_to(even)(t(1.0)).item() == 2
    with pytest.raises(TypeError, match="either a Constraint subclass or instance, but got 3"):
        D.biject_to.register(3, lambda constraint: None)


@pytest.mark.parametrize(
    ("call", "kind", "phrase"),
    [
        pytest.param(lambda: C.independent(3, 1), AssertionError, "must be a Constraint, got int", id="base"),
        pytest.param(lambda: C.independent(C.real, -1), AssertionError, "must be >= 0, got -1", id="negative"),
        pytest.param(
            lambda: C.independent(C.real, 2).check(t(1.0)),
            ValueError,
            r"Expected value.dim\(\) >= 2 but got 1",
            id="too few",
        ),
        pytest.param(lambda: C.MixtureSameFamilyConstraint(3), AssertionError, "got int", id="mixture"),
        pytest.param(
            lambda: C.MixtureSameFamilyConstraint(C.simplex).check(t(1.0)[0]),
            (ValueError, IndexError),
            "dim",
            id="mixture too few",
        ),
        pytest.param(
            lambda: C.cat([C.real], lengths=[1, 2]), AssertionError, r"lengths \(2\) must match", id="lengths"
        ),
        pytest.param(lambda: C.stack([1]), AssertionError, "All elements of cseq must be Constraint", id="stack"),
        pytest.param(lambda: C.stack([C.real], 3).check(t(1.0)), AssertionError, "dim 3 out of range", id="dim"),
    ],
)
def test_refused(call, kind, phrase):
    with pytest.raises(kind, match=phrase):
        call()
