"""Looking ahead: the rates a schedule is going to set, as numbers and as a picture, without moving anything.

The look goes through copies of the schedule and of the optimizer's options, so whatever a schedule does when it is
stepped, also one that a user wrote, is done to the copies.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MethodType
from typing import TYPE_CHECKING

from pellucid.core.charts import Curve, Panel, ends, picture, round_steps
from pellucid.optim.lr_scheduler.resume import copied, rates
from pellucid.optim.optimizer import Optimizer

if TYPE_CHECKING:
    from pellucid.optim.lr_scheduler.base import LRScheduler

__all__ = ["RatePlot", "rates_ahead"]

BARS = "▁▂▃▄▅▆▇█"
WIDEST = 60  # characters of a curve in text
MOST_NAMES = 4  # that have room over a picture
COLOURS = ("#1f5fa8", "#c8501e", "#2e7d32", "#6a3fa0", "#8a6d00", "#444444")


def rates_ahead(schedule: LRScheduler, n: int, metrics: float | Sequence[float] | None) -> list[list[float]]:
    """Rows of rates, one rate a group, of the next `n` steps. See `LRScheduler.preview`.

    Raises:
        ValueError: n is below 1, or there are fewer metrics than steps between n rates.
    """
    if n < 1:
        raise ValueError(f"n is the number of steps to look at, 1 or more, but got {n}")
    if isinstance(metrics, Sequence) and len(metrics) < n - 1:
        raise ValueError(f"{n} rates are {n - 1} steps apart and need {n - 1} metrics, but got {len(metrics)}")
    ahead = _stand_in(schedule)
    rows = [rates(ahead.optimizer)]
    for step in range(n - 1):
        ahead._advance(metrics[step] if isinstance(metrics, Sequence) else metrics)
        rows.append(rates(ahead.optimizer))
    return rows


def _stand_in(schedule: LRScheduler) -> LRScheduler:
    """A copy of a schedule that moves the groups of a copy of its optimizer, which has no parameters."""
    optimizer = schedule.optimizer
    standing = object.__new__(Optimizer)
    standing.__dict__.update(vars(optimizer), param_groups=_options(optimizer), state={}, _opt_called=True)
    standing.__dict__.pop("_rate_record", None)
    memo = {id(optimizer): standing}
    for value in _methods(schedule):  # a copy of a method would copy all that its object holds
        memo[id(value)] = value
    return copy.deepcopy(schedule, memo)


def _options(optimizer: Optimizer) -> list[dict]:
    return [
        {key: [] if key == "params" else copied(value) for key, value in group.items()}
        for group in optimizer.param_groups
    ]


def _methods(schedule: LRScheduler) -> list[MethodType]:
    found = []
    for value in vars(schedule).values():
        parts = value if isinstance(value, (list, tuple)) else [value]
        found += [part for part in parts if isinstance(part, MethodType)]
    for part in vars(schedule).get("_schedulers", ()):
        found += _methods(part)
    return found


@dataclass(frozen=True)
class RatePlot:
    """The rates of some steps as a picture: text when printed, SVG in a notebook and from `svg()`.

    Attributes:
        rows: the rates of each step, one a group.
        first: the number of the first step.
    """

    rows: list[list[float]]
    first: int

    def curves(self) -> dict[str, list[float]]:
        """The rates of each group, those of groups with the same ones together, by what the groups are called."""
        groups: dict[tuple, list[int]] = {}
        for number, values in enumerate(zip(*self.rows, strict=True)):
            groups.setdefault(values, []).append(number)
        if len(groups) == 1:
            return {"": list(next(iter(groups)))}
        return {_name(numbers): list(values) for values, numbers in groups.items()}

    def svg(self) -> str:
        """The text of an SVG picture; more than four different curves go without names."""
        named = self.curves()
        curves = [
            Curve(name if len(named) <= MOST_NAMES else "", COLOURS[number % len(COLOURS)], values)
            for number, (name, values) in enumerate(named.items())
        ]
        high = ends(curves)[1]
        ticks = round_steps(0.0, high) if high > 0 else [0.0, 1.0]
        title = "Learning rate" if len(named) <= 2 else ""
        labels = [f"{tick:g}" for tick in ticks]
        return picture("Learning rate", [Panel(title, curves, ticks, labels, "step", self.first)])

    def _repr_svg_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        last = self.first + len(self.rows) - 1
        lines = [f"learning rate, steps {self.first} to {last}"]
        curves = self.curves()
        top = max(max(values) for values in curves.values())
        width = max(map(len, curves))
        for name, values in curves.items():
            lead = f"{name:{width}}  " if width else ""
            lines.append(f"{lead}{_bars(values, top)}  {values[0]:.4g} to {values[-1]:.4g}, highest {max(values):.4g}")
        return "\n".join(lines)

    __repr__ = __str__


def _name(numbers: list[int]) -> str:
    """What some groups are called together."""
    if len(numbers) == 1:
        return f"group {numbers[0]}"
    return f"groups {numbers[0]}, {numbers[1]}" + (", ..." if len(numbers) > 2 else "")


def _bars(values: list[float], top: float) -> str:
    """One character a value, or a stretch of values, as high as the highest in it."""
    count = min(len(values), WIDEST)
    bounds = [len(values) * i // count for i in range(count + 1)]
    heights = [max(values[a:b]) / top if top > 0 else 0.0 for a, b in pairwise(bounds)]
    return "".join(BARS[min(len(BARS) - 1, round(height * (len(BARS) - 1)))] for height in heights)
