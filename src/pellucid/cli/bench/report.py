"""The result in words: the table, and numbers with their units. What the numbers are is in `results.py`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

from pellucid.cli.bench.results import MIB, Line, Side

COLUMNS = ["row", "ours", "PyTorch", "its best settings", "ratio", "quartiles", "target", "first step", "peak MiB", "faults", "losses"]
PARTS = ["row", "a step", "products", "GFLOP/s", "alone: ours / PyTorch", "optimizer", "GB/s", "other kernels", "Python, NumPy"]
TEXTS = {"row", "its best settings", "other kernels"}
MOST, LEAST = 3, 0.02  # other kernels that are named, and the share of a step from which on they are
COLOURS = {True: "\x1b[32m", False: "\x1b[33m", None: ""}  # of a terminal: green, yellow


def show(lines: Sequence[Line]) -> None:
    """Print the tables."""
    print_table(COLUMNS, [(entries(line), line.reached) for line in lines])
    if any(line.breakdown for line in lines):
        print("\nWhat a step of ours is made of")
        print_table(PARTS, [(parts_of(line, line.breakdown), line.reached) for line in lines if line.breakdown])
    for line in lines:
        for cell, words in line.failures.items():
            print(f"{line.name}: {cell} failed: {words}")
    if any(line.disturbed for line in lines):
        print("* others used the machine in most turns of these rows")


def print_table(columns: Sequence[str], rows: Sequence[tuple[list[str], bool | None]]) -> None:
    """Print entries under their columns; on a terminal in green or yellow, as targets are reached or missed."""
    widths = [max(map(len, column)) for column in zip(columns, *(row for row, _ in rows), strict=True)]
    for row, reached in [(list(columns), None), *rows]:
        sides = zip(row, widths, columns, strict=True)
        text = "  ".join([f"{entry:<{width}}" if name in TEXTS else f"{entry:>{width}}" for entry, width, name in sides]).rstrip()
        colour = COLOURS[reached] if sys.stdout.isatty() else ""
        print(f"{colour}{text}\x1b[0m" if colour else text)


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


def parts_of(line: Line, found: Mapping[str, Any]) -> list[str]:
    """The columns of a step's parts: their times and shares; rates beside those of a large product, of a large copy."""
    whole, parts, limits = found["seconds"], dict(found["parts"]), found["limits"]
    products, optimizer = parts.pop("products", 0.0), parts.pop("optimizer", 0.0)
    rest = whole - products - optimizer - sum(parts.values())
    named = [(name, time) for name, time in parts.items() if time >= LEAST * whole][:MOST]
    left = sum(parts.values()) - sum(time for _, time in named)
    others = [f"{name} {time / whole:.0%}" for name, time in named] + ([f"others {left / whole:.0%}"] if left >= LEAST * whole else [])
    return [
        line.name,
        seconds(whole),
        *_rate(products, whole, found["flops"], limits[0]),
        " / ".join(seconds(time) for time in found["alone"].values()) or "-",
        *_rate(optimizer, whole, found["bytes"], limits[1]),
        ", ".join(others) or "-",
        f"{seconds(rest)} {rest / whole:.0%}",
    ]


def _rate(time: float, whole: float, done: float, limit: float) -> list[str]:
    """A part's time and share, and what it did in a second beside the limit, both in thousand millions."""
    if not time:
        return ["-", "-"]
    return [f"{seconds(time)} {time / whole:.0%}", f"{done / time / 1e9:.0f} of {limit / 1e9:.0f}" if done else "-"]


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
