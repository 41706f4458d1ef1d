"""Reductions by addition and multiplication: sum, mean, prod, logsumexp, counts, truth.

Variance, medians and quantiles live in `statistics.py`, maxima in `extrema.py`, norms in `norms.py`,
sums that skip NaN in `functions/reductions.py`.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import Array, Promote, composite, operator
from pellucid.autograd.samples import reduction
from pellucid.core.checks import scalar_name
from pellucid.core.dims import all_dims, keyword_names, one_dim
from pellucid.kernels.reductions import (
    added,
    log_sum,
    product,
    product_of_others,
    rows_with_diagonal,
    spread,
    total,
)  # fmt: skip

__all__ = ["all", "any", "count_nonzero", "logsumexp", "mean", "prod", "sum"]


def whole(input, dim, keepdim=False):
    """Canonical form of a reduction's attributes."""
    return all_dims(dim, input.ndim), bool(keepdim)


def of_each(F, reduced, input):
    """A reduction over everything, of each example of a batch: `reduced(input, dim, keepdim)` over all other dimensions."""
    return reduced(input, tuple(range(1, input.ndim)), False) if input.ndim > 1 else F.clone(input)


@operator(module=None, linear=True)
class expand_reduced:
    """What a reduction's result (or its gradient) is at each element of the operand: the value, repeated over `dim`.

    input: the reduction's result, with its dimensions kept or not. Returns `input_shape`.
    """

    def forward(xp, input: Array, input_shape: tuple, dim: tuple, keepdim: bool = False):
        return spread(input, input_shape, dim, keepdim)

    def vjp_input(F, grad, dim, keepdim): return F.sum_dim(grad, dim, keepdim)

    def samples(make):
        yield (make(4), (3, 4), (0,), False), {}
        yield (make(3, 1), (3, 4), (1,), True), {}


# --- sum -------------------------------------------------------------------------------------------------------------


@operator(module=None, exact=True, node="SumBackward0", linear=True)
class sum_all:
    """The sum of all elements."""

    def forward(xp, input: Array): return total(input)
    def vjp_input(F, grad, input_shape): return F.expand_all(grad, input_shape)
    def batch(F, input): return of_each(F, F.sum_dim, input)

    def samples(make):
        yield (make(3, 4),), {}
        yield (make(),), {}


@operator(module=None, linear=True)
class expand_all:
    """One number, repeated."""

    def forward(xp, input: Array, input_shape: tuple):
        return spread(input, input_shape)

    def vjp_input(F, grad): return F.sum_all(grad)

    def batch(F, size_of_batch, input, input_shape):
        return F.expand_reduced(input, (size_of_batch, *input_shape), tuple(range(1, len(input_shape) + 1)), False)

    def samples(make): yield (make(), (3, 4)), {}


@operator(module=None, exact=True, node="SumBackward1", linear=True)
class sum_dim:
    """The sum over dimensions."""

    canonical = whole
    def forward(xp, input: Array, dim: tuple, keepdim: bool = False): return added(input, dim, keepdim)
    def vjp_input(F, grad, input_shape, dim, keepdim): return F.expand_reduced(grad, input_shape, dim, keepdim)
    samples = reduction()


def typed(tensor, dtype):
    """A tensor in the type that was asked for (integers are added and multiplied as int64)."""
    return tensor if dtype is None or tensor.dtype is dtype else tensor.to(dtype)


@composite(method=True)
def sum(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=None):
    """The sum over all dimensions, or over those in `dim`.

    input: [*S]; integers and bools are summed as int64.
    dim: a dimension or a tuple of them; None or () for all.
    keepdim: keep the summed dimensions, with size one.
    dtype: convert to this type first.
    axis, keepdims: NumPy's names for the two.
    Raises: IndexError (a dimension that is not there), RuntimeError (a dimension named twice).
    """
    if dim is None and axis is None and dtype is None and not keepdim and not keepdims:
        return sum_all(input, out=out)
    dim, keepdim = keyword_names(dim, keepdim, axis, keepdims)
    if dtype is None and out is not None:
        dtype = out.dtype
    return typed(sum_dim(typed(input, dtype), dim, keepdim, out=out), dtype)


@operator(module=None, elementwise=True)
class nan_as_zero:
    """The operand with zeros in place of NaN."""

    def forward(xp, input: Array):
        return input.copy() if input.dtype.kind in "iub" else xp.where(xp.isnan(input), 0, input)

    def vjp_input(F, grad, input): return F.where(F.isnan(input), 0, grad)


