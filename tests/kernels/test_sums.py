"""Sums over leading dimensions against NumPy's."""

import numpy as np
import pytest

from pellucid.autograd.node import sum_to
from pellucid.kernels import choice
from pellucid.kernels.sums import leading_sum

pytest.importorskip("numba")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "count"), [((1, 1), 1), ((7, 3), 1), ((64, 257), 1), ((5, 6, 7, 9), 3), ((3, 4, 5), 1), ((4, 300, 1), 2)])
def test_columns(dtype, shape, count):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    with choice.always():
        made = leading_sum(x, count)
    expected = x.astype(np.float64).sum(axis=tuple(range(count)))
    assert made.shape == expected.shape
    assert made.dtype == dtype
    np.testing.assert_allclose(made, expected, rtol=0, atol=30 * np.finfo(dtype).eps * np.abs(x).max() * len(x))


def test_many_elements_on_all_threads():
    x = np.random.default_rng(0).standard_normal((513, 1030)).astype(np.float32)
    with choice.always():
        made = leading_sum(x, 1)
    np.testing.assert_allclose(made, x.sum(axis=0, dtype=np.float64), atol=1e-4)


def test_nan_and_infinity_stay_in_their_columns():
    x = np.ones((6, 5), np.float32)
    x[1, 2], x[5, 3] = np.nan, np.inf
    with choice.always():
        np.testing.assert_array_equal(leading_sum(x, 1), [6, 6, np.nan, np.inf, 6])


@pytest.mark.parametrize("x", [np.ones((3, 0, 4)), np.ones((0, 4)), np.ones((5, 4)).T, np.ones((5, 4), np.int64), np.ones((5, 4)) * 1j])
def test_other_arrays_are_left_to_numpy(x):
    with choice.always():
        np.testing.assert_array_equal(leading_sum(x, 1), x.sum(axis=0))


@pytest.mark.parametrize("shape", [(10, 4), (8, 2), (63, 15), (13, 9)])
def test_few_narrow_rows_are_added_in_the_order_of_pytorch(shape):
    """Every fourth row to one of four sums; rows that are left go to the first."""
    x = np.random.default_rng(2).standard_normal(shape) * 10.0 ** np.random.default_rng(3).integers(-5, 5, shape)
    whole, sums = len(x) // 4 * 4, [0.0, 0.0, 0.0, 0.0]
    for row in range(len(x)):
        sums[row % 4 if row < whole else 0] = sums[row % 4 if row < whole else 0] + x[row]
    np.testing.assert_array_equal(leading_sum(x, 1), ((sums[0] + sums[1]) + sums[2]) + sums[3])


@pytest.mark.parametrize("shape", [(40,), (1, 40), (50, 1), (1, 1), (), (1, 50, 40), (30, 1, 40)])
def test_what_was_broadcast_is_summed_out(shape):
    x = np.random.default_rng(1).standard_normal((30, 50, 40))
    axes = tuple(i for i, n in enumerate((1,) * (3 - len(shape)) + shape) if n == 1)
    np.testing.assert_allclose(sum_to(x, shape), x.sum(axis=axes).reshape(shape), rtol=1e-12)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (70, 60, 2)])
def test_what_is_summed_out_whole_is_an_array_still(shape):
    assert isinstance(sum_to(np.ones(shape), ()), np.ndarray)
    assert isinstance(leading_sum(np.ones(shape), len(shape)), np.ndarray)
