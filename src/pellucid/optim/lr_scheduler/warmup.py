"""A warm-up before any schedule: rates that rise to where the schedule begins, so that nothing jumps at the seam."""

from __future__ import annotations

import math

from pellucid.core.tensor import Tensor
from pellucid.optim.lr_scheduler.base import LRScheduler
from pellucid.optim.lr_scheduler.combine import Composite
from pellucid.optim.lr_scheduler.resume import Record, copied, rates

__all__ = ["WarmupLR", "warmup"]

CURVES = ("linear", "cosine", "exponential", "constant")


def warmup(
    schedule: LRScheduler, steps: int, start_factor: float | None = None, curve: str = "linear"
) -> WarmupLR:
    """A warm-up of some steps, then a schedule from where it stands; takes the schedule's place in a program.

    The rate of step k is first * (start_factor + (1 - start_factor) * k / steps), with `first` the present rate of the
    schedule, which is reached at step `steps`. Works with every schedule, ReduceLROnPlateau included: metrics given to
    `step` during the warm-up are not looked at.

    Args:
        schedule: what comes after. Only the warm-up is to be stepped, saved and loaded from here on.
        steps: how many steps have lower rates; 0 for no warm-up.
        start_factor: share of the first rate to begin with, above 0 and at most 1; 1 / (steps + 1) if None, so that
            the rates are evenly spaced: 0.2, 0.4, 0.6, 0.8 of `first` for four steps.
        curve: "linear", "cosine" (flat at both ends), "exponential" (each rate a multiple of the last) or "constant"
            (start_factor throughout).

    Raises:
        TypeError: `schedule` is not a schedule.
        ValueError: an option out of its range.
    """
    return WarmupLR(schedule, steps, start_factor, curve)


class WarmupLR(Composite):
    """What `warmup` makes: see there.

    Attributes:
        last_epoch: the number of the present step, counted from the beginning of the warm-up.
        base_lrs: the rates that the warm-up leads to.
    """

    def __init__(self, schedule: LRScheduler, steps: int, start_factor: float | None = None, curve: str = "linear"):
        if not isinstance(schedule, LRScheduler):
            raise TypeError(f"a warm-up leads to a schedule of learning rates, but got a {type(schedule).__name__}")
        if not isinstance(steps, int) or steps < 0:
            raise ValueError(f"Expected a whole number of steps, 0 or more, but got {steps}")
        if start_factor is None:
            start_factor = 1 / (steps + 1)
        if not 0 < start_factor <= 1:
            raise ValueError(f"start_factor is a share of the rate, above 0 and at most 1, but got {start_factor}")
        if curve not in CURVES:
            raise ValueError(f"curve must be one of {', '.join(map(repr, CURVES))}, but got {curve!r}")
        self.steps, self.start_factor, self.curve = steps, start_factor, curve
        self._schedulers = [schedule]
        self.optimizer = schedule.optimizer
        if self.optimizer._opt_called is None:
            self.optimizer._opt_called = False
        before = rates(self.optimizer)
        self._begin()
        self._number = Record.of(self.optimizer).built(self.optimizer, before)

    def _begin(self) -> None:
        self.base_lrs = [copied(group["lr"]) for group in self.optimizer.param_groups]
        self.last_epoch, self._step_count = 0, 1
        self._write(self._ramp())

    def _restart(self) -> None:
        self._schedulers[0]._restart()
        self._begin()

    def _ramp(self) -> list[float]:
        """The rates of step `last_epoch`, which is one of the warm-up or the first after it."""
        groups = self.optimizer.param_groups
        self.base_lrs += [copied(group["lr"]) for group in groups[len(self.base_lrs) :]]  # groups that were added
        factor = self._factor()
        return [float(first) * factor for first in self.base_lrs]

    def _factor(self) -> float:
        if self.last_epoch >= self.steps:
            return 1.0
        share, start = self.last_epoch / self.steps, self.start_factor
        if self.curve == "constant":
            return start
        if self.curve == "exponential":
            return start ** (1 - share)
        if self.curve == "cosine":
            share = (1 - math.cos(math.pi * share)) / 2
        return start + (1 - start) * share

    def step(self, metrics: float | Tensor | None = None) -> None:
        """Go to the next step.

        Args:
            metrics: for a ReduceLROnPlateau, once it is in charge.

        Raises:
            TypeError: a ReduceLROnPlateau is in charge and gets no metrics.
        """
        self._check_metric(metrics)
        if self._step_count == 1:
            self._warn_of_order()
        self._advance(metrics)

    def _advance(self, metrics) -> None:
        if self.last_epoch < self.steps:
            self.last_epoch += 1
            self._write(self._ramp())
        else:
            self._schedulers[0]._advance(metrics)
            self.last_epoch += 1
            self._note_rates()
        self._step_count += 1

    def _needs_metric(self) -> bool:
        return self.last_epoch >= self.steps and self._schedulers[0]._needs_metric()
