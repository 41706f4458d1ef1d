"""Sums over dimensions on all threads against NumPy's."""

import numpy as np
import pytest

import pellucid
from pellucid.autograd.node import sum_to
from pellucid.kernels import choice, reductions
from pellucid.kernels.sums import leading_sum, trailing_sum

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


SHAPES = [(1,), (100_000,), (70_001,), (7, 3), (64, 257), (3, 70_000), (5, 6, 7, 9), (2, 3, 40_000), (300, 1, 4), (20_000, 3)]
DIMS = [(0,), (1,), (2,), (0, 1), (1, 2), (0, 2), (0, 1, 2), (2, 3), (0, 2, 3), (0, 1, 2, 3)]
CASES = [(shape, dim) for shape in SHAPES for dim in DIMS if dim[-1] < len(shape)]


def spread_out(shape, dtype):
    """Numbers around 3, so that sums are long and distances from the mean are not the numbers."""
    return (np.random.default_rng(0).standard_normal(shape) + 3).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("shape", "dim"), CASES)
@pytest.mark.parametrize("keepdim", [False, True])
def test_sums_variances_and_norms(shape, dim, keepdim, dtype):
    """As exact as sums in pieces are: a few units of the last place of what is added up."""
    x, exact = spread_out(shape, dtype), spread_out(shape, dtype).astype(np.longdouble)
    count = np.prod([shape[d] for d in dim])
    with choice.always():
        made = [reductions.added(x, dim, keepdim), reductions.variance(x, dim, 0, keepdim), reductions.norm(x, 2, dim, keepdim)]
    expected = [exact.sum(dim, keepdims=keepdim), exact.var(dim, keepdims=keepdim), np.sqrt((exact * exact).sum(dim, keepdims=keepdim))]
    for ours, right, scale in zip(made, expected, (3 * count, 10, np.sqrt(10 * count)), strict=True):
        assert ours.shape == right.shape
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, right.astype(np.float64), rtol=0, atol=20 * np.finfo(dtype).eps * float(scale))


@pytest.mark.parametrize("size", [1, 1000, 1 << 15, (1 << 15) + 1, 3 << 15, 200_003])
def test_a_sum_of_all(size):
    x = spread_out(size, np.float64)
    with choice.always():
        made = reductions.total(x)
    assert np.shape(made) == ()
    assert abs(float(made) - float(x.astype(np.longdouble).sum())) < 1e-15 * 4 * size


def test_long_sums_stay_exact():
    """Ten million times 0.1 in float32: added one after the other they give 1,087,937."""
    x = np.full(10_000_000, np.float32(0.1))
    with choice.always():
        assert abs(float(reductions.total(x)) - 1e7 * float(np.float32(0.1))) < 1
        assert abs(float(reductions.added(x.reshape(-1, 4), (0,))[2]) - 2.5e6 * float(np.float32(0.1))) < 1


def test_rows_with_nan_and_infinity():
    x = np.ones((5, 3000))
    x[1, 2000], x[2, 5], x[3, 7], x[3, 2900] = np.nan, np.inf, np.inf, -np.inf
    with choice.always(), np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(reductions.added(x, (1,)), [3000, np.nan, np.inf, np.nan, 3000])
        np.testing.assert_array_equal(reductions.norm(x, 2, (1,), False)[1:4], [np.nan, np.inf, np.inf])


@pytest.mark.parametrize("x", [np.ones((5, 4)).T, np.ones((5, 4), np.int64), np.ones((5, 4)) * 1j, np.ones((5, 8))[:, ::2]])
def test_other_arrays_have_no_kernel_for_rows(x):
    with choice.always():
        assert trailing_sum(x, 1) is None
        np.testing.assert_array_equal(reductions.added(x, (1,)), x.sum(axis=1))


def test_a_sum_does_not_depend_on_the_number_of_threads():
    x = spread_out((3, 200_001), np.float32)
    threads, found = pellucid.get_num_threads(), []
    try:
        for count in (1, 2):
            pellucid.set_num_threads(count)
            with choice.always():
                found.append([reductions.added(x, (1,)), reductions.added(x, (0,)), reductions.total(x)])
    finally:
        pellucid.set_num_threads(threads)
    for one, two in zip(*found, strict=True):
        np.testing.assert_array_equal(one, two)
