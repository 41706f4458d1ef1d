"""Elements read and written along one dimension by index: gather, scatter and their relatives.

Whole slices by index are in `slices.py`. Indices that repeat add up in gradients; where values are written and the last one
wins, so does its gradient.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.call import inplace
from pellucid.autograd.operator import Array, Index, composite, operator
from pellucid.autograd.operator import tensors as T
from pellucid.core.dims import one_dim
from pellucid.core.errors import shape_text
from pellucid.core.tensor import Tensor
from pellucid.core.values import number_in
from pellucid.kernels.accumulation import add_along, places_of
from pellucid.ops.batches import for_each

__all__ = ["gather", "scatter", "scatter_add", "take_along_dim"]


# --- checks and places -------------------------------------------------------------------------------------------------


def size_along(array: np.ndarray, dim: int) -> int:
    """The size of a dimension; a number counts as a row of one."""
    return array.shape[dim] if array.ndim else 1


def check_index(name: str, index: np.ndarray, size: int, dim: int) -> None:
    """RuntimeError for an index of another type than int64 or int32, or outside [0, size). An empty one may be of any type."""
    if not index.size:
        return
    if index.dtype not in (np.int64, np.int32):
        raise RuntimeError(f"{name}(): Expected dtype int64 for index, got {index.dtype.name}")
    if not (0 <= index.min() and index.max() < size):
        wrong = index[(index < 0) | (index >= size)].flat[0]
        raise RuntimeError(f"index {wrong} is out of bounds for dimension {dim} with size {size}")


def check_shapes(name: str, input: np.ndarray, dim: int, index: np.ndarray, src: np.ndarray | None = None) -> None:
    """RuntimeError unless the index fits into the tensor on all dimensions but `dim`, and into `src` on all."""
    if not index.size:
        return
    if max(index.ndim, 1) != max(input.ndim, 1):
        what = "self" if src is not None else "input"
        raise RuntimeError(f"Index tensor must have the same number of dimensions as {what} tensor")
    if src is not None and max(index.ndim, 1) != max(src.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    for d in range(index.ndim):
        too_large = d != dim and index.shape[d] > size_along(input, d)
        if too_large or (src is not None and index.shape[d] > size_along(src, d)):
            also = f" and to be no larger than src {shape_text(src)}" if src is not None else ""
            raise RuntimeError(f"{name}(): Expected index {shape_text(index)} to be no larger than self {shape_text(input)} apart "
                               f"from dimension {dim}{also}")


def corner(array: np.ndarray, shape: tuple) -> np.ndarray:
    """The part of an array that an index of `shape` covers."""
    return array[tuple(slice(n) for n in shape)] if array.ndim else array


def in_rows(F, function, size: int, batched: set, operands: dict, number: bool, dim: int, *rest):
    """`function(input, dim, index, ...)` on a batch, in which numbers are rows of one; `number`: so is each result."""
    whole = [for_each(F, t, name in batched, size) for name, t in operands.items()]
    input, index, *src = [t if t.ndim > 1 else F.unsqueeze(t, 1) for t in whole]
    made = function(input, dim + 1, index, *src, *rest)
    return made[:, 0] if number else made


# --- reading -----------------------------------------------------------------------------------------------------------


@operator(method=True, linear=True)
class gather:
    """The elements of `input` at `index` along one dimension: result[i][j] = input[index[i][j]][j] for dim 0.

    input: [*S]; index: int64, no larger than input apart from `dim`. Returns the shape of index.
    """

    def canonical(input, dim: int, index, sparse_grad: bool = False):
        dim = one_dim(dim, input.ndim)
        check_shapes("gather", input, dim, index)
        check_index("gather", index, size_along(input, dim), dim)
        return dim, sparse_grad

    def forward(xp, input: Array, dim: int, index: Index, *, sparse_grad: bool = False):
        if not index.size:
            return xp.empty(index.shape, input.dtype)
        return xp.array((input if input.ndim else input.reshape(1))[places_of(index, dim)]).reshape(index.shape)

    def vjp_input(F, grad, input_shape, dim, index): return F.gather_backward(grad, dim, index, input_shape)

    def batch(F, size_of_batch, batched, input, dim, index):
        number = index.ndim == ("index" in batched)
        return in_rows(F, F.gather, size_of_batch, batched, {"input": input, "index": index}, number, dim)

    def samples(make):
        yield (make(3, 4), 1, make.integers(3, 2, high=4)), {}
        yield (make(3, 4), 0, make.integers(2, 3, high=3)), {}
        yield (make(), 0, make.integers(high=1)), {}
        yield (make(3), 0, np.array([0, 0, 2, 0])), {}
        yield (make(3), 0, np.array(1)), {}


@operator(module=None, linear=True)
class gather_backward:
    """Zeros of `input_shape` with each element added where `gather` took it from."""

    def forward(xp, input: Array, dim: int, index: Index, input_shape: tuple):
        whole = xp.zeros(input_shape, input.dtype)
        add_along(whole, dim, index, input, exact=True)
        return whole

    def vjp_input(F, grad, dim, index): return F.gather(grad, dim, index)

    def batch(F, size_of_batch, batched, input, dim, index, input_shape):
        operands, shape = {"input": input, "index": index}, (size_of_batch, *(input_shape or (1,)))
        return in_rows(F, F.gather_backward, size_of_batch, batched, operands, not input_shape, dim, shape)

    def samples(make):
        yield (make(3, 2), 1, make.integers(3, 2, high=4), (3, 4)), {}
        yield (make(), 0, np.array(0), ()), {}


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


# --- writing -----------------------------------------------------------------------------------------------------------


class _Scatter:
    """What scattering a tensor asks of its operands.

    input: [*S]; index: int64, no larger than src, and than input apart from `dim`. Returns [*S].
    """

    def canonical(input, dim: int, index, src):
        dim = one_dim(dim, input.ndim)
        check_shapes("scatter", input, dim, index, src)
        check_index("scatter", index, size_along(input, dim), dim)
        if src.dtype != input.dtype:
            raise RuntimeError(f"scatter(): Expected self.dtype to be equal to src.dtype: got {input.dtype.name} and {src.dtype.name}")
        return dim

    def vjp_src(F, grad, dim, index, src_shape): return F.into_corner(F.gather(grad, dim, index), src_shape)


@operator(method=True, inplace=True, linear=True)
class scatter_add(_Scatter):
    """`input` with each element of `src` added at its index along `dim`."""

    def forward(xp, input: Array, dim: int, index: Index, src: Array):
        whole = xp.array(input, order="C")
        add_along(whole, dim, index, corner(src, index.shape))
        return whole

    def vjp_input(F, grad): return grad

    def batch(F, size_of_batch, batched, input, dim, index, src):
        operands, number = {"input": input, "index": index, "src": src}, input.ndim == ("input" in batched)
        return in_rows(F, F.scatter_add, size_of_batch, batched, operands, number, dim)

    def samples(make):
        yield (make(3, 4), 1, make.integers(3, 2, high=4), make(3, 2)), {}
        yield (make(3, 4), 0, make.integers(2, 3, high=3), make(3, 4)), {}
        yield (make(), 0, np.array([0, 0]), make(2)), {}


def _write(array: np.ndarray, dim: int, index: np.ndarray, values) -> np.ndarray:
    """A copy of an array with values written to the places that an index addresses."""
    whole = np.array(array, order="C")
    if index.size:
        (whole if whole.ndim else whole.reshape(1))[places_of(index, dim)] = values
    return whole


@operator(module=None, node="ScatterBackward0", linear=True)
class scatter_src(_Scatter):
    """`input` with each element of `src` written at its index along `dim`; of repeated indices the last wins."""

    def forward(xp, input: Array, dim: int, index: Index, src: Array):
        return _write(input, dim, index, corner(src, index.shape))

    def vjp_input(F, grad, dim, index): return F.scatter_value(grad, dim, index, 0)

    def batch(F, size_of_batch, batched, input, dim, index, src):
        operands, number = {"input": input, "index": index, "src": src}, input.ndim == ("input" in batched)
        return in_rows(F, F.scatter_src, size_of_batch, batched, operands, number, dim)

    def samples(make): yield (make(3, 4), 1, np.array([[0, 2], [1, 3], [3, 0]]), make(3, 2)), {}


@operator(module=None, node="ScatterBackward1")
class scatter_value:
    """`input` with one number written at every index along `dim`."""

    def canonical(input, dim: int, index, value):
        dim = one_dim(dim, input.ndim)
        check_shapes("scatter", input, dim, index)
        check_index("scatter", index, size_along(input, dim), dim)
        return dim, value

    def forward(xp, input: Array, dim: int, index: Index, value):
        return _write(input, dim, index, number_in(value, input.dtype))

    def vjp_input(F, grad, dim, index): return F.scatter_value(grad, dim, index, 0)
    def jvp_input(F, tangent, dim, index): return F.scatter_value(tangent, dim, index, 0)

    def batch(F, size_of_batch, batched, input, dim, index, value):
        operands, number = {"input": input, "index": index}, input.ndim == ("input" in batched)
        return in_rows(F, F.scatter_value, size_of_batch, batched, operands, number, dim, value)

    def samples(make): yield (make(3, 4), 1, np.array([[0, 2], [1, 3], [3, 0]]), 1.5), {}


@operator(module=None, linear=True, batching="shift")
class into_corner:
    """Zeros of `whole_shape` that begin, along every dimension, with the operand."""

    def forward(xp, input: Array, whole_shape: tuple):
        whole = xp.zeros(whole_shape, input.dtype)
        corner(whole, input.shape)[...] = input
        return whole

    def vjp_input(F, grad, input_shape): return F.corner_of(grad, input_shape)
    def samples(make): yield (make(2, 3), (3, 3)), {}


@operator(module=None, linear=True, batching="shift")
class corner_of:
    """The part of the operand that begins every dimension and has `whole_shape`."""

    def forward(xp, input: Array, whole_shape: tuple): return corner(input, whole_shape).copy()
    def vjp_input(F, grad, input_shape): return F.into_corner(grad, input_shape)
    def samples(make): yield (make(3, 3), (2, 3)), {}


@operator(module=None)
class scatter_factors:
    """For each element the product of what `scatter(reduce="multiply")` multiplies it by; without a derivative."""

    def forward(xp, input: Index, dim: int, index: Index, src: Index):
        factors = np.ones_like(input, shape=input.shape or (1,))
        np.multiply.at(factors, places_of(index, dim), corner(src, index.shape))
        return factors.reshape(input.shape)

    def batch(F, size_of_batch, batched, input, dim, index, src):
        operands, number = {"input": input, "index": index, "src": src}, input.ndim == ("input" in batched)
        return in_rows(F, F.scatter_factors, size_of_batch, batched, operands, number, dim)


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
