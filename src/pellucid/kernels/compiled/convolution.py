"""Convolutions on all threads: blocks of images are shared out, and each goes through `convolution_blocks.walk`.

What kernels/convolution.py calls: `forward`, `input_gradient`, `weight_gradient`, with shapes and meaning as there. Memory
sees the image, the weights and the result once; a block of each stays in a core's second cache.
"""

from __future__ import annotations

import math

import numpy as np

from pellucid.kernels.convolution import enabled, output_size

from . import convolution_columns as columns
from . import convolution_depthwise as depthwise
from . import convolution_winograd as winograd
from . import get_threads, inner, serial
from .convolution_blocks import (
    FORWARD,
    INPUT,
    PANEL_COLUMNS,
    WEIGHT,
    Geometry,
    aligned,
    as_numbers,
    from_numbers,
    into_block,
    out_of_block,
    pitch,
    places_of,
    room_of,
    walk,
)
from .convolution_panels import pack, unpack
from .sharing import share

__all__ = ["forward", "input_gradient", "weight_gradient"]

ROWS = 96  # rows of a product from which on it is fast
BLOCK = 3 << 19  # bytes of a block of images and of results: most of a core's second cache


def geometry(images: int, w_shape: tuple, size: tuple, places: tuple, stride, padding, dilation, groups: int) -> Geometry:
    """The shape of a convolution of one to three dimensions as one of three."""
    missing = 3 - len(size)
    ones, zeros = (1,) * missing, (0,) * missing
    return Geometry(
        images, groups, w_shape[1], w_shape[0] // groups, ones + tuple(size), ones + tuple(w_shape[2:]), ones + tuple(places),
        ones + tuple(stride), zeros + tuple(padding), ones + tuple(dilation),
    )  # fmt: skip


