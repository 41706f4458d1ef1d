"""Runs update rules that treat every element of a parameter alone; what each remembers is in one file a family.

A step has two halves. The first looks at everything (options, gradients, saved state), makes what is missing and
computes each parameter's constants, and changes nothing. The second writes. So a step that fails leaves parameters and
state as they were.

The rules' arithmetic is in `kernels/updates.py`, which takes all parameters of a group at once.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from math import sqrt
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pellucid.autograd.few_rows import stored
from pellucid.core.dtype import get_default_dtype
from pellucid.core.language import message, say
from pellucid.core.quiet import quiet
from pellucid.core.sites import caller
from pellucid.core.tensor import Tensor, counter, wrap
from pellucid.kernels.few_rows import FewRows
from pellucid.kernels.updates import WIDE, Move, Scratch, is_packed, lerp, move
from pellucid.optim.kinds import SWITCHES, check_options_known, check_state_names, missing_state
from pellucid.optim.optimizer import Optimizer, evaluate
from pellucid.optim.repetition import Again, Repetition

__all__ = [
    "WIDE",
    "ElementwiseOptimizer",
    "check_options",
    "check_range",
    "check_single",
    "filled",
    "lerp",
    "number",
    "of_gradient",
    "root_of_correction",
    "scalar_dtype",
]


class Known(NamedTuple):
    """What was found out about a parameter's memory, kept from step to step."""

    array: np.ndarray  # the parameter's
    arrays: list[np.ndarray]  # those of the slots
    slots: dict[str, Tensor]
    packed: bool  # what `is_packed` says of all of them

    def still_holds(self, state: dict, names: dict) -> bool:
        """Whether the state has the same slots, in the same memory."""
        if self.slots.keys() != names.keys():
            return False
        for (name, tensor), array in zip(self.slots.items(), self.arrays, strict=True):
            if state.get(name) is not tensor or tensor._array is not array:
                return False
        return True


class Update(NamedTuple):
    """One parameter's share of a step, worked out and not yet done."""

    param: Tensor
    grad: np.ndarray | FewRows
    memory: Known
    fresh: bool  # whether the slots were made for this step
    scalars: dict[str, Any]  # new values of 0-d state tensors
    options: SimpleNamespace
    constants: tuple

    @property
    def slots(self) -> dict[str, Tensor]:
        """State tensors shaped like the parameter, those just made included."""
        return self.memory.slots


