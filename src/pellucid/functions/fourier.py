"""Discrete Fourier transforms of complex, real and Hermitian signals, their frequencies, and the shift of the origin.

Every transform is one of the three operators of `ops/fourier.py` on an operand cut or padded to size. Windows are in
`windows.py`, transforms of short pieces of a signal in `spectrograms.py`.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.fresh import finished
from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import require_kind, scalar_name
from pellucid.core.dims import one_dim
from pellucid.core.dtype import dtype_of, get_default_dtype, numpy_of
from pellucid.core.tensor import Tensor
from pellucid.ops.fourier import OTHER_WAY

__all__ = ["fftfreq", "fftshift", "floating", "ifftshift", "rfftfreq"]


INTEGERS = (int, np.integer)


# --- dimensions, sizes, types ----------------------------------------------------------------------------------------


def _norm_name(norm: str | None) -> str:
    if norm is not None and norm not in OTHER_WAY:
        raise RuntimeError(f'Invalid normalization mode: "{norm}". Expected "forward", "backward" or "ortho"')
    return norm or "backward"


def _require(name: str, argument: str, value, kind) -> None:
    if not isinstance(value, kind):
        expected = "Tensor" if kind is Tensor else "int"
        raise TypeError(f"fft_{name}(): argument '{argument}' must be {expected}, not {type(value).__name__}")


def _one(name: str, input: Tensor, n, dim) -> tuple[tuple, list]:
    """The dimension and size of a one-dimensional transform, as lists of one."""
    _require(name, "input", input, Tensor)
    _require(name, "dim", dim, INTEGERS)
    if not input._array.ndim:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    if n is not None:
        _require(name, "n", n, INTEGERS)
        _positive(n)
    return (one_dim(dim, input._array.ndim),), [n]


def _several(name: str, input: Tensor, s, dim) -> tuple[tuple, list]:
    """The dimensions of a transform over several, and for each its size or None."""
    _require(name, "input", input, Tensor)
    ndim = input._array.ndim
    s, dim = ((v,) if isinstance(v, INTEGERS) else v for v in (s, dim))
    if s is not None and dim is not None and len(s) != len(dim):
        raise RuntimeError(
            f"When given, dim and shape arguments must have the same length: got dim={tuple(dim)} and s={tuple(s)}"
        )
    if s is not None and len(s) > ndim:
        raise RuntimeError(f"Got shape with {len(s)} values but input tensor only has {ndim} dimensions.")
    if dim is None:
        dim = range(-ndim if s is None else -len(s), 0)
    dims = tuple([one_dim(d, ndim) for d in dim])
    if len(set(dims)) < len(dims):
        raise RuntimeError(f"FFT dims must be unique: got {dims}")
    return dims, [None] * len(dims) if s is None else [None if n == -1 else n for n in s]


def _positive(size: int) -> int:
    if size < 1:
        raise RuntimeError(f"Invalid number of data points ({size}) specified: a transform needs at least one")
    return size


def _resized(input: Tensor, dims: tuple, sizes: list) -> Tensor:
    """The operand with each dimension cut, or padded with zeros, to its size."""
    shape = input._array.shape
    padding = [0] * (2 * len(shape))  # pairs (before, after), the last dimension first
    for d, size in zip(dims, sizes, strict=True):
        padding[2 * (len(shape) - 1 - d) + 1] = _positive(shape[d] if size is None else size) - shape[d]
    return T.constant_pad_nd(input, padding, 0) if any(padding) else input


def floating(input: Tensor) -> Tensor:
    """The operand, integers as the default float."""
    array = input._array
    if array.dtype.kind in "iub":
        return input.to(get_default_dtype())
    if array.dtype.kind not in "fc" or array.dtype.itemsize < 4:
        raise RuntimeError(f"Unsupported dtype {scalar_name(array)}: convert the input with .float()")
    return input


def _complex(input: Tensor) -> Tensor:
    """The operand as complex numbers."""
    input = floating(input)
    kind = input._array.dtype
    return input if kind.kind == "c" else input.to(dtype_of(np.result_type(kind, np.complex64)))


def _check_out(name: str, out, kind: str) -> None:
    if out is not None and out._array.dtype.kind != kind:
        expected = {"c": "complex", "f": "floating point"}[kind]
        raise RuntimeError(f"{name} expects a {expected} output tensor, but got {scalar_name(out._array)}")


# --- the six transforms ----------------------------------------------------------------------------------------------


def _full(name, input, dims, sizes, norm, out, inverse: bool):
    """fft, ifft: all frequencies. The transform of a real signal is computed as one, its inverse as the conjugate of that."""
    _check_out(name, out, "c")
    input = _resized(floating(input), dims, sizes)
    if input.is_complex():
        return T.fft_c2c(input, dims, norm, inverse, out=out)
    if inverse:
        return T.conj(T.fft_r2c(input, dims, OTHER_WAY[norm], False), out=out)
    return T.fft_r2c(input, dims, norm, False, out=out)


def _half(name, input, dims, sizes, norm, out, inverse: bool):
    """rfft, ihfft: the frequencies of a real signal that do not follow from others, by which the inverse is a conjugate."""
    if input.is_complex():
        valued = "real-valued" if name[-1] in "2n" else "real"
        raise RuntimeError(f"{name} expects a {valued} input tensor, but got {scalar_name(input._array)}")
    _check_out(name, out, "c")
    _at_least_one(name, dims)
    input = _resized(floating(input), dims, sizes)
    if inverse:
        return T.conj(T.fft_r2c(input, dims, OTHER_WAY[norm], True), out=out)
    return T.fft_r2c(input, dims, norm, True, out=out)


def _real(name, input, dims, sizes, norm, out, inverse: bool):
    """hfft, irfft: the real signal of a one-sided spectrum; the forward one is the inverse of the conjugate."""
    _check_out(name, out, "f")
    _at_least_one(name, dims)
    size = sizes[-1]
    size = _positive(2 * (input._array.shape[dims[-1]] - 1) if size is None else size)
    input = _resized(_complex(input), dims, [*sizes[:-1], size // 2 + 1])
    if inverse:
        return T.fft_c2r(input, dims, norm, size, out=out)
    return T.fft_c2r(T.conj(input), dims, OTHER_WAY[norm], size, out=out)


def _at_least_one(name: str, dims: tuple) -> None:
    if not dims:
        raise RuntimeError(f"{name} must transform at least one axis")


_ARGUMENTS = """

    input: [*S], {takes}. n (s): the sizes to which the transformed dimensions are cut, or padded with zeros, first (-1 in s: as it
    is{default}). dim: {dim}. norm: "backward" divides the inverse transform by the number of points, "forward" the forward one,
    "ortho" both by its square root. Returns {returns}.

    Raises:
        IndexError: a dimension that is not there.
        RuntimeError: no points, dimensions named twice, sizes that do not fit the dimensions, an unknown norm, half precision.
