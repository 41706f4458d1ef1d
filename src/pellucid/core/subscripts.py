"""Reading what stands in the brackets of `tensor[...]`: which part is basic, which are index tensors and masks.

Arrays of indices are looked up in `index_arrays.py`. The operators are in `ops/indexing.py`.
"""

from __future__ import annotations

import operator as python
import warnings

import numpy as np

from pellucid.core.tensor import Tensor, wrap
from pellucid.core.values import array_from, differs

__all__ = ["FULL", "MASKED", "check_mask", "flat_places", "index_array", "index_error", "is_plain", "last_step",
           "read_index", "split_masks", "to_end"]  # fmt: skip

FULL = slice(None)
MASKED = object()  # stands for the further dimensions of a mask


def index_error(error: IndexError, array: np.ndarray, key: tuple) -> IndexError:
    """NumPy's error about an index, in PyTorch's words."""
    text = str(error)
    if "too many indices" in text:
        if not array.ndim:
            if any(isinstance(k, slice) for k in key):
                return IndexError("slice() cannot be applied to a 0-dim tensor.")
            return IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or `tensor.item<T>()` in C++ to convert a 0-dim "
                "tensor to a number"
            )
        used = sum([k is not None and k is not Ellipsis for k in key])
        return IndexError(
            f"too many indices for tensor of dimension {array.ndim}: got {used} for shape {list(array.shape)}"
        )
    return IndexError(text.replace("for axis", "for dimension"))


def to_end(start: int | None, stop: int | None, step: int | None) -> dict[str, int]:
    """A slice as PyTorch's nodes describe it: unsigned, an absent end being the largest integer."""
    stop = 2**63 - 1 if stop is None else stop
    return {"start": (start or 0) % 2**64, "end": stop % 2**64, "step": step or 1}


def last_step(shape: tuple, key: tuple) -> dict:
    """How PyTorch's node of the last part of a basic index describes it. PyTorch takes a view for each part."""
    sizes, dim, described = list(shape), 0, {}
    for part in key:
        if part is Ellipsis:
            dim += len(shape) - sum(k is not None and k is not Ellipsis for k in key)
        elif part is None:
            described = {"dim": dim}
            sizes.insert(dim, 1)
            dim += 1
        elif part.__class__ is int:
            described = {"self_sym_sizes": tuple(sizes), "dim": dim, "index": part % 2**64}
            del sizes[dim]
        else:
            if part != FULL or key == (FULL, ...):  # a lone colon is a step, others are none
                described = {"self_sym_sizes": tuple(sizes), "dim": dim, **to_end(part.start, part.stop, part.step)}
            sizes[dim] = len(range(sizes[dim])[part])
            dim += 1
    return described


def _plain_slice(item: slice) -> slice:
    """A slice of Python integers; ValueError for a step that is not positive."""
    parts = []
    for part in (item.start, item.stop, item.step):
        try:
            parts.append(None if part is None else python.index(part))
        except TypeError:
            raise TypeError("slice indices must be integers or None or have an __index__ method") from None
    if parts[2] is not None and parts[2] <= 0:
        raise ValueError(
            "slice step cannot be zero"
            if parts[2] == 0
            else f"step must be greater than zero, got {parts[2]}: use flip() to reverse"
        )
    return slice(*parts)


def index_array(item):
    """An index that is no plain basic one, as a tensor of integers or a mask."""
    if isinstance(item, Tensor):
        tensor = item
    elif isinstance(item, str):
        raise TypeError(f"new(): invalid data type 'str': {item!r} cannot index a tensor")
    elif isinstance(item, (list, tuple, range, np.ndarray)):
        data = list(item) if isinstance(item, range) else item
        empty = isinstance(data, (list, tuple)) and not len(data)
        array = (
            np.asarray(item) if isinstance(item, np.ndarray) else np.zeros(0, np.int64) if empty else array_from(data)
        )
        tensor = wrap(array)
    else:
        raise IndexError("only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
                         f"{type(item).__name__})")
    dtype = tensor._array.dtype
    if dtype == np.uint8:
        warnings.warn(
            "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead.",
            UserWarning,
            stacklevel=4,
        )
        tensor = tensor.bool()
    elif dtype.kind not in "ib" or dtype.itemsize == 2 or dtype == np.int8:
        raise IndexError(f"tensors used as indices must be long, int, byte or bool tensors, got {tensor.dtype}")
    return tensor


