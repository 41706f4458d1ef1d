"""Writing with brackets, `tensor[...] = value`, and `index_put`. Reading is in `indexing.py`, the operators in `ops/index_writing.py`."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.call import inplace
from pellucid.autograd.operator import composite
from pellucid.autograd.views import check_inplace, written
from pellucid.core.index_arrays import put, taken
from pellucid.core.modes import GENERAL, modes
from pellucid.core.subscripts import (
    FULL,
    MASKED,
    check_mask,
    index_array,
    index_error,
    is_plain,
    read_index,
    split_masks,
)
from pellucid.core.tensor import Tensor, wrap
from pellucid.core.values import number_in
from pellucid.functions.indexing import NUMBERS, numbers_beside, take_basic
from pellucid.ops.conversion import cast, copy_, fill_
from pellucid.ops.expansion import expand_
from pellucid.ops.index_writing import index_put_

__all__ = ["index_put", "setitem"]


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
        put(self._array, chosen_arrays(chosen), values._array, accumulate)
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
        put(target, indices, values, False)
        return
    values = _without_leading_ones(values, target.ndim)
    if values.shape != target.shape:
        expand_.operator.canonical(values, target.shape)  # raises where they do not fit
    target[...] = values


Tensor.__setitem__ = setitem
