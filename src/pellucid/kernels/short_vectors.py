"""Sums, dot products and scaled sums of short vectors, digit by digit as PyTorch's vector code makes them.

Products are added with one rounding (a fused multiply-add), and sums go in the order that vector registers suggest: four of them
take turns, and their numbers are added up at the end. Optimizers that walk along lines make much of the last digit: after a
dozen evaluations of a quadratic loss a difference of 1e-16 has become 1e-7. For vectors of up to SHORT elements of float64, where
it costs some microseconds, the same digits are worth that; longer ones are left to NumPy and BLAS.

Before Python 3.13, which has `math.fma`, one rounding is made of many: a product and what its rounding lost (Dekker, A
floating-point technique for extending the available precision, 1971), a sum and what its rounding lost (Knuth, The Art of
Computer Programming, volume 2, 4.2.2), and the two losses added at the end.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["add_scaled", "dot", "total"]

SHORT = 64
LANES, LANES_OF_DOT = 4, 8  # numbers of a register
SPLITTER = 2.0**27 + 1  # a number times this, rounded, shows the upper half of its 53 digits
fma = getattr(math, "fma", None)


def add_scaled(start: np.ndarray, x: np.ndarray, factor: float) -> np.ndarray:
    """start + factor * x, a new array of their shape."""
    plain = start + factor * x
    if not (start.dtype == x.dtype == np.float64 and start.size <= SHORT):
        return plain
    if fma is None:
        made = _rounded_once(start, *_exact_product(x, factor))
        return made if np.isfinite(made).all() else np.where(np.isfinite(made), made, plain)
    try:
        pairs = zip(x.ravel().tolist(), start.ravel().tolist(), strict=True)
        return np.array([fma(factor, b, a) for b, a in pairs], start.dtype).reshape(start.shape)
    except (OverflowError, ValueError):  # what math.fma has for infinity and NaN
        return plain


def dot(x: np.ndarray, y: np.ndarray) -> float:
    """The sum of the products of two vectors."""
    made = _in_turns(x, y) if x.dtype == y.dtype == np.float64 and x.size <= SHORT else math.nan
    return made if math.isfinite(made) else float(x @ y)


def _in_turns(x: np.ndarray, y: np.ndarray) -> float:
    """The dot product of short vectors; something that is not finite where that, or a step towards it, is."""
    sums = [[0.0] * LANES_OF_DOT for _ in range(4)]
    if fma is None:
        terms = list(zip(*(each.tolist() for each in _exact_product(x, y)), strict=True))
        add = _rounded_once
    else:
        terms, add = list(zip(x.tolist(), y.tolist(), strict=True)), _fused
    for first, register in _turns(len(terms)):
        into = sums[register]
        for lane, (a, b) in enumerate(terms[first : first + LANES_OF_DOT]):
            try:
                into[lane] = add(into[lane], a, b)
            except (OverflowError, ValueError):  # what math.fma has for infinity and NaN
                return math.nan
    made = [(a + b) + (c + d) for a, b, c, d in zip(*sums, strict=True)]
    while len(made) > 1:
        half = len(made) // 2
        made = [made[i] + made[i + half] for i in range(half)]
    return made[0]


def total(x: np.ndarray) -> float:
    """The sum of a vector."""
    if x.dtype != np.float64 or x.size > SHORT:
        return float(x.sum())
    numbers, whole, made = x.tolist(), x.size // LANES, 0.0
    sums = [[0.0] * LANES for _ in range(4)]
    for register in range(whole):
        into = sums[register % 4 if register < whole // 4 * 4 else 0]
        for lane in range(LANES):
            into[lane] += numbers[register * LANES + lane]
    for number in numbers[whole * LANES :]:
        made += number
    for a, b, c, d in zip(*sums, strict=True):
        made += a + b + c + d
    return made


def _turns(count: int, lanes: int = LANES_OF_DOT):
    """Which register takes the numbers from which one on: four while they can be filled, then two, then the first."""
    first = 0
    for registers in (4, 2, 1):
        while count - first >= registers * lanes:
            for register in range(registers):
                yield first + register * lanes, register
            first += registers * lanes
    if first < count:
        yield first, 0


def _exact_product(x, y) -> tuple:
    """Products, and what rounding took from them: exact, unless something overflows."""
    product = x * y
    upper_x, upper_y = (each * SPLITTER - (each * SPLITTER - each) for each in (x, y))
    lower_x, lower_y = x - upper_x, y - upper_y
    return product, ((upper_x * upper_y - product) + upper_x * lower_y + lower_x * upper_y) + lower_x * lower_y


def _rounded_once(start, product, lost):
    """start + (product + lost), rounded at the end."""
    made = start + product
    other = made - start
    return made + (((start - (made - other)) + (product - other)) + lost)


def _fused(start: float, x: float, y: float) -> float:
    return fma(x, y, start)  # pyright: ignore[reportOptionalCall]
