"""Logic: and, or, xor, not on the bits of integers and on truth values; shifts; greatest common divisors.

Nothing here is differentiable.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Promote, operator
from pellucid.autograd.samples import binary, unary
from pellucid.core.checks import require_kind
from pellucid.core.tensor import Tensor
from pellucid.ops.families import of_two

__all__ = ["bitwise_and", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor",
           "gcd", "lcm", "logical_and", "logical_not", "logical_or", "logical_xor"]  # fmt: skip

METHODS = {"method": True, "inplace": True}
BITS = {"numbers": True, "exact": True}


def _of_integers(name: str, purpose: str, values, kernel: str, kinds: str = "i", **options):
    """Declare a function of two tensors of integers (and bools, if `kinds` has "b")."""

    @operator(promote=Promote.SAME, name=name, **METHODS, **options)
    class function:
        __doc__ = f"""{purpose}

        input, other: {"integers or bools" if "b" in kinds else "integers"}, broadcastable to a common shape. Returns it.
        Raises: NotImplementedError for other dtypes.
        """

        forward = of_two(values, f"{kernel}_cpu", kinds)

    return function


def _bitwise(word: str, purpose: str, ufunc: np.ufunc):
    """Declare one of the functions behind `&`, `|` and `^`."""
    name = f"bitwise_{word}"
    function = _of_integers(
        name, purpose, ufunc, name, "ib", **BITS, dunder=[f"__{word}__"], idunder=[f"__i{word}__"]
    )

    def reflected(self, other):  # they commute: only ever called with the tensor first
        if not isinstance(self, Tensor):
            raise TypeError(f"this method of Tensor doesn't apply to a {type(self).__name__!r} object")
        return function(self, other)

    setattr(Tensor, f"__r{word}__", reflected)
    return function


bitwise_and = _bitwise("and", "The bits set in both operands; for bools logical and.", np.bitwise_and)
bitwise_or = _bitwise("or", "The bits set in either operand; for bools logical or.", np.bitwise_or)
bitwise_xor = _bitwise("xor", "The bits set in one operand only; for bools logical xor.", np.bitwise_xor)


@operator(promote=Promote.SAME, exact=True, **METHODS, dunder=["__invert__"])
class bitwise_not:
    """All bits flipped; for bools logical not.

    input: [*S], integers or bools. Returns [*S] of the same dtype.
    Raises: NotImplementedError for other dtypes.
    """

    def forward(xp, input: Array):
        require_kind("bitwise_not_cpu", input, "ib")
        return xp.invert(input)


def _shift(direction: str, purpose: str, ufunc: np.ufunc, emptied):
    """Declare a shift. By less than nothing or by the width and more all bits leave: `emptied(input)` is what stays."""
    letter = direction[0]

    def shifted(input, other):
        outside = (other < 0) | (other >= input.itemsize * 8)
        inside = np.where(outside, 0, other).astype(input.dtype)
        return np.where(outside, emptied(input), ufunc(input, inside)).astype(input.dtype)

    return _of_integers(
        f"bitwise_{direction}_shift", purpose, shifted, f"{letter}shift", **BITS, dunder=[f"__{letter}shift__"],
        reflected=[f"__r{letter}shift__"], idunder=[f"__i{letter}shift__"],
    )  # fmt: skip


bitwise_left_shift = _shift("left", "Bits moved to the left: input * 2^other.", np.left_shift, lambda input: 0)
bitwise_right_shift = _shift(
    "right", "Bits moved to the right, the sign kept: input / 2^other rounded down.", np.right_shift,
    lambda input: np.where(input < 0, -1, 0),
)  # fmt: skip
gcd = _of_integers("gcd", "Greatest common divisor, element by element; gcd(0, 0) is 0.", np.gcd, "gcd")
lcm = _of_integers("lcm", "Least common multiple, element by element.", np.lcm, "lcm")

# --- truth values ----------------------------------------------------------------------------------------------------


def _logical(name: str, purpose: str, ufunc: np.ufunc):
    """Declare a function of two truth values."""

    @operator(promote=Promote.COMPARE, exact=True, name=name, **METHODS)
    class function:
        __doc__ = f"{purpose}\n\n    input, other: broadcastable to a common shape. Returns bools of that shape.\n    "
        def forward(xp, input: Array, other: Array): return ufunc(input, other)
        samples = binary()

    return function


logical_and = _logical("logical_and", "Whether both elements are true (not zero).", np.logical_and)
logical_or = _logical("logical_or", "Whether one of the elements is true (not zero).", np.logical_or)
logical_xor = _logical("logical_xor", "Whether exactly one of the elements is true (not zero).", np.logical_xor)


@operator(promote=Promote.COMPARE, exact=True, **METHODS)
class logical_not:
    """Whether elements are false (zero).

    input: [*S]. Returns bools [*S].
    """

    def forward(xp, input: Array): return xp.logical_not(input)
    samples = unary()
