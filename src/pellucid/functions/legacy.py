"""Old ways of PyTorch that programs still use: typed constructors, `type()`, `new`, `resize_`, `set_`, `apply_`."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import PUBLIC, composite
from pellucid.autograd.views import written
from pellucid.core import dtype as dtypes
from pellucid.core.dtype import dtype
from pellucid.core.tensor import InferenceCounter, Tensor, strided, wrap

__all__ = ["TYPES"]

NAMES = {
    "FloatTensor": dtypes.float32, "DoubleTensor": dtypes.float64, "HalfTensor": dtypes.float16,
    "BFloat16Tensor": dtypes.bfloat16, "LongTensor": dtypes.int64, "IntTensor": dtypes.int32, "ShortTensor": dtypes.int16,
    "CharTensor": dtypes.int8, "ByteTensor": dtypes.uint8, "BoolTensor": dtypes.bool,
}  # fmt: skip


def _made(kind: dtype, args: tuple) -> Tensor:
    """A tensor of a type: of the values of a tensor, sequence or array, or uninitialised, of given sizes."""
    if len(args) == 1 and isinstance(args[0], Tensor):
        return args[0].detach().to(kind, copy=True)
    if len(args) == 1 and not isinstance(args[0], int):
        return wrap(np.array(args[0], kind.numpy))
    return wrap(np.empty(args or (0,), kind.numpy))


class _TypedTensor(type):
    """The class of `LongTensor` and its relatives: calling one makes a tensor, `isinstance` asks for the dtype."""

    def __call__(cls, *args):
        return _made(NAMES[cls.__name__], args)

    def __instancecheck__(cls, value) -> bool:
        return isinstance(value, Tensor) and value.dtype is NAMES[cls.__name__]

    def __repr__(cls) -> str:
        return f"<class 'torch.{cls.__name__}'>"


TYPES = {
    name: _TypedTensor(name, (), {"__doc__": f"A tensor of {kind.name}: the old constructor."})
    for name, kind in NAMES.items()
}


PUBLIC["torch"].update(TYPES)


def type_(self: Tensor, dtype=None, non_blocking: bool = False):
    """The name of the old type of this tensor, such as 'torch.FloatTensor'; with an argument, the tensor converted."""
    if dtype is None:
        name = (
            next(name for name, kind in NAMES.items() if kind is self.dtype) if self.dtype in NAMES.values() else None
        )
        return (
            f"torch.{name}"
            if name
            else f"torch.{'ComplexFloatTensor' if self.itemsize == 8 else 'ComplexDoubleTensor'}"
        )
    return self.to(_wanted(dtype))


def _wanted(kind) -> dtype:
    if isinstance(kind, dtype):
        return kind
    name = kind if isinstance(kind, str) else getattr(kind, "__name__", "")
    name = name.removeprefix("torch.").removeprefix("cuda.")
    if name in NAMES:
        return NAMES[name]
    if kind is Tensor or name == "Tensor":
        return dtypes.get_default_dtype()
    raise ValueError(f"invalid type: {kind!r}")


def resize_(self: Tensor, *sizes, memory_format=None) -> Tensor:
    """Change the shape in place; more elements than before are uninitialised. RuntimeError if it requires grad."""
    shape = tuple(sizes[0]) if len(sizes) == 1 and isinstance(sizes[0], (tuple, list)) else sizes
    if self.requires_grad:
        raise RuntimeError("cannot resize variables that require grad")
    if any(n < 0 for n in shape):
        raise RuntimeError(f"Trying to create tensor with negative dimension {min(shape)}: {list(shape)}")
    if tuple(shape) == self._array.shape:
        return self
    whole = np.zeros(int(np.prod(shape)), self._array.dtype)
    flat = self._array.reshape(-1)[: whole.size]
    whole[: flat.size] = flat
    self._array = whole.reshape(shape)
    if not isinstance(self._counter, InferenceCounter):
        written(self, "resize_")
    return self


def resize_as_(self: Tensor, the_template: Tensor, memory_format=None) -> Tensor:
    """Change the shape in place to that of another tensor."""
    return resize_(self, *the_template._array.shape)


def set_(self: Tensor, source: Tensor | None = None, *unused) -> Tensor:
    """Make this tensor another's memory and shape, in place; an empty one without an argument."""
    if self.requires_grad and not self.is_leaf:
        raise RuntimeError("set_() on a computed tensor is not supported: detach() it first")
    self._array = np.empty(0, self._array.dtype) if source is None else source._array
    if self._rare is not None:
        self._rare.accumulator = None  # edges made before lead to the old memory
    written(self, "set_")
    return self


def new(self: Tensor, *args, device=None) -> Tensor:
    """A tensor of this tensor's type: uninitialised for sizes, holding the values of a sequence or array."""
    return _made(self.dtype, args)


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether both are the same memory in the same geometry."""
    mine, theirs = self._array, tensor._array
    return (mine.ctypes.data, mine.shape, mine.strides) == (theirs.ctypes.data, theirs.shape, theirs.strides)


def _need_no_grad(tensor: Tensor, name: str) -> None:
    if tensor.requires_grad:
        raise RuntimeError(f"Can't call {name}() on Variable that requires grad. Use var.detach().{name}() instead")


def apply_(self: Tensor, callable) -> Tensor:
    """Replace each element by what a Python function makes of it. RuntimeError if the tensor requires grad. Slow."""
    _need_no_grad(self, "apply_")
    for place in np.ndindex(self._array.shape):
        self._array[place] = callable(self._array[place].item())
    written(self, "apply_")
    return self


def map_(self: Tensor, tensor: Tensor, callable) -> Tensor:
    """Replace each element by what a Python function makes of it and of another tensor's. Slow."""
    _need_no_grad(self, "map_")
    others = np.broadcast_to(tensor._array, self._array.shape)
    for place in np.ndindex(self._array.shape):
        self._array[place] = callable(self._array[place].item(), others[place].item())
    written(self, "map_")
    return self


def dim_order(self: Tensor) -> tuple[int, ...]:
    """The dimensions in the order in which they lie in memory, the outermost first."""
    return tuple(sorted(range(self._array.ndim), key=lambda d: -self.stride(d)))


Tensor.type, Tensor.resize_, Tensor.resize_as_, Tensor.set_ = type_, resize_, resize_as_, set_
for _method in (new, is_set_to, apply_, map_, dim_order):
    setattr(Tensor, _method.__name__, _method)
for _name in ("detach", "detach_", "fill_", "zero_", "get_device", "resize_as_", "index_put_"):
    composite(name=_name)(getattr(Tensor, _name))
PUBLIC["torch"]["layout"] = type(strided)
