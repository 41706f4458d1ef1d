"""Forward mode for users: dual tensors, in PyTorch's names (`torch.autograd.forward_ad`).

    with dual_level():
        dual = make_dual(x, direction)
        y, derivative = unpack_dual(f(dual))

There is one level at a time; `pellucid.func.jvp` nests. How tangents travel is in `autograd/forward_mode.py`.
"""

from __future__ import annotations

import threading
from typing import NamedTuple

from pellucid.autograd import declaration
from pellucid.autograd.forward_mode import DualLevel, check_tangent, fence, laid_out_like
from pellucid.autograd.grad_mode import _Mode
from pellucid.autograd.transforms import below
from pellucid.core.modes import modes
from pellucid.core.tensor import Tensor

__all__ = ["UnpackedDualTensor", "dual_level", "enter_dual_level", "exit_dual_level", "make_dual", "unpack_dual"]

F = declaration.tensors


class UnpackedDualTensor(NamedTuple):
    """What `unpack_dual` returns: the value, and its tangent or None."""

    primal: Tensor
    tangent: Tensor | None


class _Level(DualLevel):
    """The level of `dual_level`. Tangents are out of sight while the switch is off and in inference mode."""

    def tangent(self, tensor) -> Tensor | None:
        return super().tangent(tensor) if _local.enabled and not modes.inference else None

    def in_sight(self) -> bool:
        """Whether tensors may get tangents now: they may not inside `forward` and `jvp` of a custom Function."""
        return not modes.inference and self in modes.transforms


class _Local(threading.local):
    level: _Level | None = None
    enabled = True


_local = _Local()


def __getattr__(name: str):
    if name == "_current_level":
        return -1 if _local.level is None else 0
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def enter_dual_level() -> int:
    """Open the level in which tensors may have tangents, and return its number, 0.

    Raises:
        RuntimeError: it is open already.
    """
    if _local.level is not None:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment: leave the open dual_level first, or nest "
            "torch.func.jvp instead"
        )
    _local.level = _Level()
    modes.transforms = (*modes.transforms, _local.level)
    modes.update()
    return 0


def exit_dual_level(*, level: int | None = None) -> None:
    """Close the level: all tangents are gone.

    Raises:
        RuntimeError: no level is open, or `level` is not the number of the open one.
    """
    number = -1 if _local.level is None else 0
    if level is not None and level != number:
        raise RuntimeError(
            f"Trying to exit a forward AD level that was not the last one that was created. This is not supported. Got level "
            f"{level}, the last one is {number}."
        )
    if _local.level is None:
        raise RuntimeError("Dual level must be a positive number. No level is open: enter_dual_level() opens one.")
    closed, _local.level = _local.level, None
    modes.transforms = tuple(each for each in modes.transforms if each is not closed)
    modes.update()
    closed.close()


class dual_level(_Mode):
    """A block, or a decorated function, in which tensors may have tangents; they are gone at its end."""

    def __enter__(self) -> int:
        return enter_dual_level()

    def __exit__(self, *exception) -> None:
        exit_dual_level()


def make_dual(tensor: Tensor, tangent: Tensor, *, level: int | None = None) -> Tensor:
    """A view of a tensor that carries a tangent: what is computed from it carries its derivative in that direction.

    Args:
        tensor: the value, of any shape and a floating-point or complex dtype.
        tangent: the direction, of the same shape. It is kept as it is where it lies in memory as `tensor` does, and
            otherwise copied.
        level: the number of the level; the open one by default.

    Raises:
        RuntimeError: no level is open, the shapes differ, or one of the two carries a tangent already.
        ValueError: a dtype that has no derivatives.
    """
    current = _local.level
    if current is None or (level is not None and level < 0):
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make sure to enter_dual_level() first."
        )
    for name, value in (("primal", tensor), ("tangent", tangent)):
        if not (value.is_floating_point() or value.is_complex()):
            raise ValueError(f"Expected {name} to be floating point or complex, but got: {value.dtype}")
    if not current.in_sight():
        return fence(F.view(tensor, tuple(tensor.shape)))
    if current.tangent(tensor) is not None:
        raise RuntimeError(
            "Making a dual Tensor based on a Tensor that already has a forward gradient at the same level 0 is not "
            "supported. Give its primal: unpack_dual(tensor).primal"
        )
    with below(current):
        dual = fence(F.view(tensor, tuple(tensor.shape)))
        check_tangent(current, tensor, tangent)
        current.attach(dual, laid_out_like(tensor, tangent, whole=True))
    return dual


def unpack_dual(tensor: Tensor, *, level: int | None = None) -> UnpackedDualTensor:
    """The value of a dual tensor, as a new view of it without a tangent, and its tangent.

    The tangent is None for a tensor that has none; outside of all levels the tensor itself is its value.
    """
    current = _local.level
    if current is None or (level is not None and level < 0):
        return UnpackedDualTensor(tensor, None)
    if not current.in_sight():
        return UnpackedDualTensor(fence(F.alias(tensor)), None)
    tangent = current.tangent(tensor)
    with below(current):
        primal = fence(F.alias(tensor))
    return UnpackedDualTensor(primal, tangent)


def _is_fwd_grad_enabled() -> bool:
    """Whether tangents travel now."""
    return _local.enabled and (_local.level is None or _local.level in modes.transforms)


class _set_fwd_grad_enabled:
    """Let tangents travel or not: takes effect when called, and ends with the block if used as a context manager."""

    def __init__(self, mode: bool):
        self.mode, self.before = mode, _local.enabled
        _local.enabled = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception) -> None:
        _local.enabled = self.before
