"""What is recorded beside a tensor: how often and by whom its memory was written to, where a gradient path was cut, rarities.

The tensor itself is in `core/tensor.py`. Lines of the program are kept as `core/sites.py` gives them: code and instruction,
no frame, so that no record keeps a variable of the program alive.
"""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

__all__ = ["CONSTANT", "Counter", "Cut", "InferenceCounter", "Rare", "Write"]


class Write(NamedTuple):
    """One write to a storage: the version it made, the operator, and the line as `sites.caller` gave it."""

    version: int
    operator: str
    code: Any
    lasti: int


MOST_WRITES = 16  # that a counter remembers


class Counter:
    """How often a storage has been written to, and by whom the last times. Shared by all views of the storage."""

    __slots__ = ("value", "writes")

    def __init__(self, value: int = 0):
        self.value = value
        self.writes: deque[tuple] | None = None  # the arguments of a Write, which takes longer to make

    def bump(self, operator: str | None = None, code=None, lasti: int = 0) -> None:
        """Count a write."""
        self.value += 1
        if operator is not None:
            if self.writes is None:
                self.writes = deque(maxlen=MOST_WRITES)
            self.writes.append((self.value, operator, code, lasti))

    def writes_after(self, version: int) -> list[Write]:
        """The writes that are remembered of those that came after a version, first to last."""
        return [Write(*write) for write in self.writes or () if write[0] > version]


class InferenceCounter(Counter):
    """The counter of an inference tensor: it counts nothing, and whoever asks it is about to save the tensor."""

    __slots__ = ()

    def __init__(self):
        self.writes = None

    @property
    def value(self) -> int:
        """Never known."""
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. To work around you can make a clone to get a normal "
            "tensor and use it in autograd."
        )

    def bump(self, operator: str | None = None, code=None, lasti: int = 0) -> None:
        """Nothing to count."""


CONSTANT = "constant"  # the reason of a Cut: a derivative that depends on nothing that requires grad


class Cut:
    """Where a gradient path ended: the operation (`detach`, `no_grad`, ...) and the line, as `sites.caller` gave it."""

    __slots__ = ("code", "lasti", "reason")

    def __init__(self, reason: str, code, lasti: int):
        self.reason, self.code, self.lasti = reason, code, lasti


class Rare:
    """What few tensors have, kept off the tensor so that the many stay cheap."""

    __slots__ = (
        "accumulator",
        "cut",
        "grad_dtype",
        "hooks",
        "made",
        "name",
        "post_accumulate",
        "reset",
        "retain",
        "tangents",
        "watched",
        "wish",
    )

    def __init__(self):
        self.accumulator: Any = None  # the AccumulateGrad node of a leaf, which knows the leaf weakly
        self.cut: Cut | None = None
        self.made: tuple | None = None  # the line that made a leaf which requires grad, as `sites.caller` gives it
        self.reset: tuple | None = None  # the line that dropped the gradient, in the same form
        self.hooks: dict | None = None  # tensor hooks of a leaf
        self.post_accumulate: dict | None = None
        self.retain = False  # retain_grad() was called on a non-leaf
        self.wish = False  # an inference tensor's requires_grad, which no operation heeds outside of inference mode
        self.name = None
        self.watched = False  # backward must ask for hooks, post_accumulate and grad_dtype
        self.tangents: dict | None = None  # level of forward mode -> tangent; see autograd/forward_mode.py
        self.grad_dtype: Any = None
