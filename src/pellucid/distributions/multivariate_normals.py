"""Normal vectors, with a full covariance or with one of low rank plus a diagonal."""

from __future__ import annotations

import math
from typing import ClassVar

from pellucid.core.tensor import Tensor
from pellucid.distributions import constraints
from pellucid.distributions.distribution import Centred, Distribution
from pellucid.distributions.utils import lazy_property
from pellucid.functions.broadcasting import broadcast_shapes, broadcast_tensors
from pellucid.functions.factories import eye
from pellucid.functions.linear_solving import cholesky_inverse, solve_triangular
from pellucid.functions.randoms import randn
from pellucid.ops.linear_solving import cholesky

__all__ = ["LowRankMultivariateNormal", "MultivariateNormal", "half_log_det", "mahalanobis", "precision_to_scale_tril"]


def times_vector(matrix: Tensor, vector: Tensor) -> Tensor:
    """[..., N, M] times [..., M], broadcast: [..., N]."""
    return (matrix @ vector.unsqueeze(-1)).squeeze(-1)


def mahalanobis(factor: Tensor, vector: Tensor) -> Tensor:
    """x^T (L L^T)^-1 x for lower triangular L [..., N, N] and x [..., N], broadcast."""
    size = vector.shape[-1]
    if factor.dim() == 2:  # all vectors are columns of one system
        solved = solve_triangular(factor, vector.reshape(-1, size).mT, upper=False)
        return solved.pow(2).sum(0).reshape(vector.shape[:-1])
    batch = broadcast_shapes(factor.shape[:-2], vector.shape[:-1])
    columns = vector.expand((*batch, size)).unsqueeze(-1)
    return solve_triangular(factor.expand((*batch, size, size)), columns, upper=False).pow(2).sum((-2, -1))


def half_log_det(factor: Tensor) -> Tensor:
    """Half the logarithm of the determinant of L L^T."""
    return factor.diagonal(dim1=-2, dim2=-1).log().sum(-1)


def precision_to_scale_tril(precision: Tensor) -> Tensor:
    """The lower Cholesky factor of the inverse of a positive definite matrix P.

    With P turned by 180 degrees = M M^T, the inverse of M^T turned back is the factor.
    """
    turned = cholesky(precision.flip((-2, -1))).flip((-2, -1)).mT
    return solve_triangular(turned, eye(precision.shape[-1], dtype=precision.dtype), upper=False)


