"""Fourier transforms of short overlapping pieces of a signal (stft), and the signal that fits such a spectrogram best (istft).

Both are compositions: sliding windows, a product, a transform of `fourier.py`. Windows come from `windows.py`.
"""

from __future__ import annotations

import warnings

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.tensor import Tensor, wrap
from pellucid.functions.fourier import floating
from pellucid.functions.padding import pad

__all__ = ["istft", "stft"]


def _require(condition: bool, name: str, expected: str) -> None:
    if not condition:
        raise RuntimeError(f"{name}(): expected {expected}")


def _window(name: str, window, n_fft: int, width: int, like: Tensor) -> Tensor:
    """The window with zeros on both sides, n_fft long."""
    if window is None:
        warnings.warn(
            f"{name}(): A window was not provided. A rectangular window is applied, through which spectra leak into their "
            "neighbours; give one such as torch.hann_window(win_length), or torch.ones(win_length) to mean this one",
            UserWarning,
            stacklevel=3,
        )
        window = wrap(np.ones(width, like._array.real.dtype))
    left = (n_fft - width) // 2
    return T.constant_pad_nd(window, [left, n_fft - width - left], 0) if width < n_fft else window


# --- signal to spectrogram -------------------------------------------------------------------------------------------


@composite(method=True)
def stft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, pad_mode="reflect", normalized=False,
         onesided=None, return_complex=None, align_to_window=None):  # fmt: skip
    """The short-time Fourier transform: X[k, t] = sum over m of window[m] input[t hop_length + m] exp(-2 pi i k m / n_fft).

    Args:
        input: [B, L] or [L], floating-point or complex.
        n_fft: the size of a transform.
        hop_length: how far frames lie apart; n_fft // 4 if None.
        win_length: the size of the window, which stands in the middle of the frame; n_fft if None.
        window: [win_length]; ones if None, with a warning.
        center: pad the signal by n_fft // 2 at both ends as `pad_mode` says (see nn.functional.pad), so that frame t has its
            middle at t hop_length.
        normalized: divide by the square root of n_fft.
        onesided: only the frequencies up to n_fft // 2; by default where input and window are real.
        return_complex: complex numbers, else pairs of real ones; must be given where input and window are real.
        align_to_window: without `center`: frame t begins where its window does.

    Returns:
        [B, frequencies, frames] (or without B), with `return_complex=False` [..., 2].

    Raises:
        RuntimeError: another rank, dtype or size of the window, sizes out of range, contradictory options.
    """
    if center and align_to_window is not None:
        raise RuntimeError("stft align_to_window should only be set when center = false")
    hop, width = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    return_complex = _checked_return(return_complex, input.is_complex() or (window is not None and window.is_complex()))
    _require(input._array.dtype.kind in "fcV", "stft", f"a tensor of floating point or complex values, got {input.dtype}")
    _require(input.dim() in (1, 2), "stft", f"a 1D or 2D tensor, got shape {list(input.shape)}")
    signal = floating(input).reshape(-1, input.shape[-1])
    if center:
        signal = pad(signal.unsqueeze(0), (n_fft // 2, n_fft // 2), pad_mode).squeeze(0)
    _check_sizes(signal.shape[-1], n_fft, hop, width, window)
    weights = _window("stft", window, n_fft, width, input)
    if align_to_window:  # where the frame is longer than the window there is no signal to multiply with zero
        left = (n_fft - width) // 2
        signal = T.constant_pad_nd(signal, [left, n_fft - width - left], 0)
    frames = signal.unfold(-1, n_fft, hop)
    spectrum = _spectrum(frames * weights, onesided, "ortho" if normalized else "backward")
    spectrum = spectrum.transpose(1, 2)
    spectrum = spectrum.squeeze(0) if input.dim() == 1 else spectrum
    return spectrum if return_complex else T.view_as_real(spectrum)


def _checked_return(return_complex, is_complex: bool) -> bool:
    """Whether complex numbers are returned: for real signals that must be said."""
    if return_complex is None and not is_complex:
        raise RuntimeError(
            "stft requires the return_complex parameter be given for real inputs: give return_complex=True, and "
            "torch.view_as_real for pairs of real numbers"
        )
    if return_complex is False and not is_complex:
        warnings.warn(
            "stft with return_complex=False is deprecated: use torch.view_as_real on the complex result",
            UserWarning,
            stacklevel=3,
        )
    return return_complex is None or bool(return_complex)


def _check_sizes(length: int, n_fft: int, hop: int, width: int, window) -> None:
    _require(0 < n_fft <= length, "stft", f"0 < n_fft < {length}, but got n_fft={n_fft}")
    _require(hop > 0, "stft", f"hop_length > 0, but got hop_length={hop}")
    _require(0 < width <= n_fft, "stft", f"0 < win_length <= n_fft, but got win_length={width}")
    if window is not None:
        shape = list(window.shape)
        _require(shape == [width], "stft", f"a 1D window tensor of size equal to win_length={width}, but got window with size {shape}")


def _spectrum(frames: Tensor, onesided, norm: str) -> Tensor:
    last = (frames.dim() - 1,)
    if not frames.is_complex():
        return T.fft_r2c(frames, last, norm, onesided is None or bool(onesided))
    if onesided:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    return T.fft_c2c(frames, last, norm, False)


# --- spectrogram to signal -------------------------------------------------------------------------------------------


@composite(method=True)
def istft(input, n_fft, hop_length=None, win_length=None, window=None, center=True, normalized=False, onesided=None, length=None,
          return_complex=False):  # fmt: skip
    """The inverse of `stft`: of all signals the one whose spectrogram differs least, in the sum of squares, from the given one.

    Frames are transformed back, multiplied with the window, added up where they overlap, and divided by the sum of the squared
    windows there (Griffin and Lim, 1984).

    Args:
        input: [B, frequencies, frames] or without B, complex.
        n_fft, hop_length, win_length, window, center, normalized: as for `stft`.
        onesided: whether the frequencies end at n_fft // 2; by default where there are not n_fft.
        length: how much of the signal to return; what is not there is filled with zeros.
        return_complex: a complex signal, from all frequencies.

    Returns:
        [B, length] or [length].

    Raises:
        RuntimeError: real input, another rank, sizes that do not fit, a place that all windows leave out.
    """
    hop, width = n_fft // 4 if hop_length is None else hop_length, n_fft if win_length is None else win_length
    if not input.is_complex():
        raise RuntimeError("istft requires a complex-valued input tensor matching the output from stft with return_complex=True.")
    if onesided is None:
        onesided = n_fft != input.size(-2)
    _check_inverse(input, n_fft, hop, width, window, onesided)
    weights = _window("istft", window, n_fft, width, input)
    if onesided and return_complex:
        raise RuntimeError("Cannot have onesided output if window or input is complex")
    if weights.is_complex() and not return_complex:
        raise RuntimeError("Complex windows are incompatible with return_complex=False")
    spectrum = (input if input.dim() == 3 else input.unsqueeze(0)).transpose(1, 2)
    frames = _frames(spectrum, n_fft, "ortho" if normalized else "backward", return_complex)
    total = n_fft + hop * (frames.shape[1] - 1)
    start = n_fft // 2 if center else 0
    end = start + length if length is not None else total - start
    made = _overlapped(frames, weights, total, hop, start, end)
    if end > total:
        warnings.warn("The length of signal is shorter than the length parameter. Result is being padded with zeros in the tail: "
                      "check center and hop_length", UserWarning, stacklevel=2)  # fmt: skip
        made = T.constant_pad_nd(made, [0, end - total], 0)
    return made if input.dim() == 3 else made.squeeze(0)


def _check_inverse(input: Tensor, n_fft: int, hop: int, width: int, window, onesided: bool) -> None:
    shape = list(input.shape)
    _require(input.numel() > 0, "istft", f"a spectrogram: input tensor cannot be empty, got shape {shape}")
    _require(len(shape) in (2, 3), "istft", f"a tensor with 2 or 3 dimensions, got shape {shape}")
    points, which = (n_fft // 2 + 1, "n_fft / 2 + 1 when onesided=True") if onesided else (n_fft, "n_fft when onesided=False")
    _require(shape[-2] == points, "istft", f"the frequency dimension of the input tensor to match {which}, but got {shape[-2]} "
                                           f"for n_fft={n_fft}")  # fmt: skip
    _require(0 < hop <= width, "istft", f"0 < hop_length <= win_length, but got hop_length={hop}, win_length={width}")
    _require(0 < width <= n_fft, "istft", f"0 < win_length <= n_fft, but got win_length={width}, n_fft={n_fft}")
    if window is not None and list(window.shape) != [width]:
        raise RuntimeError("istft(): Invalid window shape. window has to be 1D and length of `win_length`: expected "
                           f"[{width}], got {list(window.shape)}")  # fmt: skip


def _frames(spectrum: Tensor, n_fft: int, norm: str, return_complex: bool) -> Tensor:
    """The pieces [B, frames, n_fft] of the signal, from their spectra [B, frames, frequencies]."""
    if return_complex:
        return T.fft_c2c(spectrum, (2,), norm, True)
    return T.fft_c2r(spectrum[..., : n_fft // 2 + 1], (2,), norm, n_fft)


def _overlapped(frames: Tensor, weights: Tensor, total: int, hop: int, start: int, end: int) -> Tensor:
    """Elements start to end of the weighted frames added up, over the squared windows added up."""
    batch, count, n_fft = frames.shape
    added = T.unfold_backward(frames * weights, (batch, total), 1, n_fft, hop)[:, start:end]
    envelope = T.unfold_backward((weights * weights).expand(1, count, n_fft), (1, total), 1, n_fft, hop)[:, start:end]
    lowest = envelope.detach().abs().min()
    if bool(lowest < 1e-11):
        raise RuntimeError(f"istft(): window overlap add min: {lowest.item()}: a place that all windows leave out cannot be "
                           "restored. Use a smaller hop_length or another window")  # fmt: skip
    return added / envelope
