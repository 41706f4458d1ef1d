"""Complex numbers out of their parts, their parts, and conjugation.

Real tensors are their own real part and conjugate. Conjugation is never lazy: `conj` of a complex tensor is a new one.
"""

from __future__ import annotations

import math

from pellucid.autograd.operator import Array, Promote, composite, operator
from pellucid.autograd.samples import unary
from pellucid.core.tensor import Tensor

__all__ = ["angle", "complex", "conj", "conj_physical", "imag", "real", "resolve_conj", "resolve_neg"]


# --- real and imaginary parts ----------------------------------------------------------------------------------------

LINEAR = {"module": None, "holomorphic": False, "linear": True, "elementwise": True}


def _part(name: str, which: str, transposed: str):
    """Declare the view of the real or imaginary parts, and the operator that copies them; `transposed` puts them back."""

    class part:
        __doc__ = f"The {which} parts of a complex tensor, sharing its memory."
        def forward(xp, input: Array): return getattr(input, name)
        def vjp_input(F, grad): return getattr(F, transposed)(grad)
        def samples(make): yield (make(3, 4) + 1j * make(3, 4),), {}

    class copied(part):
        __doc__ = f"The {which} parts, in memory of their own."
        def forward(xp, input: Array): return getattr(input, name).copy()

    view = operator(**LINEAR, view=True, name=f"{name}_part", node=f"{name.capitalize()}Backward0")(part)
    return view, operator(**LINEAR, name=f"{name}_copy")(copied)


real_part, real_copy = _part("real", "real", "complex_of")
imag_part, imag_copy = _part("imag", "imaginary", "imaginary_of")


@operator(**LINEAR)
class complex_of:
    """Real numbers as complex ones."""

    def forward(xp, input: Array): return input.astype(xp.result_type(input.dtype, xp.complex64))
    def vjp_input(F, grad): return F.real_copy(grad)
    samples = unary()


@operator(**LINEAR)
class imaginary_of:
    """Real numbers times i."""

    def forward(xp, input: Array):
        made = xp.zeros(input.shape, xp.result_type(input.dtype, xp.complex64))
        made.imag = input
        return made

    def vjp_input(F, grad): return F.imag_copy(grad)

    def samples(make):
        if make.dtype.kind == "f":
            yield (make(3, 4),), {}


@composite()
def real(input):
    """The real parts of a complex tensor, sharing its memory; a real tensor itself."""
    return real_part(input) if input._array.dtype.kind == "c" else input


@composite()
def imag(input):
    """The imaginary parts of a complex tensor, sharing its memory.

    Raises: RuntimeError (the tensor is real).
    """
    if input._array.dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return imag_part(input)


def _write_real(self: Tensor, value) -> None:
    real(self).copy_(value)


def _write_imag(self: Tensor, value) -> None:
    imag(self).copy_(value)


Tensor.real = property(real, _write_real, doc=real.__doc__)
Tensor.imag = property(imag, _write_imag, doc=imag.__doc__)


# --- conjugates ------------------------------------------------------------------------------------------------------


@operator(holomorphic=False, linear=True, elementwise=True, method=True, inplace=True, exact=True)
class conj_physical:
    """The complex conjugate of each element.

    input: [*S]. Returns [*S] of the same dtype.
    """

    def forward(xp, input: Array): return xp.conjugate(input) if input.dtype.kind == "c" else input.copy()
    def vjp_input(F, grad): return F.conj(grad)
    samples = unary()


# what formulas call
conj_copy = operator(**LINEAR, name="conj", exact=True)(conj_physical.operator.declaration)


@composite(method=True)
def conj(input):
    """The complex conjugate of each element; a real tensor itself."""
    return conj_copy(input) if input._array.dtype.kind == "c" else input


@composite(method=True)
def resolve_conj(input):
    """The tensor itself: conjugation is never lazy here."""
    return input


@composite(method=True)
def resolve_neg(input):
    """The tensor itself: negation is never lazy here."""
    return input


# --- angles ----------------------------------------------------------------------------------------------------------


@operator(holomorphic=False, method=True, promote=Promote.FLOAT)
class angle:
    """The angle of each element in the complex plane, in radians: 0 or pi for reals.

    input: [*S]. Returns [*S], complex as the real dtype of its parts, integers as the default float.
    Derivative along a step t: the imaginary part of t / z; zero for reals and at zero.
    """

    def forward(xp, input: Array):
        if input.dtype.kind == "c":
            return xp.angle(input)
        return xp.where(xp.isnan(input), input, xp.where(input < 0, math.pi, 0)).astype(input.dtype)

    def vjp_input(F, grad, input, input_dtype):
        if input_dtype.kind != "c":
            return F.zeros_as(grad)
        return F.where(input == 0, 0, grad * 1j / F.conj(F.where(input == 0, 1, input)))

    def jvp_input(F, tangent, input, input_dtype):
        if input_dtype.kind != "c":
            return F.zeros_as(tangent)
        return F.where(input == 0, 0, F.imag_copy(tangent / F.where(input == 0, 1, input)))

    samples = unary(0.3, 2.0)


@operator(elementwise=True, holomorphic=False, linear=True)
class complex:
    """Complex numbers out of their real and imaginary parts.

    real, imag: broadcastable, of one floating-point type, else RuntimeError. Returns the complex type of that precision.
    """

    def forward(xp, real: Array, imag: Array):
        if real.dtype.char not in "fde" or imag.dtype.char not in "fde":
            raise RuntimeError(f"Expected both inputs to be Half, Float or Double tensors but got {real.dtype} and {imag.dtype}")
        if real.dtype != imag.dtype:
            raise RuntimeError(f"Expected object of scalar type {real.dtype} but got scalar type {imag.dtype} for second argument")
        made = xp.empty(
            xp.broadcast_shapes(real.shape, imag.shape), xp.complex128 if real.dtype.char == "d" else xp.complex64
        )
        made.real, made.imag = real, imag
        return made

    def vjp_real(F, grad): return F.view_as_real(grad)[..., 0]
    def vjp_imag(F, grad): return F.view_as_real(grad)[..., 1]
    def samples(make): yield (make(3, 1), make(4)), {}
