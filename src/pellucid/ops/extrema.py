"""The larger and the smaller: of two tensors, of a tensor and bounds. Maxima over dimensions live in `selection.py`."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.call import inplace
from pellucid.autograd.operator import Array, Index, Promote, composite, operator
from pellucid.autograd.samples import binary
from pellucid.core.tensor import Tensor
from pellucid.ops.arithmetic import mul, no_derivative
from pellucid.ops.checks import require_kind
from pellucid.ops.families import no_slope
from pellucid.ops.powers import rpow

__all__ = ["clamp", "clamp_", "clamp_max", "clamp_max_", "clamp_min", "clamp_min_", "clip", "copysign", "fmax",
           "fmin", "heaviside", "ldexp", "logaddexp", "logaddexp2", "maximum", "minimum", "nextafter"]  # fmt: skip


def _of_two(name: str, purpose: str, ufunc: np.ufunc, of_input, of_other):
    """Declare the larger or the smaller of two elements, from the parts of the gradient that each of them gets."""

    @operator(promote=Promote.SAME, exact=True, method=True, name=name, ufunc=ufunc)
    class function:
        __doc__ = f"""{purpose}

        input, other: real, broadcastable to a common shape. Returns the common shape and dtype.
        Raises: RuntimeError for complex operands.
        """

        def forward(xp, input: Array, other: Array):
            if input.dtype.kind == "c":
                raise RuntimeError(f"{name} not implemented for complex tensors.")
            return ufunc(input, other)

        def vjp_input(F, grad, input, other): return of_input(F, grad, input, other)
        def vjp_other(F, grad, input, other): return of_other(F, grad, input, other)
        samples = binary()

    return function


maximum = _of_two(
    "maximum",
    "The larger of two elements; NaN if one of them is. Where they are equal each gets half of the gradient.",
    np.maximum,
    lambda F, grad, input, other: F.share(grad, input, other),
    lambda F, grad, input, other: F.share(grad, other, input),
)
minimum = _of_two(
    "minimum",
    "The smaller of two elements; NaN if one of them is. Where they are equal each gets half of the gradient.",
    np.minimum,
    lambda F, grad, input, other: F.share(grad, other, input),
    lambda F, grad, input, other: F.share(grad, input, other),
)
fmax = _of_two(
    "fmax",
    "The larger of two elements, or the one that is not NaN. Where they are equal the gradient goes to `input`.",
    np.fmax,
    lambda F, grad, input, other: F.where((input >= other) | F.isnan(other), grad, 0),
    lambda F, grad, input, other: F.where((input >= other) | F.isnan(other), 0, grad),
)
fmin = _of_two(
    "fmin",
    "The smaller of two elements, or the one that is not NaN. Where they are equal the gradient goes to `input`.",
    np.fmin,
    lambda F, grad, input, other: F.where((input <= other) | F.isnan(other), grad, 0),
    lambda F, grad, input, other: F.where((input <= other) | F.isnan(other), 0, grad),
)


@operator(module=None, elementwise=True)
class share:
    """The gradient, but half of it where both are equal and zero where `upper` is the smaller one."""

    def forward(xp, input: Array, upper: Index, lower: Index):
        return xp.where(upper < lower, 0, xp.where(upper == lower, input / 2, input))

    def vjp_input(F, grad, upper, lower): return F.share(grad, upper, lower)


# --- bounds ----------------------------------------------------------------------------------------------------------


def bounded(xp, input, min, max):
    """The operand brought between two bounds, either of which may be None; where they cross, max wins."""
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if input.dtype.kind == "c":
        raise NotImplementedError("clamp is not supported for complex types")
    if min is not None:
        input = xp.maximum(input, min)
    return input if max is None else xp.minimum(input, max)


@operator(module=None, exact=True, node="ClampBackward1", elementwise=True)
class clamp_number:
    """A floating-point tensor between two numbers."""

    def forward(xp, input: Array, min: float | None, max: float | None): return bounded(xp, input, min, max)
    def vjp_input(F, grad, input, min, max): return F.within(grad, input, min, max)

    def samples(make):
        yield (make(3, 4), -1.0, 1.0), {}
        yield (make(3, 4), None, 1.0), {}


@operator(module=None, elementwise=True)
class within:
    """The gradient where `point` lies between two numbers (or on them), else zero."""

    def forward(xp, input: Array, point: Index, min: float | None, max: float | None):
        inside = point >= min if max is None else point <= max if min is None else (point >= min) & (point <= max)
        return xp.where(inside, input, 0)

    def vjp_input(F, grad, point, min, max): return F.within(grad, point, min, max)


@operator(promote=Promote.SAME, numbers=("min", "max"), exact=True, module=None, node="ClampBackward0")
class clamp_tensor:
    """A tensor between two bounds of any kind."""

    def forward(xp, input: Array, min: Array | None = None, max: Array | None = None):
        return bounded(xp, input, min, max)

    def vjp_input(F, grad, input, min, max):
        if min is None or max is None:
            return F.where(input > max if min is None else input < min, 0, grad)
        return F.where((input < min) | (input > max), 0, grad)

    def vjp_min(F, grad, input, min, max):
        below = input < min
        return F.where(below if max is None else below & (min < max), grad, 0)

    def vjp_max(F, grad, input, min, max):
        above = input > max
        return F.where(above if min is None else above | (max < min), grad, 0)

    def samples(make):
        yield (make(3, 4), make(4, low=-1.0, high=-0.5), make(3, 1, low=0.5, high=1.0)), {}
        yield (make(3, 4), None, make(4)), {}


def _plain(input, *bounds) -> bool:
    """Whether no promotion can happen: a floating-point tensor and real numbers."""
    if not isinstance(input, Tensor):
        raise TypeError(f"clamp(): argument 'input' must be Tensor, not {type(input).__name__}")
    for bound in bounds:
        if bound is not None and bound.__class__ is not float and bound.__class__ is not int:
            return False
    return input._array.dtype.kind == "f"


def clamp_(input, min=None, max=None):
    """In-place form of `clamp`."""
    return inplace((clamp_number if _plain(input, min, max) else clamp_tensor).operator, input, (min, max))


@composite(method=True, alias=["clip"], inplace=clamp_)
def clamp(input, min=None, max=None, *, out=None):
    """Each element brought between `min` and `max`; NaN stays NaN. The gradient is zero where an element was outside.

    input: [*S], real.
    min, max: numbers or tensors that broadcast with input; one may be None. Where min > max, max wins.
    Raises: RuntimeError (both bounds are None, or complex operands).
    """
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    if _plain(input, min, max):
        return clamp_number(input, min, max, out=out)
    return clamp_tensor(input, min, max, out=out)


def clamp_min_(input, min):
    """In-place form of `clamp_min`."""
    return clamp_(input, min)


@composite(method=True, inplace=clamp_min_)
def clamp_min(input, min, *, out=None):
    """Each element, but at least `min`, a number or tensor; see `clamp`."""
    return clamp(input, min, out=out)


def clamp_max_(input, max):
    """In-place form of `clamp_max`."""
    return clamp_(input, None, max)


@composite(method=True, inplace=clamp_max_)
def clamp_max(input, max, *, out=None):
    """Each element, but at most `max`, a number or tensor; see `clamp`."""
    return clamp(input, None, max, out=out)


# --- magnitudes, steps and neighbours --------------------------------------------------------------------------------


@operator(promote=Promote.FLOAT, numbers=("other",), method=True, inplace=True)
class copysign:
    """The magnitude of `input` with the sign of `other` (its sign bit: -0.0 is negative).

    input, other: real, broadcastable to a common shape. Returns the common shape, integers as the default float.
    """

    def forward(xp, input: Array, other: Array):
        require_kind("copysign_cpu", input, "f")
        return xp.copysign(input, other)

    def vjp_input(F, grad, input, result): return F.where(input == 0, 0, grad * (result / input))
    vjp_other = no_slope
    samples = binary(low=0.3, high=2.0)


@operator(promote=Promote.SAME, method=True, ufunc=np.logaddexp)
class logaddexp:
    """log(exp(input) + exp(other)), without overflow.

    input, other: broadcastable to a common shape. Returns the common shape and dtype.
    """

    def forward(xp, input: Array, other: Array):
        require_kind("logaddexp_cpu", input, "fc")
        if input.dtype.kind == "c":
            upper = xp.where(input.real >= other.real, input, other)
            return xp.log(xp.exp(input - upper) + xp.exp(other - upper)) + upper
        return xp.logaddexp(input, other)

    def vjp_input(F, grad, input, other): return grad / (1 + F.exp(other - input))
    def vjp_other(F, grad, input, other): return grad / (1 + F.exp(input - other))
    samples = binary()


@operator(promote=Promote.SAME, method=True)
class logaddexp2:
    """log2(2^input + 2^other), without overflow.

    input, other: real, broadcastable to a common shape. Returns the common shape and dtype.
    """

    def forward(xp, input: Array, other: Array):
        require_kind("logaddexp2_cpu", input, "f")
        return xp.logaddexp2(input, other)

    def vjp_input(F, grad, input, other): return grad / (1 + F.exp2(other - input))
    def vjp_other(F, grad, input, other): return grad / (1 + F.exp2(input - other))
    samples = binary()


@operator(method=True, inplace=True, broadcast=True, elementwise=True)
class heaviside:
    """The step function: 0 for negative input, 1 for positive, `values` at zero. Not differentiable.

    input, values: real, of one dtype, broadcastable to a common shape. Returns the common shape.
    Raises: RuntimeError for different dtypes or complex operands.
    """

    def forward(xp, input: Array, values: Array):
        if "c" in (input.dtype.kind, values.dtype.kind):
            raise RuntimeError("heaviside is not yet implemented for complex tensors.")
        if input.dtype != values.dtype:
            raise RuntimeError(
                f"heaviside is not yet implemented for tensors with different dtypes: {input.dtype.name}, {values.dtype.name}"
            )
        return xp.where(input == 0, values, input > 0).astype(input.dtype)

    def vjp_input(F, grad): raise no_derivative("heaviside")
    vjp_values = vjp_input


@operator(module=None, name="ldexp", node="LdexpBackward0", broadcast=True, elementwise=True)
class ldexp_integer:
    """input * 2^other for floating-point numbers and integer exponents, exact where the power alone would overflow.

    PyTorch takes the power of the derivative in the exponent's own dtype, so that it is 0 for a negative exponent; not so here.
    """

    def forward(xp, input: Array, other: Index):
        if other.dtype.kind == "b":
            raise NotImplementedError("\"ldexp_cpu_exp\" not implemented for 'Bool'")
        return xp.ldexp(input, other)

    def vjp_input(F, grad, other): return F.ldexp(grad, other)
    def samples(make): yield (make(3, 4), make.integers(4, low=-3, high=4)), {}


def _floating_with_integer(input, other) -> bool:
    for name, value in (("input", input), ("other", other)):
        if not isinstance(value, Tensor):
            raise TypeError(f"ldexp(): argument '{name}' must be Tensor, not {type(value).__name__}")
    return input.is_floating_point() and other._array.dtype.kind in "iub"


def ldexp_(input, other):
    """In-place form of `ldexp`."""
    if _floating_with_integer(input, other):
        return inplace(ldexp_integer.operator, input, (other,))
    return input.mul_(rpow(other, 2.0))


@composite(method=True, inplace=ldexp_)
def ldexp(input, other, *, out=None):
    """input * 2^other, element by element, in the common dtype; with integer exponents in that of a floating-point input."""
    if _floating_with_integer(input, other):
        return ldexp_integer(input, other, out=out)
    return mul(input, rpow(other, 2.0), out=out)


@operator(promote=Promote.SAME, method=True, inplace=True)
class nextafter:
    """The next representable number after `input` in the direction of `other`. The gradient passes where they differ.

    input, other: floating-point, broadcastable to a common shape. Returns the common shape and dtype.
    """

    def forward(xp, input: Array, other: Array):
        require_kind("nextafter_cpu", input, "f")
        return xp.nextafter(input, other)

    def vjp_input(F, grad, input, other): return F.where(input == other, 0, grad)
    vjp_other = no_slope


clip = clamp
