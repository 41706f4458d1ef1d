"""Processes of cells, seen from the command: start one, ask it, end it. What they do is in `worker.py`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from pellucid.cli.bench.row import OURS, Cell, Row

WORKER = Path(__file__).with_name("worker.py")
SOURCES = Path(__file__).parents[3]  # the folder that has the package
PROJECT = SOURCES.parent / "pyproject.toml"  # there if the package is not installed but runs from its sources
LAST_WORDS = 3  # lines of a dead process's standard error that are passed on
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")


class CellDied(Exception):
    """The process of a cell ended by itself; its text is the end of what it wrote to standard error."""


class CellProcess:
    """A context that has the fresh process of one cell; `ask` sends a request and waits for its answer.

    Args:
        row, cell, threads, quick: what to work on.
        cold: whether our kernels are compiled anew, as in a fresh installation, because nothing compiled is found.
    """

    def __init__(self, row: Row, cell: Cell, threads: int, quick: bool, cold: bool = False) -> None:
        self.row, self.cell = row, cell
        self._errors = tempfile.TemporaryFile("w+")  # a pipe that nobody reads would fill
        self._compiled = tempfile.TemporaryDirectory() if cold else None
        compiled_here = {"NUMBA_CACHE_DIR": self._compiled.name} if self._compiled else {}
        arguments = [row.name, cell.name, str(threads), str(int(quick))]
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(WORKER), *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment(cell.library, threads) | compiled_here,
            text=True,
        )

    def ask(self, name: str, *arguments: Any) -> Any:
        """The answer to a request; CellDied if there is none."""
        process = self._process
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(json.dumps([name, *arguments]) + "\n")
            process.stdin.flush()
            answer = process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            raise CellDied(self._last_words())
        return json.loads(answer)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if kind is not None:
            self._process.kill()
        self._process.communicate()
        self._errors.close()
        if self._compiled:
            self._compiled.cleanup()

    def _last_words(self) -> str:
        status = self._process.wait()
        self._errors.seek(0)
        lines = [line for line in self._errors if line.strip()]
        return "".join(lines[-LAST_WORDS:]).strip() or f"ended with status {status}"


def environment(library: str, threads: int) -> dict[str, str]:
    """The environment of a cell: so many threads, these sources where `pellucid` is looked for, byte code that is kept, and
    kernels that are compiled before the clock runs."""
    paths = filter(None, [str(SOURCES), os.environ.get("PYTHONPATH")])
    ours = {"PYTHONPATH": os.pathsep.join(paths)} if library == OURS and PROJECT.is_file() else {}
    usual = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**usual, "PELLUCID_KERNELS": "wait", **dict.fromkeys(THREADS, str(threads)), **ours}
