"""Distances and similarities of vectors as users call them: pairs row by row, and all pairs of two lists or of one.

The operators are in `ops/distances.py`.
"""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import composite
from pellucid.autograd.operator import tensors as T
from pellucid.core.checks import same_dtype, scalar_name
from pellucid.core.dtype import dtype_of, promoted
from pellucid.core.tensor import Tensor
from pellucid.functions.broadcasting import broadcast_shapes, broadcast_tensors
from pellucid.functions.norms import vector_norm
from pellucid.ops.distances import at_least

__all__ = ["cdist", "cosine_similarity", "normalize", "pairwise_distance", "pdist"]

MODES = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")

ROWS = 25  # more rows than these, and Euclidean distances are taken from a matrix product


# --- row by row ------------------------------------------------------------------------------------------------------


@composite(module="nn.functional")
def normalize(input, p: float = 2.0, dim=1, eps: float = 1e-12, out=None):
    """The vectors along `dim` divided by their p-norm, or by `eps` if that is larger.

    input: [*S], float or complex. dim: a dimension or a tuple. Returns [*S].
    """
    norm = vector_norm(input, p, dim, keepdim=True)
    return T.true_divide(input, norm.clamp_min(eps), out=out)


@composite(module=("nn.functional", "torch"))
def cosine_similarity(x1, x2, dim: int = 1, eps: float = 1e-8):
    """The cosine of the angle between the vectors of x1 and x2 along `dim`; norms are at least `eps`.

    x1, x2: float, broadcast to a common shape [*S]. Returns [*S] without `dim`.
    Raises: RuntimeError unless the common dtype is floating-point.
    """
    common = promoted((x1._array, x2._array), ())
    if common.kind not in "fV":
        raise RuntimeError(f"expected common dtype to be floating point, yet common dtype is {scalar_name(np.empty(0, common))}: "
                           "convert the tensors with .float()")
    x1, x2 = broadcast_tensors(x1.to(dtype_of(common)), x2.to(dtype_of(common)))
    norm1, norm2 = (at_least(vector_norm(x, 2, dim, keepdim=True), eps) for x in (x1, x2))
    return ((x1 / norm1) * (x2 / norm2)).sum(dim)


@composite(module=("nn.functional", "torch"))
def pairwise_distance(x1, x2, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False):
    """The p-norm of x1 - x2 + eps along the last dimension.

    x1, x2: [*, M], broadcast. Returns [*], or [*, 1] with `keepdim`.
    """
    return vector_norm(x1 - x2 + eps, p, -1, keepdim)


# --- all pairs -------------------------------------------------------------------------------------------------------


def _check_pairs(x1: Tensor, x2: Tensor, p: float) -> None:
    for name, x in (("X1", x1._array), ("X2", x2._array)):
        _check_floating("cdist", x, f"{name} ")
    for name, x in (("X1", x1._array), ("X2", x2._array)):
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {name} got: {x.ndim}D")
    same_dtype(x1._array, x2._array, "expected scalar type {a} but found {b}")
    if x1.shape[-1] != x2.shape[-1]:
        raise RuntimeError(f"X1 and X2 must have the same number of columns. X1: {x1.shape[-1]} X2: {x2.shape[-1]}")
    _check_power("cdist", p)


def _check_floating(name: str, array: np.ndarray, which: str = "") -> None:
    if array.dtype.kind not in "fV":
        raise RuntimeError(f"{name} only supports floating-point dtypes, {which}got: {scalar_name(array)}")


def _check_power(name: str, p: float) -> None:
    if p < 0:
        raise RuntimeError(f"{name} only supports non-negative p values, got p={p}")


@composite()
def cdist(x1, x2, p: float = 2.0, compute_mode: str = MODES[0]):
    """The p-norm distances of every row of x1 to every row of x2.

    x1, x2: [*, P, M] and [*, R, M] of one float dtype; batch dimensions are broadcast. p: from 0 (how many coordinates
    differ) to inf (the largest difference). compute_mode: whether Euclidean distances may come from a matrix product, faster
    and less exact: "use_mm_for_euclid_dist_if_necessary" (for more than 25 rows), "use_mm_for_euclid_dist" or
    "donot_use_mm_for_euclid_dist". Returns [*, P, R]. The gradient at equal points is 0.
    Raises: ValueError for another mode, RuntimeError for shapes or dtypes that do not fit, or a negative p.
    """
    if compute_mode not in MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode: expected one of {', '.join(MODES)}")
    _check_pairs(x1, x2, p)
    batch = tuple(broadcast_shapes(x1.shape[:-2], x2.shape[:-2]))
    x1, x2 = (x if tuple(x.shape[:-2]) == batch else x.expand(batch + tuple(x.shape[-2:])) for x in (x1, x2))
    many = compute_mode == MODES[0] and max(x1.shape[-2], x2.shape[-2]) > ROWS
    if p == 2 and (many or compute_mode == MODES[1]):
        return T.euclidean_dist(x1, x2)
    return T._cdist(x1, x2, float(p))


@composite(module=("nn.functional", "torch"))
def pdist(input, p: float = 2):
    """The p-norm distances of the rows of a matrix to one another, each pair once: (0, 1), (0, 2), ..., (1, 2), ...

    input: [N, M], float. Returns [N * (N - 1) / 2]. The gradient at equal points is 0.
    Raises: RuntimeError for another number of dimensions, for integers, or for a negative p.
    """
    if input._array.ndim != 2:
        raise RuntimeError(f"pdist only supports 2D tensors, got: {input._array.ndim}D")
    _check_floating("pdist", input._array)
    _check_power("pdist", p)
    return T._pdist(input, float(p))