def _items(index) -> tuple:
    """The parts of an index; a list that holds slices, None or sequences counts as a tuple, as in old NumPy."""
    if isinstance(index, tuple):
        return index
    if (
        isinstance(index, list)
        and len(index) < 32
        and any(isinstance(i, (slice, list, tuple, type(None), type(Ellipsis), Tensor)) for i in index)
    ):
        if any(isinstance(i, Tensor) and not i._array.ndim for i in index) and all(
            isinstance(i, (Tensor, int)) for i in index
        ):
            return ([int(i) for i in index],)
        warnings.warn(
            "Using a non-tuple sequence for multidimensional indexing is deprecated and will be changed in pytorch 2.9; "
            "use x[tuple(seq)] instead of x[seq].",
            UserWarning,
            stacklevel=4,
        )
        return tuple(index)
    return (index,)


def read_index(index, array: np.ndarray) -> tuple[tuple | None, list]:
    """An index as a basic key (None if it selects everything) and, for each dimension of what that selects, a tensor or None.

    A mask stands where its first dimension is. Raises what `tensor[index]` raises.
    """
    parts = []
    for item in _items(index):
        if isinstance(item, slice):
            parts.append(_plain_slice(item))
        elif item is None or item is Ellipsis:
            parts.append(item)
        elif isinstance(item, (bool, np.bool_)):
            parts.append(wrap(np.array(bool(item))))
        elif isinstance(item, (int, np.integer)):
            parts.append(int(item))
        else:
            tensor = index_array(item)
            scalar = not tensor._array.ndim and tensor._array.dtype.kind != "b" and not differs(tensor)
            parts.append(int(tensor._array) if scalar else tensor)
    used = sum([0 if p is None or p is Ellipsis else _span(p) for p in parts])
    if used > array.ndim:
        if not array.ndim or array.ndim < used:
            raise index_error(IndexError("too many indices"), array, tuple(parts))
    return _laid_out(parts, array, used)


def _span(part) -> int:
    """How many dimensions of the tensor a part of an index takes up."""
    if isinstance(part, Tensor):
        return part._array.ndim if part._array.dtype.kind == "b" else 1
    return 1


def _laid_out(parts: list, array: np.ndarray, used: int) -> tuple[tuple | None, list]:
    """Split checked parts into the basic key and the advanced indices."""
    key: list = []
    advanced: list = []
    seen = False
    for part in parts:
        if part is Ellipsis:
            filled = [FULL] * (array.ndim - used) if not seen else []
            seen = True
            key += filled
            advanced += [None] * len(filled)
        elif isinstance(part, Tensor):
            span = _span(part)
            place = sum([k is not None for k in key])
            if span == 0:  # a bool adds a dimension of size 1 and keeps or drops it
                _refuse_batch(part)
                key.append(None)
                advanced.append(wrap(np.array([bool(part._array)])))
                continue
            if part._array.dtype.kind == "b":
                check_mask(part._array, array, place)
            key += [FULL] * span
            advanced += [part] + [None] * (span - 1) if span == 1 else [part, *[MASKED] * (span - 1)]
        else:
            key.append(part)
            if not isinstance(part, int):
                advanced.append(None)
    trivial = all(k == FULL for k in key if k is not None) and None not in key
    return None if trivial else (*key, ...), advanced


def check_mask(mask: np.ndarray, array: np.ndarray, place: int) -> None:
    for d in range(mask.ndim):
        if mask.shape[d] != array.shape[place + d]:
            raise IndexError(f"The shape of the mask {list(mask.shape)} at index {d} does not match the shape of the indexed "
                             f"tensor {list(array.shape)} at index {place + d}")


def split_masks(advanced: list) -> list:
    """Masks turned into one integer index for each of their dimensions."""
    indices: list = []
    for item in advanced:
        if item is MASKED:
            continue
        if item is not None and item._array.dtype.kind == "b":
            _refuse_batch(item)
            indices.extend([wrap(i) for i in np.nonzero(item._array)])
        else:
            indices.append(item)
    return indices


def flat_places(mask: Tensor) -> Tensor:
    """Where a mask is true, counted through it as one row."""
    _refuse_batch(mask)
    return wrap(np.flatnonzero(mask._array))


def _refuse_batch(mask: Tensor) -> None:
    """RuntimeError for a mask that differs between the examples of a vmap: so would the shape of what it selects."""
    if differs(mask):
        raise RuntimeError("vmap: We do not support batching operators that can support dynamic shape. Attempting to batch over "
                           "indexing with a boolean mask: it selects a number of elements for each example. Use where(), or do it "
                           "outside of vmap.")


PLAIN = {int, slice, type(None), type(Ellipsis)}


def is_plain(key: tuple) -> bool:
    """Whether every part is a basic index that needs no conversion."""
    dots = 0
    for k in key:
        c = k.__class__
        if c not in PLAIN:
            return False
        if c is slice:
            if not (k.step is None or (k.step.__class__ is int and k.step > 0)):
                return False
            if (k.start is not None and k.start.__class__ is not int) or (
                k.stop is not None and k.stop.__class__ is not int
            ):
                return False
        elif k is Ellipsis:
            dots += 1
    return dots < 2
