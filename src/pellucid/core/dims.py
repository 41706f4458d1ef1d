"""Dimensions and sizes as users name them, brought into the form that operators use."""

from __future__ import annotations

import operator

import numpy as np

from pellucid.core.tensor import Tensor, dim_error

__all__ = ["all_dims", "canonical_dims", "checked_size", "dims_of", "infer_size", "keyword_names", "one_by_one",
           "one_dim", "require_elements", "sizes_of"]  # fmt: skip


def one_dim(dim, ndim: int) -> int:
    """One dimension, counted from the front. A 0-d tensor has the dimensions 0 and -1.

    Raises:
        IndexError: there is no such dimension.
        TypeError: it is no integer.
    """
    if dim.__class__ is not int:
        if isinstance(dim, bool) or not hasattr(dim, "__index__"):
            raise TypeError(f"argument 'dim' must be int, not {type(dim).__name__}")
        dim = operator.index(dim)
    span = max(ndim, 1)
    if not -span <= dim < span:
        if not ndim:
            raise IndexError(f"Dimension out of range (expected to be in range of [-1, 0], but got {dim})")
        raise IndexError(dim_error(dim, ndim))
    return dim % span


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


def all_dims(dim, ndim: int) -> tuple[int, ...]:
    """The dimensions to reduce, counted from the front: one, several, or all of them for None and ().

    Raises:
        IndexError: a dimension that is not there.
        RuntimeError: a dimension named twice.
    """
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    if not isinstance(dim, (tuple, list)):
        return (one_dim(dim, ndim),) if ndim else ((), one_dim(dim, ndim))[0]
    found = canonical_dims(dim, ndim)
    return found if ndim else ()


def one_by_one(given: tuple) -> tuple:
    """Arguments given one by one, or as one sequence."""
    return tuple(given[0]) if len(given) == 1 and isinstance(given[0], (tuple, list)) else given


def keyword_names(dim, keepdim, axis, keepdims):
    """`dim` and `keepdim`, which NumPy's names `axis` and `keepdims` may stand for."""
    return (dim if axis is None else axis), (keepdim if keepdims is None else keepdims)


def require_elements(name: str, array: np.ndarray, dim: tuple[int, ...]) -> None:
    """Refuse to look for an element where there is none; PyTorch's two sentences for it."""
    if array.size:
        return
    for d in dim:
        if array.shape[d] == 0:
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")


# --- sizes -----------------------------------------------------------------------------------------------------------


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


def checked_size(size: tuple, name: str) -> tuple[int, ...]:
    """The sizes that were given one by one or as one sequence. Raises: RuntimeError (one is negative)."""
    size = sizes_of(size, name)
    for s in size:
        if s < 0:
            raise RuntimeError(
                f"{name}: Dimension size must be non-negative. Trying to create tensor with negative dimension {s}: {list(size)}"
            )
    return size
