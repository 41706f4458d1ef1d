"""Arithmetic of two operands: sum, difference, product, quotient, remainder, and what is built of them.

Formulas are those of real arithmetic; the machinery makes the complex gradients of holomorphic operators from them,
undoes broadcasting and promotion, and accepts Python numbers for either operand. Powers live in `powers.py`, maxima and
clamping in `extrema.py`.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.call import inplace
from pellucid.autograd.operator import Array, Promote, composite, operator
from pellucid.autograd.samples import binary, unary
from pellucid.core.checks import require_kind
from pellucid.core.values import number_in
from pellucid.kernels.arithmetic import floored, floored_remainder, truncated

__all__ = ["add", "addcdiv", "addcmul", "div", "div_", "divide", "floor_divide", "fmod", "lerp", "mul", "multiply",
           "neg", "negative", "remainder", "rsub", "sub", "subtract", "true_divide"]  # fmt: skip

arithmetic = {"promote": Promote.SAME, "exact": True, "method": True, "inplace": True}
ROUNDING = (None, "trunc", "floor")


def scaled(array: np.ndarray, alpha) -> np.ndarray:
    """alpha * array in the array's own dtype; RuntimeError where PyTorch refuses such a factor."""
    kind = array.dtype.kind
    if isinstance(alpha, bool) and kind != "b":
        raise RuntimeError("Boolean alpha only supported for Boolean results.")
    if isinstance(alpha, float) and kind in "iub":
        raise RuntimeError("For integral input tensors, argument alpha must not be a floating point number.")
    if isinstance(alpha, complex) and kind != "c":
        raise RuntimeError("For non-complex input tensors, argument alpha must not be a complex number.")
    return array * number_in(alpha, array.dtype)


@operator(**arithmetic, numbers=True, ufunc=np.add, dunder=["__add__"], idunder=["__iadd__"])
class add:
    """Sum of two tensors, the second scaled: input + alpha * other.

    input, other: broadcastable to a common shape. Returns the common shape and dtype.
    Raises: RuntimeError for an alpha of a higher kind than the operands (a float with integers, for example).
    """

    def forward(xp, input: Array, other: Array, *, alpha=1):
        return xp.add(input, other if alpha == 1 and alpha is not True else scaled(other, alpha))

    def vjp_input(F, grad): return grad
    def vjp_other(F, grad, alpha): return grad if alpha == 1 else grad * alpha
    samples = binary()


reflected = {"promote": Promote.SAME, "numbers": ("other",), "exact": True, "module": None}

# `number + tensor` and `number * tensor` call these: the tensor stands first, as in PyTorch's graph.
radd = operator(**reflected, name="radd", ufunc=np.add, node="AddBackward0", dunder=["__radd__"])(add.operator.declaration)


def subtracted(xp, input: np.ndarray, other: np.ndarray, alpha) -> np.ndarray:
    """input - alpha * other; RuntimeError for bools."""
    if input.dtype.kind == "b":
        raise RuntimeError(
            "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or `logical_xor()` operator instead."
        )
    return xp.subtract(input, other if alpha == 1 and alpha is not True else scaled(other, alpha))


@operator(**arithmetic, numbers=("other",), ufunc=np.subtract, dunder=["__sub__"],
          idunder=["__isub__"], alias=["subtract"])  # fmt: skip
class sub:
    """Difference of two tensors, the second scaled: input - alpha * other.

    input, other: broadcastable to a common shape, not both bool. Returns the common shape and dtype.
    Raises: RuntimeError for two bool tensors, or an alpha of a higher kind than the operands.
    """

    def forward(xp, input: Array, other: Array, *, alpha=1): return subtracted(xp, input, other, alpha)
    def vjp_input(F, grad): return grad
    def vjp_other(F, grad, alpha): return -grad if alpha == 1 else grad * -alpha
    samples = binary()


@operator(promote=Promote.SAME, numbers=("other",), exact=True, node="RsubBackward1", dunder=["__rsub__"])
class rsub:
    """The difference with its operands exchanged: other - alpha * input.

    input, other: broadcastable to a common shape, not both bool. Returns the common shape and dtype.
    """

    def forward(xp, input: Array, other: Array, *, alpha=1): return subtracted(xp, other, input, alpha)
    def vjp_input(F, grad, alpha): return -grad if alpha == 1 else grad * -alpha
    def vjp_other(F, grad): return grad
    samples = binary()


@operator(**arithmetic, numbers=True, ufunc=np.multiply, dunder=["__mul__"],
          idunder=["__imul__"], alias=["multiply"])  # fmt: skip
class mul:
    """Product of two tensors, element by element.

    input, other: broadcastable to a common shape. Returns the common shape and dtype.
    """

    def forward(xp, input: Array, other: Array): return xp.multiply(input, other)
    def vjp_input(F, grad, other): return grad * other
    def vjp_other(F, grad, input): return grad * input
    samples = binary()


