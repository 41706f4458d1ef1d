"""Largest and smallest elements over dimensions: amax, max, argmax and their counterparts.

Where an index is returned the gradient follows it; where none is (amax, max over everything) equal elements share it.
Order statistics that need sorting live in `sorting.py`.
"""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from pellucid.autograd.operator import Array, Index, composite, operator
from pellucid.core.checks import require_kind
from pellucid.core.dims import all_dims, one_dim, require_elements
from pellucid.kernels import places, ties
from pellucid.ops.batches import all_for_each, for_each
from pellucid.ops.reductions import of_each

__all__ = ["aminmax"]

SPECIFY = (
    "{}(): Expected reduction dim to be specified for input.numel() == 0. Specify the reduction dim with the 'dim' argument."
)

# --- places along a dimension ----------------------------------------------------------------------------------------


@operator(module=None, exact=True, linear=True)
class take_along:
    """The elements at `indices` along one dimension; without `keepdim` the dimension disappears."""

    def forward(xp, input: Array, indices: Index, dim: int, keepdim: bool):
        return places.taken_along(input, indices, dim, keepdim)

    def vjp_input(F, grad, indices, input_shape, dim, keepdim):
        return F.place_along(grad, indices, input_shape, dim, keepdim)

    def batch(F, size_of_batch, batched, input, indices, dim, keepdim):
        input, indices = all_for_each(F, batched, size_of_batch, input=input, indices=indices)
        if input.ndim == 1:  # of a number, there is only itself to take
            return F.clone(F.expand(F.view(input, (size_of_batch, *(1,) * (indices.ndim - 1))), indices.shape))
        return F.take_along(input, indices, dim + 1, keepdim)

    def samples(make):
        yield (make(3, 4), make.integers(3, 2, high=4), 1, True), {}
        yield (make(3, 4), make.integers(4, high=3), 0, False), {}
        yield (make(), make.integers(high=1), 0, True), {}


@operator(module=None, exact=True, linear=True)
class place_along:
    """Zeros of `input_shape`, to which the operand is added at `indices` along one dimension."""

    def forward(xp, input: Array, indices: Index, input_shape: tuple, dim: int, keepdim: bool):
        return places.placed_along(input, indices, input_shape, dim, keepdim)

    def vjp_input(F, grad, indices, dim, keepdim): return F.take_along(grad, indices, dim, keepdim)

    def batch(F, size_of_batch, batched, input, indices, input_shape, dim, keepdim):
        input = for_each(F, input, "input" in batched, size_of_batch)
        if not input_shape:
            return of_each(F, F.sum_dim, input)
        indices = for_each(F, indices, "indices" in batched, size_of_batch)
        return F.place_along(input, indices, (size_of_batch, *input_shape), dim + 1, keepdim)

    def samples(make):
        yield (make(3, 2), make.integers(3, 2, high=4), (3, 4), 1, True), {}
        yield (make(4), make.integers(4, high=3), (3, 4), 0, False), {}
        yield (make(), make.integers(high=1), (), 0, True), {}


WITH_INDICES = {"exact": True, "outputs": ("values", "indices"), "constant": ("indices",)}


class Picked:
    """What operators share that return one element along `dim` and its index: the derivative follows the index."""

    def canonical(input, dim: int = -1, keepdim: bool = False): return one_dim(dim, input.ndim), bool(keepdim)

    def vjp_input(F, grad, indices, input_shape, dim, keepdim):
        return F.place_along(grad, indices, input_shape, dim, keepdim)

    def jvp_input(F, tangent, indices, dim, keepdim): return F.take_along(tangent, indices, dim, keepdim)


class Listed:
    """What operators share that return several elements along `dim` and their indices."""

    def vjp_input(F, grad, indices, input_shape, dim): return F.place_along(grad, indices, input_shape, dim, True)
    def jvp_input(F, tangent, indices, dim): return F.take_along(tangent, indices, dim, True)


# --- shared gradients ------------------------------------------------------------------------------------------------


@operator(module=None, linear=True, batching="shift")
class spread_ties:
    """The gradient of a maximum: repeated over `dim`, divided among the elements that equal it."""

    def forward(xp, input: Array, point: Index, value: Index, dim: tuple, keepdim: bool, nans: bool = True):
        return ties.shared(input, point, value, dim, keepdim, nans)

    def vjp_input(F, grad, point, value, dim, keepdim, nans):
        return F.gather_ties(grad, point, value, dim, keepdim, nans)


@operator(module=None, linear=True, batching="shift")
class gather_ties:
    """The mean over the elements that equal a maximum: what `spread_ties` is transposed to."""

    def forward(xp, input: Array, point: Index, value: Index, dim: tuple, keepdim: bool, nans: bool = True):
        return ties.means(input, point, value, dim, keepdim, nans)

    def vjp_input(F, grad, point, value, dim, keepdim, nans):
        return F.spread_ties(grad, point, value, dim, keepdim, nans)


# --- the largest, and the smallest -----------------------------------------------------------------------------------


def some_dims(dim, input: np.ndarray) -> tuple[int, ...]:
    """Dimensions to reduce, none of them empty: None and () ask for all."""
    if not input.size and (dim is None or dim == ()):
        raise RuntimeError(SPECIFY.format("").removeprefix("(): "))
    return all_dims(dim, input.ndim)


def _over_dims(name: str, ufunc, input: np.ndarray, dim: tuple, keepdim: bool):
    """Reduce by maximum or minimum; the errors of complex numbers and of nothing to choose from."""
    require_kind(f"{name}_cpu", input, "fib")
    require_elements(name, input, dim)
    return ufunc.reduce(input, axis=dim, keepdims=keepdim)


