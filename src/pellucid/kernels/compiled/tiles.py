"""Products of matrices in registers: what BLAS does inside, without its call, its threads and its packing of what needs none.

A *tile* is some rows of the result by two registers of columns. Its sums stay in registers while it walks down the depth, one
factor of A for all lanes against two registers of B. B is packed into *panels*, [depth, columns], that lie in memory as
tiles read them, one at a time; A is read where it lies, by rows or by columns.

Matrices are given by address, with the bytes from row to row and from column to column.
"""

from __future__ import annotations

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from . import inner
from .blas import address, at, hold, width_of
from .transposition import turn_at

__all__ = ["REGISTER", "ROWS", "copy_lines", "multiply", "multiply_panel", "spread", "steps_of"]


def _register_bytes() -> int:
    """The width of the processor's vector registers."""
    features = llvmlite.binding.get_host_cpu_features()
    return 64 if features.get("avx512f") else 32 if features.get("avx2") else 16


REGISTER = _register_bytes()
ROWS = 14 if REGISTER == 64 else 6  # twice as many sums, two registers of B and a factor: of 32 registers, or of 16
DEPTH = 512  # of a panel, which the first-level cache holds in part and the second-level cache whole
BLOCK = 1 << 20  # bytes of A that stay in the second-level cache while panels come and go
FEW_ROWS, FEW_COLUMNS = 8, 15  # up to which sums along the depth are faster than tiles, where both operands lie so
IN_PLACE = 64  # rows of A up to which B, if its rows are contiguous, is read where it lies: packing would not pay
PANELS = 4  # of B, for which it pays to pack an A that lies transposed
NEAR = 1024  # bytes from row to row of B up to which it is as good as packed
LINE = 64  # bytes of a line of cache
SQUARE = 64  # bytes of a side that `turn_at` transposes


def spread(builder, vector, value):
    """A number in all lanes of a register; while LLVM's code is made."""
    nothing = ir.Constant(vector, ir.Undefined)
    one = builder.insert_element(nothing, value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, nothing, ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count))


