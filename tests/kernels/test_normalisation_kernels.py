"""Compiled normalising kernels give what the plain forms give, on every layout; float32 sums stay close to exact ones."""

from __future__ import annotations

import numpy as np
import pytest

from pellucid.kernels import normalisation as kernel
from pellucid.kernels.choice import always, never

# name: (shape, dims, shape of weight and bias)
CASES = {
    "rows": ((300, 7), (1,), (7,)),
    "rows of two dimensions": ((4, 3, 5), (1, 2), (3, 5)),
    "rows longer than a chunk": ((3, 5000), (1,), (5000,)),
    "rows without weights": ((6, 5), (1,), None),
    "one row": ((9,), (0,), (9,)),
    "batch": ((4, 6, 5), (0, 2), (6, 1)),
    "batch of images": ((3, 4, 8, 9), (0, 2, 3), (1, 4, 1, 1)),
    "batch too large to be held": ((70, 2, 1000), (0, 2), (2, 1)),
    "batch too large to be held, of short rows": ((9000, 1, 9), (0, 2), None),
    "batch of one channel": ((2, 1, 5), (0, 2), (1, 1, 1)),
    "batch of vectors": ((70, 130), (0,), (130,)),
    "batch of vectors without weights": ((7, 5), (0,), None),
    "groups": ((2, 3, 4, 10), (2, 3), (3, 4, 1)),
    "instances": ((2, 6, 7), (2,), (6, 1)),
}
GROUPS = [pytest.param(*case, id=name) for name, case in CASES.items()]
BOTH = pytest.mark.parametrize("centred", [True, False], ids=["centred", "not centred"])


def draw(shape, dtype, *, mean=0.0, seed=0):
    return (np.random.default_rng(seed).standard_normal(shape) + mean).astype(dtype)


def operands(shape, vector, dtype):
    """x, grad, weight, bias."""
    weights = [None if vector is None else draw(vector, dtype, seed=seed) for seed in (2, 3)]
    return draw(shape, dtype, mean=3), draw(shape, dtype, seed=1), *weights


def in_both_forms(function):
    with always():
        fast = function()
    with never():
        return fast, function()


def assert_alike(fast, plain, bound):
    for a, b in zip(fast, plain, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=0, atol=bound * max(1, np.abs(b).max(initial=0)))


@BOTH
@pytest.mark.parametrize(("dtype", "bound"), [(np.float64, 1e-12), (np.float32, 1e-5)])
@pytest.mark.parametrize(("shape", "dims", "vector"), GROUPS)
def test_both_forms_agree(shape, dims, vector, dtype, bound, centred):
    x, grad, weight, bias = operands(shape, vector, dtype)
    fast, plain = in_both_forms(lambda: kernel.normalised(x, weight, bias, dims, 1e-5, centred))
    assert_alike(fast, plain, bound)
    _, mean, rstd, _ = plain
    wanted = {"of_weight": vector, "of_bias": vector}
    assert_alike(*in_both_forms(lambda: kernel.gradients(grad, x, weight, mean, rstd, dims, centred, **wanted)), bound)


@pytest.mark.parametrize(("shape", "dims", "vector"), GROUPS)
def test_what_is_not_wanted_is_not_given(shape, dims, vector):
    x, grad, weight, _ = operands(shape, vector, np.float64)
    _, mean, rstd, _ = kernel.normalised(x, weight, None, dims, 1e-5)
    whole = kernel.gradients(grad, x, weight, mean, rstd, dims, True, True, vector, vector)
    with always():
        (of_input,) = kernel.gradients(grad, x, weight, mean, rstd, dims)
        np.testing.assert_allclose(of_input, whole[0], atol=1e-12)
        if vector is not None:
            (of_bias,) = kernel.gradients(grad, x, weight, mean, rstd, dims, True, False, None, vector)
            (of_weight,) = kernel.gradients(grad, x, weight, mean, rstd, dims, True, False, vector, None)
            np.testing.assert_allclose(of_weight, whole[1], atol=1e-10)
            np.testing.assert_allclose(of_bias, whole[2], atol=1e-10)


@pytest.mark.parametrize("given", ["weight", "bias"])
@pytest.mark.parametrize(("shape", "dims", "vector"), [CASES[name] for name in ("rows", "batch of images", "groups", "batch of vectors")])
def test_a_weight_or_a_bias_alone(shape, dims, vector, given):
    x, _, weight, bias = operands(shape, vector, np.float64)
    pair = (weight, None) if given == "weight" else (None, bias)
    assert_alike(*in_both_forms(lambda: kernel.normalised(x, *pair, dims, 1e-5)), 1e-12)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(("shape", "dims", "vector"), [CASES[name] for name in ("rows", "batch of images", "groups", "batch of vectors")])
