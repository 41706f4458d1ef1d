"""Tensors out of sizes and numbers: zeros, ones, ranges, identity, index grids.

Tensors out of given data (`tensor`, `from_numpy`, ...) are made in `construction.py`, random ones in `randoms.py`.
"""

from __future__ import annotations

import inspect
import itertools
import math
import warnings

import numpy as np

from pellucid.autograd.fresh import beside, finished
from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import no_tensor, require_tensors
from pellucid.core.dims import checked_size, one_by_one, sizes_of
from pellucid.core.dtype import default_complex, dtype_of, get_default_dtype, numpy_of
from pellucid.core.tensor import Tensor, wrap
from pellucid.core.values import differs, number_in
from pellucid.kernels.strides import uninitialised

__all__ = [
    "arange", "cartesian_prod", "combinations", "empty", "empty_like", "eye", "full", "full_like", "linspace",
    "logspace", "meshgrid", "new_factory", "ones", "ones_like", "polar", "scalar_tensor", "sized", "tril_indices",
    "triu_indices", "vander", "zeros", "zeros_like",
]  # fmt: skip


def sized(name: str, make, doc: str, *options: str):
    """A factory that takes sizes, `zeros` and its relatives, from what makes the values: `make(shape, dtype, further options)`."""

    def factory(*sizes, size=None, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False,
                memory_format=None, names=None, **more):  # fmt: skip
        shape = checked_size(sizes if size is None else (size,), name)
        kind = numpy_of(dtype, None if out is None or dtype is not None else out._array.dtype)
        return finished(make(shape, kind, **more), requires_grad, device, out)

    *shown, _ = inspect.signature(factory).parameters.values()
    further = [inspect.Parameter(option, inspect.Parameter.KEYWORD_ONLY, default=None) for option in options]
    factory.__signature__ = inspect.Signature([*shown, *further])
    factory.__name__ = factory.__qualname__ = name
    factory.__doc__ = doc + (
        "\n\nsize: integers or one sequence of them. dtype: the default dtype if None. `out` is overwritten and returned."
        "\nRaises: RuntimeError for a negative size, TypeError for one that is no integer."
    )
    return composite()(factory)


zeros = sized("zeros", np.zeros, "A tensor of zeros.")
ones = sized("ones", np.ones, "A tensor of ones.")
empty = sized("empty", np.empty, "A tensor whose values are whatever lay in memory.")


def _like(name: str, make, doc: str):
    """A factory that takes its shape from a tensor."""

    def factory(input, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False, memory_format=None):
        if not isinstance(input, Tensor):
            raise no_tensor(name, "input", input, 1)
        kind = input._array.dtype if dtype is None else numpy_of(dtype)
        return beside(input, lambda array, lead: make(array, kind), requires_grad, device)

    factory.__name__ = factory.__qualname__ = name
    factory.__doc__ = doc + " The element type is the input's unless `dtype` says otherwise."
    return composite()(factory)


zeros_like = _like("zeros_like", np.zeros_like, "Zeros in the shape of `input`.")
ones_like = _like("ones_like", np.ones_like, "Ones in the shape of `input`.")
empty_like = _like("empty_like", np.empty_like, "Whatever lay in memory, in the shape of `input`.")


def _fill_kind(value, dtype) -> np.dtype:
    """The element type of a tensor filled with a number."""
    if dtype is not None:
        return numpy_of(dtype)
    if isinstance(value, (bool, np.bool_)):
        return np.dtype(np.bool_)
    if isinstance(value, int):
        return np.dtype(np.int64)
    return (
        default_complex() if isinstance(value, (np.complexfloating, complex)) else get_default_dtype()
    ).numpy


