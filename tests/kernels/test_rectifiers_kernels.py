"""relu and its gradient, compiled, give exactly what the plain form gives."""

from __future__ import annotations

import numpy as np
import pytest

from pellucid.kernels import rectifiers as kernel
from pellucid.kernels.choice import always, never

DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])
SHAPES = pytest.mark.parametrize("shape", [(), (0,), (1,), (7, 5), (3, 40000)])
SPECIAL = [-1.0, -0.0, 0.0, 2.0, np.nan, np.inf, -np.inf, 5e-324]


def in_both_forms(function):
    with always():
        fast = np.asarray(function())
    with never():
        plain = np.asarray(function())
    assert (fast.shape, fast.dtype) == (plain.shape, plain.dtype)
    np.testing.assert_array_equal(fast, plain)
    np.testing.assert_array_equal(np.signbit(fast), np.signbit(plain))


@DTYPES
@SHAPES
def test_relu(shape, dtype):
    x = np.random.default_rng(0).standard_normal(shape).astype(dtype)
    in_both_forms(lambda: kernel.relu(np.asarray(x)))


@DTYPES
@SHAPES
@pytest.mark.parametrize("low", [0, -0.5])
def test_gradient(shape, dtype, low):
    rng = np.random.default_rng(0)
    x, grad = (np.asarray(rng.standard_normal(shape).astype(dtype)) for _ in range(2))
    in_both_forms(lambda: kernel.pass_above(grad, x, low))


@DTYPES
@SHAPES
def test_gradient_between_bounds(shape, dtype):
    rng = np.random.default_rng(0)
    x, grad = (np.asarray(rng.standard_normal(shape).astype(dtype)) for _ in range(2))
    in_both_forms(lambda: kernel.pass_inside(grad, x, -0.5, 0.75))


@DTYPES
@SHAPES
def test_between_bounds(shape, dtype):
    x = np.asarray(np.random.default_rng(0).standard_normal(shape).astype(dtype))
    in_both_forms(lambda: kernel.between(x, -0.5, 0.75))


@DTYPES
def test_special_values(dtype):
    x = np.array(SPECIAL * 9).astype(dtype)
    in_both_forms(lambda: kernel.relu(x))
    in_both_forms(lambda: kernel.pass_above(x, x, 0))
    in_both_forms(lambda: kernel.pass_inside(x, x, 0, 2.0))
    in_both_forms(lambda: kernel.between(x, 0, 2.0))
    in_both_forms(lambda: kernel.between(x, -np.inf, 0))
    in_both_forms(lambda: kernel.pass_above(x[::-1].copy(), x, 2.0))


def test_other_orders_of_memory_and_shapes_that_broadcast():
    x = np.random.default_rng(0).standard_normal((4, 6))
    in_both_forms(lambda: kernel.relu(x.T))
    in_both_forms(lambda: kernel.pass_above(x.T, x.T.copy(), 0))
    in_both_forms(lambda: kernel.pass_above(np.broadcast_to(x[0], x.shape), x, 0))
    in_both_forms(lambda: kernel.pass_above(x[0], x, 0))
