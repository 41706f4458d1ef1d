"""Uniform numbers, and what one uniform number each turns into: Bernoulli, exponential, Cauchy, geometric."""

from __future__ import annotations

import math

import numpy as np

from .generator import Generator, or_default
from .rounding import (
    BOOL,
    DIGITS,
    FLOAT32,
    FLOAT64,
    LARGEST,
    REAL_OF_COMPLEX,
    TYPE_NAMES,
    c_library,
    checked_shape,
    computed_in,
    multiply_add,
    narrow,
    require,
)

__all__ = ["bernoulli", "cauchy", "dropout_mask", "exponential", "geometric", "uniform"]


def uniform(
    shape, dtype: np.dtype | type = np.float32, low=0.0, high=1.0, generator: Generator | None = None
) -> np.ndarray:
    """Numbers uniform in [low, high), array [*shape] of a floating or complex dtype (both parts are drawn).

    float64 draws 53 bits, every other type 24.

    Raises:
        NotImplementedError: `dtype` is an integer type.
        RuntimeError: the range is empty or leaves the dtype's range.
    """
    dtype, shape = np.dtype(dtype), checked_shape(shape)
    if dtype in REAL_OF_COMPLEX:
        return uniform((*shape, 2), REAL_OF_COMPLEX[dtype], low, high, generator).view(dtype)[..., 0]
    low, high = float(low), float(high)
    _check_uniform(dtype, low, high)
    if math.prod(shape) == 0:
        return np.empty(shape, dtype)
    computed = computed_in(dtype)
    width = computed.type(high) - computed.type(low)
    values = multiply_add(or_default(generator).uniforms(math.prod(shape), computed), width, low)
    values = narrow(values, dtype)
    if low != 0 or width != 1 or dtype != computed:
        # Rounding may reach `high`, which does not belong to the range.
        values[values == dtype.type(high)] = dtype.type(low)
    return values.reshape(shape)


def _check_uniform(dtype: np.dtype, low: float, high: float) -> None:
    require(dtype in DIGITS, "check_uniform_bounds", dtype)
    largest = LARGEST[dtype]
    for value, name in ((low, "from"), (high, "to")):
        if not -largest <= value <= largest:
            raise RuntimeError(
                f"{name} is out of bounds for {TYPE_NAMES[dtype][1]}: expected a number in "
                f"[-{largest:g}, {largest:g}], but got {value:g}."
            )
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low:g} > to={high:g}. "
            "Swap the two numbers."
        )
    if high - low > largest:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{TYPE_NAMES[dtype][0]}>::max(), but found to={high:g} "
            f"and from={low:g} which result in to-from to exceed the limit of {largest:g}. Narrow the range."
        )


def exponential(shape, dtype: np.dtype | type = np.float32, rate=1.0, generator: Generator | None = None) -> np.ndarray:
    """Exponentially distributed numbers with mean `1 / rate`, array [*shape] of a floating dtype.

    Raises:
        RuntimeError: `dtype` is not a floating type, or `rate` is not positive.
    """
    dtype, shape = np.dtype(dtype), checked_shape(shape)
    if not rate > 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={rate:g}. Pass a positive rate.")
    size = math.prod(shape)
    if size and dtype not in DIGITS:
        raise RuntimeError(
            "Exponential distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {TYPE_NAMES[dtype][0]}. Draw a float tensor and convert it."
        )
    uniforms = or_default(generator).uniforms(size, FLOAT64)
    return narrow((-1.0 / rate) * c_library(np.log1p, math.log1p, -uniforms), dtype).reshape(shape)


def cauchy(
    shape, dtype: np.dtype | type = np.float32, median=0.0, sigma=1.0, generator: Generator | None = None
) -> np.ndarray:
    """Cauchy distributed numbers, array [*shape] of a floating dtype.

    Raises:
        RuntimeError: `dtype` is not a floating type, or `sigma` is not positive.
    """
    dtype, shape = np.dtype(dtype), checked_shape(shape)
    if not sigma > 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}. Pass a positive scale.")
    if dtype not in DIGITS:
        raise RuntimeError(
            "Cauchy distribution is a continuous probability distribution. dtype must be a floating point but you "
            f"specified {TYPE_NAMES[dtype][1]}. Draw a float tensor and convert it."
        )
    angle = math.pi * (or_default(generator).uniforms(math.prod(shape), FLOAT64) - 0.5)
    tangent = c_library(np.tan, math.tan, angle)
    return narrow(multiply_add(tangent, sigma, median), dtype).reshape(shape)


