"""Trigonometric and hyperbolic functions, their inverses, and what is measured with them (atan2, hypot, sinc)."""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import Array, Promote, operator
from pellucid.autograd.samples import binary, unary
from pellucid.ops.checks import require_kind

__all__ = ["acos", "acosh", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2", "arctanh", "asin", "asinh",
           "atan", "atan2", "atanh", "cos", "cosh", "hypot", "sin", "sinc", "sinh", "tan", "tanh"]

smooth = {"promote": Promote.FLOAT, "method": True, "inplace": True}


@operator(**smooth, ufunc=np.sin)
class sin:
    """Sine of each element, in radians.

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return xp.sin(input)

    def vjp_input(F, grad, input):
        return grad * F.cos(input)

    samples = unary()


@operator(**smooth, ufunc=np.cos)
class cos:
    """Cosine of each element, in radians.

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return xp.cos(input)

    def vjp_input(F, grad, input):
        return -grad * F.sin(input)

    samples = unary()


@operator(**smooth, ufunc=np.tan)
class tan:
    """Tangent of each element, in radians.

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return xp.tan(input)

    def vjp_input(F, grad, result):
        return grad * (1 + result * result)

    samples = unary(-1.2, 1.2)


@operator(**smooth, ufunc=np.arcsin, alias=["arcsin"])
class asin:
    """Inverse sine, in [-pi/2, pi/2]; NaN outside [-1, 1].

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return xp.arcsin(input)

    def vjp_input(F, grad, input):
        return grad * F.rsqrt(1 - input * input)

    samples = unary(-0.9, 0.9)


@operator(**smooth, ufunc=np.arccos, alias=["arccos"])
class acos:
    """Inverse cosine, in [0, pi]; NaN outside [-1, 1].

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return xp.arccos(input)

    def vjp_input(F, grad, input):
        return -grad * F.rsqrt(1 - input * input)

    samples = unary(-0.9, 0.9)


@operator(**smooth, ufunc=np.arctan, alias=["arctan"])
class atan:
    """Inverse tangent, in [-pi/2, pi/2].

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return xp.arctan(input)

    def vjp_input(F, grad, input):
        return grad / (input * input + 1)

    samples = unary()


@operator(**smooth, ufunc=np.sinh)
class sinh:
    """Hyperbolic sine.

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return xp.sinh(input)

    def vjp_input(F, grad, input):
        return grad * F.cosh(input)

    samples = unary()


@operator(**smooth, ufunc=np.cosh)
class cosh:
    """Hyperbolic cosine.

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return xp.cosh(input)

    def vjp_input(F, grad, input):
        return grad * F.sinh(input)

    samples = unary()


@operator(**smooth, ufunc=np.tanh, module=("torch", "nn.functional"))
class tanh:
    """Hyperbolic tangent. Derivative: 1 - y^2.

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return xp.tanh(input)

    def vjp_input(F, grad, result):
        return F.tanh_backward(grad, result)

    samples = unary()


@operator(module=None)
class tanh_backward:
    """Gradient of `tanh`, from its result: grad * (1 - y^2)."""

    def forward(xp, input: Array, output: Array):
        return input * (1 - output * output)

    def vjp_input(F, grad, output):
        return F.tanh_backward(grad, output)

    def vjp_output(F, grad, input, output):
        return grad * input * output * -2

    def samples(make):
        yield (make(3, 4), make(3, 4)), {}


@operator(**smooth, ufunc=np.arcsinh, alias=["arcsinh"])
class asinh:
    """Inverse hyperbolic sine.

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return xp.arcsinh(input)

    def vjp_input(F, grad, input):
        return grad * F.rsqrt(input * input + 1)

    samples = unary()


@operator(**smooth, ufunc=np.arccosh, alias=["arccosh"])
class acosh:
    """Inverse hyperbolic cosine; NaN below 1.

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return xp.arccosh(input)

    def vjp_input(F, grad, input):
        # two roots, not one of x^2 - 1: the branch is right for complex numbers, and large numbers do not overflow
        return grad * F.rsqrt(input - 1) * F.rsqrt(input + 1)

    samples = unary(1.2, 3.0)


@operator(**smooth, ufunc=np.arctanh, alias=["arctanh"])
class atanh:
    """Inverse hyperbolic tangent; NaN outside [-1, 1].

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        return xp.arctanh(input)

    def vjp_input(F, grad, input):
        return grad / (1 - input * input)

    samples = unary(-0.9, 0.9)


@operator(**smooth, ufunc=np.arctan2, alias=["arctan2"])
class atan2:
    """The angle of the point (other, input), in [-pi, pi]: the inverse tangent of input / other, in the right quadrant.

    input, other: real, broadcastable to a common shape. Returns the common shape, integers as the default float.
    """

    def forward(xp, input: Array, other: Array):
        require_kind("atan2_cpu", input, "f")
        return xp.arctan2(input, other)

    def vjp_input(F, grad, input, other):
        return F.where((input == 0) & (other == 0), 0, grad * other / (input * input + other * other))

    def vjp_other(F, grad, input, other):
        return F.where((input == 0) & (other == 0), 0, -grad * input / (input * input + other * other))

    samples = binary(low=0.3, high=2.0)


@operator(promote=Promote.SAME, method=True, inplace=True)
class hypot:
    """The hypotenuse: sqrt(input^2 + other^2), without overflow.

    input, other: floating-point, broadcastable to a common shape. Returns the common shape and dtype.
    """

    def forward(xp, input: Array, other: Array):
        require_kind("hypot_cpu", input, "f")
        return xp.hypot(input, other)

    def vjp_input(F, grad, input, result):
        return grad * (input / result)

    def vjp_other(F, grad, other, result):
        return grad * (other / result)

    samples = binary(low=0.3, high=2.0)


@operator(**smooth, module=("torch", "special"))
class sinc:
    """sin(pi x) / (pi x), and 1 at 0.

    input: [*S]. Returns [*S], integers as the default float.
    """

    def forward(xp, input: Array):
        angle = input * input.dtype.type(math.pi)
        return xp.where(input == 0, 1, xp.sin(angle) / angle).astype(input.dtype)

    def vjp_input(F, grad, input):
        angle = input * math.pi
        slope = grad * ((angle * F.cos(angle) - F.sin(angle)) / angle / input)
        return F.where(input == 0, 0, slope)

    samples = unary(0.2, 2.0)


arcsin, arccos, arctan, arctan2 = asin, acos, atan, atan2
arcsinh, arccosh, arctanh = asinh, acosh, atanh
