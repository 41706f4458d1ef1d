"""Transforms of vectors and matrices: onto the simplex, into Cholesky factors, into other shapes."""

from __future__ import annotations

import math

from pellucid.core.limits import finfo
from pellucid.core.size import Size
from pellucid.distributions import constraints
from pellucid.distributions.transforms.base import Transform
from pellucid.distributions.transforms.elementwise import Parameterless, clipped_sigmoid
from pellucid.distributions.utils import tril_matrix_to_vec, vec_to_tril_matrix
from pellucid.functions.factories import eye
from pellucid.nn.functional import logsigmoid, pad, softplus
from pellucid.ops.linear_solving import cholesky

__all__ = [
    "CorrCholeskyTransform",
    "LowerCholeskyTransform",
    "PositiveDefiniteTransform",
    "ReshapeTransform",
    "SoftmaxTransform",
    "StickBreakingTransform",
]

_TOO_FEW = "Too few dimensions on input"


def _need(count: int, shape) -> None:
    if len(shape) < count:
        raise ValueError(f"{_TOO_FEW}: expected at least {count}, got shape {tuple(shape)}")


# --- the simplex -----------------------------------------------------------------------------------------------------


class SoftmaxTransform(Parameterless):
    """y = softmax(x), along the last dimension. Not a bijection: the inverse gives log(y)."""

    domain = constraints.real_vector
    codomain = constraints.simplex

    def _call(self, x):
        raised = (x - x.max(-1, True)[0]).exp()
        return raised / raised.sum(-1, True)

    def _inverse(self, y):
        return y.log()

    def forward_shape(self, shape):
        _need(1, shape)
        return shape

    inverse_shape = forward_shape


class StickBreakingTransform(Parameterless):
    """K - 1 numbers to K shares: each takes, of what the ones before left over, the part that a sigmoid says.

    The sigmoids are shifted so that zeros give equal shares. A bijection.
    """

    domain = constraints.real_vector
    codomain = constraints.simplex
    bijective = True

    @staticmethod
    def _shift(x):
        """log(K - 1), log(K - 2), ..., log(1)."""
        return (x.shape[-1] + 1 - x.new_ones(x.shape[-1]).cumsum(-1)).log()

    def _call(self, x):
        taken = clipped_sigmoid(x - self._shift(x))
        left = (1 - taken).cumprod(-1)
        return pad(taken, [0, 1], value=1) * pad(left, [1, 0], value=1)

    def _inverse(self, y):
        shares = y[..., :-1]
        left = (1 - shares.cumsum(-1)).clamp(min=finfo(y.dtype).tiny)
        return shares.log() - left.log() + self._shift(shares)

    def log_abs_det_jacobian(self, x, y):
        x = x - self._shift(x)
        return (-x + logsigmoid(x) + y[..., :-1].log()).sum(-1)

    def forward_shape(self, shape):
        _need(1, shape)
        return Size((*shape[:-1], shape[-1] + 1))

    def inverse_shape(self, shape):
        _need(1, shape)
        return Size((*shape[:-1], shape[-1] - 1))


# --- matrices --------------------------------------------------------------------------------------------------------


def _with_diagonal(matrix, diagonal):
    """The part below the diagonal, with another diagonal."""
    return matrix.tril(-1) + diagonal.diag_embed()


