"""ReduceLROnPlateau: a schedule that follows a metric instead of the count of steps."""

from __future__ import annotations

from math import inf

from pellucid.core.callers import warn_caller
from pellucid.optim.lr_scheduler.base import EPOCH_DEPRECATION_WARNING, LRScheduler, check_optimizer
from pellucid.optim.lr_scheduler.resume import Record, copied, rates, set_rate
from pellucid.optim.optimizer import Optimizer

__all__ = ["ReduceLROnPlateau"]


class ReduceLROnPlateau(LRScheduler):
    """The rate is multiplied by factor where a metric has not improved for more than `patience` steps.

    Args:
        optimizer: whose groups are to be moved.
        mode: "min" for a metric that should fall, "max" for one that should rise.
        factor: below 1.
        patience: steps without improvement that are put up with.
        threshold: how much better than the best counts as an improvement.
        threshold_mode: whether threshold is relative to the best ("rel") or not ("abs").
        cooldown: steps after a reduction in which nothing is counted.
        min_lr: the lowest rate, one for all groups or a list.
        eps: a smaller change of the rate is not made.

    Raises:
        ValueError: an option out of its range.
        TypeError: `optimizer` is not an Optimizer.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: list[float] | float = 0,
        eps: float = 1e-8,
    ):
        if factor >= 1.0:
            raise ValueError(f"Factor should be < 1.0, but got {factor}.")
        check_optimizer(optimizer)
        groups = len(optimizer.param_groups)
        if isinstance(min_lr, (list, tuple)):
            if len(min_lr) != groups:
                raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
            self.default_min_lr, self.min_lrs = None, list(min_lr)
        else:
            self.default_min_lr, self.min_lrs = min_lr, [min_lr] * groups
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown! Expected 'min' or 'max'.")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown! Expected 'rel' or 'abs'.")
        self.optimizer = optimizer
        self.factor = factor
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self.mode_worse = inf if mode == "min" else -inf
        self.last_epoch = 0
        self._reset()
        self._number = Record.of(optimizer).built(optimizer, rates(optimizer))

    def _reset(self) -> None:
        """Forget the best metric and all counts."""
        self.best = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0
        self._last_lr = [copied(group["lr"]) for group in self.optimizer.param_groups]

    def _restart(self) -> None:
        self.last_epoch = 0
        self._reset()

    def _take_over(self) -> None:
        for group in self.optimizer.param_groups:
            set_rate(group, copied(group["initial_lr"]))
        self._restart()

    def _advance(self, metrics: float | None) -> None:
        if metrics is not None:
            self.step(metrics)

    def _needs_metric(self) -> bool:
        return True

    @property
    def in_cooldown(self) -> bool:
        """Whether a reduction is so recent that nothing is counted."""
        return self.cooldown_counter > 0

    def step(self, metrics, epoch: int | None = None) -> None:
        """Look at the metric of a step, and reduce the rates if it has not improved for too long.

        Args:
            metrics: a number or a one-element tensor.
            epoch: deprecated: the number of the step.
        """
        current = float(metrics)
        if epoch is not None:
            warn_caller(EPOCH_DEPRECATION_WARNING)
        if self._is_better(current, self.best):
            best, bad, cooling = current, 0, self.cooldown_counter
        else:
            best, bad, cooling = self.best, self.num_bad_epochs + 1, self.cooldown_counter
        if cooling > 0:
            cooling, bad = cooling - 1, 0
        if bad > self.patience:
            self._reduce_lr()
            cooling, bad = self.cooldown, 0
        self.best, self.num_bad_epochs, self.cooldown_counter = best, bad, cooling
        self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
        self._last_lr = [copied(group["lr"]) for group in self.optimizer.param_groups]
        Record.of(self.optimizer).stepped(self.optimizer, self._number)

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    f"The number of param groups in the `optimizer` ({len(groups)}) differs from when "
                    f"`ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), usually due to a new param group "
                    "being added to the optimizer. Please modify the `min_lrs` field to match the length of the "
                    "`optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, lowest in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, lowest)
            if old - new > self.eps:
                set_rate(group, new)

    def _is_better(self, value: float, best: float) -> bool:
        sign = 1.0 if self.mode == "min" else -1.0
        if self.threshold_mode == "abs":
            bound = best - sign * self.threshold
        else:
            bound = best * (1.0 - sign * self.threshold)
        return value < bound if self.mode == "min" else value > bound
