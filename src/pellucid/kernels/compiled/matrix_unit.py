"""Products of float32 matrices by the matrix unit of the processor (Intel's AMX), with all digits of float32.

The unit multiplies tiles of bfloat16, numbers of 8 binary digits, and adds in float32, sixteen times as fast as vector
registers do. A float32 number has 24 digits: it is the sum of three bfloat16 numbers, its high, middle and low *part*,
without loss. Of the nine products of parts of two numbers six count; the others are below a unit of the last place. Six
products at sixteen times the speed leave more than twice the speed of float32.

*Panels* are what the unit reads: 32 lines (rows of A or columns of B), all steps of the sum, in tiles of 1 KiB. For each
32 numbers of the sum, a *step*, these are [half of the lines, part, 16 rows of 64 bytes]: a row of a tile of A is a line, its
32 numbers one after the other; a row of a tile of B is two numbers of the sum, beside each other for each of 16 lines.

What no three parts can hold goes to `tiles.py`, panel by panel: infinities, NaN, and numbers so large or small that parts
would overflow or vanish. The unit takes numbers below 2^-126 for zero, its results too, so that results below about 1e-33
have fewer digits.
"""

from __future__ import annotations

import ctypes
import platform
import sys

import llvmlite.binding
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic, overload

from pellucid.kernels.products import matrix_unit as switch

from . import inner, tiles
from .blas import address, at, hold, only_in_kernels, prefetch
from .tiles import spread
from .transposition import turn_at

__all__ = ["PRESENT", "is_used", "multiply"]

PRESENT = bool(llvmlite.binding.get_host_cpu_features().get("amx-bf16")) and sys.platform == "linux"

LINE = 64  # bytes of a line of cache
ROWS = 16  # of a tile
LINES = 2 * ROWS  # of a panel
STEP = 32  # numbers of the sum in a tile
TILE = 1024  # bytes
PARTS = 3
OF_HALF = PARTS * TILE  # bytes of a step of half a panel
OF_STEP = 2 * OF_HALF
DEPTH = 384  # numbers of the sum in a panel, at most
BLOCK = 1 << 20  # bytes of panels of B that stay in the second-level cache while panels of A come and go
LEAST, MOST = 2.0**-100, 2.0**126  # sizes of numbers whose parts neither vanish nor overflow

# Products of parts, in an order in which only one operand changes from each to the next; small ones first.
ORDER = [(0, 2), (0, 1), (1, 1), (1, 0), (0, 0), (2, 0)]

_I8, _I16, _I32, _I64, _F32 = ir.IntType(8), ir.IntType(16), ir.IntType(32), ir.IntType(64), ir.FloatType()
_POINTER, _NUMBERS, _BITS, _HALVES = _I8.as_pointer(), *(ir.VectorType(*each) for each in ((_F32, 16), (_I32, 16), (_I16, 32)))


class _Permission:
    """What the operating system said, once it was asked."""

    given: bool | None = None


def is_used() -> bool:
    """Whether there is a matrix unit, Linux lets this process use it (it is asked once, before the first use), and users do."""
    if _Permission.given is None:
        _Permission.given = PRESENT and _ask()
    return _Permission.given and switch.enabled


def _ask() -> bool:
    """Ask for the registers that hold tiles: `arch_prctl(ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA)`, see Linux's xstate.rst."""
    system_call, request, tile_data = 158, 0x1023, 18
    return platform.machine() == "x86_64" and ctypes.CDLL(None).syscall(system_call, request, tile_data) == 0


# --- instructions --------------------------------------------------------------------------------------------------------


def _call(builder, name: str, *arguments, result=None):
    """Call what LLVM knows by a name."""
    kind = ir.FunctionType(ir.VoidType() if result is None else result, [each.type for each in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), arguments)


def _number(value: int) -> ir.Constant:
    return ir.Constant(_I64, value)


