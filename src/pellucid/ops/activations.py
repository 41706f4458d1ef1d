"""Elementwise functions that neural networks put between their layers: smooth ones and the functional forms of all.

Those made of straight pieces (relu and its relatives) are declared in `rectifiers.py`; softmax and its relatives, which
look along a dimension, in `softmax.py`; those composed of others are in `functions/activations.py`.
"""

from __future__ import annotations

from pellucid.autograd.operator import Array, composite, operator
from pellucid.autograd.samples import unary
from pellucid.core.checks import require_kind
from pellucid.kernels import activations as kernels
from pellucid.ops.families import smooth
from pellucid.ops.rectifiers import functional, in_place_form, run

__all__ = ["celu", "selu", "sigmoid"]


def _beside_point(make):
    """Samples of a gradient: that of the result, and the point where the slope is taken."""
    yield (make(3, 4), make(3, 4)), {}


def _sigmoid(xp, input: Array):
    return kernels.sigmoid(input)


@smooth(_sigmoid, module=("torch", "nn.functional"))
def sigmoid(F, grad, result):
    """1 / (1 + exp(-x)), element by element, without overflow. Derivative: y (1 - y)."""
    return F.sigmoid_backward(grad, result)


composite(name="expit", module="special")(sigmoid)


@operator(module=None, elementwise=True)
class sigmoid_backward:
    """Gradient of `sigmoid`, from its result: grad * y * (1 - y)."""

    def forward(xp, input: Array, output: Array): return kernels.sigmoid_backward(input, output)
    def vjp_input(F, grad, output): return F.sigmoid_backward(grad, output)
    def vjp_output(F, grad, input, output): return grad * input * (1 - 2 * output)
    samples = _beside_point


@operator(module=None, node="LogSigmoidBackward0", elementwise=True)
class log_sigmoid:
    """log(sigmoid(x)), without overflow."""

    def forward(xp, input: Array):
        require_kind("log_sigmoid", input, "f")
        return kernels.log_sigmoid(input)

    def vjp_input(F, grad, input): return F.log_sigmoid_backward(grad, input)
    samples = unary()


@operator(module=None, elementwise=True)
class log_sigmoid_backward:
    """Gradient of `log_sigmoid`: input * sigmoid(-point)."""

    def forward(xp, input: Array, point: Array): return kernels.log_sigmoid_backward(input, point)
    def vjp_input(F, grad, point): return F.log_sigmoid_backward(grad, point)
    def vjp_point(F, grad, input, point): return -F.sigmoid_backward(grad * input, F.sigmoid(-point))
    samples = _beside_point


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
        return kernels.elu(input, alpha, scale, input_scale)

    def vjp_input(F, grad, input, alpha, scale, input_scale):
        return F.elu_backward(grad, input, alpha, scale, input_scale)

    def samples(make): yield (make(3, 4), 1.3, 1.0, 0.7), {}


@operator(module=None, elementwise=True)
class elu_backward:
    """Gradient of `elu_kernel`: input * scale for positive points, input times the slope of the exponential for the others."""

    def forward(xp, input: Array, point: Array, alpha: float, scale: float, input_scale: float):
        require_kind("elu_backward", point, "f")
        return kernels.elu_backward(input, point, alpha, scale, input_scale)

    def vjp_input(F, grad, point, alpha, scale, input_scale):
        return F.elu_backward(grad, point, alpha, scale, input_scale)

    def vjp_point(F, grad, input, point, alpha, scale, input_scale):
        bend = F.elu_backward(grad * input * input_scale, point, alpha, scale, input_scale)
        return F.where(point >= 0, 0, bend)

    def samples(make): yield (make(3, 4), make(3, 4), 1.3, 1.0, 0.7), {}


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


@operator(module=None, node="GeluBackward0", elementwise=True)
class gelu_exact:
    """x times the area under the normal density up to x."""

    def forward(xp, input: Array):
        require_kind("GeluKernelImpl", input, "f")
        return kernels.gelu(input)

    def vjp_input(F, grad, input): return F.gelu_backward(grad, input)
    samples = unary()


@operator(module=None, elementwise=True)
class gelu_backward:
    """Gradient of `gelu_exact`: input * (area up to the point + point * density there)."""

    def forward(xp, input: Array, point: Array): return kernels.gelu_backward(input, point)
    def vjp_input(F, grad, point): return F.gelu_backward(grad, point)

    def vjp_point(F, grad, input, point):
        square = point * point
        return grad * input * (F.exp(square * -0.5) * ((2 - square) * kernels.DENSITY))

    samples = _beside_point


