"""The tensor: an array, its place in the graph, and the facts that Python asks of it.

Here live the slots, construction and plain queries. Operators become methods in `ops/`, `backward` and the hooks in
`autograd/`, printing in `core/printing.py`; none of them is imported here.
"""

from __future__ import annotations

import copy
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from pellucid.core.copying import place_in_copy
from pellucid.core.device import CPU, device
from pellucid.core.dtype import dtype, dtype_of, get_default_dtype
from pellucid.core.language import message, say, sentences
from pellucid.core.records import Counter, Cut, InferenceCounter, Rare, Write
from pellucid.core.sites import at, caller
from pellucid.core.size import Size

__all__ = [
    "Buffer",
    "Counter",
    "Cut",
    "InferenceCounter",
    "Number",
    "Parameter",
    "Rare",
    "Tensor",
    "Write",
    "is_dense",
    "make",
    "without_history",
    "wrap",
]


class Number:
    """A Python number standing where an operator takes a tensor; it answers the questions that are put to operands."""

    __slots__ = ("_array",)
    _requires_grad = False
    _edge = _counter = _view = _rare = None

    def __init__(self, value):
        self._array = value


class TensorType(type):
    """The class of tensor classes: `Tensor(...)` is the old constructor; operators make empty tensors by `make`."""

    def __call__(cls, *args, **kwargs):
        if "__new__" in cls.__dict__ or "__init__" in cls.__dict__ or cls.__new__ is not object.__new__:
            return type.__call__(cls, *args, **kwargs)
        return _legacy_new(cls, *args, **kwargs)


