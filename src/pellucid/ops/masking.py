"""Filling, selecting and scattering where a mask of bools is true. `where` is in `choosing.py`, brackets in `indexing.py`."""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.call import inplace
from pellucid.autograd.operator import Array, Index, composite, operator
from pellucid.autograd.views import check_inplace, written
from pellucid.core.checks import refuse_dynamic
from pellucid.core.dtype import dtype_of
from pellucid.core.modes import GENERAL, modes
from pellucid.core.tensor import Tensor
from pellucid.core.values import number_in
from pellucid.kernels import places
from pellucid.kernels.sums import sum_to
from pellucid.ops.batch_places import in_front
from pellucid.ops.batches import all_for_each, for_each, side_by_side
from pellucid.ops.conversion import cast
from pellucid.ops.families import in_place

__all__ = ["masked_fill", "masked_scatter", "masked_select"]


def _check_mask(mask: np.ndarray, name: str) -> None:
    if mask.dtype.kind != "b":
        raise RuntimeError(f"{name} only supports boolean masks, but got mask with dtype {dtype_of(mask.dtype)}")


# --- filling ---------------------------------------------------------------------------------------------------------


@operator(elementwise=True, widen=False, module=None, name="masked_fill", node="MaskedFillBackward0")
class masked_fill_number:
    """`masked_fill` by a Python number."""

    def forward(xp, input: Array, mask: Index, value):
        _check_mask(mask, "masked_fill_")
        return xp.where(mask, number_in(value, input.dtype), input)

    def vjp_input(F, grad, mask): return F.masked_fill(grad, mask, 0)

    def samples(make):
        yield (make(3, 4), make.mask(3, 4), 2.0), {}
        yield (make(3, 1), make.mask(4), 2.0), {}


@operator(elementwise=True, widen=False, module=None, node="MaskedFillBackward1")
class masked_fill_tensor:
    """`masked_fill` by the value of a tensor."""

    def forward(xp, input: Array, mask: Index, value: Array):
        _check_mask(mask, "masked_fill_")
        if value.dtype.kind == "c" and input.dtype.kind != "c":
            raise RuntimeError(f"value cannot be converted to type {dtype_of(input.dtype).name} without overflow")
        return xp.where(mask, cast(value, input.dtype), input)

    def vjp_input(F, grad, mask): return F.masked_fill(grad, mask, 0)
    def vjp_value(F, grad, mask, value_dtype): return F._to_copy(F.where(mask, grad, 0), value_dtype)
    def samples(make): yield (make(3, 4), make.mask(3, 4), make()), {}


def _filling(value):
    """The operator for a value: a number, or a 0-d tensor (else RuntimeError)."""
    if not isinstance(value, Tensor):
        return masked_fill_number
    if value._array.ndim:
        raise RuntimeError(
            f"masked_fill_ only supports a 0-dimensional value tensor, but got tensor with {value._array.ndim} dimension(s)."
        )
    return masked_fill_tensor


@composite(method=True)
def masked_fill(input: Tensor, mask: Tensor, value) -> Tensor:
    """The tensor with `value` (a number or 0-d tensor) where the mask is true; the mask broadcasts.

    RuntimeError for a mask that is not bool, or a value of more dimensions.
    """
    return _filling(value)(input, mask, value)


