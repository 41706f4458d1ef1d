"""Sums of short vectors in PyTorch's order, each product rounded once: held to exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from pellucid.kernels import short_vectors as kernel

RNG = np.random.default_rng(0)
SIZES = [0, 1, 3, 7, 8, 12, 17, 28, 40, 64]

# Which numbers PyTorch adds to which, found by adding a large number, its opposite, and ones (float64, registers of 512 bits):
# a pair is a sum, a list the products that one lane of a register adds up one after the other.
DOTS = {
    3: (([0], [2]), [1]),
    12: ((([0, 8], [4]), ([2, 10], [6])), (([1, 9], [5]), ([3, 11], [7]))),
    28: (
        ((([0, 16, 24], [8]), ([4, 20], [12])), (([2, 18, 26], [10]), ([6, 22], [14]))),
        ((([1, 17, 25], [9]), ([5, 21], [13])), (([3, 19, 27], [11]), ([7, 23], [15]))),
    ),
}


def fused(a, b, c):
    return float(Fraction(a) * Fraction(b) + Fraction(c))


def value(tree, x, y):
    """The dot product added up as a tree says."""
    if isinstance(tree, tuple):
        return value(tree[0], x, y) + value(tree[1], x, y)
    made = 0.0
    for i in tree:
        made = fused(x[i], y[i], made)
    return made


@pytest.fixture(params=["as it is", "without math.fma", "with math.fma"], autouse=True)
def form(request, monkeypatch):
    """Both ways to round once."""
    if request.param != "as it is":
        monkeypatch.setattr(kernel, "fma", None if request.param == "without math.fma" else fused)


@pytest.mark.parametrize("size", DOTS)
def test_the_order_of_a_dot_product(size):
    for _ in range(20):
        x, y = RNG.standard_normal((2, size)) * 10.0 ** RNG.integers(-5, 5, (2, size))
        assert kernel.dot(x, y) == value(DOTS[size], x.tolist(), y.tolist())


@pytest.mark.parametrize("size", SIZES)
def test_dot_products(size):
    x, y = RNG.standard_normal((2, size))
    assert kernel.dot(x, y) == pytest.approx(float(x @ y), abs=1e-13)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (8, 8), (2, 3, 4)])
def test_scaled_sums_are_rounded_once(shape):
    for _ in range(20):
        start, x = RNG.standard_normal((2, *shape)) * 10.0 ** RNG.integers(-5, 5, (2, *shape))
        factor = float(RNG.standard_normal())
        made = kernel.add_scaled(np.asarray(start), np.asarray(x), factor)
        assert made.shape == shape
        expected = [fused(factor, b, a) for a, b in zip(np.ravel(start).tolist(), np.ravel(x).tolist(), strict=True)]
        assert made.ravel().tolist() == expected


def test_the_order_of_a_sum():
    """Eleven numbers: two registers, and what is left goes first."""
    x = (RNG.standard_normal(11) * 10.0 ** RNG.integers(-5, 5, 11)).tolist()
    expected = ((0.0 + x[8]) + x[9]) + x[10]
    for lane in range(4):
        expected += x[lane] + x[lane + 4]
    assert kernel.total(np.array(x)) == expected


@pytest.mark.parametrize("size", [*SIZES, 65, 1000])
def test_sums(size):
    x = RNG.standard_normal(size)
    assert kernel.total(x) == pytest.approx(float(x.sum()), abs=1e-12)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan, 1e308])
def test_large_numbers_infinity_and_nan(odd):
    x, y = np.arange(1.0, 11), np.ones(10)
    x[3] = odd
    np.testing.assert_equal(kernel.dot(x, y), float(x @ y))
    np.testing.assert_array_equal(kernel.add_scaled(y, x, 2.0), y + 2 * x)
    np.testing.assert_equal(kernel.total(x), float(x.sum()))


def test_long_vectors_and_other_dtypes():
    for dtype, size in ((np.float32, 10), (np.float64, 1000)):
        x, y = RNG.standard_normal((2, size)).astype(dtype)
        assert kernel.dot(x, y) == float(x @ y)
        np.testing.assert_array_equal(kernel.add_scaled(x, y, 0.3), x + 0.3 * y)
        assert kernel.add_scaled(x, y, 0.3).dtype == dtype
