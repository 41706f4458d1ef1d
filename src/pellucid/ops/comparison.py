"""Comparisons: truth values element by element, and questions about whole tensors.

Nothing here is differentiable. Logical combinations of truth values live in `bitwise.py`.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Promote, composite, operator
from pellucid.autograd.samples import binary, unary
from pellucid.core.tensor import Tensor
from pellucid.ops.checks import require_kind

__all__ = ["allclose", "eq", "equal", "ge", "greater", "greater_equal", "gt", "is_nonzero", "isclose", "isfinite",
           "isin", "isinf", "isnan", "isneginf", "isposinf", "isreal", "le", "less", "less_equal", "lt", "ne",
           "not_equal", "signbit"]

comparing = {"promote": Promote.COMPARE, "numbers": ("other",), "exact": True, "method": True, "inplace": True}


@operator(**comparing, ufunc=np.equal)
class eq:
    """Whether elements are equal. NaN equals nothing.

    input, other: broadcastable to a common shape. Returns bools of that shape.
    """

    def forward(xp, input: Array, other: Array):
        return xp.equal(input, other)

    samples = binary()


@operator(**comparing, ufunc=np.not_equal, alias=["not_equal"])
class ne:
    """Whether elements differ.

    input, other: broadcastable to a common shape. Returns bools of that shape.
    """

    def forward(xp, input: Array, other: Array):
        return xp.not_equal(input, other)

    samples = binary()


@operator(**comparing, ufunc=np.less, alias=["less"], dunder=["__lt__"])
class lt:
    """Whether elements of `input` are less than those of `other`.

    input, other: real, broadcastable to a common shape. Returns bools of that shape.
    """

    def forward(xp, input: Array, other: Array):
        require_kind("compare_lt_cpu", input, "fib")
        return xp.less(input, other)

    samples = binary()


@operator(**comparing, ufunc=np.less_equal, alias=["less_equal"], dunder=["__le__"])
class le:
    """Whether elements of `input` are at most those of `other`.

    input, other: real, broadcastable to a common shape. Returns bools of that shape.
    """

    def forward(xp, input: Array, other: Array):
        require_kind("compare_le_cpu", input, "fib")
        return xp.less_equal(input, other)

    samples = binary()


@operator(**comparing, ufunc=np.greater, alias=["greater"], dunder=["__gt__"])
class gt:
    """Whether elements of `input` are greater than those of `other`.

    input, other: real, broadcastable to a common shape. Returns bools of that shape.
    """

    def forward(xp, input: Array, other: Array):
        require_kind("compare_gt_cpu", input, "fib")
        return xp.greater(input, other)

    samples = binary()


@operator(**comparing, ufunc=np.greater_equal, alias=["greater_equal"], dunder=["__ge__"])
class ge:
    """Whether elements of `input` are at least those of `other`.

    input, other: real, broadcastable to a common shape. Returns bools of that shape.
    """

    def forward(xp, input: Array, other: Array):
        require_kind("compare_ge_cpu", input, "fib")
        return xp.greater_equal(input, other)

    samples = binary()


def _equality(function):
    """`==` or `!=`: with what is no tensor and no number Python decides, by identity."""

    def compare(self, other):
        if isinstance(other, (Tensor, int, float, complex, np.number, np.bool_)):
            return function(self, other)
        return NotImplemented

    return compare


Tensor.__eq__ = _equality(eq)
Tensor.__ne__ = _equality(ne)


# --- kinds of numbers ------------------------------------------------------------------------------------------------


@operator(method=True, exact=True, elementwise=True)
class isnan:
    """Whether elements are NaN (for a complex number: one of its parts).

    input: [*S]. Returns bools [*S].
    """

    def forward(xp, input: Array):
        return xp.isnan(input)

    samples = unary()


@operator(method=True, exact=True, elementwise=True)
class isinf:
    """Whether elements are infinite (for a complex number: one of its parts).

    input: [*S]. Returns bools [*S].
    """

    def forward(xp, input: Array):
        return xp.isinf(input)

    samples = unary()


@operator(method=True, exact=True, elementwise=True)
class isfinite:
    """Whether elements are neither infinite nor NaN.

    input: [*S]. Returns bools [*S].
    """

    def forward(xp, input: Array):
        return xp.isfinite(input)

    samples = unary()


@operator(method=True, exact=True, elementwise=True)
class isposinf:
    """Whether elements are plus infinity.

    input: [*S], real. Returns bools [*S].
    Raises: RuntimeError for complex input.
    """

    def forward(xp, input: Array):
        if input.dtype.kind == "c":
            raise RuntimeError("isposinf does not support complex inputs.")
        return input == xp.inf

    samples = unary()


@operator(method=True, exact=True, elementwise=True)
class isneginf:
    """Whether elements are minus infinity.

    input: [*S], real. Returns bools [*S].
    Raises: RuntimeError for complex input.
    """

    def forward(xp, input: Array):
        if input.dtype.kind == "c":
            raise RuntimeError("isneginf does not support complex inputs.")
        return input == -xp.inf

    samples = unary()


@operator(method=True, exact=True, elementwise=True)
class isreal:
    """Whether elements have no imaginary part.

    input: [*S]. Returns bools [*S].
    """

    def forward(xp, input: Array):
        return input.imag == 0 if input.dtype.kind == "c" else xp.ones(input.shape, bool)

    samples = unary()


@operator(method=True, exact=True, elementwise=True)
class signbit:
    """Whether elements have their sign bit set: negative numbers and -0.0.

    input: [*S], real. Returns bools [*S].
    Raises: RuntimeError for complex input.
    """

    def forward(xp, input: Array):
        require_kind("signbit_cpu", input, "fib")
        if input.dtype.kind == "f":
            return xp.signbit(input)
        return input < 0 if input.dtype.kind == "i" else xp.zeros(input.shape, bool)

    samples = unary()


# --- nearness and membership -----------------------------------------------------------------------------------------


def _same_dtype(name: str, input: np.ndarray, other: np.ndarray) -> None:
    if input.dtype != other.dtype:
        raise RuntimeError(f"{input.dtype.name} did not match {other.dtype.name}: {name} compares tensors of one dtype")


def _near(xp, input, other, rtol, atol, equal_nan):
    close = input == other
    if equal_nan and input.dtype.kind in "fc":
        close = close | (xp.isnan(input) & xp.isnan(other))
    if rtol == 0 and atol == 0:
        return close
    if input.dtype.kind in "iub":
        input, other = input.astype(np.float64), other.astype(np.float64)
    distance = abs(input - other)
    return close | (xp.isfinite(distance) & (distance <= atol + abs(rtol * other)))


@operator(method=True, broadcast=True, elementwise=True)
class isclose:
    """Whether |input - other| <= atol + rtol * |other|, element by element; equal infinities are close.

    input, other: broadcastable to a common shape, of one dtype. Returns bools of that shape.
    Raises: RuntimeError for different dtypes or negative tolerances.
    """

    def forward(xp, input: Array, other: Array, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False):
        _same_dtype("isclose", input, other)
        for name, value in (("rtol", rtol), ("atol", atol)):
            if value < 0:
                raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value}")
        return _near(xp, input, other, rtol, atol, equal_nan)

    def samples(make):
        yield (make(3, 4), make(3, 4)), {}


@composite(method=True)
def allclose(input, other, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False) -> bool:
    """Whether all elements are close (see `isclose`), as a Python bool."""
    return bool(isclose(input, other, rtol, atol, equal_nan)._array.all())


@composite(method=True)
def equal(input, other) -> bool:
    """Whether both tensors have the same shape and equal elements, as a Python bool."""
    a, b = input._array, other._array
    return a.shape == b.shape and bool((a == b).all())


@operator(promote=Promote.COMPARE, numbers=True, broadcast=False)
class isin:
    """Whether each element is among the test elements.

    elements: [*S]; test_elements: any shape. Returns bools [*S]; inverted with `invert`.
    """

    def forward(xp, elements: Array, test_elements: Array, *, assume_unique: bool = False, invert: bool = False):
        return xp.isin(elements, test_elements, assume_unique=False, invert=invert)

    def samples(make):
        yield (make.integers(3, 4), make.integers(2)), {}


@composite(method=True)
def is_nonzero(input) -> bool:
    """Whether the only element is not zero, as a Python bool.

    Raises:
        RuntimeError: the tensor has more or fewer elements.
    """
    if input.numel() != 1:
        what = "no values" if not input.numel() else "more than one value"
        raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous: shape {tuple(input.shape)}")
    return bool(input._array.reshape(())[()] != 0)


not_equal, less, less_equal, greater, greater_equal = ne, lt, le, gt, ge
