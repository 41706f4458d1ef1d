"""The norm of many gradients and their scaling, compiled, beside the plain forms."""

import numpy as np
import pytest

import pellucid
from pellucid.kernels import choice, clipping
from pellucid.nn.utils import clip_grad_norm_

SHAPES = [(7,), (), (3, 5), (0, 2), (5003,)]


def arrays(dtype):
    random = np.random.default_rng(0)
    return [np.asarray(random.standard_normal(shape), dtype) for shape in SHAPES]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_norm_and_scale(dtype):
    given = arrays(dtype)
    with choice.always():
        found = clipping.norm(given)
        expected = np.linalg.norm(np.concatenate([a.ravel() for a in given]).astype(float))
        np.testing.assert_allclose(found, expected, rtol=1e-6 if dtype is np.float32 else 1e-13)
        assert found.dtype == dtype
        assert found.shape == ()
        before = [a.copy() for a in given]
        assert clipping.scale(given, 0.5)
    for one, old in zip(given, before, strict=True):
        np.testing.assert_array_equal(one, old * dtype(0.5))


def test_nan_and_infinity_come_through():
    with choice.always():
        assert np.isnan(clipping.norm([np.ones(3), np.array([np.nan])]))
        assert np.isinf(clipping.norm([np.ones(3), np.array([-np.inf])]))


@pytest.mark.parametrize(
    "given",
    [
        [np.ones(3), np.ones(3, np.float32)],
        [np.ones((3, 2)).T],
        [np.ones(3, np.float16)],
        [np.ones(3, complex)],
        [np.ones(3)[1:]],
        [np.broadcast_to(np.ones(1), 3)],
    ],
)
def test_what_is_left_to_the_plain_form(given):
    with choice.always():
        assert not clipping.scale(given, 0.5)


def test_one_array_named_twice_is_left_to_the_plain_form():
    twice = np.ones(3)
    with choice.always():
        assert not clipping.scale([twice, twice], 0.5)


@pytest.mark.parametrize("where", [choice.always, choice.never])
def test_gradients_are_clipped_alike(where):
    params = [pellucid.zeros(a.shape, dtype=pellucid.float64, requires_grad=True) for a in arrays(np.float64)]
    for param, array in zip(params, arrays(np.float64), strict=True):
        param.grad = pellucid.from_numpy(array)
    version = params[0].grad._version
    with where():
        norm = clip_grad_norm_(params, 1.0)
        again = clip_grad_norm_(params, 10.0)
    assert norm.item() == pytest.approx(71.1, abs=0.5)
    assert again.item() == pytest.approx(1.0, rel=1e-6)
    assert params[0].grad._version == version + 1
