"""Indexing with brackets: `tensor[...]`, in all of NumPy's and PyTorch's forms. Writing is in `index_writing.py`.

Integers, slices, None and Ellipsis make a view, by one operator for the whole index. Tensors, lists and masks among them
make a copy of what that view selects. The operators are in `ops/indexing.py`.
"""

from __future__ import annotations

import numpy as np

from pellucid.core.index_arrays import flattened
from pellucid.core.subscripts import FULL, MASKED, PLAIN, flat_places, is_plain, read_index, split_masks
from pellucid.core.tensor import Tensor, wrap
from pellucid.core.values import differs
from pellucid.ops.indexing import basic_alias, basic_select, basic_slice, basic_unsqueeze, index, index_at

__all__ = ["getitem", "numbers_beside", "take_advanced", "take_basic"]

NUMBERS = (bool, int, float, complex, np.generic)

BY_CLASS = {int: basic_select, slice: basic_slice, type(None): basic_unsqueeze}


def take_basic(tensor: Tensor, key: tuple) -> Tensor:
    """The view that a basic index selects, under the node name of its last step."""
    for k in reversed(key):
        if k is not Ellipsis and k != FULL:
            return BY_CLASS[k.__class__](tensor, key)
    return (basic_slice if key == (FULL, ...) else basic_alias)(tensor, key)


def take_advanced(tensor: Tensor, advanced: list) -> Tensor:
    """What tensors of indices and masks select, a copy."""
    given = [(d, i) for d, i in enumerate(advanced) if i is not None and i is not MASKED]
    if len(given) == 1:
        dim, item = given[0]
        if item._array.dtype.kind == "b":
            return index_at(tensor, flat_places(item), dim, item._array.ndim)
        return index_at(tensor, item, dim)
    tensor, advanced = numbers_beside(tensor, advanced)
    indices = split_masks(advanced)
    dims = [d for d, i in enumerate(indices) if i is not None]
    if tensor._array.flags.c_contiguous and dims[-1] - dims[0] == len(dims) - 1 and not any(differs(indices[d]) for d in dims):
        # side by side: as good as one dimension
        flat = flattened([indices[d]._array for d in dims], tensor._array.shape[dims[0] :], dims[0])
        if flat is not None:
            return index_at(tensor, wrap(flat), dims[0], len(dims))
    return index(tensor, indices)


def numbers_beside(tensor: Tensor, advanced: list) -> tuple[Tensor, list]:
    """Indices that are one number for each example of a vmap, moved beside the other indices: they change no layout."""
    numbers = [d for d, i in enumerate(advanced) if isinstance(i, Tensor) and not i._array.ndim]
    if not numbers:
        return tensor, advanced
    rest = [d for d in range(tensor._array.ndim) if d not in numbers]
    advanced = [*advanced, *[None] * (tensor._array.ndim - len(advanced))]
    place = next((p for p, d in enumerate(rest) if advanced[d] is not None), 0)
    order = rest[:place] + numbers + rest[place:]
    return tensor.permute(order), [advanced[d] for d in order]


def getitem(self: Tensor, key) -> Tensor:
    """`tensor[key]`: a view for integers, slices, None and Ellipsis; a copy where tensors, lists or masks choose."""
    c = key.__class__
    if c is int:
        return basic_select(self, (key, ...))
    if c is tuple:
        if is_plain(key):
            return take_basic(self, key if Ellipsis in key else (*key, ...))
    elif c in PLAIN and is_plain((key,)):
        return take_basic(self, (key, ...) if key is not Ellipsis else (key,))
    basic, advanced = read_index(key, self._array)
    if not any(i is not None for i in advanced):
        return take_basic(
            self,
            basic or (FULL if self._array.ndim and key is not Ellipsis else ..., ...)[: 2 if self._array.ndim else 1],
        )
    return take_advanced(self if basic is None else take_basic(self, basic), advanced)


Tensor.__getitem__ = getitem


# --- iteration and membership ----------------------------------------------------------------------------------------


def __iter__(self: Tensor):
    """The slices along the first dimension."""
    if not self._array.ndim:
        raise TypeError("iteration over a 0-d tensor")
    return iter(self.unbind(0))


def __contains__(self: Tensor, element) -> bool:
    """Whether any element equals a number or tensor."""
    if not isinstance(element, (Tensor, *NUMBERS)):
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")
    return bool((self == element).any())


def __reversed__(self: Tensor) -> Tensor:
    """The tensor flipped along its first dimension."""
    return self.flip(0) if self._array.ndim else self


for _method in (__iter__, __contains__, __reversed__):
    setattr(Tensor, _method.__name__, _method)