def _declare(word: str, which: str, ufunc: np.ufunc, node: str) -> SimpleNamespace:
    """Declare the four operators about the largest ("max") or the smallest ("min") elements."""

    @operator(module=None, exact=True, name=f"a{word}", node=f"A{word}Backward0")
    class over_dims:
        __doc__ = f"The {which} element over dimensions."
        def canonical(input, dim, keepdim): return some_dims(dim, input), bool(keepdim)

        def forward(xp, input: Array, dim: tuple, keepdim: bool):
            return _over_dims(f"a{word}", ufunc, input, dim, keepdim)

        def vjp_input(F, grad, input, result, dim, keepdim):
            return F.spread_ties(grad, input, result, dim, keepdim, False)

        def jvp_input(F, tangent, input, result, dim, keepdim):
            return F.gather_ties(tangent, input, result, dim, keepdim, False)

        def samples(make):
            yield (make.distinct(3, 4), (), False), {}
            yield (make.distinct(3, 4), 0, False), {}
            yield (make.distinct(2, 3, 2), (0, -1), True), {}
            yield (make.distinct(), (), False), {}

    @operator(module=None, exact=True, name=f"{word}_all", node=f"{node}Backward1")
    class of_all:
        __doc__ = f"The {which} element."

        def forward(xp, input: Array):
            require_kind(f"{word}_cpu", input, "fib")
            if not input.size:
                raise RuntimeError(SPECIFY.format(word))
            return ufunc.reduce(input, axis=None)

        def vjp_input(F, grad, input, result):
            return F.spread_ties(grad, input, result, tuple(range(input.ndim)), False)

        def jvp_input(F, tangent, input, result):
            return F.gather_ties(tangent, input, result, tuple(range(input.ndim)), False)

        def batch(F, input): return of_each(F, getattr(F, f"a{word}"), input)

        def samples(make):
            yield (make.distinct(3, 4),), {}
            yield (make.distinct(),), {}

    @operator(module=None, name=word, node=f"{node}Backward0", **WITH_INDICES)
    class along(Picked):
        __doc__ = f"The {which} elements along one dimension and where they are."

        def forward(xp, input: Array, dim: int, keepdim: bool):
            require_kind(f"{word}_cpu", input, "fib")
            if not input.ndim:
                return input.copy(), xp.zeros((), np.int64)
            require_elements(word, input, (dim,))
            place = getattr(input, f"arg{word}")(axis=dim, keepdims=keepdim)
            return ufunc.reduce(input, axis=dim, keepdims=keepdim), place

        def samples(make):
            yield (make.distinct(3, 4), 0, False), {}
            yield (make.distinct(2, 3, 2), -2, True), {}
            yield (make.distinct(), 0, False), {}

    @operator(module=None, exact=True, name=f"arg{word}")
    class place:
        __doc__ = f"Where the {which} element is."
        def canonical(input, dim, keepdim): return None if dim is None else one_dim(dim, input.ndim), bool(keepdim)

        def forward(xp, input: Array, dim: int | None, keepdim: bool):
            require_kind(f"arg{word}_cpu", input, "fi")
            if dim is None and not input.size:
                raise IndexError(SPECIFY.format(f"arg{word}"))
            if not input.ndim:
                return xp.zeros((), np.int64)
            if dim is not None:
                require_elements(f"arg{word}", input, (dim,))
            return getattr(input, f"arg{word}")(axis=dim, keepdims=keepdim)

        def batch(F, input, dim, keepdim):
            number = getattr(F, f"arg{word}")
            if dim is not None and input.ndim > 1:
                return number(input, dim + 1, keepdim)
            made = number(F.reshape(input, (input.shape[0], -1)), 1, False)
            return F.reshape(made, (input.shape[0], *(1,) * (input.ndim - 1))) if keepdim else made

        def samples(make):
            yield (make.distinct(3, 4), 0, True), {}
            yield (make.distinct(3, 4), None, True), {}
            yield (make.distinct(), None, False), {}

    return SimpleNamespace(over_dims=over_dims, of_all=of_all, along=along, place=place)


largest = _declare("max", "largest", np.maximum, "Max")
smallest = _declare("min", "smallest", np.minimum, "Min")


# --- both ------------------------------------------------------------------------------------------------------------


@operator(module=None, exact=True, name="aminmax", outputs=("min", "max"), node="AminmaxBackward0")
class aminmax_kernel:
    """The smallest and the largest element over dimensions."""

    def canonical(input, dim, keepdim): return some_dims(dim, input), bool(keepdim)

    def forward(xp, input: Array, dim: tuple, keepdim: bool):
        low = _over_dims("aminmax", xp.minimum, input, dim, keepdim)
        return low, _over_dims("aminmax", xp.maximum, input, dim, keepdim)

    def vjp_input(F, grad, input, min, max, dim, keepdim):
        parts = [
            F.spread_ties(g, input, value, dim, keepdim, False) for g, value in zip(grad, (min, max), strict=True) if g is not None
        ]
        return parts[0] + parts[1] if len(parts) > 1 else parts[0]

    def jvp(F, tangents, input, min, max, dim, keepdim):
        return tuple([F.gather_ties(tangents[0], input, value, dim, keepdim, False) for value in (min, max)])

    def samples(make): yield (make.distinct(3, 4), 0, False), {}


@composite(method=True)
def aminmax(input, *, dim=None, keepdim=False, out=None):
    """The smallest and the largest element, over everything or one dimension, as the pair (min, max)."""
    if dim is None and not input.numel():
        raise RuntimeError("aminmax(): cannot compute aminmax over an empty dimension as the operation has no identity.")
    return aminmax_kernel(input, None if dim is None else one_dim(dim, input.ndim), keepdim, out=out)
