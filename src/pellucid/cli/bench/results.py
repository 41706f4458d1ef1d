"""A line of the result, made from what was measured of a row: the figures that the table, the JSON file and the picture show.

Times are in seconds, memory is in bytes.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from pellucid.cli.bench.figures import DISTURBED, counted, fastest, medians, ratios, spread
from pellucid.cli.bench.rounds import Measured
from pellucid.cli.bench.row import MEMORY_TARGET, OURS

MIB = 2**20


@dataclass
class Side:
    """One cell's figures."""

    name: str
    value: float
    first: float | None = None
    peak: float | None = None
    growth: float | None = None
    faults: float | None = None
    cores: float | None = None


@dataclass
class Line:
    """One line of the table.

    Args:
        name, title, target: the row's.
        unit: of the sides' values: "s" or "B".
        ours: our side, None if it failed.
        best: the side of PyTorch's fastest cell, None without one.
        ratio, low, high: ours over best, the median over the turns and its quartiles.
        others: the other cells of PyTorch.
        difference, tolerance, compared: of the losses, relative, over so many steps.
        noise: the difference of PyTorch's losses with channels last from those without, where there are such.
        turns, disturbed: turns counted; whether others used the machine in them.
        amount: what a step does and its unit in a second, if the row says it.
        breakdown: what a step of ours is made of, as `breakdown.py` has it.
        failures: cells that failed, and their last words.
    """

    name: str
    title: str
    target: float | None
    unit: str = "s"
    ours: Side | None = None
    best: Side | None = None
    ratio: float | None = None
    low: float | None = None
    high: float | None = None
    others: list[Side] = field(default_factory=list)
    difference: float | None = None
    tolerance: float | None = None
    noise: float | None = None
    compared: int = 0
    turns: int = 0
    disturbed: bool = False
    amount: tuple[float, str] | None = None
    breakdown: dict[str, Any] | None = None
    failures: dict[str, str] = field(default_factory=dict)

    @property
    def reached(self) -> bool | None:
        """Whether the target is reached; None if there is none or nothing to compare with."""
        return None if self.target is None or self.ratio is None else self.ratio <= self.target

    @property
    def agrees(self) -> bool | None:
        """Whether the losses agree, as well as PyTorch's do among themselves at least; None if they were not compared."""
        if self.difference is None or self.tolerance is None:
            return None
        return self.difference <= max(self.tolerance, self.noise or 0.0)

    def as_json(self) -> dict[str, Any]:
        """For a file."""
        return asdict(self)

    @classmethod
    def from_json(cls, entry: Mapping[str, Any]) -> Line:
        """From a file."""
        sides = {name: Side(**entry[name]) if entry[name] else None for name in ("ours", "best")}
        return cls(**{**entry, **sides, "others": [Side(**side) for side in entry["others"]]})


def line_of(measured: Measured) -> Line:
    """The line of a row's times."""
    row, turns = measured.row, counted(measured.turns)
    line = Line(row.name, row.title, row.target, amount=row.amount, failures=dict(measured.failures), breakdown=measured.breakdown)
    line.turns, line.disturbed = len(turns), any(turn.others > DISTURBED for turn in turns)
    sides = {name: _side(measured, name, seconds) for name, seconds in medians(turns).items()}
    theirs = [cell.name for cell in row.cells if cell.library != OURS]
    best = fastest(turns, theirs)
    line.ours, line.best = sides.get(row.cells[0].name), sides.get(best) if best else None
    line.others = [sides[name] for name in theirs if name in sides and name != best]
    if line.ours is not None and best is not None:
        found = spread(ratios(turns, row.cells[0].name, best))
        line.ratio, line.low, line.high = found.median, found.low, found.high
    if (apart := measured.difference()) is not None:
        line.difference, line.tolerance, line.noise = apart, row.tolerance, measured.noise()
        line.compared = len(measured.values[row.cells[0].name])
    return line


def memory_line(measured: Measured) -> Line:
    """The line of a row's peak memory: ours over that of PyTorch's most frugal cell."""
    row = measured.row
    line = Line(f"b8-memory-{row.name}", f"peak memory of {row.name}", MEMORY_TARGET, unit="B")
    peaks = {name: statistics.median(values) for name, values in measured.peak.items() if values}
    sides = {name: Side(name, value) for name, value in peaks.items()}
    theirs = sorted((sides[cell.name] for cell in row.cells[1:] if cell.name in sides), key=lambda side: side.value)
    line.ours, line.turns = sides.get(row.cells[0].name), len(measured.peak[row.cells[0].name])
    line.best, line.others = (theirs[0] if theirs else None), theirs[1:]
    return with_ratio(line)


def with_ratio(line: Line) -> Line:
    """The same line with the ratio of its two values, where both are there."""
    if line.ours is not None and line.best is not None:
        line.ratio = line.low = line.high = line.ours.value / line.best.value
    return line


def _side(measured: Measured, name: str, seconds: float) -> Side:
    return Side(
        name,
        seconds,
        _middle(measured.first.get(name)),
        _middle(measured.peak.get(name)),
        _middle(measured.growth.get(name)),
        _middle(measured.faults.get(name)),
        _middle(measured.cores.get(name)),
    )


def _middle(values: Sequence[float] | None) -> float | None:
    return statistics.median(values) if values else None
