"""The text of arrays, against what PyTorch 2.13 prints for the same values."""

import time

import ml_dtypes
import numpy as np
import pytest

from pellucid.core import printing

bfloat16 = ml_dtypes.bfloat16

TEXTS = {
    "scalar": (np.array(3.0, np.float32), "tensor(3.)"),
    "scalar negative small": (np.array(-1e-6, np.float32), "tensor(-1.0000e-06)"),
    "scalar int": (np.array(7), "tensor(7)"),
    "scalar bool": (np.array(True), "tensor(True)"),
    "whole": (np.array([1, -22, 300], np.float32), "tensor([  1., -22., 300.])"),
    "fraction": (np.array([1, 2.5], np.float32), "tensor([1.0000, 2.5000])"),
    "zero": (np.zeros((2, 2), np.float32), (
        "tensor([[0., 0.],\n"
        "        [0., 0.]])"
    )),
    "tiny with one": (np.array([1e-8, 1], np.float32), "tensor([1.0000e-08, 1.0000e+00])"),
    "large": (np.array([1e10, 1], np.float32), "tensor([1.0000e+10, 1.0000e+00])"),
    "ratio above 1000": (np.array([0.5, 700], np.float32), "tensor([5.0000e-01, 7.0000e+02])"),
    "ratio of 1000": (np.array([0.5, 500], np.float32), "tensor([  0.5000, 500.0000])"),
    "below 1e-4": (np.array([9e-5, 8e-5], np.float32), "tensor([9.0000e-05, 8.0000e-05])"),
    "above 1e8": (np.array([2e8, 3e8], np.float32), "tensor([2.0000e+08, 3.0000e+08])"),
    "nan and inf": (np.array([np.nan, np.inf, -np.inf, -1], np.float32), "tensor([nan, inf, -inf, -1.])"),
    "nan fraction": (np.array([np.nan, 0.25], np.float32), "tensor([   nan, 0.2500])"),
    "nan only": (np.array([np.nan, 0], np.float32), "tensor([nan, 0.])"),
    "nan scientific": (np.array([np.nan, 1e-7, 0], np.float32), "tensor([       nan, 1.0000e-07, 0.0000e+00])"),
    "minus zero": (np.array([-0.0, 1.5], np.float32), "tensor([-0.0000, 1.5000])"),
    "float64": (np.ones(2), "tensor([1., 1.], dtype=torch.float64)"),
    "float16": (np.array([0.1, 65504], np.float16), "tensor([9.9976e-02, 6.5504e+04], dtype=torch.float16)"),
    "bfloat16": (np.array([0.1, 3], bfloat16), "tensor([0.1001, 3.0000], dtype=torch.bfloat16)"),
    "int8": (np.array([1, -2], np.int8), "tensor([ 1, -2], dtype=torch.int8)"),
    "int64": (np.array([[1, 10], [-100, 2]]), (
        "tensor([[   1,   10],\n"
        "        [-100,    2]])"
    )),
    "bool": (np.array([[True, False], [False, False]]), (
        "tensor([[ True, False],\n"
        "        [False, False]])"
    )),
    "complex": (np.array([1 + 2j, 3.5 - 1j], np.complex64), "tensor([1.0000+2.j, 3.5000-1.j])"),
    "complex double": (np.array([1e-9 + 2j, 3.5 - 1e3j]),
     "tensor([1.0000e-09+2.j, 3.5000e+00-1000.j], dtype=torch.complex128)"),
    "complex scalar": (np.array(-0.5j, np.complex64), "tensor(-0.-0.5000j)"),
    "complex nan": (np.array([complex(np.nan, -np.inf), 1], np.complex64), "tensor([nan-infj, 1.+0.j])"),
    "empty": (np.empty(0, np.float32), "tensor([])"),
    "empty shape": (np.empty((0, 3), np.float32), "tensor([], size=(0, 3))"),
    "empty int": (np.empty((2, 0), np.int64), "tensor([], size=(2, 0), dtype=torch.int64)"),
    "empty int vector": (np.empty(0, np.int64), "tensor([], dtype=torch.int64)"),
    "cube": (np.arange(8, dtype=np.float32).reshape(2, 2, 2), (
        "tensor([[[0., 1.],\n"
        "         [2., 3.]],\n"
        "\n"
        "        [[4., 5.],\n"
        "         [6., 7.]]])"
    )),
    "four dimensions": (np.zeros((2, 1, 2, 1), np.float32), (
        "tensor([[[[0.],\n"
        "          [0.]]],\n"
        "\n"
        "\n"
        "        [[[0.],\n"
        "          [0.]]]])"
    )),
    "wrapped": (np.arange(30, dtype=np.float32) / 7, (
        "tensor([0.0000, 0.1429, 0.2857, 0.4286, 0.5714, 0.7143, 0.8571, 1.0000, 1.1429,\n"
        "        1.2857, 1.4286, 1.5714, 1.7143, 1.8571, 2.0000, 2.1429, 2.2857, 2.4286,\n"
        "        2.5714, 2.7143, 2.8571, 3.0000, 3.1429, 3.2857, 3.4286, 3.5714, 3.7143,\n"
        "        3.8571, 4.0000, 4.1429])"
    )),
    "wrapped rows": (np.arange(44).reshape(2, 22) * 100, (
        "tensor([[   0,  100,  200,  300,  400,  500,  600,  700,  800,  900, 1000, 1100,\n"
        "         1200, 1300, 1400, 1500, 1600, 1700, 1800, 1900, 2000, 2100],\n"
        "        [2200, 2300, 2400, 2500, 2600, 2700, 2800, 2900, 3000, 3100, 3200, 3300,\n"
        "         3400, 3500, 3600, 3700, 3800, 3900, 4000, 4100, 4200, 4300]])"
    )),
    "summary": (np.arange(2000, dtype=np.float32), (
        "tensor([0.0000e+00, 1.0000e+00, 2.0000e+00,  ..., 1.9970e+03, 1.9980e+03,\n"
        "        1.9990e+03])"
    )),
    "summary of a matrix": (np.arange(10000, dtype=np.float32).reshape(100, 100) / 8, (
        "tensor([[0.0000e+00, 1.2500e-01, 2.5000e-01,  ..., 1.2125e+01, 1.2250e+01,\n"
        "         1.2375e+01],\n"
        "        [1.2500e+01, 1.2625e+01, 1.2750e+01,  ..., 2.4625e+01, 2.4750e+01,\n"
        "         2.4875e+01],\n"
        "        [2.5000e+01, 2.5125e+01, 2.5250e+01,  ..., 3.7125e+01, 3.7250e+01,\n"
        "         3.7375e+01],\n"
        "        ...,\n"
        "        [1.2125e+03, 1.2126e+03, 1.2128e+03,  ..., 1.2246e+03, 1.2248e+03,\n"
        "         1.2249e+03],\n"
        "        [1.2250e+03, 1.2251e+03, 1.2252e+03,  ..., 1.2371e+03, 1.2372e+03,\n"
        "         1.2374e+03],\n"
        "        [1.2375e+03, 1.2376e+03, 1.2378e+03,  ..., 1.2496e+03, 1.2498e+03,\n"
        "         1.2499e+03]])"
    )),
    "summary of narrow rows": (np.arange(1200).reshape(300, 4), (
        "tensor([[   0,    1,    2,    3],\n"
        "        [   4,    5,    6,    7],\n"
        "        [   8,    9,   10,   11],\n"
        "        ...,\n"
        "        [1188, 1189, 1190, 1191],\n"
        "        [1192, 1193, 1194, 1195],\n"
        "        [1196, 1197, 1198, 1199]])"
    )),
    "summary of short columns": (np.arange(1200).reshape(4, 300), (
        "tensor([[   0,    1,    2,  ...,  297,  298,  299],\n"
        "        [ 300,  301,  302,  ...,  597,  598,  599],\n"
        "        [ 600,  601,  602,  ...,  897,  898,  899],\n"
        "        [ 900,  901,  902,  ..., 1197, 1198, 1199]])"
    )),
    "summary of a cube": (np.zeros((8, 8, 20), np.float32), (
        "tensor([[[0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         ...,\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.]],\n"
        "\n"
        "        [[0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         ...,\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.]],\n"
        "\n"
        "        [[0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         ...,\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.]],\n"
        "\n"
        "        ...,\n"
        "\n"
        "        [[0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         ...,\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.]],\n"
        "\n"
        "        [[0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         ...,\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.]],\n"
        "\n"
        "        [[0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         ...,\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.],\n"
        "         [0., 0., 0.,  ..., 0., 0., 0.]]])"
    )),
    "a view": (np.zeros((10, 10, 11), np.bool_)[:, :, :0:-1][0], (
        "tensor([[False, False, False, False, False, False, False, False, False, False],\n"
        "        [False, False, False, False, False, False, False, False, False, False],\n"
        "        [False, False, False, False, False, False, False, False, False, False],\n"
        "        [False, False, False, False, False, False, False, False, False, False],\n"
        "        [False, False, False, False, False, False, False, False, False, False],\n"
        "        [False, False, False, False, False, False, False, False, False, False],\n"
        "        [False, False, False, False, False, False, False, False, False, False],\n"
        "        [False, False, False, False, False, False, False, False, False, False],\n"
        "        [False, False, False, False, False, False, False, False, False, False],\n"
        "        [False, False, False, False, False, False, False, False, False, False]])"
    )),
}

