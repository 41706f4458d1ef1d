"""The result in words: the table, and numbers with their units. What the numbers are is in `results.py`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pellucid.cli.bench.results import MIB, Line, Side

COLUMNS = ["row", "ours", "PyTorch", "its best settings", "ratio", "quartiles", "target", "first step", "peak MiB", "faults", "losses"]
TEXTS = {"row", "its best settings"}
WIDTH = 150  # of a table that goes to a file


def show(lines: Sequence[Line]) -> None:
    """Print the table."""
    from rich.console import Console  # slow import
    from rich.table import Table

    console = Console()
    if not console.is_terminal:
        console = Console(width=WIDTH)
    table = Table(header_style="bold", box=None, pad_edge=False)
    for column in COLUMNS:
        table.add_column(column, justify="left" if column in TEXTS else "right", no_wrap=True)
    for line in lines:
        table.add_row(*entries(line), style={True: "green", False: "yellow", None: ""}[line.reached])
    console.print(table, markup=False)
    for line in lines:
        for cell, words in line.failures.items():
            console.print(f"{line.name}: {cell} failed: {words}", markup=False, highlight=False)
    if any(line.disturbed for line in lines):
        console.print("* others used the machine in most turns of these rows", markup=False, highlight=False)


def entries(line: Line) -> list[str]:
    """The line's columns."""
    best = line.best.name.removeprefix("torch").lstrip(" ,") or "default" if line.best else "-"
    return [
        line.name + ("*" if line.disturbed else ""),
        value(line, line.ours),
        value(line, line.best),
        best,
        plain(line.ratio),
        "-" if line.low is None or line.high is None or line.turns < 2 else f"{line.low:.2f}-{line.high:.2f}",
        plain(line.target),
        both(line, "first", seconds),
        both(line, "peak", lambda size: f"{size / MIB:.0f}"),
        both(line, "faults", lambda count: f"{count:.0f}"),
        losses(line),
    ]


def value(line: Line, side: Side | None) -> str:
    """A side's value with its unit."""
    if side is None:
        return "-"
    if line.amount is not None:
        return f"{line.amount[0] / side.value:.1f} {line.amount[1]}"
    return seconds(side.value) if line.unit == "s" else f"{side.value / MIB:.0f} MiB"


def seconds(value: float) -> str:
    """A time in the unit that suits it."""
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= scale or unit == "us":
            number = value / scale
            return f"{number:.{2 if number < 10 else 1 if number < 100 else 0}f} {unit}"
    raise AssertionError(value)


def both(line: Line, name: str, write: Any) -> str:
    """A figure of both sides, such as `120 / 430`."""
    found = [getattr(side, name) if side else None for side in (line.ours, line.best)]
    return "-" if found == [None, None] else " / ".join("-" if one is None else write(one) for one in found)


def losses(line: Line) -> str:
    """How far the losses are apart, and whether that is too far."""
    return "-" if line.difference is None else f"{line.difference:.0e}" + ("" if line.agrees else " APART")


def plain(number: float | None) -> str:
    """A ratio."""
    return "-" if number is None else f"{number:.2f}"
