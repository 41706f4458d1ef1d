"""Scalar functions inside kernels: exp, decay, expm1, log, log1p, sigmoid, softplus, tanh, erf, gaussian; float32 and float64.

LLVM does not turn calls of the C library into vector code. These are straight lines of sums, products and selections, which
become vector code wherever a kernel's loop calls them. Each takes a number and gives one of its dtype, within 2 units in the
last place over the whole range, with the right values for NaN, infinities, denormal numbers and overflow. `erf` and below
say what they keep to instead where that differs.

Here is no array and no kernel. The functions are compiled without permission to reorder sums: some of their steps are exact
only in this order. `fma` is one instruction on every processor that has vector registers of 256 bits.

Where the coefficients come from: minimax polynomials of the stated function on the stated interval, found by Remez's exchange
in 50 digits (`benchmarks/polynomials.py`), lowest power first, rounded to the dtype; the relative error of the polynomials is
below a tenth of a unit in the last place, that of the results comes from rounding.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from . import compile_kernel

__all__ = ["decay", "erf", "exp", "expm1", "fma", "gaussian", "log", "log1p", "maximum", "minus", "sigmoid", "softplus", "tanh"]


def _function(function):
    """Compile for use inside loops of kernels, in the order written."""
    return compile_kernel(function, fastmath=False, forceinline=True)


# --- what Numba has no word for ------------------------------------------------------------------------------------------


def _layout(number) -> tuple:
    """Of a floating-point type: its own LLVM type, that of an integer of its size, and how many bits its fraction has."""
    if number.type == ir.FloatType():
        return number.type, ir.IntType(32), 23
    return number.type, ir.IntType(64), 52


def _instruction(name: str, count: int):
    """A function of `count` numbers that LLVM knows by a name, for numbers of either dtype."""

    def generate(context, builder, signature, args):
        kind = args[0].type
        function = builder.module.declare_intrinsic(name, [kind], ir.FunctionType(kind, [kind] * count))
        return builder.call(function, args)

    return generate


@intrinsic
def fma(typing, a, b, c):
    """a * b + c, rounded once."""
    return a(a, a, a), _instruction("llvm.fma", 3)


@intrinsic
def maximum(typing, a, b):
    """The larger number, NaN if either is NaN; a loop of it becomes vector code."""
    return a(a, a), _instruction("llvm.maximum", 2)


def _constant(value):
    """A function that gives the constant in the dtype of its argument. value: a number, or one for each of the two dtypes."""
    single, double = value if isinstance(value, tuple) else (value, value)

    @intrinsic
    def constant(typing, x):
        def generate(context, builder, signature, args):
            return ir.Constant(args[0].type, float(np.float32(single) if x == types.float32 else double))

        return x(x), generate

    return constant


def _polynomial(single: tuple, double: tuple):
    """A function of x: the polynomial with these coefficients, lowest power first, for float32 and for float64."""

    @intrinsic
    def polynomial(typing, x):
        def generate(context, builder, signature, args):
            kind = args[0].type
            coefficients = [float(np.float32(c)) for c in single] if x == types.float32 else double
            function = builder.module.declare_intrinsic("llvm.fma", [kind], ir.FunctionType(kind, [kind] * 3))
            value = ir.Constant(kind, coefficients[-1])
            for coefficient in coefficients[-2::-1]:
                value = builder.call(function, [value, args[0], ir.Constant(kind, coefficient)])
            return value

        return x(x), generate

    return polynomial


# Added to a number of moderate size it leaves the nearest whole number in the last bits of the sum.
_WHOLE = _constant((1.5 * 2.0**23, 1.5 * 2.0**52))


@intrinsic
def _power(typing, z):
    """2^n, a normal number, given n + _WHOLE."""

    def generate(context, builder, signature, args):
        kind, integer, fraction = _layout(args[0])
        bias = ((1 << (integer.width - 2 - fraction)) - 1) << fraction
        n = builder.shl(builder.bitcast(args[0], integer), ir.Constant(integer, fraction))
        return builder.bitcast(builder.add(n, ir.Constant(integer, bias)), kind)

    return z(z), generate


@intrinsic
def _powers(typing, z):
    """Two powers of two whose product is 2^n, given n + _WHOLE; n up to twice as large as an exponent may be."""

    def generate(context, builder, signature, args):
        kind, integer, fraction = _layout(args[0])
        bias = (1 << (integer.width - 2 - fraction)) - 1
        whole = np.float32(1.5 * 2.0**23).view(np.int32) if fraction == 23 else np.float64(1.5 * 2.0**52).view(np.int64)
        n = builder.sub(builder.bitcast(args[0], integer), ir.Constant(integer, int(whole)))
        half = builder.ashr(n, ir.Constant(integer, 1))
        powers = []
        for exponent in (half, builder.sub(n, half)):
            bits = builder.shl(builder.add(exponent, ir.Constant(integer, bias)), ir.Constant(integer, fraction))
            powers.append(builder.bitcast(bits, kind))
        return context.make_tuple(builder, signature.return_type, powers)

    return types.UniTuple(z, 2)(z), generate


@intrinsic
def _parts(typing, x):
    """(m, e) with x = m 2^e and m from sqrt(1/2) to sqrt(2), of a positive normal number."""

    def generate(context, builder, signature, args):
        kind, integer, fraction = _layout(args[0])
        dtype, of_bits = (np.float32, np.int32) if fraction == 23 else (np.float64, np.int64)
        least = int(dtype(math.sqrt(0.5)).view(of_bits))
        whole = dtype(1.5 * 2.0**fraction)
        above = builder.sub(builder.bitcast(args[0], integer), ir.Constant(integer, least))
        exponent = builder.ashr(above, ir.Constant(integer, fraction))
        rest = builder.and_(above, ir.Constant(integer, (1 << fraction) - 1))
        mantissa = builder.bitcast(builder.add(rest, ir.Constant(integer, least)), kind)
        shifted = builder.bitcast(builder.add(exponent, ir.Constant(integer, int(whole.view(of_bits)))), kind)
        exponent = builder.fsub(shifted, ir.Constant(kind, float(whole)))
        return context.make_tuple(builder, signature.return_type, [mantissa, exponent])

    return types.UniTuple(x, 2)(x), generate


@intrinsic
def _with_sign(typing, x, sign):
    """x with the sign of another number."""
    return x(x, x), _instruction("llvm.copysign", 2)


@intrinsic
def _size(typing, x):
    """|x|"""
    return x(x), _instruction("llvm.fabs", 1)


_ZERO, _HALF, _ONE, _TWO = _constant(0.0), _constant(0.5), _constant(1.0), _constant(2.0)
_INFINITE, _NAN = _constant(math.inf), _constant(math.nan)

@_function
def minus(a, b):
    """a - b, which the compiler does not merge with the sums around it."""
    return a - b


# --- exponentials --------------------------------------------------------------------------------------------------------

_PER_LN2 = _constant(1 / math.log(2))
_LN2 = _constant((0.6931472, 0.6931471805599453))
_LN2_REST = _constant((-1.9046542e-09, 2.3190468138462996e-17))
_DECAYED = _constant((-87.3, -708.3))
_EXP_LOWEST, _EXP_HIGHEST = _constant((-105.0, -750.0)), _constant((90.0, 711.0))
_EXPM1_LOWEST, _EXPM1_HIGHEST = _constant((-20.0, -42.0)), _constant((88.9, 709.9))
_NEGLIGIBLE = _constant((2.0**-30, 2.0**-60))  # the square of a smaller number, beside it

# (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2
_EXP = _polynomial(
    (0.5, 0.16666666, 0.04166636, 0.00833339, 0.0013940668, 1.984594e-04),
    (0.5000000000000006, 0.16666666666666588, 0.04166666666657647, 0.008333333333389746, 0.0013888888931665516,
     0.00019841269718691695, 2.4801505144419226e-05, 2.755740769542406e-06, 2.76260921994506e-07, 2.5053774786937308e-08),
)  # fmt: skip


@_function
def _reduced(x):
    """(z, r) with z = n + _WHOLE, x = n ln(2) + r, and |r| <= ln(2) / 2."""
    z = fma(x, _PER_LN2(x), _WHOLE(x))
    n = z - _WHOLE(x)
    return z, fma(-n, _LN2_REST(x), fma(-n, _LN2(x), x))


@_function
def exp(x):
    """e to the power of x."""
    x = _EXP_HIGHEST(x) if x > _EXP_HIGHEST(x) else x
    x = _EXP_LOWEST(x) if x < _EXP_LOWEST(x) else x
    z, r = _reduced(x)
    first, second = _powers(z)
    return (fma(r * r, _EXP(r), r) + _ONE(x)) * first * second


@_function
def decay(x):
    """exp(x) for x <= 0, in two thirds of the time: a result that would be denormal is zero."""
    z, r = _reduced(x)
    found = (fma(r * r, _EXP(r), r) + _ONE(x)) * _power(z)
    return _ZERO(x) if x < _DECAYED(x) else found


@_function
def expm1(x):
    """exp(x) - 1, accurate near zero."""
    within = _EXPM1_HIGHEST(x) if x > _EXPM1_HIGHEST(x) else x
    within = _EXPM1_LOWEST(x) if x < _EXPM1_LOWEST(x) else within
    z, r = _reduced(within)
    n = z - _WHOLE(x)
    rest = fma(-n, _LN2_REST(x), fma(-n, _LN2(x), within) - r)  # what rounding took from r
    above = r + fma(r * r, _EXP(r), rest)
    first, second = _powers(z)
    power = first * _HALF(x) * second  # of half the size: the power itself may overflow where the result does not
    grown = fma(power, above, power - _HALF(x)) * _TWO(x)
    return x if _size(x) < _NEGLIGIBLE(x) else grown


# --- logarithms ----------------------------------------------------------------------------------------------------------

_LEAST_NORMAL = _constant((float(np.finfo(np.float32).tiny), float(np.finfo(np.float64).tiny)))
_RAISED, _RAISED_BY = _constant((2.0**25, 2.0**54)), _constant((25.0, 54.0))

# (log(1 + f) - f + f^2 / 2) / f^3 for 1 + f from sqrt(1/2) to sqrt(2), in float32; in float64, where this one would be long,
# (log((1 + s) / (1 - s)) - 2 s) / s^3 as a function of s^2, with s = f / (2 + f)
_LOG_DIRECT = (0.3333333, -0.2500082, 0.20001228, -0.1662336, 0.14201719, -0.13160118, 0.12761809, -0.07634947)
_LOG_BY_QUOTIENT = (0.6666666666666734, 0.3999999999941465, 0.28571428742400073, 0.22222198571689958,
                    0.18183564409256503, 0.15314048344844625, 0.14795972312096392)  # fmt: skip
_LOG = _polynomial(_LOG_DIRECT, _LOG_BY_QUOTIENT)


@numba.extending.register_jitable
def _bend_direct(f):
    return f * f * f * _LOG(f)


@numba.extending.register_jitable
def _bend_by_quotient(f):
    s = f / (f + _TWO(f))
    square = s * s
    return s * (_HALF(f) * f * f + square * _LOG(square))


def _bend(f):
    """log(1 + f) - f + f^2 / 2."""
    raise NotImplementedError


@numba.extending.overload(_bend, inline="always")
def _choose_bend(f):
    if f == types.float32:
        return lambda f: _bend_direct(f)
    return lambda f: _bend_by_quotient(f)


@_function
def _log_near(x, rest, shift):
    """log((x + rest) / 2^shift), where x is a positive normal number and rest small beside it."""
    m, e = _parts(x)
    e -= shift
    f = m - _ONE(x)
    low = fma(e, _LN2_REST(x), _bend(f)) + rest / x
    return fma(e, _LN2(x), f + fma(-_HALF(x) * f, f, low))


@_function
def _at_limits(x, logarithm):
    """The logarithm, but -inf at zero, NaN below, and infinity and NaN as they are."""
    found = logarithm if x < _INFINITE(x) else x
    found = -_INFINITE(x) if x == _ZERO(x) else found
    return _NAN(x) if x < _ZERO(x) else found


@_function
def log(x):
    """The natural logarithm."""
    is_small = x < _LEAST_NORMAL(x)
    raised = x * _RAISED(x) if is_small else x
    shift = _RAISED_BY(x) if is_small else _ZERO(x)
    return _at_limits(x, _log_near(raised, _ZERO(x), shift))


@_function
def log1p(x):
    """log(1 + x), accurate near zero."""
    whole = x + _ONE(x)
    added = whole - _ONE(x)
    rest = (_ONE(x) - (whole - added)) + (x - added)  # what rounding took from the sum, exactly
    return _with_sign(_at_limits(whole, _log_near(whole, rest, _ZERO(x))), x)


# --- curves --------------------------------------------------------------------------------------------------------------

_TANH_FLAT = _constant((10.0, 20.0))


@_function
def _quotient(a, b, c):
    """a / (b + c), without the error of rounding the sum, where b is not smaller than c."""
    whole = b + c
    rest = (b - whole) + c
    inverse = _ONE(a) / whole
    first = a * inverse
    return fma(fma(-first, rest, fma(-first, whole, a)), inverse, first)


@_function
def sigmoid(x):
    """1 / (1 + exp(-x))."""
    small = exp(-_size(x))
    return _quotient(small if x < _ZERO(x) else _ONE(x), _ONE(x), small)


@_function
def softplus(x):
    """log(1 + exp(x)), without overflow."""
    above = x if x > _ZERO(x) else _ZERO(x)
    return above + log1p(exp(-_size(x)))


@_function
def tanh(x):
    """The hyperbolic tangent."""
    size = _size(x)
    size = _TANH_FLAT(x) if size > _TANH_FLAT(x) else size
    grown = expm1(size + size)
    return _with_sign(_quotient(grown, _TWO(x), grown), x)


# --- the normal distribution ---------------------------------------------------------------------------------------------

_SQRT_HALF = _constant(math.sqrt(0.5))
_BEND = _constant(0.35)

# erf(x) / x - 1 as a function of x^2, for |x| <= 1
_ERF = _polynomial(
    (0.12837917, -0.37612626, 0.112835854, -0.026853813, 0.0051883277, -0.0008010192, 7.853852e-05),
    (0.12837916709551256, -0.3761263890318352, 0.11283791670944185, -0.026866170643111375, 0.005223977606117625,
     -0.000854832592927142, 0.00012055293575569572, -1.4924712275907062e-05, 1.6447131245010192e-06,
     -1.6206311241554742e-07, 1.371096948098858e-08, -7.779448129042074e-10),
)  # fmt: skip

# exp(a^2) erfc(a) / t as a function of 2 t - 1, with t = 1 / (1 + 0.35 a); its error weighs exp(-a^2 / 2)
_TAIL = _polynomial(
    (0.37421268, 0.3023632, 0.194143, 0.09556813, 0.030403342, 0.00705485, -0.003944967, 1.9978687e-04),
    (0.3742127534229414, 0.30235720773584995, 0.1942245974251986, 0.09509659025324116, 0.031838947461474205,
     0.004582616160876518, -0.0015751381187327784, -0.0008717225187958481, 2.7031628702053182e-05, 0.00011698148153982418,
     5.840203833654231e-06, -1.7211730267129182e-05, -1.0757162835843977e-06, 3.0795345343889953e-06,
     -2.9863789514801675e-08, -7.511117955767651e-07, 3.4813495093978755e-07, -6.98465566884706e-08, 5.463078391197178e-09),
)  # fmt: skip


@_function
def _tail(a):
    """exp(a^2) erfc(a) for a >= 0."""
    t = _ONE(a) / fma(a, _BEND(a), _ONE(a))
    return t * _TAIL(fma(_TWO(a), t, -_ONE(a)))


@_function
def erf(x):
    """The error function."""
    square = x * x
    inner = fma(x, _ERF(square), x)
    outer = _with_sign(fma(-decay(-square), _tail(_size(x)), _ONE(x)), x)
    return inner if square < _ONE(x) else outer


@_function
def gaussian(x):
    """(the area under the normal density up to x, exp(-x^2 / 2)), zero instead of denormal.

    The area has an absolute error below 2 units in the last place of 1/2; in the lower tail also a small relative one, where
    (1 + erf(x / sqrt(2))) / 2 has lost all its digits.
    """
    bell = decay(x * x * -_HALF(x))
    beyond = _HALF(x) * bell * _tail(_size(x) * _SQRT_HALF(x))
    return (beyond if x < _ZERO(x) else _ONE(x) - beyond), bell