def _place(builder, start, *offsets, kind=_I8):
    """A pointer to so many bytes behind an address; an offset is an int or a value of the program."""
    for offset in offsets:
        start = builder.add(start, _number(offset) if isinstance(offset, int) else offset)
    return builder.inttoptr(start, kind.as_pointer())


def _all(value: int) -> ir.Constant:
    """The same bits in all sixteen lanes."""
    return ir.Constant(_BITS, [value] * 16)


@intrinsic
def _begin(typing):
    """Tell the unit the shapes of its eight tiles: 16 rows of 64 bytes each. Goes before everything else, in each thread."""

    def generate(context, builder, signature, arguments):
        widths, heights = b"".join([(64).to_bytes(2, "little")] * 8), bytes([16] * 8)
        shapes = bytearray(64)
        shapes[0], shapes[16:32], shapes[48:56] = 1, widths, heights
        kept = cgutils.global_constant(builder, "matrix_unit_shapes", cgutils.make_bytearray(shapes))
        _call(builder, "llvm.x86.ldtilecfg", builder.bitcast(kept, _POINTER))
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def _end(typing):
    """Give the tiles back: the system need not keep them when it changes threads."""

    def generate(context, builder, signature, arguments):
        _call(builder, "llvm.x86.tilerelease")
        return context.get_dummy_value()

    return types.void(), generate


@intrinsic
def _multiply_strip(typing, a, b, steps, start, start_step, out, out_step):
    """out[16, 32] = start + half a panel of A times a panel of B; all by address, steps in bytes; start 0 for none; inside kernels only.

    2 * 16 * 32 * 32 FLOPs a step, by 12 instructions and 11 loads of tiles. Five of the unit's eight tiles are in use: what is left of
    their registers serves the processor to load ahead. With all eight, as squares of 32, there would be 7 loads for 12 instructions;
    that is some percent faster where a thread has a core for itself, and a quarter slower where two threads share a core, its unit
    and its registers. The half of A is near, every other line of B's next step is fetched meanwhile: more of them would be in the way.
    """

    def generate(context, builder, signature, arguments):
        a, b, steps, start, start_step, out, out_step = arguments
        sums, of_a, of_b = (0, 1), 2, (3, 4)  # tiles, of sums and of B for each half of B's lines

        def load(tile, place, step=None):
            _call(builder, "llvm.x86.tileloadd64", ir.Constant(_I8, tile), place, _number(LINE) if step is None else step)

        with builder.if_else(builder.icmp_signed("==", start, _number(0))) as (fresh, begun):
            with fresh:
                for tile in sums:
                    _call(builder, "llvm.x86.tilezero", ir.Constant(_I8, tile))
            with begun:
                for tile in sums:
                    load(tile, _place(builder, start, LINE * tile), start_step)
        with cgutils.for_range(builder, steps) as loop:
            at_a, at_b = (builder.add(each, builder.mul(loop.index, _number(OF_STEP))) for each in (a, b))
            ahead = list(range(OF_STEP, 2 * OF_STEP, 2 * LINE))
            each_time, before = len(ahead) // (len(ORDER) * len(sums)), (None, None)
            for part_of_a, part_of_b in ORDER:
                if part_of_a != before[0]:
                    load(of_a, _place(builder, at_a, part_of_a * TILE))
                if part_of_b != before[1]:
                    for half, tile in enumerate(of_b):
                        load(tile, _place(builder, at_b, half * OF_HALF + part_of_b * TILE))
                before = part_of_a, part_of_b
                for tile in sums:
                    _call(builder, "llvm.x86.tdpbf16ps", *(ir.Constant(_I8, each) for each in (tile, of_a, of_b[tile])))
                    for _ in range(each_time):
                        prefetch(builder, _place(builder, at_b, ahead.pop(0)))
        for tile in sums:
            _call(builder, "llvm.x86.tilestored64", ir.Constant(_I8, tile), _place(builder, out, LINE * tile), out_step)
        return context.get_dummy_value()

    return types.void(*[types.int64] * 7), generate


