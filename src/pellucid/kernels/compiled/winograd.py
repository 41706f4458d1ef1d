"""Winograd's short convolutions in two dimensions: their matrices, and an intrinsic that applies one on both sides.

Y = A^T [ (G g G^T) * (B^T d B) ] A makes 4x4 results from 6x6 pixels d and a 3x3 kernel g with 36 multiplications instead
of 144. The matrices are those of Toom and Cook for six points, which may be any: with 0, +-3/4, +-3/2 and infinity rounding
errors are half of those with the usual 0, +-1, +-2 (see Barabasz et al., "Error analysis and improving the accuracy of
Winograd convolution for deep neural networks", 2018), and all but G is exact in binary.
"""

from __future__ import annotations

from fractions import Fraction

from llvmlite import ir
from numba import types
from numba.extending import intrinsic

__all__ = ["gradient_of_kernel", "kernel_into", "pixels_into", "result_into", "result_out_of"]

POINTS = (Fraction(0), Fraction(3, 4), Fraction(-3, 4), Fraction(3, 2), Fraction(-3, 2))  # and infinity
RESULTS, TAPS = 4, 3
LANES = 16  # numbers handled at once


def matrices() -> tuple[list, list, list]:
    """A^T [4, 6], G [6, 3] and B^T [6, 6]: evaluate two polynomials at the points, multiply, interpolate, transposed."""
    last = len(POINTS)
    a = [[p**i for p in POINTS] + [Fraction(i == RESULTS - 1)] for i in range(RESULTS)]
    g, b = [], []
    for p in POINTS:
        others = [q for q in POINTS if q != p]
        scale = _product([p - q for q in others])
        g.append([p**j / scale for j in range(TAPS)])
        b.append([*_with_roots(others), Fraction(0)])
    g.append([Fraction(j == TAPS - 1) for j in range(TAPS)])
    b.append(_with_roots(POINTS))
    assert len(b[last]) == RESULTS + TAPS - 1
    return a, g, b


def _product(numbers: list) -> Fraction:
    made = Fraction(1)
    for each in numbers:
        made *= each
    return made


def _with_roots(roots) -> list:
    """The coefficients, constant first, of the polynomial with these roots."""
    made = [Fraction(1)]
    for root in roots:
        made = [low - root * high for low, high in zip([Fraction(0), *made], [*made, Fraction(0)], strict=True)]
    return made


def _transposed(matrix: list) -> list:
    return [list(row) for row in zip(*matrix, strict=True)]


def on_both_sides(matrix: list):
    """An intrinsic that stores `matrix` d `matrix`^T for LANES squares d of numbers at once.

    It takes (source, source_at, target, target_at, shift): 1-d float32 arrays; int64 arrays with the place of each element of
    d and of the result, row by row, the lanes following; what is added to every place.
    """

    @intrinsic
    def sandwich(typingctx, source, source_at, target, target_at, shift):
        def generate(context, builder, signature, arguments):
            kinds = signature.args[:4]
            arrays = [context.make_array(k)(context, builder, a).data for k, a in zip(kinds, arguments[:4], strict=True)]
            _apply(builder, matrix, *arrays, arguments[4])
            return context.get_dummy_value()

        return types.void(source, source_at, target, target_at, types.int64), generate

    return sandwich


def _apply(builder, matrix: list, source, source_at, target, target_at, shift) -> None:
    rows, columns = len(matrix), len(matrix[0])
    vector = ir.VectorType(ir.FloatType(), LANES)

    def place(data, places, i):
        at = builder.add(builder.load(builder.gep(places, [ir.Constant(ir.IntType(64), i)])), shift)
        return builder.bitcast(builder.gep(data, [at]), vector.as_pointer())

    half = []  # matrix d, by columns
    for j in range(columns):
        read = [builder.load(place(source, source_at, i * columns + j), align=4) for i in range(columns)]
        half.append([_combined(builder, vector, row, read) for row in matrix])
    for i in range(rows):
        for j, row in enumerate(matrix):
            made = _combined(builder, vector, row, [column[i] for column in half])
            builder.store(made, place(target, target_at, i * rows + j), align=4)


def _combined(builder, vector, factors: list, values: list):
    """The sum of factors times values, without products by 0 and 1."""
    total = None
    for factor, value in zip(factors, values, strict=True):
        if factor == 0:
            continue
        flags = ("contract",)
        if factor in (1, -1):
            term = value
        else:
            term = builder.fmul(value, ir.Constant(vector, [float(abs(factor))] * LANES), flags=flags)
        if total is None:
            total = term if factor > 0 else builder.fneg(term)
        else:
            total = (builder.fadd if factor > 0 else builder.fsub)(total, term, flags=flags)
    return total


_A_TURNED, _G, _B_TURNED = matrices()
pixels_into = on_both_sides(_B_TURNED)  # 6x6 pixels to 36 products
kernel_into = on_both_sides(_G)  # 3x3 kernel to 36
result_out_of = on_both_sides(_A_TURNED)  # 36 products to 4x4 results
result_into = on_both_sides(_transposed(_A_TURNED))  # 4x4 gradients to 36
gradient_of_kernel = on_both_sides(_transposed(_G))  # 36 to the gradient of a 3x3 kernel
