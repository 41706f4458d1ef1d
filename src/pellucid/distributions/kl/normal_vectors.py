"""Divergences between normal vectors, of full or of low-rank covariance.

All are (log det S_q - log det S_p + tr(S_q^-1 S_p) + d^T S_q^-1 d - N) / 2 with covariances S and d the distance of the
means. Trace and determinants are got from Cholesky factors, or from W and D where S = W W^T + D.
"""

from __future__ import annotations

from pellucid.core.tensor import Tensor
from pellucid.distributions.kl.registry import register_kl
from pellucid.distributions.multivariate_normals import (
    LowRankMultivariateNormal,
    MultivariateNormal,
    half_log_det,
    mahalanobis,
)
from pellucid.functions.linear_solving import solve_triangular

__all__ = []

_EVERY = (MultivariateNormal, LowRankMultivariateNormal)


def _log_det(p) -> Tensor:
    return p._log_det() if isinstance(p, LowRankMultivariateNormal) else 2 * half_log_det(p._unbroadcasted_scale_tril)


def _distance(q, x: Tensor) -> Tensor:
    """x^T S^-1 x."""
    if isinstance(q, LowRankMultivariateNormal):
        return q._mahalanobis(x)
    return mahalanobis(q._unbroadcasted_scale_tril, x)


def _factors(p) -> list[Tensor]:
    """Matrices F with S the sum of F F^T."""
    if isinstance(p, LowRankMultivariateNormal):
        return [p._unbroadcasted_cov_factor, p._unbroadcasted_cov_diag.sqrt().diag_embed()]
    return [p._unbroadcasted_scale_tril]


def _squares(matrix: Tensor) -> Tensor:
    return matrix.pow(2).sum((-2, -1))


def _trace(q, factor: Tensor) -> Tensor:
    """tr(S^-1 F F^T)."""
    if isinstance(q, LowRankMultivariateNormal):
        scaled = factor * q._unbroadcasted_cov_diag.rsqrt().unsqueeze(-1)
        return _squares(scaled) - _squares(q._whitened() @ factor)
    return _squares(solve_triangular(q._unbroadcasted_scale_tril, factor, upper=False))


def _normal_vectors(p, q):
    if p.event_shape != q.event_shape:
        raise ValueError(
            "KL-divergence between two (Low Rank) Multivariate Normals with different event shapes cannot be computed: got "
            f"{tuple(p.event_shape)} and {tuple(q.event_shape)}"
        )
    trace = sum([_trace(q, factor) for factor in _factors(p)])
    return 0.5 * (_log_det(q) - _log_det(p) + trace + _distance(q, q.loc - p.loc) - p.event_shape[0])


for _p in _EVERY:
    for _q in _EVERY:
        register_kl(_p, _q)(_normal_vectors)
