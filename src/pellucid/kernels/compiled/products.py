"""Products of matrices on all threads: each thread makes blocks of the result, or products of a batch.

Small blocks are made of tiles (`tiles.py`), large ones by BLAS, which packs both operands: that pays there. BLAS's own
threads are not used: they wait for one another spinning, so that one busy core stalls a product for whole time slices of the
scheduler (thousands of times its length), and a product of 25 microseconds pays for waking them.

Operands are taken as they lie in memory: transposed in their last two dimensions, with gaps between rows (a slice of a
packed projection), with any strides of the leading dimensions. Only what BLAS cannot read is copied.
"""

from __future__ import annotations

import functools
import math

import numpy as np

from . import get_threads, inner, matrix_unit, serial
from .addresses import data_at
from .blas import address, at, gemm_at, gemv_at, width_of
from .sharing import share
from .tiles import multiply, steps_of

__all__ = ["as_stored", "leading_steps", "product", "start_of"]

MOST_DIMENSIONS = 3  # of batches, once neighbours that can be counted as one are
LEAST_BLOCK = 1 << 18  # multiplications in a block that is worth a thread
TILED = 1 << 29  # multiplications of a block up to which tiles are faster than BLAS
TILED_TURNED = 1 << 26  # the same where A lies transposed
FINE = 1 << 25  # multiplications from which on each thread gets two blocks: if one thread is held up, the other takes over
LEAST_OF_UNIT = 1 << 21  # multiplications of a block from which on the matrix unit is faster than tiles; it packs both operands
ROWS_OF_UNIT, COLUMNS_OF_UNIT = 48, 96  # the least of them
ROWS_OF_UNIT_TURNED = 96  # the same where B lies transposed: packing it takes twice as long, and has to pay for more rows
LEAST_SIDE = 16  # rows or columns of a block: thinner ones waste what is packed
LEAST_DEPTH = 512  # a sum is split from twice this length on, where the result is small: each thread reads its rows of both operands


def product(a: np.ndarray, b: np.ndarray, addend: np.ndarray | None = None, alpha: float = 1.0) -> np.ndarray | None:
    """alpha * (a [*, m, k] @ b [*, k, n]) + addend, batches and addend broadcast. Plain form: `numpy.matmul`.

    None where the batches have strides too mixed to be counted.
    """
    kind, threads = a.dtype.type, get_threads()
    layout = (None, None) if addend is None else (addend.shape, addend.strides)
    unit = kind is np.float32 and matrix_unit.is_used()
    plan = _plan(a.shape, a.strides, b.shape, b.strides, *layout, a.itemsize, threads, unit)
    if plan is None:
        return None
    shape, unreadable, numbers = plan
    if unreadable:
        return product(*(_readable(each) for each in (a, b)), addend, alpha)
    c = np.empty(shape, a.dtype)
    first, factor = id(c), FACTORS[kind][0] if alpha == 1 else kind(alpha)
    _products(id(a), id(b), first, first if addend is None else id(addend), factor, numbers, threads)
    return c


FACTORS = {kind: (kind(1), kind(0)) for kind in (np.float32, np.float64)}


def _readable(matrix: np.ndarray) -> np.ndarray:
    """The array, or a copy that kernels can read."""
    gaps = 1 in matrix.shape[-2:] and not matrix.flags.c_contiguous  # a vector, perhaps
    return np.ascontiguousarray(matrix) if gaps or _stored(matrix.shape, matrix.strides, matrix.itemsize) is None else matrix


