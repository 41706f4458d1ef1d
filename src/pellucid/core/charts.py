"""Line charts as the text of an SVG picture: panels with axes, curves and names. Pictures of graphs are drawn elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

__all__ = ["FAMILY", "HEIGHT", "WIDTH", "Curve", "Panel", "counts", "ends", "line", "picture", "round_steps", "text"]

WIDTH, HEIGHT = 320, 220  # of a panel, without what stands around it
LEFT, TOP, BETWEEN, BOTTOM, RIGHT = 56, 56, 84, 52, 24
KEY = 90  # width of a curve's name and sample
FAMILY = "system-ui, 'DejaVu Sans', Arial, sans-serif"
FEW = 30  # so many values get a dot each


@dataclass(frozen=True)
class Curve:
    """A name, a colour, and one value a count; what is not finite is left out."""

    name: str
    colour: str
    values: Sequence[float]


@dataclass(frozen=True)
class Panel:
    """One chart. The value axis goes from the first of `ticks` to the last; the other counts up from `first`."""

    title: str
    curves: Sequence[Curve]
    ticks: Sequence[float]
    labels: Sequence[str]
    across: str
    first: int = 1


def picture(title: str, panels: Sequence[Panel]) -> str:
    """The SVG text of panels side by side, one at least."""
    width = LEFT + len(panels) * WIDTH + (len(panels) - 1) * BETWEEN + RIGHT
    height = TOP + HEIGHT + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="{FAMILY}" font-size="12" fill="#333">',
        f"<title>{escape(title)}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for number, panel in enumerate(panels):
        parts += _drawn(panel, LEFT + number * (WIDTH + BETWEEN))
    return "\n".join([*parts, "</svg>", ""])


def ends(curves: Sequence[Curve]) -> tuple[float, float]:
    """The lowest and the highest value; 0 and 0 if there is none."""
    values = [value for curve in curves for value in curve.values if math.isfinite(value)] or [0.0]
    return min(values), max(values)


def round_steps(low: float, high: float, most: int = 6) -> list[float]:
    """At most about `most` round numbers, evenly spaced, that reach from `low` or below to `high` or above."""
    rough = (high - low) / (most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def counts(first: int, last: int) -> list[int]:
    """Whole numbers to write under the axis: the first, the last, and round ones between, not crowded."""
    step = max(1, round(round_steps(0, last - first + 1)[1])) if last - first >= 15 else 1
    between = [
        count
        for count in range(step * (first // step), last, step)
        if count > first and last - count >= 0.6 * step
    ]
    return sorted({first, *between, last})


def _drawn(panel: Panel, left: float) -> list[str]:
    last = panel.first + max(len(curve.values) for curve in panel.curves) - 1
    bottom, right = TOP + HEIGHT, left + WIDTH

    def x(count: float) -> float:
        return left + WIDTH * (0.5 if last == panel.first else (count - panel.first) / (last - panel.first))

    def y(value: float) -> float:
        return bottom - HEIGHT * (value - panel.ticks[0]) / (panel.ticks[-1] - panel.ticks[0])

    parts = [text(panel.title, left, TOP - 30, weight="bold", anchor="start")]
    for tick, label in zip(panel.ticks, panel.labels, strict=True):
        parts.append(line(left, y(tick), right, y(tick), "#e3e3e3"))
        parts.append(text(label, left - 8, y(tick) + 4, anchor="end"))
    parts.append(line(left, bottom, right, bottom, "#333"))
    parts.extend(text(str(count), x(count), bottom + 18) for count in counts(panel.first, last))
    parts.append(text(panel.across, left + WIDTH / 2, bottom + 38))
    for number, curve in enumerate(panel.curves):
        points = [(x(at), y(value)) for at, value in enumerate(curve.values, panel.first) if math.isfinite(value)]
        parts.append(_polyline(points, curve.colour))
        if curve.name:
            key = right + 10 - KEY * (len(panel.curves) - number)
            parts.append(line(key, TOP - 34, key + 18, TOP - 34, curve.colour, 2))
            parts.append(text(curve.name, key + 23, TOP - 30, anchor="start"))
    return parts


def _polyline(points: Sequence[tuple[float, float]], colour: str) -> str:
    """A line through `points`, with a dot on each while they are few."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in points if len(points) <= FEW]
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>{"".join(dots)}'


def line(x1: float, y1: float, x2: float, y2: float, colour: str, width: int = 1) -> str:
    """A straight line."""
    return f'<path d="M{x1:.1f},{y1:.1f} L{x2:.1f},{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def text(content: str, x: float, y: float, weight: str = "normal", anchor: str = "middle") -> str:
    """Words at a point of their base line."""
    return f'<text x="{x:.1f}" y="{y:.1f}" font-weight="{weight}" text-anchor="{anchor}">{escape(content)}</text>'
