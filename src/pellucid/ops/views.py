"""Views of the whole tensor: other sizes, another order of dimensions, reinterpretation; they share the operand's memory.

Expansion is in `expansion.py`; views of a part (slices, diagonals, pieces) are in `parts.py` and `splitting.py`, indexing
with brackets in `indexing.py`; what is made of these views (flattening, moved dimensions, transposes) in `functions/shapes.py`.
"""

from __future__ import annotations

from pellucid.autograd.operator import OPERATORS, Array, composite, operator
from pellucid.core import geometry
from pellucid.core.dims import canonical_dims, dims_of, infer_size, one_dim, sizes_of
from pellucid.core.dtype import dtype as dtype_class
from pellucid.core.tensor import Tensor
from pellucid.kernels import strides
from pellucid.kernels.strides import viewable

__all__ = ["alias", "permute", "reshape", "show_to_formulas", "squeeze", "t", "transpose", "unsqueeze", "view",
           "view_as_complex", "view_as_real"]  # fmt: skip

INCOMPATIBLE = (
    "view size is not compatible with input tensor's size and stride (at least one dimension spans across two contiguous "
    "subspaces). Use .reshape(...) instead."
)


def show_to_formulas(name: str, function) -> None:
    """Let formulas on tensors, and overriding classes, see `function` under the operator's name."""
    OPERATORS[name].public = function
    function.operator = OPERATORS[name]


# --- other sizes -----------------------------------------------------------------------------------------------------


@operator(view=True, module=None, name="view", node="ViewBackward0")
class view_:
    """The same elements in another shape; one size may be -1.

    input: [*S]; size: as many elements. Returns [*size], sharing memory.
    Raises: RuntimeError for another number of elements, or for strides that no view can express.
    """

    def canonical(input, size: tuple): return infer_size(size, input.size)

    def forward(xp, input: Array, size: tuple):
        made = viewable(input, size)
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

    canonical = geometry.same_memory_as
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
    return view_(input, size) if viewable(array, size) is not None else reshape_copy(input, size)


show_to_formulas("reshape", reshape)


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

    canonical = geometry.permutation

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


# --- the whole as it is ----------------------------------------------------------------------------------------------


@operator(view=True, module=None, batching="leading")
class alias:
    """A view of everything."""

    def forward(xp, input: Array): return input[...]
    def vjp_input(F, grad): return grad
    def samples(make): yield (make(2, 3),), {}


# --- complex as real, real as complex --------------------------------------------------------------------------------


@operator(view=True, holomorphic=False, batching="leading")
class view_as_real:
    """Complex numbers as pairs of real and imaginary part.

    input: [*S], complex, else RuntimeError. Returns [*S, 2], a view.
    """

    def forward(xp, input: Array):
        if input.dtype.kind != "c":
            raise RuntimeError(f"view_as_real is only supported for complex tensors, got {input.dtype}")
        return strides.real_pairs(input)

    def vjp_input(F, grad): return F.complex(grad[..., 0], grad[..., 1])


@operator(view=True, holomorphic=False, batching="leading")
class view_as_complex:
    """Pairs of real numbers as complex numbers.

    input: [*S, 2], floating-point, the pairs adjacent in memory, else RuntimeError. Returns [*S], a view.
    """

    def forward(xp, input: Array):
        geometry.check_pairs(input)
        return input.view(xp.complex64 if input.dtype.char == "f" else xp.complex128)[..., 0]

    def vjp_input(F, grad): return F.view_as_real(grad)
