"""Discrete Fourier transforms of complex, real and Hermitian signals.

Three operators compute (complex to complex, real to complex, complex to real); every public transform, in
`functions/fourier.py`, is one of them on an operand cut or padded to size.
"""

from __future__ import annotations

from pellucid.autograd.operator import Array, operator

# The adjoint of a transform is the transform in the other direction with the same factor, which there has this name.
OTHER_WAY = {"backward": "forward", "ortho": "ortho", "forward": "backward"}


# --- the three operators ---------------------------------------------------------------------------------------------


@operator(module=None, holomorphic=False, widen=False, node="FftC2CBackward0", linear=True)
class fft_c2c:
    """The Fourier transform over `dim`, forward or inverse. input: [*S], complex. Returns [*S]."""

    def forward(xp, input: Array, dim: tuple, norm: str, inverse: bool):
        from scipy import fft  # slow import

        if not dim:
            return input.copy()
        return (fft.ifftn if inverse else fft.fftn)(input, axes=dim, norm=norm)

    def vjp_input(F, grad, dim, norm, inverse):
        return F.fft_c2c(grad, dim, OTHER_WAY[norm], not inverse)

    def samples(make):
        yield (make(3, 4) + 1j * make(3, 4), (1,), "backward", False), {}
        yield (make(2, 3, 4) + 1j * make(2, 3, 4), (0, 2), "ortho", True), {}
        yield (make(5) + 1j * make(5), (0,), "forward", True), {}
        yield (make(2) + 1j * make(2), (), "forward", False), {}


@operator(module=None, holomorphic=False, widen=False, node="FftR2CBackward0", linear=True)
class fft_r2c:
    """The forward transform of a real signal over `dim`.

    input: [*S], real. Returns [*S], complex; onesided: the last of `dim` has its first n // 2 + 1 frequencies only, of which the
    others are the conjugates. Adjoint: as in `fft_c2r`, a frequency that stands for two counts half.
    """

    def forward(xp, input: Array, dim: tuple, norm: str, onesided: bool):
        from scipy import fft  # slow import

        if not dim:
            return input.astype(xp.result_type(input.dtype, xp.complex64))
        return (fft.rfftn if onesided else fft.fftn)(input, axes=dim, norm=norm)

    def vjp_input(F, grad, input_shape, dim, norm, onesided):
        if not onesided:
            return F.real_copy(F.fft_c2c(grad, dim, OTHER_WAY[norm], True))
        size = input_shape[dim[-1]]
        return F.fft_c2r(F.scaled_pairs(grad, dim[-1], size, 0.5), dim, OTHER_WAY[norm], size)

    def samples(make):
        for onesided in (True, False):
            yield (make(3, 4), (1,), "backward", onesided), {}
            yield (make(2, 3, 5), (0, 2), "forward", onesided), {}
            yield (make(4, 3), (1, 0), "ortho", onesided), {}


@operator(module=None, holomorphic=False, widen=False, node="FftC2RBackward0", linear=True)
class fft_c2r:
    """The real signal of the given size whose one-sided spectrum is the operand: the inverse transform over `dim`.

    input: [*S], complex, with size // 2 + 1 frequencies along the last of `dim`. Returns [*S], real, `size` there. The imaginary
    part of a frequency that is its own conjugate does not count; every other one stands for two, and its derivative doubles.
    """

    def forward(xp, input: Array, dim: tuple, norm: str, size: int):
        from scipy import fft  # slow import

        sizes = [*(input.shape[d] for d in dim[:-1]), size]
        return fft.irfftn(input, sizes, axes=dim, norm=norm)

    def vjp_input(F, grad, dim, norm, size):
        return F.scaled_pairs(F.fft_r2c(grad, dim, OTHER_WAY[norm], True), dim[-1], size, 2.0)

    def samples(make):
        yield (make(3, 3) + 1j * make(3, 3), (1,), "backward", 4), {}
        yield (make(2, 3, 3) + 1j * make(2, 3, 3), (0, 2), "ortho", 5), {}


@operator(module=None, holomorphic=False, linear=True)
class scaled_pairs:
    """A one-sided spectrum in which the frequencies that stand for two, those from 1 to below size / 2, take a factor."""

    def forward(xp, input: Array, dim: int, size: int, factor: float):
        made = input.copy()
        made[(*(slice(None),) * dim, slice(1, (size + 1) // 2))] *= factor
        return made

    def vjp_input(F, grad, dim, size, factor):
        return F.scaled_pairs(grad, dim, size, factor)

    def samples(make):
        yield (make(2, 3), 1, 4, 0.5), {}
        yield (make(3, 2) + 1j * make(3, 2), 0, 5, 2.0), {}
