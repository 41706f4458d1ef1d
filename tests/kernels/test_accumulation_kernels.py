"""Compiled accumulation gives what `numpy.add.at` gives, bit for bit, on any number of threads and in any layout."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import pellucid
from pellucid.kernels import accumulation, choice

pytest.importorskip("numba")


@pytest.fixture(params=[1, 2, 5])
def threads(request, monkeypatch):
    """Work shared out in so many parts."""
    from pellucid.kernels.compiled import accumulation as fast

    monkeypatch.setattr(fast, "get_threads", lambda: request.param)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("size", "width", "count"), [(7, 100, 50), (50, 3, 400), (3, 17, 9), (1, 2, 5), (40, 64, 1), (900, 33, 400)])
def test_rows(threads, dtype, size, width, count):
    rng = np.random.default_rng(0)
    index, rows = rng.integers(0, size, count), rng.normal(size=(width, count)).astype(dtype).T
    wanted = np.zeros((size, width), dtype)
    np.add.at(wanted, index, rows)
    with choice.always():
        found = accumulation.add_rows(size, index.astype(np.int32), rows, rows.dtype, (width,))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", [choice.always, choice.never])
@pytest.mark.parametrize("starts", [[0, 3, 3, 17], [0], [0, 20], [0, 0, 20, 20]])
def test_bags(threads, dtype, form, starts):
    """Sums over bags, empty ones among them, and the transpose: each row of a bag's sum goes to all its places."""
    rng = np.random.default_rng(0)
    size, width, index = 50, 7, rng.integers(0, 50, 20)
    table, grad = rng.normal(size=(size, width)).astype(dtype), rng.normal(size=(len(starts), width)).astype(dtype)
    bounds = [*starts, len(index)]
    bags = [slice(*pair) for pair in itertools.pairwise(bounds)]
    sums, back = np.zeros((len(bags), width), dtype), np.zeros((size, width), dtype)
    for bag, places in enumerate(bags):
        for place in index[places]:
            sums[bag] += table[place]
            back[place] += grad[bag]
    starts = np.array(starts)
    with form():
        np.testing.assert_array_equal(accumulation.bag_sums(table, index, starts), sums)
        np.testing.assert_array_equal(accumulation.bag_sums(np.asfortranarray(table), index.astype(np.int32), starts), sums)
        np.testing.assert_array_equal(accumulation.add_bags(size, index, starts, grad), back)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("shape", [(4, 5, 6), (1, 30, 1), (6, 2, 3)])
def test_single_elements_along_a_dimension(threads, shape, dim):
    rng = np.random.default_rng(1)
    sizes = list(shape)
    sizes[dim] = 11
    index, values = rng.integers(0, shape[dim], sizes), rng.normal(size=sizes[::-1]).astype(np.float32).T
    start = rng.normal(size=shape).astype(np.float32)
    wanted, found = start.copy(), start.copy()
    np.add.at(wanted, accumulation.places_of(index, dim), values)
    with choice.always():
        accumulation.add_along(found, dim, index, values)
    np.testing.assert_array_equal(found, wanted)


def test_an_index_smaller_than_the_result_goes_the_plain_way():
    found = np.zeros((3, 4))
    with choice.always():
        accumulation.add_along(found, 0, np.array([[2, 0], [2, 1]]), np.array([[1.0, 2], [3, 4]]))
    np.testing.assert_array_equal(found, [[0, 2, 0, 0], [0, 4, 0, 0], [4, 0, 0, 0]])


def test_nothing_to_add():
    with choice.always():
        found = accumulation.add_rows(3, np.zeros(0, np.int64), np.zeros((0, 2)), np.dtype(np.float64), (2,))
    np.testing.assert_array_equal(found, np.zeros((3, 2)))


def test_nan_and_infinity_stay_where_they_are_added():
    rows = np.array([[1, np.nan], [np.inf, 2], [-np.inf, 3]])
    with choice.always():
        found = accumulation.add_rows(2, np.array([0, 1, 1]), rows, rows.dtype, (2,))
    np.testing.assert_array_equal(found, [[1, np.nan], [np.nan, 5]])


def test_operators_that_use_it():
    """The gradients of embedding and of gather, and scatter_add and index_add, are the same compiled as plain."""
    rng = np.random.default_rng(2)
    index = pellucid.tensor(rng.integers(0, 6, (9, 5)))

    def gradients():
        table = pellucid.tensor(np.linspace(-1, 1, 30).reshape(6, 5), requires_grad=True)
        total = pellucid.nn.functional.embedding(index, table).sin().sum() + table.gather(0, index).cos().sum()
        source = index.double()
        total = total + (table.scatter_add(0, index, source) ** 2).sum() + (table.index_add(0, index[:, 0], source) ** 2).sum()
        total.backward()
        return table.grad.numpy()

    with choice.always():
        fast = gradients()
    with choice.never():
        np.testing.assert_allclose(fast, gradients(), rtol=1e-12)
