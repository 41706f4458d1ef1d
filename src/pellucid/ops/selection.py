"""Largest and smallest elements over dimensions: amax, max, argmax and their counterparts.

Where an index is returned the gradient follows it; where none is (amax, max over everything) equal elements share it.
Order statistics that need sorting live in `sorting.py`.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import Array, Index, composite, operator
from pellucid.core.tensor import Tensor
from pellucid.ops.batch_places import in_front
from pellucid.ops.batches import for_each
from pellucid.ops.checks import require_kind
from pellucid.ops.dims import all_dims, keyword_names, one_dim, reduced_shape, require_elements
from pellucid.ops.extrema import maximum, minimum

__all__ = ["amax", "amin", "aminmax", "argmax", "argmin", "max", "min"]


NO_DIM = "Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."
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

    def batch(F, size_of_batch, batched, input, indices, dim, keepdim):
        input = for_each(F, input, "input" in batched, size_of_batch)
        indices = for_each(F, indices, "indices" in batched, size_of_batch)
        if input.ndim == 1:
            return F.clone(F.expand(in_front(F, input, indices.ndim - 1), indices.shape))
        return F.take_along(input, indices, dim + 1, keepdim)

    def samples(make):
        yield (make(3, 4), make.integers(3, 2, high=4), 1, True), {}
        yield (make(3, 4), make.integers(4, high=3), 0, False), {}
        yield (make(3), np.array(2), 0, False), {}
        yield (make(), np.array(0), 0, False), {}


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

    def batch(F, size_of_batch, batched, input, indices, input_shape, dim, keepdim):
        input = for_each(F, input, "input" in batched, size_of_batch)
        if not input_shape:
            return F.clone(input)
        indices = for_each(F, indices, "indices" in batched, size_of_batch)
        return F.place_along(input, indices, (size_of_batch, *input_shape), dim + 1, keepdim)

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


@operator(module=None, linear=True, batching="shift")
class spread_ties:
    """The gradient of a maximum: repeated over `dim`, divided among the elements that equal it."""

    def forward(xp, input: Array, point: Index, value: Index, dim: tuple, keepdim: bool):
        same, count = _ties(xp, point, value, dim, keepdim)
        spread = input if keepdim else input.reshape(reduced_shape(point.shape, dim))
        return (xp.where(same, spread, 0) / count).astype(input.dtype)

    def vjp_input(F, grad, point, value, dim, keepdim):
        return F.gather_ties(grad, point, value, dim, keepdim)


@operator(module=None, linear=True, batching="shift")
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
        raise RuntimeError(NO_DIM)
    return all_dims(dim, input.ndim)


def _tied_samples(make):
    yield (make.distinct(3, 4), (), False), {}
    yield (make.distinct(3, 4), 0, False), {}
    yield (make.distinct(2, 3, 2), (0, -1), True), {}


def _extreme_kernel(name: str, ufunc):
    """The largest or smallest element over dimensions; equal ones share the gradient."""

    class kernel:
        def canonical(input, dim, keepdim):
            return some_dims(dim, input), bool(keepdim)

        def forward(xp, input: Array, dim: tuple, keepdim: bool):
            return _extreme(name, ufunc, input, dim, keepdim)

        def vjp_input(F, grad, input, result, dim, keepdim):
            return F.spread_ties(grad, input, result, dim, keepdim)

        def jvp_input(F, tangent, input, result, dim, keepdim):
            return F.gather_ties(tangent, input, result, dim, keepdim)

        samples = _tied_samples

    kernel.__doc__ = _extreme_kernel.__doc__
    return operator(module=None, exact=True, name=name, node=f"{name.capitalize()}Backward0")(kernel)


amax_kernel, amin_kernel = _extreme_kernel("amax", np.maximum), _extreme_kernel("amin", np.minimum)


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

    def jvp(F, tangents, input, min, max, dim, keepdim):
        return tuple([F.gather_ties(tangents[0], input, value, dim, keepdim) for value in (min, max)])

    samples = _tied_samples


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


def _chosen_kernel(name: str):
    """The largest or smallest elements along one dimension, and where they are."""

    class kernel:
        def canonical(input, dim, keepdim):
            return one_dim(dim, input.ndim), bool(keepdim)

        def forward(xp, input: Array, dim: int, keepdim: bool):
            return _chosen(xp, name, input, dim, keepdim)

        def vjp_input(F, grad, indices, input_shape, dim, keepdim):
            return F.place_along(grad, indices, input_shape, dim, keepdim)

        def jvp_input(F, tangent, indices, dim, keepdim):
            return F.take_along(tangent, indices, dim, keepdim)

        samples = _distinct_samples

    kernel.__doc__ = _chosen_kernel.__doc__
    return operator(module=None, name=name, node=f"{name.capitalize()}Backward0", **with_indices)(kernel)


def _whole_kernel(name: str, ufunc):
    """The largest or smallest element of all; equal ones share the gradient."""

    class kernel:
        def forward(xp, input: Array):
            require_kind(f"{name}_cpu", input, "fib")
            if not input.size:
                raise RuntimeError(f"{name}(): {NO_DIM}")
            return ufunc.reduce(input, axis=None)

        def vjp_input(F, grad, input, result):
            return F.spread_ties(grad, input, result, tuple(range(input.ndim)), False)

        def jvp_input(F, tangent, input, result):
            return F.gather_ties(tangent, input, result, tuple(range(input.ndim)), False)

        def batch(F, input):
            over = F.amax if name == "max" else F.amin
            return over(input, tuple(range(1, input.ndim)), False) if input.ndim > 1 else F.clone(input)

        def samples(make):
            yield (make.distinct(3, 4),), {}
            yield (make(),), {}

    kernel.__doc__ = _whole_kernel.__doc__
    return operator(module=None, exact=True, name=f"{name}_all", node=f"{name.capitalize()}Backward1")(kernel)


max_dim, min_dim = _chosen_kernel("max"), _chosen_kernel("min")
max_all, min_all = _whole_kernel("max", np.maximum), _whole_kernel("min", np.minimum)


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


def _where_kernel(name: str):
    """Where the largest or smallest element is."""

    class kernel:
        def canonical(input, dim, keepdim):
            return None if dim is None else one_dim(dim, input.ndim), bool(keepdim)

        def forward(xp, input: Array, dim: int | None, keepdim: bool):
            require_kind(f"{name}_cpu", input, "fi")
            if dim is None and not input.size:
                raise IndexError(f"{name}(): {NO_DIM}")
            if not input.ndim:
                return xp.zeros((), np.int64)
            if dim is not None:
                require_elements(name, input, (dim,))
            return getattr(input, name)(axis=dim, keepdims=keepdim)

        def batch(F, input, dim, keepdim):
            find = F.argmax if name == "argmax" else F.argmin
            if dim is not None and input.ndim > 1:
                return find(input, dim + 1, keepdim)
            flat = find(F.reshape(input, (input.shape[0], math.prod(input.shape[1:]))), 1, False)
            return F.view(flat, (input.shape[0], *(1,) * (input.ndim - 1))) if keepdim else flat

    kernel.__doc__ = _where_kernel.__doc__
    return operator(module=None, exact=True, name=name)(kernel)


argmax_kernel, argmin_kernel = _where_kernel("argmax"), _where_kernel("argmin")


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
