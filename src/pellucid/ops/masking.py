"""Filling, selecting and scattering where a mask of bools is true. `where` is in `choosing.py`, brackets in `indexing.py`."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.call import inplace
from pellucid.autograd.node import sum_to
from pellucid.autograd.operator import Array, Index, composite, operator
from pellucid.autograd.views import check_inplace, written
from pellucid.core.dtype import dtype_of
from pellucid.core.modes import GENERAL, modes
from pellucid.core.tensor import Tensor
from pellucid.ops.conversion import cast
from pellucid.ops.factories import number_in

__all__ = ["masked_fill", "masked_scatter", "masked_select"]


def _check_mask(mask: np.ndarray, name: str) -> None:
    if mask.dtype.kind != "b":
        raise RuntimeError(f"{name} only supports boolean masks, but got mask with dtype {dtype_of(mask.dtype)}")


# --- filling ---------------------------------------------------------------------------------------------------------


@operator(broadcast=True, holomorphic=False, widen=False, module=None, name="masked_fill", node="MaskedFillBackward0")
class masked_fill_number:
    """`masked_fill` by a Python number."""

    def forward(xp, input: Array, mask: Index, value):
        _check_mask(mask, "masked_fill_")
        return xp.where(mask, number_in(value, input.dtype), input)

    def vjp_input(F, grad, mask):
        return F.masked_fill(grad, mask, 0)

    def samples(make):
        yield (make(3, 4), make.mask(3, 4), 2.0), {}
        yield (make(3, 1), make.mask(4), 2.0), {}


@operator(
    broadcast=True, holomorphic=False, widen=False, module=None, name="masked_fill_tensor", node="MaskedFillBackward1"
)
class masked_fill_tensor:
    """`masked_fill` by a 0-d tensor."""

    def forward(xp, input: Array, mask: Index, value: Array):
        _check_mask(mask, "masked_fill_")
        if value.ndim:
            raise RuntimeError(
                f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.ndim} dimension(s)."
            )
        if value.dtype.kind == "c" and input.dtype.kind != "c":
            raise RuntimeError(f"value cannot be converted to type {dtype_of(input.dtype).name} without overflow")
        return xp.where(mask, cast(value, input.dtype), input)

    def vjp_input(F, grad, mask):
        return F.masked_fill(grad, mask, 0)

    def vjp_value(F, grad, mask, value_dtype):
        return F._to_copy(F.where(mask, grad, 0), value_dtype)

    def samples(make):
        yield (make(3, 4), make.mask(3, 4), make()), {}


@composite(method=True)
def masked_fill(input: Tensor, mask: Tensor, value) -> Tensor:
    """The tensor with `value` (a number or 0-d tensor) where the mask is true; the mask broadcasts.

    RuntimeError for a mask that is not bool, or a value of more dimensions.
    """
    return (
        masked_fill_tensor(input, mask, value) if isinstance(value, Tensor) else masked_fill_number(input, mask, value)
    )


def masked_fill_(self: Tensor, mask: Tensor, value) -> Tensor:
    """Write `value` (a number or 0-d tensor) where the mask is true."""
    if isinstance(value, Tensor):
        return inplace(masked_fill_tensor.operator, self, (mask, value))
    plain = mask._array.dtype.kind == "b" and mask._array.shape == self._array.shape
    if plain and modes.road is not GENERAL and not check_inplace(self, False):
        np.copyto(self._array, number_in(value, self._array.dtype), where=mask._array)
        written(self, "masked_fill_")
        return self
    return inplace(masked_fill_number.operator, self, (mask, value))


Tensor.masked_fill_ = masked_fill_


# --- selecting -------------------------------------------------------------------------------------------------------


@operator(method=True, holomorphic=False, exact=True, linear=True)
class masked_select:
    """The elements at which a mask is true, in row-major order.

    input, mask: broadcastable to a common shape; the mask bool, else RuntimeError. Returns [n].
    """

    def forward(xp, input: Array, mask: Index):
        if mask.dtype.kind != "b":
            raise RuntimeError(f"masked_select: expected BoolTensor for mask, but got {dtype_of(mask.dtype)}")
        if input.shape != mask.shape:
            input, mask = xp.broadcast_arrays(input, mask)
        return input[mask]

    def vjp_input(F, grad, mask, input_shape):
        return F.masked_select_backward(grad, mask, input_shape)

    def samples(make):
        yield (make(3, 4), make.mask(3, 4)), {}
        yield (make(3, 1), make.mask(4)), {}


@operator(module=None, holomorphic=False, linear=True)
class masked_select_backward:
    """Zeros of `input_shape` to which the operand is added where a mask is true."""

    def forward(xp, input: Array, mask: Index, input_shape: tuple):
        shape = xp.broadcast_shapes(mask.shape, input_shape)
        whole = xp.zeros(shape, input.dtype)
        whole[xp.broadcast_to(mask, shape)] = input
        return sum_to(whole, input_shape)

    def vjp_input(F, grad, mask):
        return F.masked_select(grad, mask)


# --- scattering ------------------------------------------------------------------------------------------------------


def _placed(xp, whole: np.ndarray, mask: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Write the first elements of `source` where a mask is true."""
    mask = xp.broadcast_to(mask, whole.shape)
    count = int(mask.sum())
    if source.size < count:
        raise RuntimeError(f"Number of elements of source < number of ones in mask: got {source.size} and {count}")
    whole[mask] = source.reshape(-1)[:count]
    return whole


