"""Who put the present learning rates into an optimizer's groups: what makes every order of loading resume rightly.

Building a schedule writes its first rates, also into an optimizer whose saved state was loaded just before; and loading
a schedule's state has to leave the rates of the saved run, whether the optimizer's state was loaded before, will be
after, or never. A schedule cannot tell by looking at `group["lr"]`. So the optimizer carries a record of the rates that
schedules wrote last. Where a group's rate still is that one, nobody else has touched it, and loading may replace it: by
the rate that `Optimizer.load_state_dict` had brought, if schedules were only built since, else by the rate saved with
the schedule. A rate that somebody changed by hand is left alone.
"""

from __future__ import annotations

from pellucid.core.tensor import Tensor, wrap
from pellucid.optim.optimizer import Optimizer

__all__ = ["Record", "copied", "rates", "set_rate"]


def rates(optimizer: Optimizer) -> list[float]:
    """The present rate of each group as a plain number."""
    return [float(group["lr"]) for group in optimizer.param_groups]


def set_rate(group: dict, value, key: str = "lr") -> None:
    """Set an option of a group; one that is a tensor keeps its identity and gets the value filled in."""
    present = group[key]
    if isinstance(present, Tensor):
        present._array[...] = float(value)
        present._bump_version()
    else:
        group[key] = value


def copied(value):
    """The value, a tensor as a copy that does not share its memory."""
    return wrap(value._array.copy()) if isinstance(value, Tensor) else value


class Record:
    """The rates that schedules wrote last into one optimizer, group by group. Not part of any saved state."""

    def __init__(self):
        self.schedules = 0  # how many were built on this optimizer
        self.written: list[float] = []
        self.author: list[int] = []  # number of the schedule that wrote; the one built last has the last word
        self.paused = False  # while a schedule is being built out of others
        self.loaded: list[float | None] = []  # the rate that loading the optimizer had brought, before schedules wrote

    @classmethod
    def of(cls, optimizer: Optimizer) -> Record:
        """The record an optimizer carries, made on first use."""
        record = optimizer.__dict__.get("_rate_record")
        if record is None:
            record = optimizer._rate_record = cls()
        return record

    def built(self, optimizer: Optimizer, before: list[float]) -> int:
        """A schedule was built; the rates were `before`. Returns the schedule's number."""
        self.schedules += 1
        self.loaded = [self._origin(optimizer, i, rate) for i, rate in enumerate(before)]
        self.written = rates(optimizer)
        self.author = [self.schedules] * len(self.written)
        return self.schedules

    def _origin(self, optimizer: Optimizer, i: int, before: float) -> float | None:
        fresh = optimizer._loaded_rates
        if fresh is not None and i < len(fresh) and before == fresh[i]:
            return before
        kept = fresh is not None and i < len(self.loaded) and before == self.written[i]
        return self.loaded[i] if kept else None

    def stepped(self, optimizer: Optimizer, number: int) -> None:
        """Schedule `number` moved the rates in the course of training."""
        if self.paused:
            return
        self.written = rates(optimizer)
        self.author = [number] * len(self.written)
        self.loaded = [None] * len(self.written)

    def settle(self, optimizer: Optimizer, number: int, saved: list) -> list[bool]:
        """Schedule `number` loaded a state whose rates were `saved`. Returns which groups nobody else had touched."""
        groups = optimizer.param_groups
        if not (len(saved) == len(groups) == len(self.written)):
            return [False] * len(groups)
        untouched = [float(group["lr"]) == rate for group, rate in zip(groups, self.written, strict=True)]
        for i, group in enumerate(groups):
            if not untouched[i]:
                continue
            if optimizer._loaded_rates is not None and self.loaded[i] is not None:
                set_rate(group, self.loaded[i])
            elif number >= self.author[i]:
                set_rate(group, copied(saved[i]))
                self.author[i] = number
            self.written[i] = float(group["lr"])
        return untouched
