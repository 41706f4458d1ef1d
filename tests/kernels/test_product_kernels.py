"""Compiled products of matrices against NumPy's."""

import numpy as np
import pytest

from pellucid.kernels import choice, products

pytest.importorskip("numba")

BOUNDS = {np.float32: 2e-5, np.float64: 1e-13}  # of the error, beside the largest element


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param


@pytest.fixture(autouse=True)
def compiled(monkeypatch):
    """Compiled forms for every size."""
    monkeypatch.setattr(products, "SMALL", 0)
    with choice.always():
        yield


def numbers(dtype, *shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(dtype)


def close(made, expected):
    assert made.shape == expected.shape
    assert made.dtype == expected.dtype
    bound = BOUNDS[made.dtype.type] * np.abs(expected).max()
    np.testing.assert_allclose(made, expected, rtol=0, atol=bound)


@pytest.mark.parametrize(("m", "k", "n"), [(9, 17, 8), (300, 17, 41), (1, 170, 200), (300, 170, 1), (200, 1, 7), (64, 1030, 96)])
@pytest.mark.parametrize("turned", ["none", "first", "second", "both"])
def test_two_matrices(dtype, m, k, n, turned):
    a = numbers(dtype, k, m).T if turned in ("first", "both") else numbers(dtype, m, k)
    b = numbers(dtype, n, k).T if turned in ("second", "both") else numbers(dtype, k, n)
    close(products.matmul(a, b), np.matmul(a, b))


@pytest.mark.parametrize("k", [1, 15, 16, 17, 100, 777])
@pytest.mark.parametrize("m", [2, 3, 4, 5, 7, 8, 9])
def test_few_rows_by_columns_that_lie_as_rows(dtype, m, k):
    """With each number of columns that is made otherwise; and the other way round; with an addend and a factor."""
    for n in (2, 3, 4, 5, 6, 7, 15, 16, 41):
        a, b, addend = numbers(dtype, m, k), numbers(dtype, n, k).T, numbers(dtype, m, n)
        close(products.matmul(a, b), np.matmul(a, b))
        close(products.matmul(b.T, a.T), np.matmul(b.T, a.T))
        close(products.matmul_add(a, b, addend, 0.5), addend + dtype(0.5) * np.matmul(a, b))
        close(products.matmul_add(a, b, addend[0]), addend[0] + np.matmul(a, b))


def test_few_rows_with_nan_and_infinity(dtype):
    a, b = np.ones((3, 50), dtype), np.ones((50, 6), dtype, order="F")
    a[0, 3], b[20, 4] = np.nan, np.inf
    made = products.matmul(a, b)
    assert np.isnan(made[0]).all()
    np.testing.assert_array_equal(made[1:], [[50, 50, 50, 50, np.inf, 50]] * 2)


def test_vectors(dtype):
    a, v, w = numbers(dtype, 90, 70), numbers(dtype, 70), numbers(dtype, 90)
    close(products.matmul(a, v), a @ v)
    close(products.matmul(a.T, w), a.T @ w)
    close(products.matmul(w, a), w @ a)
    close(products.matmul(a, numbers(dtype, 70, 3)[:, 1:2]), a @ numbers(dtype, 70, 3)[:, 1:2])
    close(products.matmul(numbers(dtype, 4, 90, 70), v), numbers(dtype, 4, 90, 70) @ v)


def test_parts_of_arrays_are_read_where_they_lie(dtype):
    whole = numbers(dtype, 40, 60)
    close(products.matmul(whole[3:33, 5:45], whole[:40, 50:]), whole[3:33, 5:45] @ whole[:40, 50:])
    close(products.matmul(whole[::2, ::3], whole[:20].copy()), whole[::2, ::3] @ whole[:20])
    close(products.matmul(whole[::-1], whole.T), whole[::-1] @ whole.T)
    close(products.matmul(np.broadcast_to(whole[:1], (30, 60)), whole.T), np.broadcast_to(whole[:1], (30, 60)) @ whole.T)


def test_heads_of_a_packed_projection(dtype):
    queries, keys, values = numbers(dtype, 4, 33, 3, 6, 16).transpose(2, 0, 3, 1, 4)
    scores = products.matmul(queries, keys.swapaxes(-1, -2))
    close(scores, queries @ keys.swapaxes(-1, -2))
    close(products.matmul(scores, values), scores @ values)


@pytest.mark.parametrize(("first", "second"), [
    ((5, 4, 3), (5, 3, 2)), ((5, 1, 3, 4, 3), (2, 1, 3, 5)), ((1, 4, 3), (7, 3, 2)), ((4, 3), (7, 3, 2)), ((6, 5, 4, 3), (3, 2)),
    ((2, 3, 2, 3, 4, 5), (3, 1, 3, 5, 2)), ((3, 1, 4), (3, 4, 1)), ((20, 64, 64), (20, 64, 64)), ((3, 100, 80), (3, 80, 90)),
])  # fmt: skip
def test_batches_broadcast(dtype, first, second):
    a, b = numbers(dtype, *first), numbers(dtype, *second)
    close(products.matmul(a, b), np.matmul(a, b))


@pytest.mark.parametrize(("m", "k", "n"), [(10, 30000, 20), (64, 10000, 64), (1, 5000, 3)])
def test_long_sums_are_split_and_always_alike(dtype, m, k, n):
    a, b = numbers(dtype, k, m).T, numbers(dtype, k, n)
    made = products.matmul(a, b)
    close(made, (a.astype(np.float64) @ b).astype(dtype))
    np.testing.assert_array_equal(made, products.matmul(a, b))


def test_a_long_sum_does_not_depend_on_the_number_of_threads(dtype):
    kernels = pytest.importorskip("pellucid.kernels.compiled")
    a, b, before = numbers(dtype, 9000, 12).T, numbers(dtype, 9000, 9), kernels.get_threads()
    made = products.matmul(a, b)
    kernels.set_threads(1)
    try:
        np.testing.assert_array_equal(made, products.matmul(a, b))
    finally:
        kernels.set_threads(before)


@pytest.mark.parametrize("shape", [(), (41,), (1,), (300, 41), (300, 1), (1, 41)])
@pytest.mark.parametrize("alpha", [1, 0.5])
def test_addend(dtype, shape, alpha):
    a, b, addend = numbers(dtype, 300, 17), numbers(dtype, 17, 41), np.asarray(numbers(dtype, *shape), dtype)
    close(products.matmul_add(a, b, addend, alpha), (alpha * (a @ b) + addend).astype(dtype))


@pytest.mark.parametrize("shape", [(41,), (5, 30, 41), (30, 41), (5, 1, 1), (1, 30, 1), (5, 30, 1)])
def test_addend_of_a_batch(dtype, shape):
    a, b, addend = numbers(dtype, 5, 30, 17), numbers(dtype, 5, 17, 41), numbers(dtype, *shape)
    close(products.matmul_add(a, b, addend), a @ b + addend)


def test_rows_of_all_leading_dimensions_are_one_product(dtype):
    a, b, bias = numbers(dtype, 3, 5, 40), numbers(dtype, 60, 40), numbers(dtype, 60)
    close(products.matmul_add(a, b.T, bias), a @ b.T + bias)


def test_nan_and_infinity_pass(dtype):
    a, b = numbers(dtype, 40, 30), numbers(dtype, 30, 20)
    a[3, 4], a[5, 6], b[7, 8] = np.nan, np.inf, -np.inf
    with np.errstate(invalid="ignore"):
        expected = a @ b
    made = products.matmul(a, b)
    np.testing.assert_array_equal(np.isnan(made), np.isnan(expected))
    np.testing.assert_array_equal(made[np.isinf(expected)], expected[np.isinf(expected)])


def test_one_number_that_lies_alone(dtype):
    a, whole = numbers(dtype, 500, 1), numbers(dtype, 30, 20)
    close(products.matmul(a, whole[3:4, 5:6]), a * whole[3, 5])
    close(products.matmul(whole[3:4, 5:6], a.T), a.T * whole[3, 5])


@pytest.mark.parametrize(("first", "second"), [((300, 1), (1, 40)), ((5, 30, 1), (5, 1, 7)), ((30, 1), (4, 1, 7)), ((3, 1, 2, 1), (5, 1, 4))])
def test_a_column_by_a_row(dtype, first, second, monkeypatch):
    monkeypatch.setattr(products, "SMALL", 1 << 18)
    a, b = numbers(dtype, *first), numbers(dtype, *second)
    np.testing.assert_array_equal(products.matmul(a, b), np.matmul(a, b))
    close(products.matmul_add(a, b, numbers(dtype, second[-1]), 0.5), (0.5 * np.matmul(a, b) + numbers(dtype, second[-1])).astype(dtype))


def test_what_memory_held_before_does_not_count(dtype):
    big = np.full((200, 200), np.nan, dtype)  # what a freed block of memory may hold
    del big
    a, b = numbers(dtype, 200, 3), numbers(dtype, 3, 200)
    close(products.matmul(a, b), a @ b)
    close(products.matmul(a[:1], b), a[:1] @ b)


@pytest.mark.parametrize(("first", "second"), [((0, 3), (3, 4)), ((2, 0), (0, 4)), ((2, 3), (3, 0)), ((0, 2, 3), (0, 3, 4))])
def test_empty(dtype, first, second):
    made = products.matmul(np.ones(first, dtype), np.ones(second, dtype))
    np.testing.assert_array_equal(made, np.matmul(np.ones(first), np.ones(second)))


def test_other_dtypes_are_left_to_numpy():
    whole = np.arange(12).reshape(3, 4)
    np.testing.assert_array_equal(products.matmul(whole, whole.T), whole @ whole.T)
    np.testing.assert_array_equal(products.matmul(whole * 1j, whole.T), whole * 1j @ whole.T)
    np.testing.assert_array_equal(products.matmul_add(whole, whole.T, np.int64(2), 3), 3 * (whole @ whole.T) + 2)


def test_an_array_that_may_not_be_written_is_read(dtype):
    a, b = numbers(dtype, 40, 30), numbers(dtype, 30, 20)
    a.flags.writeable = False
    close(products.matmul(a, b), a @ b)


@pytest.mark.parametrize(("count", "m", "n", "k", "threads"), [
    (1, 784, 256, 64, 2), (1, 64, 256, 784, 16), (1, 1, 4096, 4096, 8), (3, 500, 500, 500, 8), (48, 128, 128, 64, 4), (1, 8, 8, 8, 64),
    (1, 64, 64, 100000, 8), (5, 3, 3, 3, 2), (1, 512, 512, 512, 4),
])  # fmt: skip
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("turned", [0, 1])
def test_blocks_cover_the_result_and_are_worth_a_thread(count, m, n, k, threads, turned, unit):
    kernels = pytest.importorskip("pellucid.kernels.compiled.products")
    rows, columns, parts, by_unit = kernels._blocks(count, m, n, k, threads, turned, 0, unit)
    assert 1 <= rows <= m
    assert 1 <= columns <= n
    assert parts == 1 or (parts <= 16 and count == 1 and k // parts >= kernels.LEAST_DEPTH)
    assert m * n * k // (rows * columns * parts) >= kernels.LEAST_BLOCK or rows * columns * parts == 1
    if count == 1 and m * n * k >= threads * kernels.LEAST_BLOCK * 4 and min(m, n) > 256:
        assert rows * columns == threads * (1 if turned or by_unit or m * n * k < kernels.FINE else 2)
    assert not by_unit or (unit and min(m // rows, n // columns) >= kernels.ROWS_OF_UNIT)


@pytest.mark.parametrize("turned", ["none", "first", "second", "both"])
@pytest.mark.parametrize("rows", [*range(2, 16), 29, 64, 65, 601])
def test_every_height_of_a_tile(dtype, rows, turned):
    """Depths and columns that end inside, at the end and after the end of a tile, a stretch and a register."""
    for depth, columns in ((1, 2), (16, 33), (511, 31), (513, 64), (40, 100), (70, 130)):
        a = numbers(dtype, depth, rows).T if turned in ("first", "both") else numbers(dtype, rows, depth)
        b = numbers(dtype, columns, depth).T if turned in ("second", "both") else numbers(dtype, depth, columns)
        close(products.matmul(a, b), np.matmul(a, b))


@pytest.mark.parametrize("addend", [(47,), (1, 47), (70, 1), (70, 47), (1, 1)])
@pytest.mark.parametrize("alpha", [1, -0.5])
def test_tiles_begin_with_the_addend(dtype, addend, alpha):
    a, b, d = numbers(dtype, 70, 600), numbers(dtype, 600, 47), numbers(dtype, *addend)
    before = d.copy()
    close(products.matmul_add(a, b, d, alpha), d + dtype(alpha) * (a @ b))
    np.testing.assert_array_equal(d, before)


def test_tiles_keep_nan_and_infinity_in_their_rows_and_columns(dtype):
    a, b = numbers(dtype, 30, 40), numbers(dtype, 40, 50)
    a[3, 5], b[7, 49] = np.nan, np.inf
    made = products.matmul(a, b)
    assert np.isnan(made[3]).all()
    assert not np.isfinite(made[:, 49]).any()
    assert np.isfinite(np.delete(np.delete(made, 3, 0), 49, 1)).all()