class Tensor(metaclass=TensorType):
    """A multi-dimensional array of one element type that can take part in a differentiable computation.

    `Tensor(2, 3)` is an uninitialised 2x3 tensor and `Tensor([1, 2])` holds those values, both in the default dtype;
    `pellucid.tensor` is the factory to use instead.
    """

    # _array          the values: always an ndarray, of one of the dtypes in core/dtype.py
    # _requires_grad  for a view, true only after autograd.views.refresh
    # _edge           (node, output number) that made this tensor; None for a leaf
    # _grad           the accumulated gradient, a Tensor or None
    # _view           how it was taken from its base, or None; see autograd/views.py
    # _counter        version counter, made on the first view, save of a result, or in-place write; None means version 0
    # _rare           everything that few tensors have
    __slots__ = ("__dict__", "__weakref__", "_array", "_counter", "_edge", "_grad", "_rare", "_requires_grad", "_view")

    _wraps = False  # whether the values are in another tensor, see autograd/batching.py

    __array_priority__ = 1000
    __array_ufunc__: Any = None  # NumPy leaves `array * tensor` to the tensor

    if TYPE_CHECKING:
        _array: np.ndarray
        _counter: Any
        _edge: Any
        _grad: Any
        _rare: Any
        _requires_grad: bool
        _view: Any

        def __getattr__(self, name: str) -> Any: ...  # operators and the graph attach their methods and properties

    # --- shape and type ----------------------------------------------------------------------------------------------

    @property
    def shape(self) -> Size:
        """The size of each dimension."""
        return Size(self._array.shape)

    def size(self, dim: int | None = None):
        """The shape, or the size of one dimension; IndexError for a dimension that is not there."""
        shape = self._array.shape
        if dim is None:
            return Size(shape)
        if not -len(shape) <= dim < max(len(shape), 1) or not shape:
            raise IndexError(dim_error(dim, len(shape)))
        return shape[dim]

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    def dim(self) -> int:
        """The number of dimensions."""
        return self._array.ndim

    ndimension = dim

    def numel(self) -> int:
        """The number of elements."""
        return self._array.size

    nelement = numel

    @property
    def dtype(self) -> dtype:
        """The element type."""
        return dtype_of(self._array.dtype)

    @property
    def device(self) -> device:
        """Always the CPU."""
        return CPU

    @property
    def layout(self):
        """Always strided."""
        return strided

    is_cuda = is_xpu = is_mps = is_sparse = is_quantized = is_meta = is_nested = is_mkldnn = False
    is_cpu = True

    def get_device(self) -> int:
        """-1: the CPU has no index."""
        return -1

    def is_floating_point(self) -> bool:
        """Whether the element type is floating-point."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the element type is complex."""
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        """Whether the element type has negative values."""
        return self.dtype.is_signed

    def is_conj(self) -> bool:
        """False: conjugation is never lazy here."""
        return False

    is_neg = is_conj

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self._array.itemsize

    def element_size(self) -> int:
        """Bytes of one element."""
        return self._array.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self._array.nbytes

    def stride(self, dim: int | None = None):
        """Elements to step for the next index of each dimension (or of one)."""
        itemsize = self._array.itemsize
        strides = tuple(s // itemsize for s in _strides(self._array))
        return strides if dim is None else strides[dim]

    def storage_offset(self) -> int:
        """Elements between the start of the storage and the first element."""
        array = self._array
        return (array.ctypes.data - storage_of(array).ctypes.data) // array.itemsize

    def data_ptr(self) -> int:
        """Address of the first element."""
        return self._array.ctypes.data

    def is_contiguous(self, memory_format=None) -> bool:
        """Whether the elements lie in memory in row-major order."""
        return self._array.flags.c_contiguous

    # --- conversions to Python and NumPy -----------------------------------------------------------------------------

    def item(self):
        """The value of a one-element tensor as a Python number; RuntimeError for more or fewer elements."""
        if self._array.size != 1:
            raise RuntimeError(
                f"a Tensor with {self._array.size} elements cannot be converted to Scalar: item() takes a tensor of "
                f"one element, this one has shape {tuple(self._array.shape)}"
            )
        return self._array.item() if self._array.dtype.kind != "V" else float(self._array.reshape(())[()])

    def tolist(self):
        """The values as nested Python lists (a number for a 0-d tensor)."""
        array = self._array
        return (array.astype(np.float32) if array.dtype.kind == "V" else array).tolist()

    def __bool__(self) -> bool:
        if self._array.size != 1:
            what = "no values" if self._array.size == 0 else "more than one value"
            raise RuntimeError(
                f"Boolean value of Tensor with {what} is ambiguous: shape {tuple(self._array.shape)}. "
                f"Use .any() or .all(), or compare a single element."
            )
        return bool(self._array.reshape(()))

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __complex__(self) -> complex:
        return complex(self.item())

    def __index__(self) -> int:
        if self._array.size != 1 or self._array.dtype.kind not in "iub":
            raise TypeError(
                "only integer tensors of a single element can be converted to an index: "
                f"this one has dtype {self.dtype} and shape {tuple(self._array.shape)}"
            )
        return int(self._array.reshape(()))

    def __len__(self) -> int:
        if not self._array.ndim:
            raise TypeError("len() of a 0-d tensor")
        return self._array.shape[0]

    def __repr__(self, *, tensor_contents=None) -> str:
        """The text PyTorch prints."""
        from pellucid.core import printing  # not needed by programs that print nothing

        cls = type(self)
        heading = "Parameter containing:\n" if isinstance(self, Parameter) else ""
        prefix = "tensor(" if cls in (Tensor, Parameter, Buffer) else f"{cls.__name__}("
        default: Any = get_default_dtype().numpy
        return printing.tensor_text(
            self._array, suffixes=self._suffixes(), prefix=prefix, heading=heading, default_dtype=default
        )

    def _suffixes(self) -> tuple[str, ...]:
        tangents = None if self._rare is None else self._rare.tangents
        moving = [f"tangent={tangent}" for tangent in list((tangents or {}).values())[-1:]]  # of the innermost level
        try:
            node = self.grad_fn
        except RuntimeError:
            return ("grad_fn=<Invalid>", *moving)
        if node is not None:
            return (f"grad_fn=<{node.name()}>", *moving)
        return ("requires_grad=True", *moving) if self._requires_grad else tuple(moving)

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return format(self.item(), spec) if spec and not self._array.ndim else str(self)

    __hash__ = object.__hash__

    def __dir__(self):
        names = set(object.__dir__(self))
        if not self.is_complex():
            names.discard("imag")
        return sorted(names)

    def is_same_size(self, other: Tensor) -> bool:
        """Whether both have the same shape."""
        return self._array.shape == other._array.shape

    # --- pickling and copying ----------------------------------------------------------------------------------------

    def __reduce_ex__(self, protocol):
        return (_rebuild_tensor, (type(self), self._array, bool(self.requires_grad), self.__dict__ or None))

    def __deepcopy__(self, memo: dict) -> Tensor:
        if id(self) in memo:
            return memo[id(self)]
        if not self.is_leaf:
            raise RuntimeError(
                message(
                    "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment",
                    _why_not_copied(place_in_copy(), self.grad_fn),
                )
            )
        made = memo[id(self)] = wrap(_copy_storage(self._array, memo), self._requires_grad, type(self))
        if self._grad is not None:
            made._grad = copy.deepcopy(self._grad, memo)
        if self.__dict__:
            made.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return made

    # --- versions ----------------------------------------------------------------------------------------------------

    @property
    def _version(self) -> int:
        """How often the storage was written to in place."""
        if isinstance(self._counter, InferenceCounter):
            raise RuntimeError("Inference tensors do not track version counter.")
        return 0 if self._counter is None else self._counter.value

    def _bump_version(self) -> None:
        """Say that the memory was written to by other means than an operator."""
        counter(self).bump("_bump_version", *caller(sys._getframe(1)))

    def as_subclass(self, cls: type):
        """This tensor as one of a class derived from Tensor, sharing everything."""
        made = wrap(self._array, self._requires_grad, cls)
        made._edge, made._view, made._counter = self._edge, self._view, counter(self)
        return made

    def _alias(self) -> Tensor:
        """The same values and tangents in a new tensor without a history; for use inside the library."""
        made = wrap(self._array)
        if self._rare is not None and self._rare.tangents:
            made.rare.tangents = self._rare.tangents
        return made

    def _bare(self) -> Tensor:
        """The same values in a new tensor without history and tangents; for use inside the library."""
        return wrap(self._array)

    def _snapshot(self) -> Tensor:
        """A copy of the values as they are now, with the tangents, without a history."""
        made = wrap(self._array.copy())
        if self._rare is not None and self._rare.tangents:
            made.rare.tangents = {level: t._snapshot() for level, t in self._rare.tangents.items()}
        return made

    def _drop_grad(self, line: tuple) -> None:
        """Forget the gradient, if there is one, and note the line that wanted it, in the form of `sites.caller`."""
        if self._grad is not None:
            self._grad, self.rare.reset = None, line

    @property
    def rare(self) -> Rare:
        """The record of what few tensors have, made on demand."""
        if self._rare is None:
            self._rare = Rare()
        return self._rare


make = type.__call__.__get__(Tensor)  # a Tensor with nothing set: the cheapest way there is to make one


def _copy_storage(array: np.ndarray, memo: dict) -> np.ndarray:
    """A copy of an array; tensors that share a storage share the copy of it."""
    storage = storage_of(array)
    key = ("pellucid storage", id(storage))
    if key not in memo:
        memo[key] = storage.copy(order="K")
        memo.setdefault("pellucid kept", []).append(storage)
    offset = array.ctypes.data - storage.ctypes.data
    return np.ndarray(array.shape, array.dtype, memo[key], offset, array.strides)


def _why_not_copied(place: str, node: Any) -> str:
    """What made a tensor that cannot be copied, and the way out. place: where it stands; empty where it is copied alone."""
    made = say("{tensor} was made by {operation}{place}.", tensor=place or say("This one"), operation=node.name(), place=at(node.site))
    if place:
        return sentences(made, say("Keep .detach() of it there, or copy before it is computed."))
    return sentences(made, say("Copy .detach() of it instead."))


def _rebuild_tensor(cls: type, array: np.ndarray, requires_grad: bool, state: dict | None) -> Tensor:
    made = wrap(array, requires_grad, cls)
    if state:
        made.__dict__.update(state)
    return made


class strided_layout:
    """The only memory layout there is."""

    def __repr__(self) -> str:
        return "torch.strided"


strided = strided_layout()


def _strides(array: np.ndarray) -> tuple[int, ...]:
    """Byte strides as PyTorch counts them: an axis of size 1 or an empty tensor has the stride of a packed one."""
    if array.flags.c_contiguous:
        strides, step = [], array.itemsize
        for size in reversed(array.shape):
            strides.append(step)
            step *= max(size, 1)
        return tuple(reversed(strides))
    return array.strides


def is_dense(array: np.ndarray) -> bool:
    """Whether the elements fill a stretch of memory once, in whatever order of dimensions."""
    order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
    return array.transpose(order).flags.c_contiguous


def storage_of(array: np.ndarray) -> np.ndarray:
    """The array that owns the memory of a view."""
    while array.base is not None:
        base = array.base
        if not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)  # as_strided puts an object of its own between a view and its array
            if not isinstance(base, np.ndarray):
                break
        array = base
    return array