class LowerCholeskyTransform(Parameterless):
    """A matrix to its lower triangle with the diagonal exponentiated."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.lower_cholesky

    def _call(self, x):
        return _with_diagonal(x, x.diagonal(dim1=-2, dim2=-1).exp())

    def _inverse(self, y):
        return _with_diagonal(y, y.diagonal(dim1=-2, dim2=-1).log())


class PositiveDefiniteTransform(Parameterless):
    """A matrix to L L^T, with L from `LowerCholeskyTransform`."""

    domain = constraints.independent(constraints.real, 2)
    codomain = constraints.positive_definite

    def _call(self, x):
        factor = LowerCholeskyTransform()(x)
        return factor @ factor.mT

    def _inverse(self, y):
        return LowerCholeskyTransform().inv(cholesky(y))


class CorrCholeskyTransform(Transform):
    """D (D - 1) / 2 numbers to the Cholesky factor of a correlation matrix [D, D], row by row.

    tanh of a number is an element relative to the length that the elements before it leave of a row of length 1; the
    diagonal takes the rest. The Jacobian is that to the elements below the diagonal.

    Source: Stan Reference Manual, Cholesky factors of correlation matrices.
    """

    domain = constraints.real_vector
    codomain = constraints.corr_cholesky
    bijective = True

    def _call(self, x):
        eps = finfo(x.dtype).eps
        part = vec_to_tril_matrix(x.tanh().clamp(min=-1 + eps, max=1 - eps), diag=-1)
        left = (1 - part**2).sqrt().cumprod(-1)
        part = part + eye(part.shape[-1], dtype=part.dtype)
        return part * pad(left[..., :-1], [1, 0], value=1)

    def _inverse(self, y):
        left = pad((1 - (y * y).cumsum(-1))[..., :-1], [1, 0], value=1)
        part = tril_matrix_to_vec(y, diag=-1) / tril_matrix_to_vec(left, diag=-1).sqrt()
        return (part.log1p() - part.neg().log1p()) / 2

    def log_abs_det_jacobian(self, x, y, intermediates=None):
        left = tril_matrix_to_vec(1 - (y * y).cumsum(-1), diag=-2)
        tanh_part = -2 * (x + softplus(-2 * x) - math.log(2.0)).sum(-1)
        return 0.5 * left.log().sum(-1) + tanh_part

    def forward_shape(self, shape):
        _need(1, shape)
        count = shape[-1]
        size = round((0.25 + 2 * count) ** 0.5 + 0.5)
        if size * (size - 1) // 2 != count:
            raise ValueError(
                f"Input is not a flattened lower-diagonal number: got {count}, next are {size * (size - 1) // 2}"
            )
        return Size((*shape[:-1], size, size))

    def inverse_shape(self, shape):
        _need(2, shape)
        if shape[-2] != shape[-1]:
            raise ValueError(f"Input is not square: got shape {tuple(shape)}")
        return Size((*shape[:-2], shape[-1] * (shape[-1] - 1) // 2))


# --- shapes ----------------------------------------------------------------------------------------------------------


class ReshapeTransform(Transform):
    """The last dimensions, of shape `in_shape`, reshaped to `out_shape`.

    Raises:
        ValueError: the shapes have different numbers of elements.
    """

    bijective = True

    def __init__(self, in_shape, out_shape, cache_size: int = 0):
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError(
                f"in_shape, out_shape have different numbers of elements: {self.in_shape.numel()} and {self.out_shape.numel()}"
            )
        super().__init__(cache_size=cache_size)

    def _arguments(self) -> tuple:
        return self.in_shape, self.out_shape

    @constraints.dependent_property
    def domain(self):
        """Real tensors of shape `in_shape`."""
        return constraints.independent(constraints.real, len(self.in_shape))

    @constraints.dependent_property
    def codomain(self):
        """Real tensors of shape `out_shape`."""
        return constraints.independent(constraints.real, len(self.out_shape))

    def _call(self, x):
        return x.reshape(x.shape[: x.dim() - len(self.in_shape)] + self.out_shape)

    def _inverse(self, y):
        return y.reshape(y.shape[: y.dim() - len(self.out_shape)] + self.in_shape)

    def log_abs_det_jacobian(self, x, y):
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape):
        return self._reshaped(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape):
        return self._reshaped(shape, self.out_shape, self.in_shape)

    @staticmethod
    def _reshaped(shape, before: Size, after: Size) -> Size:
        _need(len(before), shape)
        cut = len(shape) - len(before)
        if tuple(shape[cut:]) != tuple(before):
            raise ValueError(f"Shape mismatch: expected {before} but got {Size(shape[cut:])}")
        return Size(shape[:cut]) + after
