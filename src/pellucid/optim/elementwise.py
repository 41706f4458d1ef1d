"""Runs update rules that treat every element of a parameter alone; the rules themselves are in one file a family.

A step has two halves. The first looks at everything (options, gradients, saved state), makes what is missing and
computes each parameter's constants, and changes nothing. The second writes. So a step that fails leaves parameters and
state as they were.

The second half walks each parameter in blocks that fit the processor's cache: a rule is a dozen array operations, and
only the first of them fetches a block from memory. A rule sees contiguous float32 or float64 arrays and nothing else:
half precision is computed in float32, complex numbers as pairs, odd memory layouts through a copy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import sqrt
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pellucid.core.dtype import get_default_dtype
from pellucid.core.quiet import quiet
from pellucid.core.tensor import Tensor, wrap
from pellucid.optim.kinds import SWITCHES, check_options_known, check_state_names, missing_state
from pellucid.optim.optimizer import Optimizer, evaluate

__all__ = [
    "BLOCK",
    "ElementwiseOptimizer",
    "add_scaled",
    "check_options",
    "check_range",
    "check_single",
    "decayed",
    "lerp",
    "number",
    "penalised",
    "root_of_correction",
]

BLOCK = 32768  # elements; six arrays of float32 then take 790 KB, which stays in a core's second-level cache

WIDE = {"f": np.float32, "d": np.float64, "F": np.float32, "D": np.float64}  # what a rule computes in, by dtype.char


class Update(NamedTuple):
    """One parameter's share of a step, worked out and not yet done."""

    param: Tensor
    grad: np.ndarray
    slots: dict[str, Tensor]  # state tensors shaped like the parameter, those just made included
    scalars: dict[str, Any]  # new values of 0-d state tensors
    options: SimpleNamespace
    constants: tuple


class ElementwiseOptimizer(Optimizer):
    """An optimizer declared by its state, its constants and its rule for a block of elements.

    A subclass gives `_update`, and where it needs them `_slots`, `_scalars` and `_constants`.
    """

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
        step.
        """
        return {"step": scalars["step"] + 1}, ()

    @staticmethod
    def _update(o: SimpleNamespace, constants: tuple, param, grad, slots: list, work, spare) -> None:
        """Move a block: change `param` and `slots` in place, never `grad`. `work` and `spare` are scratch arrays.

        All are float32 or float64 arrays of one type, one shape and one or more dimensions.
        """
        raise NotImplementedError

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
                updates, again = [], []
                for group, params in pending:
                    first, rest = _first_and_rest(params)
                    updates += self._plan(group, first)
                    if rest:
                        again.append((group, rest))
                self._carry_out(updates)
                pending = again
        return loss

    def _plan(self, group: dict[str, Any], params: list[Tensor]) -> Iterator[Update]:
        options, slots, scalars = self._read_options(group), self._slots(group), self._scalars(group)
        for param in params:
            grad = param._grad
            if grad is None:
                continue
            check_gradient(param, grad)
            state = self.state.get(param) or {}
            arrays, fresh = self._find_slots(param, state, slots)
            values = {name: self._find_scalar(state, name, first) for name, first in scalars.items()}
            new_values, constants = self._constants(options, values, fresh)
            yield Update(param, grad._array, arrays, new_values, options, constants)

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
                raise RuntimeError(
                    f"The size of {name} {tuple(tensor._array.shape)} must match the size of its parameter "
                    f"{tuple(param._array.shape)}: the parameter changed its shape, or the state is another one's"
                )
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

    def _carry_out(self, updates: list[Update]) -> None:
        self._scratch.grow(max((update.param._array.size for update in updates), default=0))
        for update in updates:
            self._commit(update)
            self._write(update, self._scratch)
            update.param._bump_version()

    def _write(self, update: Update, scratch: Scratch) -> None:
        """Move one parameter and its slots."""
        param, grad = update.param._array, update.grad
        slots = [slot._array for slot in update.slots.values()]
        if scratch.takes_whole(param, (param, grad, *slots)):
            work, spare = scratch.shaped(param)
            self._update(update.options, update.constants, param, grad, slots, work, spare)
            return
        for pieces in blocks((param, *slots), grad, scratch):
            self._update(update.options, update.constants, *pieces)

    def _commit(self, update: Update) -> None:
        """Put made slots and new scalars into the parameter's state."""
        if not update.scalars and not update.slots:
            return
        state = self.state[update.param]
        for name, value in update.scalars.items():
            tensor = state.get(name)
            if isinstance(tensor, Tensor):
                tensor._array[...] = value
            else:
                state[name] = wrap(np.array(value, scalar_dtype()))
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
    raise NotImplementedError(
        "differentiable=True is not supported: steps act on arrays, outside of autograd. Write the update as tensor "
        "operations, new = param - lr * grad, to differentiate through it."
    )


