"""The parametrization that keeps a matrix orthogonal; it is public in `parametrizations.py`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pellucid.autograd.grad_mode import no_grad
from pellucid.core.limits import finfo
from pellucid.core.tensor import Tensor
from pellucid.functions.comparison import allclose
from pellucid.functions.factories import eye, zeros_like
from pellucid.functions.linear_functions import matrix_exp
from pellucid.functions.linear_spectra import householder_product
from pellucid.functions.randoms import randn
from pellucid.nn.modules.module import Module
from pellucid.nn.utils.parametrize import register_parametrization
from pellucid.ops.choosing import where
from pellucid.ops.joining import cat
from pellucid.ops.linear_packed import geqrf
from pellucid.ops.linear_solving import solve

if TYPE_CHECKING:
    from pellucid.core.size import Size

__all__ = ["orthogonal"]

_MAPS = ("matrix_exp", "cayley", "householder")


def _is_orthogonal(matrix: Tensor) -> bool:
    eps = 10.0 * matrix.size(-2) * finfo(matrix.dtype).eps
    return allclose(matrix.mH @ matrix, eye(matrix.size(-1), dtype=matrix.dtype), atol=eps)


def _orthogonalised(matrix: Tensor) -> Tensor:
    """Q of the factorisation QR with a positive diagonal of R."""
    packed, tau = geqrf(matrix)
    return householder_product(packed, tau) * packed.diagonal(dim1=-2, dim2=-1).sgn().unsqueeze(-2)


def _as_tall(matrix: Tensor) -> tuple[Tensor, bool]:
    """The matrix or its transpose, with at least as many rows as columns, and whether it was transposed."""
    wide = matrix.size(-2) < matrix.size(-1)
    return (matrix.mT if wide else matrix), wide


class _Orthogonal(Module):
    """An orthogonal matrix (of orthonormal columns, or rows if it is wide) from a matrix of the same shape.

    With `base`, the result is the base times the image, so that training starts at the identity.
    """

    base: Tensor | None

    def __init__(self, weight: Tensor, orthogonal_map: str, use_trivialization: bool = True):
        super().__init__()
        if weight.is_complex() and orthogonal_map == "householder":
            # reflectors of a complex matrix have too few numbers to say what tau is
            raise ValueError("The householder parametrization does not support complex tensors.")
        self.shape: Size = weight.shape
        self.orthogonal_map = orthogonal_map
        if use_trivialization:
            self.register_buffer("base", None)

    def forward(self, X: Tensor) -> Tensor:
        """The orthogonal matrix."""
        X, wide = _as_tall(X)
        Q = self._from_reflectors(X) if self.orthogonal_map == "householder" else self._from_skew(X)
        if hasattr(self, "base"):
            Q = self.base @ Q
        return Q.mT if wide else Q

    def _from_skew(self, X: Tensor) -> Tensor:
        """From the skew-symmetric matrix of the lower triangle, by the exponential or Cayley's map."""
        n, k = X.shape[-2:]
        lower = X.tril()
        if n != k:
            lower = cat([lower, lower.new_zeros(*lower.shape[:-1], n - k)], -1)
        skew = lower - lower.mH
        if self.orthogonal_map == "matrix_exp":
            Q = matrix_exp(skew)
        else:
            identity = eye(n, dtype=skew.dtype)
            Q = solve(identity - 0.5 * skew, identity + 0.5 * skew)
        return Q[..., :k] if n != k else Q

    def _from_reflectors(self, X: Tensor) -> Tensor:
        """The product of the Householder reflectors below the diagonal, with the signs on it."""
        below = X.tril(-1)
        tau = 2.0 / (1.0 + (below * below).sum(-2))
        return householder_product(below, tau) * X.diagonal(dim1=-2, dim2=-1).int().unsqueeze(-2)

    @no_grad()
    def right_inverse(self, Q: Tensor) -> Tensor:
        """What gives Q, or where Q is not orthogonal something near it.

        Raises:
            ValueError: another shape.
            NotImplementedError: without a base, for the exponential and Cayley's map.
        """
        if Q.shape != self.shape:
            raise ValueError(
                f"Expected a matrix or batch of matrices of shape {self.shape}. Got a tensor of shape {Q.shape}."
            )
        tall, wide = _as_tall(Q)
        if hasattr(self, "base"):
            self.base = self._completed(tall)
            start = zeros_like(Q)
            start.diagonal(dim1=-2, dim2=-1).fill_(-1.0)  # the sign with which no reflectors give the identity
            return start
        if self.orthogonal_map != "householder":
            raise NotImplementedError(
                "It is not possible to assign to the matrix exponential or the Cayley parametrizations when "
                "use_trivialization=False."
            )
        packed, tau = geqrf(tall)
        signs = packed.diagonal(dim1=-2, dim2=-1).sign()
        signs = where(tau == 0.0, -signs, signs)  # there is no reflector to change the sign
        packed = packed.tril(-1) + packed.triu(1)
        packed.diagonal(dim1=-2, dim2=-1).copy_(signs)
        return packed.mT if wide else packed

    def _completed(self, tall: Tensor) -> Tensor:
        """A square orthogonal matrix that begins with the columns of a tall one."""
        n, k = tall.shape[-2:]
        if n != k:
            tall = cat([tall, randn(*tall.shape[:-2], n, n - k, dtype=tall.dtype)], -1)
        elif _is_orthogonal(tall):
            return tall.clone()
        return _orthogonalised(tall)


def orthogonal(
    module: Module, name: str = "weight", orthogonal_map: str | None = None, *, use_trivialization: bool = True
) -> Module:
    """Keep a matrix orthogonal: Q^T Q = I if it is tall, Q Q^T = I if it is wide; unitary if it is complex.

    Args:
        module: the module that has the weight.
        name: its name.
        orthogonal_map: "matrix_exp", "cayley" or "householder"; for None the first for square and complex matrices, else
            the last.
        use_trivialization: train the distance from a fixed orthogonal matrix, to which one can assign.

    Raises:
        ValueError: there is no such weight, it is no matrix, or there is no such map for it.

    Source: Lezcano-Casado, Trivializations for gradient-based optimization on manifolds, 2019.
    """
    weight = getattr(module, name, None)
    if not isinstance(weight, Tensor):
        raise ValueError(f"Module '{module}' has no parameter or buffer with name '{name}'")
    if weight.ndim < 2:
        raise ValueError(f"Expected a matrix or batch of matrices. Got a tensor of {weight.ndim} dimensions.")
    if orthogonal_map is None:
        square = weight.size(-2) == weight.size(-1)
        orthogonal_map = "matrix_exp" if square or weight.is_complex() else "householder"
    if orthogonal_map not in _MAPS:
        raise ValueError(
            f'orthogonal_map has to be one of "matrix_exp", "cayley", "householder". Got: {orthogonal_map}'
        )
    parametrization = _Orthogonal(weight, orthogonal_map, use_trivialization)
    return register_parametrization(module, name, parametrization, unsafe=True)
