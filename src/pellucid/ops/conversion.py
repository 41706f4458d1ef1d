"""Copies and conversions: `clone`, `contiguous`, `to` and its relatives, and overwriting a tensor by values or a number.

Old typed constructors (`FloatTensor`, ...) and `type()` are in `legacy.py`.
"""

from __future__ import annotations

import warnings

import numpy as np

from pellucid.autograd.call import inplace
from pellucid.autograd.operator import PUBLIC, Array, composite, operator
from pellucid.autograd.views import check_inplace, written
from pellucid.core import memory_format as formats
from pellucid.core.device import check_device
from pellucid.core.device import device as device_class
from pellucid.core.dtype import DTYPES, dtype_of
from pellucid.core.dtype import dtype as dtype_class
from pellucid.core.memory_format import arranged, channels_last, contiguous_format, has_format, memory_format
from pellucid.core.modes import GENERAL, modes
from pellucid.core.tensor import Tensor
from pellucid.core.values import number_in
from pellucid.ops.batches import for_each, side_by_side

__all__ = ["clone", "fill", "memory_format", "zero"]


# --- memory formats --------------------------------------------------------------------------------------------------

for _name in ("channels_last", "channels_last_3d", "contiguous_format", "memory_format", "preserve_format"):
    PUBLIC["torch"][_name] = getattr(formats, _name)


def is_contiguous(self: Tensor, memory_format: memory_format | None = None) -> bool:
    """Whether the elements lie in memory in row-major order, or in that of `memory_format`."""
    return has_format(self._array, memory_format)


Tensor.is_contiguous = is_contiguous


# --- copies ----------------------------------------------------------------------------------------------------------


def _each_in_order(F, input, order: memory_format | None, copy):
    """A batch of copies, each with its own elements in an order of memory: the batch joins the examples' first dimension."""
    if order is None or not order.name.startswith("channels_last") or input.ndim < 3:
        return copy(input)
    return F.view(copy(F.reshape(input, (-1, *input.shape[2:]))), input.shape)


@operator(method=True, exact=True, widen=False, holomorphic=False, linear=True)
class clone:
    """A copy, through which gradients pass.

    input: [*S]. Returns [*S], elements in the order of the input's memory unless `memory_format` says otherwise.
    """

    def forward(xp, input: Array, *, memory_format=None):
        if memory_format is None and input.flags.c_contiguous:
            return input.copy()
        return arranged(input, memory_format)

    def vjp_input(F, grad): return grad

    def batch(F, input, memory_format):
        return _each_in_order(F, input, memory_format, lambda whole: F.clone(whole, memory_format=memory_format))

    def samples(make):
        yield (make(3, 4),), {}
        yield (make(3, 4).T,), {}
        yield (make(2, 3, 2, 2),), {"memory_format": channels_last}


@composite(method=True, module=None)
def contiguous(input: Tensor, memory_format: memory_format = contiguous_format) -> Tensor:
    """The tensor itself if its elements lie in row-major order (or that of `memory_format`), else a copy in which they do."""
    if has_format(input._array, memory_format):
        return input
    return clone(input, memory_format=memory_format)


def cast(array: np.ndarray, kind: np.dtype) -> np.ndarray:
    """A copy in another element type; of complex values the real part."""
    if array.dtype.kind == "c" and kind.kind not in "cb":
        array = array.real
    return array.astype(kind)


@operator(module=None, name="_to_copy", node="ToCopyBackward0", casts=True, widen=False, holomorphic=False, linear=True)
class to_copy:
    """A copy in another element type, a NumPy dtype.

    The derivative is cast back; that of complex values of which the real part was kept is the gradient as a complex number.
    """

    def forward(xp, input: Array, kind, order=None):
        made = cast(input, kind)
        return made if order is None or has_format(made, order) else arranged(made, order)

    def vjp_input(F, grad, input_dtype): return F._to_copy(grad, input_dtype)

    def batch(F, input, kind, order):
        return _each_in_order(F, input, order, lambda whole: F._to_copy(whole, kind, order))

    def samples(make):
        yield (make(3, 4), np.dtype(np.complex128)), {}
        yield (make(2, 3, 2, 2), make.dtype, channels_last), {}


