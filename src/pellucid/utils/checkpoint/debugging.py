"""`debug=True`: two logs of operators, of the forward and of the recomputation, and the error that lays them side by side."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.around import observing
from pellucid.core.errors import type_name
from pellucid.core.sites import Site
from pellucid.core.tensor import Number, Tensor
from pellucid.utils.checkpoint.settings import CheckpointError

__all__ = ["debug_contexts"]


class _Log:
    """A block in which every operator is noted with its operands, its results and the line that called it."""

    def __init__(self):
        self.lines: list[str] = []

    def __enter__(self) -> None:
        self.lines.clear()
        self.block = observing(self.note)
        self.block.__enter__()

    def __exit__(self, *exception) -> None:
        self.block.__exit__()
        del self.block  # it leads back here

    def note(self, op, bound, raw, made) -> None:
        """The observer."""
        given = ", ".join(_text(value) for value in bound)
        self.lines.append(f"{op.name}({given}) -> {', '.join(_text(t) for t in made)}   at {Site.here()}")

    def text(self) -> str:
        """All lines, numbered."""
        return "\n".join(f"{number:4}  {line}" for number, line in enumerate(self.lines, 1)) or "      (none)"


def _text(value) -> str:
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(_text(v) for v in value)}]"
    if isinstance(value, Tensor):
        return f"{type_name(value._array.dtype)}{list(np.shape(value._array))}"
    return repr(value._array) if isinstance(value, Number) else repr(value)


def debug_contexts():
    """Contexts for the forward and the recomputation, and a function that makes an error of what they have seen."""
    forward, again = _Log(), _Log()

    def explain() -> CheckpointError:
        return CheckpointError(
            "The function of a checkpoint did not save the same tensors when it ran again.\n\n"
            f"Operations executed during the original forward:\n\n{forward.text()}\n\n"
            f"Operations executed during recomputation:\n\n{again.text()}\n\n"
            "You are seeing this error because you passed `debug=True` to checkpoint and the tensors saved in the two "
            "runs differ (what is different stands in the error above). Look for the first operation that is not the "
            "same in both lists and for what decides it at that line: a global, a counter, random numbers of another "
            "source, the grad mode. An operation that failed is not in its list."
        )

    return forward, again, explain