def dim_error(dim: int, ndim: int) -> str:
    """The text of the error about a dimension that is not there."""
    if not ndim:
        return f"Dimension specified as {dim} but tensor has no dimensions"
    return f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})"


def counter(tensor: Tensor) -> Counter:
    """The version counter of a tensor, made on demand."""
    if tensor._counter is None:
        tensor._counter = Counter()
    return tensor._counter


def wrap(array: np.ndarray, requires_grad: bool = False, cls: type = Tensor):
    """A leaf tensor over an array, without copying."""
    t = object.__new__(cls)
    t._array = array if array.__class__ is np.ndarray else np.asarray(array)
    t._requires_grad = requires_grad
    t._edge = t._grad = t._view = t._counter = t._rare = None
    return t


def without_history(tensor: Tensor) -> Tensor:
    """The same values, and tangents, in a tensor without a history; a tensor that has none is given back itself."""
    return tensor._alias() if tensor._requires_grad or tensor._edge is not None else tensor


def _legacy_new(cls, *args, **kwargs):
    """`Tensor(sizes...)`, `Tensor(sequence)`, `Tensor(tensor)`: the old constructor, in the default dtype."""
    if kwargs:
        raise TypeError(
            f"new() received an unexpected keyword argument: {', '.join(kwargs)}. Use pellucid.tensor instead."
        )
    kind = get_default_dtype().numpy
    if len(args) == 1 and isinstance(args[0], Tensor):
        return wrap(args[0]._array, cls=cls)
    if len(args) == 1 and isinstance(args[0], Size):
        return wrap(np.empty(args[0], kind), cls=cls)
    if len(args) == 1 and not isinstance(args[0], int):
        return wrap(np.array(args[0], kind), cls=cls)
    return wrap(np.empty(args if args else (0,), kind), cls=cls)


