"""`scatter` in its forms (a tensor or a number, written, added or multiplied), `take_along_dim`, `index_fill`,
`index_reduce`. The operators are in `ops/scatter.py`, `ops/scatter_reduce.py` and `ops/slices.py`.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.call import inplace
from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.dims import one_dim
from pellucid.core.place_checks import check_slices
from pellucid.core.tensor import Tensor
from pellucid.ops.families import in_place
from pellucid.ops.scatter import gather, scatter_add, scatter_factors, scatter_src, scatter_value
from pellucid.ops.scatter_reduce import index_reduce_raw
from pellucid.ops.slices import index_copy, index_fill_number

__all__ = ["index_fill", "index_fill_", "index_reduce", "scatter", "scatter_", "take_along_dim"]


@composite(method=True)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """`gather` with index and input broadcast against each other; without `dim`, of the elements in one row."""
    if indices._array.dtype != np.int64:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype}")
    if dim is None:
        return gather(input.reshape(-1), 0, T.counted(indices, input.numel()).reshape(-1))
    if input.dim() != indices.dim():
        raise RuntimeError("torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
                           f"{input.dim()} dimensions for input, and {indices.dim()} dimensions for indices")
    dim = one_dim(dim, input.dim())
    shape = [max(a, b) if 0 not in (a, b) else 0 for a, b in zip(input.shape, indices.shape, strict=True)]
    for_input, for_index = list(shape), list(shape)
    for_input[dim], for_index[dim] = input.shape[dim], indices.shape[dim]
    return gather(input.expand(for_input), dim, T.counted(indices, input.shape[dim]).expand(for_index))


def _reducing(input: Tensor, index: Tensor, given, reduce: str) -> Tensor:
    """The values of a scatter that adds or multiplies."""
    if reduce not in ("add", "multiply"):
        raise RuntimeError("reduce argument must be either add or multiply.")
    return given if isinstance(given, Tensor) else input.new_full(index.shape, given)


@composite(method=True)
def scatter(input: Tensor, dim: int, index: Tensor, src=None, *, value=None, reduce: str | None = None) -> Tensor:
    """`input` with the elements of `src` (or one number) written at `index` along `dim`.

    Args:
        reduce: "add" or "multiply" instead of writing.
    """
    given = value if src is None else src
    if reduce is None:
        return (scatter_src if isinstance(given, Tensor) else scatter_value)(input, dim, index, given)
    values = _reducing(input, index, given, reduce)
    if reduce == "add":
        return scatter_add(input, dim, index, values)
    return input * scatter_factors(input, one_dim(dim, input.dim()), index, values)


def scatter_(self: Tensor, dim: int, index: Tensor, src=None, *, value=None, reduce: str | None = None) -> Tensor:
    """In-place form of `scatter`."""
    given = value if src is None else src
    if reduce is None:
        write = scatter_src if isinstance(given, Tensor) else scatter_value
        return inplace(write.operator, self, (dim, index, given))
    values = _reducing(self, index, given, reduce)
    if reduce == "add":
        return self.scatter_add_(dim, index, values)
    return self.mul_(scatter_factors(self, one_dim(dim, self.dim()), index, values))


Tensor.scatter_ = scatter_


def _filled(fill, copy, input: Tensor, dim: int, index: Tensor, value) -> Tensor:
    """A number goes one way, the value of a 0-d tensor, which may have a gradient, the other."""
    if not isinstance(value, Tensor):
        return fill(input, dim, index, value)
    if value.dim():
        raise RuntimeError(f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.dim()} dimension(s).")
    shape = list(input.shape)
    if shape:
        shape[one_dim(dim, input.dim())] = index.numel()
    return copy(input, dim, index, value.to(input.dtype).expand(shape))


def index_fill_(self: Tensor, dim: int, index: Tensor, value) -> Tensor:
    """In-place form of `index_fill`."""
    return _filled(_fill_, Tensor.index_copy_, self, dim, index, value)


_fill_ = in_place("index_fill_", lambda self, *rest: (index_fill_number, *rest))


@composite(method=True, inplace=index_fill_)
def index_fill(input: Tensor, dim: int, index: Tensor, value) -> Tensor:
    """`input` with one number, or the value of a 0-d tensor, in all slices at `index` along `dim`."""
    return _filled(index_fill_number, index_copy, input, dim, index, value)


def _as_scatter(input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str):
    """The index of `index_reduce` in the shape of its source, checked."""
    if reduce not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {reduce}.")
    array, values = index._array, source._array
    dim = check_slices("index_reduce", input._array, dim, array, values)
    shape = [1] * values.ndim
    if shape:
        shape[dim] = array.size
    return dim, index.view(shape).expand(values.shape)


@composite(method=True)
def index_reduce(
    input: Tensor, dim: int, index: Tensor, source: Tensor, reduce: str, *, include_self: bool = True
) -> Tensor:
    """`input` with the slices of `source` that fall on one index reduced: "prod", "mean", "amax" or "amin"."""
    dim, places = _as_scatter(input, dim, index, source, reduce)
    return index_reduce_raw(input, dim, places, source, reduce, include_self)


def _in_place(self, dim, index, source, reduce, *, include_self=True) -> tuple:
    return index_reduce_raw, *_as_scatter(self, dim, index, source, reduce), source, reduce, include_self


Tensor.index_reduce_ = in_place("index_reduce_", _in_place)