OPTIONS = {
    "precision": (np.array([1.23456789, 2], np.float32), {"precision": 2}, "tensor([1.23, 2.00])"),
    "no digits": (np.array([1.5, 2.25], np.float32), {"precision": 0}, "tensor([2, 2])"),
    "threshold": (np.arange(10), {"threshold": 5}, "tensor([0, 1, 2,  ..., 7, 8, 9])"),
    "edgeitems": (np.arange(30).reshape(3, 10), {"threshold": 5, "edgeitems": 1}, (
        "tensor([[ 0,  ...,  9],\n"
        "        ...,\n"
        "        [20,  ..., 29]])"
    )),
    "no edgeitems": (np.arange(10), {"threshold": 5, "edgeitems": 0}, "tensor([...], size=(10,))"),
    "no edgeitems matrix": (np.ones((3, 4), np.float32), {"threshold": 5, "edgeitems": 0},
     "tensor([...], size=(3, 4))"),
    "linewidth": (np.arange(20), {"linewidth": 30}, (
        "tensor([ 0,  1,  2,  3,  4,\n"
        "         5,  6,  7,  8,  9,\n"
        "        10, 11, 12, 13, 14,\n"
        "        15, 16, 17, 18, 19])"
    )),
    "scientific": (np.array([1, 20], np.float32), {"sci_mode": True}, "tensor([1.0000e+00, 2.0000e+01])"),
    "not scientific": (np.array([1e-6, 2e10], np.float32), {"sci_mode": False},
     "tensor([          0.0000, 20000000000.0000])"),
    "short": (np.arange(2000) / 3, {"profile": "short"}, (
        "tensor([0.00e+00, 3.33e-01,  ..., 6.66e+02, 6.66e+02], dtype=torch.float64)"
    )),
    "full": (np.arange(1001)[:12] / 3, {"profile": "full", "precision": 7}, (
        "tensor([0.0000000, 0.3333333, 0.6666667, 1.0000000, 1.3333333, 1.6666667,\n"
        "        2.0000000, 2.3333333, 2.6666667, 3.0000000, 3.3333333, 3.6666667],\n"
        "       dtype=torch.float64)"
    )),
}


