"""Normalising with statistics of the input's own, or given ones, and the gradients of it.

x̂ = (x - mean) * rstd over some dimensions, times weight, plus bias; without the mean for root mean squares. Arrays are
[*S]; weight and bias broadcast to [*S] or are None; mean, rstd and var have the shape of x with ones for the dimensions.
"""

from __future__ import annotations

import functools
import math
from typing import NamedTuple

import numpy as np

from .choice import compiled
from .threads import threads_for

__all__ = ["fixed", "gradients", "normalised", "plain_fixed", "plain_forward", "plain_gradients", "unit"]

# --- plain forms ----------------------------------------------------------------------------------------------------


def _moments(x: np.ndarray, dims: tuple, eps: float, centred: bool) -> tuple:
    """Mean (0 if not centred), 1 / deviation and variance over `dims`, dimensions kept."""
    count = x.dtype.type(math.prod([x.shape[d] for d in dims]))
    mean = np.add.reduce(x, axis=dims, keepdims=True)
    mean /= count
    if not centred:
        mean = np.zeros_like(mean)
    away = x - mean if centred else x
    var = np.add.reduce(away * away, axis=dims, keepdims=True)
    var /= count
    return mean, 1 / np.sqrt(var + x.dtype.type(eps)), var


def unit(x: np.ndarray, mean: np.ndarray, rstd: np.ndarray) -> np.ndarray:
    """x̂ = (x - mean) * rstd."""
    made = x - mean
    made *= rstd
    return made


def plain_forward(x: np.ndarray, weight, bias, dims: tuple, eps: float, centred: bool = True) -> tuple:
    """See `normalised`."""
    mean, rstd, var = _moments(x, dims, eps, centred)
    if weight is not None and 4 * np.broadcast(rstd, weight).size <= x.size:  # a factor and a term for a channel
        return plain_fixed(x, rstd * weight, bias, mean), mean, rstd, var
    made = unit(x, mean, rstd)
    if weight is not None:
        made *= weight
    if bias is not None:
        made += bias
    return made, mean, rstd, var


def _summed(array: np.ndarray, shape: tuple) -> np.ndarray:
    """A copy, summed to the shape of an operand that was broadcast."""
    extra = array.ndim - len(shape)
    axes = [extra + d for d, size in enumerate(shape) if size == 1 and array.shape[extra + d] != 1]
    return np.add.reduce(array, axis=(*range(extra), *axes), keepdims=True).reshape(shape)


def plain_gradients(grad, x, weight, mean, rstd, dims: tuple, centred=True, of_input=True, of_weight=None, of_bias=None) -> list:
    """See `gradients`."""
    found, normal = [], None if not of_input and of_weight is None else unit(x, mean, rstd)
    if of_weight is not None:
        found.append(_summed(grad * normal, of_weight))
    if of_bias is not None:
        found.append(_summed(grad, of_bias))
    if not of_input:
        return found
    scaled = grad if weight is None else grad * weight
    count = x.dtype.type(math.prod([x.shape[d] for d in dims]))
    along = np.add.reduce(scaled * normal, axis=dims, keepdims=True)
    normal *= along / count
    made = scaled - np.add.reduce(scaled, axis=dims, keepdims=True) / count if centred else scaled
    made = np.subtract(made, normal, out=made if made is not grad else None)
    made *= rstd
    return [made, *found]


def plain_fixed(x: np.ndarray, factor: np.ndarray, bias, mean: np.ndarray) -> np.ndarray:
    """(x - mean) * factor + bias, where factors and means are few: one product and one sum for each element."""
    made = x * factor
    made += (-mean) * factor if bias is None else bias - mean * factor
    return made


# --- how compiled kernels see an array ------------------------------------------------------------------------------


class _Layout(NamedTuple):
    """kind "rows": x as [R, M], weights [M]. "channels": x as [R, P], `count` rows to a unit, in order or (across) every U-th.
    "columns": x as [R, C], weights [C]. See `compiled/normalisation.py`."""

    kind: str
    shape: tuple
    units: int
    across: bool = False


