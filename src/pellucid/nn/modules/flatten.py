"""Making one dimension of several, and several of one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pellucid.nn.modules.declared import Declared, declared

if TYPE_CHECKING:
    from pellucid.core.tensor import Tensor

__all__ = ["Flatten", "Unflatten"]


@declared
class Flatten(Declared):
    """Make one dimension of those from `start_dim` to `end_dim`."""

    start_dim: int = 1
    end_dim: int = -1
    _shown = ("start_dim", "end_dim")

    def forward(self, input: Tensor) -> Tensor:
        """Flatten."""
        return input.flatten(self.start_dim, self.end_dim)


@declared
class Unflatten(Declared):
    """Make several dimensions of one.

    Args:
        dim: the dimension.
        unflattened_size: the sizes to make of it; one may be -1.
    """

    dim: int
    unflattened_size: tuple[int, ...]
    _shown = ("dim", "unflattened_size")

    def _settle(self) -> None:
        if not isinstance(self.unflattened_size, (tuple, list)):
            raise TypeError(
                f"unflattened_size must be a tuple of ints, but found type {type(self.unflattened_size).__name__}"
            )
        for place, size in enumerate(self.unflattened_size):
            if not isinstance(size, int):
                raise TypeError(
                    "unflattened_size must be tuple of ints, but found element of type "
                    f"{type(size).__name__} at pos {place}"
                )

    def forward(self, input: Tensor) -> Tensor:
        """Unflatten."""
        return input.unflatten(self.dim, self.unflattened_size)