class Parameter(Tensor):
    """A tensor that a module registers as one of its parameters when it is assigned to an attribute.

    Args:
        data: the values, shared and not copied; an empty tensor if None.
        requires_grad: whether gradients are accumulated into it.
    """

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True):
        if data is None:
            data = wrap(np.empty(0, np.float32))
        if not isinstance(data, Tensor):
            raise TypeError(f"cannot create Parameter from {type(data).__name__}: expected a Tensor")
        kind = data.dtype
        if requires_grad and not (kind.is_floating_point or kind.is_complex):
            raise RuntimeError(
                f"Only Tensors of floating point and complex dtype can require gradients: got {kind}. "
                f"Pass requires_grad=False, or convert with .float()."
            )
        made = wrap(data._array, requires_grad, cls)
        made._counter = counter(data)
        made.rare.made = caller(sys._getframe(1))
        return made

    def __reduce_ex__(self, protocol):
        return (_rebuild_parameter, (wrap(self._array), self._requires_grad, self.__dict__ or None))


def _rebuild_parameter(data: Tensor, requires_grad: bool, state: dict | None):
    made = Parameter(data, requires_grad)
    if state:
        vars(made).update(state)
    return made


class Buffer(Tensor):
    """A tensor that a module registers as one of its buffers when it is assigned to an attribute.

    Args:
        data: the values, shared and not copied.
        persistent: whether it is part of the module's state dict.
    """

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True):
        data = wrap(np.empty(0, np.float32)) if data is None else data
        made = wrap(data._array, data._requires_grad, cls)
        made._counter = counter(data)
        made.persistent = persistent
        return made

    def __reduce_ex__(self, protocol):
        return (_rebuild_buffer, (wrap(self._array), self.persistent))


def _rebuild_buffer(data: Tensor, persistent: bool) -> Buffer:
    return Buffer(data, persistent=persistent)