@pytest.fixture(autouse=True)
def default_options():
    printing.set_printoptions(profile="default")
    yield
    printing.set_printoptions(profile="default")


@pytest.mark.parametrize("name", TEXTS)
def test_text(name):
    array, expected = TEXTS[name]
    assert printing.tensor_text(array) == expected


@pytest.mark.parametrize("name", OPTIONS)
def test_options_in_force(name):
    array, options, expected = OPTIONS[name]
    with printing.printoptions(**options):
        assert printing.tensor_text(array) == expected


def test_options_given_for_one_text():
    options = printing.PrintOptions(precision=2)
    assert printing.tensor_text(np.array([1.5, 2], np.float32), options=options) == "tensor([1.50, 2.00])"
    assert printing.format_array(np.array([1.5, 2]), options=options) == "[1.50, 2.00]"


def test_options_are_kept_by_what_is_not_given_except_sci_mode():
    printing.set_printoptions(precision=7, sci_mode=True)
    printing.set_printoptions(linewidth=50)
    assert printing.get_printoptions() == {
        "precision": 7, "threshold": 1000, "edgeitems": 3, "linewidth": 50, "sci_mode": None,
    }
    printing.set_printoptions(**printing.get_printoptions())
    assert printing.get_printoptions()["precision"] == 7


