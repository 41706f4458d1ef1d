"""A line search for the strong Wolfe conditions (Nocedal and Wright, 2006, algorithms 3.5 and 3.6), for `LBFGS`.

Nothing here knows of parameters: a function gives loss and gradient at a distance along a fixed direction.
"""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any, NamedTuple

import numpy as np

__all__ = ["Point", "cubic_minimum", "strong_wolfe"]


class Point(NamedTuple):
    """A place on the line: how far, the loss, the gradient as a flat array, and its slope along the line."""

    length: float
    loss: float
    grad: Any
    slope: float


def strong_wolfe(
    at: Callable[[float], Point],
    start: Point,
    length: float,
    direction: np.ndarray,
    *,
    decrease: float = 1e-4,
    curvature: float = 0.9,
    tolerance: float = 1e-9,
    max_steps: int = 25,
) -> tuple[Point, int]:
    """Find a point that lies low enough (Armijo) and is flat enough (curvature).

    Args:
        at: evaluates a distance.
        start: the point at distance 0.
        length: the first distance to try.
        direction: the direction; only its largest element is used, to see when a bracket is too small to matter.
        decrease, curvature: the constants c1 and c2 of the conditions.
        tolerance: smallest bracket, in terms of the parameters.
        max_steps: how many further evaluations are allowed.

    Returns:
        The best point found, and the number of evaluations.
    """

    def too_high(point: Point) -> bool:
        return point.loss > start.loss + decrease * point.length * start.slope

    def flat(point: Point) -> bool:
        return abs(point.slope) <= -curvature * start.slope

    previous, here = start, at(length)
    evaluations, steps = 1, 0
    bracket: list[Point] = []
    while steps < max_steps:
        if too_high(here) or (steps > 1 and here.loss >= previous.loss):
            bracket = [previous, here]
            break
        if flat(here):
            return here, evaluations
        if here.slope >= 0:
            bracket = [previous, here]
            break
        low, high = here.length + 0.01 * (here.length - previous.length), here.length * 10
        previous, here = here, at(cubic_minimum(previous, here, (low, high)))
        evaluations += 1
        steps += 1
    if steps >= max_steps:
        bracket = [start, here]
    width = float(np.abs(direction).max(initial=0.0))
    return _zoom(at, bracket, too_high, flat, width, tolerance, max_steps - steps, evaluations)


def _zoom(at, bracket, too_high, flat, width, tolerance, steps_left, evaluations) -> tuple[Point, int]:
    """Shrink a bracket that holds a good point; `low` is its end with the lower loss."""
    low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
    stuck = False
    while steps_left > 0:
        left, right = sorted(point.length for point in bracket)
        if abs(bracket[1].length - bracket[0].length) * width < tolerance:
            break
        length, stuck = _away_from_ends(cubic_minimum(*bracket), left, right, stuck)
        here = at(length)
        evaluations += 1
        steps_left -= 1
        if too_high(here) or here.loss >= bracket[low].loss:
            bracket[high] = here
            low, high = (0, 1) if bracket[0].loss <= bracket[1].loss else (1, 0)
            continue
        if not flat(here) and here.slope * (bracket[high].length - bracket[low].length) >= 0:
            bracket[high] = bracket[low]
        bracket[low] = here
        if flat(here):
            break
    return bracket[low], evaluations


def _away_from_ends(length: float, left: float, right: float, stuck: bool) -> tuple[float, bool]:
    """Keep a tenth of the bracket from its ends, the second time that a guess falls so near to one."""
    margin = 0.1 * (right - left)
    if min(right - length, length - left) >= margin:
        return length, False
    if not (stuck or length >= right or length <= left):
        return length, True
    return (right - margin if abs(length - right) < abs(length - left) else left + margin), False


def cubic_minimum(first: Point, second: Point, bounds: tuple[float, float] | None = None) -> float:
    """Where the cubic through two points with their slopes has its minimum, within bounds (the points' by default).

    The middle of the bounds where the cubic has none.
    """
    low, high = bounds or sorted((first.length, second.length))
    if first.length > second.length:
        first, second = second, first
    gap = second.length - first.length
    if gap == 0:
        return (low + high) / 2
    mean = first.slope + second.slope - 3 * (second.loss - first.loss) / gap
    square = mean * mean - first.slope * second.slope
    if not square >= 0:
        return (low + high) / 2
    root = sqrt(square)
    below = second.slope - first.slope + 2 * root
    place = second.length - gap * ((second.slope + root - mean) / below) if below else second.length
    return min(max(place, low), high)
