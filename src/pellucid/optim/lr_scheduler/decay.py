"""Schedules that move a rate step by step, each given by a formula. All but LambdaLR can be chained."""

from __future__ import annotations

import math
import types
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from pellucid.optim.lr_scheduler.base import AbsoluteScheduler, FormulaScheduler
from pellucid.optim.optimizer import Optimizer

__all__ = [
    "ConstantLR",
    "CosineAnnealingLR",
    "ExponentialLR",
    "LambdaLR",
    "LinearLR",
    "MultiStepLR",
    "MultiplicativeLR",
    "PolynomialLR",
    "StepLR",
]


class _FunctionLR(FormulaScheduler):
    """What LambdaLR and MultiplicativeLR share: a function of the step for each group."""

    _settings = "lr_lambdas"

    def __init__(self, optimizer: Optimizer, lr_lambda: Callable[[int], float] | list, last_epoch: int = -1):
        groups = len(optimizer.param_groups) if isinstance(optimizer, Optimizer) else 1
        if not isinstance(lr_lambda, (list, tuple)):
            lr_lambda = [lr_lambda] * groups
        if len(lr_lambda) != groups:
            raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}: one for each parameter group")
        for function in lr_lambda:
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")
        self.lr_lambdas = list(lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """As for any schedule. Functions are not saved; of callable objects the attributes are."""
        state = super().state_dict()
        state["lr_lambdas"] = [
            None if isinstance(f, types.FunctionType) else dict(getattr(f, "__dict__", {})) for f in self.lr_lambdas
        ]
        return state

    def _load(self, state_dict):
        super()._load({key: value for key, value in state_dict.items() if key != "lr_lambdas"})
        for function, attributes in zip(self.lr_lambdas, state_dict.get("lr_lambdas", ()), strict=False):
            if attributes:
                function.__dict__.update(attributes)


class LambdaLR(_FunctionLR, AbsoluteScheduler):
    """rate = base * lr_lambda(step).

    Args:
        optimizer: whose groups are to be moved.
        lr_lambda: a function of the step, or a list of them, one a group.
        last_epoch: see `LRScheduler`.

    Raises:
        ValueError: a list of another length than there are groups.
    """

    def _at(self, base, i):
        return base * self.lr_lambdas[i](self.last_epoch)


class MultiplicativeLR(_FunctionLR):
    """rate <- rate * lr_lambda(step), from step 1 on.

    Args:
        optimizer: whose groups are to be moved.
        lr_lambda: a function of the step, or a list of them, one a group.
        last_epoch: see `LRScheduler`.

    Raises:
        ValueError: a list of another length than there are groups.
        TypeError: something that is not callable.
    """

    def _rate(self, rate, base, i):
        return rate if self._is_initial else rate * self.lr_lambdas[i](self.last_epoch)


class StepLR(FormulaScheduler):
    """The rate is multiplied by gamma every step_size steps.

    Args:
        optimizer: whose groups are to be moved.
        step_size: steps between two changes.
        gamma: the factor.
        last_epoch: see `LRScheduler`.
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1):
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next(self, rate, base, i):
        return rate if self.last_epoch % self.step_size else rate * self.gamma

    def _at(self, base, i):
        return base * self.gamma ** (self.last_epoch // self.step_size)


class MultiStepLR(FormulaScheduler):
    """The rate is multiplied by gamma at each milestone, once for each time it stands in the list.

    Args:
        optimizer: whose groups are to be moved.
        milestones: numbers of steps.
        gamma: the factor.
        last_epoch: see `LRScheduler`.
    """

    def __init__(self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1):
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _first(self, rate, base, i):
        return self._next(rate, base, i)

    def _next(self, rate, base, i):
        times = self.milestones[self.last_epoch]
        return rate * self.gamma**times if times else rate

    def _at(self, base, i):
        return base * self.gamma ** bisect_right(sorted(self.milestones.elements()), self.last_epoch)


class ConstantLR(FormulaScheduler):
    """The rate is multiplied by factor until step total_iters.

    Args:
        optimizer: whose groups are to be moved.
        factor: from 0 to 1.
        total_iters: the step at which the base rate is back.
        last_epoch: see `LRScheduler`.

    Raises:
        ValueError: factor out of its range.
    """

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ):
        if not 0 <= factor <= 1.0:
            raise ValueError(f"Constant multiplicative factor expected to be between 0 and 1, but got {factor}.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _first(self, rate, base, i):
        return rate * self.factor

    def _next(self, rate, base, i):
        if self.last_epoch != self.total_iters:
            return rate
        return rate * (1.0 / self.factor) if self.factor else base

    def _at(self, base, i):
        return base * (1.0 if self.last_epoch >= self.total_iters else self.factor)


class LinearLR(FormulaScheduler):
    """The rate's factor goes from start_factor to end_factor in a straight line over total_iters steps.

    Args:
        optimizer: whose groups are to be moved.
        start_factor: above 0, at most 1.
        end_factor: from 0 to 1.
        total_iters: the step at which end_factor is reached.
        last_epoch: see `LRScheduler`.

    Raises:
        ValueError: a factor out of its range.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ):
        if not 0 < start_factor <= 1.0:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less or equal to 1, "
                f"but got {start_factor}."
            )
        if not 0 <= end_factor <= 1.0:
            raise ValueError(f"Ending multiplicative factor expected to be between 0 and 1, but got {end_factor}.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _first(self, rate, base, i):
        return rate * self.start_factor

    def _next(self, rate, base, i):
        if self.last_epoch > self.total_iters:
            return rate
        rise = self.end_factor - self.start_factor
        return rate * (1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise))

    def _at(self, base, i):
        share = min(self.total_iters, self.last_epoch) / self.total_iters
        return base * (self.start_factor + (self.end_factor - self.start_factor) * share)