"""


def _declare(name: str, transform, inverse: bool, doc: str, **texts) -> None:
    """The public functions of a transform: over one dimension, over two, over any number."""

    def over_one(input, n=None, dim=-1, norm=None, *, out=None):
        return transform(name, input, *_one(name, input, n, dim), _norm_name(norm), out, inverse)

    def over_two(input, s=None, dim=(-2, -1), norm=None, *, out=None):
        return transform(name + "2", input, *_several(name + "2", input, s, dim), _norm_name(norm), out, inverse)

    def over_several(input, s=None, dim=None, norm=None, *, out=None):
        return transform(name + "n", input, *_several(name + "n", input, s, dim), _norm_name(norm), out, inverse)

    for function, suffix, dim in (
        (over_one, "", "the dimension"),
        (over_two, "2", "the two dimensions"),
        (over_several, "n", "the dimensions; by default as many of the last ones as s has sizes, or all"),
    ):
        function.__name__ = function.__qualname__ = name + suffix
        function.__doc__ = doc + _ARGUMENTS.format(dim=dim, **{"default": "", **texts})
        composite(module="fft")(function)


_declare("fft", _full, False, "The discrete Fourier transform: X[k] = sum over m of x[m] exp(-2 pi i k m / n).",
         takes="any dtype", returns="[*S], complex")  # fmt: skip
_declare("ifft", _full, True, "The inverse of the discrete Fourier transform.", takes="any dtype", returns="[*S], complex")
_declare("rfft", _half, False, "The Fourier transform of a real signal, without the frequencies that are conjugates of others.",
         takes="real", returns="[*S] with n // 2 + 1 frequencies in the last transformed dimension, complex")  # fmt: skip
_declare("ihfft", _half, True, "The inverse of `hfft`: the first half of a Hermitian signal, whose spectrum is real.",
         takes="real", returns="[*S] with n // 2 + 1 elements in the last transformed dimension, complex")  # fmt: skip
_HALVED = "; where missing, the last one becomes 2 (S - 1)"
_declare("irfft", _real, True, "The real signal whose one-sided spectrum is given: the inverse of `rfft`.",
         takes="any dtype", default=_HALVED, returns="[*S] with n elements in the last transformed dimension, real")  # fmt: skip
_declare("hfft", _real, False, "The real spectrum of a Hermitian signal, x[-m] = conj(x[m]), of which the first half is given.",
         takes="any dtype", default=_HALVED, returns="[*S] with n frequencies in the last transformed dimension, real")  # fmt: skip


# --- frequencies and shifts ------------------------------------------------------------------------------------------


def _frequencies(name: str, counted, n, d, out, dtype, device, requires_grad) -> Tensor:
    _require(name, "n", n, INTEGERS)
    if n < 0:
        raise RuntimeError(f"Trying to create tensor with negative dimension {n}: [{n}]")
    kind = numpy_of(dtype, None if out is None else out._array.dtype)
    if kind.kind in "iub":
        raise RuntimeError(f"{name} requires a floating point or complex dtype, got {dtype_of(kind)}")
    made = counted.astype(kind)
    require_kind("arange_cpu", made, "f")
    with np.errstate(all="ignore"):  # a spacing of zero gives infinite frequencies
        made = made * (np.float64(1) / np.float64(n * d)).astype(kind)
    return finished(made, requires_grad, device, out)


@composite(module="fft")
def fftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequencies of `fft` over n points that lie d apart: [0, 1, ..., (n - 1) // 2, -(n // 2), ..., -1] / (n d).

    Returns [n], of the default dtype if None. Raises: RuntimeError for a negative n or an integer dtype, TypeError for
    an n that is no integer.
    """
    counted = np.fft.ifftshift(np.arange(n) - n // 2)
    return _frequencies("fftfreq", counted, n, d, out, dtype, device, requires_grad)


@composite(module="fft")
def rfftfreq(n, d=1.0, *, out=None, dtype=None, layout=None, device=None, requires_grad=False):
    """The frequencies of `rfft` over n points that lie d apart: [0, 1, ..., n // 2] / (n d). Raises as `fftfreq`."""
    return _frequencies("rfftfreq", np.arange(n // 2 + 1), n, d, out, dtype, device, requires_grad)


def _shifted(input: Tensor, dim, shift) -> Tensor:
    shape = input._array.shape
    dims = range(len(shape)) if dim is None else (dim,) if isinstance(dim, int) else dim
    dims = [one_dim(d, len(shape)) for d in dims]
    return input.roll([shift(shape[d] if shape else 1) for d in dims], dims)


@composite(module="fft")
def fftshift(input, dim=None):
    """The frequencies of `fft` in ascending order, zero in the middle: each dimension is rolled by half its size.

    input: [*S], any dtype; dim: one or several, all by default. Returns [*S]. Raises: IndexError for a dimension that is not
    there, RuntimeError for a 0-d tensor.
    """
    return _shifted(input, dim, lambda size: size // 2)


@composite(module="fft")
def ifftshift(input, dim=None):
    """The inverse of `fftshift`: zero comes first again."""
    return _shifted(input, dim, lambda size: (size + 1) // 2)