# --- state -----------------------------------------------------------------------------------------------------------


def check_gradient(param: Tensor, grad: Tensor) -> None:
    """RuntimeError where a gradient does not fit its parameter, or the parameter cannot be written to."""
    if grad._array.shape != param._array.shape:
        raise RuntimeError(
            f"The size of a gradient {tuple(grad._array.shape)} must match the size of its parameter "
            f"{tuple(param._array.shape)}: was the parameter's .data replaced after backward?"
        )
    if grad._array.dtype.kind == "c" and param._array.dtype.kind != "c":
        raise RuntimeError(f"a parameter of dtype {param.dtype} cannot take a gradient of dtype {grad.dtype}")
    flags = param._array.flags
    if not flags.writeable or (not flags.c_contiguous and _overlaps(param._array)):
        raise RuntimeError(
            f"a parameter of shape {tuple(param._array.shape)} cannot be updated: its memory is read-only, or several "
            "of its elements share one place (expand). Use clone() to give it memory of its own."
        )


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


# --- blocks ----------------------------------------------------------------------------------------------------------


class Scratch:
    """Two scratch arrays of each computing type, made on first use and kept from step to step."""

    def __init__(self, largest: int):
        self.size = min(2 * largest, BLOCK)  # a complex element counts as two
        self.flat: dict[Any, tuple[np.ndarray, np.ndarray]] = {}
        self.by_shape: dict[Any, tuple[np.ndarray, np.ndarray]] = {}

    def grow(self, largest: int) -> None:
        """Make room for blocks of parameters of up to `largest` elements."""
        if min(2 * largest, BLOCK) > self.size:
            self.__init__(largest)

    def get(self, kind, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Two arrays of `size` elements."""
        pair = self.flat.get(kind)
        if pair is None:
            pair = self.flat[kind] = (np.empty(self.size, kind), np.empty(self.size, kind))
        return pair[0][:size], pair[1][:size]

    def shaped(self, array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Two arrays like `array`."""
        key = (array.dtype, array.shape)
        pair = self.by_shape.get(key)
        if pair is None:
            work, spare = self.get(array.dtype.type, array.size)
            pair = self.by_shape[key] = (work.reshape(array.shape), spare.reshape(array.shape))
        return pair

    @staticmethod
    def takes_whole(param: np.ndarray, arrays: tuple[np.ndarray, ...]) -> bool:
        """Whether a rule can have the arrays as they are: one small block, and nothing to convert."""
        kind = param.dtype
        if param.size > BLOCK or not param.ndim or kind.char not in "fd":
            return False
        for array in arrays:
            if array.dtype is not kind or not array.flags.c_contiguous:
                return False
        return True


def blocks(arrays: tuple[np.ndarray, ...], grad: np.ndarray, scratch: Scratch) -> Iterator[tuple]:
    """Cut a parameter into pieces for a rule.

    Args:
        arrays: the parameter and its slots, of one shape; written to through the yielded pieces.
        grad: the gradient, same shape, any floating dtype; only read.

    Yields:
        (param, grad, slots, work, spare): flat contiguous arrays of one length.
    """
    kind = WIDE.get(arrays[0].dtype.char, np.float32)
    flats, grad, copied = _flattened(arrays, grad, kind)
    exact = all(flat.dtype == kind for flat in flats)
    total = flats[0].size
    for start in range(0, total, BLOCK):
        stop = min(start + BLOCK, total)
        work, spare = scratch.get(kind, stop - start)
        pieces = [flat[start:stop] for flat in flats] if total > BLOCK else flats
        if exact:
            yield pieces[0], grad[start:stop], pieces[1:], work, spare
        else:
            wide = [piece.astype(kind) for piece in pieces]
            yield wide[0], grad[start:stop].astype(kind), wide[1:], work, spare
            for piece, value in zip(pieces, wide, strict=True):
                piece[...] = value
    for array, flat in copied:
        array[...] = (flat.view(array.dtype) if array.dtype.kind == "c" else flat).reshape(array.shape)


def _flattened(arrays: tuple[np.ndarray, ...], grad: np.ndarray, kind):
    """Flat views where all share a packed layout, flat copies else; and which copies have to be written back."""
    if arrays[0].dtype.kind == "c":
        grad = grad.astype(arrays[0].dtype, copy=False)
    if all(array.flags.c_contiguous for array in arrays):
        copied, flats = [], [array.reshape(-1) for array in arrays]
        grad = grad.reshape(-1)
    else:
        order = sorted(range(arrays[0].ndim), key=lambda axis: -abs(arrays[0].strides[axis]))
        turned = [array.transpose(order) for array in arrays]
        if all(array.flags.c_contiguous for array in turned):
            copied, flats = [], [array.reshape(-1) for array in turned]
            grad = grad.transpose(order).reshape(-1)
        else:
            flats = [np.array(array, order="C").reshape(-1) for array in arrays]
            copied, grad = list(zip(arrays, flats, strict=True)), grad.reshape(-1)
    if arrays[0].dtype.kind == "c":
        flats, grad = [flat.view(kind) for flat in flats], grad.view(kind)
        copied = [(array, flat) for (array, _), flat in zip(copied, flats, strict=False)]
    return flats, grad, copied


# --- steps that rules share ------------------------------------------------------------------------------------------


def penalised(o: SimpleNamespace, param, grad, spare):
    """The gradient of what is minimised: turned round under `maximize`, plus weight_decay * param.

    Returns `grad` itself where nothing is to be done, `spare` filled otherwise.
    """
    if o.weight_decay == 0:
        return np.negative(grad, out=spare) if o.maximize else grad
    np.multiply(param, o.weight_decay, out=spare)
    return np.subtract(spare, grad, out=spare) if o.maximize else np.add(spare, grad, out=spare)


def decayed(o: SimpleNamespace, param, grad, spare):
    """The gradient as from `penalised`, for rules that know decoupled_weight_decay.

    With it the parameter shrinks instead, by the share lr * weight_decay.
    """
    if not o.decoupled_weight_decay:
        return penalised(o, param, grad, spare)
    if o.weight_decay != 0:
        param *= 1 - o.lr * o.weight_decay
    return np.negative(grad, out=spare) if o.maximize else grad


def lerp(start, end, weight: float, work) -> None:
    """start += weight * (end - start), in place; from the other end for weights of a half and more, as PyTorch does."""
    np.subtract(end, start, out=work)
    if abs(weight) < 0.5:
        work *= weight
        start += work
    else:
        work *= 1 - weight
        np.subtract(end, work, out=start)


def add_scaled(total, value, factor: float, work) -> None:
    """total += factor * value, in place."""
    if factor == 1:
        total += value
        return
    np.multiply(value, factor, out=work)
    total += work


def root_of_correction(beta: float, step: float) -> float:
    """sqrt(1 - beta**step): what a running mean square of `step` terms has to be divided by, under the root."""
    return sqrt(1 - beta**step)
