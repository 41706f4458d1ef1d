"""Writing with brackets, `tensor[...] = value`, and `index_put`. Reading, and what both share, is in `indexing.py`."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.call import inplace
from pellucid.autograd.operator import Array, Indices, composite, operator
from pellucid.autograd.views import check_inplace, written
from pellucid.core.errors import type_name
from pellucid.core.modes import GENERAL, modes
from pellucid.core.subscripts import (
    FULL,
    MASKED,
    check_mask,
    index_array,
    index_error,
    read_index,
    split_masks,
)
from pellucid.core.tensor import Tensor, wrap
from pellucid.core.values import number_in
from pellucid.ops.batches import for_each
from pellucid.ops.conversion import cast, copy_, fill_
from pellucid.ops.expansion import expand_
from pellucid.ops.indexing import NUMBERS, BatchOfPlaces, is_plain, key_of, numbers_beside, take_basic, taken

__all__ = ["index_put"]


@operator(module=None, name="index_put", node="IndexPutBackward0", broadcast=False, holomorphic=False, widen=False, linear=True)
class index_put_:
    """The raw form of `index_put`: indices as integer tensors or None."""

    def forward(xp, input: Array, indices: Indices, values: Array, accumulate: bool = False):
        if values.dtype != input.dtype:
            raise RuntimeError(f"Index put requires the source and destination dtypes match, got {type_name(input.dtype)} for the "
                               f"destination and {type_name(values.dtype)} for the source.")
        whole = input.copy()
        _put(whole, indices, values, accumulate)
        return whole

    def vjp_input(F, grad, indices, accumulate): return grad if accumulate else F.index_zero(grad, indices)
    def vjp_values(F, grad, indices, values_shape): return F.sum_to_size(F.index(grad, indices), values_shape)

    def batch(F, size_of_batch, batched, input, indices, values, accumulate):
        input = for_each(F, input, "input" in batched, size_of_batch)
        places = BatchOfPlaces(F, size_of_batch, indices, "indices" in batched)
        values = places.values(values, "values" in batched, input.ndim - 1)
        return F.index_put(input, places.indices, values, accumulate)

    def samples(make):
        yield (make(3, 4), [np.array([2, 0])], make(2, 4), False), {}
        yield (make(3, 4), [np.array([2, 2]), np.array([1, 1])], make(2), True), {}
        yield (make(3, 2, 4), [np.array([2, 0]), None, np.array([1, 3])], make(2), True), {}
        yield (make(2, 3, 4), [None, np.array([2, 0]), np.array([1, 3])], make(2), False), {}


@operator(module=None, linear=True)
class index_zero:
    """The operand with zeros in the places that indices choose."""

    def forward(xp, input: Array, indices: Indices):
        whole = input.copy()
        whole[key_of(indices)] = 0
        return whole

    def vjp_input(F, grad, indices): return F.index_zero(grad, indices)

    def batch(F, size_of_batch, batched, input, indices):
        places = BatchOfPlaces(F, size_of_batch, indices, "indices" in batched)
        return F.index_zero(for_each(F, input, "input" in batched, size_of_batch), places.indices)

    def samples(make): yield (make(3, 4), [np.array([2, 0])]), {}


def _put(array: np.ndarray, indices, values: np.ndarray, accumulate: bool) -> None:
    """Write, or add, values to the places that indices choose."""
    key = key_of(indices)
    try:
        if accumulate:
            np.add.at(array, key, values)
        else:
            array[key] = values
    except (IndexError, ValueError):
        target = taken(array, indices).shape  # raises where the indices are at fault
        raise RuntimeError(f"shape mismatch: value tensor of shape {list(values.shape)} cannot be broadcast to indexing result of "
                           f"shape {list(target)}") from None


def _given_indices(input: Tensor, indices, name: str) -> list:
    """Index tensors of `index_put`, masks turned into integers."""
    if isinstance(indices, Tensor) or not isinstance(indices, (tuple, list)):
        raise TypeError(f"{name}(): argument 'indices' (position 1) must be tuple of Tensors, not {type(indices).__name__}")
    advanced: list = []
    for item in indices:
        tensor = None if item is None else index_array(item)
        if tensor is not None and tensor._array.dtype.kind == "b":
            check_mask(tensor._array, input._array, len(advanced))
            advanced += [tensor, *[MASKED] * (tensor._array.ndim - 1)]
        else:
            advanced.append(tensor)
    if len(advanced) > input._array.ndim:
        raise IndexError(f"too many indices for tensor of dimension {input._array.ndim} (got {len(advanced)})")
    return split_masks(advanced)


@composite(method=True)
def index_put(input: Tensor, indices, values: Tensor, accumulate: bool = False) -> Tensor:
    """The tensor with `values` written, or added, to the places that a tuple of index tensors chooses.

    Raises: IndexError for indices outside or values of another type, RuntimeError for values that do not fit.
    """
    return index_put_(input, _given_indices(input, indices, "index_put"), values, accumulate)


def index_put_inplace(self: Tensor, indices, values: Tensor, accumulate: bool = False) -> Tensor:
    """Write, or add, `values` to the places that a tuple of index tensors chooses."""
    chosen = _given_indices(self, indices, "index_put_")
    if (
        values._array.dtype == self._array.dtype
        and modes.road is not GENERAL
        and not check_inplace(self, values.requires_grad)
    ):
        _put(self._array, chosen_arrays(chosen), values._array, accumulate)
        written(self, "index_put_")
        return self
    return inplace(index_put_.operator, self, (chosen, values, accumulate))


def chosen_arrays(indices) -> list:
    """The arrays of index tensors."""
    return [None if i is None else i._array for i in indices]


Tensor.index_put_ = index_put_inplace


def _value(value, tensor: Tensor):
    """What is assigned, as a number or a tensor."""
    if isinstance(value, (Tensor, *NUMBERS)):
        return value
    raise TypeError(f"can't assign a {type(value).__name__} to a {tensor.type()}: give a number, or convert it with torch.tensor "
                    "or torch.from_numpy")


def _without_leading_ones(array: np.ndarray, ndim: int) -> np.ndarray:
    while array.ndim > ndim and array.shape[0] == 1:
        array = array[0]
    return array


def setitem(self: Tensor, key, value) -> None:
    """`tensor[key] = value`: write a number or a tensor, broadcast and cast, into what `key` selects."""
    value = _value(value, self)
    if (key.__class__ is tuple and is_plain(key)) or key.__class__ is int:
        parts = key if key.__class__ is tuple else (key,)
        basic, advanced = parts if Ellipsis in parts else (*parts, ...), ()
    else:
        basic, advanced = read_index(key, self._array)
    recorded = modes.grad_enabled and (
        self.requires_grad or (value.__class__ is not float and isinstance(value, Tensor) and value.requires_grad)
    )
    if not recorded and modes.road is not GENERAL:
        check_inplace(self, False)
        try:
            target = self._array if basic is None else self._array[basic]
        except IndexError as error:
            raise index_error(error, self._array, basic) from None
        _write(target, advanced, value)
        written(self, "__setitem__")
        return
    part = self if basic is None else take_basic(self, basic)
    if basic is None and not any(i is not None for i in advanced):
        part = take_basic(self, (FULL, ...) if self._array.ndim else (...,))
    if not any(i is not None for i in advanced):
        if isinstance(value, Tensor):
            value = _stripped(value, part._array.ndim)
            expand_.operator.canonical(value._array, part._array.shape)  # raises where it does not fit
            copy_(part, value)
        else:
            fill_(part, value if not isinstance(value, np.generic) else value.item())
        return
    _put_recorded(part, advanced, value)


def _stripped(value: Tensor, ndim: int) -> Tensor:
    """A tensor without the leading dimensions of size 1 that it has too many."""
    shape = _without_leading_ones(value._array, ndim).shape
    return value if shape == value._array.shape else value.view(shape)


def _put_recorded(part: Tensor, advanced: list, value) -> None:
    part, advanced = numbers_beside(part, advanced)
    indices = split_masks(advanced)
    if not isinstance(value, Tensor):
        value = wrap(number_in(value.item() if isinstance(value, np.generic) else value, part._array.dtype))
    elif value._array.dtype != part._array.dtype:
        value = value.to(part.dtype)
    ndim = taken(part._array, chosen_arrays(indices)).ndim
    inplace(index_put_.operator, part, (indices, _stripped(value, ndim), False))


def _write(target: np.ndarray, advanced, value) -> None:
    """Write where nothing is recorded."""
    if isinstance(value, Tensor):
        values = value._array if value._array.dtype == target.dtype else cast(value._array, target.dtype)
    else:
        values = number_in(value.item() if isinstance(value, np.generic) else value, target.dtype)
    if any(i is not None for i in advanced):
        given = [i for i in advanced if i is not None and i is not MASKED]
        if len(given) == 1 and not values.ndim and given[0]._array.dtype.kind == "b" and advanced[0] is given[0]:
            target[given[0]._array] = values
            return
        indices = chosen_arrays(split_masks(advanced))
        if values.ndim > 1 and values.shape[0] == 1:
            values = _without_leading_ones(values, taken(target, indices).ndim)
        _put(target, indices, values, False)
        return
    values = _without_leading_ones(values, target.ndim)
    if values.shape != target.shape:
        expand_.operator.canonical(values, target.shape)  # raises where they do not fit
    target[...] = values


Tensor.__setitem__ = setitem
