"""Padding: modules that add elements around the last one, two or three dimensions of [N, C, *] or [C, *].

`padding` is a number for every side, or (left, right), (left, right, top, bottom), (left, right, top, bottom, front,
back).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pellucid.nn import functional as F
from pellucid.nn.modules.declared import Declared, declared
from pellucid.nn.modules.utils import _ntuple

if TYPE_CHECKING:
    from pellucid.core.tensor import Tensor

__all__ = [
    "CircularPad1d", "CircularPad2d", "CircularPad3d", "ConstantPad1d", "ConstantPad2d", "ConstantPad3d",
    "ReflectionPad1d", "ReflectionPad2d", "ReflectionPad3d", "ReplicationPad1d", "ReplicationPad2d", "ReplicationPad3d",
    "ZeroPad1d", "ZeroPad2d", "ZeroPad3d",
]


@declared
class _Pad(Declared):
    """Padding in one of the modes of `nn.functional.pad`, of the last `_dims` dimensions."""

    padding: int | tuple[int, ...]
    _dims = 1
    _mode = "constant"

    def _settle(self) -> None:
        self.padding = _ntuple(2 * self._dims)(self.padding)

    def forward(self, input: Tensor) -> Tensor:
        """Pad."""
        return F.pad(input, self.padding, self._mode)

    def extra_repr(self) -> str:
        """The numbers alone."""
        return f"{self.padding}"


@declared
class ConstantPad1d(_Pad):
    """Pad one dimension with a value."""

    value: float

    def forward(self, input: Tensor) -> Tensor:
        """Pad."""
        return F.pad(input, self.padding, "constant", self.value)

    def extra_repr(self) -> str:
        """Numbers and value."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad2d(ConstantPad1d):
    """Pad two dimensions with a value."""

    _dims = 2


class ConstantPad3d(ConstantPad1d):
    """Pad three dimensions with a value."""

    _dims = 3


class ZeroPad1d(ConstantPad1d):
    """Pad one dimension with zeros."""

    def __init__(self, padding: int | tuple[int, ...]):
        super().__init__(padding, 0.0)

    extra_repr = _Pad.extra_repr


class ZeroPad2d(ZeroPad1d):
    """Pad two dimensions with zeros."""

    _dims = 2


class ZeroPad3d(ZeroPad1d):
    """Pad three dimensions with zeros."""

    _dims = 3


class ReflectionPad1d(_Pad):
    """Pad one dimension with its mirror image, the edge not repeated."""

    _mode = "reflect"


class ReflectionPad2d(ReflectionPad1d):
    """Pad two dimensions with their mirror image, the edge not repeated."""

    _dims = 2


class ReflectionPad3d(ReflectionPad1d):
    """Pad three dimensions with their mirror image, the edge not repeated."""

    _dims = 3


class ReplicationPad1d(_Pad):
    """Pad one dimension with its edge."""

    _mode = "replicate"


class ReplicationPad2d(ReplicationPad1d):
    """Pad two dimensions with their edge."""

    _dims = 2


class ReplicationPad3d(ReplicationPad1d):
    """Pad three dimensions with their edge."""

    _dims = 3


class CircularPad1d(_Pad):
    """Pad one dimension with its other end."""

    _mode = "circular"

    def forward(self, input: Tensor) -> Tensor:
        """Pad; ValueError unless there are `_dims` dimensions beside batch and channels, or channels."""
        if input.dim() not in (self._dims + 1, self._dims + 2):
            raise ValueError(f"expected {self._dims + 1}D or {self._dims + 2}D input (got {input.dim()}D input)")
        return super().forward(input)


class CircularPad2d(CircularPad1d):
    """Pad two dimensions with their other end."""

    _dims = 2


class CircularPad3d(CircularPad1d):
    """Pad three dimensions with their other end."""

    _dims = 3
