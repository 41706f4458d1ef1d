"""Samples that take several draws each, or as many as it takes: multinomial, Poisson, truncated normal."""

from __future__ import annotations

import math
from collections.abc import Callable
from operator import length_hint

import numpy as np

from .generator import Generator, or_default
from .mersenne import MersenneTwister, Snapshot
from .normals import normal
from .rounding import DIGITS, FLOAT64, TYPE_NAMES, computed_in, narrow, require
from .uniforms import exponential, uniform

__all__ = ["multinomial", "poisson", "truncated_normal"]

_MOST_CATEGORIES = 2**24
#: Up to this many Poisson numbers are drawn with one uniform at a time, more with blocks of this many at most.
_FEW, _BLOCK = 8, 2**16


# ---- multinomial ----------------------------------------------------------------------------------------------------


def multinomial(
    weights: np.ndarray, num_samples: int, replacement: bool = False, generator: Generator | None = None
) -> np.ndarray:
    """Category numbers drawn in proportion to `weights`, int64 [num_samples] or [rows, num_samples].

    Args:
        weights: floating [categories] or [rows, categories], not negative; a row need not sum to one.
        replacement: whether a category can come more than once.

    Raises:
        RuntimeError: wrong shape, dtype, count or weights.
    """
    _check_multinomial(weights, num_samples, replacement)
    rows = weights.shape[:-1]
    if 0 in rows:
        return np.empty((*rows, num_samples), np.int64)
    _check_weights(weights)
    if replacement and num_samples > 1:
        return _by_cumulative_weight(weights, num_samples, or_default(generator))
    # The smallest of exponential variables with rates w_i is the i-th one with probability w_i / sum(w).
    times = exponential(weights.shape, weights.dtype, 1.0, generator)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        urgency = weights / times
    if num_samples == 1:
        return urgency.argmax(axis=-1, keepdims=True)
    return np.argsort(-urgency, axis=-1, kind="stable")[..., :num_samples]


def _by_cumulative_weight(weights: np.ndarray, num_samples: int, generator: Generator) -> np.ndarray:
    computed = computed_in(weights.dtype)
    rows = weights.reshape(-1, weights.shape[-1]).astype(computed)
    cumulative = np.cumsum(rows, axis=1, dtype=computed)
    cumulative /= cumulative[:, -1:].copy()
    cumulative[:, -1] = 1
    uniforms = generator.uniforms(len(rows) * num_samples, FLOAT64).reshape(len(rows), num_samples)
    samples = np.empty(uniforms.shape, np.int64)
    for row, steps in enumerate(cumulative.astype(np.float64)):
        samples[row] = np.searchsorted(steps, uniforms[row], side="left")
    return samples.reshape(*weights.shape[:-1], num_samples)


def _check_multinomial(weights: np.ndarray, num_samples: int, replacement: bool) -> None:
    if weights.ndim not in (1, 2):
        raise RuntimeError(f"prob_dist must be 1 or 2 dim, but got shape {list(weights.shape)}. Reshape it.")
    if weights.dtype not in DIGITS:
        raise RuntimeError(
            f"multinomial only supports floating-point dtypes for input, got: {TYPE_NAMES[weights.dtype][0]}. "
            "Convert the weights with .float()."
        )
    categories = weights.shape[-1]
    if num_samples <= 0:
        raise RuntimeError(f"cannot sample n_sample <= 0 samples, but got n_sample={num_samples}. Ask for one or more.")
    if not replacement and num_samples > categories:
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without replacement, but got "
            f"n_sample={num_samples} for {categories} categories. Pass replacement=True, or ask for fewer."
        )
    if categories > _MOST_CATEGORIES:
        raise RuntimeError(f"number of categories cannot exceed 2^24, but got {categories}. Sample in two stages.")


def _check_weights(weights: np.ndarray) -> None:
    if weights.size == 0 or not (weights.max() < np.inf and weights.min() >= 0):
        raise RuntimeError(
            "probability tensor contains either `inf`, `nan` or element < 0: multinomial needs finite weights, none "
            "negative, at least one. Apply softmax to scores first."
        )
    if np.any(weights.sum(axis=-1, dtype=computed_in(weights.dtype)) == 0):
        raise RuntimeError(
            "invalid multinomial distribution (sum of probabilities <= 0): each row needs a positive weight."
        )


# ---- Poisson --------------------------------------------------------------------------------------------------------


def poisson(rates: np.ndarray, generator: Generator | None = None) -> np.ndarray:
    """Poisson distributed numbers, one for each rate, in the shape and the floating dtype of `rates`.

    Raises:
        NotImplementedError: the rates are not of a floating type.
        RuntimeError: a rate is negative or NaN.
    """
    if rates.size == 0:
        return np.empty(rates.shape, rates.dtype)
    require(rates.dtype in DIGITS, "poisson_cpu", rates.dtype)
    values = rates.astype(np.float64).reshape(-1)
    if not (values >= 0).all():
        raise RuntimeError(
            f"invalid Poisson rate, expected rate to be non-negative, but got {values[~(values >= 0)][0]:g}. "
            "Pass expected counts."
        )
    generator = or_default(generator)
    with generator.lock:
        # How many uniforms a number takes shows only while it is drawn, so these are drawn one after another.
        reader = _Reader(generator.engine, 1 if rates.size <= _FEW else min(4 * rates.size, _BLOCK))
        counts = [_one_poisson(rate, reader.next) for rate in values.tolist()]
        reader.close()
    return narrow(np.array(counts, dtype=np.float64), rates.dtype).reshape(rates.shape)


