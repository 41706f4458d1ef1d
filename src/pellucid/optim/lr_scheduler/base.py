"""The base of every schedule: the count of steps, base rates, saving and loading, the warning about the order of calls.

Formulas are in `decay.py` and `cycle.py`, schedules made of schedules in `combine.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import contextmanager
from typing import Any

from pellucid.core.callers import warn_caller
from pellucid.core.language import message, say
from pellucid.core.sites import Site
from pellucid.core.tensor import Tensor, wrap
from pellucid.optim.lr_scheduler.preview import RatePlot, rates_ahead
from pellucid.optim.lr_scheduler.resume import Record, copied, rates, set_rate
from pellucid.optim.optimizer import Optimizer

__all__ = [
    "EPOCH_DEPRECATION_WARNING",
    "AbsoluteScheduler",
    "FormulaScheduler",
    "LRScheduler",
    "check_optimizer",
    "per_group",
]

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed "
    "form is used instead of the new chainable form, where available."
)


class LRScheduler:
    """Base class of learning-rate schedules. A subclass gives `get_lr`.

    Building a schedule sets the rates of its first step. After that call `step()` once an epoch (or batch), after
    `optimizer.step()`. To resume, load the states of optimizer and schedule in any order.

    Args:
        optimizer: whose groups are to be moved.
        last_epoch: -1 to begin. A number N of 0 or more takes the schedule to step N + 1, as after N + 1 calls of
            `step()`, on groups that have "initial_lr": rates that differ from it are taken for those of a run that is
            being resumed and left alone, others are set to those of that step.

    Attributes:
        last_epoch: the number of the present step, 0 after building.
        base_lrs: the rates the schedule is relative to.

    Raises:
        TypeError: `optimizer` is not an Optimizer.
        KeyError: last_epoch is 0 or more and a group has no "initial_lr".
    """

    _get_lr_called_within_step = False
    _is_initial = False
    _unsaved = ("optimizer", "_number")

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1):
        check_optimizer(optimizer)
        self.optimizer = optimizer
        before = rates(optimizer)
        self._prepare_groups(last_epoch)
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                first = (
                    f"param 'initial_lr' is not specified in param_groups[{i}] when resuming scheduler with "
                    f"last_epoch >= 0 (got {last_epoch})"
                )
                way_out = say(
                    "Load the optimizer's state first, set group['initial_lr'] to the rate at the start of the schedule, or "
                    "leave last_epoch out for a new run."
                )
                raise KeyError(f"{first}. {way_out}")  # one line: a KeyError is printed with its line ends escaped
        self.base_lrs = [copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch = last_epoch
        if optimizer._opt_called is None:
            optimizer._opt_called = False
        self._initial_step()
        self._number = Record.of(optimizer).built(optimizer, before)

    def _prepare_groups(self, last_epoch: int) -> None:
        """Write into the groups what the schedule needs there, before base rates are taken."""

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def _restart(self) -> None:
        """Stand at the first step again, for a schedule that is part of another one."""
        self.last_epoch = -1
        self._initial_step()

    def _take_over(self) -> None:
        """Begin where another schedule ended: at step 0, from the base rates."""
        self._update_lr(0)

    # --- looking ahead -----------------------------------------------------------------------------------------------

    def preview(self, n: int, group: int = 0, metrics: float | Sequence[float] | None = None) -> list[float]:
        """The rates of the next n steps of the optimizer, beginning with the present one. Nothing is changed.

        Args:
            n: how many, 1 or more.
            group: the number of the parameter group.
            metrics: what a schedule that follows a metric is going to see, one number for all steps or one a step.
                Without, the metric is taken to improve at every step, so that such a schedule leaves the rate alone.

        Raises:
            ValueError: n is below 1, fewer metrics than steps, or a schedule that ends before.
            IndexError: no such group.
        """
        return [row[group] for row in rates_ahead(self, n, metrics)]

    def plot(self, n: int, metrics: float | Sequence[float] | None = None) -> RatePlot:
        """A picture of the rates of the next n steps, of all groups: text when printed, SVG in a notebook.

        Args:
            n, metrics: as for `preview`.

        Returns:
            An object whose `svg()` is the text of an SVG file.
        """
        return RatePlot(rates_ahead(self, n, metrics), self._step_number())

    def _step_number(self) -> int:
        """The number of the present step."""
        return self.last_epoch

    def _advance(self, metrics: float | None) -> None:
        """Go to the next step as part of another schedule, which has checked that there is a metric if one is needed."""
        self.step()

    def _needs_metric(self) -> bool:
        """Whether the next step follows a metric."""
        return False

    # --- rates -------------------------------------------------------------------------------------------------------

    def get_last_lr(self) -> list:
        """The rates that this schedule set last, one a group, as numbers or, where a group's lr is a tensor, copies."""
        return self._last_lr

    def get_lr(self) -> list:
        """The rates of step `last_epoch`, one a group; called by `step`. Use `get_last_lr` to look at present rates."""
        raise NotImplementedError(f"{type(self).__name__} has to define get_lr()")

    def step(self, epoch: int | None = None) -> None:
        """Go to the next step and set its rates.

        Args:
            epoch: deprecated: go to this step instead.
        """
        if self._step_count == 1:
            self._warn_of_order()
        self._step_count += 1
        if epoch is not None:
            warn_caller(EPOCH_DEPRECATION_WARNING)
        try:
            self._update_lr(epoch)
        except BaseException:
            self._step_count -= 1
            raise

    def _warn_of_order(self) -> None:
        if self.optimizer._opt_called is not False:
            return
        first = (
            "Detected call of `lr_scheduler.step()` before `optimizer.step()`. You should call them in the opposite "
            "order: `optimizer.step()` before `lr_scheduler.step()`. Failure to do this will result in skipping the "
            "first value of the learning rate schedule."
        )
        warn_caller(message(first, say("The schedule was stepped first at {site}", site=Site.here())))

    def _update_lr(self, epoch: int | None = None) -> None:
        before = self.last_epoch
        self.last_epoch = before + 1 if epoch is None else epoch
        try:
            with self._computing():
                values = self._rates_at() if epoch is not None else None
                values = self.get_lr() if values is None else values
            self._write(values)
        except BaseException:
            self.last_epoch = before
            raise

    def _rates_at(self) -> list | None:
        """The rates of step `last_epoch` from the base rates alone; None where the schedule cannot tell them."""
        closed = getattr(self, "_get_closed_form_lr", None)
        return None if closed is None else closed()

    def _write(self, values: list) -> None:
        groups = self.optimizer.param_groups
        if len(values) != len(groups):
            raise ValueError(
                f"{type(self).__name__} has rates for {len(values)} parameter groups, the optimizer has {len(groups)}: "
                "get_lr() has to return one rate for each"
            )
        for group, value in zip(groups, values, strict=True):
            set_rate(group, value)
        self._last_lr = [copied(group["lr"]) for group in groups]
        number = self.__dict__.get("_number")
        if number is not None and not self._is_initial:
            Record.of(self.optimizer).stepped(self.optimizer, number)

    @contextmanager
    def _computing(self):
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    # --- saving and loading ------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, under PyTorch's names."""
        return {key: value for key, value in self.__dict__.items() if key not in self._unsaved}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over a state that `state_dict` returned, from here or from PyTorch.

        The optimizer's rates become those of the saved run, unless somebody else than schedules has set them since:
        loading the optimizer's state before, after or not at all comes to the same.
        """
        self._load(state_dict)
        saved, number = state_dict.get("_last_lr"), self.__dict__.get("_number")
        if saved is not None and number is not None:
            untouched = Record.of(self.optimizer).settle(self.optimizer, number, saved)
            self._settle_options(untouched)

    def _load(self, state_dict: dict[str, Any]) -> None:
        self.__dict__.update({key: value for key, value in state_dict.items() if key not in self._unsaved})

    def _settle_options(self, untouched: list[bool]) -> None:
        """Bring options other than lr to the loaded step, in groups whose rate nobody else has touched."""


class _LRScheduler(LRScheduler):
    """The old name of `LRScheduler`, for programs that derive from it."""


class FormulaScheduler(LRScheduler):
    """A schedule given by formulas for one group, on plain numbers.

    `_next` takes the present rate to that of step `last_epoch`, so that changes by hand and by other schedules carry
    on; `_at` gives the rate of step `last_epoch` from the base rate alone.
    """

    _settings: str | None = None  # the attribute that holds one setting a group, where there is one

    def _admit(self, groups: list[dict]) -> None:
        """Take in groups that were added to the optimizer since: their base rate is the one they come with."""
        known = len(self.base_lrs)
        fixed = self._settings is not None and len(groups) != len(getattr(self, self._settings))
        if len(groups) < known or fixed:
            first = f"{type(self).__name__} was built for {known} parameter groups, the optimizer has {len(groups)}"
            raise ValueError(message(first, say("Build a new schedule.")))
        if len(groups) > known:
            for group in groups[known:]:
                group.setdefault("initial_lr", copied(group["lr"]))
            self.base_lrs = [*self.base_lrs, *(copied(group["initial_lr"]) for group in groups[known:])]

    def _first(self, rate: float, base: float, i: int) -> float:
        """The rate at step 0, where it was `rate` before the schedule."""
        return rate

    def _next(self, rate: float, base: float, i: int) -> float:
        """The rate at step `last_epoch`, where it was `rate` at the step before. `i` is the group's number."""
        raise NotImplementedError

    def _at(self, base: float, i: int) -> float | None:
        """The rate at step `last_epoch` of an undisturbed run; None where that has no formula."""
        return None

    def get_lr(self) -> list:
        """The rates of step `last_epoch`, one a group; called by `step`. Use `get_last_lr` to look at present rates."""
        if not self._get_lr_called_within_step:
            warn_caller("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.")
        return self._each(self._rate)

    def _rate(self, rate: float, base: float, i: int) -> float:
        if self._is_initial and self.last_epoch > 0:  # resumed by last_epoch: only a rate that never moved is set
            value = self._at(base, i) if rate == base else None
            return rate if value is None else value
        return self._first(rate, base, i) if self.last_epoch == 0 else self._next(rate, base, i)

    def _rates_at(self) -> list | None:
        values = self._each(lambda rate, base, i: self._at(base, i))
        return None if any(value is None for value in values) else values

    def _each(self, formula) -> list:
        groups = self.optimizer.param_groups
        self._admit(groups)
        values = []
        for i, (group, base) in enumerate(zip(groups, self.base_lrs, strict=True)):
            value = formula(float(group["lr"]), float(base), i)
            values.append(_like(group["lr"], value))
        return values


class AbsoluteScheduler(FormulaScheduler):
    """A schedule whose rate follows from the step alone, whatever the present rate is."""

    def _rate(self, rate: float, base: float, i: int) -> float:
        return self._at(base, i)


def _like(present, value):
    """A number as a tensor of the present rate's kind, where that is one."""
    if value is None or not isinstance(present, Tensor):
        return value
    made = wrap(present._array.copy())
    made._array[...] = value
    return made


def check_optimizer(optimizer) -> None:
    """TypeError for anything that is not an Optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def per_group(name: str, optimizer: Optimizer, value) -> list:
    """One value for each group, from a list of them or one for all; ValueError for a list of another length."""
    count = len(optimizer.param_groups)
    if not isinstance(value, (list, tuple)):
        return [copied(value) for _ in range(count)]
    if len(value) != count:
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. "
            f"{name} has {len(value)} values, param_groups has {count}."
        )
    return [copied(item) for item in value]