# --- parts of numbers ----------------------------------------------------------------------------------------------------


class _Sizes:
    """The smallest and the largest bits of the numbers seen, without sign, in two vectors; zero is not counted.

    They lie in memory, and in registers from the making of this to `keep`.
    """

    def __init__(self, builder, where):
        self.builder, self.places = builder, [_place(builder, where, 64 * i, kind=_BITS) for i in range(2)]
        self.held = [cgutils.alloca_once_value(builder, builder.load(place, align=64)) for place in self.places]

    def see(self, bits) -> None:
        """Count the numbers of one register."""
        builder, (least, most) = self.builder, self.held
        size = builder.shl(bits, _all(1))
        smaller = builder.sub(size, _all(1))  # zero becomes the largest of all
        builder.store(_call(builder, "llvm.umin.v16i32", builder.load(least), smaller, result=_BITS), least)
        builder.store(_call(builder, "llvm.umax.v16i32", builder.load(most), size, result=_BITS), most)

    def keep(self) -> None:
        """Write down what was seen."""
        for held, place in zip(self.held, self.places, strict=True):
            self.builder.store(self.builder.load(held), place, align=64)


def _bits_of(number: float) -> int:
    """The bits of a float32 without its sign, as `_Sizes` counts them."""
    return int(np.float32(number).view(np.uint32)) << 1


def _parts(builder, numbers, sizes: _Sizes) -> list:
    """The three parts of sixteen numbers, each in the upper half of 32 bits.

    A part is what is left, rounded to 8 digits; what is left after that is exact, and after the second time has 8 digits.
    """
    made = []
    for part in range(PARTS):
        bits = builder.bitcast(numbers, _BITS)
        if part == 0:
            sizes.see(bits)
        if part < PARTS - 1:
            bits = builder.and_(builder.add(bits, _all(0x8000)), _all(0xFFFF0000))
            numbers = builder.fsub(numbers, builder.bitcast(bits, _NUMBERS))
        made.append(bits)
    return made


def _upper_halves(builder, first, second):
    """The upper halves of sixteen times 32 bits, twice, one after the other."""
    first, second = (builder.bitcast(each, _HALVES) for each in (first, second))
    return builder.shuffle_vector(first, second, ir.Constant(ir.VectorType(_I32, 32), list(range(1, 64, 2))))


def _joined_pairs(builder, first, second):
    """The upper halves of sixteen times 32 bits, twice, in pairs."""
    return builder.or_(builder.lshr(first, _all(16)), second)


def _packer(offsets, join):
    """What packs a tile for each part: its 16 rows take two registers each, which lie at `offsets(builder, row, step)`, joined."""

    def generate(context, builder, signature, arguments):
        source, step, target, scale, sizes = arguments
        factor, seen = spread(builder, _NUMBERS, scale), _Sizes(builder, sizes)
        with cgutils.for_range(builder, _number(ROWS)) as loop:
            places = [_place(builder, source, *each, kind=_NUMBERS) for each in offsets(builder, loop.index, step)]
            both = (_parts(builder, builder.fmul(builder.load(place, align=4), factor), seen) for place in places)
            row = builder.mul(loop.index, _number(LINE))
            for part, halves in enumerate(zip(*both, strict=True)):
                made = join(builder, *halves)
                builder.store(made, _place(builder, target, row, part * TILE, kind=made.type), align=LINE)
        seen.keep()
        return context.get_dummy_value()

    return types.void(*[types.int64] * 3, types.float32, types.int64), generate


@intrinsic
def _pack_lines(typing, source, step, target, scale, sizes):
    """16 lines of 32 numbers that lie one after the other, step bytes from line to line, as 16 rows of a tile for each part."""

    def offsets(builder, row, step):
        line = builder.mul(row, step)
        return (line,), (line, LINE)

    return _packer(offsets, _upper_halves)