@operator(broadcast=False, holomorphic=False, widen=False, module=None, name="masked_scatter", linear=True)
class masked_scatter_:
    """The raw form of `masked_scatter`, for an input to which the mask broadcasts."""

    def forward(xp, input: Array, mask: Index, source: Array):
        _check_mask(mask, "masked_scatter_")
        if input.dtype != source.dtype:
            raise RuntimeError(
                "masked_scatter: expected self and source to have same dtypes but got "
                f"{dtype_of(input.dtype)} and {dtype_of(source.dtype)}"
            )
        return _placed(xp, input.copy(), mask, source)

    def vjp_input(F, grad, mask):
        return F.masked_fill(grad, mask, 0)

    def vjp_source(F, grad, mask, source_shape):
        return F.masked_scatter_backward(grad, mask, source_shape)

    def samples(make):
        yield (make(3, 4), make.mask(3, 4), make(12)), {}


@operator(module=None, holomorphic=False, linear=True)
class masked_scatter_backward:
    """The elements of the operand where a mask is true, followed by zeros, in `source_shape`."""

    def forward(xp, input: Array, mask: Index, source_shape: tuple):
        chosen = input[xp.broadcast_to(mask, input.shape)]
        whole = xp.zeros(source_shape, input.dtype)
        whole.reshape(-1)[: chosen.size] = chosen
        return whole

    def vjp_input(F, grad, mask, input_shape):
        return F.masked_place(grad, mask, input_shape)


@operator(module=None, holomorphic=False, linear=True)
class masked_place:
    """Zeros of `shape` with the first elements of the operand where a mask is true."""

    def forward(xp, source: Array, mask: Index, shape: tuple):
        return _placed(xp, xp.zeros(shape, source.dtype), mask, source)

    def vjp_source(F, grad, mask, source_shape):
        return F.masked_scatter_backward(grad, mask, source_shape)


@composite(method=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The tensor with the elements of `source`, one after another, where the mask is true; the mask broadcasts.

    RuntimeError for a mask that is not bool, another type of `source`, or too few elements in it.
    """
    shape = np.broadcast_shapes(input._array.shape, mask._array.shape)
    return masked_scatter_(input.expand(shape) if input._array.shape != shape else input, mask, source)


def masked_scatter_inplace(self: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """Write the elements of `source`, one after another, where the mask is true."""
    return inplace(masked_scatter_.operator, self, (mask, source))


Tensor.masked_scatter_ = masked_scatter_inplace
