"""3x3 convolutions of stride 1 by Winograd's F(4x4, 3x3): a quarter of the multiplications, for float32.

Blocks are those of convolution_blocks.py. Each tile of 4x4 results sees 6x6 pixels; their 36 transforms, for all tiles and
images of a block, are 36 matrices [tiles, channels], multiplied with the 36 transforms of the weights. The input gradient is
the convolution with weights turned around, the weight gradient 36 products of transforms of pixels and of gradients.

Errors are a few 1e-6 of the largest result (tests hold them to 1e-5), those of other forms below 1e-6. Infinity and NaN spread
over their tile: where a result is not finite, `convolve` returns None and convolution.py uses another form.
"""

from __future__ import annotations

import math

import numpy as np

from . import get_threads, inner, serial
from .convolution_blocks import (
    PANEL_COLUMNS,
    PANEL_ROWS,
    Geometry,
    aligned,
    as_numbers,
    from_numbers,
    into_block,
    multiply,
    out_of_block,
    pitch,
    places_of,
)
from .sharing import share
from .winograd import gradient_of_kernel, kernel_into, pixels_into, result_into, result_out_of

LANES = 16
POINTS = 36
ROWS = 64  # rows of a product from which on it is fast
LEAST_TILES = 96  # in all images: with fewer, transforming the weights takes longer than it saves
FILLED = 2  # places in tiles for each place of the result, at most
CHUNK = 1 << 12  # weights transformed by one task
TILE = 4  # results along each side of a tile


@inner
def tiles_along(places):
    return (places + TILE - 1) // TILE


@serial
def plane_size(numbers):
    """Numbers from one of the 36 matrices to the next: another cache set each, or 36 streams would share one."""
    return (numbers + LANES - 1) // LANES // 2 * 2 * LANES + LANES


@inner
def find(places, height, width, row, column, side, step, beyond):
    """Where the side x side pixels from (row, column) on begin in a block; `beyond` for those outside of the image."""
    for i in range(side):
        for j in range(side):
            h, w = row + i, column + j
            inside = 0 <= h < height and 0 <= w < width
            places[i * side + j] = (h * width + w) * step if inside else beyond


@inner
def transform_pixels(block, height, width, run, padding, high, wide, made):
    """B^T d B of every tile: a block [height, width, run] and a run of zeros to [36, tiles, run].

    Reads 36 and writes 36 numbers a tile and channel. Plain form: `winograd.matrices`.
    """
    plane = plane_size(high * wide * run)
    seen, put = np.empty(POINTS, np.int64), np.empty(POINTS, np.int64)
    for tile in range(high * wide):
        row, column = tile // wide * TILE - padding[1], tile % wide * TILE - padding[2]
        find(seen, height, width, row, column, 6, run, height * width * run)
        for i in range(POINTS):
            put[i] = i * plane + tile * run
        for shift in range(0, run, LANES):
            pixels_into(block, seen, made, put, shift)


