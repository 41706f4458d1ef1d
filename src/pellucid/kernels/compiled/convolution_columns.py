"""Convolutions of few channels by columns: what the windows see, as a matrix [channels and taps, places], times the weights.

Where channels are few, columns are small beside the result, and the product writes the result where it belongs. Columns are
made for TILE places at a time, so that they stay in a core's second cache. Of a 1x1 kernel with stride 1, the image is the columns.
"""

from __future__ import annotations

import math

import numpy as np

from . import get_threads, inner, serial
from .blas import gemm
from .convolution_blocks import Geometry, as_numbers, from_numbers, span
from .sharing import share

__all__ = ["forward", "weight_gradients"]

TILE = 512  # places of one product


def forward(x, weights, shape: Geometry, bias) -> np.ndarray:
    """The convolution [N, G, O, P] of x [N, G, C, S] with weights [G, O, C taps], all flat, plus a bias [G O]."""
    made = np.empty(shape.images * shape.groups * shape.out_channels * math.prod(shape.places), x.dtype)
    tasks = shape.images * shape.groups
    _shared_convolve(tasks, get_threads(), as_numbers(shape), x, weights, bias, made)
    return made


def weight_gradients(grad, x, shape: Geometry) -> np.ndarray:
    """The weight gradient as [threads, G O C taps]: the sum over threads is what is wanted."""
    threads = get_threads()
    taps = math.prod(shape.kernel)
    sums = np.zeros((threads, shape.groups * shape.out_channels * shape.channels * taps), x.dtype)
    _shared_gradient(threads, as_numbers(shape), grad, x, sums)
    return sums


@inner
def _fill_columns(x, shape, first, rows, columns):
    """Columns [channels * taps, rows * row length] of `rows` rows of the result from `first` on. Plain form: `windows`."""
    kh, kw, length = shape.kernel[1], shape.kernel[2], shape.places[2]
    taps, stride = shape.kernel[0] * kh * kw, shape.stride[2]
    for depth in range(shape.channels * taps):
        tap, plane = depth % taps, depth // taps * shape.size[0]
        w0, w1, shift = span(tap % kw, shape.size[2], length, stride, shape.padding[2], shape.dilation[2])
        d_shift = tap // (kh * kw) * shape.dilation[0] - shape.padding[0]
        h_shift = tap // kw % kh * shape.dilation[1] - shape.padding[1]
        d, h = first // shape.places[1], first % shape.places[1]
        for row in range(rows):
            in_d, in_h = d * shape.stride[0] + d_shift, h * shape.stride[1] + h_shift
            at = (depth * rows + row) * length
            if 0 <= in_d < shape.size[0] and 0 <= in_h < shape.size[1] and w0 < w1:
                start = ((plane + in_d) * shape.size[1] + in_h) * shape.size[2] + shift
                _copy_row(columns, at, x, start, stride, w0, w1, length)
            else:
                _copy_row(columns, at, x, 0, stride, 0, 0, length)
            h += 1
            if h == shape.places[1]:
                d, h = d + 1, 0


@inner
def _copy_row(columns, at, x, start, stride, first, last, length):
    """Every `stride`-th pixel to the places from first to last of a row; zeros to its others.

    Indices are without sign: others may count from the end, and loops over them do not become vector code. Slices would cost
    more than a short row, since they are counted.
    """
    for i in range(first):
        columns[np.uint64(at + i)] = 0
    to, seen = np.uint64(at + first), np.uint64(start + first * stride)
    if stride == 1:
        for i in range(last - first):
            columns[to + np.uint64(i)] = x[seen + np.uint64(i)]
    else:
        step = np.uint64(stride)
        for i in range(last - first):
            columns[to + np.uint64(i)] = x[seen + np.uint64(i) * step]
    for i in range(last, length):
        columns[np.uint64(at + i)] = 0


@inner
def is_pointwise(shape):
    """Whether every place of the result sees one pixel, its own: then the image is the columns."""
    return shape.size == shape.places and max(shape.kernel) == max(shape.stride) == 1 and max(shape.padding) == 0


@inner
def _rows_of_tile(shape):
    return min(shape.places[0] * shape.places[1], max(1, TILE // shape.places[2]))


@serial
def _shared_convolve(tasks, threads, numbers, x, weights, bias, made):
    share(tasks, threads, _convolve, (numbers, x, weights, bias, made))


@inner
def _convolve(task, numbers, x, weights, bias, made):
    """One image of one group."""
    shape = from_numbers(numbers)
    group, outer, length = task % shape.groups, shape.out_channels, shape.places[2]
    depth = shape.channels * shape.kernel[0] * shape.kernel[1] * shape.kernel[2]
    total, step = shape.places[0] * shape.places[1], _rows_of_tile(shape)
    columns = np.empty(depth * step * length, x.dtype)
    image = x[task * shape.channels * shape.size[0] * shape.size[1] * shape.size[2]:]
    own, result = weights[group * outer * depth:], made[task * outer * total * length : (task + 1) * outer * total * length]
    for o in range(outer):
        result[o * total * length : (o + 1) * total * length] = bias[group * outer + o]
    if is_pointwise(shape):
        gemm(outer, total * length, depth, own, depth, False, image, total * length, False, result, total * length, True)
        return
    for first in range(0, total, step):
        rows = min(step, total - first)
        _fill_columns(image, shape, first, rows, columns)
        places = rows * length
        gemm(outer, places, depth, own, depth, False, columns, places, False, result[first * length:], total * length, True)


@serial
def _shared_gradient(threads, numbers, grad, x, sums):
    share(threads, threads, _gradient, (threads, numbers, grad, x, sums))


@inner
def _gradient(worker, workers, numbers, grad, x, sums):
    """What one worker's share of the images adds to the weight gradient."""
    shape = from_numbers(numbers)
    outer, length, total = shape.out_channels, shape.places[2], shape.places[0] * shape.places[1]
    depth, step = shape.channels * shape.kernel[0] * shape.kernel[1] * shape.kernel[2], _rows_of_tile(shape)
    columns = np.empty(depth * step * length, x.dtype)
    tasks = shape.images * shape.groups
    for task in range(worker * tasks // workers, (worker + 1) * tasks // workers):
        image = x[task * shape.channels * shape.size[0] * shape.size[1] * shape.size[2]:]
        if is_pointwise(shape):
            given, own = grad[task * outer * total * length:], sums[worker, task % shape.groups * outer * depth:]
            gemm(outer, depth, total * length, given, total * length, False, image, total * length, True, own, depth, True)
            continue
        for first in range(0, total, step):
            rows = min(step, total - first)
            _fill_columns(image, shape, first, rows, columns)
            places, given = rows * length, grad[task * outer * total * length + first * length:]
            own = sums[worker, task % shape.groups * outer * depth:]
            gemm(outer, depth, places, given, total * length, False, columns, places, True, own, depth, True)