def geometric(shape, dtype: np.dtype | type = np.float32, p=0.5, generator: Generator | None = None) -> np.ndarray:
    """The number of trials up to the first success of probability `p`, array [*shape] of a real dtype but bool.

    Raises:
        NotImplementedError: `dtype` is bool or complex.
        RuntimeError: `p` is outside (0, 1).
    """
    dtype, shape = np.dtype(dtype), checked_shape(shape)
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}. Pass a probability.")
    size = math.prod(shape)
    if size:
        require(dtype != BOOL and dtype not in REAL_OF_COMPLEX, "geometric_cpu", dtype)
    with np.errstate(divide="ignore", invalid="ignore"):
        trials = np.ceil(np.log(or_default(generator).uniforms(size, FLOAT64)) / math.log1p(-p))
        return narrow(trials, dtype).reshape(shape)


def bernoulli(p, shape=None, dtype=None, generator: Generator | None = None) -> np.ndarray:
    """Ones with probability `p` and zeros, array [*shape].

    Args:
        p: a number, drawn with 53 bits; or an array of probabilities that broadcasts to `shape`, drawn with 24 bits
            (float64: 53).
        shape: the shape; that of `p` if not given.
        dtype: any real dtype; that of `p` if not given (float32 for a number).

    Raises:
        NotImplementedError: `dtype` is complex, or the array `p` is not of a floating type.
        RuntimeError: a probability is outside [0, 1].
    """
    scalar = np.ndim(p) == 0 and not isinstance(p, np.ndarray)
    shape = checked_shape(np.shape(p) if shape is None else shape)
    dtype = np.dtype(dtype or (FLOAT32 if scalar else p.dtype))
    if scalar and not 0 <= p <= 1:
        raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}. Pass a probability.")
    size = math.prod(shape)
    if size == 0:
        return np.empty(shape, dtype)
    require(dtype not in REAL_OF_COMPLEX, "bernoulli_scalar_cpu_" if scalar else "bernoulli_tensor_cpu_self_", dtype)
    if scalar and dtype in (FLOAT32, FLOAT64):
        return or_default(generator).marks(size, float(p), dtype.type(1)).reshape(shape)
    if scalar:
        return (or_default(generator).uniforms(size, FLOAT64) < p).astype(dtype).reshape(shape)
    return _bernoulli_of_array(p, shape, dtype, generator)


def _bernoulli_of_array(p: np.ndarray, shape, dtype, generator) -> np.ndarray:
    require(p.dtype in DIGITS, "bernoulli_tensor_cpu_p_", p.dtype)
    computed = computed_in(p.dtype)
    chances = np.broadcast_to(p.astype(computed, copy=False), shape)
    if not np.all((chances >= 0) & (chances <= 1)):
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false: bernoulli needs probabilities in [0, 1], "
            f"but found values from {np.min(chances):g} to {np.max(chances):g}. Apply a sigmoid or a clamp first."
        )
    drawn = or_default(generator).uniforms(math.prod(shape), computed).reshape(shape)
    return (drawn < chances).astype(dtype)


def dropout_mask(shape, dtype: np.dtype | type = np.float32, p=0.5, generator: Generator | None = None) -> np.ndarray:
    """What `nn.functional.dropout` multiplies by: 0 with probability `p`, else `1 / (1 - p)`; array [*shape].

    Nothing is drawn for `p` 0 or 1.

    Raises:
        ValueError: `p` is outside [0, 1].
    """
    dtype, shape = np.dtype(dtype), checked_shape(shape)
    if not 0 <= p <= 1:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}. Pass the share to drop.")
    if p in (0, 1):
        return np.full(shape, 1 - p, dtype)
    if dtype in (FLOAT32, FLOAT64):
        return or_default(generator).marks(math.prod(shape), 1 - p, dtype.type(1) / dtype.type(1 - p)).reshape(shape)
    computed = computed_in(dtype)
    kept = bernoulli(1 - p, shape, dtype, generator)
    kept *= (computed.type(1) / computed.type(1 - p)).astype(dtype)
    return kept
