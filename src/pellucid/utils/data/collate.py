"""From a list of samples to a batch of tensors (`default_collate`), from one sample to tensors (`default_convert`)."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from pellucid.core.dtype import dtype_of
from pellucid.core.tensor import Tensor, wrap

__all__ = ["collate", "default_collate", "default_collate_err_msg_format", "default_collate_fn_map", "default_convert"]

default_collate_err_msg_format = (
    "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; found {}"
)

NOT_NUMBERS = "SUOaMm"  # kinds of NumPy arrays that no tensor can hold


def default_convert(data):
    """Turn NumPy arrays and scalars in one sample into tensors; arrays keep their memory.

    Mappings and sequences are gone through and keep their type where they can (a plain tuple becomes a list); anything
    else stays as it is.
    """
    if isinstance(data, (Tensor, str, bytes)):
        return data
    if isinstance(data, np.ndarray):
        return data if data.dtype.kind in NOT_NUMBERS else _tensor_of(data)
    if isinstance(data, (np.number, np.bool_)):
        return _tensor_of(np.asarray(data))
    if isinstance(data, Mapping):
        return _like_mapping(data, {key: default_convert(data[key]) for key in data})
    if isinstance(data, tuple):
        items = [default_convert(item) for item in data]
        return type(data)(*items) if hasattr(data, "_fields") else items
    if isinstance(data, Sequence):
        return _like_sequence(data, [default_convert(item) for item in data])
    return data


def default_collate(batch):
    """Stack samples: each entry of the result has a new first dimension, the size of the batch.

    Args:
        batch: list of samples of one structure. Tensors and NumPy arrays of one shape are stacked, numbers become a
            tensor (float64 for Python's floats, int64 for ints), strings and bytes stay a list, mappings, named tuples
            and sequences are gone through.

    Raises:
        TypeError: a sample holds something else.
        RuntimeError: shapes of tensors, or lengths of sequences, differ.
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def collate(batch, *, collate_fn_map: dict[Any, Callable] | None = None):
    """As `default_collate`, with a function of one's own for some types.

    Args:
        batch: list of samples.
        collate_fn_map: from a type, or a tuple of types, to `function(batch, *, collate_fn_map)`.
    """
    first = batch[0]
    function = _function_for(first, collate_fn_map or {})
    if function is not None:
        return function(batch, collate_fn_map=collate_fn_map)

    def each(samples):
        return collate(samples, collate_fn_map=collate_fn_map)

    if isinstance(first, Mapping):
        return _like_mapping(first, {key: each([sample[key] for sample in batch]) for key in first})
    if isinstance(first, Sequence):
        lengths = {len(sample) for sample in batch}
        if len(lengths) > 1:
            raise RuntimeError(
                f"each element in list of batch should be of equal size, but the lengths are {sorted(lengths)}"
            )
        items = [each(samples) for samples in zip(*batch, strict=True)]
        if isinstance(first, tuple):
            return type(first)(*items) if hasattr(first, "_fields") else items
        return _like_sequence(first, items)
    raise TypeError(default_collate_err_msg_format.format(type(first)))


def _function_for(sample, functions: dict[Any, Callable]) -> Callable | None:
    exact = functions.get(type(sample))
    if exact is not None:
        return exact
    return next((function for kind, function in functions.items() if isinstance(sample, kind)), None)


def _like_mapping(original: Mapping, items: dict):
    """A mapping of the original's type, where it can be built."""
    try:
        if isinstance(original, MutableMapping):
            made = copy.copy(original)
            made.update(items)
            return made
        return type(original)(items)
    except TypeError:
        return items


def _like_sequence(original: Sequence, items: list):
    """A sequence of the original's type, where it can be built."""
    try:
        if isinstance(original, MutableSequence):
            made = copy.copy(original)
            for i, item in enumerate(items):
                made[i] = item
            return made
        return type(original)(items)
    except TypeError:
        return items


def _tensor_of(array: np.ndarray) -> Tensor:
    dtype_of(array.dtype)  # raises for types that tensors do not have
    return wrap(array)


def _stack_tensors(batch, *, collate_fn_map=None):
    arrays = [tensor._array for tensor in batch]
    for i, array in enumerate(arrays):
        if array.shape != arrays[0].shape:
            raise RuntimeError(
                f"stack expects each tensor to be equal size, but got {list(arrays[0].shape)} at entry 0 and "
                f"{list(array.shape)} at entry {i}. Pad the samples, or give the loader a collate_fn that does."
            )
    if any(tensor.requires_grad for tensor in batch) or any(array.dtype != arrays[0].dtype for array in arrays):
        from pellucid.ops.joining import stack  # only here: plain samples need no operator

        return stack(list(batch), 0)
    return wrap(np.stack(arrays))


def _stack_arrays(batch, *, collate_fn_map=None):
    if batch[0].dtype.kind in NOT_NUMBERS:
        raise TypeError(default_collate_err_msg_format.format(batch[0].dtype))
    return _stack_tensors([_tensor_of(np.asarray(array)) for array in batch])


def _gather_scalars(batch, *, collate_fn_map=None):
    return _tensor_of(np.array(batch))


def _gather_floats(batch, *, collate_fn_map=None):
    return wrap(np.array(batch, np.float64))


def _keep(batch, *, collate_fn_map=None):
    return batch


default_collate_fn_map: dict[Any, Callable] = {
    Tensor: _stack_tensors,
    np.ndarray: _stack_arrays,
    (np.bool_, np.number, np.object_): _gather_scalars,
    float: _gather_floats,
    int: _gather_scalars,
    str: _keep,
    bytes: _keep,
}
