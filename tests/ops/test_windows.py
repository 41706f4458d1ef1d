"""Windows: values as PyTorch 2.13 gives them, options, error texts."""

from __future__ import annotations

import numpy as np
import pytest
from tables import assert_gives, assert_refused, rows

import pellucid as t

w = t.signal.windows

VALUES = [
    (lambda: w.bartlett(5), "float32", [0, 0.5, 1, 0.5, 0]),
    (lambda: w.blackman(5), "float32", [0, 0.34, 1, 0.34, 0]),
    (lambda: w.cosine(5), "float32", [0.309017, 0.809017, 1, 0.809017, 0.309017]),
    (lambda: w.exponential(4, tau=2.0), "float32", [0.472367, 0.778801, 0.778801, 0.472367]),
    (lambda: w.exponential(4, center=1.0, sym=False), "float32", [0.367879, 1, 0.367879, 0.135335]),
    (lambda: w.gaussian(4, std=0.5), "float32", [0.011109, 0.606531, 0.606531, 0.011109]),
    (lambda: w.general_cosine(4, a=[0.5, 0.3, 0.2]), "float32", [0.4, 0.55, 0.55, 0.4]),
    (lambda: w.general_hamming(4, alpha=0.6), "float32", [0.2, 0.8, 0.8, 0.2]),
    (lambda: w.hamming(5), "float32", [0.08, 0.54, 1, 0.54, 0.08]),
    (lambda: w.hann(5), "float32", [0, 0.5, 1, 0.5, 0]),
    (lambda: w.hann(4, sym=False), "float32", [0, 0.5, 1, 0.5]),
    (lambda: w.hann(3, dtype=t.float64), "float64", [0, 1, 0]),
    (lambda: w.kaiser(4, beta=3.0), "float32", [0.204885, 0.871242, 0.871242, 0.204885]),
    (lambda: w.nuttall(5), "float32", [0.000363, 0.226982, 1, 0.226982, 0.000363]),
    (lambda: w.hann(0), "float32", np.zeros(0)),
    (lambda: w.hann(1), "float32", [1]),
    (lambda: t.bartlett_window(4, False), "float32", [0, 0.666667, 0.666667, 0]),
    (lambda: t.blackman_window(4), "float32", [0, 0.34, 1, 0.34]),
    (lambda: t.hamming_window(4, False, 0.6, 0.3), "float32", [0.3, 0.75, 0.75, 0.3]),
    (lambda: t.hann_window(4), "float32", [0, 0.5, 1, 0.5]),
    (lambda: t.hann_window(window_length=3, periodic=False), "float32", [0, 1, 0]),
    (lambda: t.kaiser_window(4, True, 3.0), "float32", [0.204885, 0.72693, 1, 0.72693]),
]


@pytest.mark.parametrize(("compute", "dtype", "expected"), rows(VALUES))
def test_value(compute, dtype, expected):
    assert_gives(compute(), dtype, expected)


REFUSED = [
    (lambda: w.hann(-1), ValueError, "hann requires non-negative window length, got M=-1"),
    (lambda: w.hann(2.5), TypeError, "hann(): argument 'M' must be int, not float"),
    (lambda: w.kaiser(4, dtype=t.int64), ValueError, "kaiser expects float32 or float64 dtypes, got: torch.int64"),
    (lambda: w.kaiser(4, dtype=t.float16), ValueError, "kaiser expects float32 or float64 dtypes, got: torch.float16"),
    (lambda: w.cosine(4, layout="rows"), ValueError, "cosine is implemented for strided tensors only, got: rows"),
    (lambda: w.exponential(4, tau=0), ValueError, "Tau must be positive, got: 0 instead."),
    (lambda: w.exponential(4, center=1.0), ValueError, "Center must be None for symmetric windows"),
    (lambda: w.gaussian(4, std=-1), ValueError, "Standard deviation must be positive, got: -1 instead."),
    (lambda: w.general_cosine(4, a=[]), ValueError, "Coefficients cannot be empty"),
    (lambda: w.general_cosine(4, a=3.0), TypeError, "Coefficients must be a list/tuple"),
    (lambda: w.kaiser(4, beta=-1), ValueError, "beta must be non-negative, got: -1 instead."),
    (lambda: t.hann_window(-1), RuntimeError, "hann_window requires non-negative window_length, got window_length=-1"),
    (lambda: t.hann_window(True), TypeError, "hann_window(): argument 'window_length' must be int, not bool"),
    (lambda: t.hann_window(4, dtype=t.int64), RuntimeError, "hann_window expects floating point dtypes, got:"),
    (
        lambda: t.hann_window(4, dtype=t.complex64),
        NotImplementedError,
        "\"arange_cpu\" not implemented for 'ComplexFloat'",
    ),
]


@pytest.mark.parametrize(("call", "kind", "phrase"), rows(REFUSED))
def test_error(call, kind, phrase):
    assert_refused(call, kind, phrase)


@pytest.mark.parametrize("name", ["bartlett", "blackman", "cosine", "gaussian", "hamming", "hann", "kaiser", "nuttall"])
def test_a_periodic_window_is_a_longer_symmetric_one_without_its_end(name):
    window = getattr(w, name)
    np.testing.assert_array_equal(window(6, sym=False).numpy(), window(7).numpy()[:6])


def test_a_window_is_a_leaf_that_may_require_grad():
    window = w.hann(4, requires_grad=True)
    assert window.is_leaf
    assert window.requires_grad


def test_the_older_windows_take_narrow_floats():
    assert t.hann_window(4, dtype=t.bfloat16).dtype is t.bfloat16
    assert t.hann_window(4, dtype=t.float16).tolist() == [0.0, 0.5, 1.0, 0.5]
