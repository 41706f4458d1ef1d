"""Ufuncs of large arrays on all threads: NumPy's results to the last bit, for arrays that lie in memory in any way."""

import numpy as np
import pytest

import pellucid
from pellucid.autograd.registry import OPERATORS
from pellucid.kernels import choice, elementwise

LARGE = elementwise.LARGE
FUNCTIONS = {op.ufunc.__name__: op.ufunc for op in OPERATORS.values() if op.ufunc is not None and op.ufunc.nin <= 2}
ARITHMETIC = ["add", "subtract", "multiply", "divide", "less", "arctan2"]
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


def bits(array):
    return np.ascontiguousarray(array).view(f"u{array.itemsize}")


def applied(ufunc, *arrays):
    return (elementwise.apply if ufunc.nin == 1 else elementwise.apply_to_two)(ufunc, *arrays[: ufunc.nin])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_results_are_numpys_to_the_last_bit(name, dtype):
    ufunc = FUNCTIONS[name]
    for shape in SHAPES:
        a, b = operands(shape, dtype)
        made, expected = applied(ufunc, a, b), ufunc(*(a, b)[: ufunc.nin])
        assert made.dtype == expected.dtype
        np.testing.assert_array_equal(bits(made), bits(expected))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_loop_is_found_where_numpy_has_one(name, dtype):
    compiled = pytest.importorskip("pellucid.kernels.compiled.elementwise")
    kind, ufunc = np.dtype(dtype).char, FUNCTIONS[name]
    there = [signature for signature in ufunc.types if signature.startswith(kind * ufunc.nin + "->")]
    found = compiled.loop_of(ufunc, kind)
    assert found is not None if there else found is None
    if there:
        assert found[2].char == there[0][-1]


def test_a_ufunc_that_looks_different_is_left_to_numpy(monkeypatch):
    compiled = pytest.importorskip("pellucid.kernels.compiled.elementwise")
    assert compiled.loop_of(np.modf, "f") is None  # two results
    assert compiled.loop_of(np.add, "e") is not None
    assert compiled.loop_of(np.bitwise_and, "f") is None
    monkeypatch.setattr(compiled, "loop_of", lambda ufunc, kind: None)
    a, b = operands((LARGE,), np.float32)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(applied(np.add, a, b), a + b)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", ARITHMETIC)
def test_operands_lie_in_memory_in_any_way(name, layout):
    a, b = operands((4, LARGE // 2), np.float32)
    turn = LAYOUTS[layout]
    for first, second in ((turn(a), b), (a, turn(b)), (turn(a), turn(b))):
        made, expected = applied(FUNCTIONS[name], first, second), FUNCTIONS[name](first, second)
        np.testing.assert_array_equal(bits(made), bits(expected))
        assert made.strides == expected.strides


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", ARITHMETIC)
def test_broadcasting_numbers_and_other_dtypes_are_numpys(name):
    a, b = operands((4, LARGE // 2), np.float32)
    whole, unaligned = np.arange(1, 2 * LARGE), np.zeros(4 * LARGE + 1, np.uint8)[1:].view(np.float32)
    for first, second in ((a, b[:1]), (a, b[0, 0]), (a, np.array(2.5, np.float32)), (whole, whole), (a, a.astype(np.float64)),
                          (unaligned, unaligned), (a.astype(">f4"), b)):  # fmt: skip
        made, expected = applied(FUNCTIONS[name], first, second), FUNCTIONS[name](first, second)
        assert made.dtype == expected.dtype
        np.testing.assert_array_equal(bits(made), bits(expected))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_adding_in_place(dtype):
    total, more = np.random.default_rng(1).standard_normal((2, LARGE + 5)).astype(dtype)
    expected = total + more
    elementwise.add_to(total, more)
    np.testing.assert_array_equal(total, expected)
    elementwise.add_to(total, total)
    np.testing.assert_array_equal(total, expected + expected)
    elementwise.add_to(total, np.ones_like(total)[::-1])
    np.testing.assert_array_equal(total, expected + expected + 1)


def test_large_tensors_are_computed_so_and_small_ones_are_not(monkeypatch):
    pytest.importorskip("numba")
    asked = []
    monkeypatch.setattr(elementwise, "compiled", lambda *arguments: asked.append(arguments[0]) or choice.compiled(*arguments))
    small, large = pellucid.ones(LARGE - 1), pellucid.ones(LARGE)
    for x in (small, large):
        for result in (x + x, x - x, x * 2, x / x, x.exp(), x.sin(), x < x):
            assert result.shape == x.shape
    assert asked == ["elementwise"] * 7


def test_a_gradient_is_added_to_a_large_one_in_place():
    x = pellucid.ones(LARGE, requires_grad=True)
    (x * 3).sum().backward()
    first, version = x.grad, x.grad._version
    (x * 4).sum().backward()
    assert x.grad is first
    assert first._version == version + 1
    assert (first == 7).all()


def test_gradients_of_large_tensors_are_added_up():
    x = pellucid.linspace(-1, 1, LARGE + 1, requires_grad=True)
    y = x * 1  # not a leaf: its three gradients meet in the engine
    (y * 2 + y * 3 + y.square()).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 5 + 2 * x.detach().numpy(), rtol=1e-6)
