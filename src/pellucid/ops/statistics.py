"""Spread and quantiles: variance, standard deviation, quantile, covariance; histograms are in `counting.py`."""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import Array, composite, operator
from pellucid.autograd.operator import tensors as F
from pellucid.autograd.samples import reduction
from pellucid.core.checks import every_value
from pellucid.core.dims import all_dims, keyword_names, one_dim
from pellucid.core.tensor import Tensor, wrap
from pellucid.ops.reductions import added

__all__ = ["corrcoef", "cov", "nanquantile", "quantile", "std", "std_mean", "var", "var_mean"]


# --- variance --------------------------------------------------------------------------------------------------------


def degrees(shape: tuple, dim: tuple, correction: float) -> float:
    """What a sum of squares is divided by: the count less the correction, but not less than zero."""
    left = math.prod([shape[d] for d in dim]) - correction
    return left if left > 0 else 0.0


def variance(xp, input: np.ndarray, dim: tuple, correction: float, keepdim: bool):
    """The mean square distance from the mean; real for complex numbers."""
    if input.dtype.kind not in "fc":
        raise RuntimeError(f"std and var only support floating point and complex dtypes: got {input.dtype.name}")
    count = math.prod([input.shape[d] for d in dim])
    centre = added(xp, input, dim, True) / input.dtype.type(count)
    distance = input - centre
    square = distance * distance if input.dtype.kind == "f" else distance.real**2 + distance.imag**2
    return xp.true_divide(added(xp, square, dim, keepdim), square.dtype.type(degrees(input.shape, dim, correction)))


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
        return variance(xp, input, dim, correction, keepdim)

    def vjp_input(F, grad, input, input_shape, dim, correction, keepdim):
        return _joint(F, grad, None, input, input_shape, dim, correction, keepdim)

    def jvp_input(F, tangent, input, input_shape, dim, correction, keepdim):
        return _change(F, tangent, input, input_shape, dim, correction, keepdim)


@operator(module=None, name="std", holomorphic=False, node="StdBackward0")
class std_kernel(_Spread):
    """The standard deviation over dimensions."""

    def forward(xp, input: Array, dim: tuple, correction: float, keepdim: bool):
        return xp.sqrt(variance(xp, input, dim, correction, keepdim))

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


def _average(xp, input: np.ndarray, dim: tuple, keepdim: bool):
    count = math.prod([input.shape[d] for d in dim])
    return xp.true_divide(added(xp, input, dim, keepdim), input.dtype.type(count))


@operator(module=None, name="var_mean", holomorphic=False, outputs=("var", "mean"), node="VarMeanBackward0")
class var_mean_kernel(_Spread):
    """The variance and the mean over dimensions."""

    def forward(xp, input: Array, dim: tuple, correction: float, keepdim: bool):
        return variance(xp, input, dim, correction, keepdim), _average(xp, input, dim, keepdim)

    def vjp_input(F, grad, input, input_shape, dim, correction, keepdim):
        return _joint(F, grad[0], grad[1], input, input_shape, dim, correction, keepdim)

    def jvp(F, tangents, input, input_shape, dim, correction, keepdim):
        change = _change(F, tangents[0], input, input_shape, dim, correction, keepdim)
        return change, F.mean_dim(tangents[0], dim, keepdim)


@operator(module=None, name="std_mean", holomorphic=False, outputs=("std", "mean"), node="StdMeanBackward0")
class std_mean_kernel(_Spread):
    """The standard deviation and the mean over dimensions."""

    def forward(xp, input: Array, dim: tuple, correction: float, keepdim: bool):
        return xp.sqrt(variance(xp, input, dim, correction, keepdim)), _average(xp, input, dim, keepdim)

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


# --- quantiles -------------------------------------------------------------------------------------------------------

INTERPOLATIONS = ("linear", "lower", "higher", "midpoint", "nearest")


def _check_quantile(name: str, input, q, interpolation: str):
    if not input.is_floating_point() or input._array.dtype.itemsize < 4:
        raise RuntimeError(f"{name}() input tensor must be either float or double dtype: got {input.dtype}")
    if isinstance(q, Tensor):
        if q.ndim > 1:
            raise RuntimeError(f"{name}() q must be a scalar or 1D tensor: it has {q.ndim} dimensions")
        if q.dtype is not input.dtype:
            raise RuntimeError(f"{name}() q tensor must be same dtype as the input tensor: got {q.dtype} and {input.dtype}")
    elif not 0 <= q <= 1:
        raise RuntimeError(f"{name}() q must be in the range [0, 1] but got {q}")
    if interpolation not in INTERPOLATIONS:
        raise RuntimeError(f"{name}() interpolation must be one of {', '.join(INTERPOLATIONS[:-1])} or nearest, but got {interpolation}")


def _ranks(ordered, q, ignore_nan: bool):
    """The places, in general between two elements, of the quantiles in rows sorted along the last dimension: [*B, Q]."""
    last = ordered.size(-1) - 1
    nans = F.sum_dim(F.isnan(ordered), (-1,), True)
    if ignore_nan:
        return q * (last - nans).clamp(0).to(q.dtype)
    return (q * last).where(nans == 0, float(last))


