"""Activations and their gradients, each in one pass over memory on all threads.

Arrays are one-dimensional, contiguous, all of one dtype; the last one is written to, or those called `of_...` where there are several
results. Numbers come as that dtype. Each kernel reads its operands once and writes its results once; beside the exponentials (about
20 FLOPs each, see `mathematics.py`) its own FLOPs are few. The plain forms are those of the same name in `kernels/activations.py`,
where the formulas are explained.
"""

from __future__ import annotations

import math

from numba import prange

from . import mathematics as m
from . import parallel

__all__ = [
    "elu", "elu_backward", "erf", "gelu", "gelu_backward", "gelu_tanh", "gelu_tanh_backward", "hardswish",
    "hardswish_backward", "log_sigmoid", "log_sigmoid_backward", "mish", "mish_backward", "sigmoid", "sigmoid_backward",
    "silu", "silu_backward", "softplus", "softplus_backward", "tanh_backward", "tanh_backward_gradients", "tanh_curvature",
    "tanh_curvature_gradients",
]  # fmt: skip

INNER, CUBE, DENSITY = math.sqrt(2 / math.pi), 0.044715, 1 / math.sqrt(2 * math.pi)


# --- curves with a flat end or two -----------------------------------------------------------------------------------


@parallel
def erf(x, out):
    for i in prange(x.size):
        out[i] = m.erf(x[i])


@parallel
def tanh_backward(grad, y, out):
    one = y.dtype.type(1)
    for i in prange(y.size):
        out[i] = grad[i] * (one - y[i] * y[i])


@parallel
def tanh_curvature(grad, other, y, out):
    factor = y.dtype.type(-2)
    for i in prange(y.size):
        out[i] = grad[i] * (factor * y[i] * other[i])


@parallel
def tanh_backward_gradients(grad, other, y, of_other, of_y):
    one, factor = y.dtype.type(1), y.dtype.type(-2)
    for i in prange(y.size):
        of_other[i] = grad[i] * (one - y[i] * y[i])
        of_y[i] = grad[i] * (factor * y[i] * other[i])


@parallel
def tanh_curvature_gradients(grad, first, second, y, of_first, of_second, of_y):
    factor = y.dtype.type(-2)
    for i in prange(y.size):
        of_first[i] = grad[i] * (factor * y[i] * second[i])
        of_second[i] = grad[i] * (factor * y[i] * first[i])
        of_y[i] = grad[i] * (factor * first[i] * second[i])


@parallel
def sigmoid(x, out):
    for i in prange(x.size):
        out[i] = m.sigmoid(x[i])


@parallel
def sigmoid_backward(grad, y, out):
    one = y.dtype.type(1)
    for i in prange(y.size):
        out[i] = grad[i] * (y[i] * (one - y[i]))


@parallel
def log_sigmoid(x, out):
    for i in prange(x.size):
        out[i] = -m.softplus(-x[i])


@parallel
def log_sigmoid_backward(grad, x, out):
    for i in prange(x.size):
        out[i] = grad[i] * m.sigmoid(-x[i])


@parallel
def softplus(x, beta, threshold, out):
    for i in prange(x.size):
        scaled = x[i] * beta
        out[i] = x[i] if scaled > threshold else m.softplus(scaled) / beta


@parallel
def softplus_backward(grad, x, beta, threshold, out):
    for i in prange(x.size):
        scaled = x[i] * beta
        out[i] = grad[i] if scaled > threshold else grad[i] * m.sigmoid(scaled)


@parallel
def elu(x, low_scale, scale, input_scale, out):
    zero = x.dtype.type(0)
    for i in prange(x.size):
        low = m.expm1((x[i] if x[i] <= zero else zero) * input_scale) * low_scale
        high = x[i] * scale
        out[i] = low if x[i] <= zero else high


@parallel
def elu_backward(grad, x, slope, scale, input_scale, out):
    zero = x.dtype.type(0)
    for i in prange(x.size):
        bend = m.exp((zero if x[i] >= zero else x[i]) * input_scale) * slope
        out[i] = grad[i] * (scale if x[i] > zero else bend)


# --- gates: x times a curve --------------------------------------------------------------------------------------------


@parallel
def gelu(x, out):
    for i in prange(x.size):
        out[i] = x[i] * m.gaussian(x[i])[0]


@parallel
def gelu_backward(grad, x, out):
    density = x.dtype.type(DENSITY)
    for i in prange(x.size):
        area, bell = m.gaussian(x[i])
        out[i] = grad[i] * (area + x[i] * bell * density)


@parallel
def gelu_tanh(x, out):
    one, half, inner, cube = x.dtype.type(1), x.dtype.type(0.5), x.dtype.type(INNER), x.dtype.type(CUBE)
    for i in prange(x.size):
        curve = m.tanh((x[i] + cube * x[i] * x[i] * x[i]) * inner)
        out[i] = x[i] * (curve + one) * half


@parallel
def gelu_tanh_backward(grad, x, out):
    one, half, inner, cube = x.dtype.type(1), x.dtype.type(0.5), x.dtype.type(INNER), x.dtype.type(CUBE)
    for i in prange(x.size):
        square = x[i] * x[i]
        curve = m.tanh((x[i] + x[i] * square * cube) * inner)
        slope = (square * (cube + cube + cube) + one) * inner
        out[i] = grad[i] * half * ((curve + one) + x[i] * ((one - curve * curve) * slope))


@parallel
def silu(x, out):
    for i in prange(x.size):
        out[i] = x[i] * m.sigmoid(x[i])


@parallel
def silu_backward(grad, x, out):
    one = x.dtype.type(1)
    for i in prange(x.size):
        gate = m.sigmoid(x[i])
        out[i] = grad[i] * (gate * (x[i] * (one - gate) + one))


@parallel
def mish(x, out):
    for i in prange(x.size):
        out[i] = x[i] * m.tanh(m.softplus(x[i]))


@parallel
def mish_backward(grad, x, out):
    one = x.dtype.type(1)
    for i in prange(x.size):
        curve = m.tanh(m.softplus(x[i]))
        out[i] = grad[i] * (curve + x[i] * (one - curve * curve) * m.sigmoid(x[i]))


@parallel
def hardswish(x, out):
    zero, three, six = x.dtype.type(0), x.dtype.type(3), x.dtype.type(6)
    for i in prange(x.size):
        gate = x[i] + three
        gate = zero if gate < zero else gate
        out[i] = x[i] * (six if gate > six else gate) / six


@parallel
def hardswish_backward(grad, x, out):
    zero, half, three = x.dtype.type(0), x.dtype.type(0.5), x.dtype.type(3)
    for i in prange(x.size):
        inside = grad[i] * (x[i] / three + half)
        above = inside if x[i] < three else grad[i]
        out[i] = zero if x[i] <= -three else above
