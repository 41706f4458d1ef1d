"""Element types: what comes out of narrow, unsigned and mixed operands, and numbers that a type does not hold."""

from __future__ import annotations

import numpy as np
import pytest

import pellucid as t
from pellucid.nn import functional as f

inf, nan = float("inf"), float("nan")


def u(*values):
    return t.tensor(values, dtype=t.uint8)


def one(value):
    return u(value).reshape(1, 1)


def lowest():
    """An image whose every element looks like the border of a pooling."""
    return t.full((1, 1, 2, 2), -inf, requires_grad=True)


VALUES = {
    "arange counts in doubles": (lambda: t.arange(0.0, -8.000001, -4.0, dtype=t.int32), "int32", [0, -4, -8]),
    "arange of int64 counts in integers": (lambda: t.arange(0.0, -8.000001, -4.0, dtype=t.int64), "int64", [0, -4]),
    "arange with a step that becomes 0": (lambda: t.arange(0, 2, 0.5, dtype=t.int32), "int32", [0, 0, 0, 0]),
    "linspace wraps around its ends": (lambda: t.linspace(-1, 3, 4, dtype=t.uint8), "uint8", [255, 171, 87, 3]),
    "unravel_index": (lambda: t.unravel_index(u(3, 8), (4, 5))[1], "int64", [3, 3]),
    "sum_to_size": (lambda: t.ones(2, 3, dtype=t.int32).sum_to_size(3), "int64", [2, 2, 2]),
    "index_add": (lambda: u(1, 4).index_add(0, t.tensor([0]), u(4), alpha=-1), "uint8", [253, 4]),
    "index_fill": (lambda: u(1, 1).index_fill(0, t.tensor([1]), -1), "uint8", [1, 255]),
    "scatter": (lambda: u(1, 1).scatter(0, t.tensor([1]), -1), "uint8", [1, 255]),
    "fill_diagonal_": (lambda: t.ones(2, 2, dtype=t.uint8).fill_diagonal_(-1), "uint8", [[255, 1], [1, 255]]),
    "addmm": (lambda: t.addmm(one(1), one(2), one(3), alpha=-1, beta=-2), "uint8", [[248]]),
    "addcmul": (lambda: t.addcmul(u(1), u(2), u(3), value=0.5), "uint8", [1]),
    "add": (lambda: t.add(u(1), u(2), alpha=-1), "uint8", [255]),
    "tensor of a list": (lambda: t.tensor([-1], dtype=t.uint8), "uint8", [255]),
    "tensordot over sizes 1 and 3": (
        lambda: t.tensordot(t.ones(1, 2, dtype=t.int32), t.ones(3, 1, dtype=t.int32), ([0], [0])), "int32", [[3], [3]]),
    "margin_ranking_loss": (lambda: f.margin_ranking_loss(u(1), u(4), u(7), reduction="sum"), "float32", 21.0),
    "soft_margin_loss overflows": (
        lambda: f.soft_margin_loss(t.tensor([12.0]).half(), t.tensor([-1.0]).half()), "float16", inf),
    "soft_margin_loss of floats": (lambda: f.soft_margin_loss(t.tensor([12.0]), t.tensor([-1.0])), "float32", 12.000006),
    "cross_entropy with weights": (
        lambda: f.cross_entropy(t.tensor([[1.0, 2.0]]).half(), t.tensor([1]), t.tensor([1.0, 3.0]).half()), "float16", 0.3135),
    "max_pool2d of zeros": (
        lambda: f.max_pool2d(t.zeros(1, 1, 2, 2, dtype=t.uint8), 2, padding=1, return_indices=True)[1],
        "int64", [[[[0, 1], [2, 3]]]]),
    "max_pool2d of minus infinity": (
        lambda: f.max_pool2d(lowest(), 2, padding=1, return_indices=True)[1], "int64", [[[[0, 1], [2, 3]]]]),
    "searchsorted of a fraction": (lambda: t.searchsorted(t.tensor([1, 2, 3]), 1.5), "int64", 1),
    "searchsorted of a negative number": (lambda: t.searchsorted(u(1, 2, 3), -1), "int64", 3),
    "searchsorted of NaN": (lambda: t.searchsorted(t.tensor([1, 2, 3]).bfloat16(), nan), "int64", 3),
    "ldexp": (lambda: t.ldexp(t.tensor([1.5, 0.0, 3.0]), t.tensor([300, 300, -1])), "float32", [inf, 0.0, 1.5]),
    "ldexp of float16": (lambda: t.ldexp(t.ones(1).half(), t.tensor([3])), "float16", [8.0]),
    "ldexp of integers": (lambda: t.ldexp(t.tensor([3]), t.tensor([2])), "float32", [12.0]),
    "layer_norm of single elements": (
        lambda: f.layer_norm(t.tensor([[-4.7414]]), (1,), t.tensor([6.7493]), t.tensor([0.1066])), "float32", [[0.1066]]),
    "the mean of native_layer_norm": (
        lambda: t.native_layer_norm(t.ones(2, 2).half(), [2], None, None, 1e-5)[1], "float16", [[1.0], [1.0]]),
    "unique_consecutive of empty slices": (
        lambda: t.unique_consecutive(t.zeros(5, 0), return_inverse=True, dim=1)[1], "int64", []),
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_value(name):
    compute, dtype, expected = VALUES[name]
    result = compute()
    assert result.dtype is getattr(t, dtype)
    np.testing.assert_allclose(result.float().detach().numpy(), np.asarray(expected), rtol=1e-3 if dtype == "float16" else 1e-6)


def test_the_gradient_of_a_lowest_maximum_stays_in_the_image():
    x = lowest()
    f.max_pool2d(x, 2, padding=1).sum().backward()
    assert x.grad.tolist() == [[[[1.0, 1.0], [1.0, 1.0]]]]


def test_the_gradient_of_ldexp_is_the_power():
    x = t.ones(2, requires_grad=True)
    t.ldexp(x, t.tensor([3, -1])).sum().backward()
    assert x.grad.tolist() == [8.0, 0.5]


BOOLS = {
    "mm": (lambda b: b.mm(b), "addmm_impl_cpu_"),
    "matmul": (lambda b: b @ b[0], "addmv_impl_cpu"),
    "mv": (lambda b: b.mv(b[0]), "addmv_impl_cpu"),
    "dot": (lambda b: b[0].dot(b[0]), "dot"),
    "bmm": (lambda b: b[None].bmm(b[None]), "bmm"),
    "addmm": (lambda b: t.addmm(b, b, b), "addmm_impl_cpu_"),
    "addbmm": (lambda b: t.addbmm(b, b[None], b[None]), "addmm_impl_cpu_"),
    "addcmul": (lambda b: t.addcmul(b, b, b), "addcmul_cpu_out"),
    "linspace": (lambda b: t.linspace(0, 1, 2, dtype=t.bool), "linspace_cpu"),
    "logspace": (lambda b: t.logspace(0, 1, 2, dtype=t.bool), "logspace_cpu"),
    "searchsorted": (lambda b: t.searchsorted(b[0], True), "searchsorted_out_cpu"),
    "cross": (lambda b: t.linalg.cross(t.ones(3).bool(), t.ones(3).bool()), "cross"),
    "ldexp": (lambda b: t.ldexp(t.ones(1), b[0]), "ldexp_cpu_exp"),
}


@pytest.mark.parametrize("name", BOOLS)
def test_bools_are_not_for_arithmetic(name):
    compute, kernel = BOOLS[name]
    with pytest.raises(NotImplementedError, match=f"\"{kernel}\" not implemented for 'Bool'"):
        compute(t.ones(2, 2, dtype=t.bool))


OVERFLOW = "without overflow"
REFUSED = {
    "300 in uint8": (lambda: t.full((2,), 300, dtype=t.uint8), RuntimeError, f"uint8_t {OVERFLOW}: 300"),
    "-256 in uint8": (lambda: t.full((2,), -256, dtype=t.uint8), RuntimeError, OVERFLOW),
    "-0.5 in uint8": (lambda: t.full((2,), -0.5, dtype=t.uint8), RuntimeError, OVERFLOW),
    "127.9 in int8": (lambda: t.full((2,), 127.9, dtype=t.int8), RuntimeError, f"int8_t {OVERFLOW}"),
    "2**63 in int64": (lambda: t.full((2,), 2**63, dtype=t.int64), RuntimeError, f"int64_t {OVERFLOW}"),
    "2**70": (lambda: t.full((2,), 2**70, dtype=t.float32), OverflowError, "int too big to convert"),
    "infinity in int32": (lambda: t.full((2,), inf, dtype=t.int32), RuntimeError, f"type int {OVERFLOW}"),
    "1e39 in float32": (lambda: t.full((2,), 1e39, dtype=t.float32), RuntimeError, f"type float {OVERFLOW}"),
    "65505 in float16": (lambda: t.full((2,), 65505, dtype=t.float16), RuntimeError, f"c10::Half {OVERFLOW}"),
    "complex in float32": (lambda: t.full((2,), 2 + 1j, dtype=t.float32), RuntimeError, OVERFLOW),
    "a list of 300": (lambda: t.tensor([1, 300], dtype=t.uint8), RuntimeError, f"uint8 {OVERFLOW}"),
    "a list of -0.5": (lambda: t.tensor([-0.5], dtype=t.uint8), RuntimeError, OVERFLOW),
    "a list of NaN": (lambda: t.tensor([nan], dtype=t.int64), RuntimeError, OVERFLOW),
    "an array's 300 in a list": (lambda: t.tensor([np.int64(300)], dtype=t.uint8), RuntimeError, OVERFLOW),
    "a list of complex": (lambda: t.tensor([1j], dtype=t.float32), TypeError, "must be real number, not complex"),
    "complex as integer": (lambda: t.tensor(1j, dtype=t.int64), TypeError, "'complex' object cannot be interpreted as an integer"),
    "alpha": (lambda: t.add(u(1), u(1), alpha=300), RuntimeError, OVERFLOW),
    "alpha of addmm": (lambda: t.addmm(one(1), one(1), one(1), alpha=300), RuntimeError, OVERFLOW),
    "value of addcdiv": (lambda: t.addcdiv(t.ones(1), t.ones(1), t.ones(1), value=1j), RuntimeError, OVERFLOW),
    "value of index_fill": (lambda: u(1).index_fill(0, t.tensor([0]), 300), RuntimeError, OVERFLOW),
    "value of scatter": (lambda: u(1).scatter(0, t.tensor([0]), 300), RuntimeError, OVERFLOW),
    "value of fill_diagonal_": (lambda: one(1).fill_diagonal_(300), RuntimeError, OVERFLOW),
    "value of threshold": (lambda: f.threshold(u(1), 0, 300), RuntimeError, OVERFLOW),
    "value of pad": (lambda: f.pad(u(1), (1, 0), value=-1), RuntimeError, OVERFLOW),
    "complex value of pad": (lambda: f.pad(u(1), (1, 0), value=1j), TypeError, "argument 'value' must be float, not complex"),
    "ends of linspace": (lambda: t.linspace(0, 300, 3, dtype=t.uint8), RuntimeError, OVERFLOW),
    "complex linspace": (lambda: t.linspace(0, 1j, 3, dtype=t.float32), RuntimeError, "can't be safely cast"),
    "exponent": (lambda: u(2) ** 300, RuntimeError, OVERFLOW),
    "negative exponent": (lambda: u(2) ** -1, RuntimeError, "Integers to negative integer powers are not allowed"),
    "negative exponent in place": (lambda: u(2).pow_(-1), RuntimeError, "Integers to negative integer powers are not allowed"),
    "arange step": (lambda: t.arange(0, 1, 0.5, dtype=t.int64), ValueError, "step must be nonzero"),
    "arange step of NaN": (lambda: t.arange(0, 1, nan), RuntimeError, "step must be nonzero"),
    "isin of bools": (lambda: t.isin(u(1) > 0, u(1) > 0), RuntimeError, "Unsupported input type encountered for isin.*Bool"),
    "searchsorted of complex": (lambda: t.searchsorted(t.tensor([1j]), 1), NotImplementedError, "searchsorted_out_cpu"),
    "topk of bools": (lambda: (u(1) > 0).topk(1), RuntimeError, "topk does not support bool dtypes on CPU"),
    "unique along no dimension": (lambda: t.unique(t.tensor(1), dim=0), IndexError, "tensor has no dimensions"),
    "unique of slices without size": (lambda: t.unique(t.zeros(0, 0), dim=0), RuntimeError, "zero sized dimensions is more than one"),
    "median over nothing": (lambda: t.zeros(0).bool().median(0), IndexError, "Expected reduction dim 0 to have non-zero size"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    compute, error, text = REFUSED[name]
    with pytest.raises(error, match=text):
        compute()
