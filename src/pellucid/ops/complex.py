"""Parts of complex numbers and conjugation; complex numbers are made of real ones in `factories.py` and `views.py`.

Real tensors are their own real part and conjugate. Conjugation is never lazy: `conj` of a complex tensor is a new one.
"""

from __future__ import annotations

import math

from pellucid.autograd.operator import Array, Promote, composite, operator
from pellucid.autograd.samples import unary
from pellucid.core.tensor import Tensor

__all__ = ["angle", "conj", "conj_physical", "imag", "is_complex", "is_floating_point", "real", "resolve_conj",
           "resolve_neg"]


@operator(view=True, holomorphic=False, module=None, node="RealBackward0")
class real_part:
    """The real parts of a complex tensor, sharing its memory."""

    def forward(xp, input: Array):
        return input.real

    def vjp_input(F, grad):
        return F.complex_of(grad)

    def samples(make):
        yield (make(3, 4) + 1j * make(3, 4),), {}


@operator(view=True, holomorphic=False, module=None, node="ImagBackward0")
class imag_part:
    """The imaginary parts of a complex tensor, sharing its memory."""

    def forward(xp, input: Array):
        return input.imag

    def vjp_input(F, grad):
        return F.imaginary_of(grad)

    def samples(make):
        yield (make(3, 4) + 1j * make(3, 4),), {}


@operator(module=None, holomorphic=False, linear=True)
class complex_of:
    """Real numbers as complex ones."""

    def forward(xp, input: Array):
        return input.astype(xp.result_type(input.dtype, xp.complex64))

    def vjp_input(F, grad):
        return F.real_copy(grad)

    samples = unary()


@operator(module=None, holomorphic=False, linear=True)
class imaginary_of:
    """Real numbers times i."""

    def forward(xp, input: Array):
        made = xp.zeros(input.shape, xp.result_type(input.dtype, xp.complex64))
        made.imag = input
        return made

    def vjp_input(F, grad):
        return F.imag_copy(grad)


@operator(module=None, holomorphic=False, linear=True)
class real_copy:
    """The real parts, in memory of their own."""

    def forward(xp, input: Array):
        return input.real.copy()

    def vjp_input(F, grad):
        return F.complex_of(grad)


@operator(module=None, holomorphic=False, linear=True)
class imag_copy:
    """The imaginary parts, in memory of their own."""

    def forward(xp, input: Array):
        return input.imag.copy()

    def vjp_input(F, grad):
        return F.imaginary_of(grad)


@composite()
def real(input):
    """The real parts of a complex tensor, sharing its memory; a real tensor itself."""
    return real_part(input) if input._array.dtype.kind == "c" else input


@composite()
def imag(input):
    """The imaginary parts of a complex tensor, sharing its memory.

    Raises:
        RuntimeError: the tensor is real.
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


@operator(holomorphic=False, method=True, inplace=True, exact=True, linear=True)
class conj_physical:
    """The complex conjugate of each element.

    input: [*S]. Returns [*S] of the same dtype.
    """

    def forward(xp, input: Array):
        return xp.conjugate(input) if input.dtype.kind == "c" else input.copy()

    def vjp_input(F, grad):
        return F.conj(grad)

    samples = unary()


@operator(holomorphic=False, name="conj", module=None, exact=True, linear=True)
class conj_copy:
    """The complex conjugate; on arrays, reals are their own."""

    def forward(xp, input: Array):
        return xp.conjugate(input) if input.dtype.kind == "c" else input.copy()

    def vjp_input(F, grad):
        return F.conj(grad)

    samples = unary()


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


@operator(holomorphic=False, method=True, promote=Promote.FLOAT)
class angle:
    """The angle of each element in the complex plane, in radians: 0 or pi for reals.

    input: [*S]. Returns [*S], complex as the real dtype of its parts, integers as the default float.
    """

    def forward(xp, input: Array):
        if input.dtype.kind == "c":
            return xp.angle(input)
        return xp.where(xp.isnan(input), input, xp.where(input < 0, math.pi, 0)).astype(input.dtype)

    def vjp_input(F, grad, input):
        return F.angle_backward(grad, input)

    samples = unary(0.3, 2.0)


@operator(module=None, holomorphic=False)
class angle_backward:
    """Gradient of `angle`: across the direction of the number, i z / |z|^2; zero for reals and at zero."""

    def forward(xp, input: Array, point: Array):
        if point.dtype.kind != "c":
            return xp.zeros(input.shape, input.dtype)
        return xp.where(point == 0, 0, input * 1j * point / xp.absolute(point) ** 2).astype(point.dtype)

    def vjp_input(F, grad, point):
        return F.turning(grad, point)

    def vjp_point(F, grad, input, point):
        return F.angle_bend(grad, input, point)


@operator(module=None, holomorphic=False)
class turning:
    """How fast a move `input` turns the angle of `point`: Re(conj(input) i z) / |z|^2."""

    def forward(xp, input: Array, point: Array):
        if point.dtype.kind != "c":
            return xp.zeros(input.shape, input.dtype)
        return xp.where(point == 0, 0, (xp.conj(input) * 1j * point).real / xp.absolute(point) ** 2)

    def vjp_input(F, grad, point):
        return F.angle_backward(grad, point)


@operator(module=None, holomorphic=False)
class angle_bend:
    """Second derivative of `angle`: its gradient is g i / conj(z), whose change along w is -i g conj(w) / conj(z)^2."""

    def forward(xp, input: Array, first: Array, point: Array):
        if point.dtype.kind != "c":
            return xp.zeros(input.shape, input.dtype)
        return xp.where(point == 0, 0, -1j * xp.conj(input) * first / xp.conj(point * point)).astype(point.dtype)


@composite()
def is_complex(input) -> bool:
    """Whether the element type is complex."""
    return input.is_complex()


@composite()
def is_floating_point(input) -> bool:
    """Whether the element type is floating-point."""
    return input.is_floating_point()