@composite()
def full(size, fill_value, *, out=None, names=None, dtype=None, layout=None, device=None, pin_memory=False,
         requires_grad=False) -> Tensor:  # fmt: skip
    """A tensor filled with one number, whose Python type decides the element type unless `dtype` does."""
    if isinstance(size, int):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    shape = checked_size((size,), "full")
    if isinstance(fill_value, Tensor) and dtype is None:
        kind = fill_value._array.dtype
    else:
        kind = _fill_kind(fill_value, dtype) if out is None or dtype is not None else out._array.dtype
    if isinstance(fill_value, Tensor) and differs(fill_value):
        return finished(fill_value.detach().to(dtype_of(kind)).expand(shape).clone(), requires_grad, device, out)
    return finished(np.full(shape, number_in(fill_value, kind), kind), requires_grad, device, out)


@composite()
def full_like(input, fill_value, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False,
              memory_format=None) -> Tensor:  # fmt: skip
    """A tensor in the shape, and unless `dtype` says otherwise of the element type, of `input`, filled with one number."""
    kind = input._array.dtype if dtype is None else numpy_of(dtype)
    if isinstance(fill_value, Tensor) and differs(fill_value):
        return full(input.shape, fill_value, dtype=dtype_of(kind), device=device, requires_grad=requires_grad)
    number = number_in(fill_value, kind)
    return beside(input, lambda array, lead: np.full_like(array, number, kind), requires_grad, device)


def new_factory(name: str, make, doc: str) -> None:
    """A method `tensor.name(*size, ...)` that makes a tensor of the same element type."""

    def method(self, *sizes, size=None, dtype=None, device=None, requires_grad=False, layout=None, pin_memory=False):
        shape = checked_size(sizes if size is None else (size,), name)
        kind = self._array.dtype if dtype is None else numpy_of(dtype)
        return beside(self, lambda array, lead: make((*lead, *shape), kind), requires_grad, device)

    method.__name__, method.__doc__ = name, doc
    setattr(Tensor, name, method)


new_factory("new_zeros", np.zeros, "Zeros of this tensor's element type.")
new_factory("new_ones", np.ones, "Ones of this tensor's element type.")
new_factory("new_empty", np.empty, "Whatever lay in memory, of this tensor's element type.")


@composite(method=True, module=None)
def new_full(self: Tensor, size, fill_value, *, dtype=None, device=None, requires_grad=False, layout=None,
             pin_memory=False) -> Tensor:  # fmt: skip
    """A tensor of this tensor's element type, filled with one number."""
    empty = self.new_empty(checked_size((size,), "new_full"), dtype=dtype)
    return full_like(empty, fill_value, device=device, requires_grad=requires_grad)


def _sizes_and_strides(size, stride) -> tuple[tuple[int, ...], tuple[int, ...]]:
    size, stride = sizes_of((size,), "empty_strided"), sizes_of((stride,), "empty_strided")
    if len(size) != len(stride):
        raise RuntimeError(f"dimensionality of sizes ({len(size)}) must match dimensionality of strides ({len(stride)})")
    return size, stride


@composite(method=True, module=None)
def new_empty_strided(self: Tensor, size, stride, dtype=None, device=None, requires_grad=False, layout=None,
                      pin_memory=False) -> Tensor:  # fmt: skip
    """An uninitialised tensor with the given sizes and strides (in elements)."""
    kind = self._array.dtype if dtype is None else numpy_of(dtype)
    geometry = _sizes_and_strides(size, stride)
    return beside(self, lambda array, lead: uninitialised(*geometry, kind, lead), requires_grad, device)


@composite()
def empty_strided(size, stride, *, dtype=None, layout=None, device=None, requires_grad=False, pin_memory=False) -> Tensor:
    """An uninitialised tensor with the given sizes and strides (in elements)."""
    return finished(uninitialised(*_sizes_and_strides(size, stride), numpy_of(dtype)), requires_grad, device)


