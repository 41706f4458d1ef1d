"""Dimensions as users name them, brought into the form that operators use. No operator lives here."""

from __future__ import annotations

import operator

import numpy as np

from pellucid.core.tensor import dim_error

__all__ = ["all_dims", "keyword_names", "one_dim", "reduced_shape"]


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
    found = [one_dim(d, ndim) for d in dim]
    for d in found:
        if found.count(d) > 1:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return tuple(found) if ndim else ()


def reduced_shape(shape: tuple, dim: tuple[int, ...]) -> tuple[int, ...]:
    """A shape with the given dimensions of size one."""
    return tuple([1 if i in dim else size for i, size in enumerate(shape)])


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
