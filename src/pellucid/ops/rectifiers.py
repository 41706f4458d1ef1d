"""Activations made of straight pieces: relu and its relatives, shrinking, clipping; with their functional forms.

Their gradients pass or do not pass, element by element, so their second derivatives are zero. Learnt and random slopes (prelu,
rrelu) are in `functions/activations.py`.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.call import inplace as write_in_place
from pellucid.autograd.operator import Array, Index, Promote, composite, operator
from pellucid.autograd.samples import unary
from pellucid.core.checks import require_kind, scalar_name
from pellucid.core.values import number_in
from pellucid.kernels import activations
from pellucid.kernels import rectifiers as kernel
from pellucid.ops.families import no_slope

__all__ = ["hardshrink", "relu", "threshold"]


def run(function, input, attributes: tuple, inplace: bool):
    """Call an operator, or write its result into its operand."""
    return write_in_place(function.operator, input, attributes) if inplace else function(input, *attributes)


def in_place_form(function) -> None:
    """Export `name_` beside a functional form that has an argument `inplace`."""
    name = f"{function.__name__.removeprefix('functional_')}_"

    def form(input, *args, **kwargs):
        return function(input, *args, inplace=True, **kwargs)

    form.__name__ = form.__qualname__ = name
    form.__doc__ = f"In-place form of `{name[:-1]}`: writes the result into `input` and returns it."
    composite(name=name, module="nn.functional")(form)


def functional(name: str, kernel, purpose: str, attributes: tuple = ()):
    """Declare a function of `nn.functional` that calls an operator, in place if asked to."""

    def form(input, inplace: bool = False):
        return run(kernel, input, attributes, inplace)

    form.__name__ = form.__qualname__ = name
    form.__doc__ = purpose
    return composite(module="nn.functional")(form)


# --- gradients of straight pieces --------------------------------------------------------------------------------------


def _gate(name: str, where: str, gated):
    """Declare what lets a gradient pass except where a point lies elsewhere: `gated(grad, point, low, high)`."""

    @operator(module=None, elementwise=True, name=name)
    class function:
        __doc__ = f"The gradient where `point` lies {where} (or is NaN), else zero."

        def forward(xp, input: Array, point: Array, low: float, high: float | None = None): return gated(input, point, low, high)
        def vjp_input(F, grad, point, low, high): return getattr(F, name)(grad, point, low, high)
        vjp_point = no_slope
        def samples(make): yield (make(3, 4), make(3, 4), -1.0, 1.0), {}


_gate("pass_above", "over a number", lambda grad, point, low, high: kernel.pass_above(grad, point, low))
_gate("pass_inside", "strictly between two numbers", kernel.pass_inside)
_gate("pass_outside", "outside of two numbers", lambda grad, point, low, high: np.where((point >= low) & (point <= high), 0, grad))


@operator(promote=Promote.SAME, numbers=("slope",), module=None)
class slope_below:
    """The gradient where `point` is positive, slope times the gradient elsewhere."""

    def forward(xp, input: Array, point: Array, slope: Array): return xp.where(point > 0, input, input * slope)
    def vjp_input(F, grad, point, slope): return F.slope_below(grad, point, slope)
    vjp_point = no_slope
    def vjp_slope(F, grad, input, point): return F.where(point > 0, 0, grad * input)

    def samples(make):
        yield (make(3, 4), make(3, 4), 0.1), {}
        yield (make(3, 4), make(3, 4), make(4)), {}


# --- relu ------------------------------------------------------------------------------------------------------------


@operator(method=True, inplace=True, exact=True, elementwise=True)
class relu:
    """max(x, 0) of each element. The derivative at 0 counts as 0.

    input: [*S], real, not bool. Returns [*S] of the same dtype.
    Raises: RuntimeError for bools and complex numbers.
    """

    def forward(xp, input: Array):
        if input.dtype.kind == "b":
            raise RuntimeError("Boolean inputs not supported for relu")
        require_kind("clamp_min_scalar_cpu", input, "fi")
        return kernel.relu(input)

    def vjp_input(F, grad, result): return F.pass_above(grad, result, 0)
    samples = unary()


functional_relu = functional("relu", relu, "max(x, 0) of each element; see `pellucid.relu`.")


@operator(module=None, exact=True, node="HardtanhBackward0", elementwise=True)
class hardtanh_kernel:
    """Each element between two numbers; the gradient is zero on them and outside, which the result shows as the input does."""

    def forward(xp, input: Array, min_val: float, max_val: float):
        require_kind("hardtanh_cpu", input, "fi")
        if input.dtype.kind == "u" and min(min_val, max_val) < 0:
            raise RuntimeError("cannot do hardtanh on an unsigned type with negative limits")
        return kernel.between(input, min_val, max_val)

    def vjp_input(F, grad, result, min_val, max_val): return F.pass_inside(grad, result, min_val, max_val)
    def samples(make): yield (make(3, 4), -1.0, 1.0), {}


@composite(module="nn.functional")
def hardtanh(input, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False):
    """Each element brought between `min_val` and `max_val`; the gradient is zero on the bounds and outside.

    Raises: ValueError (min_val > max_val).
    """
    if min_val > max_val:
        raise ValueError(f"min_val cannot be greater than max_val: got {min_val} and {max_val}")
    return run(hardtanh_kernel, input, (min_val, max_val), inplace)


functional("relu6", hardtanh_kernel, "min(max(x, 0), 6) of each element. input: [*S], real.", (0.0, 6.0))


@operator(module=None, name="leaky_relu", node="LeakyReluBackward0", elementwise=True)
class leaky_kernel:
    """x for positive x, negative_slope * x for the others."""

    def forward(xp, input: Array, negative_slope: float):
        require_kind("leaky_relu_cpu", input, "f")
        if 0 < negative_slope <= 1:
            return xp.maximum(input, input * negative_slope)
        return xp.where(input > 0, input, input * negative_slope)

    def vjp_input(F, grad, input, negative_slope): return F.slope_below(grad, input, negative_slope)
    def samples(make): yield (make(3, 4), 0.1), {}


@composite(module="nn.functional")
def leaky_relu(input, negative_slope: float = 0.01, inplace: bool = False):
    """x for positive x, negative_slope * x for the others. input: [*S], floating-point."""
    return run(leaky_kernel, input, (negative_slope,), inplace)


@operator(module=None, elementwise=True, node="PreluKernelBackward0")
class prelu_kernel:
    """x for positive x, weight * x for the others; weight broadcasts."""

    def forward(xp, input: Array, weight: Array): return xp.where(input > 0, input, weight * input)
    def vjp_input(F, grad, input, weight): return F.slope_below(grad, input, weight)
    def vjp_weight(F, grad, input): return F.where(input > 0, 0, grad * input)
    def samples(make): yield (make(2, 3, 4), make(3, 1)), {}


@operator(module=None, exact=True, node="RreluWithNoiseBackward0", elementwise=True)
class rrelu_kernel:
    """x for positive x, noise * x for the others."""

    def forward(xp, input: Array, noise: Index): return xp.where(input > 0, input, input * noise)
    def vjp_input(F, grad, input, noise): return F.slope_below(grad, input, noise)


@operator(module=None, exact=True, node="ThresholdBackward0", elementwise=True)
class threshold_kernel:
    """x where it is over the threshold, `value` elsewhere."""

    def forward(xp, input: Array, threshold: float, value: float):
        require_kind("threshold_cpu", input, "fi")
        return xp.where(input <= threshold, number_in(value, input.dtype), input)

    def vjp_input(F, grad, input, threshold): return F.pass_above(grad, input, threshold)
    def samples(make): yield (make(3, 4), 0.2, 5.0), {}


@composite()
def threshold(input, threshold: float, value: float):
    """x where it is over the threshold, `value` elsewhere. input: [*S], real."""
    return threshold_kernel(input, threshold, value)


@composite(name="threshold_")
def threshold_(input, threshold: float, value: float):
    """In-place form of `threshold`."""
    return run(threshold_kernel, input, (threshold, value), True)


@composite(name="threshold", module="nn.functional")
def functional_threshold(input, threshold: float, value: float, inplace: bool = False):
    """See `pellucid.threshold`."""
    return run(threshold_kernel, input, (threshold, value), inplace)


# --- hard forms of smooth functions ----------------------------------------------------------------------------------


@operator(module=None, exact=True, node="HardsigmoidBackward0", elementwise=True)
class hardsigmoid_kernel:
    """(x + 3) / 6 between 0 and 1."""

    def forward(xp, input: Array):
        require_kind("hardsigmoid", input, "f")
        return xp.minimum(xp.maximum(input + 3, 0), 6) / 6

    def vjp_input(F, grad, input): return F.pass_inside(grad / 6, input, -3.0, 3.0)
    samples = unary()


functional("hardsigmoid", hardsigmoid_kernel, "(x + 3) / 6, brought between 0 and 1. input: [*S], floating-point.")


@operator(module=None, node="HardswishBackward0", elementwise=True)
class hardswish_kernel:
    """x times `hardsigmoid` of x."""

    def forward(xp, input: Array):
        require_kind("hardswish", input, "f")
        return activations.hardswish(input)

    def vjp_input(F, grad, input): return F.hardswish_backward(grad, input)
    samples = unary()


@operator(module=None, elementwise=True)
class hardswish_backward:
    """Gradient of `hardswish`: 0 for points up to -3, input from 3 on, input * (point / 3 + 1/2) between."""

    def forward(xp, input: Array, point: Array): return activations.hardswish_backward(input, point)
    def vjp_input(F, grad, point): return F.hardswish_backward(grad, point)
    def vjp_point(F, grad, input, point): return F.pass_inside(grad * input / 3, point, -3.0, 3.0)
    def samples(make): yield (make(3, 4), make(3, 4)), {}


functional("hardswish", hardswish_kernel, "x times `hardsigmoid` of x. input: [*S], floating-point.")


@operator(method=True, exact=True, module=("torch", "nn.functional"), elementwise=True)
class hardshrink:
    """x, but zero where |x| <= lambd.

    input: [*S], floating-point. Returns [*S].
    Raises: RuntimeError for integers.
    """

    def forward(xp, input: Array, lambd: float = 0.5):
        require_kind("hardshrink_cpu", input, "f")
        return xp.where((input >= -lambd) & (input <= lambd), 0, input)

    def vjp_input(F, grad, input, lambd): return F.pass_outside(grad, input, -lambd, lambd)
    samples = unary()


@operator(module="nn.functional", exact=True, elementwise=True)
class softshrink:
    """x moved towards zero by lambd; zero where |x| <= lambd.

    input: [*S], floating-point. Returns [*S].
    Raises: RuntimeError for integers or a negative lambd.
    """

    def forward(xp, input: Array, lambd: float = 0.5):
        require_kind("softshrink_cpu", input, "f")
        if not 0 <= lambd <= np.finfo(input.dtype).max:
            top, kind = np.finfo(input.dtype).max, scalar_name(input)
            raise RuntimeError(f"lambda must be in range [0, {top:g}] for input dtype {kind}, but found {lambd:g}")
        return xp.where(input > lambd, input - lambd, xp.where(input < -lambd, input + lambd, input * 0))

    def vjp_input(F, grad, input, lambd): return F.pass_outside(grad, input, -lambd, lambd)
    samples = unary()


for _function in (functional_relu, leaky_relu, hardtanh, functional_threshold):
    in_place_form(_function)
