"""Runs of equal blocks in a sequence: `A B A B A B C` is three times `A B`, then `C`."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import NamedTuple

__all__ = ["Run", "runs"]

LONGEST_BLOCK = 24


class Run(NamedTuple):
    """`times` equal blocks of `length` items each, the first of them at `start`."""

    start: int
    length: int
    times: int


def runs(signatures: Sequence[Hashable], longest: int = LONGEST_BLOCK) -> list[Run]:
    """Divide a sequence into runs, from left to right; what does not repeat is a run of one item, one time.

    Of the blocks that repeat at a place the one that covers most is taken, of equals the shortest. The work is linear in
    the sequence for a given `longest` block.
    """
    found, start, count = [], 0, len(signatures)
    while start < count:
        best = Run(start, 1, 1)
        for length in range(1, min(longest, (count - start) // 2) + 1):
            if signatures[start] != signatures[start + length]:
                continue
            times = _repeats(signatures, start, length)
            if times > 1 and times * length > best.times * best.length:
                best = Run(start, length, times)
        found.append(best)
        start += best.length * best.times
    return found


def _repeats(signatures: Sequence[Hashable], start: int, length: int) -> int:
    """How many equal blocks of a length follow one another from `start`."""
    same, count = 0, len(signatures)
    while start + length + same < count and signatures[start + same] == signatures[start + length + same]:
        same += 1
    return 1 + same // length
