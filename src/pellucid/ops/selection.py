"""Largest and smallest elements over dimensions: amax, max, argmax and their counterparts.

Where an index is returned the gradient follows it; where none is (amax, max over everything) equal elements share it.
Order statistics that need sorting live in `sorting.py`.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Index, composite, operator
from pellucid.core.tensor import Tensor
from pellucid.ops.checks import require_kind
from pellucid.ops.dims import all_dims, keyword_names, one_dim, reduced_shape, require_elements
from pellucid.ops.extrema import maximum, minimum

__all__ = ["amax", "amin", "aminmax", "argmax", "argmin", "max", "min"]


with_indices = {"exact": True, "outputs": ("values", "indices"), "constant": ("indices",)}

# --- places along a dimension ----------------------------------------------------------------------------------------


def taken(array: np.ndarray, indices: np.ndarray, dim: int) -> np.ndarray:
    """NumPy's take_along_axis, in a third of the time for one and two dimensions."""
    if array.ndim == 1:
        return array[indices]
    if array.ndim == 2 and (array.shape[1 - dim] == indices.shape[1 - dim]):
        others = np.arange(array.shape[1 - dim])
        return array[others[:, None], indices] if dim else array[indices, others]
    return np.take_along_axis(array, indices, dim)


@operator(module=None, exact=True, linear=True)
class take_along:
    """The elements at `indices` along one dimension; without `keepdim` the dimension disappears."""

    def forward(xp, input: Array, indices: Index, dim: int, keepdim: bool):
        if not input.ndim:
            return xp.broadcast_to(input, indices.shape).copy()
        if keepdim:
            return taken(input, indices, dim)
        return taken(input, xp.expand_dims(indices, dim), dim).squeeze(dim)

    def vjp_input(F, grad, indices, input_shape, dim, keepdim):
        return F.place_along(grad, indices, input_shape, dim, keepdim)

    def samples(make):
        yield (make(3, 4), make.integers(3, 2, high=4), 1, True), {}
        yield (make(3, 4), make.integers(4, high=3), 0, False), {}


@operator(module=None, exact=True, linear=True)
class place_along:
    """Zeros of `input_shape`, to which the operand is added at `indices` along one dimension."""

    def forward(xp, input: Array, indices: Index, input_shape: tuple, dim: int, keepdim: bool):
        whole = xp.zeros(input_shape, input.dtype)
        if not input_shape:
            return xp.asarray(input.sum(), input.dtype)
        if not keepdim:
            xp.put_along_axis(whole, xp.expand_dims(indices, dim), xp.expand_dims(input, dim), dim)
            return whole
        places = list(xp.indices(indices.shape, sparse=True))
        places[dim] = indices
        xp.add.at(whole, tuple(places), input)
        return whole

    def vjp_input(F, grad, indices, dim, keepdim):
        return F.take_along(grad, indices, dim, keepdim)

    def samples(make):
        yield (make(3, 2), make.integers(3, 2, high=4), (3, 4), 1, True), {}
        yield (make(4), make.integers(4, high=3), (3, 4), 0, False), {}


# --- shared gradients ------------------------------------------------------------------------------------------------


def _ties(xp, point, value, dim, keepdim):
    """Where elements equal the result of a reduction (NaN equals NaN), and how many do."""
    if not keepdim:
        value = value.reshape(reduced_shape(point.shape, dim))
    same = point == value
    if point.dtype.kind == "f":
        same |= xp.isnan(point) & xp.isnan(value)
    return same, xp.add.reduce(same, axis=dim, keepdims=True)


@operator(module=None, linear=True)
class spread_ties:
    """The gradient of a maximum: repeated over `dim`, divided among the elements that equal it."""

    def forward(xp, input: Array, point: Index, value: Index, dim: tuple, keepdim: bool):
        same, count = _ties(xp, point, value, dim, keepdim)
        spread = input if keepdim else input.reshape(reduced_shape(point.shape, dim))
        return (xp.where(same, spread, 0) / count).astype(input.dtype)

    def vjp_input(F, grad, point, value, dim, keepdim):
        return F.gather_ties(grad, point, value, dim, keepdim)


@operator(module=None, linear=True)
class gather_ties:
    """The mean over the elements that equal a maximum: what `spread_ties` is transposed to."""

    def forward(xp, input: Array, point: Index, value: Index, dim: tuple, keepdim: bool):
        same, count = _ties(xp, point, value, dim, keepdim)
        return xp.add.reduce(xp.where(same, input, 0) / count, axis=dim, keepdims=keepdim).astype(input.dtype)

    def vjp_input(F, grad, point, value, dim, keepdim):
        return F.spread_ties(grad, point, value, dim, keepdim)


def _extreme(name: str, ufunc, input: np.ndarray, dim: tuple, keepdim: bool):
    """Reduce by maximum or minimum; the errors of complex numbers and of nothing to choose from."""
    require_kind(f"{name}_cpu", input, "fib")
    require_elements(name, input, dim)
    return ufunc.reduce(input, axis=dim, keepdims=keepdim)


