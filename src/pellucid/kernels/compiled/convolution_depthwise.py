"""Depthwise convolutions: each channel with kernels of its own, without products of matrices.

In blocks whose innermost index is the channel (see convolution_blocks.py), neighbouring channels do the same with neighbouring
numbers. What has to be added up for each place of the result, each pixel or each place of the kernel is the same for all of
them, and for all images: a list of pairs, made once and kept.
"""

from __future__ import annotations

import functools
import math

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from . import get_threads, inner, serial
from .convolution_blocks import FORWARD, INPUT, Geometry, aligned, into_block, out_of_block
from .sharing import share

__all__ = ["forward", "input_gradient", "suits", "weight_gradients"]

CHANNELS = 32  # of one task; as many sums are made at once
PAIRS = 1 << 22  # the longest list that is made


def suits(shape: Geometry) -> bool:
    """Whether this is a depthwise convolution whose list is not too long."""
    return shape.channels == 1 < shape.groups and math.prod(shape.places) * math.prod(shape.kernel) <= PAIRS


# --- lists ----------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=32)
def pairs(target: int, size: tuple, kernel: tuple, places: tuple, stride: tuple, padding: tuple, dilation: tuple) -> tuple:
    """Which pixels, places of the kernel and places of the result meet.

    target: which of the three is the target, in the order place, pixel, tap. Returns (starts, first, second): the pairs of
    target t are those from starts[t] to starts[t + 1], in the two others, in that order.
    """
    places_seen, taps, pixels = np.zeros(1, np.int64), np.zeros(1, np.int64), np.zeros(1, np.int64)
    for s, k, p, t, b, d in zip(size, kernel, places, stride, padding, dilation, strict=True):
        place, tap = np.divmod(np.arange(p * k), k)
        pixel = place * t + tap * d - b
        place, tap, pixel = (each[(pixel >= 0) & (pixel < s)] for each in (place, tap, pixel))
        places_seen = (places_seen[:, None] * p + place).reshape(-1)
        taps, pixels = (taps[:, None] * k + tap).reshape(-1), (pixels[:, None] * s + pixel).reshape(-1)
    meeting = [places_seen, pixels, taps]
    counts = math.prod(places), math.prod(size), math.prod(kernel)
    order = np.argsort(meeting[target], kind="stable")
    starts = np.searchsorted(meeting[target][order], np.arange(counts[target] + 1))
    first, second = (each[order].astype(np.int32) for i, each in enumerate(meeting) if i != target)
    return starts, first, second


def _pairs_of(target: int, shape: Geometry) -> tuple:
    return pairs(target, *shape[4:])


@intrinsic
def add_products(typingctx, a, a_at, b, b_at, first, last, target, at):
    """Add to target[at + j] the sum over i of a[a_at[i] CHANNELS + j] * b[b_at[i] CHANNELS + j], for j below CHANNELS.

    i goes from first to last; a_at, b_at: int32; all arrays 1-d. Inside kernels only.
    """

    def generate(context, builder, signature, arguments):
        lists = (context.make_array(k)(context, builder, v).data for k, v in zip(signature.args[:4], arguments[:4], strict=True))
        result = context.make_array(a)(context, builder, arguments[6]).data
        _add_products(builder, context.get_value_type(a.dtype), *lists, arguments[4], arguments[5], result, arguments[7])
        return context.get_dummy_value()

    return types.void(a, a_at, b, b_at, types.int64, types.int64, target, types.int64), generate


