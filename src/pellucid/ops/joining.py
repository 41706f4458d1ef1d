"""Several tensors as one: concatenation, stacking, block diagonals."""

from __future__ import annotations

from pellucid.autograd.operator import Arrays, Promote, composite, operator
from pellucid.core.dims import one_by_one, one_dim
from pellucid.core.tensor import Tensor
from pellucid.ops.views import atleast_1d, atleast_2d, atleast_3d, reshape

__all__ = ["block_diag", "cat", "column_stack", "dstack", "hstack", "stack", "vstack"]


def _check_cat(arrays, dim: int) -> int:
    """The dimension to join along; RuntimeError where the shapes do not fit. Tensors of shape [0] are ignored."""
    first = next((a for a in arrays if a.shape != (0,)), arrays[0])
    for position, array in enumerate(arrays):
        if not array.ndim:
            raise RuntimeError(f"zero-dimensional tensor (at position {position}) cannot be concatenated; use stack")
    dim = one_dim(dim, first.ndim)
    for position, array in enumerate(arrays):
        if array.shape == (0,):
            continue
        if array.ndim != first.ndim:
            raise RuntimeError(f"Tensors must have same number of dimensions: got {first.ndim} and {array.ndim}")
        for d in range(first.ndim):
            if d != dim and array.shape[d] != first.shape[d]:
                raise RuntimeError(f"Sizes of tensors must match except in dimension {dim}. Expected size {first.shape[d]} but got "
                                   f"size {array.shape[d]} for tensor number {position} in the list.")
    return dim


@operator(promote=Promote.SAME, broadcast=False, exact=True, linear=True, batching="shift", module=None, name="cat", node="CatBackward0")
class cat_:
    """The raw form of `cat`."""

    def canonical(tensors, dim=0): return _check_cat(tensors, dim)

    def forward(xp, tensors: Arrays, dim=0):
        ndim = max([a.ndim for a in tensors])
        fitting = [a for a in tensors if a.ndim == ndim]
        if len(fitting) == 1:
            return fitting[0].copy()
        shape = list(fitting[0].shape)
        shape[dim] = sum([a.shape[dim] for a in fitting])
        return xp.concatenate(fitting, dim, out=xp.empty(shape, fitting[0].dtype))  # NumPy would choose the order

    def vjp_tensors(F, grad, needs, tensors_shape, dim):
        pieces, start, ndim = [], 0, max([len(s) for s in tensors_shape])
        for need, shape in zip(needs, tensors_shape, strict=True):
            length = shape[dim] if len(shape) == ndim else 0
            piece = grad[(slice(None),) * dim + (slice(start, start + length),)] if need else None
            pieces.append(piece if piece is None or len(shape) == ndim else F.reshape(piece, (-1,))[:0])
            start += length
        return tuple(pieces)

    def samples(make):
        yield ([make(2, 3), make(1, 3)], 0), {}
        yield ([make(2, 3), make(2, 2)], -1), {}


@composite(alias=["concat", "concatenate"])
def cat(tensors, dim: int = 0, *, out=None, axis: int | None = None) -> Tensor:
    """Tensors laid side by side along one dimension, in which alone their sizes may differ.

    tensors: a sequence of at least one tensor; their common type is the result's. Returns a new tensor.
    Raises: RuntimeError for shapes that do not fit, ValueError for an empty sequence, TypeError for what is no tensor.
    """
    tensors = _list_of(tensors, "cat")
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    return cat_(tensors, dim if axis is None else axis, out=out)


def _list_of(tensors, name: str) -> list:
    if isinstance(tensors, Tensor) or not hasattr(tensors, "__iter__"):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not {type(tensors).__name__}")
    tensors = list(tensors)
    for position, tensor in enumerate(tensors):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}(): expected Tensor as element {position} in argument 0, but got {type(tensor).__name__}")
    return tensors