# --- mean ------------------------------------------------------------------------------------------------------------


def _refuse_whole_numbers(name: str, array: np.ndarray) -> None:
    if array.dtype.kind in "iub":
        raise RuntimeError(
            f"{name}(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. "
            f"Got: {scalar_name(array)}. Convert with .float(), or give dtype=."
        )


@operator(module=None, node="MeanBackward0", linear=True)
class mean_all:
    """The mean of all elements."""

    def forward(xp, input: Array):
        _refuse_whole_numbers("mean", input)
        return xp.true_divide(total(input), input.dtype.type(input.size))

    def vjp_input(F, grad, input_shape): return F.expand_all(grad / math.prod(input_shape), input_shape)
    def batch(F, input): return of_each(F, F.mean_dim, input)

    def samples(make):
        yield (make(3, 4),), {}
        yield (make(),), {}


@operator(module=None, node="MeanBackward1", linear=True)
class mean_dim:
    """The mean over dimensions."""

    canonical = whole

    def forward(xp, input: Array, dim: tuple, keepdim: bool = False):
        _refuse_whole_numbers("mean", input)
        count = math.prod([input.shape[d] for d in dim])
        return xp.true_divide(added(input, dim, keepdim), input.dtype.type(count))

    def vjp_input(F, grad, input_shape, dim, keepdim):
        return F.expand_reduced(grad / max(math.prod([input_shape[d] for d in dim]), 1), input_shape, dim, keepdim)

    samples = reduction()


@composite(method=True)
def mean(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=None):
    """The mean over all dimensions, or over those in `dim`; NaN where there are no elements.

    input: [*S], floating-point or complex (or say with `dtype` in what to compute).
    dim, keepdim, dtype, axis, keepdims: as for `sum`.
    Raises: RuntimeError (integers or bools without `dtype`).
    """
    if dim is None and axis is None and dtype is None and not keepdim and not keepdims:
        return mean_all(input, out=out)
    dim, keepdim = keyword_names(dim, keepdim, axis, keepdims)
    return mean_dim(typed(input, dtype), dim, keepdim, out=out)


# --- prod ------------------------------------------------------------------------------------------------------------


def _slope_along(F, input, dim: int):
    """For each element the product of the others along a dimension."""
    return F.transpose(F.prod_others(F.transpose(input, dim, -1)), dim, -1)


@operator(module=None, node="ProdBackward0")
class prod_all:
    """The product of all elements."""

    def forward(xp, input: Array): return product(input, None)

    def vjp_input(F, grad, input, input_shape):
        return grad * F.reshape(F.prod_others(F.reshape(input, (-1,))), input_shape)

    def jvp_input(F, tangent, input):
        return F.sum_all(F.reshape(tangent, (-1,)) * F.prod_others(F.reshape(input, (-1,))))

    def batch(F, input): return F.prod_dim(F.reshape(input, (input.shape[0], math.prod(input.shape[1:]))), 1, False)

    def samples(make):
        yield (make(2, 3),), {}
        yield (make(),), {}
        yield (make(0, 2),), {}


@operator(module=None, node="ProdBackward1")
class prod_dim:
    """The product over one dimension."""

    def canonical(input, dim, keepdim): return one_dim(dim, input.ndim), bool(keepdim)

    def forward(xp, input: Array, dim: int, keepdim: bool = False):
        return product(input, dim if input.ndim else (), keepdim)

    def vjp_input(F, grad, input, input_shape, dim, keepdim):
        return F.expand_reduced(grad, input_shape, (dim,), keepdim) * _slope_along(F, input, dim) if input_shape else grad

    def jvp_input(F, tangent, input, input_shape, dim, keepdim):
        return F.sum_dim(tangent * _slope_along(F, input, dim), dim, keepdim) if input_shape else tangent

    def samples(make):
        yield (make(2, 3), 0, False), {}
        yield (make(2, 3), -1, True), {}
        yield (make(), 0, False), {}


@operator(module=None, batching="leading")
class prod_others:
    """For each element the product of all others along the last dimension: the derivative of a product, zeros or not."""

    def forward(xp, input: Array):
        return product_of_others(input)

    def vjp_input(F, grad, input):
        # row k of the matrix is the operand with its element k left out
        rows = F.fill_diagonal_of(input, 1.0)
        return F.sum_dim(F.fill_diagonal_of(grad, 0.0) * F.prod_others(rows), (-1,), False)

    def jvp_input(F, tangent, input):
        rows = F.fill_diagonal_of(input, 1.0)
        return F.sum_dim(F.fill_diagonal_of(tangent, 0.0) * F.prod_others(rows), (-1,), False)

    def samples(make): yield (make(2, 3),), {}