def _one_poisson(rate: float, uniform: Callable[[], float]) -> int:
    if rate == 0:
        return 0
    return _poisson_by_rejection(rate, uniform) if rate >= 10 else _poisson_by_product(rate, uniform)


def _poisson_by_product(rate: float, uniform: Callable[[], float]) -> int:
    """How many uniforms can be multiplied before the product falls to exp(-rate) (Knuth)."""
    floor, product, count = math.exp(-rate), uniform(), 0
    while product > floor:
        product *= uniform()
        count += 1
    return count


def _poisson_by_rejection(rate: float, uniform: Callable[[], float]) -> int:
    """Hörmann's transformed rejection with squeeze, algorithm PTRS of "The transformed rejection method for
    generating Poisson random variables" (1993)."""
    log_rate = math.log(rate)
    b = 0.931 + 2.53 * math.sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    squeeze = 0.9277 - 3.6224 / (b - 2)
    while True:
        u = uniform() - 0.5
        v = uniform()
        distance = 0.5 - abs(u)
        if distance == 0:
            continue
        count = math.floor((2 * a / distance + b) * u + rate + 0.43)
        if distance >= 0.07 and v <= squeeze:
            return count
        if count < 0 or (distance < 0.013 and v > distance):
            continue
        log_v = math.log(v) if v else -math.inf
        candidate = log_v + math.log(inverse_alpha) - math.log(a / (distance * distance) + b)
        if candidate <= count * log_rate - rate - math.lgamma(count + 1):
            return count


class _Reader:
    """Uniform float64 numbers one by one, drawn from an engine in blocks; `close` puts the unread ones back."""

    def __init__(self, engine: MersenneTwister, block: int):
        self._engine = engine
        self._block = block
        self._before: Snapshot | None = None
        self._numbers = iter(())

    def next(self) -> float:
        for number in self._numbers:
            return number
        if self._block > 1:
            self._before = self._engine.snapshot()
        self._numbers = iter(self._engine.doubles(self._block).tolist())
        return next(self._numbers)

    def close(self) -> None:
        unread = length_hint(self._numbers)
        if unread and self._before is not None:
            self._engine.restore(self._before)
            self._engine.doubles(self._block - unread)


# ---- truncated normal -----------------------------------------------------------------------------------------------


def truncated_normal(
    shape,
    dtype: np.dtype | type = np.float32,
    mean=0.0,
    std=1.0,
    low=-2.0,
    high=2.0,
    generator: Generator | None = None,
) -> np.ndarray:
    """Normal numbers with those outside [low, high] drawn again, array [*shape]; `nn.init.trunc_normal_`'s numbers.

    Raises:
        NotImplementedError, RuntimeError: as `normal` and `uniform`.
    """
    dtype = np.dtype(dtype)
    inside = _normal_cdf((high - mean) / std) - _normal_cdf((low - mean) / std)
    if inside > 0.3:
        return _redrawn_normal(shape, dtype, mean, std, low, high, generator)
    return _rejected_uniform(shape, dtype, mean, std, low, high, generator)


def _normal_cdf(x: float) -> float:
    return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0


def _redrawn_normal(shape, dtype, mean, std, low, high, generator) -> np.ndarray:
    low, high = dtype.type(low), dtype.type(high)
    values = normal(shape, dtype, mean, std, generator)
    while (outside := (values < low) | (values > high)).any():
        values = np.where(outside, normal(shape, dtype, mean, std, generator), values)
    return values


def _rejected_uniform(shape, dtype, mean, std, low, high, generator) -> np.ndarray:
    """Uniform proposals, each kept with its normal density relative to the peak: for the tails of the curve."""
    peak = -0.5 * ((max(low, min(mean, high)) - mean) / std) ** 2
    values = uniform(shape, dtype, low, high, generator)
    pending = _is_rejected(values, mean, std, peak, generator)
    while pending.any():
        proposals = uniform(shape, dtype, low, high, generator)
        values = np.where(pending, proposals, values)
        pending &= _is_rejected(proposals, mean, std, peak, generator)
    return values


def _is_rejected(proposals, mean, std, peak, generator) -> np.ndarray:
    number = proposals.dtype.type
    score = (proposals - number(mean)) / number(std)
    log_density = score * score * number(-0.5) - number(peak)
    with np.errstate(divide="ignore"):
        return np.log(uniform(proposals.shape, proposals.dtype, 0.0, 1.0, generator)) > log_density
