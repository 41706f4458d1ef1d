"""Elementwise functions that neural networks put between their layers: smooth ones and the functional forms of all.

Those made of straight pieces (relu and its relatives) are declared in `rectifiers.py`; softmax and its relatives, which
look along a dimension, in `softmax.py`.
"""

from __future__ import annotations

import importlib
import math

import numpy as np

from pellucid.autograd.operator import Array, composite, operator
from pellucid.autograd.samples import unary
from pellucid.ops.checks import require_kind
from pellucid.ops.families import smooth
from pellucid.ops.rectifiers import functional, in_place_form, run

__all__ = ["celu", "selu", "sigmoid"]


def _sigmoid(xp, input: Array):
    if input.dtype.kind == "c":
        return 1 / (1 + xp.exp(-input))
    # exp(-x) overflows to infinity for very negative x, whose reciprocal is the right zero
    if not input.ndim:
        return xp.reciprocal(xp.exp(-input) + 1)
    value = xp.negative(input)
    xp.exp(value, value)
    xp.add(value, 1, value)
    return xp.reciprocal(value, value)


@smooth(_sigmoid, module=("torch", "nn.functional"))
def sigmoid(F, grad, result):
    """1 / (1 + exp(-x)), element by element, without overflow. Derivative: y (1 - y)."""
    return F.sigmoid_backward(grad, result)


composite(name="expit", module="special")(sigmoid)


@operator(module=None, elementwise=True)
class sigmoid_backward:
    """Gradient of `sigmoid`, from its result: grad * y * (1 - y)."""

    def forward(xp, input: Array, output: Array): return input * (output * (1 - output))
    def vjp_input(F, grad, output): return F.sigmoid_backward(grad, output)
    def vjp_output(F, grad, input, output): return grad * input * (1 - 2 * output)
    def samples(make): yield (make(3, 4), make(3, 4)), {}


@operator(module=None, node="LogSigmoidBackward0", elementwise=True)
class log_sigmoid:
    """log(sigmoid(x)), without overflow."""

    def forward(xp, input: Array):
        require_kind("log_sigmoid", input, "f")
        return xp.minimum(input, 0) - xp.log1p(xp.exp(-xp.absolute(input)))

    def vjp_input(F, grad, input): return grad * F.sigmoid(-input)
    samples = unary()


@composite(module="nn.functional")
def logsigmoid(input):
    """log(sigmoid(x)) of each element, without overflow. input: [*S], floating-point; integers raise RuntimeError."""
    return log_sigmoid(input)


# --- exponential linear units ----------------------------------------------------------------------------------------


@operator(module=None, node="EluBackward0", elementwise=True)
class elu_kernel:
    """scale * x for positive x, scale * alpha * (exp(input_scale * x) - 1) for the others."""

    def forward(xp, input: Array, alpha: float, scale: float, input_scale: float):
        require_kind("elu", input, "f")
        low = xp.expm1(xp.minimum(0, input) * input_scale) * (alpha * scale)  # 0 first: -0 stays what it is
        return xp.where(input > 0, input * scale, low)

    def vjp_input(F, grad, input, alpha, scale, input_scale):
        # the exponential is taken of the negative part only: that of a large number is infinite, and 0 * inf is NaN
        bend = F.exp(F.where(input >= 0, 0, input) * input_scale) * (input_scale * alpha * scale)
        return F.where(input > 0, grad * scale, grad * bend)

    def samples(make): yield (make(3, 4), 1.3, 1.0, 0.7), {}


SELU_ALPHA, SELU_SCALE = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946


@composite(module="nn.functional")
def elu(input, alpha: float = 1.0, inplace: bool = False):
    """x for positive x, alpha * (exp(x) - 1) for the others. input: [*S], floating-point."""
    return run(elu_kernel, input, (alpha, 1.0, 1.0), inplace)


functional_selu = functional(
    "selu", elu_kernel, "See `pellucid.selu`.", (SELU_ALPHA, SELU_SCALE, 1.0)
)


@composite()
def selu(input):
    """The self-normalising form of `elu`: scale * elu(x, alpha) with two fixed constants. input: [*S], floating-point."""
    return functional_selu(input)


@composite(name="selu_")
def selu_(input):
    """In-place form of `selu`."""
    return functional_selu(input, True)


@composite()
def celu(input, alpha: float = 1.0):
    """max(0, x) + min(0, alpha * (exp(x / alpha) - 1)): `elu` with a continuous slope. input: [*S], floating-point.

    Raises: RuntimeError (alpha is zero).
    """
    return functional_celu(input, alpha)


@composite(name="celu_")
def celu_(input, alpha: float = 1.0):
    """In-place form of `celu`."""
    return functional_celu(input, alpha, True)