def _add_products(builder, element, a, a_at, b, b_at, first, last, target, at) -> None:
    vector = ir.VectorType(element, CHANNELS // 2)
    align = 4 if isinstance(element, ir.FloatType) else 8
    halves = [ir.Constant(ir.IntType(64), half * CHANNELS // 2) for half in range(2)]

    def pointer(data, place, half):
        return builder.bitcast(builder.gep(data, [builder.add(place, halves[half])]), vector.as_pointer())

    sums = [cgutils.alloca_once(builder, vector) for _ in halves]
    for half, total in enumerate(sums):
        builder.store(builder.load(pointer(target, at, half), align=align), total)
    with cgutils.for_range_slice(builder, first, last, ir.Constant(ir.IntType(64), 1)) as (i, _):
        channels = ir.Constant(ir.IntType(64), CHANNELS)
        in_a, in_b = (
            builder.mul(builder.sext(builder.load(builder.gep(places, [i])), ir.IntType(64)), channels) for places in (a_at, b_at)
        )
        for half, total in enumerate(sums):
            left, right = (builder.load(pointer(d, p, half), align=align) for d, p in ((a, in_a), (b, in_b)))
            product = builder.fmul(left, right, flags=("contract",))
            builder.store(builder.fadd(builder.load(total), product, flags=("contract",)), total)
    for half, total in enumerate(sums):
        builder.store(builder.load(total), pointer(target, at, half), align=align)


# --- convolutions ---------------------------------------------------------------------------------------------------


def forward(x, w, shape: Geometry, bias) -> np.ndarray:
    """The convolution [N, G, O, P] of x [N, G, S] with weights [G, O, taps], all flat, plus a bias [G O]."""
    made = np.empty(shape.images * bias.size * math.prod(shape.places), x.dtype)
    _run(FORWARD, shape, x, math.prod(shape.size), w, bias, made, math.prod(shape.places))
    return made


def input_gradient(grad, w, shape: Geometry) -> np.ndarray:
    """The transpose in the image: [N, G, S], flat."""
    made = np.empty(shape.images * shape.groups * math.prod(shape.size), grad.dtype)
    _run(INPUT, shape, grad, math.prod(shape.places), w, np.zeros(shape.groups, grad.dtype), made, math.prod(shape.size))
    return made


def _run(what, shape: Geometry, source, source_size, w, bias, made, made_size) -> None:
    chunks = -(-shape.groups // CHANNELS)
    counts = shape.groups, shape.out_channels, math.prod(shape.kernel)
    tasks, lists = shape.images * chunks, _pairs_of(what, shape)
    _shared(tasks, get_threads(), what, chunks, counts, np.arange(source_size), source, w, bias, made, np.arange(made_size), *lists)


@serial
def _shared(tasks, threads, what, chunks, counts, source_places, source, w, bias, made, made_places, starts, first, second):
    share(tasks, threads, _some, (what, chunks, counts, source_places, source, w, bias, made, made_places, starts, first, second))


@inner
def _some(task, what, chunks, counts, source_places, source, w, bias, made, made_places, starts, first, second):
    """One image and CHANNELS channels: 2 * out_channels * places * taps * CHANNELS FLOPs. Plain form: `kernels.convolution`."""
    groups, outer, taps = counts
    image, group = task // chunks, task % chunks * CHANNELS
    channels = min(CHANNELS, groups - group)
    seen = aligned(source_places.size * CHANNELS, source)
    block = aligned(made_places.size * CHANNELS, source)
    kernels = np.zeros(taps * CHANNELS, source.dtype)
    plane = image * groups + group
    if what == INPUT:
        block[:] = 0
    for o in range(outer):
        of_source, of_made = (1, outer) if what == FORWARD else (outer, 1)
        if o == 0 or what == INPUT:
            start = (plane * of_source + (o if what == INPUT else 0)) * source_places.size
            into_block(source, start, 0, 1, channels, of_source * source_places.size, source_places, seen, CHANNELS)
        for c in range(channels):
            for tap in range(taps):
                kernels[tap * CHANNELS + c] = w[((group + c) * outer + o) * taps + tap]
        if what == FORWARD:
            for at in range(0, block.size, CHANNELS):
                for c in range(channels):
                    block[at + c] = bias[(group + c) * outer + o]
        for target in range(made_places.size):
            add_products(seen, first, kernels, second, starts[target], starts[target + 1], block, target * CHANNELS)
        if what == FORWARD or o == outer - 1:
            start = (plane * of_made + (o if what == FORWARD else 0)) * made_places.size
            out_of_block(block, CHANNELS, made_places, 1, channels, made, start, 0, of_made * made_places.size)


def weight_gradients(grad, x, shape: Geometry) -> np.ndarray:
    """The weight gradient as [threads, G O taps]: the sum over threads is what is wanted."""
    threads, taps = get_threads(), math.prod(shape.kernel)
    sums = np.zeros((threads, shape.groups * shape.out_channels * taps), x.dtype)
    chunks, counts = -(-shape.groups // CHANNELS), (shape.groups, shape.out_channels, taps)
    x_places, y_places = np.arange(math.prod(shape.size)), np.arange(math.prod(shape.places))
    tasks, lists = shape.images * chunks, _pairs_of(2, shape)
    _shared_gradient(tasks, threads, chunks, counts, x_places, x, y_places, grad, sums, *lists)
    return sums


@serial
def _shared_gradient(tasks, threads, chunks, counts, x_places, x, y_places, grad, sums, starts, first, second):
    arguments = tasks, threads, chunks, counts, x_places, x, y_places, grad, sums, starts, first, second
    share(threads, threads, _gradient, arguments)


@inner
def _gradient(worker, tasks, workers, chunks, counts, x_places, x, y_places, grad, sums, starts, first, second):
    """What one worker's share of images and channels adds to the weight gradient."""
    groups, outer, taps = counts
    seen, given = aligned(x_places.size * CHANNELS, x), aligned(y_places.size * CHANNELS, x)
    for task in range(worker * tasks // workers, (worker + 1) * tasks // workers):
        group = task % chunks * CHANNELS
        channels, plane = min(CHANNELS, groups - group), task // chunks * groups + group
        into_block(x, plane * x_places.size, 0, 1, channels, x_places.size, x_places, seen, CHANNELS)
        for o in range(outer):
            into_block(grad, (plane * outer + o) * y_places.size, 0, 1, channels, outer * y_places.size, y_places, given, CHANNELS)
            total = np.zeros(taps * CHANNELS, x.dtype)
            for tap in range(taps):
                add_products(given, first, seen, second, starts[tap], starts[tap + 1], total, tap * CHANNELS)
            for c in range(channels):
                for tap in range(taps):
                    sums[worker, ((group + c) * outer + o) * taps + tap] += total[tap * CHANNELS + c]