@operator(module=None, node="GeluBackward0", elementwise=True)
class gelu_tanh:
    """The approximation of `gelu` by tanh: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))."""

    def forward(xp, input: Array):
        require_kind("GeluKernelImpl", input, "f")
        return kernels.gelu_tanh(input)

    def vjp_input(F, grad, input): return F.gelu_tanh_backward(grad, input)
    samples = unary()


@operator(module=None, elementwise=True)
class gelu_tanh_backward:
    """Gradient of `gelu_tanh`. With t the tanh of u: input * ((1 + t) / 2 + point * (1 - t^2) * u' / 2)."""

    def forward(xp, input: Array, point: Array): return kernels.gelu_tanh_backward(input, point)
    def vjp_input(F, grad, point): return F.gelu_tanh_backward(grad, point)

    def vjp_point(F, grad, input, point):
        square = point * point
        curve = F.tanh((point + point * square * kernels.CUBE) * kernels.INNER)
        slope = (square * (3 * kernels.CUBE) + 1) * kernels.INNER
        bend = point * point * (3 * kernels.CUBE * kernels.INNER) - point * curve * (slope * slope)
        return grad * input * ((1 - curve * curve) * (slope + bend))

    samples = _beside_point


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
        return kernels.silu(input)

    def vjp_input(F, grad, input): return F.silu_backward(grad, input)
    samples = unary()


@operator(module=None, elementwise=True)
class silu_backward:
    """Gradient of `silu`. With g the sigmoid of the point: input * g * (1 + point * (1 - g))."""

    def forward(xp, input: Array, point: Array): return kernels.silu_backward(input, point)
    def vjp_input(F, grad, point): return F.silu_backward(grad, point)

    def vjp_point(F, grad, input, point):
        gate = F.sigmoid(point)
        return F.sigmoid_backward(grad * input, gate) * (point * (1 - 2 * gate) + 2)

    samples = _beside_point


functional("silu", silu_kernel, "x * sigmoid(x) of each element, also called swish. input: [*S], floating-point.")


@operator(module=None, name="mish", node="MishBackward0", elementwise=True)
class mish_kernel:
    """x * tanh(softplus(x))."""

    def forward(xp, input: Array):
        require_kind("mish", input, "f")
        return kernels.mish(input)

    def vjp_input(F, grad, input): return F.mish_backward(grad, input)
    samples = unary()


@operator(module=None, elementwise=True)
class mish_backward:
    """Gradient of `mish`. With t the tanh of softplus and g the sigmoid: input * (t + point * (1 - t^2) * g)."""

    def forward(xp, input: Array, point: Array): return kernels.mish_backward(input, point)
    def vjp_input(F, grad, point): return F.mish_backward(grad, point)

    def vjp_point(F, grad, input, point):
        curve, gate = F.tanh(F.softplus(point, 1.0, 20.0)), F.sigmoid(point)
        return grad * input * ((1 - curve * curve) * gate * (2 + point * (1 - gate - 2 * curve * gate)))

    samples = _beside_point


functional("mish", mish_kernel, "x * tanh(softplus(x)) of each element. input: [*S], floating-point.")


# --- soft steps ------------------------------------------------------------------------------------------------------


@operator(module="nn.functional", elementwise=True)
class softplus:
    """log(1 + exp(beta x)) / beta, a smooth relu; x itself where beta x > threshold.

    input: [*S], floating-point. Returns [*S].
    Raises: RuntimeError for integers.
    """

    def forward(xp, input: Array, beta: float = 1.0, threshold: float = 20.0):
        require_kind("softplus", input, "f")
        return kernels.softplus(input, beta, threshold)

    def vjp_input(F, grad, input, beta, threshold): return F.softplus_backward(grad, input, beta, threshold)
    samples = unary()


@operator(module=None, elementwise=True)
class softplus_backward:
    """Gradient of `softplus`: input * sigmoid(beta * point); input itself where beta * point > threshold."""

    def forward(xp, input: Array, point: Array, beta: float, threshold: float):
        require_kind("softplus_backward", point, "f")
        return kernels.softplus_backward(input, point, beta, threshold)

    def vjp_input(F, grad, point, beta, threshold): return F.softplus_backward(grad, point, beta, threshold)

    def vjp_point(F, grad, input, point, beta, threshold):
        bend = F.sigmoid_backward(grad * input, F.sigmoid(point * beta)) * beta
        return F.where(point * beta > threshold, 0, bend)

    def samples(make): yield (make(3, 4), make(3, 4), 1.3, 1.0), {}


for _function in (elu, functional_selu, functional_celu):
    in_place_form(_function)
