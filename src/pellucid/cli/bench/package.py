"""What a library costs before it computes anything: the time of its import, and the size of what is installed for it."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterable
from pathlib import Path

from pellucid.cli.bench.figures import Turn, medians, ratios, spread
from pellucid.cli.bench.processes import PROJECT, SOURCES, environment
from pellucid.cli.bench.results import Line, Side, with_ratio
from pellucid.cli.bench.row import OURS, THEIRS

IMPORTS = 9  # fresh processes of each library


def import_line(libraries: Iterable[str], imports: int = IMPORTS) -> Line:
    """The line of import times: fresh processes of one thread, in turns, after one that warms the disk's cache."""
    line = Line("b8-import", "import in a fresh process, interpreter included", 0.15)
    names = list(libraries)
    for name in names:
        import_seconds(name)
    turns = [Turn({name: import_seconds(name) for name in names}) for _ in range(imports)]
    sides = {name: Side(name, seconds) for name, seconds in medians(turns).items()}
    line.ours, line.best, line.turns = sides[OURS], sides.get(THEIRS), len(turns)
    if line.best is not None:
        found = spread(ratios(turns, OURS, THEIRS))
        line.ratio, line.low, line.high = found.median, found.low, found.high
    return line


def import_seconds(library: str) -> float:
    """How long a process takes that imports a library and ends."""
    command = [sys.executable, "-P", "-c", f"import {library}"]
    begin = time.perf_counter()
    subprocess.run(command, env=environment(library, 1), check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return time.perf_counter() - begin


def size_line(libraries: Iterable[str]) -> Line:
    """The line of installed sizes, with everything that an installation brings along; byte code is not counted."""
    line = Line("b8-size", "installed size with dependencies", 0.5, unit="B", turns=1)
    sides = {name: Side(name, float(size(name))) for name in libraries}
    line.ours, line.best = sides[OURS], sides.get(THEIRS)
    return with_ratio(line)


def size(library: str) -> int:
    """Bytes on disk of a library and what it needs."""
    files = {path.resolve() for name in closure(library) for path in files_of(name)}
    return sum(path.stat().st_blocks * 512 for path in files if path.suffix != ".pyc" and path.is_file())


def closure(library: str) -> set[str]:
    """The distributions that an installation of this one brings, itself included; those not installed here are left out."""
    found: set[str] = set()
    waiting = [library]
    while waiting:
        name = re.sub(r"[-_.]+", "-", waiting.pop()).lower()
        if name in found:
            continue
        try:
            needs = requirements(name)
        except importlib.metadata.PackageNotFoundError:
            continue
        found.add(name)
        waiting += [match.group() for need in needs if "extra ==" not in need and (match := re.match(r"[\w.-]+", need))]
    return found


def requirements(name: str) -> list[str]:
    """What a distribution says it needs; from its project file if this library runs from its sources."""
    if name == OURS and PROJECT.is_file():
        return tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["dependencies"]
    return importlib.metadata.requires(name) or []


def files_of(name: str) -> list[Path]:
    """The files of an installed distribution; of this library, the files of its folder, without what was compiled since."""
    if name == OURS:
        return [path for path in (SOURCES / OURS).rglob("*") if path.parent.name != "__pycache__"]
    distribution = importlib.metadata.distribution(name)
    return [Path(str(distribution.locate_file(file))) for file in distribution.files or []]