def masked_fill_(self: Tensor, mask: Tensor, value) -> Tensor:
    """Write `value` (a number or 0-d tensor) where the mask is true."""
    plain = not isinstance(value, Tensor) and mask._array.dtype.kind == "b" and mask._array.shape == self._array.shape
    if plain and modes.road is not GENERAL and not check_inplace(self, False):
        np.copyto(self._array, number_in(value, self._array.dtype), where=mask._array)
        written(self, "masked_fill_")
        return self
    return inplace(_filling(value).operator, self, (mask, value))


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

    def vjp_input(F, grad, mask, input_shape): return F.masked_select_backward(grad, mask, input_shape)

    def batch(F, size_of_batch, batched, input, mask):
        input, mask = side_by_side(F, batched, input=input, mask=mask)
        if "mask" in batched:
            refuse_dynamic("masked_select", mask)
            counts = mask._array.reshape(size_of_batch, -1).sum(1)
            if (counts != counts[:1]).any():
                raise RuntimeError(
                    "vmap: Attempted to vmap over `mask` in torch.masked_select(self, mask): each example would give a tensor of "
                    f"another length, {counts.tolist()}. Use torch.where, which keeps the shape."
                )
        chosen = F.masked_select(input, mask)
        return F.reshape(chosen, (size_of_batch, len(chosen) // max(size_of_batch, 1)))

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

    def vjp_input(F, grad, mask): return F.masked_select(grad, mask)

    def batch(F, size_of_batch, batched, input, mask, input_shape):
        rank = max(len(input_shape), len(mask.shape) - ("mask" in batched))
        mask = in_front(F, mask, rank) if "mask" in batched else mask
        whole = (size_of_batch, *(1,) * (rank - len(input_shape)), *input_shape)
        flat = F.reshape(for_each(F, input, "input" in batched, size_of_batch), (-1,))
        return F.reshape(F.masked_select_backward(flat, mask, whole), (size_of_batch, *input_shape))


# --- scattering ------------------------------------------------------------------------------------------------------
# Elements are taken from `source` one after another; for each place in the first `lead` dimensions from the start.


def _placed(whole: np.ndarray, mask: np.ndarray, source: np.ndarray, lead: int) -> np.ndarray:
    have, need = math.prod(source.shape[lead:]), places.most_chosen(mask, whole.shape, lead)
    if have < need:
        raise RuntimeError(f"Number of elements of source < number of ones in mask: got {have} and {need}")
    return places.put_masked(whole, mask, source, lead)


@operator(broadcast=False, holomorphic=False, widen=False, linear=True, module=None, name="masked_scatter")
class masked_scatter_:
    """The raw form of `masked_scatter`, for an input to which the mask broadcasts."""

    def forward(xp, input: Array, mask: Index, source: Array, lead: int = 0):
        _check_mask(mask, "masked_scatter_")
        if input.dtype != source.dtype:
            raise RuntimeError(
                f"masked_scatter: expected self and source to have same dtypes but got {dtype_of(input.dtype)} and {dtype_of(source.dtype)}"
            )
        return _placed(input, mask, source, lead)

    def vjp_input(F, grad, mask): return F.masked_fill(grad, mask, 0)
    def vjp_source(F, grad, mask, source_shape, lead): return F.masked_scatter_backward(grad, mask, source_shape, lead)

    def batch(F, size_of_batch, batched, input, mask, source, lead):
        input, source = all_for_each(F, batched, size_of_batch, input=input, source=source)
        input, mask = side_by_side(F, batched | {"input"}, input=input, mask=mask)
        return F.masked_scatter(input, mask, source, lead + 1)

    def samples(make):
        yield (make(3, 4), make.mask(3, 4), make(12)), {}
        yield (make(3, 4), make.mask(4), make(13)), {}


@operator(holomorphic=False, linear=True, module=None)
class masked_scatter_backward:
    """The elements of the operand where a mask is true, followed by zeros, in `source_shape`."""

    def forward(xp, input: Array, mask: Index, source_shape: tuple, lead: int = 0):
        return places.masked_out(input, mask, source_shape, lead)

    def vjp_input(F, grad, mask, input_shape, lead): return F.masked_place(grad, mask, input_shape, lead)

    def batch(F, size_of_batch, batched, input, mask, source_shape, lead):
        input = for_each(F, input, "input" in batched, size_of_batch)
        input, mask = side_by_side(F, batched | {"input"}, input=input, mask=mask)
        return F.masked_scatter_backward(input, mask, (size_of_batch, *source_shape), lead + 1)

    def samples(make): yield (make(3, 4), make.mask(3, 4), (13,)), {}


@operator(holomorphic=False, linear=True, module=None)
class masked_place:
    """Zeros of `shape` with the first elements of the operand where a mask is true."""

    def forward(xp, source: Array, mask: Index, shape: tuple, lead: int = 0):
        return _placed(xp.zeros(shape, source.dtype), mask, source, lead)

    def vjp_source(F, grad, mask, source_shape, lead): return F.masked_scatter_backward(grad, mask, source_shape, lead)

    def batch(F, size_of_batch, batched, source, mask, shape, lead):
        source = for_each(F, source, "source" in batched, size_of_batch)
        mask = in_front(F, mask, len(shape)) if "mask" in batched else mask
        return F.masked_place(source, mask, (size_of_batch, *shape), lead + 1)

    def samples(make): yield (make(13), make.mask(3, 4), (3, 4)), {}


@composite(method=True)
def masked_scatter(input: Tensor, mask: Tensor, source: Tensor) -> Tensor:
    """The tensor with the elements of `source`, one after another, where the mask is true; the mask broadcasts.

    RuntimeError for a mask that is not bool, another type of `source`, or too few elements in it.
    """
    shape = np.broadcast_shapes(input._array.shape, mask._array.shape)
    return masked_scatter_(input.expand(shape) if input._array.shape != shape else input, mask, source)


Tensor.masked_scatter_ = in_place("masked_scatter_", lambda self, mask, source: (masked_scatter_, mask, source, 0))
