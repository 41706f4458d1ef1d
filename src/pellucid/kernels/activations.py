"""Elementwise functions that neural networks put between their layers, and their gradients: arrays to arrays.

Each function here is the plain NumPy form; where the arrays are large, `_compiled` does the same in one pass on all threads.
Values agree to rounding. Gradients take the gradient of the result first, then what the function was taken of (`x`) or its
result (`y`).
"""

from __future__ import annotations

import importlib
import math

import numpy as np

from .choice import compiled

__all__ = [
    "elu", "elu_backward", "erf", "gelu", "gelu_backward", "gelu_tanh", "gelu_tanh_backward", "hardswish", "hardswish_backward",
    "log_sigmoid", "log_sigmoid_backward", "mish", "mish_backward", "sigmoid", "sigmoid_backward", "silu", "silu_backward",
    "softplus", "softplus_backward", "tanh_backward", "tanh_backward_gradients", "tanh_curvature", "tanh_curvature_gradients",
]  # fmt: skip

INNER, CUBE, DENSITY = math.sqrt(2 / math.pi), 0.044715, 1 / math.sqrt(2 * math.pi)


# What NumPy takes many steps for, or SciPy one element at a time: worth compiling from few elements on.
LONG = {
    "elu", "erf", "gelu", "gelu_backward", "gelu_tanh_backward", "log_sigmoid", "mish", "mish_backward", "softplus",
    "softplus_backward",
}  # fmt: skip


def _compiled(name: str, arrays: tuple, numbers: tuple = ()) -> np.ndarray | None:
    """What the compiled form of a function makes of arrays of one shape, in the order of memory of the last; or None."""
    last = arrays[-1]
    fast = compiled("activations.long" if name in LONG else "activations", last.size, *arrays)
    if fast is None:
        return None
    shape = last.shape
    for array in arrays:
        if array.shape != shape:
            return None
    if not last.flags.c_contiguous:
        made = _compiled(name, tuple([array.T for array in arrays]), numbers) if last.flags.f_contiguous else None
        return None if made is None else made.T
    out, number = np.empty(shape, last.dtype), last.dtype.type
    getattr(fast, name)(*[array.reshape(-1) for array in arrays], *[number(each) for each in numbers], out.reshape(-1))
    return out


def _compiled_results(name: str, arrays: tuple, count: int) -> list[np.ndarray] | None:
    """The same for a function with several results."""
    last = arrays[-1]
    fast, shape = compiled("activations", last.size, *arrays), last.shape
    if fast is None or not last.flags.c_contiguous:
        return None
    for array in arrays:
        if array.shape != shape:
            return None
    made = [np.empty(shape, last.dtype) for _ in range(count)]
    getattr(fast, name)(*[array.reshape(-1) for array in arrays], *[array.reshape(-1) for array in made])
    return made


# --- curves with a flat end or two -----------------------------------------------------------------------------------


def tanh_backward(grad: np.ndarray, y: np.ndarray) -> np.ndarray:
    """grad (1 - y^2), with y = tanh(x)."""
    fast = _compiled("tanh_backward", (grad, y))
    return grad * (1 - y * y) if fast is None else fast


def tanh_curvature(grad: np.ndarray, other: np.ndarray, y: np.ndarray) -> np.ndarray:
    """-2 grad other y: what a gradient of `tanh_backward` hands on to y."""
    fast = _compiled("tanh_curvature", (grad, other, y))
    return grad * (-2 * y * other) if fast is None else fast


