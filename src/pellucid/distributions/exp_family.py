"""Exponential families: entropy and divergence follow from the logarithm of the normaliser and its derivative."""

from __future__ import annotations

from pellucid.autograd.differentiate import grad
from pellucid.core.tensor import Tensor
from pellucid.distributions.distribution import Distribution

__all__ = ["ExponentialFamily"]


class ExponentialFamily(Distribution):
    """Densities exp(<t(x), theta> - F(theta) + k(x)) with natural parameters theta and log-normaliser F.

    A subclass gives `_natural_params`, `_log_normalizer` and, for the entropy, `_mean_carrier_measure`, the mean of k(x).

    Source: Nielsen and Nock, Entropies and cross-entropies of exponential families, 2010.
    """

    @property
    def _natural_params(self) -> tuple[Tensor, ...]:
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self) -> float:
        raise NotImplementedError

    def _normalizer_and_means(self) -> tuple[tuple[Tensor, ...], Tensor, tuple[Tensor, ...]]:
        """Natural parameters, log-normaliser and its gradient, which is the mean of t(x)."""
        parameters = tuple([p.detach().requires_grad_() for p in self._natural_params])
        normalizer = self._log_normalizer(*parameters)
        return parameters, normalizer, grad(normalizer.sum(), parameters, create_graph=True)

    def entropy(self) -> Tensor:
        """F(theta) - <theta, grad F(theta)> - the mean of k(x)."""
        parameters, normalizer, means = self._normalizer_and_means()
        result = normalizer - self._mean_carrier_measure
        for parameter, mean in zip(parameters, means, strict=True):
            result = result - (parameter * mean).reshape((*self._batch_shape, -1)).sum(-1)
        return result