class ElementwiseOptimizer(Optimizer):
    """An optimizer declared by its state, its constants and its rule for a block of elements.

    A subclass gives `_rule` and `_constants`, and where it needs them `_slots` and `_scalars`; one whose elements are not
    alone gives `_write` instead of `_rule`.
    """

    _rule: ClassVar[Callable | None] = None  # the function in kernels/updates.py

    # options, besides the switches, that states saved by old versions lack, and their values there
    _later_options: ClassVar[dict[str, Any]] = {}
    _starts_late = False  # whether a slot may begin after the first step, when its option is switched on

    def __init__(self, params, defaults: dict[str, Any]):
        if defaults.get("differentiable"):
            _refuse_differentiable(defaults)
        if defaults.get("fused") and defaults.get("foreach"):
            raise RuntimeError("`fused` and `foreach` cannot be `True` together. They change nothing: leave both out.")
        super().__init__(params, defaults)
        self._forget()

    def _forget(self) -> None:
        """Drop what is only kept to save time."""
        self._known_options: dict[int, tuple[list, SimpleNamespace]] = {}
        self._known: dict[int, Known] = {}
        self._repetitions: dict[int, Repetition | None] = {}
        self._scratch = Scratch(0)

    # --- what a subclass declares ------------------------------------------------------------------------------------

    def _slots(self, group: dict[str, Any]) -> dict[str, float]:
        """Names and first values of the state tensors that have the parameter's shape."""
        return {}

    def _scalars(self, group: dict[str, Any]) -> dict[str, float]:
        """Names and first values of the 0-d state tensors."""
        return {"step": 0.0}

    def _constants(self, o: SimpleNamespace, scalars: dict[str, Any], fresh: bool) -> tuple[dict[str, Any], tuple]:
        """New values of the scalars, and the numbers the rule needs in this step. Changes nothing.

        `scalars` holds NumPy numbers of the saved precision; `fresh` says that the parameter's slots were made for this
        step. Parameters for which all three are equal share the result.
        """
        return {"step": scalars["step"] + 1}, ()

    # --- the step ----------------------------------------------------------------------------------------------------

    def step(self, closure: Callable | None = None):
        """Update every parameter that has a gradient.

        Args:
            closure: reevaluates the model and returns the loss; called first, with grad mode on.

        Returns:
            What the closure returned, or None.

        Raises:
            RuntimeError: a gradient or a state tensor has not the parameter's shape, or a parameter cannot be written
                to. No parameter and no state has changed then.
            KeyError: state that an option asks for is not there, because the option was changed after the first step.
        """
        loss = evaluate(closure)
        with quiet():
            pending = [(group, group["params"]) for group in self.param_groups]
            while pending:  # once, unless a parameter stands twice in a group
                plans, again = [], []
                for group, params in pending:
                    first, rest = _first_and_rest(params)
                    plans.append(self._plan(group, first))
                    if rest:
                        again.append((group, rest))
                for (group, _), plan in zip(pending, plans, strict=True):
                    self._carry_out(group, plan)
                pending = again
        return loss

    def _plan(self, group: dict[str, Any], params: list[Tensor]) -> Again | list[Update]:
        options, slots, scalars = self._read_options(group), self._slots(group), self._scalars(group)
        params = [param for param in params if param._grad is not None]
        repetition = self._repetitions.get(id(group))
        found = repetition and repetition.find(self.state, params, slots.keys(), scalars)
        if found is not None:
            grads, values = found
            return Again(repetition, grads, *self._constants(options, values, False))
        return self._look(options, slots, scalars, params)

    def _look(self, options: SimpleNamespace, slots: dict, scalars: dict, params: list[Tensor]) -> list[Update]:
        """What a step does to each parameter that has a gradient, all of it found anew."""
        shared: dict[tuple, tuple[dict, tuple]] = {}
        updates, states = [], self.state
        for param in params:
            grad: Any = param._grad
            state = states.get(param) or {}
            memory, fresh = self._find(param, grad, state, slots)
            values = tuple([self._find_scalar(state, name, first) for name, first in scalars.items()])
            known = shared.get((fresh, *values))
            if known is None:
                known = self._constants(options, dict(zip(scalars, values, strict=True)), fresh)
                shared[fresh, *values] = known
            given = grad._array if self._rule is None else stored(grad)  # rules take a gradient of few rows as it is
            updates.append(Update(param, given, memory, fresh, known[0], options, known[1]))
        return updates

    def _find(self, param: Tensor, grad: Tensor, state: dict, slots: dict) -> tuple[Known, bool]:
        """The slots, and whether they were made for this step; raises for what does not fit."""
        known, array, value = self._known.get(id(param)), param._array, stored(grad)
        same = known is not None and known.array is array
        if not (same and value.shape == array.shape and value.dtype is array.dtype and array.flags.writeable):
            check_gradient(param, grad)
        if same and known.still_holds(state, slots):
            return known, False
        found, fresh = self._find_slots(param, state, slots)
        arrays = [tensor._array for tensor in found.values()]
        known = self._known[id(param)] = Known(array, arrays, found, is_packed([array, *arrays]))
        return known, fresh

    def _read_options(self, group: dict[str, Any]) -> SimpleNamespace:
        """The group's options as plain numbers; TypeError where one that has to be a number is not."""
        values = [group[name] for name in self.defaults]
        known = self._known_options.get(id(group))
        if known is not None and known[0] == values:
            return known[1]
        options = SimpleNamespace(
            **{name: number(value, name) for name, value in zip(self.defaults, values, strict=True)}
        )
        if not any(map(_may_change, values)):
            self._known_options[id(group)] = values, options
        return options

    def _find_slots(self, param: Tensor, state: dict, slots: dict[str, float]) -> tuple[dict[str, Tensor], bool]:
        found, fresh = {}, False
        for name, first in slots.items():
            tensor = state.get(name)
            if tensor is None:
                if state and not self._starts_late:
                    raise missing_state(self, name, state)
                tensor, fresh = wrap(filled(param._array, first)), True
            elif tensor._array.shape != param._array.shape:
                shape = tuple(param._array.shape)
                first = f"The size of {name} {tuple(tensor._array.shape)} must match the size of its parameter {shape}"
                raise RuntimeError(message(first, say("The parameter changed its shape, or the state is another one's.")))
            found[name] = tensor
        return found, fresh

    def _find_scalar(self, state: dict, name: str, first: float):
        """A 0-d state tensor as a NumPy number of its dtype."""
        value = state.get(name)
        if value is None:
            if state and not self._starts_late:
                raise missing_state(self, name, state)
            return scalar_dtype().type(first)
        return value._array.reshape(())[()] if isinstance(value, Tensor) else scalar_dtype().type(value)

    def _carry_out(self, group: dict[str, Any], plan: Again | list[Update]) -> None:
        line = caller(sys._getframe(1))
        if plan.__class__ is Again:
            plan.repetition.move(plan, line)
            return
        for update in plan:
            self._commit(update)
        self._move(group, plan)
        for update in plan:
            counter(update.param).bump("_bump_version", *line)

    def _move(self, group: dict[str, Any], updates: list[Update]) -> None:
        """Change parameters and slots of one group, and remember where they were."""
        if self._rule is None:
            for update in updates:
                self._write(update)
            return
        moves = [Move(u.constants, u.memory.array, u.grad, u.memory.arrays, u.memory.packed) for u in updates]
        move(self._rule, moves, self._scratch)
        params, slots = [update.param for update in updates], [update.slots for update in updates]
        self._repetitions[id(group)] = Repetition.of(self._rule, moves, self.state, params, slots, self._scalars(group))

    def _write(self, update: Update) -> None:
        """Change one parameter and its slots, where there is no rule."""
        raise NotImplementedError

    def _commit(self, update: Update) -> None:
        """Put made slots and new scalars into the parameter's state."""
        if not update.scalars and not update.fresh:
            return
        state = self.state[update.param]
        for name, value in update.scalars.items():
            tensor = state.get(name)
            if isinstance(tensor, Tensor):
                tensor._array[...] = value
            else:
                state[name] = wrap(np.array(value, scalar_dtype()))
        if update.fresh:
            state.update(update.slots)

    # --- loading -----------------------------------------------------------------------------------------------------

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._forget()
        for group in self.param_groups:
            for name, value in self._optional().items():
                group.setdefault(name, value)

    def _optional(self) -> dict[str, Any]:
        """The options that a saved group may lack, and their values there."""
        later = SWITCHES | self._later_options
        return {name: later[name] for name in self.defaults if name in later}

    def _check_kind(self, saved_groups: list[dict], saved_states: dict) -> None:
        check_options_known(self, saved_groups, optional=self._optional())
        if self._starts_late:
            return
        for saved in saved_groups:
            group = self._optional() | saved
            needed = {**self._slots(group), **self._scalars(group)}
            for number in saved["params"]:
                check_state_names(self, number, saved_states.get(number, {}), needed)


