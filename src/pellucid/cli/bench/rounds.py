"""Measuring one row: rounds of fresh processes, and in each round turns in which every cell works once.

The cells of a round are alive together and only one of them works at a time, so what else the machine does strikes all alike,
and a ratio is formed of times that lie within a second. Each round has new processes, because a process's luck with
its memory stays with it. After the first round only those of PyTorch's cells go on that may be the fastest.
"""

from __future__ import annotations

import contextlib
import statistics
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from pellucid.cli.bench.figures import DISTURBED, Turn, contenders, difference, steps_in
from pellucid.cli.bench.processes import CellDied, CellProcess
from pellucid.cli.bench.row import OURS, THEIRS, Cell, Row
from pellucid.cli.bench.worker import busy

LOOK = 0.2  # seconds that one look at the machine takes
ELAPSED, PROCESSOR = "elapsed", "processor"
ALONE = 5  # turns in which products are timed alone
REST = 0.05  # after a turn: threads that still spin for the last one come to rest


@dataclass(frozen=True)
class Settings:
    """How a run measures. Times are in seconds.

    Args:
        threads: of each process.
        rounds: of fresh processes.
        turns: in each round.
        seconds: that a turn of a cell takes at least.
        warm: what a process works before it counts.
        steps: whose losses are compared.
        patience: how long a turn waits for the machine to be quiet.
        quick: whether sizes are small.
        cold: whether our kernels are compiled anew in each process.
        clock: "elapsed", or "processor" for the processor's time: what to compare by while others use the machine.
    """

    threads: int
    rounds: int = 3
    turns: int = 5
    seconds: float = 0.2
    warm: float = 0.5
    steps: int = 50
    patience: float = 1.0
    quick: bool = False
    cold: bool = False
    clock: str = ELAPSED

    def by_processor(self, row: Row) -> bool:
        """Whether a row is timed by the processor's clock."""
        return self.clock == PROCESSOR and not row.workers


@dataclass
class Measured:
    """What was found out about one row; in the lists each round, turn or step has its entry."""

    row: Row
    turns: list[Turn] = field(default_factory=list)
    first: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    peak: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    growth: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    faults: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    cores: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    values: dict[str, list[float]] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    breakdown: dict[str, Any] | None = None

    def difference(self) -> float | None:
        """How far our losses are from those of PyTorch's first cell; None without both."""
        return self._apart(*self.row.compared()[:2])

    def noise(self) -> float | None:
        """How far the losses of two of PyTorch's cells are from each other; None where only one has them."""
        return self._apart(*self.row.compared()[1:3])

    def _apart(self, *cells: Cell) -> float | None:
        found = [self.values[cell.name] for cell in cells if cell.name in self.values]
        return difference(*found) if len(found) == 2 else None


def measure(row: Row, cells: Iterable[Cell], settings: Settings, say: Callable[[str], None]) -> Measured:
    """Measure a row with those of its cells that are wanted; `say` is told what goes on."""
    measured, going = Measured(row), list(cells)
    for number in range(settings.rounds):
        say(f"{row.name}: round {number + 1} of {settings.rounds}")
        _round(measured, going, settings, first=number == 0)
        kept = contenders(measured.turns, [cell.name for cell in going if cell.library != OURS])
        going = [cell for cell in going if cell.name not in measured.failures]
        going = [cell for cell in going if cell.library == OURS or cell.name in kept]
    return measured


def _round(measured: Measured, cells: Sequence[Cell], settings: Settings, first: bool) -> None:
    """One round: fresh processes, their turns, their ends."""
    with contextlib.ExitStack() as stack:
        steps: dict[CellProcess, int] = {}
        for cell in cells:
            process = stack.enter_context(CellProcess(measured.row, cell, settings.threads, settings.quick, settings.cold))
            try:
                steps[process] = _ready(measured, process, settings, first and cell in measured.row.compared())
            except CellDied as death:
                measured.failures[cell.name] = str(death)
        for number in range(settings.turns):
            _turn(measured, steps if number % 2 == 0 else dict(reversed(steps.items())), settings)
        for process in steps:
            peak = process.ask("peak")
            measured.peak[process.cell.name].append(peak)
            measured.growth[process.cell.name][-1] = peak - measured.growth[process.cell.name][-1]
        if first and measured.row.target is not None and not measured.row.workers:
            measured.breakdown = _breakdown(steps)


def _ready(measured: Measured, process: CellProcess, settings: Settings, keep: bool) -> int:
    """Make a cell's work and warm it up; how many steps fill its turn. Losses are kept if they are to be compared."""
    name = process.cell.name
    start = process.ask("prepare")
    measured.first[name].append(start["processor" if settings.by_processor(measured.row) else "seconds"])
    measured.growth[name].append(start["before"])
    measured.versions[process.cell.library] = start["version"]
    if keep:
        measured.values[name] = [start["value"], *process.ask("values", settings.steps - 1)]
    return steps_in(settings.seconds, process.ask("warm", settings.warm))


def _turn(measured: Measured, steps: dict[CellProcess, int], settings: Settings) -> None:
    """Every cell works once."""
    seconds, others, by_processor = {}, 0.0, settings.by_processor(measured.row)
    wait_for_quiet(0.0 if by_processor else settings.patience)
    for process, count in steps.items():
        name, found = process.cell.name, process.ask("turn", count)
        seconds[name] = found["processor" if by_processor else "seconds"] / count / measured.row.per
        measured.faults[name].append(found["faults"] / count)
        measured.cores[name].append(found["processor"] / found["seconds"])
        others = 0.0 if by_processor else max(others, found["others"])
        time.sleep(REST)
    measured.turns.append(Turn(seconds, others))


def _breakdown(steps: dict[CellProcess, int]) -> dict[str, Any] | None:
    """What a step of ours is made of; and seconds of its products alone, in turns with PyTorch where that is there."""
    ours = next((process for process in steps if process.cell.library == OURS), None)
    theirs = next((process for process in steps if process.cell.library != OURS), None)
    found = ours and ours.ask("breakdown", steps[ours])
    if not ours or not found:
        return None
    found["alone"] = {}
    if found["products"]:
        turns = [[process.ask("alone", found["products"]) for process in (ours, theirs) if process] for _ in range(ALONE)]
        found["alone"] = dict(zip((OURS, THEIRS), map(statistics.median, zip(*turns, strict=True)), strict=False))
    return found


def wait_for_quiet(patience: float) -> None:
    """Wait until others use little of the processors, for so many seconds at most."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        before = busy()
        time.sleep(LOOK)
        if (busy() - before) / LOOK <= DISTURBED:
            return
