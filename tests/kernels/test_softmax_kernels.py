"""Compiled softmax, its logarithm and cross-entropy give what the plain NumPy forms give; known values; awkward rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import pellucid
from pellucid.kernels import choice, softmax
from pellucid.nn import functional as F

pytest.importorskip("numba")

BOUND = {np.float32: 3e-6, np.float64: 1e-13}


def both(function, *arguments) -> tuple[np.ndarray, np.ndarray]:
    with choice.always():
        fast = function(*arguments)
    with choice.never(), np.errstate(all="ignore"):
        return fast, function(*arguments)


def matrix(rows: int, columns: int, dtype, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, 4, (rows, columns)).astype(dtype)


@pytest.mark.parametrize("shape", [(1, 1), (3, 10), (257, 65), (2, 1000)])
@pytest.mark.parametrize("dtype", BOUND)
def test_compiled_gives_what_plain_gives(shape, dtype):
    x, grad = matrix(*shape, dtype), matrix(*shape, dtype, 1)
    made = {}
    for name in ("softmax", "log_softmax"):
        fast, made[name] = both(getattr(softmax, name), x, 1)
        assert fast.dtype == dtype
        np.testing.assert_allclose(fast, made[name], rtol=BOUND[dtype], atol=BOUND[dtype])
        fast, plain = both(getattr(softmax, f"{name}_backward"), grad, made[name], 1)
        np.testing.assert_allclose(fast, plain, rtol=BOUND[dtype], atol=BOUND[dtype] * shape[1])


def test_softmax_in_float64_adds_up_to_one_and_has_the_right_ratios():
    x = np.log(np.arange(1.0, 41).reshape(4, 10))
    with choice.always():
        made = softmax.softmax(x, -1)
    wanted = np.arange(1.0, 41).reshape(4, 10)
    np.testing.assert_allclose(made, wanted / wanted.sum(1, keepdims=True), rtol=1e-14)


def test_awkward_rows():
    """NaN anywhere, +inf, or nothing but -inf make the whole row NaN; single -inf are zeros, large numbers no overflow."""
    rows = [[1, np.nan, 2], [np.inf, 1, 2], [-np.inf] * 3, [-np.inf, 0, 0], [1e30, 1e30, -1e30], [0, -200, -80]]
    x = np.array(rows * 7, np.float32)
    for function in (softmax.softmax, softmax.log_softmax):
        fast, plain = both(function, x, 1)
        np.testing.assert_allclose(fast, plain, rtol=1e-6, atol=1e-37)
        assert np.isnan(fast[:3]).all()
    with choice.always():
        np.testing.assert_array_equal(softmax.softmax(x, 1)[3], [0, 0.5, 0.5])


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_any_dimension_and_layout(dim):
    x = np.random.default_rng(2).normal(size=(4, 6, 5)).transpose(2, 0, 1)
    for function in (softmax.softmax, softmax.log_softmax):
        np.testing.assert_allclose(*both(function, x, dim), rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(*both(softmax.softmax_backward, np.broadcast_to(2.0, x.shape), x, dim), rtol=1e-12, atol=1e-12)


# --- cross-entropy -----------------------------------------------------------------------------------------------------

CASES = list(itertools.product(("mean", "sum", "none"), (-100, 3), (0.0, 0.1), (False, True)))


def losses(x, target, weight, reduction, ignore_index, label_smoothing):
    """The loss, and the gradient of the scores, from a gradient of the loss that differs from row to row."""
    scores = pellucid.tensor(x, requires_grad=True)
    loss = F.cross_entropy(scores, pellucid.tensor(target), weight, ignore_index=ignore_index, reduction=reduction,
                           label_smoothing=label_smoothing)  # fmt: skip
    (loss * loss).sum().backward()
    return loss.detach().numpy(), scores.grad.numpy()


@pytest.mark.parametrize(("reduction", "ignore_index", "label_smoothing", "weighted"), CASES)
def test_cross_entropy_is_that_of_the_logarithm_of_softmax(reduction, ignore_index, label_smoothing, weighted):
    """In one operator the same as from the parts, which classes in front of another dimension still go through."""
    rng = np.random.default_rng(3)
    x, target = matrix(37, 8, np.float64, 3), rng.integers(0, 8, 37)
    weight = pellucid.tensor(rng.uniform(0.5, 2, 8)) if weighted else None
    options = reduction, ignore_index, label_smoothing
    parts_loss, parts_grad = losses(x[:, :, None], target[:, None], weight, *options)
    for chosen in (choice.always(), choice.never()):
        with chosen:
            loss, grad = losses(x, target, weight, *options)
        np.testing.assert_allclose(loss, parts_loss.reshape(loss.shape), rtol=1e-12)
        np.testing.assert_allclose(grad, parts_grad[:, :, 0], rtol=1e-11, atol=1e-13)


def test_values_of_cross_entropy():
    """log(e + e^2 + e^3) - 3, in float32 as in float64."""
    for dtype in (np.float32, np.float64):
        found = F.cross_entropy(pellucid.tensor(np.array([[1, 2, 3]], dtype)), pellucid.tensor([2]))
        assert found.dtype is (pellucid.float32 if dtype == np.float32 else pellucid.float64)
        np.testing.assert_allclose(found.item(), 0.40760596444438, rtol=1e-6 if dtype == np.float32 else 1e-13)


def test_large_scores_lose_nothing():
    """What is subtracted is the largest score, and its rounding does not reach the differences."""
    x = matrix(20, 50, np.float32) + np.float32(4096)
    x = np.round(x * 16) / 16
    fast, plain = (losses(x - np.float32(shift), np.arange(20), None, "mean", -100, 0.0) for shift in (0, 4096))
    np.testing.assert_allclose(fast[0], plain[0], rtol=1e-6)
    np.testing.assert_allclose(fast[1], plain[1], rtol=1e-5, atol=1e-9)


def test_a_class_that_is_not_there():
    with pytest.raises(IndexError, match=r"Target 3 is out of bounds\. Classes are numbered 0 to 2"):
        F.cross_entropy(pellucid.zeros(2, 3), pellucid.tensor([0, 3]))


def test_statistics_are_found_where_they_are_not_given():
    from pellucid.autograd.operator import tensors

    scores, target = pellucid.tensor(matrix(6, 4, np.float64)), pellucid.tensor([0, 1, 2, 3, 0, 1])
    _, known = tensors.cross_entropy(scores, target, None, "mean", -100, 0.0)
    grad = pellucid.tensor(1.0, dtype=pellucid.float64)
    first = tensors.cross_entropy_backward(grad, scores, target, None, known, "mean", -100, 0.0)
    second = tensors.cross_entropy_backward(grad, scores, target, None, None, "mean", -100, 0.0)
    np.testing.assert_array_equal(first.numpy(), second.numpy())
