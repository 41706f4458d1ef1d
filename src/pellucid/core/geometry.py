"""Canonical forms of what the shape operators are asked for, and the checks that belong to them.

Dimensions and sizes by themselves are in `dims.py`.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.core.dims import one_dim
from pellucid.core.errors import type_name
from pellucid.core.tensor import storage_of

__all__ = ["check_pairs", "check_written", "expanded", "one_index", "one_range", "permutation", "repeats",
           "same_memory_as", "shifts_along", "strided", "two_dims", "window"]  # fmt: skip


def same_memory_as(input: np.ndarray, kind: np.dtype) -> np.dtype:
    """The element type that the memory of an array is to be read as; RuntimeError where its last dimension does not allow it."""
    wide, narrow = max(kind.itemsize, input.itemsize), min(kind.itemsize, input.itemsize)
    if wide != narrow and (not input.ndim or input.strides[-1] != input.itemsize):
        raise RuntimeError(f"self.stride(-1) must be 1 to view {input.dtype} as {kind} (different element sizes), on a tensor "
                           f"of at least one dimension, but got shape {list(input.shape)} with strides {list(input.strides)} "
                           "in bytes")
    if kind.itemsize > input.itemsize and input.shape[-1] % (wide // narrow):
        raise RuntimeError(f"self.size(-1) must be divisible by {wide // narrow} to view {input.dtype} as {kind} (different "
                           f"element sizes), but got {input.shape[-1]}")
    return kind


def permutation(input: np.ndarray, dims: tuple) -> tuple[int, ...]:
    """Each dimension once, counted from the front; RuntimeError for another number of them, or one that is named twice."""
    if len(dims) != input.ndim:
        raise RuntimeError("permute(): number of dimensions in the tensor input does not match the length of the desired "
                           f"ordering of dimensions i.e. input.dim() = {input.ndim} is not equal to len(dims) = {len(dims)}")
    found = tuple([d if 0 <= d < input.ndim else one_dim(d, input.ndim) for d in dims])
    if len(set(found)) != len(found):
        raise RuntimeError(f"permute(): duplicate dims are not allowed. Got {list(dims)}")
    return found


def check_pairs(input: np.ndarray) -> None:
    """RuntimeError unless the last dimension holds pairs of real numbers that can be read as complex ones."""
    if input.dtype.char not in "fd":
        raise RuntimeError(
            f"view_as_complex is only supported for float and double tensors, but got a tensor of scalar type: "
            f"{input.dtype}"
            + (" (complex numbers of two halfs are not there: convert with .float())" if input.dtype.char == "e" else "")
        )
    if not input.ndim or input.shape[-1] != 2:
        raise RuntimeError(f"Tensor must have a last dimension of size 2, got shape {list(input.shape)}")
    if input.size and input.strides[-1] != input.itemsize:
        raise RuntimeError("Tensor must have a last dimension with stride 1")
    if input.size and any(s % (2 * input.itemsize) for s in input.strides[:-1]):
        raise RuntimeError("Tensor must have a stride divisible by 2 for all but last dimension")


def expanded(input: np.ndarray, size: tuple) -> tuple[int, ...]:
    """The shape of what is expanded to a size, in which -1 keeps a dimension; RuntimeError where it cannot be."""
    lead = len(size) - input.ndim
    if lead < 0:
        raise RuntimeError(f"expand(torch.{type_name(input.dtype)}Tensor{{{list(input.shape)}}}, size={list(size)}): the "
                           f"number of sizes provided ({len(size)}) must be greater or equal to the number of dimensions in "
                           f"the tensor ({input.ndim})")
    whole = []
    for position, wanted in enumerate(size):
        have = input.shape[position - lead] if position >= lead else None
        if wanted == -1 and have is not None:
            wanted = have
        elif wanted < 0:
            raise RuntimeError(f"The expanded size of the tensor ({wanted}) isn't allowed in a leading, non-existing dimension "
                               f"{position}")
        elif have not in (None, 1, wanted):
            raise RuntimeError(f"The expanded size of the tensor ({wanted}) must match the existing size ({have}) at "
                               f"non-singleton dimension {position}.  Target sizes: {list(size)}.  Tensor sizes: "
                               f"{list(input.shape)}")
        whole.append(wanted)
    return tuple(whole)


def one_index(input: np.ndarray, dim: int, index: int) -> tuple[int, int]:
    """A dimension and an index along it, counted from the front; IndexError for one that is not there."""
    if not input.ndim:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    dim, index = one_dim(dim, input.ndim), int(index)
    size = input.shape[dim]
    if not -size <= index < size:
        raise IndexError(f"select(): index {index} out of range for tensor of size {list(input.shape)} at dimension {dim}")
    return dim, index % size


def one_range(input: np.ndarray, dim: int, start: int, length: int) -> tuple[int, int, int]:
    """A dimension and a range of indices along it, counted from the front; IndexError or RuntimeError where it leaves the dimension."""
    if not input.ndim:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError(f"narrow(): length must be non-negative, got {length}.")
    dim = one_dim(dim, input.ndim)
    size = input.shape[dim]
    if not -size <= start <= size:
        raise IndexError(f"start out of range (expected to be in range of [{-size}, {size}], but got {start})")
    start = start + size if start < 0 else start
    if start + length > size:
        raise RuntimeError(f"start ({start}) + length ({length}) exceeds dimension size ({size}).")
    return dim, start, length


def window(input: np.ndarray, dimension: int, size: int, step: int) -> tuple[int, int, int]:
    """A dimension, counted from the front, with the size and the step of windows along it; RuntimeError where none fits."""
    dimension = one_dim(dimension, input.ndim)
    have = input.shape[dimension] if input.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > have:
        raise RuntimeError(f"maximum size for tensor at dimension {dimension} is {have} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    return dimension, size, step


def shifts_along(input: np.ndarray, shifts, dims=()) -> tuple[tuple, tuple[int, ...]]:
    """Shifts and the dimensions they are along, as tuples; RuntimeError or IndexError where they do not belong together."""
    shifts = tuple(shifts) if isinstance(shifts, (tuple, list)) else (shifts,)
    dims = tuple(dims) if isinstance(dims, (tuple, list)) else () if dims is None else (dims,)
    if not shifts:
        raise RuntimeError("`shifts` required")
    if (dims and len(dims) != len(shifts)) or (not dims and len(shifts) > 1):
        raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}")
    if dims and not input.ndim:
        raise IndexError(f"Dimension specified as {dims[0]} but tensor has no dimensions")
    return shifts, tuple([one_dim(d, input.ndim) for d in dims])


def repeats(input: np.ndarray, sizes: tuple) -> tuple:
    """How often each dimension is repeated, further ones in front; RuntimeError for too few numbers, or a negative one."""
    if len(sizes) < input.ndim:
        raise RuntimeError("Number of dimensions of repeat dims can not be smaller than number of dimensions of tensor: got "
                           f"{len(sizes)} repeats for {input.ndim} dimensions")
    if any(s < 0 for s in sizes):
        raise RuntimeError(f"Trying to create tensor with negative dimension: repeats are {list(sizes)}")
    return tuple(sizes)


def check_written(target: np.ndarray, shape: tuple[int, ...]) -> None:
    """RuntimeError where values of a shape cannot be broadcast to the tensor they are written to."""
    whole, lead = target.shape, target.ndim - len(shape)
    if lead < 0:
        raise RuntimeError(
            f"output with shape {list(whole)} doesn't match the broadcast shape {list(shape)}: the number of sizes of the values "
            f"({len(shape)}) must be less or equal to the number of dimensions written to ({target.ndim})"
        )
    for dim in range(target.ndim - 1, lead - 1, -1):
        if shape[dim - lead] not in (1, whole[dim]):
            raise RuntimeError(
                f"The size of tensor a ({whole[dim]}) must match the size of tensor b ({shape[dim - lead]}) at non-singleton "
                f"dimension {dim}: values of shape {list(shape)} do not fit into shape {list(whole)}"
            )


def two_dims(ndim: int, dim1: int, dim2: int) -> tuple[int, int]:
    """The two dimensions of a diagonal; RuntimeError if they are the same."""
    first, second = one_dim(dim1, ndim), one_dim(dim2, ndim)
    if first == second:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    return first, second


# --- any strides -----------------------------------------------------------------------------------------------------


def strided(array: np.ndarray, size: tuple, stride: tuple, start: int) -> np.ndarray:
    """A view of an array's storage; `start` counts elements from the array's own first one."""
    storage = storage_of(array)
    flat = storage.reshape(-1) if storage.flags.c_contiguous else storage.ravel(order="K")
    if flat.dtype != array.dtype:
        flat = flat.view(array.dtype)
    first = (array.ctypes.data - flat.ctypes.data) // array.itemsize + start
    reach = first + sum([(n - 1) * s for n, s in zip(size, stride, strict=True)]) if math.prod(size) else first
    if first < 0 or (math.prod(size) and reach >= flat.size):
        raise RuntimeError(f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset {first}, and itemsize "
                           f"{array.itemsize} requiring a storage size of {(reach + 1) * array.itemsize} are out of bounds for "
                           f"storage of size {flat.nbytes}")
    return np.lib.stride_tricks.as_strided(flat[first:], size, [s * array.itemsize for s in stride])
