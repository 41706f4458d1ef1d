"""What all draws share: element types and their names, rounding, and arithmetic rounded as in PyTorch's kernels."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

FLOAT16, BFLOAT16 = np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)
FLOAT32, FLOAT64 = np.dtype(np.float32), np.dtype(np.float64)
BOOL, INT64 = np.dtype(np.bool_), np.dtype(np.int64)

# PyTorch's two names of each element type: in "not implemented for" errors, and in "out of bounds" errors.
TYPE_NAMES = {
    np.dtype(np.uint8): ("Byte", "unsigned char"),
    np.dtype(np.int8): ("Char", "signed char"),
    np.dtype(np.int16): ("Short", "short int"),
    np.dtype(np.int32): ("Int", "int"),
    INT64: ("Long", "long int"),
    BOOL: ("Bool", "bool"),
    FLOAT16: ("Half", "c10::Half"),
    BFLOAT16: ("BFloat16", "c10::BFloat16"),
    FLOAT32: ("Float", "float"),
    FLOAT64: ("Double", "double"),
    np.dtype(np.complex64): ("ComplexFloat", "c10::complex<float>"),
    np.dtype(np.complex128): ("ComplexDouble", "c10::complex<double>"),
}
#: Bits of the significand, the hidden one included.
DIGITS = {FLOAT16: 11, BFLOAT16: 8, FLOAT32: 24, FLOAT64: 53}
#: The largest finite number of each floating type.
LARGEST = {dtype: float(ml_dtypes.finfo(dtype).max) for dtype in DIGITS}
REAL_OF_COMPLEX = {np.dtype(np.complex64): FLOAT32, np.dtype(np.complex128): FLOAT64}

#: Up to this many numbers the C library's functions are called one by one: PyTorch calls the same, so the bits agree.
_FEW = 64
#: Numbers worked on at a time where a formula has many steps: their intermediate results fit a core's cache.
_PIECE = 8192


def checked_shape(shape) -> tuple[int, ...]:
    """`shape` as a tuple of lengths; RuntimeError for a negative one."""
    shape = tuple(shape)
    for length in shape:
        if length < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {length}: {list(shape)}. Lengths start at 0."
            )
    return shape


def require(supported: bool, kernel: str, dtype: np.dtype) -> None:
    """NotImplementedError, naming PyTorch's kernel and type, unless `supported`."""
    if not supported:
        raise NotImplementedError(
            f"\"{kernel}\" not implemented for '{TYPE_NAMES[dtype][0]}'. Draw in another dtype and convert."
        )


def computed_in(dtype: np.dtype) -> np.dtype:
    """The type that numbers of a floating dtype are computed in: the 16-bit types use float32."""
    return FLOAT64 if dtype == FLOAT64 else FLOAT32


def narrow(values: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """`values` as `dtype`. The 16-bit types are rounded from float32, so that a float64 is rounded twice, as in C++."""
    if values.dtype == dtype:
        return values
    if dtype in (FLOAT16, BFLOAT16) and values.dtype != FLOAT32:
        values = values.astype(np.float32)
    with np.errstate(over="ignore"):
        return values.astype(dtype)


def c_library(vectorised: Callable, one: Callable, values: np.ndarray) -> np.ndarray:
    """A function of float64 numbers: few go through the C library, whose last digit NumPy's loops need not share."""
    if values.size > _FEW:
        return vectorised(values)
    return np.array([one(value) for value in values.tolist()], dtype=np.float64)


def multiply_add(values: np.ndarray, factor: float, addend: float) -> np.ndarray:
    """`values * factor + addend` rounded once, as the fused multiply-add in PyTorch's kernels; floats [n]."""
    if factor == 1 and addend == 0:
        return values
    number = values.dtype.type
    with np.errstate(over="ignore", invalid="ignore"):
        factor, addend = number(factor), number(addend)
        if addend == 0:
            return values * factor
        if number is np.float32:
            return (values.astype(np.float64) * np.float64(factor) + np.float64(addend)).astype(np.float32)
        result = np.empty_like(values)
        # Piece by piece, so that the dozen intermediate arrays stay in the cache.
        for start in range(0, values.size, _PIECE):
            piece = slice(start, start + _PIECE)
            result[piece] = _multiply_add_doubles(values[piece], factor, addend)
    return result


def _multiply_add_doubles(values: np.ndarray, factor, addend) -> np.ndarray:
    """The same in float64, where no wider type is at hand: the rounding errors of the product and of the sum are
    computed exactly (Dekker 1971, Knuth's TwoSum) and added last."""
    product = values * factor
    total = product + addend
    shift = total - product
    total_error = (product - (total - shift)) + (addend - shift)
    result = total + (total_error + _product_error(values, factor, product))
    # Numbers too large to split leave a NaN error term; their plain result stands.
    return result if np.isfinite(result).all() else np.where(np.isfinite(result), result, total)


def _product_error(values: np.ndarray, factor, product: np.ndarray) -> np.ndarray:
    """`values * factor - product`, exactly, from halves of 26 bits."""
    high, low = _halves(values)
    factor_high, factor_low = _halves(factor)
    return ((high * factor_high - product) + high * factor_low + low * factor_high) + low * factor_low


def _halves(number):
    """A float64 as the sum of two numbers of at most 26 bits each (Veltkamp's splitting)."""
    scaled = number * (2.0**27 + 1)
    high = scaled - (scaled - number)
    return high, number - high