rmul = operator(**reflected, name="rmul", ufunc=np.multiply, node="MulBackward0", dunder=["__rmul__"])(
    mul.operator.declaration
)


@operator(promote=Promote.FLOAT, numbers=True, method=True, inplace=True, ufunc=np.true_divide,
          node="DivBackward0", dunder=["__truediv__", "__div__"], idunder=["__itruediv__", "__idiv__"])  # fmt: skip
class true_divide:
    """Quotient of two tensors, element by element, integers as the default float.

    input, other: broadcastable to a common shape. Returns the common shape and floating-point dtype; x / 0 is infinite
    or NaN.
    """

    def forward(xp, input: Array, other: Array): return xp.true_divide(input, other)
    def vjp_input(F, grad, other): return grad / other
    def vjp_other(F, grad, input, other): return -grad * ((input / other) / other)
    samples = binary(low=0.5, high=2.0)


def _refuse_zero(other: np.ndarray) -> None:
    """Integers have no infinity to give for a division by zero."""
    if other.dtype.kind in "iub" and not other.all():
        raise RuntimeError("ZeroDivisionError")


@operator(promote=Promote.SAME, numbers=True, module=None, node="DivBackward1")
class div_rounded:
    """Quotient rounded to a whole number: down ("floor") or towards zero ("trunc"). Its derivative is zero.

    input, other: broadcastable to a common shape, real. Returns the common shape and dtype.
    Raises: RuntimeError for integers divided by zero, and for complex operands.
    """

    def forward(xp, input: Array, other: Array, rounding_mode: str):
        require_kind(f"div_{rounding_mode}_cpu", input, "fi")
        _refuse_zero(other)
        return (floored if rounding_mode == "floor" else truncated)(input, other)

    def vjp_input(F, grad): return F.zeros_as(grad)
    vjp_other = vjp_input

    def samples(make):
        yield (make(3, 4), make(4, low=0.5), "floor"), {}
        yield (make(3, 4), make(4, low=0.5), "trunc"), {}


def no_derivative(name: str) -> RuntimeError:
    """The error of a backward through a function without a derivative."""
    return RuntimeError(f"derivative for {name} is not implemented: detach its operands, or use a function that has one")


@operator(module=None, elementwise=True)
class zeros_as:
    """Zeros of the operand's shape and dtype: the derivative of a step function."""

    def forward(xp, input: Array): return xp.zeros(input.shape, input.dtype)


def _check_rounding(rounding_mode) -> None:
    if rounding_mode not in ROUNDING:
        raise RuntimeError(f"div expected rounding_mode to be one of None, 'trunc', or 'floor' but found '{rounding_mode}'")


def div_(input, other, *, rounding_mode: str | None = None):
    """In-place form of `div`."""
    if rounding_mode is None:
        return input.true_divide_(other)
    _check_rounding(rounding_mode)
    return inplace(div_rounded.operator, input, (other, rounding_mode))


@composite(method=True, alias=["divide"], inplace=div_)
def div(input, other, *, rounding_mode: str | None = None, out=None):
    """Quotient of two tensors: exact, or rounded to whole numbers.

    input, other: tensors or numbers, broadcastable to a common shape.
    rounding_mode: None for true division; "floor" rounds down, "trunc" towards zero, both keep integers integer.
    Raises: RuntimeError (another rounding mode, or a rounded division of integers by zero).
    """
    if rounding_mode is None:
        return true_divide(input, other, out=out)
    _check_rounding(rounding_mode)
    return div_rounded(input, other, rounding_mode, out=out)


@composite(dunder=["__rtruediv__", "__rdiv__"], module=None)
def rdiv(input, other):
    """other / input: the reciprocal, multiplied."""
    return input.reciprocal() * other


@operator(promote=Promote.SAME, numbers=True, method=True, inplace=True, dunder=["__floordiv__"],
          reflected=["__rfloordiv__"], idunder=["__ifloordiv__"], node="NotImplemented")  # fmt: skip
class floor_divide:
    """Quotient rounded down to a whole number. It has no derivative, and backward through it is an error; `div` with
    rounding_mode="floor" has the derivative zero.

    input, other: broadcastable to a common shape, real. Returns the common shape and dtype.
    Raises: RuntimeError for integers divided by zero, and for complex operands.
    """

    def forward(xp, input: Array, other: Array):
        require_kind("floor_divide_cpu", input, "fi")
        _refuse_zero(other)
        return floored(input, other)

    def vjp_input(F, grad): raise no_derivative("floor_divide")
    vjp_other = vjp_input