def _converted(input: Tensor, kind: np.dtype, copy: bool = False, order=None) -> Tensor:
    """The tensor in another element type and order of memory; itself where nothing changes."""
    if input._array.dtype == kind and not copy and (order is None or has_format(input._array, order)):
        return input
    if input._array.dtype.kind == "c" and kind.kind not in "cb":
        warnings.warn("Casting complex values to real discards the imaginary part", UserWarning, stacklevel=3)
    return to_copy(input, kind, order)


def _read_target(args, device, dtype, other):
    """The device and dtype that the arguments of `to` name."""
    for arg in args:
        if isinstance(arg, dtype_class):
            dtype = arg
        elif isinstance(arg, Tensor):
            other = arg
        elif isinstance(arg, (str, device_class)):
            device = arg
        elif arg is not None and not isinstance(arg, bool):
            if isinstance(arg, int):
                raise RuntimeError(f"Cannot access accelerator device when none is available: to({arg}) names one; use 'cpu'.")
            raise TypeError(
                "to() received an invalid combination of arguments - expected a dtype, a device or a tensor, "
                f"but got ({type(arg).__name__})"
            )
    if other is not None:
        dtype = other.dtype
    if device is not None:
        check_device(device)
    return dtype


@composite(method=True, module=None)
def to(input: Tensor, *args, device=None, dtype=None, other=None, non_blocking: bool = False, copy: bool = False,
       memory_format: memory_format | None = None) -> Tensor:  # fmt: skip
    """The tensor in another element type: `to(dtype)`, `to(device, dtype)`, `to(other)`.

    Returns the tensor itself if nothing changes and `copy` is false. RuntimeError for a device that is not the CPU.
    """
    dtype = _read_target(args, device, dtype, other)
    flags = [a for a in args if isinstance(a, bool)]
    copy = copy or (len(flags) > 1 and flags[1])
    return _converted(input, input._array.dtype if dtype is None else dtype.numpy, copy, memory_format)


@composite(method=True, module=None)
def type_as(input: Tensor, other: Tensor) -> Tensor:
    """The tensor in the element type of another."""
    return _converted(input, other._array.dtype)


def _cast_method(name: str, kind: np.dtype) -> None:
    def method(self: Tensor, memory_format: memory_format | None = None) -> Tensor:
        return _converted(self, kind, order=memory_format)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"The tensor as {dtype_of(kind).name}; itself if it is that already."
    setattr(Tensor, name, method)


for _name, _kind in (
    ("float", "float32"),
    ("double", "float64"),
    ("half", "float16"),
    ("bfloat16", "bfloat16"),
    ("int", "int32"),
    ("long", "int64"),
    ("short", "int16"),
    ("bool", "bool"),
    ("char", "int8"),
    ("byte", "uint8"),
    ("cfloat", "complex64"),
    ("cdouble", "complex128"),
):
    _cast_method(_name, DTYPES[_kind].numpy)


@composite(method=True, module=None)
def cuda(input: Tensor, device=None, non_blocking: bool = False, memory_format=None) -> Tensor:
    """RuntimeError: there is no CUDA device."""
    check_device("cuda" if device is None or isinstance(device, int) else device)
    return input


def _only_here(name: str, doc: str, answer) -> None:
    """A method about devices and processes, whose answer is always the same: all memory is this process's, on the CPU."""

    def method(self: Tensor, device=None, memory_format=None):
        return self if answer is None else answer

    method.__name__ = method.__qualname__ = name
    method.__doc__ = doc
    setattr(Tensor, name, method)


_only_here("cpu", "The tensor itself: it is on the CPU.", None)
_only_here("pin_memory", "The tensor itself: without an accelerator there is nothing to pin memory for.", None)
_only_here("is_pinned", "False: there is no accelerator to pin memory for.", False)
_only_here("share_memory_", "The tensor itself; threads share all memory, and processes get copies.", None)
_only_here("is_shared", "False: memory is not shared with other processes.", False)


# --- overwriting -----------------------------------------------------------------------------------------------------


def store(tensor: Tensor, values: np.ndarray, name: str) -> None:
    """Write values into a tensor whose write is not recorded."""
    target = tensor._array
    if values.dtype.kind == "c" and target.dtype.kind not in "cb":
        values = values.real
    np.copyto(target, values, casting="unsafe")
    written(tensor, name)