@functools.lru_cache(1024)
def _layout(shape: tuple, dims: tuple, vector: tuple | None) -> _Layout | None:
    """The layout for weights of shape `vector` (None: there are none), or None if there is none."""
    ndim, size = len(shape), math.prod(shape)
    if ndim > 1 and dims == (0, *range(2, ndim)):
        channels = shape[1]
        if vector is not None and (1,) * (ndim - len(vector)) + vector != (1, channels, *(1,) * (ndim - 2)):
            return None
        places = math.prod(shape[2:])
        if places == 1:
            return _Layout("columns", (shape[0], channels), channels)
        return _Layout("channels", (shape[0] * channels, places), channels, True)
    if not dims or dims != tuple(range(ndim - len(dims), ndim)):
        return None
    inner = shape[ndim - len(dims) :]
    together = math.prod(inner)
    units = size // together
    if vector is None or math.prod(vector) == 1:
        return _Layout("channels", (units, together), units)
    if vector == inner:
        return _Layout("rows", (units, together), units)
    vector = (1,) * (ndim - len(vector)) + vector
    last = max(d for d, n in enumerate(vector) if n != 1)
    if vector[1 : last + 1] != shape[1 : last + 1] or vector[0] != 1 or last >= ndim - 1:
        return None
    places = math.prod(shape[last + 1 :])
    return _Layout("channels", (size // places, places), units) if together % places == 0 else None


def _fast(name: str, x: np.ndarray, dims: tuple, weight, bias, vector: tuple | None, *others):
    """The compiled kernels and the layout they want; (None, None) where the plain form is to be used."""
    given = [v for v in (weight, bias, *others) if v is not None]
    fast = compiled(name, x.size, x, *given)
    layout = _layout(x.shape, tuple(dims), vector) if fast is not None and x.size else None
    return (None, None) if layout is None else (fast, layout)


def _vector(values, size: int, x: np.ndarray, absent: int) -> np.ndarray:
    """Weights or biases in a row; `absent` for each where there are none."""
    return np.full(size, absent, x.dtype) if values is None else np.ascontiguousarray(values).reshape(-1)


def _vectors(weight, bias, layout: _Layout, x: np.ndarray) -> tuple:
    given = weight if weight is not None else bias
    size = given.size if given is not None else layout.shape[1] if layout.kind != "channels" else 1
    return _vector(weight, size, x, 1), _vector(bias, size, x, 0)


def _shape_of(weight, bias) -> tuple | None:
    """The shape that weight and bias have; one that suits no layout where they differ."""
    if weight is None or bias is None:
        return None if weight is None and bias is None else (bias if weight is None else weight).shape
    return weight.shape if weight.shape == bias.shape else (0,)


# --- what operators call --------------------------------------------------------------------------------------------


def normalised(x: np.ndarray, weight, bias, dims: tuple, eps: float, centred: bool = True) -> tuple:
    """(x - mean) * rstd * weight + bias over `dims`, with the mean (0 unless centred), rstd = 1 / sqrt(var + eps), and var."""
    fast, layout = _fast("normalisation", x, dims, weight, bias, _shape_of(weight, bias))
    if fast is None:
        return plain_forward(x, weight, bias, dims, eps, centred)
    made = np.empty(x.shape, x.dtype)  # results are arrays and no views, so that nobody copies them to own them
    rows, into = np.ascontiguousarray(x).reshape(layout.shape), made.reshape(layout.shape)
    weight, bias = _vectors(weight, bias, layout, x)
    mean, rstd, var = (np.empty([1 if d in dims else n for d, n in enumerate(x.shape)], x.dtype) for _ in range(3))
    statistics = [s.reshape(-1) for s in (mean, rstd, var)]
    if layout.kind == "rows":
        fast.rows_forward(threads_for(x.size), rows, weight, bias, float(eps), bool(centred), into, *statistics)
    elif layout.kind == "columns":
        fast.columns_forward(threads_for(x.size), rows, weight, bias, float(eps), bool(centred), into, *statistics)
    else:
        fast.channels_forward(threads_for(x.size), rows, weight, bias, layout.across, float(eps), bool(centred), into, *statistics)
    return made, mean, rstd, var


def gradients(grad, x, weight, mean, rstd, dims: tuple, centred=True, of_input=True, of_weight=None, of_bias=None) -> list:
    """The wanted gradients of `normalised`: of the input, of a weight of shape `of_weight`, of a bias of shape `of_bias`.

    That of the input is rstd (h - m(h) - x̂ m(h x̂)) with h = grad * weight and m the mean over `dims`; m(h) only if centred.
    """
    vector = of_weight if of_weight is not None else weight.shape if weight is not None else of_bias
    if of_bias is not None and of_bias != vector:
        vector = (0,)
    fast, layout = _fast("normalisation", x, dims, weight, None, vector, grad, mean, rstd)
    if fast is None:
        return plain_gradients(grad, x, weight, mean, rstd, dims, centred, of_input, of_weight, of_bias)
    size = layout.shape[1] if layout.kind != "channels" else 1 if vector is None else math.prod(vector)
    arrays = [np.ascontiguousarray(a).reshape(layout.shape) for a in (grad, x)]
    arrays += [_vector(weight, size, x, 1)]
    statistics = [np.ascontiguousarray(s).reshape(-1) for s in (mean, rstd)]
    made = np.empty(x.shape if of_input else 0, x.dtype)
    into = made.reshape(layout.shape if of_input else (0, 0))
    if layout.kind == "rows":
        found = _of_rows(fast, arrays, statistics, centred, into, of_weight, of_bias)
    else:
        found = _of_channels(fast, layout, arrays, statistics, centred, into, of_weight, of_bias)
    return [made, *found] if of_input else found


def _of_rows(fast, arrays, statistics, centred, made, of_weight, of_bias) -> list:
    blocks, size = -(-len(arrays[0]) // fast.ROWS), arrays[0].shape[1]
    shares = [np.zeros((blocks, size if shape is not None else 0), made.dtype) for shape in (of_weight, of_bias)]
    fast.rows_backward(threads_for(arrays[1].size), *arrays, *statistics, bool(centred), made, *shares)
    return [share.sum(0).reshape(shape) for share, shape in zip(shares, (of_weight, of_bias), strict=True) if shape is not None]


def _of_channels(fast, layout: _Layout, arrays, statistics, centred, made, of_weight, of_bias) -> list:
    """Row by row, then summed for each channel; columns and channels across images come summed."""
    apart = layout.kind == "channels" and not layout.across
    totals, alongs = np.zeros((2, layout.shape[0] if apart else layout.units))
    if layout.kind == "columns":
        fast.columns_backward(threads_for(arrays[1].size), *arrays, *statistics, bool(centred), made, totals, alongs)
    else:
        weight, across = arrays.pop(), layout.across
        fast.channels_backward(threads_for(arrays[1].size), *arrays, weight, across, *statistics, bool(centred), made, totals, alongs)
    scale = statistics[1] if not apart else np.repeat(statistics[1], len(totals) // layout.units)
    sums = ((of_weight, alongs * scale), (of_bias, totals))
    return [s.reshape(-1, math.prod(shape)).sum(0).astype(made.dtype).reshape(shape) for shape, s in sums if shape is not None]


def fixed(x: np.ndarray, weight, bias, mean: np.ndarray, var: np.ndarray, eps: float) -> np.ndarray:
    """(x - mean) / sqrt(var + eps) * weight + bias with given statistics, of which there is one for each channel [N, C, *S]."""
    rstd = 1 / np.sqrt(var + var.dtype.type(eps))
    factor = rstd if weight is None else rstd * weight
    dims = (0, *range(2, x.ndim))
    fast, layout = _fast("normalisation.fixed", x, dims, factor, bias, factor.shape, mean)
    if fast is None or layout.kind != "channels" or mean.size != factor.size or (bias is not None and bias.size != mean.size):
        return plain_fixed(x, factor, bias, mean)
    made = np.empty(x.shape, x.dtype)
    factor, term = _vectors(factor, bias, layout, x)
    rows, mean = np.ascontiguousarray(x).reshape(layout.shape), np.ascontiguousarray(mean).reshape(-1)
    fast.scaled(threads_for(x.size), rows, mean, factor, term, made.reshape(layout.shape))
    return made
