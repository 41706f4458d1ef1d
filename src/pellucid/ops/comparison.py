"""Comparisons: truth values element by element. Questions about whole tensors are in `functions/comparison.py`.

Nothing here is differentiable. Logical combinations of truth values live in `bitwise.py`.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Promote, operator
from pellucid.autograd.samples import binary, unary
from pellucid.core.checks import require_kind, scalar_name
from pellucid.core.tensor import Number, Tensor, wrap
from pellucid.kernels.comparison import near
from pellucid.ops.families import of_two

__all__ = [
    "eq", "ge", "greater", "greater_equal", "gt", "isclose", "isfinite", "isin", "isinf", "isnan", "isneginf",
    "isposinf", "isreal", "le", "less", "less_equal", "lt", "ne", "not_equal", "signbit",
]  # fmt: skip


def _comparison(name: str, purpose: str, ufunc: np.ufunc, kinds: str = "fib", **names):
    """Declare a comparison of two tensors whose dtypes are of the given kinds."""

    @operator(
        promote=Promote.COMPARE, numbers=("other",), exact=True, method=True, inplace=True, name=name, ufunc=ufunc, **names
    )  # fmt: skip
    class function:
        __doc__ = f"""{purpose}

        input, other: {"any dtype" if "c" in kinds else "real"}, broadcastable to a common shape. Returns bools of that shape.
        """

        forward = of_two(ufunc, f"compare_{name}_cpu", kinds)
        samples = binary()

    return function


eq = _comparison("eq", "Whether elements are equal. NaN equals nothing.", np.equal, "fibc")
ne = _comparison("ne", "Whether elements differ.", np.not_equal, "fibc", alias=["not_equal"])
lt = _comparison("lt", "Whether elements of `input` are less than those of `other`.", np.less,
                 alias=["less"], dunder=["__lt__"])  # fmt: skip
le = _comparison("le", "Whether elements of `input` are at most those of `other`.", np.less_equal,
                 alias=["less_equal"], dunder=["__le__"])  # fmt: skip
gt = _comparison("gt", "Whether elements of `input` are greater than those of `other`.", np.greater,
                 alias=["greater"], dunder=["__gt__"])  # fmt: skip
ge = _comparison("ge", "Whether elements of `input` are at least those of `other`.", np.greater_equal,
                 alias=["greater_equal"], dunder=["__ge__"])  # fmt: skip


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


def _question(name: str, purpose: str, answer):
    """Declare a question about each element, from its answers on an array."""

    @operator(method=True, exact=True, elementwise=True, name=name)
    class function:
        __doc__ = f"{purpose}\n\n    input: [*S]. Returns bools [*S].\n    "
        def forward(xp, input: Array): return answer(input)
        samples = unary()

    return function


def _infinity(name: str, purpose: str, value: float):
    """Declare the question for one of the infinities, which real numbers have."""

    def answer(array):
        if array.dtype.kind == "c":
            raise RuntimeError(f"{name} does not support complex inputs.")
        return array == value

    return _question(name, f"{purpose} RuntimeError for complex input.", answer)


def _has_sign(array):
    require_kind("signbit_cpu", array, "fib")
    return np.signbit(array) if array.dtype.kind == "f" else array < 0


isnan = _question("isnan", "Whether elements are NaN (for a complex number: one of its parts).", np.isnan)
isinf = _question("isinf", "Whether elements are infinite (for a complex number: one of its parts).", np.isinf)
isfinite = _question("isfinite", "Whether elements are neither infinite nor NaN.", np.isfinite)
isposinf = _infinity("isposinf", "Whether elements are plus infinity.", np.inf)
isneginf = _infinity("isneginf", "Whether elements are minus infinity.", -np.inf)
isreal = _question("isreal", "Whether elements have no imaginary part.", lambda array: array.imag == 0)
signbit = _question("signbit", "Whether elements have their sign bit set: negative numbers and -0.0.", _has_sign)


# --- nearness and membership -----------------------------------------------------------------------------------------


@operator(method=True, elementwise=True)
class isclose:
    """Whether |input - other| <= atol + rtol * |other|, element by element; equal infinities are close.

    input, other: broadcastable to a common shape, of one dtype. Returns bools of that shape.
    Raises: RuntimeError for different dtypes or negative tolerances.
    """

    def forward(xp, input: Array, other: Array, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False):
        if input.dtype != other.dtype:
            raise RuntimeError(f"{input.dtype.name} did not match {other.dtype.name}: isclose compares tensors of one dtype")
        for name, value in (("rtol", rtol), ("atol", atol)):
            if value < 0:
                raise RuntimeError(f"{name} must be greater than or equal to zero, but got {value}")
        return near(input, other, rtol, atol, equal_nan)

    def samples(make): yield (make(3, 4), make(3, 4)), {}


@operator(promote=Promote.COMPARE, numbers=True, broadcast=False)
class isin:
    """Whether each element is among the test elements.

    elements: [*S]; test_elements: any shape. Returns bools [*S]; inverted with `invert`.
    """

    def forward(xp, elements: Array, test_elements: Array, *, assume_unique: bool = False, invert: bool = False):
        if elements.dtype.kind in "bc":
            raise RuntimeError(f"Unsupported input type encountered for isin(): {scalar_name(elements)}")
        return xp.isin(elements, test_elements, assume_unique=False, invert=invert)

    def batch(F, size_of_batch, batched, elements, test_elements, invert):
        if "test_elements" not in batched:
            return F.isin(elements, test_elements, invert=invert)
        if elements.__class__ is Number:
            elements = wrap(np.asarray(elements._array))
        shape = elements.shape if "elements" in batched else (1, *elements.shape)
        same = F.eq(F.reshape(elements, (shape[0], -1, 1)), F.reshape(test_elements, (size_of_batch, 1, -1)))
        found = F.reshape(F.any_dim(same, (2,), False), (size_of_batch, *shape[1:]))
        return F.logical_not(found) if invert else found

    def samples(make):
        yield (make.integers(3, 4), make.integers(2)), {}
        yield (make(3, 4), make(2, 2)), {"invert": True}


not_equal, less, less_equal, greater, greater_equal = ne, lt, le, gt, ge
