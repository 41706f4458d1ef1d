"""Trigonometric and hyperbolic functions, their inverses, and what is measured with them (atan2, hypot, sinc)."""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import Array, Promote, operator
from pellucid.autograd.samples import binary
from pellucid.kernels import activations as kernels
from pellucid.ops.families import SMOOTH, of_two, smooth

__all__ = ["acos", "acosh", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "asin", "asinh",
           "atan", "atan2", "atanh", "cos", "cosh", "hypot", "sin", "sinc", "sinh", "tan", "tanh"]  # fmt: skip

# --- angles ----------------------------------------------------------------------------------------------------------


@smooth(np.sin)
def sin(F, grad, input):
    """Sine of each element, in radians."""
    return grad * F.cos(input)


@smooth(np.cos)
def cos(F, grad, input):
    """Cosine of each element, in radians."""
    return -grad * F.sin(input)


@smooth(np.tan, -1.2, 1.2)
def tan(F, grad, result):
    """Tangent of each element, in radians."""
    return grad * (1 + result * result)


@smooth(np.arcsin, -0.9, 0.9, alias=["arcsin"])
def asin(F, grad, input):
    """Inverse sine, in [-pi/2, pi/2]; NaN outside [-1, 1]."""
    return grad * F.rsqrt(1 - input * input)


@smooth(np.arccos, -0.9, 0.9, alias=["arccos"])
def acos(F, grad, input):
    """Inverse cosine, in [0, pi]; NaN outside [-1, 1]."""
    return -grad * F.rsqrt(1 - input * input)


@smooth(np.arctan, alias=["arctan"])
def atan(F, grad, input):
    """Inverse tangent, in [-pi/2, pi/2]."""
    return grad / (input * input + 1)


# --- hyperbolic functions --------------------------------------------------------------------------------------------


@smooth(np.sinh)
def sinh(F, grad, input):
    """Hyperbolic sine."""
    return grad * F.cosh(input)


@smooth(np.cosh)
def cosh(F, grad, input):
    """Hyperbolic cosine."""
    return grad * F.sinh(input)


@smooth(np.tanh, module=("torch", "nn.functional"))
def tanh(F, grad, result):
    """Hyperbolic tangent. Derivative: 1 - y^2."""
    return F.tanh_backward(grad, result)


@operator(module=None, elementwise=True)
class tanh_backward:
    """Gradient of `tanh`, from its result: grad * (1 - y^2)."""

    def forward(xp, input: Array, output: Array): return kernels.tanh_backward(input, output)
    def vjp_input(F, grad, output): return F.tanh_backward(grad, output)
    def vjp_output(F, grad, input, output): return F.tanh_curvature(grad, input, output)
    def vjp_arrays(F, grad, input, output): return kernels.tanh_backward_gradients(grad, input, output)
    def samples(make): yield (make(3, 4), make(3, 4)), {}


@operator(module=None, elementwise=True)
class tanh_curvature:
    """The derivative of `tanh_backward` in y: -2 input other y. Linear in each of the three."""

    def forward(xp, input: Array, other: Array, output: Array): return kernels.tanh_curvature(input, other, output)
    def vjp_input(F, grad, other, output): return F.tanh_curvature(grad, other, output)
    def vjp_other(F, grad, input, output): return F.tanh_curvature(grad, input, output)
    def vjp_output(F, grad, input, other): return F.tanh_curvature(input, other, grad)
    def vjp_arrays(F, grad, input, other, output): return kernels.tanh_curvature_gradients(grad, input, other, output)
    def samples(make): yield (make(3, 4), make(3, 4), make(3, 4)), {}


@smooth(np.arcsinh, alias=["arcsinh"])
def asinh(F, grad, input):
    """Inverse hyperbolic sine."""
    return grad * F.rsqrt(input * input + 1)


@smooth(np.arccosh, 1.2, 3.0, alias=["arccosh"])
def acosh(F, grad, input, input_dtype):
    """Inverse hyperbolic cosine; NaN below 1."""
    if input_dtype.kind != "c":
        return grad * F.rsqrt(input * input - 1)
    return grad * F.rsqrt(input - 1) * F.rsqrt(input + 1)  # two roots, so that the branch is right


@smooth(np.arctanh, -0.9, 0.9, alias=["arctanh"])
def atanh(F, grad, input):
    """Inverse hyperbolic tangent; NaN outside [-1, 1]."""
    return grad / (1 - input * input)


# --- two operands, and sinc ------------------------------------------------------------------------------------------


@operator(**SMOOTH, ufunc=np.arctan2, alias=["arctan2"])
class atan2:
    """The angle of the point (other, input), in [-pi, pi]: the inverse tangent of input / other, in the right quadrant.

    input, other: real, broadcastable to a common shape. Returns the common shape, integers as the default float.
    """

    forward = of_two(np.arctan2, "atan2_cpu")

    def vjp_input(F, grad, input, other):
        square = input * input + other * other
        return F.where(square == 0, 0, grad * other / square)

    def vjp_other(F, grad, input, other):
        square = input * input + other * other
        return F.where(square == 0, 0, -grad * input / square)

    samples = binary(low=0.3, high=2.0)


@operator(promote=Promote.SAME, method=True, inplace=True)
class hypot:
    """The hypotenuse: sqrt(input^2 + other^2), without overflow.

    input, other: floating-point, broadcastable to a common shape. Returns the common shape and dtype.
    """

    forward = of_two(np.hypot, "hypot_cpu")
    def vjp_input(F, grad, input, result): return grad * (input / result)
    def vjp_other(F, grad, other, result): return grad * (other / result)
    samples = binary(low=0.3, high=2.0)


def _sinc(xp, input: Array):
    angle = input * input.dtype.type(math.pi)
    return xp.where(input == 0, 1, xp.sin(angle) / angle).astype(input.dtype)


@smooth(_sinc, 0.2, 2.0, module=("torch", "special"))
def sinc(F, grad, input):
    """sin(pi x) / (pi x), and 1 at 0."""
    angle = input * math.pi
    square = input * angle
    return F.where(square == 0, 0, grad * ((angle * F.cos(angle) - F.sin(angle)) / square))


arcsin, arccos, arctan, arctan2 = asin, acos, atan, atan2
arcsinh, arccosh, arctanh = asinh, acosh, atanh