@composite()
def empty_permuted(size, physical_layout, *, dtype=None, layout=None, device=None, requires_grad=False,
                   pin_memory=False) -> Tensor:  # fmt: skip
    """An uninitialised tensor whose dimensions lie in memory in the order `physical_layout`, the outermost first."""
    size, order = sizes_of((size,), "empty_permuted"), tuple(physical_layout)
    if len(order) != len(size):
        raise RuntimeError(
            f"Number of dimensions in size does not match the length of the physical_layout; i.e. len(size) = "
            f"{len(size)} is not equal to len(physical_layout) = {len(order)}"
        )
    if sorted(order) != list(range(len(size))):
        what = "Duplicate dim not allowed" if len(set(order)) < len(order) else "Dimension out of range"
        raise RuntimeError(f"{what} in physical_layout {list(order)} (expected each of 0 to {len(size) - 1} once)")
    memory = np.empty(tuple([size[d] for d in order]), numpy_of(dtype))
    return finished(memory.transpose([order.index(d) for d in range(len(size))]), requires_grad, device)


@composite()
def scalar_tensor(s, *, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False) -> Tensor:
    """A 0-d tensor, in the default dtype unless `dtype` says otherwise."""
    kind = numpy_of(dtype)
    return finished(number_in(s, kind), requires_grad, device)


# --- ranges ----------------------------------------------------------------------------------------------------------


def _number(value):
    """A Python number out of a number or a one-element tensor."""
    return value.item() if isinstance(value, (Tensor, np.generic)) else value