def tanh_backward_gradients(grad: np.ndarray, other: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What `tanh_backward` of (other, y) hands on to each of them."""
    fast = _compiled_results("tanh_backward_gradients", (grad, other, y), 2)
    return (tanh_backward(grad, y), tanh_curvature(grad, other, y)) if fast is None else tuple(fast)


def tanh_curvature_gradients(
    grad: np.ndarray, first: np.ndarray, second: np.ndarray, y: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """What `tanh_curvature` of (first, second, y) hands on to each of them."""
    fast = _compiled_results("tanh_curvature_gradients", (grad, first, second, y), 3)
    if fast is not None:
        return tuple(fast)
    return tanh_curvature(grad, second, y), tanh_curvature(grad, first, y), tanh_curvature(first, second, grad)


def sigmoid(x: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x))."""
    fast = _compiled("sigmoid", (x,))
    if fast is not None:
        return fast
    if x.dtype.kind == "c":
        return 1 / (1 + np.exp(-x))
    # exp(-x) overflows to infinity for very negative x, whose reciprocal is the right zero
    if not x.ndim:
        return np.reciprocal(np.exp(-x) + 1)
    value = np.negative(x)
    np.exp(value, value)
    np.add(value, 1, value)
    return np.reciprocal(value, value)


def sigmoid_backward(grad: np.ndarray, y: np.ndarray) -> np.ndarray:
    """grad y (1 - y), with y = sigmoid(x)."""
    fast = _compiled("sigmoid_backward", (grad, y))
    return grad * (y * (1 - y)) if fast is None else fast


def log_sigmoid(x: np.ndarray) -> np.ndarray:
    """log(sigmoid(x)), without overflow."""
    fast = _compiled("log_sigmoid", (x,))
    return np.minimum(x, 0) - np.log1p(np.exp(-np.absolute(x))) if fast is None else fast


def log_sigmoid_backward(grad: np.ndarray, x: np.ndarray) -> np.ndarray:
    """grad sigmoid(-x)."""
    fast = _compiled("log_sigmoid_backward", (grad, x))
    return grad * sigmoid(-x) if fast is None else fast


def softplus(x: np.ndarray, beta: float, threshold: float) -> np.ndarray:
    """log(1 + exp(beta x)) / beta, and x itself where beta x is over the threshold."""
    fast = _compiled("softplus", (x,), (beta, threshold))
    if fast is not None:
        return fast
    scaled = x * beta
    return np.where(scaled > threshold, x, np.log1p(np.exp(scaled)) / beta)


def softplus_backward(grad: np.ndarray, x: np.ndarray, beta: float, threshold: float) -> np.ndarray:
    """grad sigmoid(beta x), and grad itself where beta x is over the threshold."""
    fast = _compiled("softplus_backward", (grad, x), (beta, threshold))
    return np.where(x * beta > threshold, grad, grad * sigmoid(x * beta)) if fast is None else fast


def elu(x: np.ndarray, alpha: float, scale: float, input_scale: float) -> np.ndarray:
    """scale x for positive x, scale alpha (exp(input_scale x) - 1) for the others."""
    fast = _compiled("elu", (x,), (alpha * scale, scale, input_scale))
    if fast is not None:
        return fast
    low = np.expm1(np.minimum(0, x) * input_scale) * (alpha * scale)  # 0 first: -0 stays what it is
    return np.where(x > 0, x * scale, low)


def elu_backward(grad: np.ndarray, x: np.ndarray, alpha: float, scale: float, input_scale: float) -> np.ndarray:
    """grad scale for positive x, grad scale alpha input_scale exp(input_scale x) for the others."""
    fast = _compiled("elu_backward", (grad, x), (input_scale * alpha * scale, scale, input_scale))
    if fast is not None:
        return fast
    # the exponential is taken of the negative part only: that of a large number is infinite, and 0 * inf is NaN
    bend = np.exp(np.where(x >= 0, 0, x) * input_scale) * (input_scale * alpha * scale)
    return np.where(x > 0, grad * scale, grad * bend)


# --- gates: x times a curve --------------------------------------------------------------------------------------------


def erf(x: np.ndarray) -> np.ndarray:
    """The error function."""
    fast = _compiled("erf", (x,))
    return np.asarray(importlib.import_module("scipy.special").erf(x)) if fast is None else fast  # slow import


def gelu(x: np.ndarray) -> np.ndarray:
    """x times the area under the normal density up to x."""
    fast = _compiled("gelu", (x,))
    return x * (erf(x * math.sqrt(0.5)) + 1) * 0.5 if fast is None else fast


def gelu_backward(grad: np.ndarray, x: np.ndarray) -> np.ndarray:
    """grad times the slope of `gelu`: the area, and x times the density."""
    fast = _compiled("gelu_backward", (grad, x))
    if fast is not None:
        return fast
    area = (erf(x * math.sqrt(0.5)) + 1) * 0.5
    return grad * (area + x * np.exp(x * x * -0.5) * DENSITY)


def gelu_tanh(x: np.ndarray) -> np.ndarray:
    """The approximation of `gelu` by tanh: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))."""
    fast = _compiled("gelu_tanh", (x,))
    return x * (np.tanh((x + CUBE * x * x * x) * INNER) + 1) * 0.5 if fast is None else fast


def gelu_tanh_backward(grad: np.ndarray, x: np.ndarray) -> np.ndarray:
    """grad times the slope of `gelu_tanh`."""
    fast = _compiled("gelu_tanh_backward", (grad, x))
    if fast is not None:
        return fast
    square = x * x
    curve = np.tanh((x + x * square * CUBE) * INNER)
    slope = (square * (3 * CUBE) + 1) * INNER
    return grad * ((curve + 1) * 0.5 + x * ((1 - curve * curve) * slope) * 0.5)


def silu(x: np.ndarray) -> np.ndarray:
    """x sigmoid(x)."""
    fast = _compiled("silu", (x,))
    return x / (np.exp(-x) + 1) if fast is None else fast


def silu_backward(grad: np.ndarray, x: np.ndarray) -> np.ndarray:
    """grad times the slope of `silu`: g (1 + x (1 - g)), with g = sigmoid(x)."""
    fast = _compiled("silu_backward", (grad, x))
    if fast is not None:
        return fast
    gate = sigmoid(x)
    return grad * (gate * (x * (1 - gate) + 1))


def mish(x: np.ndarray) -> np.ndarray:
    """x tanh(softplus(x))."""
    fast = _compiled("mish", (x,))
    return x * np.tanh(softplus(x, 1.0, 20.0)) if fast is None else fast


def mish_backward(grad: np.ndarray, x: np.ndarray) -> np.ndarray:
    """grad times the slope of `mish`: t + x (1 - t^2) sigmoid(x), with t = tanh(softplus(x))."""
    fast = _compiled("mish_backward", (grad, x))
    if fast is not None:
        return fast
    curve = np.tanh(softplus(x, 1.0, 20.0))
    return grad * (curve + x * (1 - curve * curve) * sigmoid(x))


def hardswish(x: np.ndarray) -> np.ndarray:
    """x (x + 3) / 6, the second factor brought between 0 and 1."""
    fast = _compiled("hardswish", (x,))
    return x * np.minimum(np.maximum(x + 3, 0), 6) / 6 if fast is None else fast


def hardswish_backward(grad: np.ndarray, x: np.ndarray) -> np.ndarray:
    """grad times the slope of `hardswish`: 0 up to -3, x / 3 + 1/2 between, 1 from 3 on."""
    fast = _compiled("hardswish_backward", (grad, x))
    return np.where(x <= -3, 0, np.where(x < 3, grad * (x / 3 + 0.5), grad)) if fast is None else fast
