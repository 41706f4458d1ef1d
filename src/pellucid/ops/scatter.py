"""Reading and writing along one dimension by index: gather, index_select, scatter, index_add and their relatives.

Indices that repeat add up in gradients; where values are written and the last one wins, so does its gradient.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.call import inplace
from pellucid.autograd.operator import Array, Index, composite, operator
from pellucid.core.errors import shape_text, type_name
from pellucid.core.tensor import Tensor, wrap
from pellucid.ops.accumulation import add_rows, add_to, wrapped
from pellucid.ops.arithmetic import scaled
from pellucid.ops.dims import one_dim

__all__ = [
    "gather",
    "index_add",
    "index_copy",
    "index_fill",
    "index_select",
    "scatter",
    "scatter_add",
    "take_along_dim",
]


# --- checks and places -------------------------------------------------------------------------------------------------


def check_index(name: str, index: np.ndarray, size: int, dim: int) -> None:
    """RuntimeError for an index of another type than int64 or int32, or outside [0, size). An empty one may be of any type."""
    if not index.size:
        return
    if index.dtype not in (np.int64, np.int32):
        raise RuntimeError(f"{name}(): Expected dtype int64 for index, got {index.dtype.name}")
    if not (0 <= index.min() and index.max() < size):
        wrong = index[(index < 0) | (index >= size)].flat[0]
        raise RuntimeError(f"index {wrong} is out of bounds for dimension {dim} with size {size}")


def _places(index: np.ndarray, dim: int) -> tuple:
    """Index arrays that address, for each element of `index`, itself with the coordinate `dim` replaced."""
    if not index.ndim:
        return (index,)
    ndim = index.ndim
    return tuple(
        [
            index if d == dim else np.arange(n).reshape((1,) * d + (n,) + (1,) * (ndim - d - 1))
            for d, n in enumerate(index.shape)
        ]
    )


def _check_shapes(name: str, input: np.ndarray, dim: int, index: np.ndarray, src: np.ndarray | None = None) -> None:
    """RuntimeError unless the index fits into the tensor on all dimensions but `dim`, and into `src` on all."""
    if not index.size:
        return
    if max(index.ndim, 1) != max(input.ndim, 1):
        raise RuntimeError(
            f"Index tensor must have the same number of dimensions as {'self' if src is not None else 'input'} tensor"
        )
    if src is not None and max(index.ndim, 1) != max(src.ndim, 1):
        raise RuntimeError("Index tensor must have the same number of dimensions as src tensor")
    for d in range(index.ndim):
        too_large = d != dim and index.shape[d] > (input.shape[d] if input.ndim else 1)
        if too_large or (src is not None and index.shape[d] > (src.shape[d] if src.ndim else 1)):
            raise RuntimeError(
                f"{name}(): Expected index {shape_text(index)} to be no larger than self {shape_text(input)} "
                f"apart from dimension "
                f"{dim}" + (f" and to be no larger than src {shape_text(src)}" if src is not None else "")
            )


def _corner(array: np.ndarray, shape: tuple) -> np.ndarray:
    """The part of an array that an index of `shape` covers."""
    return array[tuple(slice(n) for n in shape)] if array.ndim else array


# --- reading -----------------------------------------------------------------------------------------------------------


@operator(method=True, linear=True)
class gather:
    """The elements of `input` at `index` along one dimension: result[i][j] = input[index[i][j]][j] for dim 0.

    input: [*S]; index: int64, no larger than input apart from `dim`. Returns the shape of index.
    """

    def canonical(input, dim: int, index, sparse_grad: bool = False):
        dim = one_dim(dim, input.ndim)
        _check_shapes("gather", input, dim, index)
        check_index("gather", index, input.shape[dim] if input.ndim else 1, dim)
        return dim, sparse_grad

    def forward(xp, input: Array, dim: int, index: Index, *, sparse_grad: bool = False):
        if not index.size:
            return xp.empty(index.shape, input.dtype)
        return xp.array((input if input.ndim else input.reshape(1))[_places(index, dim)]).reshape(index.shape)

    def vjp_input(F, grad, input_shape, dim, index):
        return F.gather_backward(grad, input_shape, dim, index)

    def samples(make):
        yield (make(3, 4), 1, make.integers(3, 2, high=4)), {}
        yield (make(3, 4), 0, make.integers(2, 3, high=3)), {}
        yield (make(), 0, make.integers(high=1)), {}
        yield (make(3), 0, np.array([0, 0, 2, 0])), {}


@operator(module=None, linear=True)
class gather_backward:
    """Zeros of `input_shape` with each element added where `gather` took it from."""

    def forward(xp, input: Array, input_shape: tuple, dim: int, index: Index):
        whole = xp.zeros(input_shape, input.dtype)
        flat = _flat_places(index, input_shape, dim)
        add_to(whole, flat, input.reshape(-1))
        return whole

    def vjp_input(F, grad, dim, index):
        return F.gather(grad, dim, index)

    def samples(make):
        yield (make(3, 2), (3, 4), 1, make.integers(3, 2, high=4)), {}


def _flat_places(index: np.ndarray, shape: tuple, dim: int) -> np.ndarray:
    """The places that `_places` addresses, counted through a contiguous array of `shape`."""
    if not shape:
        return np.zeros(index.size, np.int64)
    if not index.size:
        return np.zeros(0, np.int64)
    grid = np.broadcast_arrays(*_places(index if index.ndim else index.reshape(1), dim))
    return np.ravel_multi_index([g.reshape(-1) for g in grid], shape)


@composite(method=True)
def take_along_dim(input: Tensor, indices: Tensor, dim: int | None = None) -> Tensor:
    """`gather` with index and input broadcast against each other; without `dim`, of the elements in one row."""
    if indices._array.dtype != np.int64:
        raise RuntimeError(f"torch.take_along_dim(): dtype of indices should be Long but got {indices.dtype}")
    if dim is None:
        return gather(input.reshape(-1), 0, _counted(indices, input.numel()).reshape(-1))
    if input.dim() != indices.dim():
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, but got "
            f"{input.dim()} dimensions for input, and {indices.dim()} dimensions for indices"
        )
    dim = one_dim(dim, input.dim())
    shape = [max(a, b) if 0 not in (a, b) else 0 for a, b in zip(input.shape, indices.shape, strict=True)]
    for_input, for_index = list(shape), list(shape)
    for_input[dim], for_index[dim] = input.shape[dim], indices.shape[dim]
    return gather(input.expand(for_input), dim, _counted(indices, input.shape[dim]).expand(for_index))


def _counted(indices: Tensor, size: int) -> Tensor:
    """Indices with negative ones counted from the end."""
    return wrap(wrapped(indices._array, size))


def _index_vector(name: str, index: np.ndarray, size: int, dim: int) -> None:
    if index.ndim > 1:
        raise IndexError(
            f"{name}(): Index is supposed to be a vector, but got dim: {index.ndim} with type: {index.dtype.name}"
        )
    if index.dtype not in (np.int64, np.int32):
        raise RuntimeError(f"{name}(): Expected dtype int32 or int64 for index, got {index.dtype.name}")
    if index.size and not (-size <= index.min() and index.max() < size):
        raise IndexError(f"{name}(): index out of range in self: dimension {dim} has size {size}")


@operator(method=True, linear=True)
class index_select:
    """The slices of `input` at `index` along one dimension.

    input: [*S]; index: [n], int64 or int32. Returns [*S with S[dim] = n].
    """

    def canonical(input, dim: int, index):
        dim = one_dim(dim, input.ndim)
        _index_vector("index_select", index, input.shape[dim] if input.ndim else 1, dim)
        return dim

    def forward(xp, input: Array, dim: int, index: Index):
        if not input.ndim:
            return input.copy()
        return xp.take(input, index.reshape(-1), dim)

    def vjp_input(F, grad, input_shape, dim, index):
        return F.index_select_backward(grad, input_shape, dim, index)

    def samples(make):
        yield (make(3, 4), 1, np.array([0, 3, 3])), {}
        yield (make(3), 0, np.array(1)), {}


@operator(module=None, linear=True)
class index_select_backward:
    """Zeros of `input_shape` with each slice added where `index_select` took it from."""

    def forward(xp, input: Array, input_shape: tuple, dim: int, index: Index):
        if not input_shape:
            return input.copy().reshape(())
        return _added(xp.zeros(input_shape, input.dtype), dim, index.reshape(-1), input)

    def vjp_input(F, grad, dim, index):
        return F.index_select(grad, dim, index)

    def samples(make):
        yield (make(3, 3), (3, 4), 1, np.array([0, 3, 3])), {}


def _added(whole: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray) -> np.ndarray:
    """Slices of `source` added to slices of `whole`, which is changed and returned; indices may repeat."""
    size, index = whole.shape[dim], wrapped(index, whole.shape[dim])
    rest = whole.shape[:dim] + whole.shape[dim + 1 :]
    rows = np.moveaxis(source, dim, 0).reshape(index.size, -1) if index.size else source.reshape(0, 0)
    whole += np.moveaxis(add_rows(size, index, rows, whole.dtype, rest), 0, dim)
    return whole


# --- writing -----------------------------------------------------------------------------------------------------------


@operator(method=True, inplace=True, linear=True)
class scatter_add:
    """`input` with each element of `src` added at its index along `dim`.

    input: [*S]; index: int64, no larger than src, and than input apart from `dim`. Returns [*S].
    """

    def canonical(input, dim: int, index, src):
        dim = one_dim(dim, input.ndim)
        _check_shapes("scatter_add", input, dim, index, src)
        check_index("scatter", index, input.shape[dim] if input.ndim else 1, dim)
        if src.dtype != input.dtype:
            raise RuntimeError(
                f"scatter(): Expected self.dtype to be equal to src.dtype: got {input.dtype.name} and {src.dtype.name}"
            )
        return dim

    def forward(xp, input: Array, dim: int, index: Index, src: Array):
        whole = xp.array(input, order="C")
        if index.size:
            np.add.at(whole.reshape(-1), _flat_places(index, whole.shape, dim), _corner(src, index.shape).reshape(-1))
        return whole

    def vjp_input(F, grad):
        return grad

    def vjp_src(F, grad, dim, index, src_shape):
        return F.into_corner(F.gather(grad, dim, index), src_shape)

    def samples(make):
        yield (make(3, 4), 1, make.integers(3, 2, high=4), make(3, 2)), {}
        yield (make(3, 4), 0, make.integers(2, 3, high=3), make(3, 4)), {}


@operator(module=None, linear=True)
class into_corner:
    """Zeros of `shape` that begin, along every dimension, with the operand."""

    def forward(xp, input: Array, shape: tuple):
        whole = xp.zeros(shape, input.dtype)
        _corner(whole, input.shape)[...] = input
        return whole

    def vjp_input(F, grad, input_shape):
        return F.corner_of(grad, input_shape)

    def samples(make):
        yield (make(2, 3), (3, 3)), {}


@operator(module=None, linear=True)
class corner_of:
    """The part of the operand that begins every dimension and has `shape`."""

    def forward(xp, input: Array, shape: tuple):
        return _corner(input, shape).copy()

    def vjp_input(F, grad, input_shape):
        return F.into_corner(grad, input_shape)

    def samples(make):
        yield (make(3, 3), (2, 3)), {}


@operator(module=None, name="scatter_src", node="ScatterBackward0", linear=True)
class scatter_src:
    """`input` with each element of `src` written at its index along `dim`; of repeated indices the last wins."""

    canonical = scatter_add.operator.declaration.canonical

    def forward(xp, input: Array, dim: int, index: Index, src: Array):
        whole = xp.array(input, order="C")
        if index.size:
            (whole if whole.ndim else whole.reshape(1))[_places(index if index.ndim else index.reshape(1), dim)] = (
                _corner(src, index.shape)
            )
        return whole

    def vjp_input(F, grad, dim, index):
        return F.scatter_value(grad, dim, index, 0)

    def vjp_src(F, grad, dim, index, src_shape):
        return F.into_corner(F.gather(grad, dim, index), src_shape)

    def samples(make):
        yield (make(3, 4), 1, np.array([[0, 2], [1, 3], [3, 0]]), make(3, 2)), {}


@operator(module=None, name="scatter_value", node="ScatterBackward1")
class scatter_value:
    """`input` with one number written at every index along `dim`."""

    def canonical(input, dim: int, index, value):
        dim = one_dim(dim, input.ndim)
        _check_shapes("scatter", input, dim, index)
        check_index("scatter", index, input.shape[dim] if input.ndim else 1, dim)
        return dim, value

    def forward(xp, input: Array, dim: int, index: Index, value):
        whole = xp.array(input, order="C")
        if index.size:
            (whole if whole.ndim else whole.reshape(1))[_places(index if index.ndim else index.reshape(1), dim)] = value
        return whole

    def vjp_input(F, grad, dim, index):
        return F.scatter_value(grad, dim, index, 0)

    def samples(make):
        yield (make(3, 4), 1, np.array([[0, 2], [1, 3], [3, 0]]), 1.5), {}


def _scatter_form(src, value, reduce: str | None):
    """Which operator a call of `scatter` means, and its last argument."""
    given = value if src is None else src
    if reduce is not None:
        if reduce not in ("add", "multiply"):
            raise RuntimeError("reduce argument must be either add or multiply.")
        return None, given
    return (scatter_src if isinstance(given, Tensor) else scatter_value), given


@composite(method=True)
def scatter(input: Tensor, dim: int, index: Tensor, src=None, *, value=None, reduce: str | None = None) -> Tensor:
    """`input` with the elements of `src` (or one number) written at `index` along `dim`.

    Args:
        reduce: "add" or "multiply" instead of writing.
    """
    function, given = _scatter_form(src, value, reduce)
    if function is not None:
        return function(input, dim, index, given)
    values = given if isinstance(given, Tensor) else input.new_full(index.shape, given)
    if reduce == "add":
        return scatter_add(input, dim, index, values)
    return input * scatter_product(input, one_dim(dim, input.dim()), index, values)


def scatter_product(input: Tensor, dim: int, index: Tensor, src: Tensor) -> Tensor:
    """For each element the product of what `scatter(reduce="multiply")` multiplies it by; without a derivative."""
    factors = np.ones_like(input._array, shape=input._array.shape or (1,))
    places = index._array if index._array.ndim else index._array.reshape(1)
    np.multiply.at(factors, _places(places, dim), _corner(src._array, index._array.shape))
    return wrap(factors.reshape(input._array.shape))


def scatter_(self: Tensor, dim: int, index: Tensor, src=None, *, value=None, reduce: str | None = None) -> Tensor:
    """In-place form of `scatter`."""
    function, given = _scatter_form(src, value, reduce)
    if function is not None:
        return inplace(function.operator, self, (dim, index, given))
    values = given if isinstance(given, Tensor) else self.new_full(index.shape, given)
    if reduce == "add":
        return self.scatter_add_(dim, index, values)
    return self.mul_(scatter_product(self, one_dim(dim, self.dim()), index, values))


Tensor.scatter_ = scatter_


def _check_slices(name: str, input: np.ndarray, dim: int, index: np.ndarray, source: np.ndarray) -> int:
    """The dimension, where `source` holds one slice of `input` for each index; RuntimeError else."""
    dim = one_dim(dim, input.ndim)
    _index_vector(name, index, input.shape[dim] if input.ndim else 1, dim)
    if source.dtype != input.dtype:
        ours, theirs = type_name(input.dtype), type_name(source.dtype)
        if name == "index_add":
            raise RuntimeError(f"index_add_(): self ({ours}) and source ({theirs}) must have the same scalar type")
        raise RuntimeError(
            f"{name}_(): self and source expected to have the same dtype, but got (self) {ours} and (source) {theirs}"
        )
    expected = list(input.shape)
    if expected:
        expected[dim] = index.size
    if list(source.shape) != expected and not (index.size == 1 and source.size == 1):
        if (source.shape[dim] if source.ndim else 1) != index.size:
            have = source.shape[dim] if source.ndim else 1
            if name == "index_add":
                raise RuntimeError(
                    f"index_add_(): Number of indices ({index.size}) should be equal to source.size(dim): ({have}), for dim: {dim}"
                )
            raise IndexError(
                f"{name}_(): Number of indices ({index.size}) should be equal to source.size(dim) ({have})"
            )
        raise RuntimeError(
            f"{name}(): source {shape_text(source)} does not fit self {shape_text(input)}: expected {expected}"
        )
    return dim


@operator(method=True, inplace=True, linear=True)
class index_add:
    """`input` with slices of `source`, times alpha, added at `index` along `dim`; repeated indices add up."""

    def canonical(input, dim: int, index, source, alpha=1):
        return _check_slices("index_add", input, dim, index, source), alpha

    def forward(xp, input: Array, dim: int, index: Index, source: Array, *, alpha=1):
        added = source if alpha == 1 else scaled(source, alpha)
        whole = xp.array(input, order="C")
        if not whole.ndim:
            return whole + added.sum(dtype=whole.dtype)
        return _added(
            whole, dim, index.reshape(-1), added.reshape((*input.shape[:dim], index.size, *input.shape[dim + 1 :]))
        )

    def vjp_input(F, grad):
        return grad

    def vjp_source(F, grad, dim, index, source_shape, alpha):
        given = F.reshape_to(F.index_select(grad, dim, index), source_shape)
        return given if alpha == 1 else given * alpha

    def samples(make):
        yield (make(3, 4), 1, np.array([0, 3, 3]), make(3, 3)), {"alpha": 2}
        yield (make(3), 0, np.array([1, 1]), make(2)), {}


@operator(module=None, linear=True)
class reshape_to:
    """A copy in another shape of as many elements."""

    def forward(xp, input: Array, shape: tuple):
        return input.reshape(shape).copy()

    def vjp_input(F, grad, input_shape):
        return F.reshape_to(grad, input_shape)

    def samples(make):
        yield (make(2, 3), (6,)), {}


@operator(method=True, inplace=True, linear=True)
class index_copy:
    """`input` with slices of `source` written at `index` along `dim`.

    Of repeated indices the last is kept, and it alone gets a gradient.
    """

    def canonical(input, dim: int, index, source):
        return _check_slices("index_copy", input, dim, index, source)

    def forward(xp, input: Array, dim: int, index: Index, source: Array):
        whole = xp.array(input, order="C")
        if not whole.ndim:
            return source.reshape(()).copy()
        shape = (*input.shape[:dim], index.size, *input.shape[dim + 1 :])
        whole[(slice(None),) * dim + (index.reshape(-1),)] = source.reshape(shape)
        return whole

    def vjp_input(F, grad, dim, index):
        return F.index_fill_number(grad, dim, index, 0)

    def vjp_source(F, grad, dim, index, source_shape):
        return F.reshape_to(F.kept_slices(F.index_select(grad, dim, index), dim, index), source_shape)

    def samples(make):
        yield (make(3, 4), 1, np.array([0, 3, 3]), make(3, 3)), {}


@operator(module=None, linear=True)
class kept_slices:
    """The slices whose index does not come again later; zeros for the others."""

    def forward(xp, input: Array, dim: int, index: Index):
        flat = index.reshape(-1)
        last = np.zeros(flat.size, np.bool_)
        last[flat.size - 1 - np.unique(flat[::-1], return_index=True)[1]] = True
        shape = [1] * input.ndim
        if shape:
            shape[dim] = flat.size
        return xp.where(last.reshape(shape), input, input.dtype.type(0))

    def vjp_input(F, grad, dim, index):
        return F.kept_slices(grad, dim, index)

    def samples(make):
        yield (make(3, 3), 1, np.array([0, 3, 3])), {}


@operator(module=None, name="index_fill_number", node="IndexFillBackward0")
class index_fill_number:
    """`input` with one number in all slices at `index` along `dim`."""

    def canonical(input, dim: int, index, value):
        dim = one_dim(dim, input.ndim)
        _index_vector("index_fill_", index, input.shape[dim] if input.ndim else 1, dim)
        return dim, value

    def forward(xp, input: Array, dim: int, index: Index, value):
        whole = xp.array(input, order="C")
        if not whole.ndim:
            return xp.full((), value, input.dtype)
        whole[(slice(None),) * dim + (index.reshape(-1),)] = value
        return whole

    def vjp_input(F, grad, dim, index):
        return F.index_fill_number(grad, dim, index, 0)

    def samples(make):
        yield (make(3, 4), 1, np.array([0, 3]), 2.0), {}


def _fill_value(input: Tensor, dim: int, index: Tensor, value):
    if isinstance(value, Tensor):
        if value.dim():
            raise RuntimeError(
                f"index_fill_ only supports a 0-dimensional value tensor, but got tensor with {value.dim()} dimension(s)."
            )
        return None
    return value


@composite(method=True)
def index_fill(input: Tensor, dim: int, index: Tensor, value) -> Tensor:
    """`input` with one number, or the value of a 0-d tensor, in all slices at `index` along `dim`."""
    if _fill_value(input, dim, index, value) is not None:
        return index_fill_number(input, dim, index, value)
    shape = list(input.shape)
    if shape:
        shape[one_dim(dim, input.dim())] = index.numel()
    return index_copy(input, dim, index, value.to(input.dtype).expand(shape))


def index_fill_(self: Tensor, dim: int, index: Tensor, value) -> Tensor:
    """In-place form of `index_fill`."""
    if _fill_value(self, dim, index, value) is not None:
        return inplace(index_fill_number.operator, self, (dim, index, value))
    shape = list(self.shape)
    if shape:
        shape[one_dim(dim, self.dim())] = index.numel()
    return self.index_copy_(dim, index, value.to(self.dtype).expand(shape))


Tensor.index_fill_ = index_fill_
