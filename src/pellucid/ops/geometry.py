"""Sizes, dimensions and strides: how arguments that name them are read and checked, for every family of operators.

Nothing here knows a tensor's history; the operators that use it are in `views.py`, `splitting.py`, `shaping.py` and others.
"""

from __future__ import annotations

import math
import operator

import numpy as np

from pellucid.core.tensor import Tensor
from pellucid.ops.dims import one_dim

__all__ = [
    "broadcast", "canonical_dims", "dims_of", "infer_size", "is_dense", "restrided", "sizes_of",
    "strides_of",
]  # fmt: skip


def canonical_dims(dims, ndim: int) -> tuple[int, ...]:
    """Several dimensions counted from the front.

    Raises:
        IndexError: one is not there.
        RuntimeError: one is named twice.
    """
    found = tuple([one_dim(d, ndim) for d in dims])
    if len(set(found)) != len(found):
        twice = next(d for d in found if found.count(d) > 1)
        raise RuntimeError(f"dim {twice} appears multiple times in the list of dims: got {list(dims)}")
    return found


def sizes_of(args: tuple, name: str = "view") -> tuple[int, ...]:
    """Sizes given as separate integers or as one sequence; TypeError for what is no integer."""
    if len(args) == 1 and args[0].__class__ is not int:
        only = args[0]
        if isinstance(only, (tuple, list)):
            args = tuple(only)
        elif (
            isinstance(only, float) or not hasattr(only, "__index__") or (isinstance(only, Tensor) and only._array.ndim)
        ):
            raise TypeError(f"{name}(): argument 'size' (position 1) must be tuple of ints, not {type(only).__name__}")
    try:
        return tuple([s if s.__class__ is int else operator.index(s) for s in args])
    except TypeError:
        wrong = next(i for i, s in enumerate(args) if isinstance(s, float) or not hasattr(s, "__index__"))
        raise TypeError(
            f"{name}(): argument 'size' failed to unpack the object at pos {wrong + 1} with error "
            f'"type must be tuple of ints,but got {type(args[wrong]).__name__}"'
        ) from None


dims_of = sizes_of  # dimensions are given in the same two ways


def infer_size(size: tuple[int, ...], count: int) -> tuple[int, ...]:
    """A shape for `count` elements with -1 replaced; RuntimeError if it does not hold them."""
    unknown, product = None, 1
    for position, s in enumerate(size):
        if s == -1:
            if unknown is not None:
                raise RuntimeError(f"only one dimension can be inferred: got shape {list(size)}")
            unknown = position
        elif s < 0:
            raise RuntimeError(f"invalid shape dimension {s} at index {position} of shape {list(size)}")
        else:
            product *= s
    if unknown is None:
        if product != count:
            raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {count}")
        return size
    if not product:
        raise RuntimeError(
            f"cannot reshape tensor of {count} elements into shape {list(size)} because the unspecified dimension size -1 can "
            "be any value and is ambiguous"
            if not count
            else f"shape '{list(size)}' is invalid for input of size {count}"
        )
    if count % product:
        raise RuntimeError(f"shape '{list(size)}' is invalid for input of size {count}")
    return (*size[:unknown], count // product, *size[unknown + 1 :])


def strides_of(array: np.ndarray) -> tuple[int, ...]:
    """Strides in elements."""
    itemsize = array.itemsize
    return tuple([s // itemsize for s in array.strides])


def is_dense(array: np.ndarray) -> bool:
    """Whether the elements lie side by side in memory, in some order of the dimensions, none twice."""
    if array.flags.c_contiguous:
        return True
    step = array.itemsize
    for stride, size in sorted((s, n) for s, n in zip(array.strides, array.shape, strict=True) if n != 1):
        if stride != step:
            return False
        step *= size
    return True


def broadcast(array: np.ndarray, size: tuple[int, ...]) -> np.ndarray:
    """A view of a shape to which the array can be broadcast, with stride 0 along the dimensions that grow."""
    lead = len(size) - array.ndim
    strides = (0,) * lead + tuple(
        [0 if n == 1 != s else t for n, t, s in zip(array.shape, array.strides, size[lead:], strict=True)]
    )
    return restrided(array, size, strides)


def restrided(array: np.ndarray, size: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """A view from the array's first element on, with other sizes and strides (in bytes)."""
    if array.flags.c_contiguous and array.dtype.kind != "V" and math.prod(size):
        # NumPy checks here that the view stays inside the array; its as_strided is ten times slower
        return np.ndarray(size, array.dtype, array, 0, strides)
    return np.lib.stride_tricks.as_strided(array, size, strides)
