"""Distributions over matrices: Wishart, for covariances, and LKJ, for Cholesky factors of correlations."""

from __future__ import annotations

import math
import warnings
from numbers import Number
from typing import ClassVar

from pellucid.core.limits import finfo
from pellucid.core.size import Size
from pellucid.core.tensor import Tensor
from pellucid.distributions import constraints
from pellucid.distributions.distribution import Distribution
from pellucid.distributions.exp_family import ExponentialFamily
from pellucid.distributions.gammas import Chi2
from pellucid.distributions.multivariate_normals import factor_of, half_log_det, only_matrix
from pellucid.distributions.simplexes import Beta
from pellucid.distributions.utils import broadcast_all, lazy_property
from pellucid.functions.broadcasting import broadcast_shapes
from pellucid.functions.construction import tensor
from pellucid.functions.factories import arange, eye, tril_indices
from pellucid.functions.linear_solving import cholesky_solve
from pellucid.functions.randoms import randn
from pellucid.ops.choosing import where
from pellucid.ops.joining import cat
from pellucid.ops.linear_solving import slogdet

__all__ = ["LKJCholesky", "Wishart"]


class Wishart(ExponentialFamily):
    """The sum of `df` outer products of normal vectors of mean 0, for whole df; given by df and one matrix.

    df: a number or [*batch], above N - 1. The matrix: covariance, precision or lower Cholesky factor [*batch, N, N].

    Raises:
        AssertionError: not exactly one matrix is given.
        ValueError: df is too small, or the matrix has too few dimensions.
    """

    support = constraints.positive_definite
    has_rsample = True
    _mean_carrier_measure = 0

    def __init__(
        self, df, covariance_matrix=None, precision_matrix=None, scale_tril=None, validate_args: bool | None = None
    ):
        name, matrix = only_matrix(AssertionError, covariance_matrix, precision_matrix, scale_tril)
        if matrix.dim() < 2:
            raise ValueError(f"{name} must be at least two-dimensional, with optional leading batch dimensions")
        size = matrix.shape[-1]
        df = tensor(df, dtype=matrix.dtype) if isinstance(df, Number) else df
        batch = broadcast_shapes(matrix.shape[:-2], df.shape)
        self.df = df.expand(batch)
        if bool((df <= size - 1).any()):
            raise ValueError(f"Value of df={df} expected to be greater than ndim - 1 = {size - 1}.")
        if bool((df < size).any()):
            warnings.warn(
                "Low df values detected. Singular samples are highly likely to occur for ndim - 1 < df < ndim.",
                stacklevel=2,
            )
        setattr(self, name, matrix.expand((*batch, -1, -1)))
        super().__init__(batch, matrix.shape[-2:], validate_args=validate_args)
        self._unbroadcasted_scale_tril = factor_of(name, matrix)

    @property
    def arg_constraints(self) -> dict:
        """A positive definite matrix, or its factor, and a df above N - 1."""
        return {
            "covariance_matrix": constraints.positive_definite,
            "precision_matrix": constraints.positive_definite,
            "scale_tril": constraints.lower_cholesky,
            "df": constraints.greater_than(self.event_shape[-1] - 1),
        }

    def _expand_into(self, new, batch_shape) -> None:
        new._event_shape = self._event_shape  # arg_constraints asks for it
        super()._expand_into(new, batch_shape)
        new._unbroadcasted_scale_tril = self._unbroadcasted_scale_tril.expand(batch_shape + self.event_shape)

    def _broadcast(self, matrix: Tensor) -> Tensor:
        return matrix.expand(self._batch_shape + self._event_shape)

    def _per_matrix(self, value: Tensor) -> Tensor:
        return value.reshape(self._batch_shape + Size((1, 1)))

    @lazy_property
    def scale_tril(self) -> Tensor:
        """The lower Cholesky factor of the covariance."""
        return self._broadcast(self._unbroadcasted_scale_tril)

    @lazy_property
    def covariance_matrix(self) -> Tensor:
        """The covariance of one normal vector."""
        return self._broadcast(self._unbroadcasted_scale_tril @ self._unbroadcasted_scale_tril.mT)

    @lazy_property
    def precision_matrix(self) -> Tensor:
        """Its inverse."""
        factor = self._unbroadcasted_scale_tril
        return self._broadcast(cholesky_solve(eye(self._event_shape[-1], dtype=factor.dtype), factor))

    @property
    def mean(self) -> Tensor:
        """df times the covariance."""
        return self._per_matrix(self.df) * self.covariance_matrix

    @property
    def mode(self) -> Tensor:
        """(df - N - 1) times the covariance; NaN for df <= N + 1."""
        factor = self.df - self._event_shape[-1] - 1
        return self._per_matrix(where(factor <= 0, math.nan, factor)) * self.covariance_matrix

    @property
    def variance(self) -> Tensor:
        """df (V_ij^2 + V_ii V_jj), V being the covariance."""
        covariance = self.covariance_matrix
        diagonal = covariance.diagonal(dim1=-2, dim2=-1)
        products = diagonal.unsqueeze(-1) * diagonal.unsqueeze(-2)
        return self._per_matrix(self.df) * (covariance.pow(2) + products)

    def _bartlett(self, sample_shape) -> Tensor:
        """Samples by Bartlett's decomposition: L A A^T L^T, A lower triangular, chi on its diagonal and normal below."""
        size, dtype = self._event_shape[-1], self._unbroadcasted_scale_tril.dtype
        degrees = self.df.unsqueeze(-1) - arange(size, dtype=dtype)
        chi = Chi2(degrees, validate_args=False).rsample(sample_shape).sqrt()
        noise = chi.clamp(min=finfo(dtype).eps).diag_embed()
        rows, columns = tril_indices(size, size, offset=-1)
        below = randn(Size(sample_shape) + self._batch_shape + Size((size * (size - 1) // 2,)), dtype=dtype)
        noise[..., rows, columns] = below
        factor = self._unbroadcasted_scale_tril @ noise
        return factor @ factor.mT

    def _any_of_batch(self, found: Tensor) -> Tensor:
        dims = tuple(range(-len(self._batch_shape), 0))
        return found.any(dims) if dims else found

    def rsample(self, sample_shape=(), max_try_correction: int = 10) -> Tensor:
        """Samples, drawn again up to `max_try_correction` times where rounding made them singular."""
        shape = Size(sample_shape)
        sample = self._bartlett(Size((shape.numel(),)))
        # PyTorch 2.13 first draws again what is *not* singular: for a seed, its samples are the second ones.
        again = self._any_of_batch(self.support.check(sample))
        for _ in range(max_try_correction):
            if not bool(again.any()):
                break
            drawn = self._bartlett(Size((int(again.sum()),)))
            sample = sample.index_put((again,), drawn)
            again = again.masked_scatter(again, self._any_of_batch(~self.support.check(drawn)))
        return sample.reshape(self._extended_shape(shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of det(X)^((n - N - 1) / 2) exp(-tr(V^-1 X) / 2) / (2^(n N / 2) det(V)^(n / 2) Gamma_N(n / 2))."""
        if self._validate_args:
            self._validate_sample(value)
        df, size, factor = self.df, self._event_shape[-1], self._unbroadcasted_scale_tril
        trace = cholesky_solve(value, factor).diagonal(dim1=-2, dim2=-1).sum(-1)
        return (
            -df * (size * math.log(2) / 2 + half_log_det(factor))
            - (df / 2).mvlgamma(size)
            + (df - size - 1) / 2 * slogdet(value).logabsdet
            - trace / 2
        )

    def entropy(self) -> Tensor:
        """From the mean of log det X, the multivariate digamma function at df / 2."""
        df, size = self.df, self._event_shape[-1]
        digamma = ((df / 2).unsqueeze(-1) - arange(size, dtype=df.dtype) / 2).digamma().sum(-1)
        return (
            (size + 1) * (size * math.log(2) / 2 + half_log_det(self._unbroadcasted_scale_tril))
            + (df / 2).mvlgamma(size)
            - (df - size - 1) / 2 * digamma
            + df * size / 2
        )

    @property
    def _natural_params(self) -> tuple[Tensor, Tensor]:
        return -self.precision_matrix / 2, (self.df - self._event_shape[-1] - 1) / 2

    def _log_normalizer(self, x: Tensor, y: Tensor) -> Tensor:
        size = self._event_shape[-1]
        half_df = y + (size + 1) / 2
        return half_df * (-slogdet(-2 * x).logabsdet + math.log(2) * size) + half_df.mvlgamma(size)


class LKJCholesky(Distribution):
    """Lower Cholesky factors of correlation matrices [dim, dim], of density det^(2 (concentration - 1)) in the matrix.

    dim: at least 2. concentration: [*batch]; 1 is uniform over correlation matrices, more favours the identity.

    Raises:
        ValueError: dim is below 2.

    Source: Lewandowski, Kurowicka and Joe, Generating random correlation matrices based on vines and extended onion
    method, 2009.
    """

    arg_constraints: ClassVar = {"concentration": constraints.positive}
    support = constraints.corr_cholesky

    def __init__(self, dim: int, concentration=1.0, validate_args: bool | None = None):
        if dim < 2:
            raise ValueError(f"Expected dim to be an integer greater than or equal to 2. Found dim={dim}.")
        self.dim = dim
        (self.concentration,) = broadcast_all(concentration)
        super().__init__(self.concentration.shape, (dim, dim), validate_args)

    def _expand_into(self, new, batch_shape) -> None:
        super()._expand_into(new, batch_shape)
        new.dim = self.dim

    def sample(self, sample_shape=()) -> Tensor:
        """Random factors by the onion method: each row is a random direction, its squared length a beta number."""
        dtype = self.concentration.dtype
        # the row of each index i > 0 has length^2 ~ Beta(i / 2, concentration + (dim - 1 - i) / 2); the first row is fixed
        row = arange(self.dim - 1, dtype=dtype)
        row = cat([row.new_zeros(1), row])
        spread = (self.concentration + 0.5 * (self.dim - 2)).unsqueeze(-1) - 0.5 * row
        squares = Beta(row + 0.5, spread, validate_args=False).sample(sample_shape).unsqueeze(-1)
        below = randn(self._extended_shape(sample_shape), dtype=dtype).tril(-1)
        length = below.square().sum(-1, keepdim=True).sqrt()
        directions = below / where(length == 0, 1.0, length)
        factor = squares.sqrt() * directions
        diagonal = (1 - factor.square().sum(-1)).clamp(min=finfo(dtype).tiny).sqrt()
        return factor + diagonal.diag_embed()

    def log_prob(self, value: Tensor) -> Tensor:
        """sum over rows i of (2 (c - 1) + dim - i) log L_ii, less the normaliser, c being the concentration."""
        if self._validate_args:
            self._validate_sample(value)
        c, rest = self.concentration, self.dim - 1
        order = 2 * (c - 1).unsqueeze(-1) + self.dim - arange(2, self.dim + 1)
        unnormalised = (order * value.diagonal(dim1=-1, dim2=-2)[..., 1:].log()).sum(-1)
        alpha = c + 0.5 * rest
        norm = 0.5 * rest * math.log(math.pi) + (alpha - 0.5).mvlgamma(rest) - alpha.lgamma() * rest
        return unnormalised - norm
