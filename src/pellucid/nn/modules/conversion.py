"""Changing what a module's tensors are: dtype, device, memory. The module and its Parameter objects stay the same.

Tensors are converted by the Tensor methods of the same names; here is only the walk over a tree.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from pellucid.autograd.grad_mode import no_grad
from pellucid.core.device import check_device
from pellucid.core.device import device as Device
from pellucid.core.dtype import dtype as DType
from pellucid.core.tensor import Tensor

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Conversion"]


class Conversion:
    """The part of `Module` that converts parameters and buffers."""

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True):
        """Put `fn(tensor)` in the place of every parameter, gradient and buffer.

        A Parameter stays the same object, so optimizers keep hold of it: only its values are exchanged.
        """
        if recurse:
            for child in self.children():
                child._apply(fn)
        for parameter in self._parameters.values():
            if parameter is not None:
                _exchange(parameter, fn)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args, **kwargs):
        """Convert parameters and buffers in place, and return the module.

        Call as `to(dtype)`, `to(device)`, `to(device, dtype)` or `to(tensor)` (its dtype and device), each with
        `non_blocking` and `memory_format`, which change nothing on a CPU. A dtype applies to floating-point and
        complex tensors only.

        Raises:
            TypeError: a dtype that is neither floating-point nor complex.
            RuntimeError: a device that is not there.
        """
        dtype = _wanted_dtype(args, kwargs)
        if dtype is None:
            return self
        if not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}. "
                "Convert single tensors with tensor.to(dtype)."
            )
        if dtype.is_complex:
            warnings.warn(
                "Complex modules are a new feature: some modules might not work as expected when using complex tensors "
                "as parameters or buffers.",
                stacklevel=2,
            )
        return self._apply(lambda t: t.to(dtype) if t.is_floating_point() or t.is_complex() else t)

    def type(self, dst_type: DType | str):
        """Convert every parameter and buffer to a dtype, whatever it was before."""
        return self._apply(lambda t: t.type(dst_type))

    def float(self):
        """Convert floating-point parameters and buffers to float32."""
        return self._apply(lambda t: t.float() if t.is_floating_point() else t)

    def double(self):
        """Convert floating-point parameters and buffers to float64."""
        return self._apply(lambda t: t.double() if t.is_floating_point() else t)

    def half(self):
        """Convert floating-point parameters and buffers to float16."""
        return self._apply(lambda t: t.half() if t.is_floating_point() else t)

    def bfloat16(self):
        """Convert floating-point parameters and buffers to bfloat16."""
        return self._apply(lambda t: t.bfloat16() if t.is_floating_point() else t)

    def cpu(self):
        """Return the module: it is on the CPU already."""
        return self

    def cuda(self, device: int | Device | None = None):
        """Raise the error that says why there is no GPU; a module without tensors is returned as it is."""
        return self._apply(lambda t: t.cuda(device))

    def to_empty(self, *, device: str | Device | None, recurse: bool = True):
        """Give every parameter and buffer fresh memory, with values as they come."""
        check_device(device)
        return self._apply(lambda t: t.new_empty(t.shape), recurse)

    def share_memory(self):
        """Move parameters and buffers to memory that processes share."""
        return self._apply(lambda t: t.share_memory_())


def _exchange(parameter: Tensor, fn: Callable[[Tensor], Tensor]) -> None:
    """Exchange the values of a parameter, and of its gradient, for what `fn` makes of them."""
    grad = parameter.grad
    with no_grad():
        values = fn(parameter)
        grad_values = None if grad is None else fn(grad)
    if values is not parameter:
        parameter.grad = None  # a gradient of another dtype may not stand beside the new values, even for a moment
        parameter.data = values
        if grad is not None:
            grad.data = grad_values
            parameter.grad = grad
    elif grad_values is not grad:
        grad.data = grad_values


def _wanted_dtype(args: tuple, kwargs: dict) -> DType | None:
    """The dtype that the arguments of `to` ask for; the other arguments are only checked."""
    dtype, known = kwargs.get("dtype"), {"dtype", "device", "tensor", "other", "non_blocking", "copy", "memory_format"}
    for name in kwargs:
        if name not in known:
            raise TypeError(f"to() received an unexpected keyword argument '{name}': expected one of {sorted(known)}")
    check_device(kwargs.get("device"))
    for value in (*args, kwargs.get("tensor"), kwargs.get("other")):
        if isinstance(value, Tensor):
            dtype = value.dtype
        elif isinstance(value, DType):
            dtype = value
        elif value is not None and not isinstance(value, bool):
            check_device(value)
    return dtype
