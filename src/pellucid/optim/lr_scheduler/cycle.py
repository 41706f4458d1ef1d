"""Schedules that go up and down: warm restarts, cycles, one cycle. They set rates outright and cannot be chained."""

from __future__ import annotations

import math
import types
from bisect import bisect_left
from collections.abc import Callable
from typing import Any

from pellucid.optim.lr_scheduler.base import AbsoluteScheduler, check_optimizer, per_group
from pellucid.optim.lr_scheduler.resume import set_rate
from pellucid.optim.optimizer import Optimizer

__all__ = ["CosineAnnealingWarmRestarts", "CyclicLR", "OneCycleLR"]


class CosineAnnealingWarmRestarts(AbsoluteScheduler):
    """rate = eta_min + (base - eta_min) * (1 + cos(pi * T_cur / T_i)) / 2, from the top again every T_i steps.

    Loshchilov and Hutter, 2017. T_cur counts from the last restart; T_i is T_0 at first and grows by T_mult.

    Args:
        optimizer: whose groups are to be moved.
        T_0: steps to the first restart.
        T_mult: factor of T_i at each restart.
        eta_min: the lowest rate.
        last_epoch: see `LRScheduler`.

    Raises:
        ValueError: T_0 or T_mult is not a positive integer, or eta_min not a number.
    """

    def __init__(self, optimizer: Optimizer, T_0: int, T_mult: int = 1, eta_min: float = 0.0, last_epoch: int = -1):
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur = last_epoch
        super().__init__(optimizer, last_epoch)

    def _at(self, base, i):
        return self.eta_min + (base - self.eta_min) * (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2

    def _take_over(self):
        self.step(0)

    def step(self, epoch: float | None = None) -> None:
        """Go to the next step, or to `epoch`, which may lie between two steps, and set the rates there.

        Raises:
            ValueError: a negative epoch.
        """
        if epoch is not None and epoch < 0:
            raise ValueError(f"Expected non-negative epoch, but got {epoch}")
        if epoch is not None or self._is_initial:
            epoch = self.last_epoch + 1 if epoch is None else epoch
            self.T_cur, self.T_i = self._in_period(epoch)
        else:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        self.last_epoch = math.floor(epoch)
        with self._computing():
            values = self.get_lr()
        self._write(values)

    def _in_period(self, epoch: float) -> tuple[float, int]:
        """Steps since the last restart, and the length of the period."""
        length = self.T_0
        if self.T_mult == 1:
            return epoch % length, length
        while epoch >= length:
            epoch -= length
            length *= self.T_mult
        return epoch, length


class _MomentumCycler(AbsoluteScheduler):
    """What CyclicLR and OneCycleLR share: they move momentum, or Adam's first beta, against the rate."""

    cycle_momentum: bool

    def _check_momentum(self, optimizer: Optimizer) -> None:
        if not ("momentum" in optimizer.defaults or "betas" in optimizer.defaults):
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled: "
                f"{type(optimizer).__name__} has neither. Pass cycle_momentum=False."
            )
        self.use_beta1 = "betas" in optimizer.defaults

    def _set_momentum(self, group: dict, value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value

    def _momentum_at(self, i: int) -> float:
        raise NotImplementedError

    def _write(self, values):
        super()._write(values)
        self._settle_options([True] * len(values))

    def _settle_options(self, untouched):
        if self.cycle_momentum:
            for i, group in enumerate(self.optimizer.param_groups):
                if untouched[i]:
                    self._set_momentum(group, self._momentum_at(i))


class CyclicLR(_MomentumCycler):
    """The rate goes between base_lr and max_lr in triangles (Smith, 2017).

    Args:
        optimizer: whose groups are to be moved.
        base_lr: the lower rate, one for all groups or a list.
        max_lr: the upper rate of the first cycle, likewise.
        step_size_up: steps of the way up.
        step_size_down: steps of the way down; as many as up if None.
        mode: "triangular": all cycles alike; "triangular2": each half as high as the last; "exp_range": height times
            gamma^step.
        gamma: for "exp_range".
        scale_fn: a function to scale the height with, instead of `mode`.
        scale_mode: whether scale_fn gets the number of the "cycle" (from 1) or of the step ("iterations").
        cycle_momentum: whether momentum goes from max_momentum to base_momentum and back, against the rate.
        base_momentum: the lower momentum, one or a list.
        max_momentum: the upper momentum, one or a list.
        last_epoch: see `LRScheduler`.

    Raises:
        ValueError: an unknown mode, a list of a wrong length, an optimizer without momentum.
    """

    _settings = "max_lrs"

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | list[float],
        max_lr: float | list[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ):
        check_optimizer(optimizer)
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError(
                f"mode is invalid and scale_fn is None: got {mode!r}, expected 'triangular', 'triangular2', 'exp_range'"
            )
        self._lower = per_group("base_lr", optimizer, base_lr)
        self.max_lrs = per_group("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._check_momentum(optimizer)
            self.base_momentums = per_group("base_momentum", optimizer, base_momentum)
            self.max_momentums = per_group("max_momentum", optimizer, max_momentum)
        super().__init__(optimizer, last_epoch)
        self.base_lrs = self.__dict__.pop("_lower")

    def _prepare_groups(self, last_epoch):
        if last_epoch != -1:
            return
        for i, group in enumerate(self.optimizer.param_groups):
            set_rate(group, self._lower[i])
            if self.cycle_momentum:
                group["max_momentum"] = self.max_momentums[i]
                group["base_momentum"] = self.base_momentums[i]

    def scale_fn(self, x: float) -> float:
        """The height of a cycle: of the number of the cycle or of the step, by scale_mode."""
        if self._scale_fn_custom is not None:
            return self._scale_fn_custom(x)
        if self.mode == "triangular2":
            return 1 / (2.0 ** (x - 1))
        return self.gamma**x if self.mode == "exp_range" else 1.0

    def _height(self) -> tuple[float, float]:
        """Where between its lower end (0) and upper end (1) the cycle is at step `last_epoch`, and how high it is."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        return height, self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)

    def _at(self, base, i):
        low = float(self.__dict__.get("_lower", self.base_lrs)[i])
        height, scale = self._height()
        return low + (float(self.max_lrs[i]) - low) * height * scale

    def _momentum_at(self, i):
        height, scale = self._height()
        return self.max_momentums[i] - (self.max_momentums[i] - self.base_momentums[i]) * height * scale

    def state_dict(self) -> dict[str, Any]:
        """As for any schedule. A scale_fn is not saved; of a callable object the attributes are."""
        state = super().state_dict()
        function = state["_scale_fn_custom"]
        plain = function is None or isinstance(function, types.FunctionType)
        state["_scale_fn_custom"] = None if plain else dict(getattr(function, "__dict__", {}))
        return state

    def _load(self, state_dict):
        super()._load({key: value for key, value in state_dict.items() if key != "_scale_fn_custom"})
        if state_dict.get("_scale_fn_custom"):
            self._scale_fn_custom.__dict__.update(state_dict["_scale_fn_custom"])


class OneCycleLR(_MomentumCycler):
    """One cycle: the rate rises from max_lr / div_factor to max_lr, then falls to nearly nothing.

    Smith and Topin, 2018. Call `step()` after each batch.

    Args:
        optimizer: whose groups are to be moved.
        max_lr: the highest rate, one for all groups or a list.
        total_steps: steps of the whole cycle; epochs * steps_per_epoch if None.
        epochs, steps_per_epoch: see total_steps.
        pct_start: share of the steps spent rising.
        anneal_strategy: "cos" or "linear".
        cycle_momentum: whether momentum goes from max_momentum to base_momentum and back, against the rate.
        base_momentum: the lower momentum, one or a list.
        max_momentum: the upper momentum, one or a list.
        div_factor: the first rate is max_lr / div_factor.
        final_div_factor: the last rate is the first / final_div_factor.
        three_phase: fall to the first rate as steeply as it rose, and only then to the last.
        last_epoch: see `LRScheduler`.

    Raises:
        ValueError: an option out of its range; a step beyond the last.
    """

    _settings = "base_lrs"

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | list[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float | list[float] = 0.85,
        max_momentum: float | list[float] = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ):
        check_optimizer(optimizer)
        self.total_steps = _total_steps(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._schedule_phases = _phases(pct_start, self.total_steps, three_phase)
        self._anneal_func_type = anneal_strategy
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._check_momentum(optimizer)
        momenta = zip(
            per_group("max_momentum", optimizer, max_momentum),
            per_group("base_momentum", optimizer, base_momentum),
            strict=True,
        )
        entries = []
        for highest, (upper, lower) in zip(per_group("max_lr", optimizer, max_lr), momenta, strict=True):
            first = highest / div_factor
            entry = {"initial_lr": first, "max_lr": highest, "min_lr": first / final_div_factor}
            entries.append(entry | ({"max_momentum": upper, "base_momentum": lower} if cycle_momentum else {}))
        self._entries = entries
        super().__init__(optimizer, last_epoch)
        del self._entries

    def _prepare_groups(self, last_epoch):
        if last_epoch == -1:
            for group, entry in zip(self.optimizer.param_groups, self._entries, strict=True):
                group.update(entry)

    def _between(self, i: int, quantity: str) -> float:
        """The group's "lr" or "momentum" at step `last_epoch`."""
        step, group = self.last_epoch, self.optimizer.param_groups[i]
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is {self.total_steps}"
            )
        ends = [phase["end_step"] for phase in self._schedule_phases]
        number = min(bisect_left(ends, step), len(ends) - 1)  # the step after the last goes on in the last phase
        phase, start = self._schedule_phases[number], ends[number - 1] if number else 0.0
        first, goal = float(group[phase[f"start_{quantity}"]]), float(group[phase[f"end_{quantity}"]])
        share = (step - start) / (phase["end_step"] - start)
        if self._anneal_func_type == "linear":
            return (goal - first) * share + first
        return goal + (first - goal) / 2.0 * (math.cos(math.pi * share) + 1)

    def _at(self, base, i):
        return self._between(i, "lr")

    def _momentum_at(self, i):
        return self._between(i, "momentum")


def _total_steps(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    if total_steps is not None:
        return _positive("total_steps", total_steps)
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    return _positive("epochs", epochs) * _positive("steps_per_epoch", steps_per_epoch)


def _positive(name: str, value: int) -> int:
    if not isinstance(value, int) or value <= 0:
        raise ValueError(f"Expected positive integer {name}, but got {value}")
    return value


def _phases(pct_start: float, total_steps: int, three_phase: bool) -> list[dict[str, Any]]:
    """Where each phase ends and between which of a group's entries it goes."""

    def phase(end: float, rates: tuple[str, str], momenta: tuple[str, str]) -> dict[str, Any]:
        return {
            "end_step": end,
            "start_lr": f"{rates[0]}_lr",
            "end_lr": f"{rates[1]}_lr",
            "start_momentum": f"{momenta[0]}_momentum",
            "end_momentum": f"{momenta[1]}_momentum",
        }

    up = phase(float(pct_start * total_steps) - 1, ("initial", "max"), ("max", "base"))
    if not three_phase:
        return [up, phase(total_steps - 1, ("max", "min"), ("base", "max"))]
    down = phase(float(2 * pct_start * total_steps) - 2, ("max", "initial"), ("base", "max"))
    return [up, down, phase(total_steps - 1, ("initial", "min"), ("max", "max"))]
