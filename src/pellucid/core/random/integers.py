"""Integers: in a range, over a dtype's whole range, and in random order."""

from __future__ import annotations

import math
import warnings

import numpy as np

from .generator import Generator, or_default
from .rounding import (
    BFLOAT16,
    BOOL,
    DIGITS,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT64,
    LARGEST,
    REAL_OF_COMPLEX,
    TYPE_NAMES,
    checked_shape,
    narrow,
    require,
)

__all__ = ["integers", "permutation", "whole_range"]

#: A range this wide or wider takes two words a number, a narrower one takes one.
_TWO_WORD_RANGE = 2**28
#: Up to this many swaps a plain loop is faster.
_FEW_SWAPS = 256


def integers(
    shape, low: int, high: int | None, dtype: np.dtype | type = np.int64, generator: Generator | None = None
) -> np.ndarray:
    """Integers uniform in [low, high), array [*shape] of any real dtype.

    A range of 2**28 numbers or more takes two words each, a narrower one takes one, by remainder. `high` None
    stands for the largest integer of the dtype, that one included.

    Raises:
        RuntimeError: the range is empty, or leaves the dtype's range, or the dtype is complex.
    """
    dtype, shape = np.dtype(dtype), checked_shape(shape)
    if high is None and low == -(2**63):
        return _all_long_words(shape, dtype, generator)
    first, last = _whole_bounds(dtype, int(low), None if high is None else int(high))
    _check_bounds(dtype, first, last)
    size, count = math.prod(shape), last - first + 1
    generator = or_default(generator)
    words = generator.long_words(size) if count >= _TWO_WORD_RANGE else generator.words(size)
    words %= np.uint64(count)
    values = words.view(np.int64)
    values += first
    return narrow(values, dtype).reshape(shape)


def whole_range(shape, dtype: np.dtype | type = np.int64, generator: Generator | None = None) -> np.ndarray:
    """What `random_()` fills with: integers from 0 to the dtype's largest, or for floats to 2**digits; [*shape].

    Raises:
        NotImplementedError: the dtype is complex.
    """
    dtype, shape = np.dtype(dtype), checked_shape(shape)
    size = math.prod(shape)
    if size:
        require(dtype not in REAL_OF_COMPLEX, "random_kernel_cpu", dtype)
    generator = or_default(generator)
    words = generator.long_words(size) if dtype in (INT64, FLOAT64) else generator.words(size)
    words %= np.uint64(_largest_integer(dtype) + 1)
    return narrow(words.view(np.int64), dtype).reshape(shape)


def permutation(n: int, dtype: np.dtype | type = np.int64, generator: Generator | None = None) -> np.ndarray:
    """The numbers 0 to n - 1 in random order, array [n] of a real dtype but bool.

    Raises:
        NotImplementedError: the dtype is bool or complex.
        RuntimeError: `n` is negative, or the dtype does not hold n - 1.
    """
    dtype = np.dtype(dtype)
    checked_shape((n,))
    _check_permutation(n, dtype)
    words = or_default(generator).words(max(n - 1, 0))
    words %= np.arange(n, 1, -1, dtype=np.uint64)[: words.size]
    targets = np.arange(n)
    targets[:-1] += words.view(np.int64)
    order = _swap_one_by_one(targets) if n <= _FEW_SWAPS else _swap_all(targets)
    return narrow(order, dtype)


def _swap_one_by_one(targets: np.ndarray) -> np.ndarray:
    """The numbers 0 to n - 1 after swapping, for each position in turn, its number with that at its target."""
    order = list(range(targets.size))
    for position, target in enumerate(targets.tolist()):
        order[position], order[target] = order[target], order[position]
    return np.array(order, dtype=np.int64)


def _swap_all(targets: np.ndarray) -> np.ndarray:
    """What `_swap_one_by_one` gives, without a loop over the positions.

    Targets never lie before their position, so step i fixes what stands at position i for good. It takes the number
    then at target[i], and leaves there the number that stood at i, its "head". So the number at a target is the head
    of the last step that had the same target, or still the target's own; and the head of i is the head of the
    last step that had i as its target, or still i: a chain that is followed to its end by doubling.
    """
    steps = np.arange(targets.size)
    bits = targets.size.bit_length()
    by_target = np.sort((targets << bits) | steps)  # by target, then by step; keys differ, so any sort will do
    target, step = by_target >> bits, by_target & ((1 << bits) - 1)
    repeated = target[1:] == target[:-1]

    previous = np.full(targets.size, -1)  # the last earlier step with the same target
    previous[step[1:][repeated]] = step[:-1][repeated]

    final = np.append(~repeated, True)
    into, last = target[final], step[final]
    last = np.where(last == into, previous[last], last)
    head = steps.copy()
    head[into] = np.where(last < 0, into, last)
    while not np.array_equal(further := head[head], head):
        head = further
    return np.where(targets == steps, head, np.where(previous < 0, targets, head[previous]))


