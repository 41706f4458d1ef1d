"""Spread: variance and standard deviation. Quantiles and covariance are in `functions/statistics.py`, histograms in `counting.py`."""

from __future__ import annotations

import math

from pellucid.autograd.operator import Array, composite, operator
from pellucid.autograd.samples import reduction
from pellucid.core.dims import all_dims, keyword_names
from pellucid.kernels.reductions import average, degrees, variance

__all__ = ["std", "std_mean", "var", "var_mean"]


class _Spread:
    """What variance and standard deviation share."""

    def canonical(input, dim, correction, keepdim): return all_dims(dim, input.ndim), correction, bool(keepdim)

    def samples(make):
        for args, _ in reduction()(make):
            if args[0].ndim:
                yield (args[0], args[1], 1, args[2]), {}


def _scaled_distance(F, input, shape: tuple, dim: tuple, correction: float):
    """The derivative of a variance by each element: 2 / degrees times its distance from the mean."""
    count = degrees(shape, dim, correction)
    return (input - F.mean_dim(input, dim, True)) * (2.0 / count if count else math.inf)


def _change(F, tangent, input, shape: tuple, dim: tuple, correction: float, keepdim: bool):
    """How a variance changes with its elements (of complex ones the real part)."""
    return F.sum_dim(F.conj(_scaled_distance(F, input, shape, dim, correction)) * tangent, dim, keepdim)


def _root_slope(F, grad, root):
    """From the derivative of a variance to that of its root, or back; 0 where the root is."""
    return F.where(root == 0, 0, grad / (root * 2))


@operator(module=None, name="var", holomorphic=False, node="VarBackward0")
class var_kernel(_Spread):
    """The variance over dimensions."""

    def forward(xp, input: Array, dim: tuple, correction: float, keepdim: bool):
        return variance(input, dim, correction, keepdim)

    def vjp_input(F, grad, input, input_shape, dim, correction, keepdim):
        return _joint(F, grad, None, input, input_shape, dim, correction, keepdim)

    def jvp_input(F, tangent, input, input_shape, dim, correction, keepdim):
        return _change(F, tangent, input, input_shape, dim, correction, keepdim)


@operator(module=None, name="std", holomorphic=False, node="StdBackward0")
class std_kernel(_Spread):
    """The standard deviation over dimensions."""

    def forward(xp, input: Array, dim: tuple, correction: float, keepdim: bool):
        return xp.sqrt(variance(input, dim, correction, keepdim))

    def vjp_input(F, grad, input, input_shape, result, dim, correction, keepdim):
        return _joint(F, _root_slope(F, grad, result), None, input, input_shape, dim, correction, keepdim)

    def jvp_input(F, tangent, input, input_shape, result, dim, correction, keepdim):
        return _root_slope(F, _change(F, tangent, input, input_shape, dim, correction, keepdim), result)


def _joint(F, spread, mean, input, shape, dim, correction, keepdim):
    """The gradient of the pair (variance, mean), either of which may have none."""
    parts = []
    if spread is not None:
        parts.append(F.expand_reduced(spread, shape, dim, keepdim) * _scaled_distance(F, input, shape, dim, correction))
    if mean is not None:
        parts.append(F.expand_reduced(mean / math.prod([shape[d] for d in dim]), shape, dim, keepdim))
    return parts[0] + parts[1] if len(parts) > 1 else parts[0]


@operator(module=None, name="var_mean", holomorphic=False, outputs=("var", "mean"), node="VarMeanBackward0")
class var_mean_kernel(_Spread):
    """The variance and the mean over dimensions."""

    def forward(xp, input: Array, dim: tuple, correction: float, keepdim: bool):
        return variance(input, dim, correction, keepdim), average(input, dim, keepdim)

    def vjp_input(F, grad, input, input_shape, dim, correction, keepdim):
        return _joint(F, grad[0], grad[1], input, input_shape, dim, correction, keepdim)

    def jvp(F, tangents, input, input_shape, dim, correction, keepdim):
        change = _change(F, tangents[0], input, input_shape, dim, correction, keepdim)
        return change, F.mean_dim(tangents[0], dim, keepdim)


@operator(module=None, name="std_mean", holomorphic=False, outputs=("std", "mean"), node="StdMeanBackward0")
class std_mean_kernel(_Spread):
    """The standard deviation and the mean over dimensions."""

    def forward(xp, input: Array, dim: tuple, correction: float, keepdim: bool):
        return xp.sqrt(variance(input, dim, correction, keepdim)), average(input, dim, keepdim)

    def vjp_input(F, grad, input, input_shape, std, dim, correction, keepdim):
        slope = None if grad[0] is None else _root_slope(F, grad[0], std)
        return _joint(F, slope, grad[1], input, input_shape, dim, correction, keepdim)

    def jvp(F, tangents, input, input_shape, std, dim, correction, keepdim):
        change = _change(F, tangents[0], input, input_shape, dim, correction, keepdim)
        return _root_slope(F, change, std), F.mean_dim(tangents[0], dim, keepdim)


def _spread_arguments(dim, unbiased, correction):
    """`var(input, unbiased)` may take a bool where the dimension stands; `correction` is the newer name."""
    if isinstance(dim, bool):
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None else int(unbiased)
    return dim, correction


def _computed(kernel, input, dim, unbiased, keepdim, correction, axis, keepdims, **out):
    dim, keepdim = keyword_names(dim, keepdim, axis, keepdims)
    dim, correction = _spread_arguments(dim, unbiased, correction)
    return kernel(input, dim, correction, keepdim, **out)


@composite(method=True)
def var(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None, axis=None, keepdims=None):
    """The variance over all dimensions, or over those in `dim`.

    input: [*S], floating-point or complex (the result is real).
    dim: a dimension or a tuple of them.
    unbiased: whether to divide by the count less one; the same as correction=1.
    keepdim: keep the reduced dimensions, with size one.
    correction: how much less than the count to divide by, 1 by default.
    Raises: RuntimeError (integers or bools).
    """
    return _computed(var_kernel, input, dim, unbiased, keepdim, correction, axis, keepdims, out=out)


@composite(method=True)
def std(input, dim=None, unbiased=None, keepdim=False, *, correction=None, out=None, axis=None, keepdims=None):
    """The standard deviation: the square root of `var`, with the same arguments."""
    return _computed(std_kernel, input, dim, unbiased, keepdim, correction, axis, keepdims, out=out)


@composite()
def var_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None, axis=None, keepdims=None):
    """The pair (variance, mean); arguments as for `var`."""
    return tuple(_computed(var_mean_kernel, input, dim, unbiased, keepdim, correction, axis, keepdims))


@composite()
def std_mean(input, dim=None, unbiased=None, keepdim=False, *, correction=None, axis=None, keepdims=None):
    """The pair (standard deviation, mean); arguments as for `var`."""
    return tuple(_computed(std_mean_kernel, input, dim, unbiased, keepdim, correction, axis, keepdims))
