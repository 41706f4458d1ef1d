"""`Size`: the shape of a tensor, a tuple that prints and counts as PyTorch's does."""

from __future__ import annotations

import math

__all__ = ["Size"]


class Size(tuple):
    """A tuple of dimension sizes."""

    __slots__ = ()

    def numel(self) -> int:
        """How many elements a tensor of this size has."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    def __add__(self, other):
        return Size(tuple.__add__(self, tuple(other)))

    def __radd__(self, other):
        return Size(tuple(other) + tuple(self))

    def __mul__(self, count):
        return Size(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __getitem__(self, index):
        found = tuple.__getitem__(self, index)
        return Size(found) if isinstance(index, slice) else found

    def __reduce__(self):
        return (Size, (tuple(self),))