def _remainder(name: str, values, rounding: str, purpose: str, **names):
    """Declare a remainder: what is left of the division that is rounded in one of two ways."""
    names["ufunc"] = values if isinstance(values, np.ufunc) else None

    @operator(promote=Promote.SAME, method=True, inplace=True, name=name, **names)
    class function:
        __doc__ = f"""{purpose}

        input, other: broadcastable to a common shape, real. Returns the common shape and dtype.
        Raises: RuntimeError for integers divided by zero, and for complex operands.
        """

        def forward(xp, input: Array, other: Array):
            require_kind(f"{name}_cpu", input, "fi")
            _refuse_zero(other)
            return values(input, other)

        def vjp_input(F, grad): return grad
        def vjp_other(F, grad, input, other): return -grad * F.div_rounded(input, other, rounding)
        samples = binary(low=0.6, high=2.0, low2=0.5, high2=0.59)

    return function


remainder = _remainder(
    "remainder", floored_remainder, "floor", "Remainder of the division rounded down: it has the sign of the divisor.",
    numbers=True, dunder=["__mod__"], reflected=["__rmod__"], idunder=["__imod__"],
)  # fmt: skip
fmod = _remainder(
    "fmod", np.fmod, "trunc", "Remainder of the division rounded towards zero: it has the sign of the dividend.",
    numbers=("other",),
)  # fmt: skip


@operator(promote=Promote.SAME, exact=True, method=True, inplace=True, ufunc=np.negative, dunder=["__neg__"], alias=["negative"])
class neg:
    """The negative of each element.

    input: [*S], not bool. Returns [*S] of the same dtype.
    Raises: RuntimeError for bools.
    """

    def forward(xp, input: Array):
        if input.dtype.kind == "b":
            raise RuntimeError(
                "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a mask, use the "
                "`~` or `logical_not()` operator instead."
            )
        return xp.negative(input)

    def vjp_input(F, grad): return -grad
    samples = unary()


# --- three operands --------------------------------------------------------------------------------------------------


@operator(promote=Promote.SAME, method=True, inplace=True)
class addcmul:
    """input + value * tensor1 * tensor2, element by element.

    input, tensor1, tensor2: broadcastable to a common shape. Returns the common shape and dtype.
    """

    def forward(xp, input: Array, tensor1: Array, tensor2: Array, *, value=1):
        require_kind("addcmul_cpu_out", input, "fci")
        product = tensor1 * tensor2
        return input + (product if value == 1 else product * number_in(value, product.dtype))

    def vjp_input(F, grad): return grad
    def vjp_tensor1(F, grad, tensor2, value): return grad * (tensor2 * value)
    def vjp_tensor2(F, grad, tensor1, value): return grad * (tensor1 * value)

    def samples(make):
        yield (make(3, 4), make(4), make(3, 1)), {"value": 0.7}
        yield (make(), make(), make()), {}


@operator(promote=Promote.SAME, method=True, inplace=True)
class addcdiv:
    """input + value * tensor1 / tensor2, element by element.

    input, tensor1, tensor2: broadcastable to a common shape, not all integers. Returns the common shape and dtype.
    Raises: RuntimeError for integer operands.
    """

    def forward(xp, input: Array, tensor1: Array, tensor2: Array, *, value=1):
        if tensor1.dtype.kind in "iub":
            raise RuntimeError(
                "Integer division with addcdiv is no longer supported, and in a future release addcdiv will perform a true "
                "division of tensor1 and tensor2. Convert one of them to a floating-point dtype first."
            )
        return input + (tensor1 * number_in(value, tensor1.dtype)) / tensor2

    def vjp_input(F, grad): return grad
    def vjp_tensor1(F, grad, tensor2, value): return grad * value / tensor2
    def vjp_tensor2(F, grad, tensor1, tensor2, value): return -grad * (tensor1 * value / tensor2 / tensor2)

    def samples(make):
        yield (make(3, 4), make(4), make(3, 1, low=0.5)), {"value": 0.7}
        yield (make(), make(), make(low=0.5)), {}


@operator(promote=Promote.SAME, numbers=("weight",), method=True, inplace=True)
class lerp:
    """Linear interpolation: input + weight * (end - input).

    input, end, weight: broadcastable to a common shape; weight may be a number. Returns the common shape and dtype.
    """

    def forward(xp, input: Array, end: Array, weight: Array):
        require_kind("lerp_kernel", input, "fc")
        # the second form is exact at weight 1
        span = end - input
        return xp.where(abs(weight) < 0.5, input + weight * span, end - span * (1 - weight))

    def vjp_input(F, grad, weight): return grad * (1 - weight)
    def vjp_end(F, grad, weight): return grad * weight
    def vjp_weight(F, grad, input, end): return grad * (end - input)

    def samples(make):
        yield (make(3, 4), make(4), make(3, 1)), {}
        yield (make(3), make(3), make(low=0.0, high=0.4)), {}


subtract, multiply, negative, divide = sub, mul, neg, div
