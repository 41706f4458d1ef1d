"""The ratios as an SVG picture: a bar a row, with a mark where the target is and a line where both libraries are equal."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from pellucid.cli.bench.results import Line
from pellucid.core.charts import FAMILY, line, round_steps, text

BAR, STEP = 14, 26  # height of a bar, and from one to the next
LEFT, RIGHT, TOP, BOTTOM = 210, 60, 76, 40
ACROSS = 520
MOST = 2.0  # longer bars are cut
LABEL = 28  # width of a number
REACHED, MISSED, PLAIN, TARGET = "#2e7d4f", "#c8501e", "#1f5fa8", "#111111"
KEY = ((REACHED, "target reached"), (MISSED, "target missed"), (PLAIN, "no target"))


def ratios_picture(lines: Sequence[Line]) -> str:
    """The SVG text: our time or memory over PyTorch's; lines without a ratio are left out."""
    shown = [one for one in lines if one.ratio is not None]
    width, height = LEFT + ACROSS + RIGHT, TOP + STEP * len(shown) + BOTTOM
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="{FAMILY}" font-size="12" fill="#333">',
        "<title>Pellucid beside PyTorch</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        text("Pellucid's time (or memory) over PyTorch's best: shorter is better", 16, 26, weight="bold", anchor="start"),
    ]
    parts += _key() + _axis(height - BOTTOM)
    for number, one in enumerate(shown):
        parts += _bar(one, TOP + STEP * number)
    return "\n".join([*parts, "</svg>", ""])


def _across(ratio: float) -> float:
    return LEFT + ACROSS * min(ratio, MOST) / MOST


def _key() -> list[str]:
    parts = []
    for number, (colour, words) in enumerate(KEY):
        left = 16 + 130 * number
        parts += [f'<rect x="{left}" y="40" width="12" height="12" fill="{colour}"/>', text(words, left + 18, 50, anchor="start")]
    left = 16 + 130 * len(KEY)
    return [*parts, line(left + 6, 38, left + 6, 54, TARGET, 3), text("target", left + 18, 50, anchor="start")]


def _axis(bottom: float) -> list[str]:
    parts = []
    for tick in round_steps(0.0, MOST):
        parts += [line(_across(tick), TOP - 6, _across(tick), bottom, "#e3e3e3"), text(f"{tick:g}", _across(tick), bottom + 18)]
    return [*parts, line(_across(1), TOP - 6, _across(1), bottom, "#888", 2)]


def _bar(one: Line, top: float) -> list[str]:
    assert one.ratio is not None
    colour, end = {True: REACHED, False: MISSED, None: PLAIN}[one.reached], _across(one.ratio)
    parts = [
        text(one.name, LEFT - 10, top + 12, anchor="end"),
        f'<rect x="{LEFT}" y="{top}" width="{end - LEFT:.1f}" height="{BAR}" fill="{colour}">'
        f"<title>{escape(one.title)}: {one.ratio:.2f}</title></rect>",
    ]
    label = end + 8
    if one.target is not None:
        mark = _across(one.target)
        if label - 8 <= mark <= label + LABEL:  # the mark would run through the number
            label = mark + 8
        parts.append(line(mark, top - 3, mark, top + BAR + 3, TARGET, 3))
    parts.append(f'<rect x="{label - 2:.1f}" y="{top}" width="{LABEL + 2}" height="{BAR}" fill="#ffffff"/>')  # over lines behind it
    parts.append(text(f"{one.ratio:.2f}", label, top + 12, anchor="start"))
    return parts