@operator(promote=Promote.SAME, broadcast=False, exact=True, linear=True, batching="shift", module=None, name="stack", node="StackBackward0")
class stack_:
    """The raw form of `stack`."""

    def canonical(tensors, dim=0):
        if not tensors:
            raise RuntimeError("stack expects a non-empty TensorList")
        dim = one_dim(dim, tensors[0].ndim + 1)
        for position, array in enumerate(tensors):
            if array.shape != tensors[0].shape:
                raise RuntimeError(f"stack expects each tensor to be equal size, but got {list(tensors[0].shape)} at entry 0 and "
                                   f"{list(array.shape)} at entry {position}")
        return dim

    def forward(xp, tensors: Arrays, dim=0):
        place = (slice(None),) * dim + (None,)
        shape = (*tensors[0].shape[:dim], len(tensors), *tensors[0].shape[dim:])
        return xp.concatenate([a[place] for a in tensors], dim, out=xp.empty(shape, tensors[0].dtype))

    def vjp_tensors(F, grad, needs, dim):
        return tuple([F.select(grad, dim, k) if need else None for k, need in enumerate(needs)])

    def samples(make):
        yield ([make(2, 3), make(2, 3)], 1), {}
        yield ([make(), make()], 0), {}


@composite()
def stack(tensors, dim: int = 0, *, out=None) -> Tensor:
    """Tensors of one shape as the slices of one tensor along a new dimension.

    Raises: RuntimeError for different shapes or an empty sequence, TypeError for what is no tensor.
    """
    return stack_(_list_of(tensors, "stack"), dim, out=out)


def _several(tensors, name: str) -> list:
    tensors = _list_of(tensors, name)
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return tensors


def _stacking(name: str, doc: str, grown, dim, **names):
    """Declare a concatenation of what `grown` makes of the tensors, along `dim` (of tensors)."""

    def function(tensors, *, out=None) -> Tensor:
        tensors = grown(_several(tensors, name))
        return cat(tensors, dim(tensors), out=out)

    function.__name__, function.__qualname__, function.__doc__ = name, name, doc
    return composite(**names)(function)


def _columns(tensors) -> list[Tensor]:
    return [t if t._array.ndim > 1 else reshape(t, (t._array.size, 1)) for t in tensors]


hstack = _stacking("hstack", "Tensors side by side: along the first dimension for vectors, else along the second.",
                   atleast_1d, lambda tensors: min(tensors[0]._array.ndim - 1, 1))  # fmt: skip
vstack = _stacking("vstack", "Tensors one below the other, vectors as rows.", atleast_2d, lambda tensors: 0, alias=["row_stack"])
dstack = _stacking("dstack", "Tensors one behind the other, along the third dimension.", atleast_3d, lambda tensors: 2)
column_stack = _stacking("column_stack", "Tensors side by side, vectors as columns.", _columns, lambda tensors: 1)


def _places(shapes) -> list[tuple]:
    """Where blocks of these shapes [..., rows, columns] lie along the diagonal."""
    places, row, column = [], 0, 0
    for *_, height, width in shapes:
        places.append((..., slice(row, row + height), slice(column, column + width)))
        row, column = row + height, column + width
    return places


@operator(promote=Promote.SAME, broadcast=False, exact=True, linear=True, module=None, name="block_diag", node="BlockDiagBackward0")
class block_diag_:
    """The raw form of `block_diag`, on matrices [*S, rows, columns]."""

    def forward(xp, tensors: Arrays):
        shapes = [a.shape for a in tensors]
        whole = xp.zeros((*shapes[0][:-2], *(sum([s[d] for s in shapes]) for d in (-2, -1))), tensors[0].dtype)
        for place, block in zip(_places(shapes), tensors, strict=True):
            whole[place] = block
        return whole

    def vjp_tensors(F, grad, needs, tensors_shape):
        return tuple([grad[p] if need else None for need, p in zip(needs, _places(tensors_shape), strict=True)])

    def batch(F, tensors): return F.block_diag(tensors)
    def samples(make): yield ([make(2, 3), make(1, 2)],), {}


@composite()
def block_diag(*tensors) -> Tensor:
    """A matrix with the given ones along its diagonal and zeros elsewhere; vectors and numbers count as rows."""
    tensors = one_by_one(tensors)
    for position, tensor in enumerate(tensors):
        if tensor._array.ndim > 2:
            raise RuntimeError(f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {position} has "
                               f"{tensor._array.ndim} dimensions")
    if not tensors:
        from pellucid.ops.factories import zeros

        return zeros(1, 0)
    return block_diag_(list(atleast_2d(list(tensors))))
