"""Tensors that modules register: parameters, buffers, and those whose shape is not known yet."""

from __future__ import annotations

from typing import Any

import numpy as np

from pellucid.core.device import check_device
from pellucid.core.dtype import bfloat16, dtype_of, float16, float32, float64, get_default_dtype
from pellucid.core.dtype import dtype as DType
from pellucid.core.tensor import Buffer, Parameter, Tensor, wrap

__all__ = ["Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "empty_parameter", "is_lazy"]

values = Tensor._array  # the slot behind the property that guards an uninitialized tensor


def _refuse(self):
    raise ValueError(
        "Attempted to use an uninitialized parameter in a computation. Call `forward` of its module with a batch "
        "first: "
        f"that tells the shape of this {type(self).__name__}."
    )


class _Uninitialized(Tensor):
    """A tensor with a dtype and no shape yet; every use of its values raises ValueError until `materialize`."""

    cls_to_become: type[Tensor] = Tensor
    _array = property(_refuse)  # type: ignore[assignment]

    def __new__(cls, requires_grad: bool = False, device=None, dtype: DType | None = None):
        check_device(device)
        made = object.__new__(cls)
        values.__set__(made, np.empty(0, (dtype or get_default_dtype()).numpy))
        made._requires_grad = requires_grad
        made._edge = made._grad = made._view = made._counter = made._rare = None
        return made

    def materialize(self, shape: tuple[int, ...], device=None, dtype: DType | None = None) -> None:
        """Become an ordinary tensor of this shape, its values as they come."""
        check_device(device)
        values.__set__(self, np.empty(tuple(shape), (dtype or self.dtype).numpy))
        self.__class__ = self.cls_to_become

    @property
    def shape(self):
        """There is none yet: RuntimeError."""
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` "
            "to "
            "initialize the parameters before accessing their attributes."
        )

    @property
    def dtype(self) -> DType:
        """The element type it will have."""
        return dtype_of(values.__get__(self).dtype)

    def to(self, dtype: DType):
        """The same with another element type."""
        return type(self)(self._requires_grad, dtype=dtype)

    type = to

    def float(self):
        """The same in float32."""
        return self.to(float32)

    def double(self):
        """The same in float64."""
        return self.to(float64)

    def half(self):
        """The same in float16."""
        return self.to(float16)

    def bfloat16(self):
        """The same in bfloat16."""
        return self.to(bfloat16)

    def detach(self):
        """Itself: there is no history to leave."""
        return self

    @property
    def data(self):
        """Itself."""
        return self

    @data.setter
    def data(self, other) -> None:
        values.__set__(self, np.empty(0, other.dtype.numpy))

    def share_memory_(self):
        """There is no memory yet: RuntimeError."""
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters "
            "before calling `module.share_memory()`."
        )

    def __repr__(self, **_) -> str:
        return f"<{self.__class__.__name__}>"

    def __deepcopy__(self, memo: dict):
        return memo.setdefault(id(self), self.to(self.dtype))

    def __reduce_ex__(self, protocol):
        return (_rebuild, (self.__class__, self._requires_grad, self.dtype))


class UninitializedParameter(_Uninitialized, Parameter):
    """A parameter whose shape a lazy module learns from its first input.

    Args:
        requires_grad: whether gradients are accumulated into it.
        device: the CPU.
        dtype: the element type; the default dtype if None.
    """

    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device=None, dtype: DType | None = None):
        return _Uninitialized.__new__(cls, requires_grad, device, dtype)


class UninitializedBuffer(_Uninitialized):
    """A buffer whose shape a lazy module learns from its first input."""

    def __new__(cls, requires_grad: bool = False, device=None, dtype: DType | None = None, persistent: bool = True):
        made = _Uninitialized.__new__(cls, requires_grad, device, dtype)
        made.persistent = persistent
        return made


def _rebuild(cls: type, requires_grad: bool, dtype: DType) -> Tensor:
    return cls(requires_grad, dtype=dtype)


def empty_parameter(*shape: int, device=None, dtype: DType | None = None) -> Parameter:
    """A parameter of this shape, its values as they come, for a module to initialise."""
    check_device(device)
    return Parameter(wrap(np.empty(shape, (dtype or get_default_dtype()).numpy)))


def is_lazy(param: Any) -> bool:
    """Whether this is a parameter or buffer that has no shape yet."""
    return isinstance(param, _Uninitialized)