def some_dims(dim, input: np.ndarray) -> tuple[int, ...]:
    """Dimensions to reduce, none of them empty: None and () ask for all."""
    if not input.size and (dim is None or dim == ()):
        raise RuntimeError(
            "Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim "
            "with the 'dim' argument."
        )
    return all_dims(dim, input.ndim)


def _tied_samples(make):
    yield (make.distinct(3, 4), (), False), {}
    yield (make.distinct(3, 4), 0, False), {}
    yield (make.distinct(2, 3, 2), (0, -1), True), {}


@operator(module=None, exact=True, name="amax", node="AmaxBackward0")
class amax_kernel:
    """The largest element over dimensions."""

    def canonical(input, dim, keepdim):
        return some_dims(dim, input), bool(keepdim)

    def forward(xp, input: Array, dim: tuple, keepdim: bool):
        return _extreme("amax", xp.maximum, input, dim, keepdim)

    def vjp_input(F, grad, input, result, dim, keepdim):
        return F.spread_ties(grad, input, result, dim, keepdim)

    samples = _tied_samples


@operator(module=None, exact=True, name="amin", node="AminBackward0")
class amin_kernel:
    """The smallest element over dimensions."""

    def canonical(input, dim, keepdim):
        return some_dims(dim, input), bool(keepdim)

    def forward(xp, input: Array, dim: tuple, keepdim: bool):
        return _extreme("amin", xp.minimum, input, dim, keepdim)

    def vjp_input(F, grad, input, result, dim, keepdim):
        return F.spread_ties(grad, input, result, dim, keepdim)

    samples = _tied_samples


@composite(method=True)
def amax(input, dim=(), keepdim=False, *, out=None, axis=None, keepdims=None):
    """The largest element over `dim` (by default over all); equal ones share the gradient.

    input: [*S], real. dim: a dimension or a tuple.

    Raises:
        IndexError: a dimension without elements.
        RuntimeError: a dimension named twice, or complex input.
    """
    dim, keepdim = keyword_names(dim, keepdim, axis, keepdims)
    return amax_kernel(input, dim, keepdim, out=out)


@composite(method=True)
def amin(input, dim=(), keepdim=False, *, out=None, axis=None, keepdims=None):
    """The smallest element over `dim` (by default over all); see `amax`."""
    dim, keepdim = keyword_names(dim, keepdim, axis, keepdims)
    return amin_kernel(input, dim, keepdim, out=out)


@operator(module=None, exact=True, name="aminmax", outputs=("min", "max"), node="AminmaxBackward0")
class aminmax_kernel:
    """The smallest and the largest element over dimensions."""

    def canonical(input, dim, keepdim):
        return some_dims(dim, input), bool(keepdim)

    def forward(xp, input: Array, dim: tuple, keepdim: bool):
        low = _extreme("aminmax", xp.minimum, input, dim, keepdim)
        return low, _extreme("aminmax", xp.maximum, input, dim, keepdim)

    def vjp_input(F, grad, input, min, max, dim, keepdim):
        low, high = grad
        low = None if low is None else F.spread_ties(low, input, min, dim, keepdim)
        high = None if high is None else F.spread_ties(high, input, max, dim, keepdim)
        return low if high is None else high if low is None else low + high


@composite(method=True)
def aminmax(input, *, dim=None, keepdim=False, out=None):
    """The smallest and the largest element, over everything or one dimension, as the pair (min, max)."""
    if dim is None and not input.numel():
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity."
        )
    return aminmax_kernel(input, None if dim is None else one_dim(dim, input.ndim), keepdim, out=out)


# --- max and min -----------------------------------------------------------------------------------------------------


def _chosen(xp, name: str, input: np.ndarray, dim: int, keepdim: bool):
    """The extreme elements along one dimension and where they are."""
    require_kind(f"{name}_cpu", input, "fib")
    if not input.ndim:
        return input.copy(), xp.zeros((), np.int64)
    require_elements(name, input, (dim,))
    ufunc, choose = (xp.maximum, input.argmax) if name == "max" else (xp.minimum, input.argmin)
    return ufunc.reduce(input, axis=dim, keepdims=keepdim), choose(axis=dim, keepdims=keepdim)


def _distinct_samples(make):
    yield (make.distinct(3, 4), 0, False), {}
    yield (make.distinct(2, 3, 2), -2, True), {}


@operator(module=None, name="max", node="MaxBackward0", **with_indices)
class max_dim:
    """The largest elements along one dimension and where they are."""

    def canonical(input, dim, keepdim):
        return one_dim(dim, input.ndim), bool(keepdim)

    def forward(xp, input: Array, dim: int, keepdim: bool):
        return _chosen(xp, "max", input, dim, keepdim)

    def vjp_input(F, grad, indices, input_shape, dim, keepdim):
        return F.place_along(grad, indices, input_shape, dim, keepdim)

    samples = _distinct_samples


