"""Convolution of N-dimensional images, and its two transposes, through matrix products.

What: y[n, o, p] = sum over c, k of w[o, c, k] * x[n, c, p * stride + k * dilation - padding], in groups of channels. As a
matrix product that is W [O, C*K] times the columns [C*K, P] of each image: the column of an output place p holds what the
window over p sees. `forward` makes y, `input_gradient` the transpose in x, `weight_gradient` the transpose in w; the three
are bilinear, so every derivative of one is one of the others.

Traffic: columns are K times as large as the image (K places of the kernel). They are made for a few images at a time, so
that the tile (TILE bytes) is still in a core's cache when BLAS reads it; memory sees the image, the weights and the result
once. A 1x1 kernel with stride 1 needs no columns.
FLOPs: 2 * N * O * (C / groups) * K * P for each of the three.

Shapes: x [N, C, *S], w [O, C / groups, *K], y [N, O, *P]; tuples stride, padding, dilation have one number a dimension.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.lib.stride_tricks import as_strided

from .choice import compiled

__all__ = ["added_columns", "as_columns", "enabled", "forward", "input_gradient", "output_size", "weight_gradient",
           "winograd"]  # fmt: skip

TILE = 1 << 20  # bytes of columns made at a time: half of a core's L2 cache


class winograd:
    """A switch: whether 3x3 convolutions of float32 may be made by Winograd's method, three times less exact and faster."""

    enabled = True


def enabled() -> bool:
    """Whether Winograd's method is allowed."""
    return winograd.enabled


