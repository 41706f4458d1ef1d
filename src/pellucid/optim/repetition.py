"""A step that differs from the one before in its gradients and numbers alone: what that one found out serves again.

Nothing is taken for granted. Every parameter, gradient, slot and count is asked whether it is where it was, which takes a
tenth of the time of finding it; where one is not, the step goes the long way (`elementwise.py`). A hot path: small models
spend as long in what surrounds an optimizer's arithmetic as in the arithmetic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from pellucid.core.tensor import Tensor, counter
from pellucid.kernels.updates import Move, Prepared, prepare

__all__ = ["Again", "Repetition"]


class Again(NamedTuple):
    """One group's share of a step, worked out and not yet done."""

    repetition: Repetition
    grads: list[np.ndarray]
    scalars: dict[str, Any]  # new values of 0-d state tensors
    constants: tuple


class Repetition:
    """Where one step of a group found everything.

    Args:
        state: the optimizer's.
        params: the group's parameters, each with a gradient.
        slots: for each parameter the state tensors of its shape, by name.
        scalars: the names of the 0-d state tensors.
        prepared: the kernel's view of parameters and slots.
    """

    def __init__(self, state: dict, params: list[Tensor], slots: list[dict[str, Tensor]], scalars, prepared: Prepared):
        self.prepared = prepared
        self.names, self.scalar_names = slots[0].keys(), tuple(scalars)
        states: list[Any] = [state.get(param) for param in params]  # None for a rule that remembers nothing
        self.rows = [(param, param._array, mine) for param, mine in zip(params, states, strict=True)]
        self.slots = [
            (mine, name, tensor, tensor._array)
            for mine, found in zip(states, slots, strict=True)
            for name, tensor in found.items()
        ]
        self.scalars = {name: [(mine, mine[name], mine[name]._array) for mine in states] for name in scalars}

    @classmethod
    def of(cls, rule, moves: list[Move], state: dict, params: list[Tensor], slots: list, scalars) -> Repetition | None:
        """What a step leaves for the next, or None where that has to look anew.

        Args:
            rule: the optimizer's, see `kernels/updates.py`.
            moves: the step that was carried out; the other arguments are those of the class.
        """
        prepared = prepare(rule, moves)
        counts = [(state.get(param) or {}).get(name) for param in params for name in scalars]
        if prepared is None or not all(isinstance(count, Tensor) and count._array.ndim == 0 for count in counts):
            return None
        return cls(state, params, slots, scalars, prepared)

    def find(self, state: dict, params: list[Tensor], names, scalars) -> tuple[list[np.ndarray], dict[str, Any]] | None:
        """The gradients and the values of the scalars, which all parameters share; None if anything is not as it was.

        state, params: the optimizer's and the group's of today; names, scalars: of slots and 0-d tensors that the options ask for.
        """
        if len(params) != len(self.rows) or names != self.names or tuple(scalars) != self.scalar_names:
            return None
        grads = []
        for param, (same, array, mine) in zip(params, self.rows, strict=True):
            grad = param._grad
            if param is not same or param._array is not array or grad.__class__ is not Tensor or state.get(param) is not mine:
                return None
            value = grad._array  # pyright: ignore[reportOptionalMemberAccess]
            if value.shape != array.shape or value.strides != array.strides or value.dtype is not array.dtype:
                return None
            if not array.flags.writeable:
                return None
            grads.append(value)
        for mine, name, tensor, array in self.slots:
            if mine.get(name) is not tensor or tensor._array is not array:
                return None
        values = {}
        for name, counts in self.scalars.items():
            values[name] = first = counts[0][2][()]
            for mine, tensor, array in counts:
                if mine.get(name) is not tensor or tensor._array is not array or array[()] != first:
                    return None
        return grads, values

    def move(self, again: Again, line: tuple) -> None:
        """Change parameters, slots and counts; `line` is the program's, as `sites.caller` gives it."""
        for name, value in again.scalars.items():
            for _, _, array in self.scalars[name]:
                array.fill(value)
        self.prepared.move(again.constants, again.grads)
        for param, _, _ in self.rows:
            (param._counter or counter(param)).bump("_bump_version", *line)
