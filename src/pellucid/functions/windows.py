"""Windows: the weights with which a piece of a signal is multiplied before its Fourier transform.

`signal.windows` and PyTorch's older functions at the top level; SciPy computes both. A window depends on no tensor, so nothing
here has a derivative.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.fresh import finished
from pellucid.autograd.operator import composite
from pellucid.core.checks import require_kind
from pellucid.core.dtype import dtype_of, numpy_of
from pellucid.core.tensor import Tensor, strided

__all__ = ["bartlett_window", "blackman_window", "hamming_window", "hann_window", "kaiser_window"]


def _points(name: str, M: int, sym: bool, shape: tuple) -> np.ndarray:
    """The window of that name: M float64 values."""
    from scipy.signal import windows  # slow import

    return getattr(windows, name)(M, *shape, sym=sym)


def _check_length(name: str, argument: str, M) -> None:
    if isinstance(M, bool) or not isinstance(M, (int, np.integer)):
        raise TypeError(f"{name}(): argument '{argument}' must be int, not {type(M).__name__}")


# --- signal.windows --------------------------------------------------------------------------------------------------


def _window(name, M, sym, *shape, dtype=None, layout=None, device=None, requires_grad=False) -> Tensor:
    """A window of `signal.windows`. Takes the options that all of them have."""
    _check_length(name, "M", M)
    if M < 0:
        raise ValueError(f"{name} requires non-negative window length, got M={M}")
    if layout not in (None, strided):
        raise ValueError(f"{name} is implemented for strided tensors only, got: {layout}")
    kind = numpy_of(dtype)
    if kind not in (np.float32, np.float64):
        raise ValueError(f"{name} expects float32 or float64 dtypes, got: {dtype_of(kind)}")
    return finished(_points(name, M, sym, shape).astype(kind), requires_grad, device)


_OPTIONS = """

    M: the number of points. sym: symmetric, as for filters; else periodic, as for Fourier transforms: the first M of M + 1 points.
    options: dtype (float32 or float64; the default dtype if None), layout, device, requires_grad.
    Returns [M], at most 1. Raises: ValueError for a negative M, another dtype or layout, a parameter out of range; TypeError
    for an M that is no integer.
"""


def _public(function):
    """Export a window from `signal.windows`, with the options in its documentation."""
    function.__doc__ += _OPTIONS
    return composite(module="signal.windows")(function)


def _plain(name: str, doc: str) -> None:
    """Export a window without parameters of its own."""

    def window(M, *, sym=True, **options):
        return _window(name, M, sym, **options)

    window.__name__, window.__qualname__, window.__doc__ = name, name, doc
    _public(window)


_plain("bartlett", "A triangle that begins and ends with zero.")
_plain("blackman", "0.42 - 0.5 cos x + 0.08 cos 2x, x from 0 to 2 pi.")
_plain("cosine", "sin(pi (m + 0.5) / M), also called the sine window.")
_plain("hamming", "0.54 - 0.46 cos x, x from 0 to 2 pi.")
_plain("hann", "(1 - cos x) / 2, x from 0 to 2 pi.")
_plain("nuttall", "The cosine window of four terms with the smallest side lobes, after Nuttall (1981).")


@_public
def exponential(M, *, center=None, tau=1.0, sym=True, **options):
    """exp(-|m - center| / tau); the centre is the middle unless the window is periodic and says otherwise."""
    if tau <= 0:
        raise ValueError(f"Tau must be positive, got: {tau} instead.")
    if sym and center is not None:
        raise ValueError(f"Center must be None for symmetric windows, got: {center}. Give sym=False")
    return _window("exponential", M, sym, center, tau, **options)


@_public
def gaussian(M, *, std=1.0, sym=True, **options):
    """exp(-(m - middle)^2 / (2 std^2))."""
    if std <= 0:
        raise ValueError(f"Standard deviation must be positive, got: {std} instead.")
    return _window("gaussian", M, sym, std, **options)


@_public
def general_cosine(M, *, a, sym=True, **options):
    """a[0] - a[1] cos x + a[2] cos 2x - ..., x from 0 to 2 pi."""
    if not isinstance(a, (list, tuple)):
        raise TypeError(f"Coefficients must be a list/tuple, got {type(a).__name__}")
    if not a:
        raise ValueError("Coefficients cannot be empty: give at least one in `a`")
    return _window("general_cosine", M, sym, a, **options)


@_public
def general_hamming(M, *, alpha=0.54, sym=True, **options):
    """alpha - (1 - alpha) cos x, x from 0 to 2 pi."""
    return _window("general_hamming", M, sym, alpha, **options)


@_public
def kaiser(M, *, beta=12.0, sym=True, **options):
    """I0(beta sqrt(1 - t^2)) / I0(beta), t from -1 to 1, with the modified Bessel function I0."""
    if beta < 0:
        raise ValueError(f"beta must be non-negative, got: {beta} instead.")
    return _window("kaiser", M, sym, beta, **options)


# --- the older names -------------------------------------------------------------------------------------------------


def _older(title, name, window_length, periodic, *shape, dtype=None, layout=None, device=None, pin_memory=False,
           requires_grad=False) -> Tensor:  # fmt: skip
    """A window of the top level: periodic by default, of any floating-point dtype."""
    _check_length(title, "window_length", window_length)
    kind = numpy_of(dtype)
    if kind.kind in "iub":
        raise RuntimeError(f"{title} expects floating point dtypes, got: {dtype_of(kind)}")
    require_kind("arange_cpu", np.empty(0, kind), "f")
    if window_length < 0:
        raise RuntimeError(f"{title} requires non-negative window_length, got window_length={window_length}")
    return finished(_points(name, window_length, not periodic, shape).astype(kind), requires_grad, device)


def _older_of(name: str):
    """The older name of a window without parameters of its own."""

    def window(window_length, periodic=True, **options):
        return _older(f"{name}_window", name, window_length, periodic, **options)

    window.__name__ = window.__qualname__ = f"{name}_window"
    window.__doc__ = f"`signal.windows.{name}`, periodic by default. RuntimeError for a negative length or integer dtype."
    return composite()(window)


bartlett_window, blackman_window, hann_window = (_older_of(name) for name in ("bartlett", "blackman", "hann"))


@composite()
def hamming_window(window_length, periodic=True, alpha=0.54, beta=0.46, **options):
    """alpha - beta cos x, x from 0 to 2 pi; periodic by default."""
    return _older("hamming_window", "general_cosine", window_length, periodic, (alpha, beta), **options)


@composite()
def kaiser_window(window_length, periodic=True, beta=12.0, **options):
    """`signal.windows.kaiser`, periodic by default."""
    return _older("kaiser_window", "kaiser", window_length, periodic, beta, **options)
