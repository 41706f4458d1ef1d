"""Copies and conversions as operators, and overwriting a tensor by values or a number. `to` and its relatives are in
`functions/conversion.py`.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.call import inplace
from pellucid.autograd.operator import Array, composite, operator
from pellucid.autograd.views import check_inplace, written
from pellucid.core.geometry import check_written
from pellucid.core.memory_format import arranged, channels_last, has_format, memory_format
from pellucid.core.modes import GENERAL, modes
from pellucid.core.tensor import Tensor
from pellucid.core.values import number_in
from pellucid.ops.batches import for_each, side_by_side

__all__ = ["clone", "fill", "zero"]


# --- copies ----------------------------------------------------------------------------------------------------------


def _each_in_order(F, input, order: memory_format | None, copy):
    """A batch of copies, each with its own elements in an order of memory: the batch joins the examples' first dimension."""
    if order is None or not order.name.startswith("channels_last") or input.ndim < 3:
        return copy(input)
    return F.view(copy(F.reshape(input, (-1, *input.shape[2:]))), input.shape)


@operator(method=True, exact=True, widen=False, holomorphic=False, linear=True)
class clone:
    """A copy, through which gradients pass.

    input: [*S]. Returns [*S], elements in the order of the input's memory unless `memory_format` says otherwise.
    """

    def forward(xp, input: Array, *, memory_format=None):
        if memory_format is None and input.flags.c_contiguous:
            return input.copy()
        return arranged(input, memory_format)

    def vjp_input(F, grad): return grad

    def batch(F, input, memory_format):
        return _each_in_order(F, input, memory_format, lambda whole: F.clone(whole, memory_format=memory_format))

    def samples(make):
        yield (make(3, 4),), {}
        yield (make(3, 4).T,), {}
        yield (make(2, 3, 2, 2),), {"memory_format": channels_last}


def cast(array: np.ndarray, kind: np.dtype) -> np.ndarray:
    """A copy in another element type; of complex values the real part."""
    if array.dtype.kind == "c" and kind.kind not in "cb":
        array = array.real
    return array.astype(kind)


@operator(module=None, name="_to_copy", node="ToCopyBackward0", casts=True, widen=False, holomorphic=False, linear=True)
class to_copy:
    """A copy in another element type, a NumPy dtype.

    The derivative is cast back; that of complex values of which the real part was kept is the gradient as a complex number.
    """

    def forward(xp, input: Array, kind, order=None):
        made = cast(input, kind)
        return made if order is None or has_format(made, order) else arranged(made, order)

    def vjp_input(F, grad, input_dtype): return F._to_copy(grad, input_dtype)

    def batch(F, input, kind, order):
        return _each_in_order(F, input, order, lambda whole: F._to_copy(whole, kind, order))

    def samples(make):
        yield (make(3, 4), np.dtype(np.complex128)), {}
        yield (make(2, 3, 2, 2), make.dtype, channels_last), {}


# --- overwriting -----------------------------------------------------------------------------------------------------


def store(tensor: Tensor, values: np.ndarray, name: str) -> None:
    """Write values into a tensor whose write is not recorded."""
    target = tensor._array
    if values.dtype.kind == "c" and target.dtype.kind not in "cb":
        values = values.real
    np.copyto(target, values, casting="unsafe")
    written(tensor, name)


@operator(module=None, name="copy", node="CopyBackwards", broadcast=True, holomorphic=False, exact=False, widen=False)
class copy_into:
    """The value that `copy_` writes: `src` in the shape and type of `input`."""

    def forward(xp, input: Array, src: Array):
        return xp.broadcast_to(cast(src, input.dtype) if src.dtype != input.dtype else src, input.shape)

    def vjp_input(F, grad): return F.zero(grad)
    def vjp_src(F, grad, src_dtype): return F._to_copy(grad, src_dtype)
    def jvp_input(F, tangent): return F.zero(tangent)
    def jvp_src(F, tangent): return tangent  # broadcast and cast as every tangent is

    def batch(F, size_of_batch, batched, input, src):
        input = for_each(F, input, "input" in batched, size_of_batch)
        return F.copy(*side_by_side(F, batched | {"input"}, input=input, src=src))


def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Overwrite this tensor with the values of another (or a number), broadcast and cast; gradients pass to `src`.

    Raises: RuntimeError where the shapes do not fit, or this tensor may not be written to; TypeError for no tensor.
    """
    if not isinstance(src, Tensor):
        if not isinstance(src, (int, float, complex)):
            raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(src).__name__}")
        return fill_(self, src)
    if self._array.shape != src._array.shape:
        check_written(self._array, src._array.shape)
    if modes.road is not GENERAL and not check_inplace(self, src.requires_grad):
        store(self, src._array, "copy_")
        return self
    return inplace(copy_into.operator, self, (src,))


FILLS = {"module": None, "fills": True, "widen": False, "elementwise": True}


@operator(**FILLS, node="FillBackward0")
class fill_number:
    """The value that `fill_(number)` writes."""

    def forward(xp, input: Array, value): return xp.full(input.shape, number_in(value, input.dtype), input.dtype)
    def vjp_input(F, grad): return F.zero(grad)


@operator(**FILLS, node="FillBackward1")
class fill_tensor:
    """The value that `fill_(tensor)` writes: a 0-d tensor everywhere."""

    def forward(xp, input: Array, value: Array):
        return xp.broadcast_to(cast(value, input.dtype), xp.broadcast_shapes(input.shape, value.shape)).copy()

    def vjp_input(F, grad): return F.zero(grad)
    def vjp_value(F, grad, value_dtype): return F._to_copy(grad, value_dtype)
    def samples(make): yield (make(3, 4), make()), {}


def _filling(value):
    """The operator for a value: a number, or a 0-d tensor (else RuntimeError)."""
    if not isinstance(value, Tensor):
        return fill_number
    if value._array.ndim:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value._array.ndim} dimensions.")
    return fill_tensor


@composite()
def fill(input: Tensor, value) -> Tensor:
    """A tensor of the shape and type of `input`, full of one number (or 0-d tensor)."""
    return _filling(value)(input, value)


def fill_(self: Tensor, value) -> Tensor:
    """Overwrite every element with one number, or with the value of a 0-d tensor, to which gradients then pass."""
    if not isinstance(value, Tensor) and modes.road is not GENERAL and not check_inplace(self, False, fills=True):
        self._array.fill(number_in(value, self._array.dtype))
        written(self, "fill_")
        return self
    return inplace(_filling(value).operator, self, (value,))


@operator(**FILLS, name="zero", node="ZeroBackward0")
class zero_value:
    """The value that `zero_()` writes."""

    def forward(xp, input: Array): return xp.zeros(input.shape, input.dtype)
    def vjp_input(F, grad): return F.zero(grad)


def zero_(self: Tensor) -> Tensor:
    """Overwrite every element with 0."""
    if modes.road is not GENERAL and not check_inplace(self, False, fills=True):
        self._array.fill(0)
        written(self, "zero_")
        return self
    return inplace(zero_value.operator, self, ())


@composite()
def zero(input: Tensor) -> Tensor:
    """Zeros in the shape and type of `input`."""
    return zero_value(input)


for _method in (copy_, fill_, zero_):
    setattr(Tensor, _method.__name__, _method)
