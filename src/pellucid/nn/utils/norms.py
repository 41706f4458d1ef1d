"""The arithmetic of weight norm and spectral norm, for both of the ways in which they are put on a module."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pellucid.autograd.grad_mode import no_grad
from pellucid.nn import functional as F

if TYPE_CHECKING:
    from pellucid.core.tensor import Tensor

__all__ = ["as_matrix", "norm_except_dim", "power_iteration", "random_unit", "sigma", "weight_of"]


def norm_except_dim(v: Tensor, dim: int) -> Tensor:
    """The norm over every dimension but `dim`, which stays; over all of them for -1."""
    if dim == -1:
        return (v * v).sum().sqrt()
    others = [d for d in range(v.dim()) if d != dim % v.dim()]
    return (v * v).sum(others, keepdim=True).sqrt() if others else v.abs()


def weight_of(v: Tensor, g: Tensor, dim: int) -> Tensor:
    """g * v / |v|."""
    return v * (g / norm_except_dim(v, dim))


def as_matrix(weight: Tensor, dim: int) -> Tensor:
    """[size of `dim`, everything else]."""
    if dim != 0:
        weight = weight.permute(dim, *(d for d in range(weight.dim()) if d != dim))
    return weight.reshape(weight.shape[0], -1)


def random_unit(matrix: Tensor, size: int, eps: float) -> Tensor:
    """A random vector of length 1, of the matrix's dtype."""
    return F.normalize(matrix.detach().new_empty(size).normal_(0, 1), dim=0, eps=eps)


def power_iteration(matrix: Tensor, u: Tensor, v: Tensor, count: int, eps: float, u_first: bool) -> None:
    """Bring u and v, in place, nearer to the singular vectors of the largest singular value."""
    with no_grad():
        for _ in range(count):
            for side in ("u", "v") if u_first else ("v", "u"):
                if side == "u":
                    u.copy_(F.normalize(matrix @ v, dim=0, eps=eps))
                else:
                    v.copy_(F.normalize(matrix.t() @ u, dim=0, eps=eps))


def sigma(matrix: Tensor, u: Tensor, v: Tensor) -> Tensor:
    """u . (matrix v): the largest singular value, if u and v are right.

    Copies are used, so that a backward pass may follow another iteration.
    """
    return (u.clone() * (matrix @ v.clone())).sum()
