"""Checks of several tensors that are to become one."""

from __future__ import annotations

from pellucid.core.dims import one_dim
from pellucid.core.tensor import Tensor

__all__ = ["check_cat", "check_stack", "list_of"]


def check_cat(tensors, dim=0) -> int:
    """The dimension to join along; RuntimeError where the shapes do not fit. Tensors of shape [0] are ignored."""
    first = next((a for a in tensors if a.shape != (0,)), tensors[0])
    for position, tensor in enumerate(tensors):
        if not tensor.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {position}) cannot be concatenated; use stack")
    dim = one_dim(dim, first.ndim)
    for position, tensor in enumerate(tensors):
        if tensor.shape == (0,):
            continue
        if tensor.ndim != first.ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {tensor.ndim}")
        for d in range(first.ndim):
            if d != dim and tensor.shape[d] != first.shape[d]:
                raise RuntimeError(f"Sizes of tensors must match except in dimension {dim}. Expected size {first.shape[d]} but got "
                                   f"size {tensor.shape[d]} for tensor number {position} in the list.")
    return dim


def list_of(tensors, name: str) -> list:
    """A sequence of tensors as a list; TypeError for what is none."""
    if isinstance(tensors, Tensor) or not hasattr(tensors, "__iter__"):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}")
    tensors = list(tensors)
    for position, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}(): expected Tensor as element {position} in argument 0, but got {type(tensor).__name__}")
    return tensors


def check_stack(tensors, dim=0) -> int:
    """The dimension to stack along; RuntimeError where there is nothing, or shapes differ."""
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    dim = one_dim(dim, tensors[0].ndim + 1)
    for position, array in enumerate(tensors):
        if array.shape != tensors[0].shape:
            raise RuntimeError(f"stack expects each tensor to be equal size, but got {list(tensors[0].shape)} at entry 0 and "
                               f"{list(array.shape)} at entry {position}")
    return dim
