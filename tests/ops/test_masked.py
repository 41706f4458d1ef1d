"""Functions under a mask: values as PyTorch 2.13 gives them, the neutral elements, error texts."""

from __future__ import annotations

import numpy as np
import pytest
from tables import assert_gives, assert_refused, rows

import pellucid as t

inf, nan = float("inf"), float("nan")
k = t.masked


def x():
    return t.tensor([[1.0, -2.0, 3.0], [4.0, 0.5, -1.0]])


def n():
    return t.tensor([[3, -1, 2], [5, 4, -6]], dtype=t.int32)


def m():
    return t.tensor([[True, False, True], [False, False, False]])


REDUCED = [
    (lambda: k.sum(x(), 1, mask=m()), "float32", [4, 0]),
    (lambda: k.prod(x(), 1, mask=m()), "float32", [3, 1]),
    (lambda: k.amax(x(), 1, mask=m()), "float32", [3, -inf]),
    (lambda: k.amin(x(), 1, mask=m()), "float32", [1, inf]),
    (lambda: k.mean(x(), 1, mask=m()), "float32", [2, nan]),
    (lambda: k.var(x(), 1, mask=m()), "float32", [2, nan]),
    (lambda: k.var(x(), 1, False, mask=m()), "float32", [1, nan]),
    (lambda: k.std(x(), 1, mask=m()), "float32", [1.414214, nan]),
    (lambda: k.std(x(), correction=0), "float32", 2.089989),
    (lambda: k.var(x() + 1j * x().flip(1), 1, mask=~m()), "complex64", [complex(nan, nan), 13.166667]),
    (lambda: k.var(n(), 1), "float32", [4.333333, 37]),
    (lambda: k.logsumexp(x(), 1, mask=m()), "float32", [3.126928, -inf]),
    (lambda: k.norm(x(), dim=1, mask=m()), "float32", [3.162278, 0]),
    (lambda: k.norm(x(), 1.0, mask=m()), "float32", 4),
    (lambda: k.norm(x(), -inf, 1, mask=m()), "float32", [1, inf]),
    (lambda: k.median(x(), 1, mask=m()), "float32", [1, nan]),
    (lambda: k.median(n(), 1), "int32", [2, 4]),
    (lambda: k.argmax(x(), dim=0, mask=m()), "float32", [0, 0, 0]),
    (lambda: k.argmin(n(), mask=m()), "int32", 2),
    (lambda: k.sum(n(), 1, mask=m()), "int64", [5, 0]),
    (lambda: k.prod(n(), 1, mask=m()), "int64", [6, 1]),
    (lambda: k.amax(n(), 1, mask=m()), "int32", [3, -(2**31)]),
    (lambda: k.amin(n(), 1, mask=m()), "int32", [2, 2**31 - 1]),
    (lambda: k.amax(n(), dtype=t.float32, mask=m()), "float32", 3),
    (lambda: k.sum(n(), dtype=t.float64, mask=m()), "float64", 5),
    (lambda: k.mean(n(), dtype=t.float32, mask=m()), "float32", 2.5),
    (lambda: k.sum(x(), mask=m()[0]), "float32", 7),
    (lambda: k.mean(x(), mask=m()[:, :1]), "float32", 0.666667),
    (lambda: k.sum(x(), (0, 1), keepdim=True, mask=m().int()), "float32", [[4]]),
    (lambda: k.prod(n()), "int64", 720),
    (lambda: k.sum(x(), ()), "float32", 5.5),
]
ALONG = [
    (lambda: k.cumsum(x(), 1, mask=m()), "float32", [[1, 1, 4], [0, 0, 0]]),
    (lambda: k.cumprod(x(), 1, mask=m()), "float32", [[1, 1, 3], [1, 1, 1]]),
    (lambda: k.cumsum(n(), 1, mask=m()), "int32", [[3, 3, 5], [0, 0, 0]]),
    (lambda: k.softmax(x(), 1, mask=m()), "float32", [[0.119203, 0, 0.880797], [nan, nan, nan]]),
    (lambda: k.log_softmax(x(), 1, mask=m()), "float32", [[-2.126928, -inf, -0.126928], [nan, nan, nan]]),
    (lambda: k.softmin(x(), 0, mask=m()), "float32", [[1, nan, 1], [0, nan, 0]]),
    (lambda: k.softmax(x(), 1, dtype=t.float64, mask=~m())[0], "float64", [0, 1, 0]),
    (lambda: k.normalize(x(), 2.0, 1, mask=m()), "float32", [[0.316228, 0, 0.948683], [0, 0, 0]]),
    (lambda: k.logaddexp(x(), x(), input_mask=m()), "float32", [[1.693147, -2, 3.693147], [4, 0.5, -1]]),
]


