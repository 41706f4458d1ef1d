"""Views of the whole tensor: other sizes, another order of dimensions, reinterpretation; they share the operand's memory.

Expansion is in `expansion.py`; views of a part (slices, diagonals, pieces) are in `parts.py` and `splitting.py`, indexing
with brackets in `indexing.py`.
"""

from __future__ import annotations

import math
import warnings

import numpy as np

from pellucid.autograd.operator import OPERATORS, Array, composite, operator
from pellucid.autograd.views import check_inplace, written
from pellucid.core.dims import canonical_dims, dims_of, infer_size, one_dim, sizes_of
from pellucid.core.dtype import dtype as dtype_class
from pellucid.core.tensor import Tensor

__all__ = [
    "adjoint",
    "alias",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "flatten",
    "movedim",
    "own_geometry",
    "permute",
    "positive",
    "ravel",
    "reshape",
    "reshape_as",
    "show_to_formulas",
    "squeeze",
    "swapaxes",
    "t",
    "transpose",
    "unflatten",
    "unsqueeze",
    "view",
    "view_as",
    "view_as_complex",
    "view_as_real",
]

INCOMPATIBLE = (
    "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous "
    "subspaces). Use .reshape(...) instead."
)


def show_to_formulas(name: str, function) -> None:
    """Let formulas on tensors, and overriding classes, see `function` under the operator's name."""
    OPERATORS[name].public = function
    function.operator = OPERATORS[name]


# --- other sizes -----------------------------------------------------------------------------------------------------


def _viewable(array: np.ndarray, size: tuple[int, ...]) -> np.ndarray | None:
    """The array in another shape, sharing memory; None where that needs a copy."""
    made = array.reshape(size)
    if array.flags.c_contiguous or not array.size or np.may_share_memory(made, array):
        return made
    return None


@operator(view=True, module=None, name="view", node="ViewBackward0")
class view_:
    """The same elements in another shape; one size may be -1.

    input: [*S]; size: as many elements. Returns [*size], sharing memory.
    Raises: RuntimeError for another number of elements, or for strides that no view can express.
    """

    def canonical(input, size: tuple): return infer_size(size, input.size)

    def forward(xp, input: Array, size: tuple):
        made = _viewable(input, size)
        if made is None:
            raise RuntimeError(f"{INCOMPATIBLE} (input: {list(input.shape)} with strides {list(input.strides)}, size: {list(size)})")
        return made

    def vjp_input(F, grad, input_shape): return F.reshape(grad, input_shape)
    def batch(F, size_of_batch, input, size): return F.view(input, (size_of_batch, *size))

    def samples(make):
        yield (make(3, 4), (2, -1)), {}
        yield (make(), (1, 1)), {}


