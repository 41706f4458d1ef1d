"""L-BFGS: a quasi-Newton method that reevaluates the loss within a step.

The line search is in `line_search.py`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pellucid.core.quiet import quiet
from pellucid.core.tensor import Tensor, wrap
from pellucid.kernels.short_vectors import add_scaled, dot, total
from pellucid.optim.elementwise import check_gradient, check_options, number
from pellucid.optim.kinds import check_options_known
from pellucid.optim.line_search import Point, strong_wolfe
from pellucid.optim.optimizer import Optimizer, evaluate

__all__ = ["LBFGS"]

CURVATURE = 1e-10  # pairs of steps and gradient changes with less curvature than this are not remembered


class LBFGS(Optimizer):
    """Limited-memory BFGS (Nocedal and Wright, 2006, chapter 7). One group of parameters only.

    Args:
        params: tensors or `(name, tensor)` pairs; see `Optimizer`.
        lr: learning rate, a number or a one-element tensor.
        max_iter: most iterations in a step.
        max_eval: most evaluations of the loss in a step; max_iter * 5 / 4 if None.
        tolerance_grad: stop where no element of the gradient is larger.
        tolerance_change: stop where the parameters or the loss change less.
        history_size: how many steps are remembered.
        line_search_fn: None, for steps of length lr, or "strong_wolfe".

    Raises:
        ValueError: a negative lr, or more than one group.
    """

    def __init__(
        self,
        params,
        lr=1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ):
        check_options(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError(
                "LBFGS doesn't support per-parameter options (parameter groups): "
                f"expected one group, got {len(self.param_groups)}"
            )

    def _check_kind(self, saved_groups, saved_states):
        check_options_known(self, saved_groups)

    def step(self, closure: Callable):
        """Run up to max_iter iterations.

        Args:
            closure: clears the gradients, computes the loss, calls `backward` and returns the loss. Called many times.

        Returns:
            The loss at the start of the step, as the closure returned it.

        Raises:
            RuntimeError: an unknown line_search_fn. Where the closure raises, parameters and state are as before.
        """
        if closure is None:
            raise TypeError("LBFGS.step() needs a closure that reevaluates the loss and returns it")
        group = self.param_groups[0]
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            given = group["line_search_fn"]
            raise RuntimeError(f"only 'strong_wolfe' is supported as line_search_fn, but got {given!r}")
        params, owner = group["params"], group["params"][0]
        before = [param._array.copy() for param in params]
        state = dict(self.state[owner])
        try:
            with quiet():
                result = _Run(params, group, state, lambda: evaluate(closure)).go()
        except BaseException:
            _write(params, before)
            raise
        self.state[owner].update(state)
        return result


class _Run:
    """One call of `step`: flat arrays in, parameters moved, `state` (a private copy) brought up to date."""

    def __init__(self, params: list[Tensor], group: dict, state: dict, closure: Callable):
        self.params, self.group, self.state, self.closure = params, group, state, closure
        self.lr = number(group["lr"], "lr")
        self.history: list[tuple] = []  # (step, change of the gradient, 1 / their product), oldest first

    def go(self):
        group, state = self.group, self.state
        first = self.closure()
        evaluations = 1
        state["func_evals"] = state.get("func_evals", 0) + 1
        state.setdefault("n_iter", 0)
        here = Point(0.0, float(first), self.flat_gradient(), 0.0)
        if self.is_flat(here.grad) or group["max_iter"] < 1:
            return first
        self.recall()
        for iteration in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self.direction(here.grad)
            self.last_grad, loss_before = here.grad, here.loss
            length = self.first_length(here.grad) if state["n_iter"] == 1 else self.lr
            slope = dot(here.grad, direction)
            self.last_direction, self.last_length = direction, length
            if slope > -group["tolerance_change"]:
                break
            last = iteration == group["max_iter"]
            here, used = self.move(here, direction, length, slope, group["max_eval"] - evaluations, last)
            evaluations += used
            state["func_evals"] += used
            if last or evaluations >= group["max_eval"] or self.is_flat(here.grad):
                break
            if np.abs(direction * self.last_length).max() <= group["tolerance_change"]:
                break
            if abs(here.loss - loss_before) < group["tolerance_change"]:
                break
        self.remember(loss_before)
        return first

    def move(self, here: Point, direction, length: float, slope: float, allowed: int, last: bool) -> tuple[Point, int]:
        """Go along the direction: where that leads, and how often the loss was evaluated."""
        if self.group["line_search_fn"] is None:
            self.add(length, direction)
            if last:  # nobody would look at the loss there
                return here, 0
            return Point(length, float(self.closure()), self.flat_gradient(), 0.0), 1
        start = [param._array.copy() for param in self.params]

        def at(length: float) -> Point:
            self.add(length, direction)
            loss, grad = float(self.closure()), self.flat_gradient()
            _write(self.params, start)
            return Point(length, loss, grad, dot(grad, direction))

        found, used = strong_wolfe(at, Point(0.0, here.loss, here.grad, slope), length, direction, max_steps=allowed)
        self.add(found.length, direction)
        self.last_length = found.length
        return found, used

    def first_length(self, grad) -> float:
        size = total(np.abs(grad))
        return (min(1.0, 1.0 / size) if size else 1.0) * self.lr

    def is_flat(self, grad) -> bool:
        return bool(np.abs(grad).max(initial=0.0) <= self.group["tolerance_grad"])

    def direction(self, grad):
        """Minus the inverse Hessian's estimate times the gradient (Nocedal and Wright, algorithm 7.4)."""
        if self.state["n_iter"] == 1:
            self.history, self.scale = [], 1.0
            return -grad
        change, moved = grad - self.last_grad, self.last_direction * self.last_length
        curvature = dot(change, moved)
        if curvature > CURVATURE:
            if len(self.history) == self.group["history_size"]:
                self.history.pop(0)
            self.history.append((moved, change, 1.0 / curvature))
            self.scale = curvature / dot(change, change)
        direction, shares = -grad, []
        for moved, change, inverse in reversed(self.history):
            shares.append(dot(moved, direction) * inverse)
            direction = add_scaled(direction, change, -shares[-1])
        direction *= self.scale
        for (moved, change, inverse), share in zip(self.history, reversed(shares), strict=True):
            direction = add_scaled(direction, moved, share - dot(change, direction) * inverse)
        return direction

    # --- state between steps, under PyTorch's names ------------------------------------------------------------------

    def recall(self) -> None:
        state = self.state
        if not state["n_iter"]:
            return
        self.last_direction, self.last_length = _array(state["d"]), float(state["t"])
        self.last_grad, self.scale = _array(state["prev_flat_grad"]), float(state["H_diag"])
        rows = zip(state["old_stps"], state["old_dirs"], state["ro"], strict=True)
        self.history = [(_array(moved), _array(change), float(inverse)) for moved, change, inverse in rows]

    def remember(self, loss: float) -> None:
        kind = self.last_grad.dtype
        self.state.update(
            d=wrap(self.last_direction),
            t=self.last_length,
            old_dirs=[wrap(change) for _, change, _ in self.history],
            old_stps=[wrap(moved) for moved, _, _ in self.history],
            ro=[wrap(np.array(inverse, kind)) for _, _, inverse in self.history],
            H_diag=wrap(np.array(self.scale, kind)),
            prev_flat_grad=wrap(self.last_grad),
            prev_loss=loss,
        )

    # --- parameters as one flat array --------------------------------------------------------------------------------

    def flat_gradient(self) -> np.ndarray:
        """All gradients end to end, zeros where there is none, complex ones as pairs."""
        for param in self.params:
            if param._grad is not None:
                check_gradient(param, param._grad)
        return np.concatenate([_real_flat(p._array if p._grad is None else p._grad._array, p._grad is None)
                               for p in self.params])

    def add(self, length: float, direction) -> None:
        """params += length * direction."""
        start = 0
        for param in self.params:
            array = param._array
            size = array.size * (2 if array.dtype.kind == "c" else 1)
            piece, flat = direction[start : start + size], _real_flat(array, False)
            moved = add_scaled(flat, piece.astype(flat.dtype, copy=False), length)
            array[...] = moved.view(array.dtype).reshape(array.shape)
            param._bump_version()
            start += size


def _real_flat(array: np.ndarray, zeros: bool) -> np.ndarray:
    flat = np.zeros(array.size, array.dtype) if zeros else array.reshape(-1)
    return np.ascontiguousarray(flat).view(array.real.dtype) if array.dtype.kind == "c" else flat


def _write(params: list[Tensor], arrays: list[np.ndarray]) -> None:
    for param, array in zip(params, arrays, strict=True):
        param._array[...] = array
        param._bump_version()


def _array(value) -> np.ndarray:
    return value._array if isinstance(value, Tensor) else np.asarray(value)
