"""Other shapes and orders of dimensions by the views of `ops/views.py`: flattening, more dimensions, moved and exchanged ones, transposes."""

from __future__ import annotations

import math
import warnings

from pellucid.autograd.operator import composite
from pellucid.core.dims import canonical_dims, infer_size, one_dim
from pellucid.core.tensor import Tensor
from pellucid.ops.views import alias, permute_, reshape, transpose, unsqueeze, view_

__all__ = ["adjoint", "atleast_1d", "atleast_2d", "atleast_3d", "flatten", "movedim", "positive", "ravel",
           "reshape_as", "swapaxes", "unflatten", "view_as"]  # fmt: skip


@composite(method=True, module=None)
def view_as(input: Tensor, other: Tensor) -> Tensor:
    """`view` in the shape of another tensor."""
    return view_(input, other._array.shape)


@composite(method=True, module=None)
def reshape_as(input: Tensor, other: Tensor) -> Tensor:
    """`reshape` to the shape of another tensor."""
    return reshape(input, other._array.shape)


@composite(method=True)
def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """The dimensions from `start_dim` to `end_dim` as one; a 0-d tensor becomes one of one element.

    Returns the tensor itself where nothing changes. RuntimeError if start_dim lies behind end_dim.
    """
    shape = input._array.shape
    first, last = one_dim(start_dim, len(shape)), one_dim(end_dim, len(shape))
    if not shape:
        return reshape(input, (1,))
    if first > last:
        raise RuntimeError(f"flatten() has invalid args: start_dim cannot come after end_dim, got start_dim={start_dim}, end_dim={end_dim}")
    if first == last:
        return input
    return reshape(input, (*shape[:first], math.prod(shape[first : last + 1]), *shape[last + 1 :]))


@composite(method=True)
def unflatten(input: Tensor, dim: int, sizes) -> Tensor:
    """One dimension as several, of which one size may be -1. A view; RuntimeError if the product does not fit."""
    shape = input._array.shape
    dim, sizes = one_dim(dim, len(shape)), tuple(sizes)
    if not sizes:
        raise RuntimeError("unflatten: sizes must be non-empty")
    known = math.prod([s for s in sizes if s != -1])
    if (shape[dim] % known if known else shape[dim]) if -1 in sizes else known != shape[dim]:
        raise RuntimeError(f"unflatten: Provided sizes {list(sizes)} don't multiply up to the size of dim {dim} ({shape[dim]}) in "
                           "the input tensor")
    return view_(input, (*shape[:dim], *infer_size(sizes, shape[dim]), *shape[dim + 1 :]))


@composite(method=True)
def ravel(input: Tensor) -> Tensor:
    """All elements in one dimension: a view where the strides allow one, else a copy."""
    return view_(input if input._array.flags.c_contiguous else input.contiguous(), (input._array.size,))


def _atleast(tensors, grow):
    if len(tensors) == 1 and not isinstance(tensors[0], (tuple, list)):
        return grow(tensors[0])
    return tuple([grow(t) for t in (tensors[0] if len(tensors) == 1 else tensors)])


@composite()
def atleast_1d(*tensors):
    """0-d tensors as [1], others unchanged; one tensor, several or a sequence."""
    return _atleast(tensors, lambda t: t if t._array.ndim else reshape(t, (1,)))


@composite()
def atleast_2d(*tensors):
    """0-d tensors as [1, 1], vectors as [1, n], others unchanged; one tensor, several or a sequence."""
    return _atleast(tensors, lambda t: t if t._array.ndim > 1 else unsqueeze(atleast_1d(t), 0))


@composite()
def atleast_3d(*tensors):
    """0-d tensors as [1, 1, 1], vectors as [1, n, 1], matrices as [m, n, 1], others unchanged."""
    return _atleast(tensors, lambda t: t if t._array.ndim > 2 else unsqueeze(atleast_2d(t), -1))