class ExponentialLR(FormulaScheduler):
    """The rate is multiplied by gamma at every step.

    Args:
        optimizer: whose groups are to be moved.
        gamma: the factor.
        last_epoch: see `LRScheduler`.
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1):
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _next(self, rate, base, i):
        return rate * self.gamma

    def _at(self, base, i):
        return base * self.gamma**self.last_epoch


class PolynomialLR(FormulaScheduler):
    """rate = base * (1 - step / total_iters)^power, and 0 from step total_iters on.

    Args:
        optimizer: whose groups are to be moved.
        total_iters: the step at which 0 is reached.
        power: the power.
        last_epoch: see `LRScheduler`.
    """

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1):
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _next(self, rate, base, i):
        if self.last_epoch > self.total_iters:
            return rate
        here, before = (1.0 - step / self.total_iters for step in (self.last_epoch, self.last_epoch - 1))
        return rate * (here / before) ** self.power

    def _at(self, base, i):
        return base * (1.0 - min(self.total_iters, self.last_epoch) / self.total_iters) ** self.power


class CosineAnnealingLR(FormulaScheduler):
    """rate = eta_min + (base - eta_min) * (1 + cos(pi * step / T_max)) / 2 (Loshchilov and Hutter, 2017).

    Down to eta_min at step T_max, then up again, with no restart.

    Args:
        optimizer: whose groups are to be moved.
        T_max: half the period.
        eta_min: the lowest rate.
        last_epoch: see `LRScheduler`.
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1):
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _height(self, step: int) -> float:
        return 1 + math.cos(math.pi * step / self.T_max)

    def _next(self, rate, base, i):
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:  # at the bottom the ratio below is 0 / 0
            return rate + (base - self.eta_min) * (1 - math.cos(math.pi / self.T_max)) / 2
        ratio = self._height(self.last_epoch) / self._height(self.last_epoch - 1)
        return ratio * (rate - self.eta_min) + self.eta_min

    def _at(self, base, i):
        return self.eta_min + (base - self.eta_min) * self._height(self.last_epoch) / 2