@operator(module=None, exact=True, batching="leading")
class fill_diagonal_of:
    """The operand's last dimension n as n rows of a square matrix, with `value` on the diagonal."""

    def forward(xp, input: Array, value: float):
        return rows_with_diagonal(input, value)

    def vjp_input(F, grad): return F.sum_off_diagonal(grad)
    def jvp_input(F, tangent): return F.fill_diagonal_of(tangent, 0.0)
    def samples(make): yield (make(2, 3), 1.0), {}


@operator(module=None, exact=True, linear=True, batching="leading")
class sum_off_diagonal:
    """The sum of each column of the last two dimensions, the diagonal left out."""

    def forward(xp, input: Array):
        places = xp.arange(input.shape[-1])
        return xp.add.reduce(input, axis=-2) - input[..., places, places]

    def vjp_input(F, grad): return F.fill_diagonal_of(grad, 0.0)
    def samples(make): yield (make(2, 3, 3),), {}


@composite(method=True)
def prod(input, dim=None, keepdim=False, *, dtype=None, out=None, axis=None, keepdims=None):
    """The product of all elements, or over one dimension; integers and bools are multiplied as int64.

    input: [*S]. dim: one dimension, None for all. keepdim, dtype, axis, keepdims: as for `sum`.
    """
    dim, keepdim = keyword_names(dim, keepdim, axis, keepdims)
    input = typed(input, dtype)
    return typed(prod_all(input, out=out) if dim is None else prod_dim(input, dim, keepdim, out=out), dtype)


# --- logsumexp -------------------------------------------------------------------------------------------------------


@operator(promote=Promote.FLOAT, broadcast=False, method=True, module=("torch", "special"))
class logsumexp:
    """Logarithm of the sum of exponentials over `dim`, without overflow.

    input: [*S]. Returns S without `dim` (or with size one). An empty sum gives -inf.
    """

    canonical = whole

    def forward(xp, input: Array, dim: tuple, keepdim: bool = False):
        return log_sum(input, dim, keepdim)

    def vjp_input(F, grad, input, input_shape, result, dim, keepdim):
        weights = F.exp(input - F.expand_reduced(result, input_shape, dim, keepdim))
        return F.expand_reduced(grad, input_shape, dim, keepdim) * weights

    def jvp_input(F, tangent, input, input_shape, result, dim, keepdim):
        weights = F.exp(input - F.expand_reduced(result, input_shape, dim, keepdim))
        return F.sum_dim(tangent * weights, dim, keepdim)

    samples = reduction()


# --- truth and counts ------------------------------------------------------------------------------------------------


def _truth(name: str, which: str, ufunc: np.ufunc):
    """Declare `any` or `all`: an operator over dimensions, and the public function that calls it."""

    @operator(module=None, exact=True, name=f"{name}_dim")
    class over_dim:
        __doc__ = f"Whether {which} over `dim` true."
        canonical = whole

        def forward(xp, input: Array, dim: tuple, keepdim: bool):
            found = ufunc.reduce(input, axis=dim, keepdims=keepdim, dtype=bool)
            return found.astype(np.uint8) if input.dtype == np.uint8 else found

        def samples(make): yield (make(3, 4) > 1, 0, False), {}

    def function(input, dim=None, keepdim=False, *, out=None, axis=None, keepdims=None):
        dim, keepdim = keyword_names(dim, keepdim, axis, keepdims)
        return over_dim(input, dim, keepdim, out=out)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"Whether {which} true (not zero), over everything or over `dim`. Returns bools (uint8 for uint8)."
    return composite(method=True)(function)


any = _truth("any", "an element is", np.logical_or)
all = _truth("all", "all elements are", np.logical_and)


@operator(method=True, exact=True)
class count_nonzero:
    """How many elements are not zero, over everything or over `dim`.

    input: [*S]. Returns int64, S without `dim`.
    """

    def canonical(input, dim=None): return all_dims(dim, input.ndim)
    def forward(xp, input: Array, dim: tuple | None = None): return xp.add.reduce(input != 0, axis=dim, dtype=np.int64)
    def samples(make): yield (make(3, 4), 0), {}
