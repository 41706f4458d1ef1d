"""`pellucid bench`: how fast Pellucid is beside PyTorch, if that is installed, on this machine.

This is the command: its options, its files, the order of its work. How a row is measured is in `rounds.py`.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import importlib.metadata
import importlib.util
import json
import os
import platform
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pellucid.cli.bench.package import import_line, size_line
from pellucid.cli.bench.picture import ratios_picture
from pellucid.cli.bench.profiles import show_profiles
from pellucid.cli.bench.report import show
from pellucid.cli.bench.results import Line, line_of, memory_line
from pellucid.cli.bench.rounds import ELAPSED, PROCESSOR, Settings, measure
from pellucid.cli.bench.row import OURS, THEIRS, Cell, Row
from pellucid.cli.bench.rows import ROWS
from pellucid.cli.errors import UsageError
from pellucid.cli.files import write_text
from pellucid.cli.numbers import positive, positive_whole

DESCRIPTION = "Measure training and other work beside PyTorch, if it is installed, in one run; a ratio below 1 means faster."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The options of `pellucid bench`."""
    usual = Settings(threads=cores())
    parser.add_argument("--rows", type=_names, metavar="NAMES", help="which rows, by the beginnings of their names: b2,b3 (all)")
    parser.add_argument("--list", action="store_true", help="name the rows and end")
    parser.add_argument("--rounds", type=positive_whole, help=f"rounds of fresh processes ({usual.rounds})")
    parser.add_argument("--turns", type=positive_whole, help=f"turns in a round ({usual.turns})")
    parser.add_argument("--threads", type=positive_whole, default=usual.threads, help=f"threads of each library ({usual.threads})")
    parser.add_argument("--seconds", type=positive, help=f"that a turn takes at least ({usual.seconds:g})")
    parser.add_argument("--steps", type=positive_whole, help=f"whose losses are compared ({usual.steps})")
    parser.add_argument(
        "--clock", choices=[ELAPSED, PROCESSOR], default=ELAPSED, help="what is compared; processor time suits a machine that others use"
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes, one round: whether it works, not how fast it is")
    parser.add_argument("--cold", action="store_true", help="let every process compile its kernels anew, for the first step's time")
    parser.add_argument("--alone", action="store_true", help="measure Pellucid only")
    parser.add_argument("--profile", action="store_true", help="print where the time goes, by operators, instead of a table")
    parser.add_argument("--shapes", action="store_true", help="with --profile: tell operators apart by their shapes")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    parser.add_argument("--svg", type=Path, metavar="FILE", help="write a picture of the ratios to a file")


def run(options: argparse.Namespace) -> int:
    """Measure and print; the exit status. UsageError: there are no such rows, or a file cannot be written."""
    chosen = choose(options.rows)
    if options.list:
        for name in chosen:
            print(f"{name:24} {names()[name]}")
        return 0
    check_files(options)
    settings, compare = settings_of(options), not options.alone and importlib.util.find_spec(THEIRS) is not None
    if not compare and not options.alone:
        print("PyTorch is not installed: our own times only", file=sys.stderr)
    if options.profile:
        show_profiles([ROWS[name] for name in chosen if name in ROWS], settings, compare, options.shapes)
        return 0
    lines = measure_all(chosen, settings, compare)
    show(lines)
    write(lines, settings, options)
    return 0


def check_files(options: argparse.Namespace) -> None:
    """UsageError for a file that there is no folder for: before the work, not after it."""
    for path in filter(None, (options.json, options.svg)):
        if path.is_dir() or not path.parent.is_dir():
            raise UsageError(f"cannot write {path}: {'it is a folder' if path.is_dir() else f'there is no folder {path.parent}'}")


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings that the options give."""
    quick = {"rounds": 1, "turns": 2, "seconds": 0.01, "warm": 0.01, "steps": 3, "patience": 0.0} if options.quick else {}
    given = {name: getattr(options, name) for name in ("rounds", "turns", "seconds", "steps")}
    given = {name: value for name, value in given.items() if value is not None}
    return Settings(options.threads, **{**quick, **given}, quick=options.quick, cold=options.cold, clock=options.clock)


def names() -> dict[str, str]:
    """All lines by name, in the table's order, and what is measured."""
    found = {}
    for name, row in ROWS.items():
        found[name] = row.title
    found.update({f"b8-memory-{name}": f"peak memory of {name}" for name, row in ROWS.items() if row.memory})
    found["b8-import"] = "time of the import"
    found["b8-size"] = "installed size with dependencies"
    return found


def choose(beginnings: Sequence[str] | None) -> list[str]:
    """The names that begin so, in the table's order; UsageError if one of the beginnings fits none."""
    if beginnings is None:
        return list(names())
    for beginning in beginnings:
        if not any(name.startswith(beginning) for name in names()):
            raise UsageError(f"--rows {beginning}: there is no such row, but {', '.join(names())}")
    return [name for name in names() if name.startswith(tuple(beginnings))]


def measure_all(chosen: Sequence[str], settings: Settings, compare: bool) -> list[Line]:
    """The lines of these names. Peak memory is that of the row's own processes, which run for a moment if only it is asked for."""
    libraries, lines, found = (OURS, THEIRS) if compare else (OURS,), [], {}
    with telling() as say:
        for name in chosen:
            if name in ROWS:
                found[name] = measure(ROWS[name], wanted(ROWS[name], compare), settings, say)
                lines.append(line_of(found[name]))
            elif name.startswith("b8-memory-"):
                row = ROWS[name.removeprefix("b8-memory-")]
                short = dataclasses.replace(settings, rounds=1, turns=1, patience=0.0)
                measured = found.get(row.name) or measure(row, wanted(row, compare), short, say)
                lines.append(memory_line(measured))
            else:
                say(name)
                lines.append(import_line(libraries) if name == "b8-import" else size_line(libraries))
    return lines


def wanted(row: Row, compare: bool) -> list[Cell]:
    """The cells to measure."""
    return [cell for cell in row.cells if compare or cell.library == OURS]


@contextlib.contextmanager
def telling() -> Iterator[Any]:
    """A context that gives a function which shows what goes on: on one line of a terminal, or nowhere."""
    if not sys.stderr.isatty():
        yield lambda text: None
        return
    try:
        yield lambda text: print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)
    finally:
        print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def write(lines: Sequence[Line], settings: Settings, options: argparse.Namespace) -> None:
    """Write the files that were asked for."""
    if options.json:
        content = {"machine": machine(), "settings": vars(settings), "lines": [line.as_json() for line in lines]}
        write_text(options.json, json.dumps(content, indent=1) + "\n")
    if options.svg:
        write_text(options.svg, ratios_picture(lines))


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    packages = {}
    for name in (OURS, THEIRS, "numpy", "scipy", "numba"):
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            packages[name] = importlib.metadata.version(name)
    return {
        "processor": processor(),
        "cores": cores(),
        "system": platform.system(),
        "python": platform.python_version(),
        "packages": packages,
        "date": time.strftime("%Y-%m-%d"),
    }


def processor() -> str:
    """The processor's name as the system tells it."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        for line in lines:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def cores() -> int:
    """How many processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _names(text: str) -> list[str]:
    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    if not names:
        raise argparse.ArgumentTypeError(f"expected names of rows such as b2,b3, got {text!r}")
    return names