def test_nan_and_infinity_spread_as_in_the_plain_form(shape, dims, vector, bad):
    x, grad, weight, bias = operands(shape, vector, np.float32)
    x[(1,) * x.ndim] = bad
    with np.errstate(all="ignore"):
        fast, plain = in_both_forms(lambda: kernel.normalised(x, weight, bias, dims, 1e-5))
        np.testing.assert_array_equal(np.isnan(fast[0]), np.isnan(plain[0]))
        assert 0 < np.isnan(fast[0]).sum() < x.size
        fast, plain = in_both_forms(lambda: kernel.gradients(grad, x, weight, plain[1], plain[2], dims, True, True, vector, vector))
    for a, b in zip(fast, plain, strict=True):
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))


def test_arrays_in_another_order_of_memory():
    x, grad = draw((5, 6, 7), np.float64).transpose(2, 0, 1), np.broadcast_to(draw((6,), np.float64, seed=1), (7, 5, 6))
    weight = draw((12,), np.float64, seed=2)[::2]
    fast, plain = in_both_forms(lambda: kernel.normalised(x, weight, weight, (2,), 1e-5))
    assert_alike(fast, plain, 1e-12)
    assert_alike(*in_both_forms(lambda: kernel.gradients(grad, x, weight, *plain[1:3], (2,), True, True, (6,), (6,))), 1e-12)


def test_layouts_without_a_kernel_take_the_plain_form():
    x, weight = draw((4, 5, 6), np.float64), draw((4, 1, 1), np.float64, seed=2)
    assert_alike(*in_both_forms(lambda: kernel.normalised(x, weight, None, (1,), 1e-5)), 0)
    assert_alike(*in_both_forms(lambda: kernel.normalised(x, weight, None, (1, 2), 1e-5)), 0)


def test_nothing_is_normalised():
    empty, weight = np.empty((0, 3)), np.ones(3)
    with always():
        made, mean, rstd, var = kernel.normalised(empty, weight, weight, (1,), 1e-5)
        assert [a.shape for a in (made, mean, rstd, var)] == [(0, 3), (0, 1), (0, 1), (0, 1)]
        found = kernel.gradients(empty, empty, weight, mean, rstd, (1,), True, True, (3,), (3,))
    assert [a.shape for a in found] == [(0, 3), (3,), (3,)]
    assert found[1].tolist() == found[2].tolist() == [0, 0, 0]


@pytest.mark.parametrize(("shape", "dims"), [((4, 20000), (1,)), ((64, 2, 1000), (0, 2)), ((40000, 3), (0,))])
def test_float32_statistics_are_right_to_rounding_far_from_zero(shape, dims):
    """Relative errors: 1e-7 for the mean, 1e-6 for a variance a millionth of the mean's square."""
    x = draw(shape, np.float32, mean=1000)
    with always():
        _, mean, _, var = kernel.normalised(x, None, None, dims, 0.0)
    exact = x.astype(np.float64)
    np.testing.assert_allclose(mean, exact.mean(dims, keepdims=True), rtol=1e-7)
    np.testing.assert_allclose(var, exact.var(dims, keepdims=True), rtol=1e-6)


def test_results_own_their_memory():
    """A gradient that is a view would be copied before it is kept."""
    x, grad, weight, bias = operands((40, 4, 6), (4, 1), np.float32)
    with always():
        made, mean, rstd, _ = kernel.normalised(x, weight, bias, (0, 2), 1e-5)
        (of_input,) = kernel.gradients(grad, x, weight, mean, rstd, (0, 2))
    assert made.base is None
    assert of_input.base is None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("weighed", [True, False])
@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 3, 4, 5), (600, 2, 3), (6, 5)])
def test_given_statistics(shape, weighed, dtype):
    vector = (shape[1], *(1,) * (len(shape) - 2))
    x, _, weight, bias = operands(shape, vector if weighed else None, dtype)
    mean, var = draw(vector, dtype, seed=4), draw(vector, dtype, seed=5) ** 2
    fast, plain = in_both_forms(lambda: [kernel.fixed(x, weight, bias, mean, var, 1e-5)])
    assert_alike(fast, plain, 1e-12 if dtype is np.float64 else 1e-5)
