"""Distances and similarities of vectors: pairs row by row, and all pairs of two lists or of one. Norms are in norms.py."""

from __future__ import annotations

import math

import numpy as np

from pellucid.autograd.operator import Array, Promote, composite, operator
from pellucid.autograd.operator import tensors as T
from pellucid.core.tensor import Tensor, wrap
from pellucid.ops.checks import scalar_name
from pellucid.ops.norms import vector_norm

__all__ = ["cdist", "cosine_similarity", "normalize", "pairwise_distance", "pdist"]

MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")
ROWS = 25  # more rows than these, and Euclidean distances are taken from a matrix product
BLOCK = 1 << 20  # numbers of a block of differences that is held at once


# --- row by row ------------------------------------------------------------------------------------------------------


@composite(module="nn.functional")
def normalize(input, p: float = 2.0, dim=1, eps: float = 1e-12, out=None):
    """The vectors along `dim` divided by their p-norm, or by `eps` if that is larger.

    input: [*S], float or complex. dim: a dimension or a tuple. Returns [*S].
    """
    norm = vector_norm(input, p, dim, keepdim=True)
    return T.true_divide(input, norm.clamp_min(eps), out=out)


def _at_least(norm: Tensor, eps: float) -> Tensor:
    """A norm that is `eps` where it would be less; the gradient passes as if it had not been."""
    return norm + wrap(np.maximum(eps - norm._array, 0).astype(norm._array.dtype))


@composite(module=("nn.functional", "torch"))
def cosine_similarity(x1, x2, dim: int = 1, eps: float = 1e-8):
    """The cosine of the angle between the vectors of x1 and x2 along `dim`; norms are at least `eps`.

    x1, x2: float, broadcast to a common shape [*S]. Returns [*S] without `dim`.
    Raises: RuntimeError for two tensors of integers.
    """
    if not (_continuous(x1) or _continuous(x2)):
        raise RuntimeError(
            f"expected common dtype to be floating point, yet common dtype is {scalar_name(x1._array)}: convert with .float()"
        )
    common = np.result_type(x1._array, x2._array) if x1._array.dtype != x2._array.dtype else None
    x1, x2 = T_broadcast(x1, x2, common)
    norm1, norm2 = (_at_least(vector_norm(x, 2, dim, keepdim=True), eps) for x in (x1, x2))
    return ((x1 / norm1) * (x2 / norm2)).sum(dim)


@composite(module=("nn.functional", "torch"))
def pairwise_distance(x1, x2, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
    """The p-norm of x1 - x2 + eps along the last dimension.

    x1, x2: [*, M], broadcast. Returns [*], or [*, 1] with `keepdim`.
    """
    return vector_norm(x1 - x2 + eps, p, -1, keepdim)