# --- options ---------------------------------------------------------------------------------------------------------


def number(value, name: str = "value"):
    """A Python number from a number or a one-element tensor; flags, None and tuples of numbers pass through."""
    if value is None or value is True or value is False or type(value) in (float, int):
        return value
    if isinstance(value, (tuple, list)):
        return tuple(number(item, name) for item in value)
    if isinstance(value, (str, bytes)) or not hasattr(value, "__float__"):
        raise TypeError(f"{name} must be a number, but got {value!r} of type {type(value).__name__}")
    return float(value)


def check_single(lr) -> None:
    """ValueError for a learning rate that is a tensor of more than one element."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError(f"Tensor lr must be 1-element, but it has shape {tuple(lr.shape)}")


def _may_change(value) -> bool:
    """Whether an option can get another value and remain the same object: a tensor, a list."""
    return any(map(_may_change, value)) if isinstance(value, tuple) else isinstance(value, (Tensor, list))


def check_range(value, text: str, *, low: float = 0.0, below: float | None = None) -> None:
    """ValueError `text: value` unless low <= value (< below)."""
    plain = number(value, text)
    inside = low <= plain if below is None else low <= plain < below
    if not inside:
        upper = "" if below is None else f" and below {below}"
        raise ValueError(f"{text}: {value}. Expected a number of at least {low}{upper}.")


def check_options(lr, betas=(), **others) -> None:
    """The checks most constructors share.

    Args:
        lr: the learning rate, a number or a one-element tensor.
        betas: decay rates, each from 0 up to but not including 1.
        others: further numbers that may not be negative, by name.
    """
    check_single(lr)
    check_range(lr, "Invalid learning rate")
    for name, value in others.items():
        check_range(value, "Invalid epsilon value" if name == "eps" else f"Invalid {name} value")
    for index, beta in enumerate(betas):
        check_range(beta, f"Invalid beta parameter at index {index}", below=1.0)


def _refuse_differentiable(defaults: dict[str, Any]) -> None:
    if defaults.get("fused"):
        raise RuntimeError("`fused` does not support `differentiable`: leave one of them out")
    first = "differentiable=True is not supported: steps act on arrays, outside of autograd"
    way_out = say("Write the update as tensor operations, new = param - lr * grad, to differentiate through it.")
    raise NotImplementedError(message(first, way_out))


# --- state -----------------------------------------------------------------------------------------------------------


def check_gradient(param: Tensor, grad: Tensor) -> None:
    """RuntimeError where a gradient does not fit its parameter, or the parameter cannot be written to."""
    if grad._array.shape != param._array.shape:
        first = f"The size of a gradient {tuple(grad._array.shape)} must match the size of its parameter {tuple(param._array.shape)}"
        raise RuntimeError(message(first, say("Was the parameter's .data replaced after backward?")))
    if grad._array.dtype.kind == "c" and param._array.dtype.kind != "c":
        raise RuntimeError(f"a parameter of dtype {param.dtype} cannot take a gradient of dtype {grad.dtype}")
    flags = param._array.flags
    if not flags.writeable or (not flags.c_contiguous and _overlaps(param._array)):
        first = (
            f"a parameter of shape {tuple(param._array.shape)} cannot be updated: its memory is read-only, or several "
            "of its elements share one place (expand)"
        )
        raise RuntimeError(message(first, say("Use clone() to give it memory of its own.")))


def _overlaps(array: np.ndarray) -> bool:
    return any(step == 0 and size > 1 for step, size in zip(array.strides, array.shape, strict=True))


def _first_and_rest(params: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
    """Each parameter once, and the further appearances of those that stand there more than once."""
    if len(set(params)) == len(params):
        return params, []
    seen, first, rest = set(), [], []
    for param in params:
        (rest if param in seen else first).append(param)
        seen.add(param)
    return first, rest


def filled(array: np.ndarray, value: float) -> np.ndarray:
    """A new array of the same layout; a complex one gets the value in both parts."""
    if value == 0.0:
        return np.zeros_like(array)
    return np.full_like(array, complex(value, value) if array.dtype.kind == "c" else value)


def scalar_dtype() -> np.dtype:
    """float32, as PyTorch keeps its counts, unless everything is in double precision."""
    kind = get_default_dtype().numpy
    return kind if kind == np.float64 else np.dtype(np.float32)


# --- numbers that rules share ----------------------------------------------------------------------------------------


def of_gradient(o: SimpleNamespace) -> tuple[float, float, float]:
    """How a rule makes the gradient it goes on with: the first numbers of every rule's, see `updates.Factors`.

    weight_decay * param is part of what is minimised, or, decoupled, the parameter shrinks by the share lr * weight_decay.
    """
    sign, decay = -1.0 if o.maximize else 1.0, getattr(o, "weight_decay", 0.0)
    if getattr(o, "decoupled_weight_decay", False):
        return sign, 0.0, 1 - o.lr * decay if decay else 1.0
    return sign, decay, 1.0


def root_of_correction(beta: float, step: float) -> float:
    """sqrt(1 - beta**step): what a running mean square of `step` terms has to be divided by, under the root."""
    return sqrt(1 - beta**step)