def output_size(size: tuple, kernel: tuple, stride: tuple, padding: tuple, dilation: tuple) -> tuple:
    """The spatial shape of a convolution's result."""
    return tuple((s + 2 * p - d * (k - 1) - 1) // t + 1 for s, k, t, p, d in zip(size, kernel, stride, padding, dilation, strict=True))


def padded(x: np.ndarray, padding: tuple) -> np.ndarray:
    """The image with a border of zeros; the image itself if there is none."""
    if not any(padding):
        return x
    shape = x.shape[:2] + tuple(s + 2 * p for s, p in zip(x.shape[2:], padding, strict=True))
    whole = np.zeros(shape, x.dtype)
    whole[(..., *(slice(p, p + s) for p, s in zip(padding, x.shape[2:], strict=True)))] = x
    return whole


def windows(x: np.ndarray, kernel: tuple, places: tuple, stride: tuple, dilation: tuple) -> np.ndarray:
    """What each place of the kernel sees at each place of the result: a view [N, C, *K, *P] of x."""
    spatial = x.strides[2:]
    inner = tuple(s * d for s, d in zip(spatial, dilation, strict=True))
    outer = tuple(s * t for s, t in zip(spatial, stride, strict=True))
    return as_strided(x, x.shape[:2] + tuple(kernel) + tuple(places), x.strides[:2] + inner + outer, writeable=False)


def forward(x, w, stride: tuple, padding: tuple, dilation: tuple, groups: int, bias=None) -> np.ndarray:
    """The convolution y of x with w, plus a bias [O] if there is one."""
    kernel, images, out_channels = w.shape[2:], x.shape[0], w.shape[0]
    places = output_size(x.shape[2:], kernel, stride, padding, dilation)
    fast = _compiled(images * math.prod(places), w.size, x, w)
    if fast is not None:
        return fast.forward(x, w, stride, padding, dilation, groups, bias)
    count, depth = math.prod(places), w.shape[1] * math.prod(kernel)
    made = np.empty((images, groups, out_channels // groups, count), x.dtype)
    weights = np.ascontiguousarray(w).reshape(groups, out_channels // groups, depth)
    x = padded(x, padding)
    for start, stop, columns in _columns(x, kernel, places, stride, dilation, groups):
        np.matmul(weights, columns, out=made[start:stop])
    if bias is not None:
        made += bias.reshape(groups, -1, 1)
    return made.reshape(images, out_channels, *places)


def _compiled(places: int, weights: int, *arrays):
    """The compiled forms, if they are to be used: each weight is multiplied once for each place of the result."""
    return compiled("convolution", places * weights, *arrays) if all(each.size for each in arrays) and places else None


def _columns(x, kernel: tuple, places: tuple, stride: tuple, dilation: tuple, groups: int):
    """Tiles of columns [n, groups, C / groups * K, P] of the images start to stop."""
    images, channels = x.shape[:2]
    shape = (groups, channels // groups * math.prod(kernel), math.prod(places))
    if _is_pointwise(kernel, stride):
        x = np.ascontiguousarray(x)
        yield 0, images, x.reshape(images, *shape)
        return
    view = windows(x, kernel, places, stride, dilation)
    step = _tile(images, math.prod(shape) * x.itemsize)
    tile = np.empty((step, *view.shape[1:]), x.dtype)
    for start in range(0, images, step):
        stop = min(start + step, images)
        part = tile[: stop - start]
        np.copyto(part, view[start:stop])
        yield start, stop, part.reshape(stop - start, *shape)


def _is_pointwise(kernel: tuple, stride: tuple) -> bool:
    return all(k == 1 for k in kernel) and all(t == 1 for t in stride)


def _tile(images: int, size: int) -> int:
    """How many images make one tile."""
    return max(1, min(images, TILE // max(size, 1)))


def weight_gradient(grad, x, shape: tuple, stride: tuple, padding: tuple, dilation: tuple, groups: int) -> np.ndarray:
    """The transpose in w: sum over images and places of grad times what the kernel saw; `shape` is that of w."""
    fast = _compiled(grad.shape[0] * math.prod(grad.shape[2:]), math.prod(shape), grad, x)
    if fast is not None:
        return fast.weight_gradient(grad, x, shape, stride, padding, dilation, groups)
    out_channels, kernel = shape[0], tuple(shape[2:])
    places, images = grad.shape[2:], grad.shape[0]
    count, depth = math.prod(places), shape[1] * math.prod(kernel)
    total = np.zeros((groups, out_channels // groups, depth), x.dtype)
    x = padded(x, padding)
    view = windows(x, kernel, places, stride, dilation)
    step = _tile(images, groups * depth * count * x.itemsize)
    places_last = (1, *range(2, view.ndim - len(places)), 0, *range(view.ndim - len(places), view.ndim))
    view, grad = view.transpose(places_last), grad.reshape(images, out_channels, count).transpose(1, 0, 2)
    for start in range(0, images, step):  # images beside places: one product for a tile, not one for each image
        stop = min(start + step, images)
        seen = view[(slice(None),) * (1 + len(kernel)) + (slice(start, stop),)]
        columns = np.ascontiguousarray(seen).reshape(groups, depth, (stop - start) * count)
        part = np.ascontiguousarray(grad[:, start:stop]).reshape(groups, out_channels // groups, (stop - start) * count)
        total += np.matmul(part, columns.swapaxes(1, 2))
    return total.reshape(shape)


def input_gradient(grad, w, size: tuple, stride: tuple, padding: tuple, dilation: tuple, groups: int) -> np.ndarray:
    """The transpose in x, of spatial shape `size`: each gradient spread over what the kernel saw (a transposed convolution)."""
    kernel = w.shape[2:]
    fast = _compiled(grad.shape[0] * math.prod(grad.shape[2:]), w.size, grad, w)
    if fast is not None:
        return fast.input_gradient(grad, w, size, stride, padding, dilation, groups)
    reach = tuple(d * (k - 1) - p for k, d, p in zip(kernel, dilation, padding, strict=True))
    if all(t == 1 for t in stride) and all(r >= 0 for r in reach) and _fits(grad, size, reach, kernel, dilation):
        return forward(grad, _flipped(w, groups), stride, reach, dilation, groups)
    return _scattered(grad, w, size, stride, padding, dilation, groups)


def _fits(grad, size: tuple, reach: tuple, kernel: tuple, dilation: tuple) -> bool:
    return output_size(grad.shape[2:], kernel, (1,) * len(size), reach, dilation) == tuple(size)


def _flipped(w, groups: int) -> np.ndarray:
    """The weights that carry gradients back: the kernel turned around, channels in and out exchanged within each group."""
    turned = w[(..., *(slice(None, None, -1),) * (w.ndim - 2))]
    split = turned.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    return np.ascontiguousarray(split.swapaxes(1, 2)).reshape(groups * w.shape[1], w.shape[0] // groups, *w.shape[2:])


def _scattered(grad, w, size: tuple, stride: tuple, padding: tuple, dilation: tuple, groups: int) -> np.ndarray:
    """`input_gradient` for any stride: columns W^T grad, each place of the kernel added to the pixels it had seen."""
    kernel, places, images = w.shape[2:], grad.shape[2:], grad.shape[0]
    channels, depth, count = groups * w.shape[1], w.shape[1] * math.prod(kernel), math.prod(places)
    needed = tuple((q - 1) * t + d * (k - 1) + 1 for q, t, d, k in zip(places, stride, dilation, kernel, strict=True))
    spread = tuple(max(s + 2 * p, n) for s, p, n in zip(size, padding, needed, strict=True))
    whole = np.zeros((images, channels, *spread), grad.dtype)
    weights = np.ascontiguousarray(w).reshape(groups, -1, depth).swapaxes(1, 2) if w.size else np.zeros((groups, depth, 0), w.dtype)
    grad = np.ascontiguousarray(grad).reshape(images, groups, w.shape[0] // groups, count)
    step = _tile(images, groups * depth * count * grad.itemsize)
    for start in range(0, images, step):
        stop = min(start + step, images)
        columns = np.matmul(weights, grad[start:stop]).reshape(stop - start, channels, *kernel, *places)
        add_columns(whole[start:stop], columns, kernel, places, stride, dilation)
    return whole[(..., *(slice(p, p + s) for p, s in zip(padding, size, strict=True)))]


def add_columns(image, columns, kernel: tuple, places: tuple, stride: tuple, dilation: tuple) -> None:
    """Add columns [N, C, *K, *P] to the pixels of the image that the windows see."""
    for offset in np.ndindex(*kernel):
        seen = tuple(slice(o * d, o * d + (q - 1) * t + 1, t) for o, d, q, t in zip(offset, dilation, places, stride, strict=True))
        target = image[(..., *seen)]
        target += columns[(slice(None), slice(None), *offset)]


def as_columns(image: np.ndarray, kernel: tuple, dilation: tuple, padding: tuple, stride: tuple) -> np.ndarray:
    """What windows see as columns: images [N, C, *S] as [N, C * K, P], a copy."""
    places = output_size(image.shape[2:], kernel, stride, padding, dilation)
    view = windows(padded(image, padding), kernel, places, stride, dilation)
    made = np.ascontiguousarray(view).reshape(len(image), image.shape[1] * math.prod(kernel), math.prod(places))
    return made.copy() if np.may_share_memory(made, image) else made


def added_columns(columns: np.ndarray, size: tuple, kernel: tuple, dilation: tuple, padding: tuple, stride: tuple) -> np.ndarray:
    """The transpose of `as_columns`: columns [N, C * K, P] added up into images [N, C, *size]."""
    places = output_size(size, kernel, stride, padding, dilation)
    images, channels = len(columns), columns.shape[1] // math.prod(kernel)
    whole = np.zeros((images, channels, *(s + 2 * p for s, p in zip(size, padding, strict=True))), columns.dtype)
    add_columns(whole, columns.reshape(images, channels, *kernel, *places), kernel, places, stride, dilation)
    return whole[(..., *(slice(p, p + s) for p, s in zip(padding, size, strict=True)))]