@operator(module=None, name="copy", node="CopyBackwards", broadcast=True, holomorphic=False, exact=False, widen=False)
class copy_into:
    """The value that `copy_` writes: `src` in the shape and type of `input`."""

    def forward(xp, input: Array, src: Array):
        return xp.broadcast_to(cast(src, input.dtype) if src.dtype != input.dtype else src, input.shape)

    def vjp_input(F, grad): return F.zero(grad)
    def vjp_src(F, grad, src_dtype): return F._to_copy(grad, src_dtype)
    def jvp_input(F, tangent): return F.zero(tangent)
    def jvp_src(F, tangent): return tangent  # broadcast and cast as every tangent is

    def batch(F, size_of_batch, batched, input, src):
        input = for_each(F, input, "input" in batched, size_of_batch)
        return F.copy(*side_by_side(F, batched | {"input"}, input=input, src=src))


def _check_broadcast(target: np.ndarray, shape: tuple[int, ...]) -> None:
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


def copy_(self: Tensor, src: Tensor, non_blocking: bool = False) -> Tensor:
    """Overwrite this tensor with the values of another (or a number), broadcast and cast; gradients pass to `src`.

    Raises: RuntimeError where the shapes do not fit, or this tensor may not be written to; TypeError for no tensor.
    """
    if not isinstance(src, Tensor):
        if not isinstance(src, (int, float, complex)):
            raise TypeError(f"copy_(): argument 'other' (position 1) must be Tensor, not {type(src).__name__}")
        return fill_(self, src)
    if self._array.shape != src._array.shape:
        _check_broadcast(self._array, src._array.shape)
    if modes.road is not GENERAL and not check_inplace(self, src.requires_grad):
        store(self, src._array, "copy_")
        return self
    return inplace(copy_into.operator, self, (src,))


FILLS = {"module": None, "fills": True, "widen": False, "elementwise": True}


@operator(**FILLS, node="FillBackward0")
class fill_number:
    """The value that `fill_(number)` writes."""

    def forward(xp, input: Array, value): return xp.full(input.shape, number_in(value, input.dtype), input.dtype)
    def vjp_input(F, grad): return F.zero(grad)


@operator(**FILLS, node="FillBackward1")
class fill_tensor:
    """The value that `fill_(tensor)` writes: a 0-d tensor everywhere."""

    def forward(xp, input: Array, value: Array):
        return xp.broadcast_to(cast(value, input.dtype), xp.broadcast_shapes(input.shape, value.shape)).copy()

    def vjp_input(F, grad): return F.zero(grad)
    def vjp_value(F, grad, value_dtype): return F._to_copy(grad, value_dtype)
    def samples(make): yield (make(3, 4), make()), {}


def _filling(value):
    """The operator for a value: a number, or a 0-d tensor (else RuntimeError)."""
    if not isinstance(value, Tensor):
        return fill_number
    if value._array.ndim:
        raise RuntimeError(f"fill_ only supports 0-dimension value tensor but got tensor with {value._array.ndim} dimensions.")
    return fill_tensor


@composite()
def fill(input: Tensor, value) -> Tensor:
    """A tensor of the shape and type of `input`, full of one number (or 0-d tensor)."""
    return _filling(value)(input, value)


def fill_(self: Tensor, value) -> Tensor:
    """Overwrite every element with one number, or with the value of a 0-d tensor, to which gradients then pass."""
    if not isinstance(value, Tensor) and modes.road is not GENERAL and not check_inplace(self, False, fills=True):
        self._array.fill(number_in(value, self._array.dtype))
        written(self, "fill_")
        return self
    return inplace(_filling(value).operator, self, (value,))


@operator(**FILLS, name="zero", node="ZeroBackward0")
class zero_value:
    """The value that `zero_()` writes."""

    def forward(xp, input: Array): return xp.zeros(input.shape, input.dtype)
    def vjp_input(F, grad): return F.zero(grad)


def zero_(self: Tensor) -> Tensor:
    """Overwrite every element with 0."""
    if modes.road is not GENERAL and not check_inplace(self, False, fills=True):
        self._array.fill(0)
        written(self, "zero_")
        return self
    return inplace(zero_value.operator, self, ())


@composite()
def zero(input: Tensor) -> Tensor:
    """Zeros in the shape and type of `input`."""
    return zero_value(input)


for _method in (copy_, fill_, zero_):
    setattr(Tensor, _method.__name__, _method)
