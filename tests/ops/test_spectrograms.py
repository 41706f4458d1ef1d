"""stft and istft: values as PyTorch 2.13 gives them, inversion, warnings, error texts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import assert_gives, assert_refused, rows

import pellucid as t


def s():
    return t.arange(8.0)


def w():
    return t.tensor([0.5, 1.0, 1.0, 0.5])


def ones(frequencies: int, frames: int):
    return t.ones(frequencies, frames) + 0j


def stft(signal, n_fft, *sizes, **options):
    return t.stft(signal, n_fft, *sizes, **{"window": w(), "return_complex": True, **options})


def istft(spectrogram, n_fft, *sizes, **options):
    return t.istft(spectrogram, n_fft, *sizes, **{"window": w(), **options})


MIDDLE = [[4.5, 10.5, 16.5], [-2 + 0.5j, -3 - 0.5j, -4 - 1.5j], [-0.5, -0.5, -0.5]]
VALUES = [
    (
        lambda: stft(s(), 4, 2),
        "complex64",
        [[2.5, 4.5, 10.5, 16.5, 18.5], [1 - 0.5j, -2 + 0.5j, -3 - 0.5j, -4 - 1.5j, -3 - 4.5j], [-0.5] * 5],
    ),
    (lambda: stft(s(), 4, 2, center=False), "complex64", MIDDLE),
    (lambda: stft(s()[None], 4, 2, center=False), "complex64", [MIDDLE]),
    (lambda: stft(s(), 4, 2, center=False, onesided=False), "complex64", [*MIDDLE, np.conj(MIDDLE[1])]),
    (lambda: stft(s() + 0j, 4, 2, center=False), "complex64", [*MIDDLE, np.conj(MIDDLE[1])]),
    (lambda: stft(s().double(), 4, 2, center=False), "complex128", MIDDLE),
    (
        lambda: stft(s(), 4, 3, 2, window=t.ones(2), center=False, align_to_window=True),
        "complex64",
        [[1, 7, 13], [-1, -4 - 3j, -7 - 6j], [1, 1, 1]],
    ),
    (
        lambda: stft(s(), 4, 4, normalized=True, pad_mode="constant"),
        "complex64",
        [[0.25, 5.25, 5], [0.25j, -1.5 - 0.25j, 1.5 - 3.5j], [-0.25, -0.25, -2]],
    ),
    (lambda: s().stft(4, 8, window=w(), center=False, return_complex=True), "complex64", [[4.5], [-2 + 0.5j], [-0.5]]),
    (lambda: istft(ones(3, 4), 4, 2), "float32", [0.4, 0, 0.4, 0, 0.4, 0]),
    (lambda: istft(ones(3, 4), 4, 2, length=3), "float32", [0.4, 0, 0.4]),
    (lambda: istft(ones(4, 4), 4, 2, return_complex=True), "complex64", [0.4, 0, 0.4, 0, 0.4, 0]),
    (lambda: ones(3, 4).istft(4, 2, window=w()), "float32", [0.4, 0, 0.4, 0, 0.4, 0]),
]


@pytest.mark.parametrize(("compute", "dtype", "expected"), rows(VALUES))
def test_value(compute, dtype, expected):
    assert_gives(compute(), dtype, expected)


REFUSED = [
    (lambda: stft(s(), 4, return_complex=None), RuntimeError, "stft requires the return_complex parameter be given"),
    (lambda: stft(s(), 4, align_to_window=True), RuntimeError, "align_to_window should only be set when center = false"),
    (lambda: stft(t.arange(8), 4), RuntimeError, "expected a tensor of floating point or complex values"),
    (lambda: stft(s().half(), 4), RuntimeError, "Unsupported dtype Half"),
    (lambda: stft(t.zeros(1, 1, 8), 4), RuntimeError, "expected a 1D or 2D tensor"),
    (lambda: stft(s(), 9, center=False), RuntimeError, "expected 0 < n_fft < 8, but got n_fft=9"),
    (lambda: stft(s(), 4, 0), RuntimeError, "expected hop_length > 0, but got hop_length=0"),
    (lambda: stft(s(), 4, 1, 5), RuntimeError, "expected 0 < win_length <= n_fft, but got win_length=5"),
    (
        lambda: stft(s(), 4, window=t.ones(3)),
        RuntimeError,
        "expected a 1D window tensor of size equal to win_length=4, but got window with size [3]",
    ),
    (lambda: stft(s(), 4, pad_mode="abc"), NotImplementedError, "Unrecognised padding mode abc"),
    (lambda: stft(s() + 0j, 4, onesided=True), RuntimeError, "Cannot have onesided output if window or input is complex"),
    (lambda: istft(t.ones(3, 4), 4), RuntimeError, "istft requires a complex-valued input tensor"),
    (lambda: istft(ones(3, 4)[0], 4), IndexError, "Dimension out of range"),
    (lambda: istft(ones(3, 0), 4), RuntimeError, "input tensor cannot be empty"),
    (lambda: istft(ones(3, 4)[None, None], 4), RuntimeError, "expected a tensor with 2 or 3 dimensions"),
    (lambda: istft(ones(5, 4), 4), RuntimeError, "to match n_fft / 2 + 1 when onesided=True, but got 5"),
    (lambda: istft(ones(3, 4), 4, onesided=False), RuntimeError, "to match n_fft when onesided=False, but got 3"),
    (lambda: istft(ones(3, 4), 4, 5), RuntimeError, "expected 0 < hop_length <= win_length"),
    (lambda: istft(ones(3, 4), 4, 1, 5), RuntimeError, "expected 0 < win_length <= n_fft"),
    (lambda: istft(ones(3, 4), 4, window=t.ones(3)), RuntimeError, "Invalid window shape. window has to be 1D and length of"),
    (lambda: istft(ones(3, 4), 4, return_complex=True), RuntimeError, "Cannot have onesided output"),
    (
        lambda: istft(ones(3, 4), 4, window=w() + 0j),
        RuntimeError,
        "Complex windows are incompatible with return_complex=False",
    ),
    (lambda: istft(ones(3, 4), 4, window=t.zeros(4)), RuntimeError, "window overlap add min: 0.0"),
]


@pytest.mark.parametrize(("call", "kind", "phrase"), rows(REFUSED))
def test_error(call, kind, phrase):
    assert_refused(call, kind, phrase)


def test_pairs_of_real_numbers_are_deprecated():
    with pytest.warns(UserWarning, match="return_complex=False is deprecated"):
        pairs = stft(s(), 4, 2, return_complex=False)
    np.testing.assert_array_equal(t.view_as_complex(pairs).numpy(), stft(s(), 4, 2).numpy())


def test_no_window_is_a_window_of_ones_and_a_warning():
    with pytest.warns(UserWarning, match="A window was not provided"):
        plain = stft(s(), 4, 2, 3, window=None)
    np.testing.assert_array_equal(plain.numpy(), stft(s(), 4, 2, 3, window=t.ones(3)).numpy())
    with pytest.warns(UserWarning, match="A window was not provided"):
        plain = istft(ones(3, 4), 4, 2, window=None)
    np.testing.assert_array_equal(plain.numpy(), istft(ones(3, 4), 4, 2, window=t.ones(4)).numpy())


def test_a_length_beyond_the_signal_is_filled_with_zeros_and_a_warning():
    with pytest.warns(UserWarning, match="The length of signal is shorter than the length parameter"):
        assert_gives(istft(ones(3, 2), 4, 2, length=6), "float32", [0.4, 0, 0, 0, 0, 0])


@settings(deadline=None)  # the first call imports SciPy's signal package
@given(seed=st.integers(0, 99), n_fft=st.integers(4, 9), normalized=st.booleans(), onesided=st.booleans())
def test_istft_is_the_inverse(seed, n_fft, normalized, onesided):
    signal = t.from_numpy(np.random.default_rng(seed).standard_normal((2, 24)))
    options = {"window": t.hann_window(n_fft, dtype=t.float64) + 0.1, "normalized": normalized, "onesided": onesided}
    spectrogram = t.stft(signal, n_fft, 2, return_complex=True, **options)
    back = t.istft(spectrogram, n_fft, 2, length=24, **options)
    np.testing.assert_allclose(back.numpy(), signal.numpy(), atol=1e-12)


def test_derivatives_of_both_with_respect_to_signal_and_window():
    rng = np.random.default_rng(0)
    signal = t.from_numpy(rng.standard_normal(8)).requires_grad_()
    window = t.from_numpy(rng.random(4) + 0.5).requires_grad_()

    def there_and_back(signal, window):
        spectrogram = t.stft(signal, 4, 2, window=window, return_complex=True)
        return t.istft(spectrogram.abs() * spectrogram, 4, 2, window=window)

    assert t.autograd.gradcheck(there_and_back, (signal, window))
    assert t.autograd.gradgradcheck(there_and_back, (signal, window))
