"""The learning curve as an SVG picture: loss and accuracy of each epoch, in training and on held-out digits.

Curves only; the picture of a computation graph is drawn in `pellucid.graph`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from pellucid.cli.training import Epoch

PANEL_WIDTH, PANEL_HEIGHT = 320, 220
LEFT, TOP, BETWEEN, BOTTOM, RIGHT = 56, 56, 84, 52, 24
TRAINING, HELD_OUT = "#1f5fa8", "#c8501e"
FAMILY = "system-ui, 'DejaVu Sans', Arial, sans-serif"

@dataclass(frozen=True)
class Curve:
    """A name, a colour, and the value of each epoch; what is not finite is left out."""

    name: str
    colour: str
    values: Sequence[float]


def learning_curve(history: Sequence[Epoch]) -> str:
    """The SVG text of two panels side by side, loss and accuracy; `history` has one entry an epoch, at least one."""
    width = LEFT + 2 * PANEL_WIDTH + BETWEEN + RIGHT
    height = TOP + PANEL_HEIGHT + BOTTOM
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="{FAMILY}" font-size="12" fill="#333">',
            "<title>Learning curve</title>",
            '<rect width="100%" height="100%" fill="#ffffff"/>',
            *loss_panel(history, LEFT),
            *accuracy_panel(history, LEFT + PANEL_WIDTH + BETWEEN),
            "</svg>",
            "",
        ]
    )


def loss_panel(history: Sequence[Epoch], left: float) -> list[str]:
    """Loss on a logarithmic axis: what happens after the first epochs would be a flat line on another."""
    curves = [
        Curve("training", TRAINING, [decades(epoch.loss) for epoch in history]),
        Curve("held out", HELD_OUT, [decades(epoch.held_out_loss) for epoch in history]),
    ]
    low, high = ends(curves)
    ticks = list(range(math.floor(low), max(math.ceil(high), math.floor(low) + 1) + 1))
    return panel("Loss", curves, left, ticks, [f"{10.0**tick:g}" for tick in ticks])


def accuracy_panel(history: Sequence[Epoch], left: float) -> list[str]:
    """Accuracy in percent, from a round number below the lowest to 100."""
    curves = [
        Curve("training", TRAINING, [100 * epoch.accuracy for epoch in history]),
        Curve("held out", HELD_OUT, [100 * epoch.held_out_accuracy for epoch in history]),
    ]
    ticks = round_steps(min(ends(curves)[0], 99.0), 100.0)
    return panel("Accuracy", curves, left, ticks, [f"{tick:g}%" for tick in ticks])


def decades(value: float) -> float:
    """The decimal logarithm; NaN where there is none."""
    return math.log10(value) if 0 < value < math.inf else math.nan


def ends(curves: Sequence[Curve]) -> tuple[float, float]:
    """The lowest and the highest value; 0 and 0 if there is none."""
    values = [value for curve in curves for value in curve.values if math.isfinite(value)] or [0.0]
    return min(values), max(values)


def panel(title: str, curves: Sequence[Curve], left: float, ticks: Sequence[float], labels: Sequence[str]) -> list[str]:
    """One chart with its axes and curves; the value axis goes from the first of `ticks` to the last."""
    epochs = max(len(curve.values) for curve in curves)
    bottom, right = TOP + PANEL_HEIGHT, left + PANEL_WIDTH

    def x(epoch: float) -> float:
        return left + PANEL_WIDTH * (0.5 if epochs == 1 else (epoch - 1) / (epochs - 1))

    def y(value: float) -> float:
        return bottom - PANEL_HEIGHT * (value - ticks[0]) / (ticks[-1] - ticks[0])

    parts = [text(title, left, TOP - 30, weight="bold", anchor="start")]
    for tick, label in zip(ticks, labels, strict=True):
        parts.append(line(left, y(tick), right, y(tick), "#e3e3e3"))
        parts.append(text(label, left - 8, y(tick) + 4, anchor="end"))
    parts.append(line(left, bottom, right, bottom, "#333"))
    parts.extend(text(str(epoch), x(epoch), bottom + 18) for epoch in epoch_ticks(epochs))
    parts.append(text("epoch", left + PANEL_WIDTH / 2, bottom + 38))
    for number, curve in enumerate(curves):
        points = [(x(epoch), y(value)) for epoch, value in enumerate(curve.values, 1) if math.isfinite(value)]
        parts.append(polyline(points, curve.colour))
        key = right - 170 + 90 * number
        parts.append(line(key, TOP - 34, key + 18, TOP - 34, curve.colour, 2))
        parts.append(text(curve.name, key + 23, TOP - 30, anchor="start"))
    return parts


def round_steps(low: float, high: float, most: int = 6) -> list[float]:
    """At most about `most` round numbers, evenly spaced, that reach from `low` or below to `high` or above."""
    rough = (high - low) / (most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(number * step, 10) for number in range(first, last + 1)]


def epoch_ticks(epochs: int) -> list[int]:
    """Epochs to write under the axis: the first, the last, and round numbers between, not crowded."""
    step = max(1, round(round_steps(0, epochs)[1])) if epochs > 15 else 1
    between = [epoch for epoch in range(step, epochs, step) if epoch > 1 and epochs - epoch >= 0.6 * step]
    return sorted({1, *between, epochs})


def polyline(points: Sequence[tuple[float, float]], colour: str) -> str:
    """A line through `points`, with a dot on each while they are few."""
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dots = [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in points if len(points) <= 30]
    return f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>{"".join(dots)}'


def line(x1: float, y1: float, x2: float, y2: float, colour: str, width: int = 1) -> str:
    return f'<path d="M{x1:.1f},{y1:.1f} L{x2:.1f},{y2:.1f}" stroke="{colour}" stroke-width="{width}"/>'


def text(content: str, x: float, y: float, weight: str = "normal", anchor: str = "middle") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" font-weight="{weight}" text-anchor="{anchor}">{escape(content)}</text>'