@pytest.mark.parametrize(("compute", "dtype", "expected"), rows(REDUCED + ALONG))
def test_value(compute, dtype, expected):
    assert_gives(compute(), dtype, expected)


REFUSED = [
    (lambda: k.sum(x(), 2), IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 2)"),
    (lambda: k.sum(x(), (0, -2)), RuntimeError, "appears multiple times in the list of dims"),
    (lambda: k.sum(x(), mask=m()[None]), IndexError, "_input_mask expected broadcastable mask"),
    (lambda: k.softmax(x(), 1, mask=m()[None]), IndexError, "_input_mask expected broadcastable mask"),
    (lambda: k.sum(x(), mask=m()[:, :2]), RuntimeError, "The expanded size of the tensor (3) must match the existing size"),
    (lambda: k.amax(x() > 0, mask=m()), NotImplementedError, "identity of amax on torch.bool input"),
    (lambda: k.amin(x() + 0j, mask=m()), TypeError, "masked amin requires an input with an order"),
    (lambda: k.norm(n(), -inf, mask=m()), AssertionError, "input must be floating point"),
    (lambda: k.norm(n()), RuntimeError, "linalg.vector_norm: Expected a floating point or complex tensor as input."),
    (lambda: k.mean(n()), ValueError, "mean(): Could not infer output dtype. Input dtype must be either a floating point"),
    (lambda: k.mean(x(), dtype=t.int64), ValueError, "Optional dtype must be either a floating point"),
    (lambda: k.median(n(), 1, mask=m()), ValueError, "masked median expects no fully masked out rows if dtype is not"),
    (lambda: k.var(x(), 1, True, correction=1), AssertionError, "Only one of unbiased and correction may be given"),
]


@pytest.mark.parametrize(("call", "kind", "phrase"), rows(REFUSED))
def test_error(call, kind, phrase):
    assert_refused(call, kind, phrase)


REDUCTIONS = ["sum", "prod", "amax", "amin", "mean", "var", "std", "logsumexp", "norm"]


@pytest.mark.parametrize("name", REDUCTIONS)
def test_a_masked_reduction_is_that_of_the_elements_left(name):
    values = t.from_numpy(np.random.default_rng(0).standard_normal(12))
    mask = values > -0.5
    reduce = getattr(k, name)
    np.testing.assert_allclose(reduce(values, mask=mask).numpy(), reduce(values[mask]).numpy(), rtol=1e-12)


@pytest.mark.parametrize("name", REDUCTIONS)
def test_hidden_elements_have_no_gradient(name):
    values = t.from_numpy(np.random.default_rng(0).standard_normal((3, 4))).requires_grad_()
    mask = t.tensor([True, False, True, True])
    reduce = getattr(k, name)
    assert t.autograd.gradcheck(lambda v: reduce(v, 1, mask=mask), values)
    assert t.autograd.gradgradcheck(lambda v: reduce(v, 1, mask=mask), values)
    (slope,) = t.autograd.grad(reduce(values, 1, mask=mask).sum(), values)
    assert not slope[:, 1].any()
