"""Compiled activations give what the plain NumPy forms give, in value and for NaN and infinities, whatever the layout."""

from __future__ import annotations

import numpy as np
import pytest

from pellucid.kernels import activations, choice

pytest.importorskip("numba")

NUMBERS = {
    "softplus": (1.7, 2.5), "softplus_backward": (1.7, 2.5), "elu": (1.3, 1.1, 0.7), "elu_backward": (1.3, 1.1, 0.7),
}  # fmt: skip
NAMES = sorted(activations.__all__)
BOUND = {np.float32: 5e-6, np.float64: 1e-14}  # 1 - tanh(x)^2 loses digits, in either form


def operands(name: str, x: np.ndarray) -> tuple:
    """The arguments of a function: a gradient first where it is one, then the point, or a result for those that take it."""
    if not name.endswith(("_backward", "_curvature", "_gradients")):
        return (x,)
    grad = np.linspace(-2, 2, x.size, dtype=x.dtype).reshape(x.shape)
    if name in ("tanh_curvature", "tanh_backward_gradients"):
        return (grad, grad[::-1].copy(), np.tanh(x))
    if name == "tanh_curvature_gradients":
        return (grad, grad[::-1].copy(), grad + 1, np.tanh(x))
    return (grad, np.tanh(x) if name in ("tanh_backward", "sigmoid_backward") else x)


def both(name: str, *arrays) -> tuple[np.ndarray, np.ndarray]:
    """What the compiled and the plain form give; several results as one array."""
    function = getattr(activations, name)
    with choice.always():
        fast = function(*arrays, *NUMBERS.get(name, ()))
    with choice.never(), np.errstate(all="ignore"):
        plain = function(*arrays, *NUMBERS.get(name, ()))
    return (np.stack(fast), np.stack(plain)) if isinstance(plain, tuple) else (fast, plain)


@pytest.mark.parametrize("name", NAMES)
def test_compiled_gives_what_plain_gives(name):
    for dtype, bound in BOUND.items():
        x = np.random.default_rng(0).normal(0, 3, 1003).astype(dtype)
        fast, plain = both(name, *operands(name, x))
        assert fast.dtype == dtype
        np.testing.assert_allclose(fast, plain, rtol=bound, atol=bound)


@pytest.mark.parametrize("name", NAMES)
def test_nan_and_infinity_are_treated_alike(name):
    x = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 3.0, -3.0, 89.0, -89.0, 1e-40] * 3, np.float32)
    if name.startswith("tanh_") or name == "sigmoid_backward":
        x = x[:10]
    fast, plain = both(name, *operands(name, x))
    np.testing.assert_allclose(fast, plain, rtol=2e-6, atol=2e-6)


def test_layouts():
    """In the order of memory of the point; an array with gaps goes the plain way."""
    x = np.random.default_rng(1).normal(size=(6, 8)).astype(np.float32)
    for view in (x.T, x[:, ::2], x[::-1], x[:0]):
        fast, plain = both("silu_backward", np.ones_like(view), view)
        np.testing.assert_allclose(fast, plain, rtol=2e-6)
        assert not view.size or fast.strides == plain.strides


def test_a_broadcast_gradient():
    x = np.random.default_rng(2).normal(size=(6, 8))
    fast, plain = both("gelu_backward", np.broadcast_to(2.0, x.shape), x)
    np.testing.assert_allclose(fast, plain, rtol=1e-13)


def test_other_dtypes_go_the_plain_way():
    x = np.linspace(-1, 1, 9).astype(np.complex128)
    fast, plain = both("sigmoid", x)
    assert fast.dtype == np.complex128
    np.testing.assert_array_equal(fast, plain)


def test_the_lower_tail_of_gelu_keeps_its_digits():
    """x times the area: where 1 + erf(x / sqrt(2)) has no digits left, the area itself still has."""
    from scipy.special import ndtr

    x = np.linspace(-9, -3, 200)
    with choice.always():
        fast = activations.gelu(x)
    np.testing.assert_allclose(fast, x * ndtr(x), rtol=1e-4)
