"""Fourier transforms: values as PyTorch 2.13 gives them, inverses and symmetries, error texts.

Derivatives of the operators under them are tested from their declarations.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import assert_gives, assert_refused, rows

import pellucid as t

f = t.fft


def x():
    return t.tensor([1.0, 2.0, 0.0, -1.0])


def c():
    return t.tensor([1 + 1j, 2.0, -1j])


def m():
    return t.tensor([[1.0, 2.0, 0.0], [-1.0, 3.0, 0.5]])


VALUES = [
    (lambda: f.fft(x()), "complex64", [2, 1 - 3j, 0, 1 + 3j]),
    (lambda: f.fft(t.tensor([1, 2, 0, -1])), "complex64", [2, 1 - 3j, 0, 1 + 3j]),
    (lambda: f.fft(x().double()), "complex128", [2, 1 - 3j, 0, 1 + 3j]),
    (lambda: f.ifft(x()), "complex64", [0.5, 0.25 + 0.75j, 0, 0.25 - 0.75j]),
    (lambda: f.ifft(c(), norm="forward"), "complex64", [3, -0.866025 + 3.232051j, 0.866025 - 0.232051j]),
    (lambda: f.rfft(x(), norm="ortho"), "complex64", [1, 0.5 - 1.5j, 0]),
    (lambda: f.ihfft(x()), "complex64", [0.5, 0.25 + 0.75j, 0]),
    (lambda: f.hfft(c()), "float32", [5, 1, -3, 1]),
    (lambda: f.irfft(c()), "float32", [1.25, 0.25, -0.75, 0.25]),
    (lambda: f.irfft(c(), n=5), "float32", [1, 0.682328, -0.827636, -0.066791, 0.2121]),
    (lambda: f.irfft(x()), "float32", [0.666667, 0.666667, -0.333333, -0.333333, -0.333333, 0.666667]),
    (lambda: f.fft(x(), n=2), "complex64", [3, -1]),
    (
        lambda: f.fft(x(), n=6, norm="forward"),
        "complex64",
        [1 / 3, 0.5 - 0.288675j, -0.166667 - 0.288675j, 0, -0.166667 + 0.288675j, 0.5 + 0.288675j],
    ),
    (
        lambda: f.fft2(m()),
        "complex64",
        [[5.5, -2.75 - 3.897114j, -2.75 + 3.897114j], [0.5, 2.75 + 0.433013j, 2.75 - 0.433013j]],
    ),
    (lambda: f.rfftn(m()), "complex64", [[5.5, -2.75 - 3.897114j], [0.5, 2.75 + 0.433013j]]),
    (lambda: f.ihfft2(m()), "complex64", [[0.916667, -0.458333 + 0.649519j], [0.083333, 0.458333 - 0.072169j]]),
    (lambda: f.hfftn(m()), "float32", [[10.5, -0.5, -9.5, -0.5], [-0.5, 2.5, 3.5, 2.5]]),
    (lambda: f.irfft2(m(), s=(2, 3)), "float32", [[1.666667, -0.833333, -0.833333], [0, 0.5, 0.5]]),
    (lambda: f.fftn(m(), s=(-1, 2)), "complex64", [[5, -5], [1, 3]]),
    (lambda: f.fftn(m(), s=2), "complex64", [[3, -1], [2, -4]]),
    (lambda: f.fftn(m(), dim=0), "complex64", [[0, 5, 0.5], [2, -1, -0.5]]),
    (lambda: f.fftn(t.tensor(3.0)), "complex64", 3),
    (lambda: f.fftn(x(), dim=()), "complex64", [1, 2, 0, -1]),
    (lambda: f.fft(t.zeros(0, 3)), "complex64", np.zeros((0, 3))),
    (lambda: f.fftfreq(5, 0.5), "float32", [0, 0.4, 0.8, -0.8, -0.4]),
    (lambda: f.fftfreq(4, dtype=t.float64), "float64", [0, 0.25, -0.5, -0.25]),
    (lambda: f.fftfreq(0), "float32", np.zeros(0)),
    (lambda: f.fftfreq(2, d=0.0), "float32", [np.nan, -np.inf]),
    (lambda: f.rfftfreq(5, 0.5), "float32", [0, 0.4, 0.8]),
    (lambda: f.fftshift(m()), "float32", [[0.5, -1, 3], [0, 1, 2]]),
    (lambda: f.fftshift(m(), dim=1), "float32", [[0, 1, 2], [0.5, -1, 3]]),
    (lambda: f.ifftshift(x()), "float32", [0, -1, 1, 2]),
]


@pytest.mark.parametrize(("compute", "dtype", "expected"), rows(VALUES))
def test_value(compute, dtype, expected):
    assert_gives(compute(), dtype, expected)


REFUSED = [
    (lambda: f.fft([1.0]), TypeError, "fft_fft(): argument 'input' must be Tensor, not list"),
    (lambda: f.fftn([1.0]), TypeError, "fft_fftn(): argument 'input' must be Tensor, not list"),
    (lambda: f.fft(x(), n=2.5), TypeError, "fft_fft(): argument 'n' must be int, not float"),
    (lambda: f.fft(x(), dim=(0,)), TypeError, "fft_fft(): argument 'dim' must be int, not tuple"),
    (lambda: f.fft(t.tensor(1.0)), IndexError, "Dimension specified as -1 but tensor has no dimensions"),
    (lambda: f.fft(x(), dim=1), IndexError, "Dimension out of range (expected to be in range of [-1, 0], but got 1)"),
    (lambda: f.fft2(x()), IndexError, "Dimension out of range (expected to be in range of [-1, 0], but got -2)"),
    (lambda: f.fft(x(), n=0), RuntimeError, "Invalid number of data points (0) specified"),
    (lambda: f.fft(x(), n=-1), RuntimeError, "Invalid number of data points (-1) specified"),
    (lambda: f.fftn(m(), s=(-2, 3)), RuntimeError, "Invalid number of data points (-2) specified"),
    (lambda: f.fftn(t.zeros(0, 3)), RuntimeError, "Invalid number of data points (0) specified"),
    (lambda: f.irfft(x()[:1]), RuntimeError, "Invalid number of data points (0) specified"),
    (lambda: f.fft(x(), norm="abc"), RuntimeError, 'Invalid normalization mode: "abc"'),
    (lambda: f.fft(x().half()), RuntimeError, "Unsupported dtype Half"),
    (lambda: f.irfft(x().bfloat16()), RuntimeError, "Unsupported dtype BFloat16"),
    (lambda: f.rfft(c()), RuntimeError, "rfft expects a real input tensor, but got ComplexFloat"),
    (lambda: f.ihfft(c()), RuntimeError, "ihfft expects a real input tensor, but got ComplexFloat"),
    (lambda: f.rfftn(c()), RuntimeError, "rfftn expects a real-valued input tensor, but got ComplexFloat"),
    (lambda: f.fft(x(), out=x()), RuntimeError, "fft expects a complex output tensor, but got Float"),
    (lambda: f.hfft(x(), out=c()), RuntimeError, "hfft expects a floating point output tensor, but got ComplexFloat"),
    (lambda: f.rfftn(x(), dim=()), RuntimeError, "rfftn must transform at least one axis"),
    (lambda: f.irfftn(t.tensor(1.0)), RuntimeError, "irfftn must transform at least one axis"),
    (lambda: f.fftn(m(), dim=(0, -2)), RuntimeError, "FFT dims must be unique"),
    (lambda: f.fftn(m(), s=(3,), dim=(0, 1)), RuntimeError, "dim and shape arguments must have the same length"),
    (lambda: f.fftn(m(), s=(3, 3, 3)), RuntimeError, "Got shape with 3 values but input tensor only has 2 dimensions."),
    (lambda: f.fftfreq(2.5), TypeError, "fft_fftfreq(): argument 'n' must be int, not float"),
    (lambda: f.rfftfreq(-1), RuntimeError, "Trying to create tensor with negative dimension -1: [-1]"),
    (lambda: f.fftfreq(3, dtype=t.int64), RuntimeError, "fftfreq requires a floating point or complex dtype"),
    (lambda: f.fftfreq(3, dtype=t.complex64), NotImplementedError, "\"arange_cpu\" not implemented for 'ComplexFloat'"),
    (lambda: f.fftshift(m(), dim=3), IndexError, "Dimension out of range"),
    (lambda: f.fftshift(t.tensor(1.0)), RuntimeError, "`shifts` required"),
]


@pytest.mark.parametrize(("call", "kind", "phrase"), rows(REFUSED))
def test_error(call, kind, phrase):
    assert_refused(call, kind, phrase)


def test_out_takes_the_result_in_a_wider_dtype():
    held = t.empty(1, dtype=t.complex128)
    assert f.fft(x(), out=held) is held
    assert_gives(held, "complex128", [2, 1 - 3j, 0, 1 + 3j])


def signals(seed: int, *shape: int):
    rng = np.random.default_rng(seed)
    return t.from_numpy(rng.standard_normal(shape) + 1j * rng.standard_normal(shape))


PAIRS = [(f.fft, f.ifft), (f.fft2, f.ifft2), (f.fftn, f.ifftn)]
HALF_PAIRS = [(f.rfft, f.irfft), (f.ihfft, f.hfft)]


@given(seed=st.integers(0, 99), n=st.integers(1, 9), norm=st.sampled_from(["backward", "ortho", "forward", None]))
def test_inverses(seed, n, norm):
    z = signals(seed, 3, n)
    for there, back in PAIRS:
        np.testing.assert_allclose(back(there(z, norm=norm), norm=norm).numpy(), z.numpy(), atol=1e-12)
    for there, back in HALF_PAIRS:
        real = z.real.clone()
        np.testing.assert_allclose(back(there(real, norm=norm), n=n, norm=norm).numpy(), real.numpy(), atol=1e-12)


@given(seed=st.integers(0, 99), n=st.integers(1, 9))
def test_orthonormal_transforms_keep_the_norm(seed, n):
    z = signals(seed, n)
    assert f.fft(z, norm="ortho").norm().item() == pytest.approx(z.norm().item())


@given(n=st.integers(1, 9), d=st.floats(0.1, 10))
def test_shifted_frequencies_ascend(n, d):
    frequencies = f.fftshift(f.fftfreq(n, d, dtype=t.float64))
    np.testing.assert_allclose(np.diff(frequencies.numpy()), 1 / (n * d))
    np.testing.assert_array_equal(f.ifftshift(frequencies).numpy(), f.fftfreq(n, d, dtype=t.float64).numpy())


def test_first_and_second_derivative_of_a_spectrum():
    signal = x().requires_grad_()
    (slope,) = t.autograd.grad(f.rfft(signal).abs().sum(), signal, create_graph=True)
    assert_gives(slope, "float32", [1.316228, 1.948683, 0.683772, 0.051317])
    energy = f.fft(signal).abs().square().sum()  # n times the squared norm
    (slope,) = t.autograd.grad(energy, signal, create_graph=True)
    (curve,) = t.autograd.grad(slope.sum(), signal)
    assert_gives(slope, "float32", [8, 16, 0, -8])
    assert_gives(curve, "float32", [8, 8, 8, 8])
