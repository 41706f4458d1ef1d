"""Arithmetic of large arrays on all threads: NumPy's results to the last bit, for arrays that lie in memory in any way."""

import numpy as np
import pytest

import pellucid
from pellucid.kernels import choice, elementwise

LARGE = elementwise.LARGE
FUNCTIONS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "divide": np.true_divide}
SHAPES = [(LARGE,), (LARGE + 1,), (3, LARGE // 2 + 7), (5 * LARGE - 3,)]
LAYOUTS = {
    "alike": lambda x: x, "turned": lambda x: np.asfortranarray(x), "a gap": lambda x: np.repeat(x, 2, axis=-1)[..., ::2],
    "backwards": lambda x: x[::-1].copy()[::-1], "read only": lambda x: np.broadcast_to(x, x.shape),
}  # fmt: skip


def operands(shape, dtype, seed=0):
    """Two arrays with all kinds of numbers in them: zeros of both signs, infinities, NaN, those that overflow or vanish."""
    a, b = np.random.default_rng(seed).standard_normal((2, *shape)).astype(dtype)
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, np.finfo(dtype).max, np.finfo(dtype).tiny, np.finfo(dtype).smallest_subnormal])
    pairs = np.stack(np.meshgrid(edges, edges)).reshape(2, -1).astype(dtype)
    for array, edge in zip((a, b), pairs, strict=True):
        array.reshape(-1)[: edge.size] = edge
    return a, b


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_numpys_to_the_last_bit(name, shape, dtype):
    a, b = operands(shape, dtype)
    made = getattr(elementwise, name)(a, b)
    assert made.dtype == dtype
    np.testing.assert_array_equal(made.view(f"u{made.itemsize}"), FUNCTIONS[name](a, b).view(f"u{made.itemsize}"))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_operands_lie_in_memory_in_any_way(name, layout):
    a, b = operands((4, LARGE // 2), np.float32)
    made = getattr(elementwise, name)(LAYOUTS[layout](a), b)
    np.testing.assert_array_equal(made, FUNCTIONS[name](a, b))


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_broadcasting_and_other_dtypes_are_numpys(name):
    a, b = operands((4, LARGE // 2), np.float32)
    np.testing.assert_array_equal(getattr(elementwise, name)(a, b[:1]), FUNCTIONS[name](a, b[:1]))
    whole = np.arange(1, 2 * LARGE)
    np.testing.assert_array_equal(getattr(elementwise, name)(whole, whole), FUNCTIONS[name](whole, whole))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_adding_in_place(dtype):
    total, more = np.random.default_rng(1).standard_normal((2, LARGE + 5)).astype(dtype)
    expected = total + more
    elementwise.add_to(total, more)
    np.testing.assert_array_equal(total, expected)
    elementwise.add_to(total, total)
    np.testing.assert_array_equal(total, expected + expected)


def test_large_tensors_are_computed_so_and_small_ones_are_not(monkeypatch):
    pytest.importorskip("numba")
    asked = []
    monkeypatch.setattr(elementwise, "compiled", lambda *arguments: asked.append(arguments[0]) or choice.compiled(*arguments))
    small, large = pellucid.ones(LARGE - 1), pellucid.ones(LARGE)
    for x in (small, large):
        for result in (x + x, x - x, x * x, x / x):
            assert result.shape == x.shape
    assert asked == ["elementwise"] * 4


def test_gradients_of_large_tensors_are_added_up():
    x = pellucid.linspace(-1, 1, LARGE + 1, requires_grad=True)
    y = x * 1  # not a leaf: its three gradients meet in the engine
    (y * 2 + y * 3 + y.square()).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 5 + 2 * x.detach().numpy(), rtol=1e-6)
