"""Pooling of N-dimensional images: maxima and means of windows.

Both run over the places of the kernel, not over the windows: for each place one strided view of the image holds what all
windows see there, so a 2x2 pooling is four passes of plain elementwise arithmetic over views, whatever the image's size. Large
images go to compiled kernels, which do the same one row of windows at a time.

Shapes: x [..., *S], y [..., *P]; tuples kernel, stride, padding, dilation have one number a dimension.
"""

from __future__ import annotations

import math

import numpy as np

from .choice import compiled
from .threads import threads_for

__all__ = ["average", "average_gradient", "maxima", "maxima_gradient", "maxima_indices", "output_size", "picked"]


def output_size(size: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple, ceil_mode: bool) -> tuple:
    """The spatial shape of a pooling's result; with `ceil_mode` windows may hang over the end, but must begin inside."""
    found = []
    for s, k, t, p, d in zip(size, kernel, stride, padding, dilation, strict=True):
        span = s + 2 * p - d * (k - 1) - 1
        places = -(-span // t) + 1 if ceil_mode else span // t + 1
        if ceil_mode and (places - 1) * t >= s + p:
            places -= 1
        found.append(places)
    return tuple(found)


def _lowest(dtype):
    return -np.inf if dtype.kind in "fV" else np.iinfo(dtype).min


def _framed(x, places: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple, value):
    """The image with a border of `value`, as large as the windows need; the image itself where they need none."""
    size = x.shape[-len(kernel) :]
    needed = [(q - 1) * t + d * (k - 1) + 1 for q, t, d, k in zip(places, stride, dilation, kernel, strict=True)]
    if not any(padding) and all(n <= s for n, s in zip(needed, size, strict=True)):
        return x
    whole = np.full(x.shape[: -len(kernel)] + tuple(max(n, p + s) for n, p, s in zip(needed, padding, size, strict=True)), value, x.dtype)
    whole[_interior(size, padding)] = x
    return whole


def _interior(size: tuple, padding: tuple) -> tuple:
    return (..., *(slice(p, p + s) for p, s in zip(padding, size, strict=True)))


def _places_seen(x, places: tuple, kernel: tuple, stride: tuple, dilation: tuple):
    """For each place of the kernel, in order, the view of what all windows see there."""
    for offset in np.ndindex(*kernel):
        yield offset, x[(..., *(slice(o * d, o * d + (q - 1) * t + 1, t)
                                for o, d, q, t in zip(offset, dilation, places, stride, strict=True)))]  # fmt: skip


def _as_images(array, rank: int):
    """An array [..., *S] as [I, D, H, W], with ones for the dimensions it does not have."""
    shape = array.shape[array.ndim - rank :]
    return np.ascontiguousarray(array).reshape(math.prod(array.shape[: array.ndim - rank]), *(1,) * (3 - rank), *shape)


def _geometry(kernel: tuple, stride: tuple, padding: tuple, dilation: tuple) -> np.ndarray:
    """The windows as compiled kernels want them."""
    spare = 3 - len(kernel)
    return np.array([(1,) * spare + kernel, (1,) * spare + stride, (0,) * spare + padding, (1,) * spare + dilation], np.int64)


FOURS = [_geometry((planes, 2, 2), (planes, 2, 2), (0, 0, 0), (1, 1, 1)) for planes in (1, 2)]  # windows side by side


def _planes(geometry: np.ndarray, images: np.ndarray, results: np.ndarray) -> int:
    """In how many planes windows are 2 x 2 side by side, all of them whole; 0 for other windows."""
    for planes, fours in enumerate(FOURS, 1):
        if np.array_equal(geometry, fours):
            whole = all(n * q <= s for n, q, s in zip((planes, 2, 2), results.shape[1:], images.shape[1:], strict=True))
            return planes if whole else 0
    return 0


def _fast(kernel: tuple, *arrays):
    """The compiled kernels; None where the plain form is to be used."""
    size = max(array.size for array in arrays)
    return compiled("pooling", size, *arrays) if size and len(kernel) <= 3 else None


def maxima(x, places: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple) -> np.ndarray:
    """The largest value in each window; NaN if there is one."""
    fast, rank = _fast(kernel, x), len(kernel)
    if fast is not None:
        best, geometry = np.empty(x.shape[: x.ndim - rank] + places, x.dtype), _geometry(kernel, stride, padding, dilation)
        images, made = _as_images(x, rank), _as_images(best, rank)
        fast.maxima(threads_for(x.size), images, geometry, _planes(geometry, images, made), made)
        return best
    x = _framed(x, places, kernel, stride, padding, dilation, _lowest(x.dtype))
    best = None
    for _, seen in _places_seen(x, places, kernel, stride, dilation):
        best = seen.copy() if best is None else np.maximum(best, seen, out=best)
    return best


def _firsts(x, best, places: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple):
    """For each place of the kernel, where it is the first in the image to hold its window's maximum: (offset, mask)."""
    lowest, size = _lowest(x.dtype), x.shape[-len(kernel) :]
    framed = _framed(x, places, kernel, stride, padding, dilation, lowest)
    open_, broken = np.ones(best.shape, bool), best != best
    broken = broken if broken.any() else None
    inside = framed
    if framed is not x and (best == lowest).any():  # the border looks like a maximum
        inside = _framed(np.ones(size, bool), places, kernel, stride, padding, dilation, False)
    views = (_places_seen(image, places, kernel, stride, dilation) for image in (framed, inside))
    for (offset, seen), (_, within) in zip(*views, strict=True):
        hit = seen == best
        if broken is not None:
            hit |= broken & (seen != seen)
        hit &= open_
        if inside is not framed:
            hit &= within
        open_ ^= hit
        yield offset, hit


def maxima_indices(x, best, places: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple) -> np.ndarray:
    """Where in its image each maximum is, as a number over the flattened spatial dimensions."""
    fast, rank = _fast(kernel, x, best), len(kernel)
    if fast is not None:
        found = np.empty(best.shape, np.int64)
        images = [_as_images(array, rank) for array in (x, best, found)]
        fast.maxima_indices(threads_for(x.size), *images[:2], _geometry(kernel, stride, padding, dilation), images[2])
        return found
    size = x.shape[-len(kernel) :]
    found = np.zeros(best.shape, np.int64)
    steps = [math.prod(size[i + 1 :]) for i in range(len(size))]
    origin = np.zeros(places, np.int64)
    for axis, (q, t, p, step) in enumerate(zip(places, stride, padding, steps, strict=True)):
        origin += ((np.arange(q) * t - p) * step).reshape([-1 if a == axis else 1 for a in range(len(places))])
    for offset, hit in _firsts(x, best, places, kernel, stride, padding, dilation):
        shift = sum(o * d * s for o, d, s in zip(offset, dilation, steps, strict=True))
        np.copyto(found, origin + shift, where=hit)
    return found


def maxima_gradient(grad, x, best, places: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple) -> np.ndarray:
    """The transpose of `maxima`: each gradient at the place of the first maximum of its window."""
    fast, rank = _fast(kernel, grad, x, best), len(kernel)
    if fast is not None:
        made, geometry = np.empty(x.shape, x.dtype), _geometry(kernel, stride, padding, dilation)
        images = [_as_images(array, rank) for array in (grad, x, best, made)]
        fast.maxima_gradient(threads_for(x.size), *images[:3], geometry, _planes(geometry, images[1], images[2]), images[3])
        return made
    size = x.shape[-len(kernel) :]
    whole = _framed(np.zeros(x.shape, grad.dtype), places, kernel, stride, padding, dilation, 0)
    alone = all(t >= d * (k - 1) + 1 for t, k, d in zip(stride, kernel, dilation, strict=True))
    targets = _places_seen(whole, places, kernel, stride, dilation)
    for (_, hit), (_, target) in zip(_firsts(x, best, places, kernel, stride, padding, dilation), targets, strict=True):
        if alone:  # windows do not overlap
            np.copyto(target, grad, where=hit)
        else:
            np.add(target, grad, out=target, where=hit)
    return whole[_interior(size, padding)]


def picked(values, x, best, places: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple) -> np.ndarray:
    """Of `values`, shaped like x, those at the first maximum of each window of x."""
    made = np.zeros(best.shape, values.dtype)
    values = _framed(values, places, kernel, stride, padding, dilation, 0)
    sources = _places_seen(values, places, kernel, stride, dilation)
    for (_, hit), (_, source) in zip(_firsts(x, best, places, kernel, stride, padding, dilation), sources, strict=True):
        np.copyto(made, source, where=hit)
    return made


def _divisors(size: tuple, places: tuple, kernel: tuple, stride: tuple, padding: tuple, include_pad: bool, divisor, dtype):
    """By what each window's sum is divided: a number, or an array [*P] where windows are cut off."""
    if divisor:
        return dtype.type(divisor)
    counts = []
    for s, q, k, t, p in zip(size, places, kernel, stride, padding, strict=True):
        start = np.arange(q) * t - p
        stop = np.minimum(start + k, s + p)
        counts.append(stop - start if include_pad else np.minimum(stop, s) - np.maximum(start, 0))
    if all((c == k).all() for c, k in zip(counts, kernel, strict=True)):
        return dtype.type(math.prod(kernel))
    return math.prod(np.ix_(*counts)).astype(dtype)


def _counts(by, places: tuple) -> np.ndarray:
    """`_divisors` as an array [P, Q, R]."""
    return np.array(np.broadcast_to(by, places)).reshape((1,) * (3 - len(places)) + places)


def average(x, places: tuple, kernel: tuple, stride: tuple, padding: tuple, include_pad: bool, divisor) -> np.ndarray:
    """The mean of each window."""
    size, ones = x.shape[-len(kernel) :], (1,) * len(kernel)
    by = _divisors(size, places, kernel, stride, padding, include_pad, divisor, x.dtype)
    fast, rank = _fast(kernel, x), len(kernel)
    if fast is not None:
        made = np.empty(x.shape[: x.ndim - rank] + places, x.dtype)
        geometry = _geometry(kernel, stride, padding, ones)
        fast.average(threads_for(x.size), _as_images(x, rank), geometry, _counts(by, places), _as_images(made, rank))
        return made
    framed, total = _framed(x, places, kernel, stride, padding, ones, 0), None
    for _, seen in _places_seen(framed, places, kernel, stride, ones):
        total = seen.copy() if total is None else np.add(total, seen, out=total)
    total /= by
    return total


def average_gradient(grad, size: tuple, kernel: tuple, stride: tuple, padding: tuple, include_pad: bool, divisor) -> np.ndarray:
    """The transpose of `average`: each gradient spread evenly over its window."""
    places, ones = grad.shape[-len(kernel) :], (1,) * len(kernel)
    by = _divisors(tuple(size), places, kernel, stride, padding, include_pad, divisor, grad.dtype)
    fast, rank = _fast(kernel, grad), len(kernel)
    if fast is not None:
        made = np.empty(grad.shape[: grad.ndim - rank] + tuple(size), grad.dtype)
        geometry = _geometry(kernel, stride, padding, ones)
        fast.average_gradient(threads_for(made.size), _as_images(grad, rank), geometry, _counts(by, places), _as_images(made, rank))
        return made
    share = grad / by
    whole = _framed(np.zeros(grad.shape[: -len(kernel)] + tuple(size), grad.dtype), places, kernel, stride, padding, ones, 0)
    for _, target in _places_seen(whole, places, kernel, stride, ones):
        target += share
    return whole[_interior(size, padding)]
