"""Gamma, Dirichlet and binomial numbers, drawn by rejection, one after another."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .generator import Generator, or_default
from .rounding import DIGITS, FLOAT32, FLOAT64, TYPE_NAMES, require
from .sampling import _Reader

__all__ = ["binomial", "dirichlet", "gamma"]

#: Uniforms read at a time for each number (rarely more are needed), and at most.
_EACH, _BLOCK = 4, 2**16
#: Constants that PyTorch's kernel holds in single precision.
_THIRD, _SQUEEZE = float(np.float32(1) / np.float32(3)), float(np.float32(0.0331))


# ---- gamma ----------------------------------------------------------------------------------------------------------


def gamma(concentration: np.ndarray, generator: Generator | None = None) -> np.ndarray:
    """Gamma distributed numbers of rate 1, one for each concentration, in their shape and dtype, float32 or float64.

    None is 0: where a number underflows, the smallest normal number comes, also for a concentration of 0.

    Raises:
        NotImplementedError: the dtype is another one.
    """
    require(concentration.dtype in (FLOAT32, FLOAT64), "gamma_cpu", concentration.dtype)
    return _at_least_tiny(_gammas(concentration, generator, concentration.dtype.type).astype(concentration.dtype))


def dirichlet(concentration: np.ndarray, generator: Generator | None = None) -> np.ndarray:
    """Dirichlet distributed vectors along the last dimension, in the shape and dtype of `concentration`.

    Raises:
        NotImplementedError: the dtype is neither float32 nor float64.
    """
    require(concentration.dtype in (FLOAT32, FLOAT64), "dirichlet", concentration.dtype)
    number = concentration.dtype.type
    gammas = _at_least_tiny(_gammas(concentration, generator, np.float64))
    total = gammas.sum(axis=-1, keepdims=True) if gammas.ndim else gammas
    shares = _at_least_tiny((gammas / total).astype(number))
    return np.minimum(shares, np.nextafter(number(1), number(0)))


def _at_least_tiny(values: np.ndarray) -> np.ndarray:
    tiny = np.finfo(values.dtype).tiny
    return np.where(values > tiny, values, tiny)  # also for NaN


def _gammas(concentration: np.ndarray, generator: Generator | None, number: type) -> np.ndarray:
    """float64 gamma numbers; arithmetic on a concentration alone is done in the type `number`."""
    generator = or_default(generator)
    with generator.lock, np.errstate(all="ignore"):
        reader = _Reader(generator.engine, _block_for(concentration.size))
        normal = _normals(generator, reader.next)
        drawn = [_one_gamma(number(alpha), reader.next, normal) for alpha in concentration.reshape(-1).tolist()]
        reader.close()
    return np.array(drawn, np.float64).reshape(concentration.shape)


def _block_for(count: int) -> int:
    """How many uniforms to read at a time: how many a number takes shows only while it is drawn."""
    return max(1, min(_EACH * count, _BLOCK))


def _normals(generator: Generator, uniform: Callable[[], float]) -> Callable[[], float]:
    """Standard normals one by one, in Box-Muller pairs of which the generator keeps the second."""

    def normal() -> float:
        waiting, generator.cached_normal = generator.cached_normal, None
        if waiting is not None:
            return waiting
        angle = 2 * math.pi * uniform()
        radius = math.sqrt(-2 * math.log1p(-uniform()))
        generator.cached_normal = radius * math.sin(angle)
        return radius * math.cos(angle)

    return normal


def _one_gamma(alpha: np.floating, uniform: Callable[[], float], normal: Callable[[], float]) -> float:
    """One gamma number: Marsaglia and Tsang, "A simple method for generating gamma variables" (2000).

    A concentration below 1 is raised by 1, and the number scaled by U ** (1 / alpha).
    """
    number, scale = type(alpha), 1.0
    if alpha < 1:
        if alpha == 0:
            return 0.0
        scale = float(np.float64(1 - uniform()) ** np.float64(number(1) / alpha))
        alpha = alpha + number(1)
    d = float(alpha - number(_THIRD))
    c = 1 / math.sqrt(9 * d) if d > 0 else math.nan
    while True:
        x = normal()
        y = 1 + c * x
        while y <= 0:
            x = normal()
            y = 1 + c * x
        v = y * y * y
        u = 1 - uniform()
        squared = x * x
        if u < 1 - _SQUEEZE * squared * squared or math.log(u) < 0.5 * squared + d * (1 - v + math.log(v)):
            return scale * d * v


# ---- binomial -------------------------------------------------------------------------------------------------------


def binomial(count: np.ndarray, prob: np.ndarray, generator: Generator | None = None) -> np.ndarray:
    """How many of `count` trials succeed with probability `prob`, array of the common shape in their dtype.

    Raises:
        ValueError: the dtype of `count` is not a floating type.
        NotImplementedError: it is neither float32 nor float64.
        RuntimeError: the dtypes differ, or a count or probability is not a finite number.
    """
    _check_binomial(count, prob)
    number = count.dtype.type
    count, prob = np.broadcast_arrays(count, prob)
    generator = or_default(generator)
    with generator.lock, np.errstate(all="ignore"):
        reader = _Reader(generator.engine, _block_for(count.size))
        pairs = zip(count.reshape(-1).tolist(), prob.reshape(-1).tolist(), strict=True)
        drawn = [_one_binomial(number(n), number(p), reader.next) for n, p in pairs]
        reader.close()
    return np.array(drawn, count.dtype).reshape(count.shape)


def _check_binomial(count: np.ndarray, prob: np.ndarray) -> None:
    for name, given in (("count", count), ("prob", prob)):
        if given.dtype not in DIGITS:
            raise ValueError(
                f"binomial only supports floating-point dtypes for {name}, got: {TYPE_NAMES[given.dtype][0]}. "
                "Convert it with .float()."
            )
    if count.dtype != prob.dtype:
        raise RuntimeError(
            f"Found dtype {TYPE_NAMES[prob.dtype][0]} but expected {TYPE_NAMES[count.dtype][0]}: give binomial a count "
            "and a prob of one dtype."
        )
    require(count.dtype in (FLOAT32, FLOAT64), "binomial_cpu", count.dtype)
    if not np.isfinite(count).all() or np.isnan(prob).any():
        raise RuntimeError("binomial expects finite numbers for count and prob, but found an infinite one or NaN")


def _one_binomial(count: np.floating, prob: np.floating, uniform: Callable[[], float]):
    if count <= 0 or prob <= 0:
        return 0.0
    if prob >= 1:
        return count
    number = type(count)
    rarer = prob if prob <= 0.5 else number(1.0 - float(prob))
    drawn = (_binomial_by_rejection if count * rarer >= 10 else _binomial_by_gaps)(count, rarer, uniform)
    return drawn if prob <= 0.5 else count - drawn


def _binomial_by_gaps(count: np.floating, prob: np.floating, uniform: Callable[[], float]):
    """How many geometric waiting times fit into `count` trials."""
    number = type(count)
    log_failure = np.log1p(-prob)
    waited, successes = number(0), number(0)
    while True:
        waited += np.ceil(np.log(number(uniform())) / log_failure)
        if waited > count:
            return successes
        successes += number(1)


def _binomial_by_rejection(count: np.floating, prob: np.floating, uniform: Callable[[], float]):
    """Hörmann's transformed rejection, algorithm BTRS of "The generation of binomial random variates" (1993)."""
    number = type(count)
    n, p = float(count), float(prob)
    spread = float(np.sqrt(count * prob * (number(1) - prob)))
    b = float(number(1.15 + 2.53 * spread))
    a = float(number(-0.0873 + 0.0248 * b + 0.01 * p))
    center = float(number(float(count * prob) + 0.5))
    squeeze = float(number(0.92 - 4.2 / b))
    odds = float(prob / (number(1) - prob))
    alpha = float(number((2.83 + 5.1 / b) * spread))
    mode = float(np.floor((count + number(1)) * prob))
    while True:
        u = float(number(uniform() - 0.5))
        v = float(number(uniform()))
        distance = float(number(0.5 - abs(u)))
        k = math.floor((2 * a / distance + b) * u + center) if distance else -1
        if k < 0 or k > n:
            continue
        if distance >= 0.07 and v <= squeeze:
            return number(k)
        v = v * alpha / (a / (distance * distance) + b)
        bound = (
            (mode + 0.5) * math.log((mode + 1) / (odds * (n - mode + 1)))
            + (n + 1) * math.log((n - mode + 1) / (n - k + 1))
            + (k + 0.5) * math.log(odds * (n - k + 1) / (k + 1))
            + (_stirling_tail(mode) + _stirling_tail(n - mode) - _stirling_tail(k) - _stirling_tail(n - k))
        )
        if v <= 0 or math.log(v) <= bound:
            return number(k)


def _stirling_tail(k: float) -> float:
    """log k! less its Stirling approximation, (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2."""
    if k <= 9:
        return math.lgamma(k + 1) - ((k + 0.5) * math.log(k + 1) - (k + 1) + 0.5 * math.log(2 * math.pi))
    square = (k + 1) ** 2
    return (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (k + 1)
