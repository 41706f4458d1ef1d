"""What a step of ours is made of: seconds in each family of compiled kernels, and how near the machine's limits they come.

While a step is taken apart, each compiled kernel that Python calls is timed. Products of matrices say how many FLOPs they did, an
optimizer's kernel how many bytes it read and wrote. What is left of the step is Python and NumPy. Beside it stand the rates of a large
product and of a large copy in the same process and the same seconds, and the time that the step's products take one after the other
alone, which another library can be asked for too (`alone`).
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

COMPILED = "pellucid.kernels.compiled."
SIDE, BYTES = 2048, 2**26  # of the large product and the large copy
TURN, TURNS = 0.02, 3  # seconds that one timing of a product lasts, and how many there are

# Families whose names say less than these do.
NAMES = {"updates": "optimizer", "elementwise": "NumPy's ufuncs on all threads", "accumulation": "rows of tables"}


class Kernels:
    """What kernels did while they were watched."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = defaultdict(float)
        self.flops = self.bytes = 0
        self.products: dict[tuple[int, ...], int] = defaultdict(int)  # (how many, m, n, k, A and B transposed) -> times

    def timed(self, family: str, kernel: Callable) -> Callable:
        """A kernel that is timed when it is called."""
        count = {"products": self._count_product, "updates": self._count_update}.get(family)

        def call(*arguments: Any) -> Any:
            start = time.perf_counter()
            result = kernel(*arguments)
            self.seconds[family] += time.perf_counter() - start
            if count is not None:
                count(arguments)
            return result

        return call

    def _count_product(self, arguments: tuple) -> None:
        m, n, k, _, a_turned, _, b_turned, number = arguments[5][:8].tolist()
        self.flops += 2 * number * m * n * k
        self.products[number, m, n, k, a_turned, b_turned] += 1

    def _count_update(self, arguments: tuple) -> None:
        """Parameters, gradients and what is remembered are read once; all but gradients are written once."""
        table, offsets, factors = arguments[:3]
        if getattr(table, "ndim", 0) == 2:  # others are rows of one table, few of them
            self.bytes += int(offsets[-1]) * factors.itemsize * (2 * table.shape[1] - 1)


@contextlib.contextmanager
def watched(kernels: Kernels) -> Iterator[None]:
    """A block in which compiled kernels are timed."""
    from numba.core.dispatcher import Dispatcher

    replaced: list[tuple[Any, str, Any]] = []
    for name, module in list(sys.modules.items()):
        if not name.startswith(COMPILED):
            continue
        for attribute, value in list(vars(module).items()):
            if isinstance(value, Dispatcher) and not value.targetoptions.get("no_cpython_wrapper"):
                replaced.append((module, attribute, value))
                setattr(module, attribute, kernels.timed(name.removeprefix(COMPILED).partition("_")[0], value))
    try:
        yield
    finally:
        for module, attribute, value in replaced:
            setattr(module, attribute, value)


def breakdown(lib: Any, step: Callable[[], Any], steps: int, quick: bool) -> dict[str, Any] | None:
    """Seconds of a step and of its parts, FLOPs and bytes of those that count them, and the limits; None without kernels."""
    if not any(name.startswith(COMPILED) for name in sys.modules):
        return None
    kernels = Kernels()
    with watched(kernels):
        begin = time.perf_counter()
        for _ in range(steps):
            step()
        whole = (time.perf_counter() - begin) / steps
    parts = {NAMES.get(family, family): seconds / steps for family, seconds in kernels.seconds.items()}
    return {
        "seconds": whole,
        "parts": dict(sorted(parts.items(), key=lambda part: -part[1])),
        "flops": kernels.flops / steps,
        "bytes": kernels.bytes / steps,
        "limits": limits(lib, quick),
        "products": [[*shape, times / steps] for shape, times in kernels.products.items()],
    }


def limits(lib: Any, quick: bool) -> list[float]:
    """FLOPs a second of a large product, bytes a second of a large copy; of small ones to be quick."""
    side, size = (64, 2**12) if quick else (SIDE, BYTES)
    a, source = lib.rand(side, side), lib.rand(size // 4)
    target = lib.zeros_like(source)
    return [2 * side**3 / shortest(lambda: a @ a), 2 * size / shortest(lambda: target.copy_(source))]


def alone(lib: Any, products: list[list[float]]) -> float:
    """Seconds that products take, one after the other, each with its operands in the cache: the median of a turn, times how many."""
    total = 0.0
    for number, m, n, k, a_turned, b_turned, times in products:
        lead = () if number == 1 else (int(number),)
        a = lib.rand(*lead, k, m).mT if a_turned else lib.rand(*lead, m, k)
        b = lib.rand(*lead, n, k).mT if b_turned else lib.rand(*lead, k, n)
        total += times * middle(lambda a=a, b=b: a @ b)
    return total


def middle(call: Callable[[], Any]) -> float:
    """The median of the seconds that a call takes."""
    call()
    times, end = [], time.perf_counter() + TURN
    while not times or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return sorted(times)[len(times) // 2]


def shortest(call: Callable[[], Any]) -> float:
    """The least of a few times."""
    return min(middle(call) for _ in range(TURNS))
