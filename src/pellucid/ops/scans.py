"""Running reductions along a dimension: cumulative sums, products, extremes.

The dimension is kept: element i of a result tells about the elements up to i. Differences and trapezoids are in
`functions/differences.py`.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.call import inplace
from pellucid.autograd.operator import Array, composite, operator
from pellucid.core.checks import require_kind
from pellucid.core.dims import one_dim
from pellucid.kernels import scans as kernel
from pellucid.ops.reductions import typed
from pellucid.ops.selection import WITH_INDICES, Listed

__all__ = ["cummax", "cummin", "cumprod", "cumsum", "logcumsumexp"]


def along(input, dim):
    """Canonical form of one dimension."""
    return one_dim(dim, input.ndim)


def _samples(make):
    yield (make(3, 4), 0), {}
    yield (make(2, 3, 2), -2), {}
    yield (make(), 0), {}


# --- sums and products -----------------------------------------------------------------------------------------------


@operator(module=None, exact=True, name="cumsum", node="CumsumBackward0", linear=True)
class cumsum_kernel:
    """The sum of the elements up to each, or from each on."""

    def canonical(input, dim, backwards=False): return one_dim(dim, input.ndim), backwards
    def forward(xp, input: Array, dim: int, backwards: bool = False): return kernel.scanned(xp.add, input, dim, backwards)
    def vjp_input(F, grad, dim, backwards): return F.cumsum(grad, dim, not backwards)
    samples = _samples


@operator(module=None, name="cumprod", node="CumprodBackward0")
class cumprod_kernel:
    """The product of the elements up to each."""

    canonical = along
    def forward(xp, input: Array, dim: int): return kernel.scanned(xp.multiply, input, dim)

    def vjp_input(F, grad, input, input_shape, dim):
        if not input_shape:
            return grad
        return F.transpose(F.cumprod_back(F.transpose(grad, dim, -1), F.transpose(input, dim, -1)), dim, -1)

    def jvp_input(F, tangent, input, input_shape, dim):
        if not input_shape:
            return tangent
        return F.transpose(_cumprod_forth(F, F.transpose(tangent, dim, -1), F.transpose(input, dim, -1)), dim, -1)

    samples = _samples


@operator(module=None, batching="leading")
class cumprod_back:
    """Gradient of `cumprod` along the last dimension, for operands with zeros too."""

    def forward(xp, input: Array, point: Array): return kernel.gradient_of_products(input, point)
    def vjp_input(F, grad, point): return _cumprod_forth(F, grad, point)
    def jvp_input(F, tangent, point): return F.cumprod_back(tangent, point)
    def vjp_point(F, grad, input, point): return _cumprod_bend(F, grad, input, point)
    def jvp_point(F, tangent, input, point): return _cumprod_bend(F, tangent, input, point)
    def samples(make): yield (make(2, 3), make(2, 3)), {}


def _cumprod_forth(F, step, point):
    """How the cumulative product along the last dimension changes: the sum over k <= i of step_k times the other factors."""
    others = F.upper_triangle(F.cumprod(F.fill_diagonal_of(point, 1.0), -1))
    return F.sum_dim(others * F.unsqueeze(step, -1), (-2,), False)


def _cumprod_bend(F, step, input, point):
    """The second derivative of the cumulative product, weighted by `input`, along a step: it is symmetric."""
    # row k of the matrix leaves out element k; its own derivative is that of a cumulative product again
    weights = F.upper_triangle(F.unsqueeze(step, -1) * F.unsqueeze(input, -2))
    return F.sum_off_diagonal(F.cumprod_back(weights, F.fill_diagonal_of(point, 1.0)))


@operator(module=None, exact=True, linear=True, batching="leading")
class upper_triangle:
    """The last two dimensions with zeros below the diagonal."""

    def forward(xp, input: Array): return xp.triu(input)
    def vjp_input(F, grad): return F.upper_triangle(grad)
    def samples(make): yield (make(2, 3, 3),), {}


def _in_place(kernel, name: str, *rest):
    def form(input, dim, *, dtype=None):
        if dtype is not None and dtype is not input.dtype:
            raise RuntimeError(f"Bad in-place call: input tensor dtype {input.dtype} and output dtype {dtype} must match")
        if input._array.dtype.kind in "iub" and input._array.dtype != np.int64:
            return input.copy_(kernel(input, dim))
        return inplace(kernel.operator, input, (dim, *rest))

    form.__name__, form.__doc__ = name, f"In-place form of `{name[:-1]}`."
    return form


@composite(method=True, inplace=_in_place(cumsum_kernel, "cumsum_", False))
def cumsum(input, dim: int, *, dtype=None, out=None, axis=None):
    """The sum of the elements up to each, along `dim`.

    input: [*S]; integers and bools are summed as int64. Returns [*S].
    """
    return typed(cumsum_kernel(typed(input, dtype), dim if axis is None else axis, out=out), dtype)


@composite(method=True, inplace=_in_place(cumprod_kernel, "cumprod_"))
def cumprod(input, dim: int, *, dtype=None, out=None, axis=None):
    """The product of the elements up to each, along `dim`.

    input: [*S]; integers and bools are multiplied as int64. Returns [*S].
    """
    return typed(cumprod_kernel(typed(input, dtype), dim if axis is None else axis, out=out), dtype)


# --- logarithms of sums ----------------------------------------------------------------------------------------------


@operator(method=True)
class logcumsumexp:
    """Logarithm of the sum of the exponentials of the elements up to each, along `dim`, without overflow.

    input: [*S], floating-point or complex. Returns [*S].
    Raises: RuntimeError for integers.
    """

    canonical = along

    def forward(xp, input: Array, dim: int):
        require_kind("logcumsumexp_out_cpu", input, "fc")
        return kernel.log_sums(input, dim)

    def vjp_input(F, grad, input, result, dim): return F.scaled_sums(grad, -result, input, dim, True)
    def jvp_input(F, tangent, input, result, dim): return F.scaled_sums(tangent, input, -result, dim, False)
    samples = _samples


@operator(module=None, batching="shift")
class scaled_sums:
    """exp(outer) times the sum up to each element, or from each on, of input * exp(inner): transposed it runs the other way."""

    def forward(xp, input: Array, inner: Array, outer: Array, dim: int, backwards: bool):
        return kernel.scaled_sums(input, inner, outer, dim, backwards)

    def vjp_input(F, grad, inner, outer, dim, backwards):
        return F.scaled_sums(grad, outer, inner, dim, not backwards)

    def vjp_inner(F, grad, input, inner, outer, dim, backwards):
        return input * F.scaled_sums(grad, outer, inner, dim, not backwards)

    def vjp_outer(F, grad, result): return grad * result

    def jvp_input(F, tangent, inner, outer, dim, backwards):
        return F.scaled_sums(tangent, inner, outer, dim, backwards)

    def jvp_inner(F, tangent, input, inner, outer, dim, backwards):
        return F.scaled_sums(input * tangent, inner, outer, dim, backwards)

    def jvp_outer(F, tangent, result): return tangent * result

    def samples(make):
        for backwards in (True, False):
            yield (make(3, 4), make(3, 4), make(3, 4), 1, backwards), {}


# --- extremes --------------------------------------------------------------------------------------------------------


def _running_extreme(name: str, which: str, ufunc: np.ufunc):
    """Declare `cummax` or `cummin`."""

    @operator(method=True, name=name, **WITH_INDICES)
    class function(Listed):
        __doc__ = f"""The {which} of the elements up to each, along `dim`, and where it is; the gradient follows the indices.

        input: [*S], real. Returns the pair (values, indices).
        """

        canonical = along

        def forward(xp, input: Array, dim: int):
            require_kind(f"{name}_cpu", input, "fib")
            return kernel.running(ufunc, input, dim)

        def samples(make):
            yield (make.distinct(3, 4), 0), {}
            yield (make.distinct(2, 3), -1), {}

    return function


cummax = _running_extreme("cummax", "largest", np.maximum)
cummin = _running_extreme("cummin", "smallest", np.minimum)