@composite()
def arange(start, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, pin_memory=False,
           requires_grad=False) -> Tensor:  # fmt: skip
    """The numbers from `start` (0 if only one bound is given) up to but without `end`, in steps.

    Integers give int64, anything else the default dtype. RuntimeError for a step of 0 or away from `end`; ValueError for one
    that becomes 0 as an int64.
    """
    start, end = (0, start) if end is None else (start, end)
    bounds = [_number(v) for v in (start, end, step)]
    start, end, step = bounds
    if not (step > 0 or step < 0):
        raise RuntimeError(f"step must be nonzero: got {step}")
    if any(isinstance(v, float) and not math.isfinite(v) for v in (start, end)):
        raise RuntimeError(f"unsupported range: {start} -> {end}")
    if (end - start) * step < 0:
        raise RuntimeError(f"upper bound and lower bound inconsistent with step sign: start={start}, end={end}, step={step}")
    whole = all(isinstance(v, int) for v in bounds)
    kind = numpy_of(dtype, np.dtype(np.int64) if whole else None)
    if out is not None and dtype is None:
        kind = out._array.dtype
    if kind == np.int64:
        if not int(step):
            raise ValueError(f"step must be nonzero: {step} becomes 0 as an int64")
        start, end, step = int(start), int(end), int(step)
        count = -((start - end) // step)
    else:
        count = math.ceil((end - start) / step)
        start, step = (int(start), int(step)) if kind.kind in "iu" else (start, step)
    if start == 0 and step == 1 and kind.kind in "if":
        return finished(np.arange(count, dtype=kind), requires_grad, device, out)
    steps = np.arange(count, dtype=np.int64 if kind.kind in "iu" else np.float64)
    return finished((start + steps * step).astype(kind), requires_grad, device, out)


@composite(name="range")
def range_(start=0, end=None, step=1, *, out=None, dtype=None, layout=None, device=None, requires_grad=False) -> Tensor:
    """As `arange`, but with `end` in it. Deprecated in PyTorch; here for old programs."""
    warnings.warn(
        "torch.range is deprecated and will be removed in a future release because its behavior is inconsistent with "
        "Python's range builtin. Instead, use torch.arange, which produces values in [start, end).",
        UserWarning,
        stacklevel=2,
    )
    if step == 0:
        raise RuntimeError("step must be nonzero")
    if (end - start) * step < 0:
        raise RuntimeError("upper bound and lower bound inconsistent with step sign")
    count = math.floor((end - start) / step) + 1
    return finished(
        (start + np.arange(count, dtype=np.float64) * step).astype(numpy_of(dtype)), requires_grad, device, out
    )


def _evenly(start, end, steps: int, kind: np.dtype, name: str = "linspace") -> np.ndarray:
    """`steps` numbers from start to end; both halves are counted from their own end, so that both ends are exact."""
    if isinstance(steps, bool) or not hasattr(steps, "__index__"):
        raise TypeError(f"{name}(): argument 'steps' must be int, not {type(steps).__name__}")
    if kind.kind == "b":
        raise NotImplementedError(f"\"{name}_cpu\" not implemented for 'Bool'")
    steps = int(steps)
    if steps < 0:
        raise RuntimeError(f"number of steps must be non-negative, got {steps}")
    real = np.dtype(np.float64) if kind.kind in "iu" else kind if kind.itemsize >= 4 else np.dtype(np.float32)
    if kind.kind in "iu":
        start, end = int(number_in(start, kind)), int(number_in(end, kind))
    if steps <= 1:
        return np.full(steps, start, real)
    first, last = real.type(start), real.type(end)
    step = (last - first) / real.type(steps - 1)
    index = np.arange(steps)
    ahead, behind = index.astype(real), (steps - 1 - index).astype(real)
    return np.where(index < steps // 2, first + step * ahead, last - step * behind)


def _range_kind(dtype, out, *bounds) -> np.dtype:
    if dtype is None and out is not None:
        return out._array.dtype
    default = default_complex().numpy if any(isinstance(b, complex) for b in bounds) else None
    found = numpy_of(dtype, default)
    if default is not None and found.kind != "c":
        raise RuntimeError(f"inferred dtype of complex bounds can't be safely cast to passed dtype {dtype}")
    return found


@composite()
def linspace(start, end, steps, *, out=None, dtype=None, layout=None, device=None, pin_memory=False,
             requires_grad=False) -> Tensor:  # fmt: skip
    """`steps` evenly spaced numbers from `start` to `end`, both included. RuntimeError for a negative number of steps."""
    start, end = _bound("linspace", "start", start), _bound("linspace", "end", end)
    kind = _range_kind(dtype, out, start, end)
    return finished(_evenly(start, end, steps, kind).astype(kind), requires_grad, device, out)


@composite()
def logspace(start, end, steps, base=10.0, *, out=None, dtype=None, layout=None, device=None, pin_memory=False,
             requires_grad=False) -> Tensor:  # fmt: skip
    """`steps` numbers from base^start to base^end, evenly spaced on a logarithmic scale."""
    start, end = _bound("logspace", "start", start), _bound("logspace", "end", end)
    kind = _range_kind(dtype, out, start, end, base)
    exponents = _evenly(start, end, steps, kind, "logspace")
    with np.errstate(all="ignore"):
        powers = np.power(exponents.dtype.type(base), exponents)
        return finished(powers.astype(kind), requires_grad, device, out)


def _bound(operator_name: str, name: str, value):
    """A bound of a range as a Python number; RuntimeError for a tensor of several elements."""
    if isinstance(value, Tensor) and value._array.ndim:
        raise RuntimeError(
            f"{operator_name} only supports 0-dimensional start and end tensors, but got {name} with {value._array.ndim} dimension(s)."
        )
    return _number(value)


@composite()
def eye(n, m=None, *, out=None, dtype=None, layout=None, device=None, pin_memory=False, requires_grad=False) -> Tensor:
    """A matrix with ones on the diagonal and zeros elsewhere, n x m (n x n if `m` is None)."""
    for name, value in (("n", n), ("m", m)):
        if value is not None and value < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {value}")
    kind = out._array.dtype if out is not None and dtype is None else numpy_of(dtype)
    return finished(np.eye(n, m, dtype=kind), requires_grad, device, out)


def _triangle_indices(name: str, find):
    def indices(row, col, offset=0, *, dtype=None, device=None, layout=None):
        for what, value in (("row", row), ("col", col)):
            if value < 0:
                raise RuntimeError(f"{what} must be non-negative, got {value}")
        pair = find(np.arange(row)[:, None], np.arange(col), offset)
        return finished(np.stack(np.nonzero(pair)).astype(numpy_of(dtype, np.dtype(np.int64))), False, device)

    indices.__name__ = indices.__qualname__ = name
    indices.__doc__ = (
        "Row and column indices, int64 [2, n], of a triangle of a matrix of row x col elements, row by row."
    )
    return composite()(indices)


tril_indices = _triangle_indices("tril_indices", lambda i, j, offset: j <= i + offset)
triu_indices = _triangle_indices("triu_indices", lambda i, j, offset: j >= i + offset)


# --- grids and combinations of given tensors -------------------------------------------------------------------------


@composite()
def meshgrid(*tensors, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Grids of coordinates: one tensor for each vector given, constant along the dimensions of the others.

    indexing: "ij" (dimensions in the order of the vectors) or "xy" (the first two exchanged). Returns expanded views.
    """
    tensors = one_by_one(tensors)
    if not tensors:
        raise ValueError("meshgrid expects a non-empty TensorList")
    if indexing is None:
        warnings.warn(
            "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument.",
            UserWarning,
            stacklevel=2,
        )
        indexing = "ij"
    if indexing not in ("ij", "xy"):
        raise RuntimeError(f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}')
    for tensor in tensors:
        if tensor._array.ndim > 1:
            raise RuntimeError(f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but got: {list(tensor._array.shape)}")
        if tensor._array.dtype != tensors[0]._array.dtype:
            raise RuntimeError("torch.meshgrid expects all tensors to have the same dtype")
    swap = indexing == "xy" and len(tensors) >= 2
    if swap:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    shape = tuple([t._array.size for t in tensors])
    grids = []
    for position, tensor in enumerate(tensors):
        own = [1] * len(shape)
        own[position] = shape[position]
        grids.append(tensor.view(own).expand(shape))
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@composite()
def cartesian_prod(*tensors) -> Tensor:
    """All combinations of one element from each vector, [product of lengths, number of vectors]; one vector is itself."""
    tensors = one_by_one(tensors)
    for tensor in tensors:
        if tensor._array.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(tensor._array.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    from pellucid.ops.joining import stack

    return stack([g.flatten() for g in meshgrid(*tensors, indexing="ij")], 1)


@composite()
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All subsets of r elements of a vector, [count, r], in order; with replacement, elements may repeat."""
    if input._array.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input._array.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return finished(np.empty(0, input._array.dtype))
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    found = np.array(list(choose(range(input._array.size), r)), np.int64).reshape(-1, r)
    return input[wrap(found)]


@composite()
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The Vandermonde matrix of a vector: column k holds x**k, highest power first unless `increasing`."""
    if x._array.ndim != 1:
        raise RuntimeError(f"x must be a one-dimensional tensor, but got shape {list(x._array.shape)}")
    count = x._array.size if N is None else N
    if count < 0:
        raise RuntimeError(f"N must be non-negative, got {N}")
    if x._array.dtype.kind in "iub":
        x = x.long()
    powers = [ones_like(x)]
    for _ in range(1, count):
        powers.append(powers[-1] * x)
    from pellucid.ops.joining import stack

    if not count:
        return finished(np.empty((x._array.size, 0), x._array.dtype))
    return stack(powers if increasing else powers[::-1], 1)


# --- complex out of real ---------------------------------------------------------------------------------------------


@composite()
def polar(abs: Tensor, angle: Tensor) -> Tensor:
    """Complex numbers out of absolute value and angle, of one floating-point type."""
    require_tensors("polar", abs=abs, angle=angle)
    if abs._array.dtype.char not in "fd" or angle._array.dtype.char not in "fd":
        raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {abs.dtype} and {angle.dtype}")
    if abs._array.dtype != angle._array.dtype:
        raise RuntimeError(f"Expected object of scalar type {abs.dtype} but got scalar type {angle.dtype} for second argument")
    return T.complex(abs * angle.cos(), abs * angle.sin())
