"""Indexing with brackets: `tensor[...]`, in all of NumPy's and PyTorch's forms. Writing is in `index_writing.py`.

Integers, slices, None and Ellipsis make a view, by one operator for the whole index. Tensors, lists and masks among them
make a copy of what that view selects. Named selections (`gather`, `index_select`, ...) are in `selection.py`.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import Array, Arrays, Index, Indices, operator
from pellucid.core.subscripts import (
    FULL,
    MASKED,
    flat_places,
    index_error,
    last_step,
    read_index,
    split_masks,
)
from pellucid.core.tensor import Tensor, wrap
from pellucid.kernels.accumulation import add_rows, wrapped
from pellucid.ops.batch_places import in_front, moved
from pellucid.ops.batches import differs, for_each

__all__ = ["assemble", "basic_backward", "index_at"]

PLAIN = {int, slice, type(None), type(Ellipsis)}
NUMBERS = (bool, int, float, complex, np.generic)


# --- basic indices ---------------------------------------------------------------------------------------------------


class _Basic:
    """What a basic index selects: a view.

    input: [*S]; key: a tuple of ints, slices with positive steps, None, and an Ellipsis at the end or before.
    """

    def forward(xp, input: Array, key: tuple):
        try:
            return input[key]
        except IndexError as error:
            raise index_error(error, input, key) from None

    def vjp_input(F, grad, input_shape, key): return F.basic_backward(grad, input_shape, key)
    def described(input_shape, key): return last_step(input_shape, key)

    def samples(make):
        yield (make(3, 4), (1, ...)), {}
        yield (make(3, 4), (slice(None), slice(1, 3), ...)), {}
        yield (make(3, 4), (..., None, slice(0, 4, 2))), {}


_select = operator(view=True, module=None, name="basic_select", node="SelectBackward0")(_Basic)
_slice = operator(view=True, module=None, name="slice", node="SliceBackward0")(_Basic)
_unsqueeze = operator(view=True, module=None, name="basic_unsqueeze", node="UnsqueezeBackward0")(_Basic)
_alias = operator(view=True, module=None, name="basic_alias", node="AliasBackward0")(_Basic)
BY_CLASS = {int: _select, slice: _slice, type(None): _unsqueeze}


@operator(module=None, node="SliceBackward0_copy", linear=True)
class basic_backward:
    """Zeros of `input_shape` with the operand in the place that the basic index took."""

    def forward(xp, input: Array, input_shape: tuple, key: tuple):
        whole = xp.zeros(input_shape, input.dtype)
        whole[key] = input
        return whole

    def vjp_input(F, grad, key): return F.slice(grad, key)
    def samples(make): yield (make(4), (3, 4), (1, ...)), {}


@operator(module=None, linear=True, batching="shift")
class assemble:
    """Zeros of `whole_shape` with the operands in the places that basic indices took: the derivative of several views.

    pieces: one for each key.
    """

    def forward(xp, pieces: Arrays, whole_shape: tuple, keys: tuple):
        whole = xp.zeros(whole_shape, pieces[0].dtype)
        for piece, key in zip(pieces, keys, strict=True):
            whole[key] = piece
        return whole

    def vjp_pieces(F, grad, needs, keys):
        return tuple([F.slice(grad, key) if need else None for need, key in zip(needs, keys, strict=True)])

    def samples(make): yield ([make(4), make(4)], (3, 4), ((0, ...), (2, ...))), {}


def take_basic(tensor: Tensor, key: tuple) -> Tensor:
    """The view that a basic index selects, under the node name of its last step."""
    for k in reversed(key):
        if k is not Ellipsis and k != FULL:
            return BY_CLASS[k.__class__](tensor, key)
    return (_slice if key == (FULL, ...) else _alias)(tensor, key)


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


# --- advanced indices ------------------------------------------------------------------------------------------------


def _merged(shape: tuple, dim: int, span: int) -> tuple:
    """A shape with `span` dimensions from `dim` on as one."""
    return (*shape[:dim], math.prod(shape[dim : dim + span]), *shape[dim + span :])


@operator(module=None, node="IndexBackward0", linear=True)
class index_at:
    """Slices along one dimension, or along `span` ones taken as one, in the order of an integer tensor; they may repeat.

    input: [*A, n, *B]; index: [*I] in [-n, n). Returns [*A, *I, *B], a copy. IndexError for an index outside.
    """

    def forward(xp, input: Array, index: Index, dim: int, span: int = 1):
        if span != 1:
            input = input.reshape(_merged(input.shape, dim, span))
        try:
            return input.take(index, dim)
        except IndexError as error:
            raise _out_of_bounds(error, input.shape, [index], dim) from None

    def vjp_input(F, grad, index, input_shape, dim, span):
        return F.index_at_backward(grad, index, input_shape, dim, span)

    def batch(F, batched, input, index, dim, span):
        if "index" not in batched:
            return F.index_at(input, index, dim + 1, span)
        if "input" not in batched:
            return moved(F, F.index_at(input, index, dim, span), dim, 0)
        numbers = F.numbered(index, math.prod(input.shape[dim + 1 : dim + 1 + span]), 0)
        return moved(F, F.index_at(moved(F, input, 0, dim), numbers, dim, span + 1), dim, 0)

    def samples(make):
        yield (make(3, 4), np.array([2, 0, 2]), 0), {}
        yield (make(2, 3, 2), np.array([[1, 5], [0, 1]]), 0, 2), {}
        yield (make(2, 3, 2), np.array([[1, -1], [0, 1]]), 1), {}


def _out_of_bounds(error: IndexError, shape: tuple, indices, dim: int) -> IndexError:
    """The error about an index that lies outside its dimension."""
    for position, index in enumerate(indices):
        size = shape[dim + position]
        wrong = index[(index < -size) | (index >= size)]
        if wrong.size:
            return IndexError(f"index {wrong.flat[0]} is out of bounds for dimension {dim + position} with size {size}")
    return IndexError(str(error))


@operator(module=None, linear=True)
class index_at_backward:
    """Zeros of `input_shape` to which the operand is added in the places that `index_at` took."""

    def forward(xp, input: Array, index: Index, input_shape: tuple, dim: int, span: int = 1):
        merged = _merged(input_shape, dim, span) if span != 1 else input_shape
        size = merged[dim]
        rows = np.moveaxis(input.reshape(*merged[:dim], index.size, *merged[dim + 1 :]), dim, 0) if dim else input
        flat = wrapped(index, size).reshape(-1)
        rows = rows.reshape(index.size, -1) if index.size else rows.reshape(0, 0)
        whole = add_rows(size, flat, rows, input.dtype, merged[:dim] + merged[dim + 1 :])
        whole = np.moveaxis(whole, 0, dim) if dim else whole
        return xp.ascontiguousarray(whole).reshape(input_shape)

    def vjp_input(F, grad, index, dim, span): return F.index_at(grad, index, dim, span)

    def batch(F, size_of_batch, batched, input, index, input_shape, dim, span):
        if "index" not in batched:
            return F.index_at_backward(input, index, (size_of_batch, *input_shape), dim + 1, span)
        input, shape = for_each(F, input, "input" in batched, size_of_batch), list(input_shape)
        numbers = F.numbered(index, math.prod(shape[dim : dim + span]), 0)
        shape.insert(dim, size_of_batch)
        return moved(F, F.index_at_backward(moved(F, input, 0, dim), numbers, tuple(shape), dim, span + 1), dim, 0)

    def samples(make):
        yield (make(3, 2), np.array([2, 0, 2]), (3, 2), 0), {}
        yield (make(2, 3, 3), np.array([5, -1, 0]), (2, 2, 3, 3), 1, 2), {}


def key_of(indices) -> tuple:
    return tuple([FULL if i is None else i for i in indices])


def taken(array: np.ndarray, indices) -> np.ndarray:
    """NumPy's advanced indexing, with PyTorch's errors."""
    try:
        return array[key_of(indices)]
    except IndexError as error:
        shapes = [list(i.shape) for i in indices if i is not None]
        try:
            np.broadcast_shapes(*shapes)
        except ValueError:
            text = ", ".join(map(str, shapes))
            raise IndexError(f"shape mismatch: indexing tensors could not be broadcast together with shapes {text}") from None
        for d, i in enumerate(indices):
            if i is not None:
                raise_outside(i, array.shape[d], d)
        raise IndexError(str(error)) from None


def raise_outside(index: np.ndarray, size: int, dim: int, kind: type = IndexError) -> None:
    """Raise for the first index outside [-size, size), if there is one."""
    if index.size and not (-size <= index.min() and index.max() < size):
        wrong = index[(index < -size) | (index >= size)]
        raise kind(f"index {wrong.flat[0]} is out of bounds for dimension {dim} with size {size}")


@operator(module=None, node="IndexBackward0", linear=True)
class index:
    """Elements or slices chosen by integer tensors for several dimensions, broadcast against each other.

    indices: for each dimension a tensor of indices, or None for all of it. Returns a copy, with NumPy's shape.
    """

    def forward(xp, input: Array, indices: Indices): return taken(input, indices)
    def vjp_input(F, grad, indices, input_shape): return F.index_backward(grad, indices, input_shape)

    def batch(F, size_of_batch, batched, input, indices):
        places = BatchOfPlaces(F, size_of_batch, indices, "indices" in batched)
        return places.to_front(F.index(for_each(F, input, "input" in batched, size_of_batch), places.indices))

    def samples(make):
        yield (make(3, 4), [np.array([2, 0, 2]), np.array([1, 1, 1])]), {}
        yield (make(3, 2, 4), [np.array([2, 0]), None, np.array([1, 3])]), {}
        yield (make(2, 3, 4), [None, np.array([[2], [0]]), np.array([1, -1])]), {}


def _rows_of(grad: np.ndarray, indices, shape: tuple):
    """A gradient of `index` as rows, the flat index of each row, and the order in which the dimensions were laid."""
    dims = [d for d, i in enumerate(indices) if i is not None]
    rest = [d for d in range(len(shape)) if d not in dims]
    arrays = np.broadcast_arrays(*[indices[d] for d in dims])
    flat = np.zeros(arrays[0].shape, np.int64)
    for d, i in zip(dims, arrays, strict=True):
        flat = flat * shape[d] + wrapped(i, shape[d])
    ndim, together = flat.ndim, dims == list(range(dims[0], dims[-1] + 1))
    if together and dims[0]:
        grad = np.moveaxis(grad, tuple(range(dims[0], dims[0] + ndim)), tuple(range(ndim)))
    return grad, flat.reshape(-1), dims, rest


@operator(module=None, linear=True)
class index_backward:
    """Zeros of `input_shape` to which the operand is added in the places that `index` took."""

    def forward(xp, input: Array, indices: Indices, input_shape: tuple):
        rows, flat, dims, rest = _rows_of(input, indices, input_shape)
        count, outer = 1, tuple([input_shape[d] for d in rest])
        for d in dims:
            count *= input_shape[d]
        whole = add_rows(
            count, flat, rows.reshape(flat.size, -1) if flat.size else rows.reshape(0, 0), input.dtype, outer
        )
        whole = whole.reshape(tuple([input_shape[d] for d in dims]) + outer)
        order = [*dims, *rest]
        return xp.ascontiguousarray(whole.transpose([order.index(d) for d in range(len(order))]))

    def vjp_input(F, grad, indices): return F.index(grad, indices)

    def batch(F, size_of_batch, batched, input, indices, input_shape):
        places = BatchOfPlaces(F, size_of_batch, indices, "indices" in batched)
        rows = places.from_front(for_each(F, input, "input" in batched, size_of_batch))
        return F.index_backward(rows, places.indices, (size_of_batch, *input_shape))

    def samples(make):
        yield (make(3), [np.array([2, 0, 2]), np.array([1, 1, 1])], (3, 4)), {}
        yield (make(2, 2), [np.array([2, 0]), None, np.array([1, 3])], (3, 2, 4)), {}
        yield (make(2, 2), [None, np.array([2, 0]), np.array([1, 3])], (2, 3, 4)), {}


class BatchOfPlaces:
    """Places that indices choose in each example of a batch, as places in the tensor of all examples."""

    def __init__(self, F, size: int, indices, batched: bool):
        given = [i for i in indices if i is not None]
        dims = [d for d, i in enumerate(indices) if i is not None]
        self.F, self.first, self.rank = F, dims[0], max(i.ndim for i in given) - batched
        self.together = dims[-1] - dims[0] == len(dims) - 1
        self.rest, self.batched = len(indices) - len(dims), batched
        self.indices: list = [None, *indices]
        if batched:
            numbers = np.arange(size).reshape(size, *(1,) * self.rank)
            self.indices = [wrap(numbers), *[None if i is None else in_front(F, i, self.rank) for i in indices]]

    def _order(self, ndim: int) -> list[int]:
        """Where NumPy lays the batch and the dimensions of an example's result: those of the indices first, unless side by side."""
        order, rank = list(range(ndim)), self.rank
        if self.batched and self.together and self.first:
            return [0, *order[1 + rank : 1 + rank + self.first], *order[1 : 1 + rank], *order[1 + rank + self.first :]]
        return [rank, *order[:rank], *order[rank + 1 :]] if not self.batched and not self.together else order

    def to_front(self, result):
        """What was taken at these places, with the batch in front."""
        return self.F.permute(result, tuple(self._order(result.ndim)))

    def from_front(self, values):
        """What is for these places and has the batch in front, laid out as what is taken there."""
        order = self._order(values.ndim)
        return self.F.permute(values, tuple(sorted(range(len(order)), key=order.__getitem__)))

    def values(self, values, batched: bool, ndim: int):
        """What is to be written to these places of examples with `ndim` dimensions."""
        values = values if batched else self.F.unsqueeze(values, 0)
        rank = self.rank + ndim - len([i for i in self.indices if i is not None]) + self.batched
        return self.from_front(in_front(self.F, values, rank))


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
        flat = _flattened([indices[d]._array for d in dims], tensor._array.shape[dims[0] :], dims[0])
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


def _flattened(indices, shape: tuple, dim: int) -> np.ndarray | None:
    """Indices of several dimensions as one that counts through all of them; None where they do not fit together."""
    flat: np.ndarray | int = 0
    for position, (item, size) in enumerate(zip(indices, shape, strict=False)):
        raise_outside(item, size, dim + position)
        try:
            flat = flat * size + wrapped(item, size)
        except ValueError:
            return None
    return np.asarray(flat)


def getitem(self: Tensor, key) -> Tensor:
    """`tensor[key]`: a view for integers, slices, None and Ellipsis; a copy where tensors, lists or masks choose."""
    c = key.__class__
    if c is int:
        return _select(self, (key, ...))
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
