"""Images in blocks whose innermost index is the channel, and the walk over a block that is a convolution.

A block holds a few images as [places, images, channels]: the places in the order of memory, but in each row those of one
residue modulo the stride side by side. What one place of the kernel (a tap) sees along a row of the result is then a matrix
of consecutive rows, and so are the results: each tap is a product on parts of arrays, added to what is there, and no columns
are made. The same walk over taps and rows serves the convolution, its input gradient (added to where it would read) and its
weight gradient.

Products are kept small enough (VOLUME) for the routine that BLAS has for small matrices, which does not copy its operands,
and the panels of weights (PANEL_ROWS x PANEL_COLUMNS) small enough for a core's first cache.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from . import inner
from .blas import gemm
from .transposition import turn

__all__ = [
    "FORWARD", "INPUT", "PANEL_COLUMNS", "PANEL_ROWS", "WEIGHT", "Geometry", "aligned", "as_numbers", "from_numbers",
    "into_block", "multiply", "out_of_block", "pitch", "places_of", "room_of", "span", "walk",
]  # fmt: skip

FORWARD, INPUT, WEIGHT = 0, 1, 2  # what a walk adds to: the result, the image, the weights

VOLUME = 1_000_000  # rows * columns * depth of the largest product that OpenBLAS gives to its routine for small matrices
PANEL_ROWS, PANEL_COLUMNS = 128, 64
LINE = 16  # numbers in a square of `turn`, and in a cache line of float32


class Geometry(NamedTuple):
    """A convolution in three spatial dimensions; channels are those of one group."""

    images: int
    groups: int
    channels: int
    out_channels: int
    size: tuple[int, int, int]
    kernel: tuple[int, int, int]
    places: tuple[int, int, int]
    stride: tuple[int, int, int]
    padding: tuple[int, int, int]
    dilation: tuple[int, int, int]


def as_numbers(shape: Geometry) -> np.ndarray:
    """The geometry as an array, for parallel kernels: Numba carries no nested tuples into their loops."""
    return np.array([*shape[:4], *(n for each in shape[4:] for n in each)], np.int64)


@inner
def from_numbers(n):
    """The way back from `as_numbers`."""
    return Geometry(
        n[0], n[1], n[2], n[3], (n[4], n[5], n[6]), (n[7], n[8], n[9]), (n[10], n[11], n[12]), (n[13], n[14], n[15]),
        (n[16], n[17], n[18]), (n[19], n[20], n[21]),
    )  # fmt: skip


@inner
def aligned(size, like):
    """An array of `size` numbers, not set, that begins at a cache line."""
    whole = np.empty(size + LINE, like.dtype)
    first = -(whole.ctypes.data // whole.itemsize) % LINE
    return whole[first : first + size]


# --- blocks ---------------------------------------------------------------------------------------------------------


def pitch(channels: int) -> int:
    """Elements from one place to the next in a block: whole cache lines, an odd number, so that no cache set is crowded."""
    lines = -(-channels // LINE)
    return LINE * (lines + (lines >= 8 and lines % 2 == 0))


def row_length(size: int, stride: int) -> int:
    """Places of a row in a block: every residue of the stride has as many."""
    return -(-size // stride) * stride


def places_of(size: tuple, stride: int) -> np.ndarray:
    """Where each pixel of an image lies in a block whose rows are in order of residue modulo the stride."""
    length, column = row_length(size[2], stride), np.arange(size[2])
    row = np.arange(size[0] * size[1])[:, None] * length
    return (row + column % stride * (length // stride) + column // stride).reshape(-1)


@inner
def room_of(shape):
    """Places of one image of the block that `places_of` describes."""
    stride = shape.stride[2]
    return shape.size[0] * shape.size[1] * ((shape.size[2] + stride - 1) // stride * stride)


@inner
def into_block(image, first, plane, images, channels, apart, places, block, step):
    """Copy channels, `apart` from one another, of images, `plane` apart, from image[first] on, into a block [places, images, step].

    places: where each pixel goes. One read and one write of each element. Plain form: `transpose`.
    """
    size, side = places.size, 64 // image.itemsize
    whole, full = size // side * side, channels // side * side
    seen, put = np.empty(side, np.int64), np.empty(side, np.int64)
    for n in range(images):
        start = first + n * plane
        for s in range(0, whole, side):
            for c in range(0, full, side):
                for j in range(side):
                    seen[j] = start + (c + j) * apart + s
                    put[j] = (places[s + j] * images + n) * step + c
                turn(image, seen, block, put)
        for s in range(size):
            at = (places[s] * images + n) * step
            for c in range(full if s < whole else 0, channels):
                block[at + c] = image[start + c * apart + s]


@inner
def out_of_block(block, step, places, images, channels, image, first, plane, apart):
    """The way back from a block to channels, `apart` from one another, of images, `plane` apart, from image[first] on."""
    size, side = places.size, 64 // image.itemsize
    whole, full = size // side * side, channels // side * side
    seen, put = np.empty(side, np.int64), np.empty(side, np.int64)
    for n in range(images):
        start = first + n * plane
        for s in range(0, whole, side):
            for c in range(0, full, side):
                for j in range(side):
                    put[j] = start + (c + j) * apart + s
                    seen[j] = (places[s + j] * images + n) * step + c
                turn(block, seen, image, put)
        for s in range(size):
            at = (places[s] * images + n) * step
            for c in range(full if s < whole else 0, channels):
                image[start + c * apart + s] = block[at + c]


# --- the walk -------------------------------------------------------------------------------------------------------


@inner
def span(tap, size, places, stride, padding, dilation):
    """For one tap along one dimension: the first and last + 1 place whose window has it inside the image, and its shift."""
    shift = tap * dilation - padding
    first = max(0, (stride - 1 - shift) // stride)
    last = min(places, (size - 1 - shift) // stride + 1)
    return first, last, shift


@inner
def multiply(rows, columns, depth, a, lda, turned, b, ldb, c, ldc, add=True):
    """C += A B, or C = A B, in parts that BLAS takes for small: of rows, or of depth where A lies in memory as [depth, rows]."""
    parts = rows * columns * depth // VOLUME + 1
    for part in range(parts):
        if turned:
            start, stop = part * depth // parts, (part + 1) * depth // parts
            gemm(rows, columns, stop - start, a[start * lda:], lda, True, b[start * ldb:], ldb, False, c, ldc, add or part > 0)
        else:
            start, stop = part * rows // parts, (part + 1) * rows // parts
            gemm(stop - start, columns, depth, a[start * lda:], lda, False, b, ldb, False, c[start * ldc:], ldc, add)


@inner
def walk(what, shape, images, x, x_step, y, y_step, weights, first, last):
    """Add the product of every tap to y (FORWARD), x (INPUT) or the weights (WEIGHT); blocks x and y of one group.

    weights: panels of [taps, channels, out_channels], for INPUT of [taps, out_channels, channels] (see `pack`). Of the last
    index those from first to last are computed; the block that they are in begins with them.
    2 * images * places * taps * channels * out_channels FLOPs. Plain form: `kernels.convolution`.
    """
    inner, outer = shape.channels, shape.out_channels
    if what == INPUT:
        inner, outer = outer, inner
    for tap in range(shape.kernel[0] * shape.kernel[1] * shape.kernel[2]):
        for i in range(0, inner, PANEL_ROWS):
            depth = min(PANEL_ROWS, inner - i)
            for o in range(first, last, PANEL_COLUMNS):
                columns = min(PANEL_COLUMNS, outer - o)
                panel = weights[(tap * inner + i) * outer + o * depth:]
                in_x, in_y = (o - first, i) if what == INPUT else (i, o - first)
                _tap(what, shape, tap, images, x[in_x:], x_step, y[in_y:], y_step, panel, depth, columns)


@inner
def _tap(what, shape, tap, images, x, x_step, y, y_step, panel, depth, columns):
    """One panel of one tap: a product for each row of the result."""
    kh, kw = shape.kernel[1], shape.kernel[2]
    d0, d1, d_shift = span(tap // (kh * kw), shape.size[0], shape.places[0], shape.stride[0], shape.padding[0], shape.dilation[0])
    h0, h1, h_shift = span(tap // kw % kh, shape.size[1], shape.places[1], shape.stride[1], shape.padding[1], shape.dilation[1])
    w0, w1, w_shift = span(tap % kw, shape.size[2], shape.places[2], shape.stride[2], shape.padding[2], shape.dilation[2])
    stride = shape.stride[2]
    each = (shape.size[2] + stride - 1) // stride
    seen = w_shift % stride * each + w0 + w_shift // stride
    rows = (w1 - w0) * images
    if rows <= 0:
        return
    for d in range(d0, d1):
        for h in range(h0, h1):
            row = (d * shape.stride[0] + d_shift) * shape.size[1] + h * shape.stride[1] + h_shift
            at_x = x[(row * each * stride + seen) * images * x_step:]
            at_y = y[((d * shape.places[1] + h) * shape.places[2] + w0) * images * y_step:]
            if what == FORWARD:
                multiply(rows, columns, depth, at_x, x_step, False, panel, columns, at_y, y_step)
            elif what == INPUT:
                multiply(rows, columns, depth, at_y, y_step, False, panel, columns, at_x, x_step)
            else:
                multiply(depth, columns, rows, at_x, x_step, True, at_y, y_step, panel, columns)