@inner
def transform_gradients(block, height, width, run, high, wide, made):
    """A d A^T of the tiles of a block [height, width, run] with a run of zeros at its end: [36, tiles, run]."""
    seen, put = np.empty(TILE * TILE, np.int64), np.empty(POINTS, np.int64)
    plane = plane_size(high * wide * run)
    for tile in range(high * wide):
        find(seen, height, width, tile // wide * TILE, tile % wide * TILE, TILE, run, height * width * run)
        for i in range(POINTS):
            put[i] = i * plane + tile * run
        for shift in range(0, run, LANES):
            result_into(block, seen, made, put, shift)


@inner
def transform_results(products, high, wide, block, height, width, run):
    """A^T m A: products [36, tiles, run] to a block [height, width, run] with a run to spare at its end."""
    put, seen = np.empty(TILE * TILE, np.int64), np.empty(POINTS, np.int64)
    plane = plane_size(high * wide * run)
    for tile in range(high * wide):
        find(put, height, width, tile // wide * TILE, tile % wide * TILE, TILE, run, height * width * run)
        for i in range(POINTS):
            seen[i] = i * plane + tile * run
        for shift in range(0, run, LANES):
            result_out_of(products, seen, block, put, shift)


# --- weights --------------------------------------------------------------------------------------------------------


@inner
def _transform_weights(task, panels, of_group, tasks_of_group, turned, made):
    """G g G^T of some kernels: panels [groups, 9, C O] to [groups, 36, C O]; turned: kernels are turned around first."""
    group, first = task // tasks_of_group, task % tasks_of_group * CHUNK
    plane = plane_size(of_group)
    seen, put = np.empty(9, np.int64), np.empty(POINTS, np.int64)
    for tap in range(9):
        seen[tap] = (group * 9 + (8 - tap if turned else tap)) * of_group
    for i in range(POINTS):
        put[i] = (group * POINTS + i) * plane
    for shift in range(first, min(first + CHUNK, of_group), LANES):
        kernel_into(panels, seen, made, put, shift)


@inner
def _untransform_weights(total, of_group, group, panels):
    """G^T d G: sums [groups, 36, C O] to panels [groups, 9, C O]."""
    plane = plane_size(of_group)
    seen, put = np.empty(POINTS, np.int64), np.empty(9, np.int64)
    for tap in range(9):
        put[tap] = (group * 9 + tap) * of_group
    for i in range(POINTS):
        seen[i] = (group * POINTS + i) * plane
    for shift in range(0, of_group, LANES):
        gradient_of_kernel(total, seen, panels, put, shift)


# --- products -------------------------------------------------------------------------------------------------------


@inner
def _products(rows, inner, outer, a, lda, weights, c, ldc):
    """C_i = A_i U_i for the 36 matrices: A [rows, inner], U [inner, outer] in panels, C [rows, outer]."""
    for i in range(POINTS):
        at_a, at_w, at_c = i * plane_size(rows * lda), i * plane_size(inner * outer), i * plane_size(rows * ldc)
        for row in range(0, inner, PANEL_ROWS):
            depth = min(PANEL_ROWS, inner - row)
            for column in range(0, outer, PANEL_COLUMNS):
                columns = min(PANEL_COLUMNS, outer - column)
                panel = weights[at_w + row * outer + column * depth:]
                multiply(rows, columns, depth, a[at_a + row:], lda, False, panel, columns, c[at_c + column:], ldc, row > 0)


@inner
def _products_of_gradient(rows, inner, outer, a, lda, b, ldb, total):
    """U_i += A_i^T B_i for the 36 matrices: A [rows, inner], B [rows, outer], U [inner, outer] in panels."""
    for i in range(POINTS):
        at_a, at_b, at_w = i * plane_size(rows * lda), i * plane_size(rows * ldb), i * plane_size(inner * outer)
        for row in range(0, inner, PANEL_ROWS):
            depth = min(PANEL_ROWS, inner - row)
            for column in range(0, outer, PANEL_COLUMNS):
                columns = min(PANEL_COLUMNS, outer - column)
                panel = total[at_w + row * outer + column * depth:]
                multiply(depth, columns, rows, a[at_a + row:], lda, True, b[at_b + column:], ldb, panel, columns)


# --- convolutions ---------------------------------------------------------------------------------------------------


@inner
def _block_of(image, first, images, group, groups, channels, places, step):
    """Images as a block with a run of zeros at its end."""
    block = aligned((places.size + 1) * images * step, image)
    block[:] = 0
    plane = channels * places.size
    into_block(image, (first * groups + group) * plane, groups * plane, images, channels, places.size, places, block, step)
    return block


@serial
def _shared_convolve(
    parts, of_group, turned, panels, tasks, threads, numbers, x, weights, bias, made, images, x_places, y_places, x_step, y_step, check
):
    share(parts * numbers[1], threads, _transform_weights, (panels, of_group, parts, turned, weights))
    share(tasks, threads, _convolve, (numbers, x, weights, bias, made, images, x_places, y_places, x_step, y_step, check))


@inner
def _convolve(task, numbers, x, weights, bias, made, images, x_places, y_places, x_step, y_step, check):
    """The convolution of one task: a block of images of one group."""
    shape = from_numbers(numbers)
    group, first = task % shape.groups, task // shape.groups * images
    images = min(images, shape.images - first)
    height, width = shape.places[1], shape.places[2]
    high, wide = tiles_along(height), tiles_along(width)
    rows = high * wide * images
    block = _block_of(x, first, images, group, shape.groups, shape.channels, x_places, x_step)
    seen = aligned(POINTS * plane_size(rows * x_step), x)
    transform_pixels(block, shape.size[1], shape.size[2], images * x_step, shape.padding, high, wide, seen)
    products = aligned(POINTS * plane_size(rows * y_step), x)
    own = weights[group * POINTS * plane_size(shape.channels * shape.out_channels):]
    _products(rows, shape.channels, shape.out_channels, seen, x_step, own, products, y_step)
    block = aligned((y_places.size + 1) * images * y_step, x)
    transform_results(products, high, wide, block, height, width, images * y_step)
    check[task] = _add_bias(block, y_step, y_places.size * images, bias[group * shape.out_channels : (group + 1) * shape.out_channels])
    plane, size = shape.out_channels * y_places.size, y_places.size
    first = (first * shape.groups + group) * plane
    out_of_block(block, y_step, y_places, images, shape.out_channels, made, first, shape.groups * plane, size)


@inner
def _add_bias(block, step, rows, bias):
    """Add the bias to each row; returns 0, or NaN if anything is not finite."""
    check = bias[0] * 0
    for row in range(rows):
        for c in range(bias.size):
            block[row * step + c] += bias[c]
            check += block[row * step + c] * 0
    return check


@serial
def _shared_gradient(tasks, threads, numbers, grad, x, sums, panels, images, x_places, y_places, x_step, y_step):
    arguments = tasks, threads, numbers, grad, x, sums, panels, images, x_places, y_places, x_step, y_step
    share(threads, threads, _gradient, arguments)


@inner
def _gradient(worker, tasks, workers, numbers, grad, x, sums, panels, images, x_places, y_places, x_step, y_step):
    """The weight gradient of one worker, which adds up the transforms of what its blocks of images give."""
    shape, total = from_numbers(numbers), sums[worker]
    total[:] = 0
    for task in range(worker * tasks // workers, (worker + 1) * tasks // workers):
        _gradient_some(shape, grad, x, total, images, x_places, y_places, x_step, y_step, task)
    for group in range(shape.groups):
        _untransform_weights(total, shape.channels * shape.out_channels, group, panels[worker])


@inner
def _gradient_some(shape, grad, x, total, images, x_places, y_places, x_step, y_step, task):
    """One task of `_gradient`: a block of images of one group."""
    group, first = task % shape.groups, task // shape.groups * images
    images = min(images, shape.images - first)
    height, width = shape.places[1], shape.places[2]
    high, wide = tiles_along(height), tiles_along(width)
    rows = high * wide * images
    block = _block_of(x, first, images, group, shape.groups, shape.channels, x_places, x_step)
    seen = aligned(POINTS * plane_size(rows * x_step), x)
    transform_pixels(block, shape.size[1], shape.size[2], images * x_step, shape.padding, high, wide, seen)
    block = _block_of(grad, first, images, group, shape.groups, shape.out_channels, y_places, y_step)
    given = aligned(POINTS * plane_size(rows * y_step), x)
    transform_gradients(block, height, width, images * y_step, high, wide, given)
    own = total[group * POINTS * plane_size(shape.channels * shape.out_channels):]
    _products_of_gradient(rows, shape.channels, shape.out_channels, seen, x_step, given, y_step, own)


# --- what convolution.py calls --------------------------------------------------------------------------------------


def suits(shape: Geometry) -> bool:
    """Whether the method can make this convolution, and is faster: tiles mostly filled, and enough of them for the weights."""
    tiles = tiles_in(shape)
    return (
        shape.kernel == (1, 3, 3)
        and shape.stride == shape.dilation == (1, 1, 1)
        and shape.size[0] == 1
        and max(shape.padding) <= 2
        and shape.channels % LANES == shape.out_channels % LANES == 0
        and shape.images * tiles >= LEAST_TILES
        and tiles * TILE * TILE <= FILLED * shape.places[1] * shape.places[2]
    )


def tiles_in(shape: Geometry) -> int:
    """Tiles of one image."""
    return -(-shape.places[1] // TILE) * -(-shape.places[2] // TILE)


def _images_in_block(shape: Geometry) -> int:
    """How many images make one block: ROWS tiles, as many blocks as divide well among the threads."""
    threads = get_threads()
    blocks = -(-shape.images // max(1, -(-ROWS // tiles_in(shape))))
    blocks = min(-(-blocks // threads) * threads, shape.images)
    return -(-shape.images // blocks)


def convolve(x, panels, shape: Geometry, bias, turned: bool) -> np.ndarray | None:
    """The convolution, flat, or None if a result is not finite. panels: see `convolution.pack`; turned: use kernels turned around."""
    of_group = shape.channels * shape.out_channels
    weights = np.empty(shape.groups * POINTS * plane_size(of_group), x.dtype)
    made = np.empty(shape.images * shape.groups * shape.out_channels * math.prod(shape.places), x.dtype)
    images = _images_in_block(shape)
    tasks = -(-shape.images // images) * shape.groups
    check = np.zeros(tasks, x.dtype)
    x_places, y_places = places_of(shape.size, 1), places_of(shape.places, 1)
    steps = pitch(shape.channels), pitch(shape.out_channels)
    _shared_convolve(
        -(-of_group // CHUNK), of_group, turned, panels, tasks, get_threads(), as_numbers(shape), x, weights, bias, made, images,
        x_places, y_places, *steps, check,
    )  # fmt: skip
    return None if np.isnan(check).any() else made


def weight_panels(grad, x, shape: Geometry) -> np.ndarray:
    """The weight gradient as panels, a row a worker; their sum is what is wanted."""
    of_group, threads = shape.channels * shape.out_channels, get_threads()
    sums = np.empty((threads, shape.groups * POINTS * plane_size(of_group)), x.dtype)
    panels = np.empty((threads, shape.groups * 9 * of_group), x.dtype)
    images = _images_in_block(shape)
    tasks = -(-shape.images // images) * shape.groups
    x_places, y_places = places_of(shape.size, 1), places_of(shape.places, 1)
    steps = pitch(shape.channels), pitch(shape.out_channels)
    _shared_gradient(tasks, threads, as_numbers(shape), grad, x, sums, panels, images, x_places, y_places, *steps)
    return panels
