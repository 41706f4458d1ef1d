"""Schedules made of schedules: one after the other (SequentialLR) and one upon the other (ChainedScheduler)."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Any

from pellucid.core.language import message, say
from pellucid.optim.lr_scheduler.base import LRScheduler, check_optimizer
from pellucid.optim.lr_scheduler.plateau import ReduceLROnPlateau
from pellucid.optim.lr_scheduler.resume import Record, copied, rates, set_rate
from pellucid.optim.optimizer import Optimizer

__all__ = ["ChainedScheduler", "Composite", "SequentialLR"]


class Composite(LRScheduler):
    """What schedules made of others share: the parts, their checks, saving and loading."""

    _unsaved = ("optimizer", "_number", "_schedulers")
    _schedulers: list[LRScheduler]

    def _check_parts(self, optimizer: Optimizer, schedulers: Sequence) -> None:
        for i, scheduler in enumerate(schedulers):
            if not hasattr(scheduler, "optimizer"):
                raise TypeError(
                    f"{type(self).__name__} at index {i} should have `optimizer` as its attribute, "
                    f"but it is a {type(scheduler).__name__}"
                )
            if scheduler.optimizer is not optimizer:
                raise ValueError(
                    f"{type(self).__name__} expects all schedulers to belong to the same optimizer, but got scheduler "
                    f"{type(scheduler).__name__} at index {i} has {scheduler.optimizer}, which is different from "
                    f"{type(optimizer).__name__}."
                )

    def _check_metric(self, metrics) -> None:
        if metrics is None and self._needs_metric():
            first = f"step {self.last_epoch + 1} belongs to a ReduceLROnPlateau, which needs a metric"
            raise TypeError(message(first, say("Call step(metrics).")))

    def _reset_rates(self) -> None:
        for group in self.optimizer.param_groups:
            set_rate(group, copied(group["initial_lr"]))

    def _note_rates(self) -> None:
        self._last_lr = [copied(group["lr"]) for group in self.optimizer.param_groups]

    def _take_over(self) -> None:
        self._reset_rates()
        self._restart()

    def state_dict(self) -> dict[str, Any]:
        """As for any schedule; "_schedulers" holds the states of the parts."""
        return super().state_dict() | {"_schedulers": [scheduler.state_dict() for scheduler in self._schedulers]}

    def _load(self, state_dict):
        super()._load(state_dict)
        for scheduler, state in zip(self._schedulers, state_dict["_schedulers"], strict=True):
            scheduler.load_state_dict(state)


class SequentialLR(Composite):
    """Runs several schedules one after the other, each from its own step 0 and the base rates.

    Args:
        optimizer: whose groups are to be moved.
        schedulers: the schedules. A ReduceLROnPlateau may follow others: `step(metrics)` hands it the metric.
        milestones: the steps at which the second, third, ... take over.
        last_epoch: -1 to begin. N of 0 or more puts all at step N, as after N calls of `step()`.

    Raises:
        ValueError: no schedule, another optimizer's schedule, or not one milestone less than schedules.
        TypeError: something that is not a schedule.
    """

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ):
        if len(schedulers) < 1:
            raise ValueError(f"{type(self).__name__} expects at least one scheduler, but got no scheduler.")
        check_optimizer(optimizer)
        self._check_parts(optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of "
                f"milestone points, but got number of schedulers {len(schedulers)} and the number of milestones to be "
                f"equal to {len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.optimizer = optimizer
        before = rates(optimizer)
        for group in optimizer.param_groups:  # a plateau alone sets none
            group.setdefault("initial_lr", copied(group["lr"]))
        record = Record.of(optimizer)
        record.paused, stepped, optimizer._opt_called = True, optimizer._opt_called, None
        try:
            self._take_over()
            for _ in range(last_epoch):
                self._advance(None)
        finally:
            record.paused, optimizer._opt_called = False, stepped
        self._number = record.built(optimizer, before)

    def _restart(self) -> None:
        self.last_epoch = 0
        active, _ = self._at_step(0)
        active._restart()
        self._last_lr = active.get_last_lr()

    def step(self, metrics=None) -> None:
        """Go to the next step.

        Args:
            metrics: for a ReduceLROnPlateau, while it is in charge.

        Raises:
            TypeError: a ReduceLROnPlateau is in charge and gets no metrics.
        """
        self._check_metric(metrics)
        self._advance(metrics)

    def _advance(self, metrics) -> None:
        step = self.last_epoch + 1
        scheduler, takes_over = self._at_step(step)
        if takes_over:
            scheduler._take_over()
        if isinstance(scheduler, ReduceLROnPlateau) or not takes_over:
            scheduler._advance(metrics)
        self.last_epoch = step
        self._last_lr = scheduler.get_last_lr()

    def _needs_metric(self) -> bool:
        scheduler, takes_over = self._at_step(self.last_epoch + 1)
        return isinstance(scheduler, ReduceLROnPlateau) or (not takes_over and scheduler._needs_metric())

    def _at_step(self, step: int) -> tuple[LRScheduler, bool]:
        """The schedule in charge of a step, and whether it takes over there."""
        index = bisect_right(self._milestones, step)
        return self._schedulers[index], index > 0 and self._milestones[index - 1] == step


class ChainedScheduler(Composite):
    """Steps several schedules at once, each upon the rates that the one before set.

    Args:
        schedulers: the schedules, all of one optimizer.
        optimizer: that optimizer; the first schedule's if None.

    Raises:
        ValueError: no schedule, another optimizer's schedule, a ReduceLROnPlateau.
        TypeError: something that is not a schedule.
    """

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None):
        if len(schedulers) < 1:
            raise ValueError(
                f"{type(self).__name__} expects at least one scheduler to be chained, but got no scheduler."
            )
        optimizer = optimizer or getattr(schedulers[0], "optimizer", None)
        self._check_parts(optimizer, schedulers)
        for i, scheduler in enumerate(schedulers):
            if isinstance(scheduler, ReduceLROnPlateau):
                raise ValueError(
                    f"{type(self).__name__} does not support `ReduceLROnPlateau` scheduler as it requires additional "
                    "kwargs to be specified when calling `step`, but got one at index "
                    f"{i} in the given schedulers sequence."
                )
        self._schedulers = schedulers
        self.optimizer = optimizer
        self._note_rates()
        self._number = Record.of(optimizer).built(optimizer, rates(optimizer))

    def step(self) -> None:
        """Step every schedule, in order."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._note_rates()

    def _step_number(self) -> int:
        return self._schedulers[0]._step_number()

    def _restart(self) -> None:
        for scheduler in self._schedulers:
            scheduler._restart()
        self._note_rates()
