"""Products by the processor's matrix unit, where there is one, against sums in float64; and the switch, everywhere."""

import numpy as np
import pytest

import pellucid
from pellucid.kernels import choice, products

pytest.importorskip("numba")

from pellucid.kernels.compiled import matrix_unit, serial, tiles
from pellucid.kernels.compiled.blas import address

EPSILON = np.finfo(np.float32).eps


def kernel(multiply):
    """alpha A B + start of 2-d arrays by one of the two functions for kernels, A and B transposed if they say so."""

    @serial
    def product(a, a_turned, b, b_turned, start, alpha, out):
        width = np.int64(4)
        shape = out.shape[0], out.shape[1], a.shape[0] if a_turned else a.shape[1]
        row_a, row_b = np.int64(a.strides[0]), np.int64(b.strides[0])
        begin, begin_row = (address(start), np.int64(start.strides[0])) if start.size else (np.int64(0), width)
        multiply(
            shape, address(a), width if a_turned else row_a, row_a if a_turned else width, address(b), width if b_turned else row_b,
            row_b if b_turned else width, begin, begin_row, address(out), np.int64(out.strides[0]), alpha,
        )  # fmt: skip

    return product


by_unit, by_tiles = (kernel(each) for each in (matrix_unit.multiply, tiles.multiply))
NONE = np.empty((0, 0), np.float32)
present = pytest.mark.skipif(not matrix_unit.is_used(), reason="this processor has no matrix unit")


def numbers(*shape, scale=1.0):
    return (np.random.default_rng(sum(shape)).standard_normal(shape) * scale).astype(np.float32)


def error(made, a, b, start=0.0, alpha=1.0):
    """The largest error beside what the terms of a sum add up to without signs, in units of the last place."""
    with np.errstate(all="ignore"):
        a, b = a.astype(np.float64), b.astype(np.float64)
        bound = abs(alpha) * (np.abs(a) @ np.abs(b)) + np.abs(start)
        return np.max(np.abs(made - (alpha * (a @ b) + start)) / bound) / EPSILON


@present
@pytest.mark.parametrize("a_turned", [False, True])
@pytest.mark.parametrize("b_turned", [False, True])
@pytest.mark.parametrize(("m", "k", "n"), [(1, 1, 1), (5, 3, 7), (32, 32, 32), (33, 17, 65), (64, 784, 256), (29, 401, 31), (16, 769, 500)])
def test_it_is_as_exact_as_float32_products_are(m, k, n, a_turned, b_turned):
    a, b, made, other = numbers(m, k), numbers(k, n), np.empty((m, n), np.float32), np.empty((m, n), np.float32)
    given = np.ascontiguousarray(a.T) if a_turned else a, a_turned, np.ascontiguousarray(b.T) if b_turned else b, b_turned
    by_unit(*given, NONE, np.float32(1), made)
    by_tiles(*given, NONE, np.float32(1), other)
    assert error(made, a, b) < max(2.0, 1.5 * error(other, a, b))


@present
@pytest.mark.parametrize("alpha", [1.0, -0.3])
def test_it_begins_with_what_is_added(alpha):
    a, b, start = numbers(70, 500), numbers(500, 90), numbers(1, 90)
    made = np.empty((70, 90), np.float32)
    rows = np.broadcast_to(start, (70, 90))
    by_unit(a, False, b, False, np.ascontiguousarray(rows), np.float32(alpha), made)
    assert error(made, a, b, rows, np.float64(np.float32(alpha))) < 3


@present
@pytest.mark.parametrize("scale", [1e-44, 1e-38, 1e-33, 1e-30, 1e30, 1e37, 3e38])
@pytest.mark.parametrize("side", ["a", "b"])
def test_numbers_of_any_size_keep_their_digits(scale, side):
    a, b = np.clip(numbers(40, 50), -1, 1), np.clip(numbers(50, 60), -1, 1)
    a, b = (a * np.float32(scale), b) if side == "a" else (a, b * np.float32(scale))
    other = np.float32(1e20 if scale < 1 else 1e-20)
    a, b = (a, b * other) if side == "a" else (a * other, b)
    made = np.empty((40, 60), np.float32)
    by_unit(a, False, b, False, NONE, np.float32(1), made)
    assert error(made, a, b) < 2


@present
def test_large_and_small_numbers_in_one_product():
    a, b = numbers(96, 64), numbers(64, 96)
    a[40] *= np.float32(1e-36)
    made = np.empty((96, 96), np.float32)
    by_unit(a, False, b, False, NONE, np.float32(1), made)
    assert error(made, a, b) < 2


@present
@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan])
def test_infinity_and_nan_reach_their_rows_and_columns_alone(value):
    a, b = numbers(96, 500), numbers(500, 70)
    a[40, 3], b[450, 69] = value, value
    made, expected = np.empty((96, 70), np.float32), np.empty((96, 70), np.float32)
    by_unit(a, False, b, False, NONE, np.float32(1), made)
    by_tiles(a, False, b, False, NONE, np.float32(1), expected)
    np.testing.assert_array_equal(np.isnan(made), np.isnan(expected))
    infinite = np.isinf(expected)
    np.testing.assert_array_equal(made[infinite], expected[infinite])
    assert error(np.delete(made[:, :69], 40, 0), np.delete(a, 40, 0), b[:, :69]) < 2


@present
def test_zeros_of_both_signs():
    a, b = np.zeros((64, 64), np.float32), numbers(64, 96)
    made = np.empty((64, 96), np.float32)
    by_unit(a, False, b, False, NONE, np.float32(1), made)
    assert (made == 0).all()


@present
def test_large_products_use_it(monkeypatch):
    """And the result does not depend on how many threads there are."""
    a, b = numbers(300, 400), numbers(400, 500)
    with choice.always():
        made = products.matmul(a, b)
        monkeypatch.setattr(products.matrix_unit, "enabled", False)
        without = products.matmul(a, b)
    assert not np.array_equal(made, without)
    assert max(error(made, a, b), error(without, a, b)) < 4


def test_the_switch():
    a, b = numbers(300, 400), numbers(400, 500)
    switch = pellucid.backends.matrix_unit
    assert switch is products.matrix_unit
    assert switch.enabled
    switch.enabled = False
    try:
        assert not matrix_unit.is_used()
        assert error(pellucid.mm(pellucid.from_numpy(a), pellucid.from_numpy(b)).numpy(), a, b) < 4
    finally:
        switch.enabled = True


def test_float64_goes_to_tiles():
    a, b, made = numbers(40, 50).astype(np.float64), numbers(50, 60).astype(np.float64), np.empty((40, 60))
    width = np.int64(8)

    @serial
    def product(a, b, out):
        row_a, row_b, row = np.int64(a.strides[0]), np.int64(b.strides[0]), np.int64(out.strides[0])
        zero = np.int64(0)
        matrix_unit.multiply((40, 60, 50), address(a), row_a, width, address(b), row_b, width, zero, zero, address(out), row, 1.0)

    product(a, b, made)
    np.testing.assert_allclose(made, a @ b, atol=1e-12)
