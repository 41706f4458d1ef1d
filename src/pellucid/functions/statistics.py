"""Quantiles, covariance and correlation: made of sorting, taking and products.

Variance and standard deviation are operators, in `ops/statistics.py`; histograms are in `ops/counting.py`.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as F
from pellucid.core.checks import every_value
from pellucid.core.dims import one_dim
from pellucid.core.tensor import Tensor, wrap

__all__ = ["corrcoef", "cov", "nanquantile", "quantile"]


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