@intrinsic
def _pack_pairs(typing, source, step, target, scale, sizes):
    """16 lines of 32 numbers that lie step bytes apart, two numbers in each of the 16 rows of a tile for each part."""

    def offsets(builder, row, step):
        first = builder.mul(row, builder.mul(step, _number(2)))
        return (first,), (first, step)

    return _packer(offsets, _joined_pairs)


@inner
def _forget_sizes(sizes):
    """No number has been seen."""
    seen = at(sizes, 32, np.uint32(0))
    seen[:16] = 0xFFFFFFFF
    seen[16:] = 0


_LEAST, _MOST = np.uint32(_bits_of(LEAST)), np.uint32(_bits_of(MOST))


@inner
def _fit(sizes):
    """Whether all numbers that were seen have parts."""
    seen = at(sizes, 32, np.uint32(0))
    return seen[:16].min() >= _LEAST - np.uint32(1) and seen[16:].max() <= _MOST


# --- panels --------------------------------------------------------------------------------------------------------------

# What packing and multiplying need beside panels, in one stretch of memory: a step in order of memory, a tile of each part, a
# strip of the result, and sizes.
_STEP_AT, _TILE_AT, _STRIP_AT, _SIZES_AT, _ROOM = 0, 4096, 4096 + PARTS * TILE, 6144 + PARTS * TILE, 6272 + PARTS * TILE


@inner
def _bytes_of_panel(depth):
    """The memory of a panel."""
    return (depth + STEP - 1) // STEP * OF_STEP


@inner
def _pack(target, source, line, along, lines, depth, in_pairs, scale, room):
    """Lines of depth numbers, times scale, as panels from an address on; returns whether all of them have parts.

    line, along: bytes from line to line and along a line. in_pairs: whether the lines are columns of B. room: the address of _ROOM
    bytes. Reads 4 bytes a number, writes 6. What is missing in the last step, or in the last panel, is zero.
    """
    size = _bytes_of_panel(depth)
    _forget_sizes(room + _SIZES_AT)
    for i in range(0, lines, LINES):
        for k in range(0, depth, STEP):
            to, first = target + i // LINES * size + k // STEP * OF_STEP, source + i * line + k * along
            _pack_step(to, first, line, along, min(LINES, lines - i), min(STEP, depth - k), in_pairs, scale, room)
    return _fit(room + _SIZES_AT)


@inner
def _pack_step(target, source, line, along, lines, number, in_pairs, scale, room):
    """At most 32 lines of at most 32 numbers."""
    if lines < LINES or number < STEP:
        _copy_padded(room + _STEP_AT, source, line, along, lines, number)
        source, line, along = room + _STEP_AT, (4 * STEP if along == 4 else 4), (4 if along == 4 else 4 * LINES)
    for half in range(2):
        _pack_tile(target + half * OF_HALF, source + half * ROWS * line, line, along, in_pairs, scale, room)


@inner
def _pack_tile(target, source, line, along, in_pairs, scale, room):
    """16 lines of 32 numbers as one tile for each part: put together where their order in memory allows it, or else transposed."""
    transposed, row = in_pairs == (along == 4), np.int64(LINE)
    to = room + _TILE_AT if transposed else target
    if along == 4:
        _pack_lines(source, line, to, scale, room + _SIZES_AT)
    else:
        _pack_pairs(source, along, to, scale, room + _SIZES_AT)
    if transposed:
        for part in range(PARTS):
            turn_at(to + part * TILE, row, target + part * TILE, row, scale)


@inner
def _copy_padded(room, source, line, along, lines, depth):
    """A step with less than 32 lines or 32 numbers of the sum, in the order in which it lies, filled up with zeros."""
    one = np.float32(0)
    at(room, LINES * STEP, one)[:] = 0
    if along == 4:
        tiles.copy_lines(source, line, room, 4 * STEP, lines, depth, one)
    else:
        tiles.copy_lines(source, along, room, 4 * LINES, depth, lines, one)


# --- products ------------------------------------------------------------------------------------------------------------