@operator(module=None, name="min", node="MinBackward0", **with_indices)
class min_dim:
    """The smallest elements along one dimension and where they are."""

    def canonical(input, dim, keepdim):
        return one_dim(dim, input.ndim), bool(keepdim)

    def forward(xp, input: Array, dim: int, keepdim: bool):
        return _chosen(xp, "min", input, dim, keepdim)

    def vjp_input(F, grad, indices, input_shape, dim, keepdim):
        return F.place_along(grad, indices, input_shape, dim, keepdim)

    samples = _distinct_samples


def _all_of(name: str, ufunc, input: np.ndarray):
    require_kind(f"{name}_cpu", input, "fib")
    if not input.size:
        raise RuntimeError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
            "reduction dim with the 'dim' argument."
        )
    return ufunc.reduce(input, axis=None)


@operator(module=None, exact=True, node="MaxBackward1")
class max_all:
    """The largest element."""

    def forward(xp, input: Array):
        return _all_of("max", xp.maximum, input)

    def vjp_input(F, grad, input, result):
        return F.spread_ties(grad, input, result, tuple(range(input.ndim)), False)

    def samples(make):
        yield (make.distinct(3, 4),), {}


@operator(module=None, exact=True, node="MinBackward1")
class min_all:
    """The smallest element."""

    def forward(xp, input: Array):
        return _all_of("min", xp.minimum, input)

    def vjp_input(F, grad, input, result):
        return F.spread_ties(grad, input, result, tuple(range(input.ndim)), False)

    def samples(make):
        yield (make.distinct(3, 4),), {}


def _three_ways(name, input, dim, keepdim, out, over_all, along, pairwise):
    """`max` and `min` are three functions, told apart by the second argument."""
    if isinstance(dim, Tensor):
        return pairwise(input, dim, out=out)
    if dim is None:
        if keepdim:
            raise TypeError(f"{name}() received an invalid combination of arguments: keepdim needs dim")
        return over_all(input, out=out)
    return along(input, dim, keepdim, out=out)


@composite(method=True)
def max(input, dim=None, keepdim=False, *, other=None, out=None, axis=None, keepdims=None):
    """The largest element; or the pair (values, indices) along `dim`; or the larger of two tensors.

    Args:
        input: [*S], real.
        dim: one dimension, or a tensor to compare with (then also called `other`).
        keepdim: keep the dimension, with size one.

    Raises:
        IndexError: a dimension that is not there, or is empty.
        RuntimeError: an empty tensor without `dim`, or complex input.
    """
    dim, keepdim = keyword_names(dim if other is None else other, keepdim, axis, keepdims)
    return _three_ways("max", input, dim, keepdim, out, max_all, max_dim, maximum)


@composite(method=True)
def min(input, dim=None, keepdim=False, *, other=None, out=None, axis=None, keepdims=None):
    """The smallest element; or the pair (values, indices) along `dim`; or the smaller of two tensors; see `max`."""
    dim, keepdim = keyword_names(dim if other is None else other, keepdim, axis, keepdims)
    return _three_ways("min", input, dim, keepdim, out, min_all, min_dim, minimum)


# --- where the extremes are ------------------------------------------------------------------------------------------


def _where_extreme(xp, name: str, input: np.ndarray, dim: int | None, keepdim: bool):
    require_kind(f"{name}_cpu", input, "fi")
    if dim is None and not input.size:
        raise IndexError(
            f"{name}(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
            "reduction dim with the 'dim' argument."
        )
    if not input.ndim:
        return xp.zeros((), np.int64)
    if dim is not None:
        require_elements(name, input, (dim,))
    return (input.argmax if name == "argmax" else input.argmin)(axis=dim, keepdims=keepdim)


@operator(module=None, exact=True, name="argmax")
class argmax_kernel:
    """Where the largest element is."""

    def canonical(input, dim, keepdim):
        return None if dim is None else one_dim(dim, input.ndim), bool(keepdim)

    def forward(xp, input: Array, dim: int | None, keepdim: bool):
        return _where_extreme(xp, "argmax", input, dim, keepdim)


@operator(module=None, exact=True, name="argmin")
class argmin_kernel:
    """Where the smallest element is."""

    def canonical(input, dim, keepdim):
        return None if dim is None else one_dim(dim, input.ndim), bool(keepdim)

    def forward(xp, input: Array, dim: int | None, keepdim: bool):
        return _where_extreme(xp, "argmin", input, dim, keepdim)


@composite(method=True)
def argmax(input, dim=None, keepdim=False, *, out=None, axis=None, keepdims=None):
    """The index of the largest element along `dim`, or in the flattened tensor; the first of equal ones. Returns int64.

    Raises:
        IndexError: a dimension that is not there, or nothing to choose from.
        RuntimeError: bools or complex numbers.
    """
    dim, keepdim = keyword_names(dim, keepdim, axis, keepdims)
    return argmax_kernel(input, dim, keepdim, out=out)


@composite(method=True)
def argmin(input, dim=None, keepdim=False, *, out=None, axis=None, keepdims=None):
    """The index of the smallest element along `dim`, or in the flattened tensor; see `argmax`."""
    dim, keepdim = keyword_names(dim, keepdim, axis, keepdims)
    return argmin_kernel(input, dim, keepdim, out=out)