def _tile_of(count: int):
    """A function `tile(a, row_step, step, panel, panel_step, depth, start, start_step, out, out_step, alpha)` for `count` rows.

    out[rows, columns] = start[rows, columns] + alpha a[rows, depth] @ panel[depth, columns] for as many columns as two registers
    hold, all by address, for kernels. row_step, step: bytes from row to row and from column to column of A; the other steps: from
    row to row. start: 0 for none. alpha: a number of the dtype.
    """

    def generate(context, builder, signature, arguments):
        kind, i64 = arguments[-1].type, ir.IntType(64)
        width = signature.args[-1].bitwidth // 8
        vector = ir.VectorType(kind, REGISTER // width)
        name = f"llvm.fma.v{vector.count}f{8 * width}"
        fma = cgutils.get_or_insert_function(builder.module, ir.FunctionType(vector, [vector] * 3), name)
        a, row_step, step, panel, panel_step, depth, start, start_step, out, out_step, alpha = arguments
        places = [(r, v) for r in range(count) for v in range(2)]
        sums = {place: cgutils.alloca_once(builder, vector) for place in places}

        def number(value):
            return ir.Constant(i64, value)

        def place(first, step, r, v, to):
            found = builder.add(first, builder.mul(step, number(r)))
            return builder.inttoptr(builder.add(found, number(v * REGISTER)), to.as_pointer())

        for total in sums.values():
            builder.store(ir.Constant(vector, [0.0] * vector.count), total)
        with cgutils.for_range(builder, depth) as loop:
            line = builder.add(panel, builder.mul(loop.index, panel_step))
            column = builder.add(a, builder.mul(loop.index, step))
            factors = [builder.load(place(line, number(0), 0, v, vector), align=width) for v in range(2)]
            for r in range(count):
                all_lanes = spread(builder, vector, builder.load(place(column, row_step, r, 0, kind)))
                for v in range(2):
                    builder.store(builder.call(fma, [all_lanes, factors[v], builder.load(sums[r, v])]), sums[r, v])
        factor = spread(builder, vector, alpha)
        with builder.if_else(builder.icmp_signed("==", start, number(0))) as (fresh, begun):
            with fresh:
                for r, v in places:
                    made = builder.fmul(factor, builder.load(sums[r, v]))
                    builder.store(made, place(out, out_step, r, v, vector), align=width)
            with begun:
                for r, v in places:
                    before = builder.load(place(start, start_step, r, v, vector), align=width)
                    made = builder.call(fma, [factor, builder.load(sums[r, v]), before])
                    builder.store(made, place(out, out_step, r, v, vector), align=width)
        return context.get_dummy_value()

    @intrinsic
    def tile(typing, a, row_step, step, panel, panel_step, depth, start, start_step, out, out_step, alpha):
        return types.void(*[types.int64] * 10, alpha), generate

    return tile


_tile, _tile_8, _tile_6, _tile_4, _tile_2, _tile_1 = (_tile_of(rows) for rows in (ROWS, 8, 6, 4, 2, 1))


def _dots_of(rows: int, columns: int):
    """A function `dots(a, a_row, b, b_column, depth, start, start_row, out, out_row, alpha)` for some rows and columns.

    out[i, j] = start[i, j] + alpha * sum over k of a[i, k] b[k, j], for rows of A and columns of B whose numbers lie side by side;
    by address, steps in bytes, start 0 for none. Each sum is a register along the depth until it ends.
    """
    places = [(i, j) for i in range(rows) for j in range(columns)]

    def generate(context, builder, signature, arguments):
        kind, i64 = arguments[-1].type, ir.IntType(64)
        width = signature.args[-1].bitwidth // 8
        vector = ir.VectorType(kind, REGISTER // width)
        function = ir.FunctionType(vector, [vector] * 3)
        fma = cgutils.get_or_insert_function(builder.module, function, f"llvm.fma.v{vector.count}f{8 * width}")
        added = cgutils.get_or_insert_function(
            builder.module, ir.FunctionType(kind, [kind, vector]), f"llvm.vector.reduce.fadd.v{vector.count}f{8 * width}"
        )
        a, a_row, b, b_column, depth, start, start_row, out, out_row, alpha = arguments

        def number(value):
            return ir.Constant(i64, value)

        def place(first, step, count, offset, to):
            found = builder.add(builder.add(first, builder.mul(step, number(count))), offset)
            return builder.inttoptr(found, to.as_pointer())

        def loaded(offset, to):
            of_a = [builder.load(place(a, a_row, i, offset, to), align=width) for i in range(rows)]
            return of_a, [builder.load(place(b, b_column, j, offset, to), align=width) for j in range(columns)]

        sums = {each: cgutils.alloca_once_value(builder, ir.Constant(vector, [0.0] * vector.count)) for each in places}
        whole = builder.sdiv(depth, number(vector.count))
        with cgutils.for_range(builder, whole) as loop:
            of_a, of_b = loaded(builder.mul(loop.index, number(REGISTER)), vector)
            for i, j in places:
                builder.store(builder.call(fma, [of_a[i], of_b[j], builder.load(sums[i, j])]), sums[i, j])
        totals = {}
        for each in places:
            total = builder.call(added, [ir.Constant(kind, -0.0), builder.load(sums[each])], fastmath=("reassoc",))
            totals[each] = cgutils.alloca_once_value(builder, total)
        done = builder.mul(whole, number(vector.count))
        with cgutils.for_range(builder, builder.sub(depth, done)) as loop:
            of_a, of_b = loaded(builder.mul(builder.add(done, loop.index), number(width)), kind)
            for i, j in places:
                product = builder.fmul(of_a[i], of_b[j])
                builder.store(builder.fadd(builder.load(totals[i, j]), product), totals[i, j])
        fresh = builder.icmp_signed("==", start, number(0))
        for i, j in places:
            made, column = builder.fmul(alpha, builder.load(totals[i, j])), number(j * width)
            with builder.if_else(fresh) as (alone, begun):
                with alone:
                    builder.store(made, place(out, out_row, i, column, kind), align=width)
                with begun:
                    before = builder.load(place(start, start_row, i, column, kind), align=width)
                    builder.store(builder.fadd(before, made), place(out, out_row, i, column, kind), align=width)
        return context.get_dummy_value()

    @intrinsic
    def dots(typing, a, a_row, b, b_column, depth, start, start_row, out, out_row, alpha):
        return types.void(*[types.int64] * 9, alpha), generate

    return dots


(_dots_44, _dots_42, _dots_41), (_dots_24, _dots_22, _dots_21), (_dots_14, _dots_12, _dots_11) = (
    [_dots_of(rows, columns) for columns in (4, 2, 1)] for rows in (4, 2, 1)
)


@inner
def multiply_dots(sizes, a, a_row, b, b_column, start, start_row, out, out_row, alpha):
    """`multiply` for rows of A and columns of B whose numbers lie side by side. Reads B once for every four rows of A."""
    rows, columns, depth = sizes
    width = width_of(alpha)
    n = 0
    while n < columns:
        breadth, m = _some(columns - n), 0
        while m < rows:
            height = _some(rows - m)
            begin = start + m * start_row + n * width if start else start
            given = a + m * a_row, a_row, b + n * b_column, b_column, depth, begin, start_row, out + m * out_row + n * width, out_row, alpha
            if height == 4:
                _four_rows(breadth, given)
            elif height == 2:
                _two_rows(breadth, given)
            else:
                _one_row(breadth, given)
            m += height
        n += breadth


@inner
def _some(left):
    """Rows or columns of the next sums."""
    return 4 if left >= 4 else 2 if left >= 2 else 1


@inner
def _four_rows(columns, given):
    if columns == 4:
        _dots_44(*given)
    elif columns == 2:
        _dots_42(*given)
    else:
        _dots_41(*given)


@inner
def _two_rows(columns, given):
    if columns == 4:
        _dots_24(*given)
    elif columns == 2:
        _dots_22(*given)
    else:
        _dots_21(*given)


@inner
def _one_row(columns, given):
    if columns == 4:
        _dots_14(*given)
    elif columns == 2:
        _dots_12(*given)
    else:
        _dots_11(*given)


@inner
def steps_of(lead, turned, width):
    """The bytes from row to row and from column to column of a matrix as it is stored."""
    return (width, np.int64(lead * width)) if turned else (np.int64(lead * width), width)


@inner
def multiply(sizes, a, a_row, a_column, b, b_row, b_column, start, start_row, out, out_row, alpha):
    """out = start + alpha A B, for sizes (rows, columns, depth); start 0 for none; its columns and those of out are contiguous.

    2 * rows * columns * depth FLOPs. Reads B once for each BLOCK of A, and A, from the cache, once for each panel; writes out
    once for each DEPTH. Where few rows meet columns that lie in memory as rows, or the other way round, nothing is packed.
    alpha: a number of the dtype. Plain form: `numpy.matmul`.
    """
    rows, columns, depth = sizes
    width = width_of(alpha)
    if a_column == width == b_row and (rows <= FEW_ROWS or columns <= FEW_COLUMNS):
        multiply_dots(sizes, a, a_row, b, b_column, start, start_row, out, out_row, alpha)
        return
    lanes = 2 * REGISTER // width
    parts = (depth + DEPTH - 1) // DEPTH
    stretch = (depth + parts - 1) // parts
    height = max(ROWS, min(BLOCK // (stretch * width), rows + ROWS - 1) // ROWS * ROWS)
    packs = a_column != width and columns >= PANELS * lanes
    room = np.empty(LINE // width + (stretch + ROWS) * lanes + (stretch * height if packs else 0), type(alpha))
    panel = (address(room) + LINE - 1) // LINE * LINE  # a register that begins inside a line of cache would be read from two
    edge = panel + stretch * lanes * width
    packed = edge + ROWS * lanes * width
    for k in range(0, depth, stretch):
        length = min(stretch, depth - k)
        for m in range(0, rows, height):
            number = min(height, rows - m)
            factor, down, along, pitch = a + k * a_column + m * a_row, a_row, a_column, ROWS * a_row
            if packs:
                _pack_rows(packed, factor, a_column, number, length, alpha)
                factor, down, along, pitch = packed, width, ROWS * width, length * ROWS * width
            for n in range(0, columns, lanes):
                count = min(lanes, columns - n)
                strip, step = b + k * b_row + n * b_column, np.int64(b_row)
                scattered = number > IN_PLACE and b_row > NEAR
                if scattered or count < lanes or b_column != width:
                    _pack(panel, strip, b_row, b_column, length, count, alpha)
                    strip, step = panel, np.int64(2 * REGISTER)
                to = out + m * out_row + n * width
                first, first_row = (to, out_row) if k else (start + m * start_row + n * width if start else start, start_row)
                given = factor, down, along, pitch
                multiply_panel(number, count, given, strip, step, length, first, first_row, to, out_row, edge, alpha)
    hold(room)


@inner
def _pack_rows(packed, source, step, rows, depth, like):
    """Rows of A, whose columns lie in memory as rows, as tiles [rows / ROWS, depth, ROWS]."""
    width = width_of(like)
    for k in range(depth):
        for r in range(0, rows, ROWS):
            count = min(ROWS, rows - r)
            line = at(source + k * step + r * width, count, like)
            to = at(packed + (r * depth + k * ROWS) * width, ROWS, like)
            if count == ROWS:
                for i in range(ROWS):
                    to[i] = line[i]
            else:
                for i in range(count):
                    to[i] = line[i]


@inner
def _pack(panel, b, row, column, depth, count, like):
    """Some columns of B as a panel [depth, lanes], filled up with zeros."""
    lanes = 2 * REGISTER // width_of(like)
    to = at(panel, depth * lanes, like)
    if count < lanes:
        to[:] = 0
    if column == width_of(like):
        _copy(to, b, row, depth, count, like)
    else:
        _copy_turned(to, b, column, depth, count, like)


@inner
def _copy(to, source, step, depth, count, like):
    """Columns of B from its rows."""
    lanes = 2 * REGISTER // width_of(like)
    for k in range(depth):
        line = at(source + k * step, count, like)
        if count == lanes:
            for i in range(lanes):
                to[k * lanes + i] = line[i]
        else:
            for i in range(count):
                to[k * lanes + i] = line[i]


@inner
def _copy_turned(to, source, step, depth, count, like):
    """Columns of B lie in memory as rows: squares of them are transposed in registers, what is left a number at a time."""
    width = width_of(like)
    lanes, side, first = 2 * REGISTER // width, SQUARE // width, address(to)
    squares = count // side * side, depth // side * side
    for n in range(0, squares[0], side):
        for k in range(0, squares[1], side):
            turn_at(source + n * step + k * width, step, first + (k * lanes + n) * width, lanes * width, like)
    for n in range(count):
        line = at(source + n * step, depth, like)
        for k in range(squares[1] if n < squares[0] else 0, depth):
            to[k * lanes + n] = line[k]


@inner
def multiply_panel(rows, columns, a, panel, step, depth, start, start_row, out, out_row, edge, alpha):
    """out = start + alpha A times one panel [depth, columns], of at most as many columns as two registers hold; all by address.

    a: A's address, and the bytes from row to row, from column to column, and from one ROWS rows to the next. step: bytes from
    row to row of the panel; edge: room for a tile, used where there are fewer columns.
    """
    first_a, a_row, a_column, pitch = a
    row = 0
    whole = columns == 2 * REGISTER // width_of(alpha)
    while row < rows:
        height = _height(rows - row)
        source, to = first_a + row // ROWS * pitch + row % ROWS * a_row, out + row * out_row
        begin = start + row * start_row if start else start
        if whole:
            _rows(height, source, a_row, a_column, panel, step, depth, begin, start_row, to, out_row, alpha)
        else:
            _edge(height, columns, source, a_row, a_column, panel, depth, begin, start_row, to, out_row, edge, alpha)
        row += height


@inner
def _height(left):
    """Rows of the next tile."""
    return ROWS if left >= ROWS else 8 if left >= 8 else 6 if left >= 6 else 4 if left >= 4 else 2 if left >= 2 else 1


@inner
def _rows(height, a, a_row, a_column, panel, step, depth, start, start_row, out, out_row, alpha):
    """One tile."""
    if height == ROWS:
        _tile(a, a_row, a_column, panel, step, depth, start, start_row, out, out_row, alpha)
    elif height == 8:
        _tile_8(a, a_row, a_column, panel, step, depth, start, start_row, out, out_row, alpha)
    elif height == 6:
        _tile_6(a, a_row, a_column, panel, step, depth, start, start_row, out, out_row, alpha)
    elif height == 4:
        _tile_4(a, a_row, a_column, panel, step, depth, start, start_row, out, out_row, alpha)
    elif height == 2:
        _tile_2(a, a_row, a_column, panel, step, depth, start, start_row, out, out_row, alpha)
    else:
        _tile_1(a, a_row, a_column, panel, step, depth, start, start_row, out, out_row, alpha)


@inner
def _edge(height, columns, a, a_row, a_column, panel, depth, start, start_row, out, out_row, edge, alpha):
    """A tile of fewer columns than two registers hold: made elsewhere, and copied."""
    step = np.int64(2 * REGISTER)
    if start:
        copy_lines(start, start_row, edge, step, height, columns, alpha)
    _rows(height, a, a_row, a_column, panel, step, depth, edge if start else start, step, edge, step, alpha)
    copy_lines(edge, step, out, out_row, height, columns, alpha)


@inner
def copy_lines(source, source_step, target, target_step, rows, columns, like):
    for r in range(rows):
        line, to = at(source + r * source_step, columns, like), at(target + r * target_step, columns, like)
        for i in range(columns):
            to[i] = line[i]
