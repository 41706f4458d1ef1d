"""One checkpointed call without reentrant backwards: what stands in the graph for its saved values, and recomputing them.

While the function runs, everything that its operators save for backward is replaced by a `Holder`. When a backward
first needs one, the function runs again, to the last value that was saved, and the values it saves this time belong to
the holders in the same order. They last as long as that backward, each until it has been used.

Checkpoints nest by one rule: a value is replaced by the innermost checkpoint around it, and the arguments of a
checkpoint are saved values of the one around that. So asking for an inner value first recomputes the outer checkpoint.

A graph holds holders and their frame; a frame knows its holders weakly, and what was recomputed by the backward that
did. There is no cycle, and a graph takes all of it along when it dies.
"""

from __future__ import annotations

import weakref
from typing import Any

from pellucid.autograd.engine import current_task
from pellucid.autograd.grad_mode import enable_grad
from pellucid.autograd.node import edge_of
from pellucid.autograd.overwritten import writers_text
from pellucid.autograd.saved import _pack, active_hooks, unpack_input
from pellucid.autograd.saved_hooks import saved_tensors_hooks
from pellucid.autograd.views import refresh
from pellucid.core.modes import modes
from pellucid.core.tensor import Tensor, counter
from pellucid.utils.checkpoint.settings import CheckpointError

__all__ = ["FACTS", "Frame"]

TIP = (
    "\nTo see the operators that ran in both, pass debug=True to checkpoint(), or run the forward in "
    "`with set_checkpoint_debug_enabled(True):`."
)


class Stop(BaseException):
    """All that was saved has been recomputed. No Exception, so that the user's `except` blocks let it through."""


class Holder:
    """Stands in a node for a value that was not kept."""

    __slots__ = ("__weakref__",)


class Recomputation:
    """What one backward, or a group of them, has recomputed of a checkpoint."""

    def __init__(self):
        self.count = 0  # how many tensors were saved
        self.values: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # holder -> (tensor, its version)


class Argument:
    """A tensor argument, kept as an operator keeps its operands: through the hooks in force, and with its version."""

    def __init__(self, tensor: Tensor):
        if tensor._view is not None:
            refresh(tensor)
        hooks = active_hooks()
        self.counter = counter(tensor) if hooks is None else None
        self.version = tensor._version
        self.edge = edge_of(tensor)
        self.value: Any = tensor if hooks is None else _pack(tensor, hooks, False)

    def tensor(self) -> Tensor:
        """The argument, with the history it had."""
        if self.counter is not None and self.counter.value != self.version:
            raise RuntimeError(_overwritten("an argument of checkpoint()", self.counter, self.version))
        return unpack_input(None, self.value, self.edge)


def _overwritten(what: str, count, version: int) -> str:
    return (
        f"one of the variables needed for gradient computation has been modified by an inplace operation: {what} is at "
        f"version {count.value}; expected version {version} instead.\n  overwritten:  {writers_text(count, version)}\n"
        "Write out of place there, or pass a clone()."
    )


def _default_facts(tensor: Tensor) -> dict:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


FACTS = {"default": _default_facts, "none": lambda tensor: None}  # determinism_check -> what must be the same again


class Frame:
    """One checkpointed call."""

    def __init__(self, run, args: tuple, early_stop: bool, facts, explain):
        self.run = run  # the function, with what must be around it when it runs again
        self.args = [Argument(a) if isinstance(a, Tensor) else a for a in args]
        self.early_stop = early_stop
        self.facts_of = facts
        self.explain = explain  # None, or what makes an error of a CheckpointError that tells more
        self.holders: list[weakref.ref] = []
        self.facts: list = []
        self.complete = False  # the function has returned
        self.uneven = False  # a backward inside the function made it run to its end, past what had been saved until then
        self.recomputations: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()  # backward or group -> Recomputation

    def pack(self, tensor: Tensor) -> Holder:
        """The pack hook of the forward."""
        holder = Holder()
        self.holders.append(weakref.ref(holder))
        self.facts.append(self.facts_of(tensor))
        return holder

    def unpack(self, holder: Holder) -> Tensor:
        """The unpack hook of the forward: the value, recomputed if this backward has not done so yet."""
        try:
            return self._value(holder)
        except CheckpointError as error:
            if self.explain is None:
                raise
            raise self.explain() from error

    def _value(self, holder: Holder) -> Tensor:
        # outside a backward the key is gone at the end of this call, and what was recomputed with it
        key = modes.execution_group or current_task() or Holder()
        done = self.recomputations.get(key)
        if done is None:
            done = self._recompute()
            self._check(done)
            self.recomputations[key] = done
        found = done.values.pop(holder, None)
        if found is None:
            raise CheckpointError(_used_before())
        tensor, version = found
        if tensor._version != version:
            what = "a tensor saved in a checkpointed function"
            raise RuntimeError(_overwritten(what, counter(tensor), version))
        return tensor

    def _recompute(self) -> Recomputation:
        """Run the function again and collect what it saves."""
        done = Recomputation()
        args = [a.tensor() if isinstance(a, Argument) else a for a in self.args]

        def pack(tensor: Tensor) -> Tensor:
            index, done.count = done.count, done.count + 1
            value = tensor.detach() if tensor.requires_grad else tensor
            if index < len(self.holders):
                holder = self.holders[index]()
                if holder is not None:  # gone, if a backward inside the function has used it
                    done.values[holder] = value, value._version
            elif self.complete and not self.early_stop:
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during the original "
                    f"forward pass, which saved {len(self.holders)}." + TIP
                )
            else:
                self.uneven = True
            if self.early_stop and done.count >= len(self.holders):
                raise Stop
            return value  # a backward inside the function may need it

        try:
            with saved_tensors_hooks(pack, _itself), enable_grad():
                self.run(*args)
        except Stop:
            pass
        return done

    def _check(self, done: Recomputation) -> None:
        """Raise if what was saved again is not what was saved."""
        if self.uneven:
            return
        if done.count != len(self.holders):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward and "
                f"recomputation.\nNumber of tensors saved during forward: {len(self.holders)}\n"
                f"Number of tensors saved during recomputation: {done.count}." + TIP
            )
        different = ""
        for position, (reference, facts) in enumerate(zip(self.holders, self.facts, strict=True)):
            holder = reference()
            again = facts if holder is None else self.facts_of(done.values[holder][0])
            if again != facts:
                different += f"tensor at position {position}:\nsaved metadata: {facts}\nrecomputed metadata: {again}\n"
        if different:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata than "
                f"during the forward pass.\n{different}" + TIP
            )


def _itself(tensor: Tensor) -> Tensor:
    return tensor


def _used_before() -> str:
    text = "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked once. "
    if modes.execution_group is not None:
        return text + (
            "Performing two backward calls that overlap (i.e. require the same saved activation in order to compute "
            "gradients) is not allowed while under the torch.utils.checkpoint.GraphExecGroup context."
        )
    return text + (
        "What was recomputed is let go as soon as it is used: read ctx.saved_tensors only once in backward, into local "
        "variables."
    )
