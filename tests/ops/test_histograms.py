"""Histograms in several dimensions: values as PyTorch 2.13 gives them, error texts."""

from __future__ import annotations

import numpy as np
import pytest
from tables import assert_gives, assert_refused, rows

import pellucid as t

inf, nan = float("inf"), float("nan")
counted = t.histogramdd


def p():
    return t.tensor([[0.0, 0.0], [1.0, 2.0], [0.25, 2.0], [0.75, 0.5], [0.5, 1.0]])


def w():
    return t.tensor([1.0, 2.0, 3.0, 4.0, 5.0])


def edges(*values):
    return t.tensor(values)


VALUES = [
    (lambda: counted(p(), 2), [[1, 1], [1, 2]], [[0, 0.5, 1], [0, 1, 2]]),
    (lambda: counted(p(), [2, 1], weight=w()), [[4], [11]], [[0, 0.5, 1], [0, 2]]),
    (lambda: counted(p(), [2, 2], density=True), [[0.4, 0.4], [0.4, 0.8]], [[0, 0.5, 1], [0, 1, 2]]),
    (lambda: counted(p(), [1, 2], range=[0.0, 0.5, 0.0, 1.0]), [[1, 1]], [[0, 0.5], [0, 0.5, 1]]),
    (lambda: counted(p(), [edges(0.0, 0.5, 1.0), edges(0.0, 2.0)]), [[2], [3]], [[0, 0.5, 1], [0, 2]]),
    (lambda: counted(p(), [edges(0.0, 2.0, 1.0), edges(0.0, 2.0)]), [[5], [0]], [[0, 2, 1], [0, 2]]),
    (lambda: counted(t.ones(2, 2), [2, 1]), [[0], [2]], [[0.5, 1, 1.5], [0.5, 1.5]]),
    (lambda: counted(t.zeros(0, 2), [2, 1]), [[0], [0]], [[0, 0.5, 1], [0, 1]]),
    (lambda: counted(p().reshape(5, 1, 2), 2), [[1, 1], [1, 2]], [[0, 0.5, 1], [0, 1, 2]]),
]


@pytest.mark.parametrize(("compute", "hist", "bin_edges"), rows(VALUES))
def test_value(compute, hist, bin_edges):
    found = compute()
    assert_gives(found.hist, "float32", hist)
    assert isinstance(found.bin_edges, tuple)
    for each, expected in zip(found.bin_edges, bin_edges, strict=True):
        assert_gives(each, "float32", expected)


REFUSED = [
    (lambda: counted(p()[0], [1, 1]), RuntimeError, "input tensor should have at least 2 dimensions"),
    (lambda: counted(p().long(), 2), NotImplementedError, "\"histogramdd\" not implemented for 'Long'"),
    (lambda: counted(p(), [2]), RuntimeError, "The size of bins must be equal to the innermost dimension of the input"),
    (lambda: counted(p(), "2"), TypeError, "argument 'bins' must be int, tuple of ints or tuple of Tensors, not str"),
    (lambda: counted(p(), [2, edges(0.0, 1.0)]), TypeError, "argument 'bins' must be int, tuple of ints"),
    (lambda: counted(p(), [0, 2]), RuntimeError, "bins must be > 0, but got 0 for dimension 0"),
    (lambda: counted(p(), [edges(0.0, 1.0), edges(1.0)]), RuntimeError, "bins must be > 0, but got 0 for dimension 1"),
    (lambda: counted(p(), 2, range=[0, 1]), RuntimeError, "a 2-dimensional histogram range should have 4 elements, but got 2"),
    (lambda: counted(p(), 2, range=[1, 0, 0, 1]), RuntimeError, "but got min 1 max 0 for dimension 0"),
    (lambda: counted(p(), 2, range=[0, 1, 0, inf]), RuntimeError, "dimension 1's range [0, inf] is not finite"),
    (lambda: counted(p() * nan, 2), RuntimeError, "dimension 0's range [nan, nan] is not finite"),
    (lambda: counted(p(), [t.zeros(2, 2)] * 2), RuntimeError, "bins tensor should have one dimension, but got 2 dimensions"),
    (lambda: counted(p(), [t.zeros(0)] * 2), RuntimeError, "bins tensor should have at least 1 element, but got 0 elements"),
    (
        lambda: counted(p(), [edges(0.0, 1.0).double()] * 2),
        RuntimeError,
        "but got input with dtype float and bins for dimension 0 with dtype double",
    ),
    (lambda: counted(p(), 2, weight=w()[:3]), RuntimeError, "but got input with shape [5, 2] and weight with shape [3]"),
    (lambda: counted(p(), 2, weight=w().double()), RuntimeError, "but got input(float), and weight(double)"),
]


@pytest.mark.parametrize(("call", "kind", "phrase"), rows(REFUSED))
def test_error(call, kind, phrase):
    assert_refused(call, kind, phrase)


def test_every_point_is_counted_once():
    points = t.from_numpy(np.random.default_rng(0).standard_normal((500, 3)))
    assert counted(points, [4, 5, 6]).hist.sum().item() == 500
    marginal = counted(points, [4, 5, 6]).hist.sum((1, 2))
    np.testing.assert_array_equal(marginal.numpy(), t.histogram(points[:, 0], 4).hist.numpy())