def _check_permutation(n: int, dtype: np.dtype) -> None:
    require(dtype != BOOL and dtype not in REAL_OF_COMPLEX, "randperm", dtype)
    if dtype in DIGITS:
        limit = 2 ** DIGITS[dtype] + 1
        if n > limit and dtype != BFLOAT16:  # PyTorch does not look at bfloat16
            text = {FLOAT16: "2049", FLOAT32: "2^24+1", FLOAT64: "2^53+1"}[dtype]
            raise RuntimeError(f"n cannot be greater than {text} for {TYPE_NAMES[dtype][0]} type. Use dtype=int64.")
    elif n - 1 > np.iinfo(dtype).max:
        raise RuntimeError(
            f"value cannot be converted to type {dtype.name}_t without overflow: {n - 1} does not fit. Use dtype=int64."
        )


def _all_long_words(shape, dtype: np.dtype, generator) -> np.ndarray:
    if dtype not in (INT64, FLOAT64, FLOAT32, BFLOAT16):
        raise RuntimeError(
            "random_full_64_bits_range_kernel_cpu handles only int64, double, float and bfloat16, but got "
            f"{TYPE_NAMES[dtype][0]}. Give random_ an upper bound."
        )
    return narrow(or_default(generator).long_words(math.prod(shape)).view(np.int64), dtype).reshape(shape)


def _largest_integer(dtype: np.dtype) -> int:
    if dtype == BOOL:
        return 1
    return 2 ** DIGITS[dtype] if dtype in DIGITS else int(np.iinfo(dtype).max)


def _whole_bounds(dtype: np.dtype, low: int, high: int | None) -> tuple[int, int]:
    """The first and the last integer to draw, moved inwards to numbers that a floating dtype represents."""
    if dtype in REAL_OF_COMPLEX:
        raise RuntimeError(
            "check_random_bounds handles only integral, floating-point and boolean types, but got "
            f"{TYPE_NAMES[dtype][0]}. Draw the two parts and join them."
        )
    if high is not None and low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}. Raise 'to' above 'from'."
        )
    if dtype in DIGITS:
        low = _representable_from(dtype, low)
        if high is not None:
            high = _representable_to(dtype, high)
            if low >= high:
                raise RuntimeError(
                    "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but got "
                    f"from={low} >= to={high}. Use a wider dtype."
                )
    last = _largest_integer(dtype) if high is None else high - 1
    if high is None and dtype in DIGITS and low >= last:
        raise RuntimeError(
            "random_ expects 'from' casted to dtype to be less than or equal to 'to_inc' casted to dtype, but got "
            f"from={low} > to_inc={last}. Use a wider dtype."
        )
    return low, last


def _representable_from(dtype: np.dtype, low: int) -> int:
    following = _rounded(dtype, low + 1)
    if following >= low:
        return low
    return following + 2 ** (abs(low + 1).bit_length() - DIGITS[dtype])


def _representable_to(dtype: np.dtype, high: int) -> int:
    preceding = _rounded(dtype, high - 1)
    if preceding < high:
        return high
    return preceding - 2 ** (abs(high - 1).bit_length() - DIGITS[dtype])


def _rounded(dtype: np.dtype, value: int) -> int:
    with np.errstate(over="ignore"):
        rounded = float(narrow(np.array(value, dtype=np.int64), dtype))
    return int(rounded) if math.isfinite(rounded) else -(2**63)


def _check_bounds(dtype: np.dtype, first: int, last: int) -> None:
    floating = dtype in DIGITS
    if floating:
        smallest, largest = -int(LARGEST[dtype]), int(LARGEST[dtype])
    else:
        smallest, largest = (0, 1) if dtype == BOOL else (int(np.iinfo(dtype).min), int(np.iinfo(dtype).max))
    for value, name in ((first, "from"), (last, "to - 1")):
        if not smallest <= value <= largest:
            raise RuntimeError(
                f"{name} is out of bounds for {TYPE_NAMES[dtype][1]}: expected an integer in [{smallest}, {largest}], "
                f"but got {value}. Use a wider dtype."
            )
        if floating and abs(value) > 2 ** DIGITS[dtype]:
            digits = DIGITS[dtype]
            warnings.warn(
                f"{name} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations "
                f"{TYPE_NAMES[dtype][1]} can support discrete uniform distribution only within this range.",
                stacklevel=4,
            )
