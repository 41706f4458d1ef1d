"""Random marks from the MT19937 stream: words made 624 at a time in vector code, on one thread, for the stream has one order.

The plain form is in `core/random/mersenne.py`, from NumPy's generator of the same stream. Source: Matsumoto and Nishimura,
Mersenne twister: a 623-dimensionally equidistributed uniform pseudo-random number generator, 1998.
"""

from __future__ import annotations

import numpy as np

from . import serial

__all__ = ["marks"]

WORDS, SHIFT = 624, 397
UPPER, LOWER, TWIST = np.uint32(0x80000000), np.uint32(0x7FFFFFFF), np.uint32(0x9908B0DF)
MASK_B, MASK_C = np.uint32(0x9D2C5680), np.uint32(0xEFC60000)


@serial
def _twisted(upper, lower, far):
    """The word that follows in the recurrence."""
    joined = (upper & UPPER) | (lower & LOWER)
    return far ^ (joined >> np.uint32(1)) ^ (TWIST * (joined & np.uint32(1)))


@serial
def _renew(key):
    """The next 624 words of the state, in place."""
    for k in range(WORDS - SHIFT):
        key[k] = _twisted(key[k], key[k + 1], key[k + SHIFT])
    for k in range(WORDS - SHIFT, WORDS - 1):
        key[k] = _twisted(key[k], key[k + 1], key[k + SHIFT - WORDS])
    key[WORDS - 1] = _twisted(key[WORDS - 1], key[0], key[SHIFT - 1])


@serial
def _words(key, position, out):
    """Fill `out` with the next words of the stream; returns the position in the state after them."""
    done = 0
    while done < out.size:
        if position == WORDS:
            _renew(key)
            position = 0
        count = min(WORDS - position, out.size - done)
        state, made = key[position : position + count], out[done : done + count]
        for k in range(count):
            word = state[k]
            word ^= word >> np.uint32(11)
            word ^= (word << np.uint32(7)) & MASK_B
            word ^= (word << np.uint32(15)) & MASK_C
            made[k] = word ^ (word >> np.uint32(18))
        position += count
        done += count
    return position


@serial
def marks(key, position, p, value, out):
    """out = value where the next number of 53 bits in [0, 1) is below p, else 0. Returns the position in the state.

    key: [624], uint32, is renewed in place; each number takes two words, the upper half first. Writes out once.
    """
    block = 4096
    words = np.empty(2 * block, np.uint32)
    zero = out.dtype.type(0)
    for start in range(0, out.size, block):
        made = out[start : start + block]
        drawn = words[: 2 * made.size]
        position = _words(key, position, drawn)
        for k in range(made.size):
            number = ((np.int64(drawn[2 * k]) & 0x1FFFFF) << 32) | np.int64(drawn[2 * k + 1])
            made[k] = value if np.float64(number) * 2.0**-53 < p else zero
    return position
