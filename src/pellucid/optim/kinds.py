"""Whether a saved state is that of this kind of optimizer: told by the names of options and of what is remembered.

How a state is taken over is in `optimizer.py`.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Collection
from typing import Any

from pellucid.core.language import message, say, sentences
from pellucid.optim.optimizer import Optimizer

__all__ = ["SWITCHES", "check_options_known", "check_state_names", "missing_state"]

# Options of how a step is computed, and their values in a state that lacks them: they come and go between versions.
SWITCHES = {"maximize": False, "foreach": None, "capturable": False, "differentiable": False, "fused": None}


def check_options_known(optimizer: Optimizer, saved_groups: list[dict[str, Any]], optional: Collection[str] = ()) -> None:
    """ValueError for saved groups that lack one of the optimizer's options, or have another optimizer's.

    optional: options that states saved by old versions lack.
    """
    for index, (saved, mine) in enumerate(zip(saved_groups, optimizer.param_groups, strict=True)):
        missing = [name for name in optimizer.defaults if name not in saved and name not in optional]
        strange = [name for name in saved if name not in mine and name not in SWITCHES and name in _options_of_all()]
        if missing or strange:
            kind = type(optimizer).__name__
            raise ValueError(message(
                f"loaded state dict is not that of {kind}",
                sentences(
                    say("Its parameter group {number} has no {names}.", number=index, names=_listed(missing)) if missing else "",
                    say("{optimizer} does not know the options {names}.", optimizer=kind, names=_listed(strange)) if strange else "",
                    say("Parameter group {number} has {names}.", number=index, names=_listed(sorted(saved))),
                ),
            ))  # fmt: skip


def check_state_names(optimizer: Optimizer, number: Any, saved: dict[str, Any], needed: Collection[str]) -> None:
    """ValueError for the saved state of a parameter that lacks something the optimizer goes on from."""
    missing = [name for name in needed if name not in saved]
    if saved and missing:
        raise ValueError(message(
            f"loaded state dict is not that of {type(optimizer).__name__}",
            sentences(
                say("Its state of parameter {number} has no {names}.", number=number, names=_listed(missing)),
                say("There is {names}.", names=_listed(sorted(map(str, saved)))),
            ),
        ))  # fmt: skip


def missing_state(optimizer: Optimizer, name: str, state: dict) -> KeyError:
    """The error about state that a changed option leaves missing."""
    return KeyError(
        f"{name}: a parameter's state has {sorted(map(str, state))}, and {type(optimizer).__name__} with these options "
        f"needs {name!r} too. Was an option switched on after the first step, or another optimizer's state loaded?"
    )


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names))


@functools.cache
def _options_of_all() -> frozenset[str]:
    """The options of all optimizers of this library."""
    kinds, found = [Optimizer], set()
    for kind in kinds:
        kinds += kind.__subclasses__()
        if kind.__module__.startswith("pellucid.") and kind is not Optimizer:
            found |= set(inspect.signature(kind.__init__).parameters)
    return frozenset(found - {"self", "params", "defaults"})
