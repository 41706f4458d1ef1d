"""The process of one cell: it makes the work of a row in one library and does what its standard input asks.

    python -P worker.py ROW CELL THREADS QUICK

It is run as a file and takes its rows from the folder it lies in, not from the package: a process that measures another
library must not load this one. Each line of input is a request in JSON, `[name, *arguments]`; each gets one line of JSON.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import sys
import time
import types
from pathlib import Path
from typing import Any

try:
    import resource
except ImportError:  # on Windows, where memory and page faults are not counted
    resource = None

if __name__ == "__main__":  # stands in for `pellucid.cli.bench`
    stand_in = types.ModuleType("bench")
    stand_in.__path__ = [str(Path(__file__).parent)]
    sys.modules["bench"] = stand_in
    from bench.breakdown import alone, breakdown
    from bench.row import Row, Work
    from bench.rows import ROWS
else:
    from .breakdown import alone, breakdown
    from .row import Row, Work
    from .rows import ROWS


class Worker:
    """The work of one cell, and the answers to requests. Times are in seconds, sizes in bytes."""

    def __init__(self, row: Row, cell: str, threads: int, quick: bool) -> None:
        self.row, self.cell = row, row.cell(cell)
        self.lib = importlib.import_module(self.cell.library)
        self.lib.set_num_threads(threads)
        self.quick = quick
        self.work: Work | None = None

    def prepare(self) -> dict[str, Any]:
        """Make the work and do its first step."""
        before = memory("VmRSS")
        self.work = self.row.make(self.lib, self.cell, self.quick)
        begin, processor = time.perf_counter(), time.process_time()
        value = self.work.value(self.work.step())
        return {
            "seconds": time.perf_counter() - begin,
            "processor": time.process_time() - processor,
            "value": value,
            "before": before,
            "version": str(self.lib.__version__),
        }

    def values(self, steps: int) -> list[float]:
        """What the next steps return."""
        work = self._made()
        return [work.value(work.step()) for _ in range(steps)]

    def warm(self, seconds: float) -> float:
        """Step for so long, three times at least (once if that takes long); the shortest time of a step."""
        work, shortest, count = self._made(), float("inf"), 0
        begin = time.perf_counter()
        while True:
            start = time.perf_counter()
            work.step()
            end = time.perf_counter()
            shortest, count = min(shortest, end - start), count + 1
            if end - begin > seconds and (count >= 3 or end - begin > 4 * seconds):
                gc.collect()
                return shortest

    def turn(self, steps: int) -> dict[str, float]:
        """Do so many steps: seconds, processor seconds, page faults, and what others used of the processors meanwhile."""
        step = self._made().step
        machine, mine, faults = busy(), own(), page_faults()
        begin, processor = time.perf_counter(), time.process_time()
        for _ in range(steps):
            step()
        processor, seconds = time.process_time() - processor, time.perf_counter() - begin
        return {
            "seconds": seconds,
            "processor": processor,
            "faults": page_faults() - faults,
            "others": max(0.0, busy() - machine - (own() - mine)) / seconds,
        }

    def profile(self, steps: int, shapes: bool) -> dict[str, Any]:
        """Seconds a step while it is profiled, and for each operator its own seconds and its calls; the longest first."""
        step, begin = self._made().step, time.perf_counter()
        with self.lib.autograd.profiler.profile(record_shapes=shapes) as profile:
            for _ in range(steps):
                step()
            seconds = (time.perf_counter() - begin) / steps
        events = profile.key_averages(group_by_input_shape=shapes)
        found = [
            {
                "name": event.key,
                "shapes": [shape for shape in event.input_shapes if shape] if shapes else [],
                "seconds": event.self_cpu_time_total / steps * 1e-6,
                "calls": event.count / steps,
            }
            for event in events
        ]
        return {"seconds": seconds, "operators": sorted(found, key=lambda entry: -entry["seconds"])}

    def breakdown(self, steps: int) -> dict[str, Any] | None:
        """What a step of ours is made of."""
        return breakdown(self.lib, self._made().step, steps, self.quick)

    def alone(self, products: list[list[float]]) -> float:
        """Seconds that products of matrices take alone."""
        return alone(self.lib, products)

    def peak(self) -> int:
        """The largest memory that the process has had."""
        return memory("VmHWM")

    def _made(self) -> Work:
        assert self.work is not None, "prepare comes first"
        return self.work


def memory(key: str) -> int:
    """A figure of this process in bytes, such as VmHWM; 0 where the system does not say."""
    try:
        with open("/proc/self/status") as lines:
            return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(key))
    except (OSError, StopIteration):
        scale = 1 if sys.platform == "darwin" else 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * scale if resource and key == "VmHWM" else 0


def page_faults() -> int:
    """Pages that this process has been given so far without reading a disk; 0 where the system does not say."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt if resource else 0


def own() -> float:
    """Processor seconds of this process and of the children it has waited for, in the ticks that `busy` has."""
    return sum(os.times()[:4])


def busy() -> float:
    """Processor seconds that the machine has spent on anything; 0 where the system does not say."""
    try:
        with open("/proc/stat") as lines:
            user, nice, system, _, _, irq, soft, steal = map(int, lines.readline().split()[1:9])
    except (OSError, ValueError):
        return 0.0
    return (user + nice + system + irq + soft + steal) / os.sysconf("SC_CLK_TCK")


def serve(worker: Worker, answers: Any) -> None:
    """Answer requests until the input ends."""
    for line in sys.stdin:
        name, *arguments = json.loads(line)
        answers.write(json.dumps(getattr(worker, name)(*arguments)) + "\n")
        answers.flush()


def main() -> None:
    """Run as a process: what libraries print goes to standard error, so that standard output has answers only."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    name, cell, threads, quick = sys.argv[1:]
    serve(Worker(ROWS[name], cell, int(threads), quick == "1"), answers)
    answers.flush()


if __name__ == "__main__":
    main()