def test_options_come_back_after_an_error():
    before = printing.get_printoptions()
    with pytest.raises(KeyError), printing.printoptions(precision=1):
        raise KeyError
    assert printing.get_printoptions() == before


def test_profiles_yield_to_other_arguments():
    printing.set_printoptions(profile="short", edgeitems=5)
    assert printing.get_printoptions()["precision"] == 2
    assert printing.get_printoptions()["edgeitems"] == 5


SUFFIXES = [
    (np.full(2, 2, np.float32), ["grad_fn=<AddBackward0>"], "tensor([2., 2.], grad_fn=<AddBackward0>)"),
    (np.arange(18.0), ["requires_grad=True"],
     "tensor([ 0.,  1.,  2.,  3.,  4.,  5.,  6.,  7.,  8.,  9., 10., 11., 12., 13.,\n"
     "        14., 15., 16., 17.], dtype=torch.float64, requires_grad=True)"),
    (np.full((3, 3), 1 / 3), ["grad_fn=<SoftmaxBackward0>"],
     "tensor([[0.3333, 0.3333, 0.3333],\n"
     "        [0.3333, 0.3333, 0.3333],\n"
     "        [0.3333, 0.3333, 0.3333]], dtype=torch.float64,\n"
     "       grad_fn=<SoftmaxBackward0>)"),
]


@pytest.mark.parametrize(("array", "suffixes", "expected"), SUFFIXES)
def test_suffixes_wrap_at_the_line_width(array, suffixes, expected):
    assert printing.tensor_text(array, suffixes=suffixes) == expected


def test_parameter():
    text = printing.tensor_text(
        np.zeros(2, np.float32), heading="Parameter containing:\n", suffixes=["requires_grad=True"]
    )
    assert text == "Parameter containing:\ntensor([0., 0.], requires_grad=True)"


def test_prefix_indents_further_lines():
    text = printing.tensor_text(np.arange(40), prefix="Sub(")
    assert text == (
        "Sub([ 0,  1,  2,  3,  4,  5,  6,  7,  8,  9, 10, 11, 12, 13, 14, 15, 16, 17, 18,\n"
        "     19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35, 36, 37,\n"
        "     38, 39])"
    )


@pytest.mark.parametrize(("array", "expected"), [
    (np.ones(1), "tensor([1.])"),
    (np.ones(1, np.float32), "tensor([1.], dtype=torch.float32)"),
    (np.array([1j]), "tensor([0.+1.j])"),
    (np.ones(1, np.complex64), "tensor([1.+0.j], dtype=torch.complex64)"),
    (np.empty(0), "tensor([])"),
    (np.empty(0, np.float32), "tensor([], dtype=torch.float32)"),
])
def test_default_dtype_is_not_named(array, expected):
    assert printing.tensor_text(array, default_dtype=np.float64) == expected


def test_a_large_array_prints_fast():
    array = np.ones((3000, 3000), np.float32)
    start = time.process_time()
    printing.tensor_text(array)
    assert time.process_time() - start < 5