@composite(method=True, alias=["swapdims"])
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Two dimensions exchanged; `transpose` under another name."""
    return transpose(input, axis0, axis1)


@composite(method=True, alias=["moveaxis"])
def movedim(input: Tensor, source, destination) -> Tensor:
    """Dimensions moved to other places, the rest staying in order.

    source, destination: an int or several, as many of each. Returns a view.
    """
    ndim = input._array.ndim
    sources = (source,) if isinstance(source, int) else tuple(source)
    destinations = (destination,) if isinstance(destination, int) else tuple(destination)
    if len(sources) != len(destinations):
        raise RuntimeError(f"movedim: Invalid source or destination dims: source ({list(sources)} dims) should contain the same "
                           f"number of dims as destination ({list(destinations)} dims)")
    for what, dims in (("source", sources), ("destination", destinations)):
        found = [one_dim(d, ndim) for d in dims]
        if len(set(found)) != len(found):
            raise RuntimeError(f"movedim: repeated dim in `{what}` ({list(dims)})")
    sources, destinations = canonical_dims(sources, ndim), canonical_dims(destinations, ndim)
    if not ndim:
        return alias(input)
    rest = iter([d for d in range(ndim) if d not in sources])
    placed = dict(zip(destinations, sources, strict=True))
    return permute_(input, tuple([placed[d] if d in placed else next(rest) for d in range(ndim)]))


@composite(method=True)
def adjoint(input: Tensor) -> Tensor:
    """The last two dimensions exchanged, and complex values conjugated."""
    if input._array.ndim < 2:
        raise RuntimeError(
            "tensor.adjoint() is only supported on matrices or batches of matrices. Got "
            f"{input._array.ndim}-D tensor" + ("; use tensor.conj()." if not input._array.ndim else ".")
        )
    swapped = transpose(input, -2, -1)
    return swapped.conj() if swapped.is_complex() else swapped


def _matrix_only(name: str, input: Tensor) -> None:
    if input._array.ndim < 2:
        raise RuntimeError(f"tensor.{name} is only supported on matrices or batches of matrices. Got {input._array.ndim}-D tensor.")


def _get_T(self: Tensor) -> Tensor:
    """The dimensions in reverse order; for a matrix, its transpose. A view."""
    ndim = self._array.ndim
    if ndim not in (0, 2):
        warnings.warn(
            "The use of `x.T` on tensors of dimension other than 2 to reverse their shape is deprecated and it "
            "will throw an error "
            "in a future release. Consider `x.mT` to transpose batches of matrices or "
            "`x.permute(*torch.arange(x.ndim - 1, -1, -1))` to reverse the dimensions of a tensor.",
            UserWarning,
            stacklevel=2,
        )
    return permute_(self, tuple(range(ndim - 1, -1, -1)))


def _get_mT(self: Tensor) -> Tensor:
    """The last two dimensions exchanged. A view."""
    _matrix_only("mT", self)
    return transpose(self, -2, -1)


def _get_H(self: Tensor) -> Tensor:
    """The conjugate transpose of a matrix."""
    if self._array.ndim not in (0, 2):
        raise RuntimeError(f"tensor.H is only supported on matrices (2-D tensors). Got {self._array.ndim}-D tensor.")
    swapped = transpose(self, 0, 1) if self._array.ndim else alias(self)
    return swapped.conj() if swapped.is_complex() else swapped


def _get_mH(self: Tensor) -> Tensor:
    """The conjugate transpose of the last two dimensions."""
    _matrix_only("mH", self)
    return adjoint(self)


for _name, _get in (("T", _get_T), ("mT", _get_mT), ("H", _get_H), ("mH", _get_mH)):
    setattr(Tensor, _name, property(_get, doc=_get.__doc__))


@composite(method=True)
def positive(input: Tensor) -> Tensor:
    """The tensor itself; RuntimeError for bools."""
    if input._array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


Tensor.__pos__ = positive