def _images_in_block(shape: Geometry, itemsize: int) -> int:
    """How many images make one block: enough for fast products, few enough for the cache, as many blocks as divide well."""
    bytes_of_one = (math.prod(shape.places) * shape.out_channels + math.prod(shape.size) * shape.channels) * itemsize
    wanted = max(1, min(-(-ROWS // shape.places[2]), BLOCK // bytes_of_one))
    threads = get_threads()
    blocks = -(-shape.images // wanted)
    blocks = min(-(-blocks // threads) * threads, shape.images)
    return -(-shape.images // blocks)


def _parts(shape: Geometry, outer: int, blocks: int) -> int:
    """Into how many parts the channels of the result are cut, so that every thread has something to do."""
    return max(1, min(get_threads() // (blocks * shape.groups), -(-outer // PANEL_COLUMNS)))


def forward(x, w, stride, padding, dilation, groups, bias=None) -> np.ndarray:
    """The convolution of x [N, C, *S] with w [O, C / groups, *K], plus a bias [O] if there is one."""
    places = output_size(x.shape[2:], w.shape[2:], stride, padding, dilation)
    shape = geometry(x.shape[0], w.shape, x.shape[2:], places, stride, padding, dilation, groups)
    made = _forward(_flat(x), _flat(w), shape, np.zeros(w.shape[0], x.dtype) if bias is None else _flat(bias))
    return made.reshape(x.shape[0], w.shape[0], *places)


def _forward(x, w, shape: Geometry, bias) -> np.ndarray:
    chosen = method(FORWARD, shape, x.dtype)
    if chosen == "depthwise":
        return depthwise.forward(x, w, shape, bias)
    if chosen == "columns":
        return columns.forward(x, w, shape, bias)
    panels, made = pack(FORWARD, shape, w), None
    if chosen == "winograd":
        made = winograd.convolve(x, panels, shape, bias, False)
    return _run(FORWARD, shape, x, panels, bias) if made is None else made


def input_gradient(grad, w, size, stride, padding, dilation, groups) -> np.ndarray:
    """The transpose of the convolution in its image, [N, C, *size]."""
    shape = geometry(grad.shape[0], w.shape, size, grad.shape[2:], stride, padding, dilation, groups)
    made = _input_gradient(_flat(grad), _flat(w), shape)
    return made.reshape(grad.shape[0], shape.groups * shape.channels, *size)


def _input_gradient(grad, w, shape: Geometry) -> np.ndarray:
    chosen, zero = method(INPUT, shape, grad.dtype), np.zeros(shape.groups * shape.channels, grad.dtype)
    if chosen == "depthwise":
        return depthwise.input_gradient(grad, w, shape)
    if chosen == "columns":  # of a pointwise convolution, whose transpose is one
        turned = w.reshape(shape.groups, shape.out_channels, shape.channels).swapaxes(1, 2)
        return columns.forward(grad, _flat(turned), transposed(shape), zero)
    panels, made = pack(INPUT, shape, w), None
    if chosen == "winograd":
        made = winograd.convolve(grad, panels, transposed(shape), zero, True)
    return _run(INPUT, shape, grad, panels, zero) if made is None else made


def weight_gradient(grad, x, w_shape, stride, padding, dilation, groups) -> np.ndarray:
    """The transpose of the convolution in its weights, of shape `w_shape`."""
    shape = geometry(x.shape[0], w_shape, x.shape[2:], grad.shape[2:], stride, padding, dilation, groups)
    return _weight_gradient(_flat(grad), _flat(x), shape).reshape(w_shape)


def _weight_gradient(grad, x, shape: Geometry) -> np.ndarray:
    chosen = method(WEIGHT, shape, x.dtype)
    if chosen == "depthwise":
        return depthwise.weight_gradients(grad, x, shape).sum(0)
    if chosen == "columns":
        return columns.weight_gradients(grad, x, shape).sum(0)
    if chosen == "winograd":
        made = unpack(winograd.weight_panels(grad, x, shape), shape)
        if np.isfinite(made).all():
            return made
    return unpack(_weight_panels(grad, x, shape), shape)


def _flat(array: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(array).reshape(-1)


# --- the choice -----------------------------------------------------------------------------------------------------


def method(what: int, shape: Geometry, dtype) -> str:
    """Which of the four ways makes FORWARD, INPUT or WEIGHT of this shape fastest; numbers are measured."""
    if depthwise.suits(shape):
        return "depthwise"
    if max(shape.kernel) == max(shape.stride) == 1 and max(shape.padding) == 0:
        given, made = (shape.out_channels, shape.channels) if what == INPUT else (shape.channels, shape.out_channels)
        return "columns" if what == WEIGHT or made >= 2 * given or min(given, made) < 16 else "blocks"
    if what != INPUT and (shape.channels < 16 or shape.out_channels < 8):
        return "columns"
    if enabled() and dtype == np.float32 and winograd.suits(shape):
        return "winograd"
    return "blocks"


# --- blocks ---------------------------------------------------------------------------------------------------------


def transposed(shape: Geometry) -> Geometry:
    """The convolution of stride 1 that carries gradients back, with kernels turned around."""
    padding = tuple(d * (k - 1) - p for d, k, p in zip(shape.dilation, shape.kernel, shape.padding, strict=True))
    return shape._replace(
        channels=shape.out_channels, out_channels=shape.channels, size=shape.places, places=shape.size, padding=padding
    )


def _run(what: int, shape: Geometry, source, panels, bias) -> np.ndarray:
    images = _images_in_block(shape, source.itemsize)
    outer, size = (shape.channels, shape.size) if what == INPUT else (shape.out_channels, shape.places)
    made = np.empty(shape.images * shape.groups * outer * math.prod(size), source.dtype)
    blocks = -(-shape.images // images)
    parts = _parts(shape, outer, blocks)
    x_places, y_places = places_of(shape.size, shape.stride[2]), places_of(shape.places, 1)
    steps = pitch(shape.channels), pitch(shape.out_channels)
    tasks = blocks * shape.groups * parts
    arguments = source, panels, bias, made, images, parts, x_places, y_places, *steps
    _shared_convolve(tasks, get_threads(), what, as_numbers(shape), *arguments)
    return made


@serial
def _shared_convolve(tasks, threads, what, numbers, source, panels, bias, made, images, parts, x_places, y_places, x_step, y_step):
    arguments = what, numbers, source, panels, bias, made, images, parts, x_places, y_places, x_step, y_step
    share(tasks, threads, _convolve, arguments)


@inner
def _convolve(task, what, numbers, source, weights, bias, made, images, parts, x_places, y_places, x_step, y_step):
    """FORWARD or INPUT of one task: a block of images, a group, and a part of the channels of the result."""
    shape = from_numbers(numbers)
    part, group, first = task % parts, task // parts % shape.groups, task // parts // shape.groups * images
    images = min(images, shape.images - first)
    inner, outer, step, out_step, places, out_places = shape.channels, shape.out_channels, x_step, y_step, x_places, y_places
    room, out_room = room_of(shape), y_places.size
    if what == INPUT:
        inner, outer, step, out_step, places, out_places = outer, inner, out_step, step, out_places, places
        room, out_room = out_room, room
    each = (outer + PANEL_COLUMNS - 1) // PANEL_COLUMNS
    start, stop = part * each // parts * PANEL_COLUMNS, min(outer, (part + 1) * each // parts * PANEL_COLUMNS)
    block = aligned(room * images * step, source)
    out = aligned(out_room * images * out_step, source)
    plane = shape.groups * inner * places.size
    into_block(source, first * plane + group * inner * places.size, plane, images, inner, places.size, places, block, step)
    _fill(out, out_step, bias[group * outer + start: group * outer + stop])
    taps = shape.kernel[0] * shape.kernel[1] * shape.kernel[2]
    own = weights[group * taps * inner * outer:]
    if what == INPUT:
        walk(what, shape, images, out, out_step, block, step, own, start, stop)
    else:
        walk(what, shape, images, block, step, out, out_step, own, start, stop)
    plane = shape.groups * outer * out_places.size
    target = first * plane + (group * outer + start) * out_places.size
    out_of_block(out, out_step, out_places, images, stop - start, made, target, plane, out_places.size)


@inner
def _fill(block, step, values):
    for at in range(0, block.size, step):
        for c in range(values.size):
            block[at + c] = values[c]


def _weight_panels(grad, x, shape: Geometry) -> np.ndarray:
    """The weight gradient as panels, a row a worker; their sum is what is wanted."""
    images, taps = _images_in_block(shape, x.itemsize), math.prod(shape.kernel)
    sums = np.empty((get_threads(), shape.groups * taps * shape.channels * shape.out_channels), x.dtype)
    x_places, y_places = places_of(shape.size, shape.stride[2]), places_of(shape.places, 1)
    steps = pitch(shape.channels), pitch(shape.out_channels)
    tasks = -(-shape.images // images) * shape.groups
    _shared_gradient(tasks, get_threads(), as_numbers(shape), grad, x, sums, images, x_places, y_places, *steps)
    return sums


@serial
def _shared_gradient(tasks, threads, numbers, grad, x, sums, images, x_places, y_places, x_step, y_step):
    arguments = tasks, threads, numbers, grad, x, sums, images, x_places, y_places, x_step, y_step
    share(threads, threads, _gradient, arguments)


@inner
def _gradient(worker, tasks, workers, numbers, grad, x, sums, images, x_places, y_places, x_step, y_step):
    """WEIGHT of one worker, which adds up in panels what its blocks of images give."""
    total = sums[worker]
    total[:] = 0
    for task in range(worker * tasks // workers, (worker + 1) * tasks // workers):
        _gradient_some(from_numbers(numbers), grad, x, total, images, x_places, y_places, x_step, y_step, task)


@inner
def _gradient_some(shape, grad, x, total, images, x_places, y_places, x_step, y_step, task):
    """One task of `_gradient`: a block of images of one group."""
    group, first = task % shape.groups, task // shape.groups * images
    images = min(images, shape.images - first)
    seen = aligned(room_of(shape) * images * x_step, x)
    made = aligned(y_places.size * images * y_step, x)
    for image, channels, places, block, step in (
        (x, shape.channels, x_places, seen, x_step), (grad, shape.out_channels, y_places, made, y_step)
    ):  # fmt: skip
        plane = channels * places.size
        into_block(image, (first * shape.groups + group) * plane, shape.groups * plane, images, channels, places.size, places, block, step)
    taps = shape.kernel[0] * shape.kernel[1] * shape.kernel[2]
    own = total[group * taps * shape.channels * shape.out_channels:]
    walk(WEIGHT, shape, images, seen, x_step, made, y_step, own, 0, shape.out_channels)