class MultivariateNormal(Centred, Distribution):
    """Normal vectors of mean `loc` [*batch, N] and one of covariance, precision or lower Cholesky factor, [*batch, N, N].

    Raises:
        ValueError: not exactly one of the three is given, or something has too few dimensions.
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real_vector,
        "covariance_matrix": constraints.positive_definite,
        "precision_matrix": constraints.positive_definite,
        "scale_tril": constraints.lower_cholesky,
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(
        self,
        loc: Tensor,
        covariance_matrix=None,
        precision_matrix=None,
        scale_tril=None,
        validate_args: bool | None = None,
    ):
        if loc.dim() < 1:
            raise ValueError("loc must be at least one-dimensional.")
        name, matrix = only_matrix(ValueError, covariance_matrix, precision_matrix, scale_tril)
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        batch = broadcast_shapes(matrix.shape[:-2], loc.shape[:-1])
        setattr(self, name, matrix.expand((*batch, -1, -1)))
        self.loc = loc.expand((*batch, -1))
        super().__init__(batch, self.loc.shape[-1:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)

    def _expand_into(self, new, batch_shape) -> None:
        super()._expand_into(new, batch_shape)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril

    def _broadcast(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return self._broadcast(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance."""
        return self._broadcast(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        return self._broadcast(cholesky_inverse(self._unbroadcasted_scale_tril))

    @property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        return self._unbroadcasted_scale_tril.pow(2).sum(-1).expand(self._batch_shape + self._event_shape)

    def rsample(self, sample_shape=()) -> Tensor:
        """loc plus the factor times standard normal vectors."""
        noise = randn(self._extended_shape(sample_shape), dtype=self.loc.dtype)
        return self.loc + times_vector(self._unbroadcasted_scale_tril, noise)

    def log_prob(self, value: Tensor) -> Tensor:
        """-(d^T S^-1 d + N log(2 pi) + log det S) / 2, with d = value - loc and S the covariance."""
        if self._validate_args:
            self._validate_sample(value)
        distance = mahalanobis(self._unbroadcasted_scale_tril, value - self.loc)
        norm = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (norm + distance) - half_log_det(self._unbroadcasted_scale_tril)

    def entropy(self) -> Tensor:
        """(N (1 + log(2 pi)) + log det S) / 2."""
        size = self._event_shape[0]
        entropy = 0.5 * size * (1.0 + math.log(2 * math.pi)) + half_log_det(self._unbroadcasted_scale_tril)
        return entropy.expand(self._batch_shape)


def only_matrix(kind: type, covariance_matrix, precision_matrix, scale_tril) -> tuple[str, Tensor]:
    """Name and value of the one that is given; an exception of the given kind if it is not exactly one."""
    given = {"covariance_matrix": covariance_matrix, "precision_matrix": precision_matrix, "scale_tril": scale_tril}
    given = {name: matrix for name, matrix in given.items() if matrix is not None}
    if len(given) != 1:
        raise kind(
            "Exactly one of covariance_matrix or precision_matrix or scale_tril may be specified: got "
            f"{', '.join(given) or 'none'}."
        )
    return next(iter(given.items()))


def factor_of(name: str, matrix: Tensor) -> Tensor:
    """The lower Cholesky factor of the covariance that a matrix of this name stands for."""
    if name == "covariance_matrix":
        return cholesky(matrix)
    return precision_to_scale_tril(matrix) if name == "precision_matrix" else matrix


class LowRankMultivariateNormal(Centred, Distribution):
    """Normal vectors of mean `loc` [*batch, N] and covariance W W^T + D.

    cov_factor: W [*batch, N, M]; cov_diag: the diagonal of D [*batch, N], positive. Only M by M matrices are factored, by
    the matrix determinant lemma and Woodbury's identity, through the capacitance I + W^T D^-1 W.

    Raises:
        ValueError: shapes that do not fit.
    """

    arg_constraints: ClassVar = {
        "loc": constraints.real_vector,
        "cov_factor": constraints.independent(constraints.real, 2),
        "cov_diag": constraints.independent(constraints.positive, 1),
    }
    support = constraints.real_vector
    has_rsample = True

    def __init__(self, loc: Tensor, cov_factor: Tensor, cov_diag: Tensor, validate_args: bool | None = None):
        _check_low_rank(loc, cov_factor, cov_diag)
        try:
            wide, self.cov_factor, diagonal = broadcast_tensors(loc.unsqueeze(-1), cov_factor, cov_diag.unsqueeze(-1))
        except RuntimeError as error:
            raise ValueError(
                f"Incompatible batch shapes: loc {loc.shape}, cov_factor {cov_factor.shape}, cov_diag {cov_diag.shape}"
            ) from error
        self.loc, self.cov_diag = wide[..., 0], diagonal[..., 0]
        self._unbroadcasted_cov_factor, self._unbroadcasted_cov_diag = cov_factor, cov_diag
        self._capacitance_tril = cholesky(_identity_plus(self._weighted() @ cov_factor))
        super().__init__(self.loc.shape[:-1], loc.shape[-1:], validate_args=validate_args)

    def _expand_into(self, new, batch_shape) -> None:
        super()._expand_into(new, batch_shape)
        for name in ("_unbroadcasted_cov_factor", "_unbroadcasted_cov_diag", "_capacitance_tril"):
            setattr(new, name, getattr(self, name))

    def _weighted(self) -> Tensor:
        """W^T D^-1."""
        return self._unbroadcasted_cov_factor.mT / self._unbroadcasted_cov_diag.unsqueeze(-2)

    def _whitened(self) -> Tensor:
        """A with (W W^T + D)^-1 = D^-1 - A^T A."""
        return solve_triangular(self._capacitance_tril, self._weighted(), upper=False)

    def _mahalanobis(self, x: Tensor) -> Tensor:
        return (x.pow(2) / self._unbroadcasted_cov_diag).sum(-1) - mahalanobis(
            self._capacitance_tril, times_vector(self._weighted(), x)
        )

    def _log_det(self) -> Tensor:
        return 2 * half_log_det(self._capacitance_tril) + self._unbroadcasted_cov_diag.log().sum(-1)

    def _broadcast(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape + self._event_shape)

    @lazy_property
    def variance(self) -> Tensor:
        """The diagonal of the covariance."""
        diagonal = self._unbroadcasted_cov_factor.pow(2).sum(-1) + self._unbroadcasted_cov_diag
        return diagonal.expand(self._batch_shape + self._event_shape)

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance: D^(1/2) times that of I + D^(-1/2) W W^T D^(-1/2)."""
        root = self._unbroadcasted_cov_diag.sqrt().unsqueeze(-1)
        scaled = self._unbroadcasted_cov_factor / root
        return self._broadcast(root * cholesky(_identity_plus(scaled @ scaled.mT)))

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """W W^T + D."""
        factor = self._unbroadcasted_cov_factor
        return self._broadcast(factor @ factor.mT + self._unbroadcasted_cov_diag.diag_embed())

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """The inverse of the covariance."""
        whitened = self._whitened()
        return self._broadcast(self._unbroadcasted_cov_diag.reciprocal().diag_embed() - whitened.mT @ whitened)

    def rsample(self, sample_shape=()) -> Tensor:
        """loc plus W and D^(1/2) times standard normal vectors."""
        shape = self._extended_shape(sample_shape)
        shared = randn((*shape[:-1], self.cov_factor.shape[-1]), dtype=self.loc.dtype)
        own = randn(shape, dtype=self.loc.dtype)
        return (
            self.loc + times_vector(self._unbroadcasted_cov_factor, shared) + self._unbroadcasted_cov_diag.sqrt() * own
        )

    def log_prob(self, value: Tensor) -> Tensor:
        """-(d^T S^-1 d + N log(2 pi) + log det S) / 2, with d = value - loc and S the covariance."""
        if self._validate_args:
            self._validate_sample(value)
        norm = self._event_shape[0] * math.log(2 * math.pi)
        return -0.5 * (norm + self._log_det() + self._mahalanobis(value - self.loc))

    def entropy(self) -> Tensor:
        """(N (1 + log(2 pi)) + log det S) / 2."""
        return (0.5 * (self._event_shape[0] * (1.0 + math.log(2 * math.pi)) + self._log_det())).expand(
            self._batch_shape
        )


def _identity_plus(matrix: Tensor) -> Tensor:
    return matrix + eye(matrix.shape[-1], dtype=matrix.dtype)


def _check_low_rank(loc: Tensor, cov_factor: Tensor, cov_diag: Tensor) -> None:
    if loc.dim() < 1:
        raise ValueError("loc must be at least one-dimensional.")
    event_shape = loc.shape[-1:]
    if cov_factor.dim() < 2:
        raise ValueError("cov_factor must be at least two-dimensional, with optional leading batch dimensions")
    if cov_factor.shape[-2:-1] != event_shape:
        raise ValueError(
            f"cov_factor must be a batch of matrices with shape {event_shape[0]} x m, got {tuple(cov_factor.shape)}"
        )
    if cov_diag.shape[-1:] != event_shape:
        raise ValueError(f"cov_diag must be a batch of vectors with shape {event_shape}, got {tuple(cov_diag.shape)}")