def multiply(sizes, a, a_row, a_column, b, b_row, b_column, start, start_row, out, out_row, alpha):
    """`tiles.multiply` by the matrix unit where the numbers are float32 and there is one; inside kernels only."""
    only_in_kernels()


@overload(multiply)
def _multiply(sizes, a, a_row, a_column, b, b_row, b_column, start, start_row, out, out_row, alpha):
    chosen = _multiply_by_unit if PRESENT and alpha == types.float32 else tiles.multiply

    def call(sizes, a, a_row, a_column, b, b_row, b_column, start, start_row, out, out_row, alpha):
        chosen(sizes, a, a_row, a_column, b, b_row, b_column, start, start_row, out, out_row, alpha)

    return call


@inner
def _multiply_by_unit(sizes, a, a_row, a_column, b, b_row, b_column, start, start_row, out, out_row, alpha):
    """12 * rows * columns * depth FLOPs of bfloat16. Reads B once, A once for each BLOCK of B, writes out once for each DEPTH."""
    rows, columns, depth = sizes
    stretch, one = _stretch_of(depth), np.float32(1)
    breadth = max(1, min(BLOCK // _bytes_of_panel(stretch), (columns + LINES - 1) // LINES)) * LINES
    memory = np.empty((breadth // LINES + 1) * _bytes_of_panel(stretch) + _ROOM + LINE, np.uint8)
    room = (address(memory) + LINE - 1) // LINE * LINE
    of_a = room + _ROOM
    of_b = of_a + _bytes_of_panel(stretch)
    _begin()
    for k in range(0, depth, stretch):
        length = min(stretch, depth - k)
        for n in range(0, columns, breadth):
            width = min(breadth, columns - n)
            from_b = b + k * b_row + n * b_column
            fits = _pack(of_b, from_b, b_column, b_row, width, length, True, one, room)
            for m in range(0, rows, LINES):
                height = min(LINES, rows - m)
                from_a, to = a + m * a_row + k * a_column, out + m * out_row + n * 4
                first, first_row = (to, out_row) if k else (start + m * start_row + n * 4 if start else start, start_row)
                if fits and _pack(of_a, from_a, a_row, a_column, height, length, False, alpha, room):
                    _multiply_packed(height, width, length, of_a, of_b, first, first_row, to, out_row, room)
                else:
                    shape = height, width, length
                    tiles.multiply(shape, from_a, a_row, a_column, from_b, b_row, b_column, first, first_row, to, out_row, alpha)
    _end()
    hold(memory)


@inner
def _stretch_of(depth):
    """Into what depths, all but the last alike, a sum is cut."""
    parts = (depth + DEPTH - 1) // DEPTH
    return (depth + parts * STEP - 1) // (parts * STEP) * STEP


@inner
def _multiply_packed(rows, columns, depth, a, b, start, start_row, out, out_row, room):
    """out = start + A B for one panel of A, at most 32 rows, and all of B; between `_begin` and `_end`.

    All by address, as in `tiles.multiply`. Strips that are not whole are made in room, and copied.
    """
    steps, size, one, step = (depth + STEP - 1) // STEP, _bytes_of_panel(depth), np.float32(1), np.int64(4 * LINES)
    strip = room + _STRIP_AT
    for m in range(0, rows, ROWS):
        height, half = min(ROWS, rows - m), a + m // ROWS * OF_HALF
        for n in range(0, columns, LINES):
            width, panel = min(LINES, columns - n), b + n // LINES * size
            to, first = out + m * out_row + n * 4, start + m * start_row + n * 4 if start else start
            if height == ROWS and width == LINES:
                _multiply_strip(half, panel, steps, first, start_row, to, out_row)
            else:
                if start:
                    tiles.copy_lines(first, start_row, strip, step, height, width, one)
                _multiply_strip(half, panel, steps, strip if start else start, step, strip, step)
                tiles.copy_lines(strip, step, to, out_row, height, width, one)