def _quantile(name: str, input, q, dim, keepdim: bool, interpolation: str, ignore_nan: bool, out):
    _check_quantile(name, input, q, interpolation)
    if not input.numel():
        raise RuntimeError(f"{name}() input tensor must be non-empty")
    place = None if dim is None else one_dim(dim, input.ndim)
    rows = input.reshape(-1) if dim is None or not input.ndim else input.movedim(place, -1)
    ordered = F.sort(rows, -1, False)[0]
    several = isinstance(q, Tensor) and q.ndim > 0
    points = q.reshape(-1) if isinstance(q, Tensor) else wrap(np.asarray([q], input._array.dtype))
    ranks = _ranks(ordered, points, ignore_nan)
    found = _between(ordered, ranks, interpolation)
    kept = [1 if place in (None, d) else size for d, size in enumerate(input.shape)]
    if not keepdim:
        kept = [] if place is None else [size for d, size in enumerate(input.shape) if d != place]
    result = found.movedim(-1, 0).reshape([points.numel(), *kept] if several else kept)
    return result if out is None else out.copy_(result)


def _between(ordered, ranks, interpolation: str):
    """The elements at the given places along the last dimension, interpolated."""
    places, dim = ranks.detach(), ordered.ndim - 1
    if interpolation not in ("linear", "midpoint"):
        places = {"lower": places.floor, "higher": places.ceil, "nearest": places.round}[interpolation]()
        return F.take_along(ordered, places.long(), dim, True)
    below, above = places.floor(), places.ceil()
    weight = 0.5 if interpolation == "midpoint" else ranks - below
    return F.take_along(ordered, below.long(), dim, True).lerp(F.take_along(ordered, above.long(), dim, True), weight)


@composite(method=True)
def quantile(input, q, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear", out=None):
    """The q-th quantiles of all elements, or along one dimension; NaN where there is a NaN.

    input: [*S], float32 or float64.
    q: a number in [0, 1], or a 1-d tensor of Q of them, which gives the result a first dimension of size Q.
    dim, keepdim: the dimension to reduce (None for all), and whether to keep it with size one.
    interpolation: "linear", "lower", "higher", "midpoint" or "nearest" between two elements.
    Raises: RuntimeError (another dtype, an empty input, or q out of its range).
    """
    return _quantile("quantile", input, q, dim, keepdim, interpolation, False, out)


@composite(method=True)
def nanquantile(input, q, dim: int | None = None, keepdim: bool = False, *, interpolation: str = "linear", out=None):
    """The q-th quantiles of the elements that are not NaN; see `quantile`."""
    return _quantile("nanquantile", input, q, dim, keepdim, interpolation, True, out)


# --- covariance ------------------------------------------------------------------------------------------------------


def _observations(name: str, input):
    if input.ndim > 2:
        raise RuntimeError(f"{name}: expected input to have two or fewer dimensions but got an input with {input.ndim} dimensions")
    if input._array.dtype.kind == "b":
        raise RuntimeError(f"{name}: bool dtype is not supported for input")
    return input.reshape(1, -1) if input.ndim < 2 else input


def _weights(name: str, weights, count: int, floating: bool) -> None:
    """Check one kind of weights of the observations."""
    if weights.ndim > 1:
        raise RuntimeError(f"cov: expected {name} to have one or fewer dimensions but got {name} with {weights.ndim} dimensions")
    if (weights._array.dtype.kind == "f") != floating:
        kind = "floating point" if floating else "integral"
        raise RuntimeError(f"cov: expected {name} to have {kind} dtype but got {weights.dtype}")
    if weights.numel() != count:
        raise RuntimeError(
            f"cov: expected {name} to have the same numel as there are observations in the input but got {weights.numel()} != {count}"
        )
    if (every_value(weights) < 0).any():
        raise RuntimeError(f"cov: {name} cannot be negative")


@composite(method=True)
def cov(input, *, correction: int = 1, fweights=None, aweights=None):
    """The covariance matrix of variables (rows) observed several times (columns).

    input: [V, N] or [N], no bools.
    correction: how much less than the (weighted) count to divide by.
    fweights: [N], integers: how often each observation was made.
    aweights: [N], floats: how much each observation counts.
    Raises: RuntimeError (shapes or dtypes that do not fit, negative weights).
    """
    rows = _observations("cov", input)
    count = rows.size(1)
    weights = None
    for name, given, floating in (("fweights", fweights, False), ("aweights", aweights, True)):
        if given is not None:
            _weights(name, given, count, floating)
            weights = given if weights is None else weights * given
    total = count if weights is None else weights.sum()
    if weights is not None and count and not every_value(total).all():
        raise RuntimeError("cov: weights sum to zero, can't be normalized")
    weighted = rows if weights is None else rows * weights
    centre = weighted.sum(1) / total
    if weights is not None and aweights is not None and correction != 0:
        norm = total - correction * (weights * aweights).sum() / total
    else:
        norm = total - correction
    distance = rows - centre.unsqueeze(1)
    other = distance.conj() if weights is None else (distance * weights).conj()
    norm = norm.clamp(0) if isinstance(norm, Tensor) else max(norm, 0)
    return (distance @ other.transpose(0, 1) / norm).squeeze()


@composite(method=True)
def corrcoef(input):
    """The matrix of Pearson's correlation coefficients of variables (rows) observed several times (columns).

    input: [V, N] or [N]. Returns [V, V], or a 0-d tensor for one variable.
    """
    _observations("corrcoef", input)
    together = cov(input)
    if not together.ndim:
        return together / together
    spread = together.diagonal().sqrt()
    scaled = together / spread.unsqueeze(1) / spread.unsqueeze(0)
    if scaled.is_complex():
        return complex_clip(scaled)
    return scaled.clip(-1, 1)


def complex_clip(value):
    """Both parts brought between -1 and 1."""
    return F.complex(value.real.clip(-1, 1), value.imag.clip(-1, 1))
