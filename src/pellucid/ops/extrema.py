"""The larger and the smaller: of two tensors, of a tensor and bounds. Maxima over dimensions live in `selection.py`."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Index, Promote, composite, operator
from pellucid.autograd.samples import binary
from pellucid.core.checks import no_tensor, require_kind
from pellucid.core.tensor import Tensor
from pellucid.kernels.arithmetic import log_of_exponentials
from pellucid.ops.arithmetic import no_derivative
from pellucid.ops.families import in_place, no_slope, of_two

__all__ = ["clamp", "clamp_", "clamp_max", "clamp_max_", "clamp_min", "clamp_min_", "clip", "copysign", "fmax",
           "fmin", "heaviside", "logaddexp", "logaddexp2", "maximum", "minimum", "nextafter"]  # fmt: skip


def _of_two(name: str, purpose: str, ufunc: np.ufunc, parts):
    """Declare the larger or the smaller of two elements, from the parts of the gradient: `parts(F, grad, input, other, which)`."""

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

        def vjp_input(F, grad, input, other): return parts(F, grad, input, other, 0)
        def vjp_other(F, grad, input, other): return parts(F, grad, input, other, 1)
        samples = binary()

    return function


def _either(F, grad, to_input, which: int):
    """The gradient where it goes to the operand `which`: to `input` where the condition holds."""
    return F.where(to_input, 0, grad) if which else F.where(to_input, grad, 0)


HALVES = "NaN if one of them is. Where they are equal each gets half of the gradient."
FIRST = "or the one that is not NaN. Where they are equal the gradient goes to `input`."
maximum = _of_two("maximum", f"The larger of two elements; {HALVES}", np.maximum,
                  lambda F, grad, a, b, which: F.share(grad, b, a) if which else F.share(grad, a, b))  # fmt: skip
minimum = _of_two("minimum", f"The smaller of two elements; {HALVES}", np.minimum,
                  lambda F, grad, a, b, which: F.share(grad, a, b) if which else F.share(grad, b, a))  # fmt: skip
fmax = _of_two("fmax", f"The larger of two elements, {FIRST}", np.fmax,
               lambda F, grad, a, b, which: _either(F, grad, (a >= b) | F.isnan(b), which))  # fmt: skip
fmin = _of_two("fmin", f"The smaller of two elements, {FIRST}", np.fmin,
               lambda F, grad, a, b, which: _either(F, grad, (a <= b) | F.isnan(b), which))  # fmt: skip


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
        raise no_tensor("clamp", "input", input)
    for bound in bounds:
        if bound is not None and bound.__class__ is not float and bound.__class__ is not int:
            return False
    return input._array.dtype.kind == "f"


def _form(input, min=None, max=None):
    """The operator for a tensor and bounds."""
    return clamp_number if _plain(input, min, max) else clamp_tensor


clamp_ = in_place("clamp_", lambda input, min=None, max=None: (_form(input, min, max), min, max))
clamp_min_ = in_place("clamp_min_", lambda input, min: (_form(input, min), min, None))
clamp_max_ = in_place("clamp_max_", lambda input, max: (_form(input, None, max), None, max))


@composite(method=True, alias=["clip"], inplace=clamp_)
def clamp(input, min=None, max=None, *, out=None):
    """Each element brought between `min` and `max`; NaN stays NaN. The gradient is zero where an element was outside.

    input: [*S], real.
    min, max: numbers or tensors that broadcast with input; one may be None. Where min > max, max wins.
    Raises: RuntimeError (both bounds are None, or complex operands).
    """
    if min is None and max is None:
        raise RuntimeError("torch.clamp: At least one of 'min' or 'max' must not be None")
    return _form(input, min, max)(input, min, max, out=out)


@composite(method=True, inplace=clamp_min_)
def clamp_min(input, min, *, out=None):
    """Each element, but at least `min`, a number or tensor; see `clamp`."""
    return clamp(input, min, out=out)


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

    forward = of_two(np.copysign, "copysign_cpu")
    def vjp_input(F, grad, input, result): return F.where(input == 0, 0, grad * (result / input))
    vjp_other = no_slope
    samples = binary(low=0.3, high=2.0)


def _log_of_sum(name: str, purpose: str, kinds: str, ufunc: np.ufunc, power: str):
    """Declare the logarithm of the sum of two powers, from the name of the power."""

    @operator(promote=Promote.SAME, method=True, name=name, ufunc=ufunc)
    class function:
        __doc__ = f"""{purpose}, without overflow.

        input, other: {"any" if "c" in kinds else "real"}, broadcastable to a common shape. Returns the common shape and dtype.
        """

        def forward(xp, input: Array, other: Array):
            require_kind(f"{name}_cpu", input, kinds)
            return log_of_exponentials(input, other) if input.dtype.kind == "c" else ufunc(input, other)

        def vjp_input(F, grad, input, other): return grad / (1 + getattr(F, power)(other - input))
        def vjp_other(F, grad, input, other): return grad / (1 + getattr(F, power)(input - other))
        samples = binary()

    return function


logaddexp = _log_of_sum("logaddexp", "log(exp(input) + exp(other))", "fc", np.logaddexp, "exp")
logaddexp2 = _log_of_sum("logaddexp2", "log2(2^input + 2^other)", "f", np.logaddexp2, "exp2")


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


@operator(promote=Promote.SAME, method=True, inplace=True)
class nextafter:
    """The next representable number after `input` in the direction of `other`. The gradient passes where they differ.

    input, other: floating-point, broadcastable to a common shape. Returns the common shape and dtype.
    """

    forward = of_two(np.nextafter, "nextafter_cpu")
    def vjp_input(F, grad, input, other): return F.where(input == other, 0, grad)
    vjp_other = no_slope


clip = clamp
