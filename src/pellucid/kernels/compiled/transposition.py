"""Transposition of small squares of numbers in registers: what LLVM does not make of two nested loops by itself.

A square has `lanes(dtype)` rows of 64 bytes. Its rows are exchanged in log2(lanes) rounds, as in a Fourier transform: in the
round of distance d, rows i and i + d exchange those halves of each 2d x 2d square that lie off its diagonal.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["lanes", "turn", "turn_at"]


def lanes(dtype) -> int:
    """Rows and columns of a square."""
    return 64 // np.dtype(dtype).itemsize


@intrinsic
def turn(typingctx, source, source_at, target, target_at):
    """Copy a square from one array to another, transposed; inside kernels only.

    source, target: 1-d arrays of float32 or float64; source_at, target_at: int64 arrays with the index at which each row
    begins. Row i of the target takes column i of the source. Reads and writes 64 bytes a row, without checks.
    """
    return types.void(source, source_at, target, target_at), _generate


@intrinsic
def turn_at(typingctx, source, source_step, target, target_step, like):
    """`turn` from one address to another; steps in bytes from row to row; like: a number of the dtype."""
    return types.void(*[types.int64] * 4, like), _generate_at


def _generate_at(context, builder, signature, arguments):
    kind, bits = arguments[-1].type, signature.args[-1].bitwidth
    square = ir.VectorType(kind, 512 // bits)
    source, source_step, target, target_step, _ = arguments

    def row(start, step, i):
        place = builder.add(start, builder.mul(step, ir.Constant(ir.IntType(64), i)))
        return builder.inttoptr(place, square.as_pointer())

    _turn_rows(builder, square, bits // 8, lambda i: row(source, source_step, i), lambda i: row(target, target_step, i))
    return context.get_dummy_value()


def _generate(context, builder, signature, arguments):
    bits = signature.args[0].dtype.bitwidth
    square = ir.VectorType(context.get_value_type(signature.args[0].dtype), 512 // bits)
    arrays = [context.make_array(kind)(context, builder, each) for kind, each in zip(signature.args, arguments, strict=True)]
    source, source_at, target, target_at = (array.data for array in arrays)

    def row(data, places, i):
        place = builder.load(builder.gep(places, [ir.Constant(ir.IntType(64), i)]))
        return builder.bitcast(builder.gep(data, [place]), square.as_pointer())

    _turn_rows(builder, square, bits // 8, lambda i: row(source, source_at, i), lambda i: row(target, target_at, i))
    return context.get_dummy_value()


def _turn_rows(builder, square, align: int, seen, put) -> None:
    """Load the rows of a square from where `seen(i)` points, and store the rows of the transposed one to where `put(i)` does."""
    rows = [builder.load(seen(i), align=align) for i in range(square.count)]
    for i, made in enumerate(_exchanged(builder, rows)):
        builder.store(made, put(i), align=align)


def _exchanged(builder, rows: list) -> list:
    """The rows of the transposed square."""
    count = len(rows)
    distance = count // 2
    while distance:
        upper = [j if not j & distance else count + j - distance for j in range(count)]
        lower = [j + distance if not j & distance else count + j for j in range(count)]
        for i in range(count):
            if not i & distance:
                a, b = rows[i], rows[i + distance]
                rows[i], rows[i + distance] = (builder.shuffle_vector(a, b, _mask(each)) for each in (upper, lower))
        distance //= 2
    return rows


def _mask(places: list) -> ir.Constant:
    return ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places)