@functools.lru_cache(4096)
def _plan(a_shape, a_strides, b_shape, b_strides, d_shape, d_strides, width, threads, unit) -> tuple | None:
    """What `product` does for arrays of these layouts: every step of a training asks for the same ones.

    Returns the shape of the result, whether an operand is to be copied first, and the numbers that `_products` takes as one array
    (see `_numbers`). None where batches cannot be counted.
    """
    (m, k), n = a_shape[-2:], b_shape[-1]
    stored = _stored(a_shape, a_strides, width), _stored(b_shape, b_strides, width)
    if None in stored:
        return None, True, None
    (lda, a_turned), (ldb, b_turned) = stored
    if k > 1 and ((n == 1 and ldb > 1 and not b_turned) or (m == 1 and a_turned and lda > 1)):  # a vector with gaps
        return None, True, None
    lead, count, sizes, steps, added = (), 1, (1, 1), (0,) * 6, (0,) * 6
    if len(a_shape) > 2 or len(b_shape) > 2:
        lead = np.broadcast_shapes(a_shape[:-2], b_shape[:-2])
        batches = [(a_shape, a_strides, width), (b_shape, b_strides, width)]
        if d_shape is not None and len(d_shape) > 2:
            batches.append((d_shape, d_strides, width))
        walk = _count_batches(lead, batches)
        if walk is None:
            return None
        (count, *sizes), steps = walk
    if d_shape is not None:
        inner_steps = [s // width if n > 1 else 0 for n, s in zip(d_shape[-2:], d_strides[-2:], strict=True)]
        added = (1, *(0, 0, *inner_steps)[-2:], *(steps[6:] or (0, 0, 0)))
    blocks = _blocks(count, m, n, k, threads, a_turned, b_turned, unit)
    numbers = np.array([m, n, k, lda, a_turned, ldb, b_turned, count, *sizes, *steps[:6], *added, *blocks], np.int64)
    return (*lead, m, n), False, numbers


STARTS = [(slice(0, 1), *(0,) * (rank - 1))[::-1] for rank in range(65)]


def start_of(array: np.ndarray) -> np.ndarray:
    """The first element, as an array of one kind whatever the strides: kernels take its address."""
    return array[STARTS[array.ndim]] if array.ndim else array.reshape(1)


def as_stored(matrix: np.ndarray) -> tuple[np.ndarray, int, int]:
    """The matrices in the last two dimensions as BLAS reads them, and the leading dimension of their rows.

    Returns the array itself (a copy, if neither order of its last two dimensions is without gaps inside), the elements from
    one row in memory to the next, and whether rows in memory are columns of the matrix (1 or 0).
    """
    if not matrix.flags.writeable:  # another type to Numba: a copy is cheaper than a second compilation
        matrix = matrix.copy()
    found = _stored(matrix.shape, matrix.strides, matrix.itemsize)
    return (np.ascontiguousarray(matrix), matrix.shape[-1], 0) if found is None else (matrix, *found)


def _stored(shape: tuple, strides: tuple, size: int) -> tuple[int, int] | None:
    """The last two results of `as_stored`, for arrays of a layout; None where a copy is needed."""
    rows, columns = shape[-2:]
    row, column = strides[-2:]
    if (column == size or columns == 1) and (row >= columns * size or rows == 1) and row % size == 0:
        return max(row // size, columns), 0
    if (row == size or rows == 1) and (column >= rows * size or columns == 1) and column % size == 0:
        return max(column // size, rows), 1
    return None


def leading_steps(lead: tuple, *arrays: np.ndarray) -> tuple[tuple, tuple] | None:
    """How to walk over broadcast batches: their number, the two inner sizes, and for each array three steps, in elements.

    Neighbouring dimensions are counted as one where all arrays allow it. None if more than three are left.
    """
    return _count_batches(lead, [(array.shape, array.strides, array.itemsize) for array in arrays])


def _count_batches(lead: tuple, layouts: list) -> tuple[tuple, tuple] | None:
    """`leading_steps` for arrays of some shapes, strides and sizes of a number."""
    sizes, rows = [], []
    strides = [_broadcast_strides(*layout, len(lead)) for layout in layouts]
    for size, *steps in zip(lead, *strides, strict=True):
        if size == 1:
            continue
        if sizes and all(outer == inner * size for outer, inner in zip(rows[-1], steps, strict=True)):
            sizes[-1] *= size
            rows[-1] = steps
        else:
            sizes.append(size)
            rows.append(steps)
    missing = MOST_DIMENSIONS - len(sizes)
    if missing < 0:
        return None
    columns = [(0,) * missing + column for column in (zip(*rows, strict=True) if rows else ((),) * len(layouts))]
    sizes = (1,) * missing + tuple(sizes)
    return (math.prod(sizes), *sizes[1:]), tuple(step for column in columns for step in column)


def _broadcast_strides(shape: tuple, strides: tuple, width: int, rank: int) -> list[int]:
    """Steps in elements of the leading dimensions, 0 where they are broadcast."""
    own = len(shape) - 2
    steps = [s // width if n > 1 else 0 for n, s in zip(shape[:own], strides, strict=False)]
    return [0] * (rank - own) + steps


@functools.lru_cache(4096)
def _blocks(count: int, m: int, n: int, k: int, threads: int, a_turned: int, b_turned: int, unit: bool) -> tuple[int, int, int, int]:
    """Into how many rows, columns and parts of the sum each of `count` products is split, and whether the matrix unit makes them.

    a_turned, b_turned: whether A or B lies transposed; unit: whether there is a matrix unit for these numbers.
    Parts of the sum do not depend on the number of threads: results do not either, but for the order BLAS adds in.
    """
    if unit:
        blocks = _split(count, m, n, k, threads, False)
        sizes = m // blocks[0], n // blocks[1], k // blocks[2]
        rows = ROWS_OF_UNIT_TURNED if b_turned else ROWS_OF_UNIT
        if math.prod(sizes) >= LEAST_OF_UNIT and sizes[0] >= rows and sizes[1] >= COLUMNS_OF_UNIT:
            return *blocks, 1
    return *_split(count, m, n, k, threads, not a_turned), 0


def _split(count: int, m: int, n: int, k: int, threads: int, fine: bool) -> tuple[int, int, int]:
    """`_blocks` but for the unit; fine: whether each thread gets two blocks of a large product."""
    work = m * n * k
    if count == 1 and k >= 2 * LEAST_DEPTH and k >= 8 * max(m, n):
        return 1, 1, max(1, min(k // LEAST_DEPTH, work // LEAST_BLOCK, 16))
    if threads == 1 or count >= 4 * threads:
        return 1, 1, 1
    wanted = threads if count == 1 or count % threads else max(1, threads // count)
    if fine and count == 1 and work >= FINE:
        wanted *= 2
    wanted = max(1, min(wanted, work // LEAST_BLOCK))
    best = (1, 1, 1)
    for rows in range(1, wanted + 1):
        columns = wanted // rows
        fits = (rows == 1 or m >= rows * LEAST_SIDE) and (columns == 1 or n >= columns * LEAST_SIDE)
        if fits and (rows * columns, -(m / rows + n / columns)) > (best[0] * best[1], -(m / best[0] + n / best[1])):
            best = rows, columns, 1
    return best


@serial
def _products(a, b, c, d, alpha, numbers, threads):
    """2 m n k FLOPs for each product; a block reads its rows of A and columns of B, and writes its part of C once.

    a, b, c, d: operands, result, addend, by the addresses of their Python objects. numbers: see `_numbers`. A sum is split into
    parts that are added in order: no race decides a digit.
    """
    row_blocks, column_blocks, parts = numbers[22], numbers[23], numbers[24]
    tasks = numbers[7] * row_blocks * column_blocks * parts
    starts, factors = (data_at(a), data_at(b), data_at(c), data_at(d)), (alpha, type(alpha)(1), type(alpha)(0))
    buffer = np.empty((parts - 1) * numbers[0] * numbers[1], type(alpha))
    share(tasks, threads if tasks > 1 else 1, _block, (starts, width_of(alpha), buffer, factors, numbers))
    _add_parts(starts[2], numbers[0] * numbers[1], buffer)


@inner
def _numbers(n):
    """What `_plan` found out, from its array.

    Rows, columns and depth of a product, with the steps of A's and B's rows in elements, and whether they lie transposed; the
    number of products, and the sizes of the two inner dimensions that count them; steps of A, then of B, for each; whether there
    is an addend, its steps from row to row, from column to column, and for the batch; what `_blocks` says.
    """
    return (
        (n[0], n[1], n[2], n[3], n[4], n[5], n[6]), (n[7], n[8], n[9]), (n[10], n[11], n[12], n[13], n[14], n[15]),
        (n[16], n[17], n[18], n[19], n[20], n[21]), (n[22], n[23], n[24], n[25]),
    )  # fmt: skip


@inner
def _block(task, starts, width, buffer, factors, numbers):
    """One block of one product, or of one part of its sum."""
    sizes, batch, steps, added, blocks = _numbers(numbers)
    (alpha, one, zero), (m, n, k, lda, a_turned, ldb, b_turned) = factors, sizes
    number, part, row, column = _place(task, blocks)
    rows = row * m // blocks[0], (row + 1) * m // blocks[0]
    columns = column * n // blocks[1], (column + 1) * n // blocks[1]
    depth = part * k // blocks[2], (part + 1) * k // blocks[2]
    z, y, x = number // (batch[1] * batch[2]), number // batch[2] % batch[1], number % batch[2]
    first_a = z * steps[0] + y * steps[1] + x * steps[2]
    first_a += depth[0] * lda + rows[0] if a_turned else rows[0] * lda + depth[0]
    first_b = z * steps[3] + y * steps[4] + x * steps[5]
    first_b += columns[0] * ldb + depth[0] if b_turned else depth[0] * ldb + columns[0]
    a, b = starts[0] + first_a * width, starts[1] + first_b * width
    corner = rows[0] * n + columns[0]
    c = starts[2] + (number * m * n + corner) * width if part == 0 else address(buffer) + ((part - 1) * m * n + corner) * width
    height, breadth, length = rows[1] - rows[0], columns[1] - columns[0], depth[1] - depth[0]
    vector, tiled = m == 1 or n == 1, blocks[3] or height * breadth * length <= (TILED_TURNED if a_turned else TILED)
    beta, start, start_row = zero, np.int64(0), n * width
    if part == 0 and added[0]:
        start = starts[3] + (z * added[3] + y * added[4] + x * added[5] + rows[0] * added[1] + columns[0] * added[2]) * width
        start_row = added[1] * width
        beta = one
    elif vector:
        at(c, height * breadth, alpha)[:] = 0
    if beta and (vector or not tiled or added[2] != 1):
        _fill(c, n, start, added[1], added[2], height, breadth, alpha, width)
        start, start_row = c, n * width
    if n == 1:
        gemv_at(height, length, alpha, a, lda, a_turned, b, one, c)
    elif m == 1:
        gemv_at(breadth, length, alpha, b, ldb, 1 - b_turned, a, one, c)
    elif tiled:
        of_a, of_b = steps_of(lda, a_turned, width), steps_of(ldb, b_turned, width)
        shape = height, breadth, length
        if blocks[3]:
            matrix_unit.multiply(shape, a, of_a[0], of_a[1], b, of_b[0], of_b[1], start, start_row, c, n * width, alpha)
        else:
            multiply(shape, a, of_a[0], of_a[1], b, of_b[0], of_b[1], start, start_row, c, n * width, alpha)
    else:
        gemm_at(height, breadth, length, alpha, a, lda, a_turned, b, ldb, b_turned, beta, c, n)


@inner
def _add_parts(first, count, parts):
    """Add further parts of a sum to the first, which lies at an address."""
    for part in range(0, len(parts), count):
        whole = at(first, count, parts[0])
        for i in range(count):
            whole[i] += parts[part + i]


@inner
def _place(task, blocks):
    """Which product of the batch a task belongs to, which part of its sum, which rows and columns."""
    number, block = divmod(task, blocks[0] * blocks[1] * blocks[2])
    block, part = divmod(block, blocks[2])
    row, column = divmod(block, blocks[1])
    return number, part, row, column


@inner
def _fill(c, ldc, d, row_step, column_step, height, breadth, like, width):
    """Copy the addend to where the products will be added."""
    for i in range(height):
        to = at(c + i * ldc * width, breadth, like)
        source = at(d + i * row_step * width, max(1, (breadth - 1) * column_step + 1), like)
        for j in range(breadth):
            to[j] = source[j * column_step]
