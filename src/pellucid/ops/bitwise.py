"""Logic: and, or, xor, not on the bits of integers and on truth values; shifts; greatest common divisors.

Nothing here is differentiable.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Promote, operator
from pellucid.autograd.samples import binary, unary
from pellucid.core.tensor import Tensor
from pellucid.ops.checks import require_kind

__all__ = ["bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
           "gcd", "lcm", "logical_and", "logical_not", "logical_or", "logical_xor"]

bits = {"promote": Promote.SAME, "numbers": True, "exact": True, "method": True, "inplace": True}
truth = {"promote": Promote.COMPARE, "exact": True, "method": True, "inplace": True}


@operator(**bits, dunder=["__and__"], idunder=["__iand__"])
class bitwise_and:
    """The bits set in both operands; for bools logical and.

    input, other: integers or bools, broadcastable to a common shape. Returns the common shape and dtype.
    Raises: NotImplementedError for other dtypes.
    """

    def forward(xp, input: Array, other: Array):
        require_kind("bitwise_and_cpu", input, "ib")
        return xp.bitwise_and(input, other)


@operator(**bits, dunder=["__or__"], idunder=["__ior__"])
class bitwise_or:
    """The bits set in either operand; for bools logical or.

    input, other: integers or bools, broadcastable to a common shape. Returns the common shape and dtype.
    Raises: NotImplementedError for other dtypes.
    """

    def forward(xp, input: Array, other: Array):
        require_kind("bitwise_or_cpu", input, "ib")
        return xp.bitwise_or(input, other)


@operator(**bits, dunder=["__xor__"], idunder=["__ixor__"])
class bitwise_xor:
    """The bits set in one operand only; for bools logical xor.

    input, other: integers or bools, broadcastable to a common shape. Returns the common shape and dtype.
    Raises: NotImplementedError for other dtypes.
    """

    def forward(xp, input: Array, other: Array):
        require_kind("bitwise_xor_cpu", input, "ib")
        return xp.bitwise_xor(input, other)


def _reflected(function):
    """`number & tensor` and the like, which commute: only ever called with the tensor first."""

    def operate(self, other):
        if not isinstance(self, Tensor):
            raise TypeError(f"this method of Tensor doesn't apply to a {type(self).__name__!r} object")
        return function(self, other)

    return operate


Tensor.__rand__ = _reflected(bitwise_and)
Tensor.__ror__ = _reflected(bitwise_or)
Tensor.__rxor__ = _reflected(bitwise_xor)


@operator(promote=Promote.SAME, exact=True, method=True, inplace=True, dunder=["__invert__"])
class bitwise_not:
    """All bits flipped; for bools logical not.

    input: [*S], integers or bools. Returns [*S] of the same dtype.
    Raises: NotImplementedError for other dtypes.
    """

    def forward(xp, input: Array):
        require_kind("bitwise_not_cpu", input, "ib")
        return xp.invert(input)


def _shifted(xp, name: str, input: np.ndarray, other: np.ndarray, left: bool) -> np.ndarray:
    """Shift bits. By less than nothing or by the width and more: all bits leave (a right shift keeps the sign)."""
    require_kind(f"{name}_cpu", input, "i")
    width = input.itemsize * 8
    outside = (other < 0) | (other >= width)
    inside = xp.where(outside, 0, other).astype(input.dtype)
    if left:
        return xp.where(outside, 0, xp.left_shift(input, inside)).astype(input.dtype)
    return xp.where(outside, xp.where(input < 0, -1, 0), xp.right_shift(input, inside)).astype(input.dtype)


@operator(**bits, dunder=["__lshift__"], reflected=["__rlshift__"], idunder=["__ilshift__"])
class bitwise_left_shift:
    """Bits moved to the left: input * 2^other.

    input, other: integers, broadcastable to a common shape. Returns the common shape and dtype.
    Raises: NotImplementedError for other dtypes.
    """

    def forward(xp, input: Array, other: Array):
        return _shifted(xp, "lshift", input, other, True)


@operator(**bits, dunder=["__rshift__"], reflected=["__rrshift__"], idunder=["__irshift__"])
class bitwise_right_shift:
    """Bits moved to the right, the sign kept: input / 2^other rounded down.

    input, other: integers, broadcastable to a common shape. Returns the common shape and dtype.
    Raises: NotImplementedError for other dtypes.
    """

    def forward(xp, input: Array, other: Array):
        return _shifted(xp, "rshift", input, other, False)


@operator(**truth)
class logical_and:
    """Whether both elements are true (not zero).

    input, other: broadcastable to a common shape. Returns bools of that shape.
    """

    def forward(xp, input: Array, other: Array):
        return xp.logical_and(input, other)

    samples = binary()


@operator(**truth)
class logical_or:
    """Whether one of the elements is true (not zero).

    input, other: broadcastable to a common shape. Returns bools of that shape.
    """

    def forward(xp, input: Array, other: Array):
        return xp.logical_or(input, other)

    samples = binary()


@operator(**truth)
class logical_xor:
    """Whether exactly one of the elements is true (not zero).

    input, other: broadcastable to a common shape. Returns bools of that shape.
    """

    def forward(xp, input: Array, other: Array):
        return xp.logical_xor(input, other)

    samples = binary()


@operator(promote=Promote.COMPARE, exact=True, method=True, inplace=True)
class logical_not:
    """Whether elements are false (zero).

    input: [*S]. Returns bools [*S].
    """

    def forward(xp, input: Array):
        return xp.logical_not(input)

    samples = unary()


@operator(promote=Promote.SAME, method=True, inplace=True)
class gcd:
    """Greatest common divisor, element by element; gcd(0, 0) is 0.

    input, other: integers, broadcastable to a common shape. Returns the common shape and dtype.
    Raises: NotImplementedError for other dtypes.
    """

    def forward(xp, input: Array, other: Array):
        require_kind("gcd_cpu", input, "i")
        return xp.gcd(input, other)


@operator(promote=Promote.SAME, method=True, inplace=True)
class lcm:
    """Least common multiple, element by element.

    input, other: integers, broadcastable to a common shape. Returns the common shape and dtype.
    Raises: NotImplementedError for other dtypes.
    """

    def forward(xp, input: Array, other: Array):
        require_kind("lcm_cpu", input, "i")
        return xp.lcm(input, other)
