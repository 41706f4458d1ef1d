"""Compiled pooling gives what the plain form gives: windows that overlap, lie apart, hang over the border; NaN, ties, infinities."""

from __future__ import annotations

import numpy as np
import pytest

from pellucid.kernels import pooling as kernel
from pellucid.kernels.choice import always, never

# name: (shape, kernel, stride, padding, dilation)
CASES = {
    "one dimension": ((3, 7), (2,), (2,), (0,), (1,)),
    "steps longer than windows": ((4, 9), (2,), (4,), (1,), (1,)),
    "fours": ((2, 3, 8, 10), (2, 2), (2, 2), (0, 0), (1, 1)),
    "fours with a rest": ((2, 3, 9, 7), (2, 2), (2, 2), (0, 0), (1, 1)),
    "overlapping": ((2, 3, 9, 8), (3, 3), (2, 2), (1, 1), (1, 1)),
    "steps of one": ((5, 6, 40), (3, 3), (1, 1), (1, 1), (1, 1)),
    "dilated": ((2, 9, 8), (3, 2), (1, 3), (1, 0), (2, 1)),
    "three dimensions": ((2, 5, 6, 7), (2, 3, 2), (2, 1, 2), (1, 1, 0), (1, 1, 1)),
    "eights": ((2, 3, 4, 8, 10), (2, 2, 2), (2, 2, 2), (0, 0, 0), (1, 1, 1)),
    "eights with a rest": ((2, 3, 5, 9, 7), (2, 2, 2), (2, 2, 2), (0, 0, 0), (1, 1, 1)),
    "fours in depth": ((3, 4, 6, 6), (1, 2, 2), (1, 2, 2), (0, 0, 0), (1, 1, 1)),
}
WINDOWS = [pytest.param(*case, id=name) for name, case in CASES.items()]
UNDILATED = [pytest.param(*case[:4], id=name) for name, case in CASES.items() if name != "dilated"]
CEIL = pytest.mark.parametrize("ceil", [False, True], ids=["floor", "ceil"])
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def image(kind: str, shape, dtype):
    rng = np.random.default_rng(0)
    x = rng.standard_normal(shape).astype(dtype)
    if kind == "ties":
        return np.round(x)
    if kind == "NaN":
        x[rng.random(shape) < 0.3] = np.nan
    if kind == "infinities":
        x[rng.random(shape) < 0.6] = -np.inf
        x[..., 0] = np.inf
    return x


def in_both_forms(function, *arguments):
    """What both forms give, which must be the same, bit for bit where nothing is divided."""
    with always():
        fast = function(*arguments)
    with never():
        plain = function(*arguments)
    assert (fast.shape, fast.dtype) == (plain.shape, plain.dtype)
    np.testing.assert_allclose(fast, plain, rtol=1e-6 if plain.dtype == np.float32 else 1e-14, atol=1e-6)
    return plain


@CEIL
@DTYPES
@pytest.mark.parametrize("kind", ["distinct", "ties", "NaN", "infinities"])
@pytest.mark.parametrize(("shape", "size", "stride", "padding", "dilation"), WINDOWS)
def test_maxima_their_places_and_gradients(shape, size, stride, padding, dilation, kind, dtype, ceil):
    x = image(kind, shape, dtype)
    places = kernel.output_size(shape[-len(size) :], size, stride, padding, dilation, ceil)
    windows = (places, size, stride, padding, dilation)
    best = in_both_forms(kernel.maxima, x, *windows)
    in_both_forms(kernel.maxima_indices, x, best, *windows)
    grad = np.random.default_rng(1).standard_normal(best.shape).astype(dtype)
    in_both_forms(kernel.maxima_gradient, grad, x, best, *windows)


@CEIL
@DTYPES
@pytest.mark.parametrize(("include_pad", "divisor"), [(True, None), (False, None), (True, 5)])
@pytest.mark.parametrize(("shape", "size", "stride", "padding"), UNDILATED)
def test_means_and_gradients(shape, size, stride, padding, include_pad, divisor, dtype, ceil):
    x, ones = image("distinct", shape, dtype), (1,) * len(size)
    places = kernel.output_size(shape[-len(size) :], size, stride, padding, ones, ceil)
    made = in_both_forms(kernel.average, x, places, size, stride, padding, include_pad, divisor)
    grad = np.random.default_rng(1).standard_normal(made.shape).astype(dtype)
    in_both_forms(kernel.average_gradient, grad, shape[-len(size) :], size, stride, padding, include_pad, divisor)


def test_images_in_another_order_of_memory():
    x = image("distinct", (6, 8, 5, 4), np.float64).transpose(3, 2, 0, 1)
    windows = ((3, 4), (2, 2), (2, 2), (0, 0), (1, 1))
    best = in_both_forms(kernel.maxima, x, *windows)
    grad = np.broadcast_to(np.arange(4.0), best.shape)
    in_both_forms(kernel.maxima_gradient, grad, x, best, *windows)


def test_no_images():
    windows = ((2,), (2,), (2,), (0,), (1,))
    with always():
        assert kernel.maxima(np.empty((0, 5)), *windows).shape == (0, 2)
        assert kernel.average(np.empty((0, 5)), *windows[:4], True, None).shape == (0, 2)


def test_integers_take_the_plain_form():
    x = np.arange(8).reshape(1, 8)
    with always():
        assert kernel.maxima(x, (4,), (2,), (2,), (0,), (1,)).tolist() == [[1, 3, 5, 7]]


def test_results_own_their_memory():
    """A gradient that is a view would be copied before it is kept."""
    x, windows = image("distinct", (4, 6, 6), np.float32), ((3, 3), (2, 2), (2, 2), (0, 0), (1, 1))
    with always():
        best = kernel.maxima(x, *windows)
        grads = [kernel.maxima_gradient(best, x, best, *windows), kernel.average_gradient(best, (6, 6), *windows[1:4], True, None)]
    assert all(array.base is None for array in (best, *grads))