@operator(view=True, module=None, name="view_dtype", node="ViewBackward1", batching="leading")
class view_dtype:
    """The same memory read as another element type; the last dimension grows or shrinks with the element's size."""

    def canonical(input, kind):
        wide, narrow = max(kind.itemsize, input.itemsize), min(kind.itemsize, input.itemsize)
        if wide != narrow and (not input.ndim or input.strides[-1] != input.itemsize):
            raise RuntimeError(f"self.stride(-1) must be 1 to view {input.dtype} as {kind} (different element sizes), on a tensor "
                               f"of at least one dimension, but got shape {list(input.shape)} with strides {list(input.strides)} "
                               "in bytes")
        if kind.itemsize > input.itemsize and input.shape[-1] % (wide // narrow):
            raise RuntimeError(f"self.size(-1) must be divisible by {wide // narrow} to view {input.dtype} as {kind} (different "
                               f"element sizes), but got {input.shape[-1]}")
        return kind

    def forward(xp, input: Array, kind): return input.view(kind)


@composite(method=True, module=None)
def view(input: Tensor, *size, dtype=None) -> Tensor:
    """The same memory in another shape (one size may be -1), or as another element type; RuntimeError where strides allow none."""
    if dtype is None and len(size) == 1 and isinstance(size[0], dtype_class):
        dtype = size[0]
    if dtype is not None:
        return view_dtype(input, dtype.numpy)
    return view_(input, sizes_of(size, "view"))


@operator(module=None, node="UnsafeViewBackward0", linear=True, batching="shift")
class reshape_copy:
    """`reshape` where no view is possible: a copy."""

    def forward(xp, input: Array, whole_shape: tuple): return input.copy().reshape(whole_shape)
    def vjp_input(F, grad, input_shape): return F.reshape(grad, input_shape)
    def samples(make): yield (make(3, 4), (2, 6)), {}


@operator(module=None, name="reshape", batching="shift")
class reshape_:
    """The raw form of `reshape`, for formulas."""

    def forward(xp, input: Array, whole_shape: tuple): return input.reshape(whole_shape)


@composite(method=True)
def reshape(input: Tensor, *sizes, shape=None) -> Tensor:
    """The same elements in another shape (one size may be -1): a view where the strides allow one, else a copy.

    input: [*S]; shape: as many elements. RuntimeError for another number of elements.
    """
    size = sizes_of(sizes if shape is None else (shape,), "reshape")
    array = input._array
    if array.flags.c_contiguous:
        return view_(input, size)
    size = infer_size(size, array.size)
    return view_(input, size) if _viewable(array, size) is not None else reshape_copy(input, size)


show_to_formulas("reshape", reshape)


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


# --- dimensions of size 1 --------------------------------------------------------------------------------------------


class _Squeezing:
    """Dimensions of size 1 left out: all of them, or those of `dim` that have size 1.

    input: [*S]; dim: an int or a tuple. Returns a view. IndexError for a dimension that is not there.
    """

    def canonical(input, dim=None):
        if dim is None:
            return tuple([d for d, s in enumerate(input.shape) if s == 1])
        dims = (one_dim(dim, input.ndim),) if dim.__class__ is int else canonical_dims(dim, input.ndim)
        return tuple([d for d in dims if input.ndim and input.shape[d] == 1])

    def forward(xp, input: Array, dim=None): return input.squeeze(dim)
    def vjp_input(F, grad, input_shape): return F.reshape(grad, input_shape)

    def samples(make):
        yield (make(1, 3, 1), None), {}
        yield (make(1, 3, 1), (-1,)), {}
        yield (make(2, 3), (0,)), {}


_squeeze_all, _squeeze_one, _squeeze_some = (
    operator(view=True, module=None, name=name, node=f"SqueezeBackward{number}")(_Squeezing)
    for number, name in enumerate(("squeeze", "squeeze_one", "squeeze_some"))
)


@composite(method=True)
def squeeze(input: Tensor, dim=None) -> Tensor:
    """Dimensions of size 1 left out: all of them, or those of `dim` (an int or several) that have size 1.

    Returns a view. IndexError for a dimension that is not there.
    """
    if dim is None:
        return _squeeze_all(input)
    return _squeeze_some(input, tuple(dim)) if isinstance(dim, (tuple, list)) else _squeeze_one(input, int(dim))


@operator(view=True, method=True)
class unsqueeze:
    """A dimension of size 1 put in at `dim`.

    input: [*S]. Returns a view with one more dimension; dim in [-ndim - 1, ndim], else IndexError.
    """

    def canonical(input, dim: int): return one_dim(dim, input.ndim + 1)
    def forward(xp, input: Array, dim: int): return input[(*(slice(None),) * dim, None, ...)]
    def vjp_input(F, grad, input_shape): return F.reshape(grad, input_shape)

    def samples(make):
        yield (make(3, 4), 1), {}
        yield (make(), -1), {}


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


# --- order of dimensions ---------------------------------------------------------------------------------------------


@operator(view=True, method=True)
class transpose:
    """Two dimensions exchanged.

    input: [*S]. Returns a view. IndexError for a dimension that is not there.
    """

    def canonical(input, dim0: int, dim1: int): return one_dim(dim0, input.ndim), one_dim(dim1, input.ndim)
    def forward(xp, input: Array, dim0: int, dim1: int): return input.swapaxes(dim0, dim1) if input.ndim else input[...]
    def vjp_input(F, grad, dim0, dim1): return F.transpose(grad, dim0, dim1)
    def batch(F, input, dim0, dim1): return F.transpose(input, dim0 + 1, dim1 + 1) if input.ndim > 1 else F.alias(input)
    def samples(make): yield (make(2, 3, 4), 0, -1), {}


@composite(method=True, alias=["swapdims"])
def swapaxes(input: Tensor, axis0: int, axis1: int) -> Tensor:
    """Two dimensions exchanged; `transpose` under another name."""
    return transpose(input, axis0, axis1)


@operator(view=True, method=True)
class t:
    """A matrix transposed; vectors and 0-d tensors unchanged.

    input: at most two dimensions, else RuntimeError. Returns a view.
    """

    def forward(xp, input: Array):
        if input.ndim > 2:
            raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {input.ndim}D")
        return input.T

    def vjp_input(F, grad): return F.t(grad)
    def batch(F, input): return F.transpose(input, 1, 2) if input.ndim > 2 else F.alias(input)

    def samples(make):
        yield (make(2, 3),), {}
        yield (make(3),), {}


@operator(view=True, module=None, name="permute")
class permute_:
    """The raw form of `permute`: dimensions as one tuple."""

    def canonical(input, dims: tuple):
        if len(dims) != input.ndim:
            raise RuntimeError("permute(): number of dimensions in the tensor input does not match the length of the desired "
                               f"ordering of dimensions i.e. input.dim() = {input.ndim} is not equal to len(dims) = {len(dims)}")
        found = tuple([d if 0 <= d < input.ndim else one_dim(d, input.ndim) for d in dims])
        if len(set(found)) != len(found):
            raise RuntimeError(f"permute(): duplicate dims are not allowed. Got {list(dims)}")
        return found

    def forward(xp, input: Array, dims: tuple): return input.transpose(dims)
    def vjp_input(F, grad, dims): return F.permute(grad, tuple(sorted(range(len(dims)), key=dims.__getitem__)))
    def batch(F, input, dims): return F.permute(input, (0, *[d + 1 for d in dims]))
    def samples(make): yield (make(2, 3, 4), (1, -1, 0)), {}


@composite(method=True)
def permute(input: Tensor, *order, dims=None) -> Tensor:
    """The dimensions in another order.

    input: [*S]; dims: each dimension once. Returns a view. RuntimeError for another number of dims or one given twice.
    """
    return permute_(input, dims_of(order if dims is None else (dims,), "permute"))


show_to_formulas("permute", permute)


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


# --- the whole as it is ----------------------------------------------------------------------------------------------


@operator(view=True, module=None, batching="leading")
class alias:
    """A view of everything."""

    def forward(xp, input: Array): return input[...]
    def vjp_input(F, grad): return grad
    def samples(make): yield (make(2, 3),), {}


@composite(method=True)
def positive(input: Tensor) -> Tensor:
    """The tensor itself; RuntimeError for bools."""
    if input._array.dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.")
    return input


Tensor.__pos__ = positive


# --- complex as real, real as complex --------------------------------------------------------------------------------


@operator(view=True, holomorphic=False, batching="leading")
class view_as_real:
    """Complex numbers as pairs of real and imaginary part.

    input: [*S], complex, else RuntimeError. Returns [*S, 2], a view.
    """

    def forward(xp, input: Array):
        if input.dtype.kind != "c":
            raise RuntimeError(f"view_as_real is only supported for complex tensors, got {input.dtype}")
        real = input.real
        return xp.lib.stride_tricks.as_strided(real, (*real.shape, 2), (*real.strides, real.itemsize))

    def vjp_input(F, grad): return F.complex(grad[..., 0], grad[..., 1])


@operator(view=True, holomorphic=False, batching="leading")
class view_as_complex:
    """Pairs of real numbers as complex numbers.

    input: [*S, 2], floating-point, the pairs adjacent in memory, else RuntimeError. Returns [*S], a view.
    """

    def forward(xp, input: Array):
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
        return input.view(xp.complex64 if input.dtype.char == "f" else xp.complex128)[..., 0]

    def vjp_input(F, grad): return F.view_as_real(grad)


# --- methods that change the tensor's own geometry -------------------------------------------------------------------


def _own_geometry(name: str, taken):
    """A method that lets the tensor itself become the view that `taken(tensor, ...)` makes."""

    def change(self: Tensor, *args, **kwargs) -> Tensor:
        if self._requires_grad or self._view is not None:
            check_inplace(self, False)
        fresh = taken(self, *args, **kwargs)
        self._array, above = fresh._array, self._view
        if fresh._edge is not None:
            self._edge = fresh._edge
        if above is not None:
            self._view = fresh._view
        written(self, name)
        if above is not None and fresh._view is not None:
            self._view.version = self._counter.value
        return self

    change.__name__ = change.__qualname__ = name
    change.__doc__ = f"In-place form of `{name[:-1]}`: the tensor's own sizes and strides change, its memory stays."
    return change


def own_geometry(**methods) -> None:
    """Attach in-place methods that change geometry: name -> function that makes the view."""
    for name, taken in methods.items():
        setattr(Tensor, name, _own_geometry(name, taken))


own_geometry(transpose_=transpose, t_=t, squeeze_=squeeze, unsqueeze_=unsqueeze, swapaxes_=swapaxes, swapdims_=swapaxes)
