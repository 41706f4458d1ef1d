"""Figures of a row from the times of its turns: medians, ratios of the same turn, and how far they spread. No processes here."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

DISTURBED = 0.15  # processors that others use in a turn which is better not counted
ENOUGH = 3  # undisturbed turns for a figure of their own
SMALL = 0.01  # of the first loss
CLOSE = 1.15  # a cell that is so near the fastest may still turn out to be it


@dataclass(frozen=True)
class Turn:
    """Each cell's time of one step, in seconds, measured one after the other; and the most that others used meanwhile."""

    seconds: Mapping[str, float]
    others: float = 0.0


@dataclass(frozen=True)
class Spread:
    """The median, and the quartiles around it."""

    median: float
    low: float
    high: float


def spread(values: Sequence[float]) -> Spread:
    """Median and quartiles; of one value, that value. ValueError if there is none."""
    if not values:
        raise ValueError("expected one value at least, got none")
    if len(values) == 1:
        return Spread(values[0], values[0], values[0])
    low, middle, high = statistics.quantiles(values, n=4, method="inclusive")
    return Spread(middle, low, high)


def counted(turns: Sequence[Turn]) -> list[Turn]:
    """The turns that nobody disturbed, or all where those are too few."""
    quiet = [turn for turn in turns if turn.others <= DISTURBED]
    return quiet if len(quiet) >= ENOUGH else list(turns)


def medians(turns: Sequence[Turn]) -> dict[str, float]:
    """The median time of each cell."""
    names = {name: None for turn in turns for name in turn.seconds}
    return {name: statistics.median(turn.seconds[name] for turn in turns if name in turn.seconds) for name in names}


def fastest(turns: Sequence[Turn], names: Sequence[str]) -> str | None:
    """Which of these cells has the smallest median; None if none was measured."""
    found = {name: seconds for name, seconds in medians(turns).items() if name in names}
    return min(found, key=found.__getitem__) if found else None


def contenders(turns: Sequence[Turn], names: Sequence[str]) -> list[str]:
    """Those cells that may be the fastest: the fastest so far and those near it."""
    found = {name: seconds for name, seconds in medians(turns).items() if name in names}
    return [name for name, seconds in found.items() if seconds <= CLOSE * min(found.values())]


def ratios(turns: Sequence[Turn], name: str, other: str) -> list[float]:
    """The time of one cell over that of another in each turn that has both."""
    return [turn.seconds[name] / turn.seconds[other] for turn in turns if name in turn.seconds and other in turn.seconds]


def difference(values: Sequence[float], others: Sequence[float]) -> float:
    """The largest difference of two sequences relative to the larger of the two numbers; infinite where one is no number.

    Numbers below `SMALL` of the first are taken relative to that: of a loss that has all but vanished rounding is left.
    """
    worst, least = 0.0, SMALL * abs(values[0]) if values else 0.0
    for one, other in zip(values, others, strict=True):
        if not (math.isfinite(one) and math.isfinite(other)):
            return math.inf
        if one != other:
            worst = max(worst, abs(one - other) / max(abs(one), abs(other), least))
    return worst


def steps_in(seconds: float, step: float) -> int:
    """How many steps of a length fill a time, one at least."""
    return max(1, math.ceil(seconds / step)) if step > 0 else 1