@composite(name="celu", module="nn.functional")
def functional_celu(input, alpha: float = 1.0, inplace: bool = False):
    """See `pellucid.celu`."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return run(elu_kernel, input, (alpha, 1.0, 1.0 / alpha), inplace)


# --- gates -----------------------------------------------------------------------------------------------------------


def error_function(array: np.ndarray) -> np.ndarray:
    """erf, from SciPy."""
    return importlib.import_module("scipy.special").erf(array)  # slow import


@operator(module=None, node="GeluBackward0", elementwise=True)
class gelu_exact:
    """x times the area under the normal density up to x."""

    def forward(xp, input: Array):
        require_kind("GeluKernelImpl", input, "f")
        return input * (error_function(input * math.sqrt(0.5)) + 1) * 0.5

    def vjp_input(F, grad, input):
        area = (F.erf(input * math.sqrt(0.5)) + 1) * 0.5
        return grad * (area + input * F.exp(input * input * -0.5) * (1 / math.sqrt(2 * math.pi)))

    samples = unary()


@operator(module=None, node="GeluBackward0", elementwise=True)
class gelu_tanh:
    """The approximation of `gelu` by tanh: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))."""

    def forward(xp, input: Array):
        require_kind("GeluKernelImpl", input, "f")
        inner = (input + 0.044715 * input * input * input) * math.sqrt(2 / math.pi)
        return input * (xp.tanh(inner) + 1) * 0.5

    def vjp_input(F, grad, input):
        square = input * input
        curve = F.tanh((input + input * square * 0.044715) * math.sqrt(2 / math.pi))
        slope = (square * (3 * 0.044715) + 1) * math.sqrt(2 / math.pi)
        return grad * ((curve + 1) * 0.5 + input * ((1 - curve * curve) * slope) * 0.5)

    samples = unary()


@composite(module="nn.functional")
def gelu(input, *, approximate: str = "none"):
    """x times the area under the normal density up to x.

    input: [*S], floating-point.
    approximate: "none" for the exact function, "tanh" for the approximation by tanh.
    Raises: RuntimeError (another approximation, or integers).
    """
    if approximate not in ("none", "tanh"):
        raise RuntimeError(f"approximate argument must be either none or tanh, got {approximate!r}.")
    return gelu_exact(input) if approximate == "none" else gelu_tanh(input)


@operator(module=None, name="silu", node="SiluBackward0", elementwise=True)
class silu_kernel:
    """x * sigmoid(x)."""

    def forward(xp, input: Array):
        require_kind("silu_cpu", input, "fc")
        return input / (xp.exp(-input) + 1)

    def vjp_input(F, grad, input):
        gate = F.sigmoid(input)
        return grad * (gate * (input * (1 - gate) + 1))

    samples = unary()


functional("silu", silu_kernel, "x * sigmoid(x) of each element, also called swish. input: [*S], floating-point.")


@operator(module=None, name="mish", node="MishBackward0", elementwise=True)
class mish_kernel:
    """x * tanh(softplus(x))."""

    def forward(xp, input: Array):
        require_kind("mish", input, "f")
        return input * xp.tanh(softened(xp, input, 1.0, 20.0))

    def vjp_input(F, grad, input):
        curve = F.tanh(F.softplus(input, 1.0, 20.0))
        return grad * (curve + input * (1 - curve * curve) * F.sigmoid(input))

    samples = unary()


functional("mish", mish_kernel, "x * tanh(softplus(x)) of each element. input: [*S], floating-point.")


@composite(module="nn.functional")
def glu(input, dim: int = -1):
    """The first half along `dim`, times the sigmoid of the second half.

    input: [*S] with S[dim] even, floating-point. Returns [*S] with half of that dimension.
    Raises: RuntimeError (a 0-d tensor, or an odd dimension).
    """
    if not input._array.ndim:
        raise RuntimeError("glu does not support scalars because halving size must be even")
    size = input.size(dim)
    if size % 2:
        raise RuntimeError(f"Halving dimension must be even, but dimension {dim} is size {size}")
    first, second = input.split(size // 2, dim) if size else (input, input)
    return first * sigmoid(second)


# --- soft steps ------------------------------------------------------------------------------------------------------


def softened(xp, input: np.ndarray, beta: float, threshold: float) -> np.ndarray:
    """log(1 + exp(beta x)) / beta, and x itself where beta x is over the threshold."""
    scaled = input * beta
    return xp.where(scaled > threshold, input, xp.log1p(xp.exp(scaled)) / beta)


@operator(module="nn.functional", elementwise=True)
class softplus:
    """log(1 + exp(beta x)) / beta, a smooth relu; x itself where beta x > threshold.

    input: [*S], floating-point. Returns [*S].
    Raises: RuntimeError for integers.
    """

    def forward(xp, input: Array, beta: float = 1.0, threshold: float = 20.0):
        require_kind("softplus", input, "f")
        return softened(xp, input, beta, threshold)

    def vjp_input(F, grad, input, beta, threshold):
        return F.where(input * beta > threshold, grad, grad * F.sigmoid(input * beta))

    samples = unary()


@composite(module="nn.functional")
def softsign(input):
    """x / (1 + |x|) of each element. input: [*S]. Returns [*S], integers as the default float."""
    return input / (input.abs() + 1)


@composite(module="nn.functional")
def tanhshrink(input):
    """x - tanh(x) of each element. input: [*S]. Returns [*S], integers as the default float."""
    return input - input.tanh()


for _function in (elu, functional_selu, functional_celu):
    in_place_form(_function)
