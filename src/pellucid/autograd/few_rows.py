"""`.grad` of a table of which few rows were chosen: those rows, until somebody looks at it."""

from __future__ import annotations

import threading

from pellucid.core.tensor import Tensor
from pellucid.kernels.few_rows import FewRows

__all__ = ["RowsGradient", "in_full", "made_plain", "stored", "wrap_rows"]

_settling = threading.Lock()
_slot = vars(Tensor)["_array"]
stored = _slot.__get__  # what a gradient holds: an array, or FewRows


class RowsGradient(Tensor):
    """A gradient that holds FewRows. Whoever reads its array finds it whole, and the tensor a plain one from then on.

    Users never meet this class: `.grad` makes it plain.
    """

    __slots__ = ()

    @property
    def _array(self):  # pyright: ignore[reportIncompatibleVariableOverride]
        with _settling:
            held = stored(self)
            if isinstance(held, FewRows):
                _slot.__set__(self, held.whole())
                self.__class__ = Tensor  # pyright: ignore[reportAttributeAccessIssue]
        return stored(self)


def wrap_rows(rows: FewRows) -> RowsGradient:
    """A gradient that holds them."""
    made = object.__new__(RowsGradient)
    _slot.__set__(made, rows)
    made._requires_grad = False
    made._edge = made._grad = made._view = made._counter = made._rare = None
    return made


def made_plain(gradient: RowsGradient) -> Tensor:
    """The same tensor, a plain one from now on."""
    _ = gradient._array
    return gradient


def in_full(outputs) -> tuple:
    """What a node gave for its inputs, every gradient an array or tensor."""
    return tuple([output.whole() if isinstance(output, FewRows) else output for output in outputs])
