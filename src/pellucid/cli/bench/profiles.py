"""`pellucid bench --profile`: where a step's time goes, by operators, ours beside PyTorch's."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from pellucid.cli.bench.processes import CellProcess
from pellucid.cli.bench.report import seconds
from pellucid.cli.bench.rounds import Settings
from pellucid.cli.bench.row import Cell, Row

SHOWN = 12  # operators
STEPS = 5
NAME = 44  # width of an operator's name


def show_profiles(rows: Sequence[Row], settings: Settings, compare: bool, shapes: bool) -> None:
    """Print the profile of each row: ours, and that of PyTorch with its default settings beside it."""
    for row in rows:
        cells = row.cells[:2] if compare else row.cells[:1]
        print(f"\n{row.name}: {row.title}\n")
        sides = [side(row, cell, settings, shapes) for cell in cells]
        for parts in itertools.zip_longest(*sides, fillvalue=""):
            print("   ".join(f"{part:{NAME + 26}}" for part in parts).rstrip(), flush=True)


def side(row: Row, cell: Cell, settings: Settings, shapes: bool) -> list[str]:
    """The lines of one cell's profile; its first line says what a step takes when nobody looks."""
    with CellProcess(row, cell, settings.threads, settings.quick) as process:
        process.ask("prepare")
        step = process.ask("warm", settings.warm)
        return [f"{cell.name}: {seconds(step)} a step", *table(process.ask("profile", STEPS, shapes))]


def table(profile: dict[str, Any]) -> list[str]:
    """The operators that take the longest, the others in one line, and what is spent outside of them."""
    whole, operators = profile["seconds"], profile["operators"]
    lines = [f"{'operator':{NAME}} {'self':>9} {'share':>6} {'calls':>8}"]
    for entry in operators[:SHOWN]:
        name = entry["name"].removeprefix("autograd::engine::evaluate_function: ")
        name = " ".join([name, *("x".join(map(str, shape)) for shape in entry["shapes"])])
        lines.append(f"{name[:NAME]:{NAME}} {_figures(entry['seconds'], whole)} {entry['calls']:8.1f}")
    inside = [entry["seconds"] for entry in operators]
    lines.append(f"{'other operators':{NAME}} {_figures(sum(inside[SHOWN:]), whole)}")
    lines.append(f"{'outside operators: optimizer, Python':{NAME}} {_figures(max(0.0, whole - sum(inside)), whole)}")
    return lines


def _figures(own: float, whole: float) -> str:
    return f"{seconds(own):>9} {own / whole:6.1%}"
