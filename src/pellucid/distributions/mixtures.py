"""Mixtures of distributions of one family."""

from __future__ import annotations

from typing import ClassVar

from pellucid.autograd.grad_mode import no_grad
from pellucid.core.size import Size
from pellucid.core.tensor import Tensor
from pellucid.distributions import constraints
from pellucid.distributions.categories import Categorical
from pellucid.distributions.distribution import Distribution

__all__ = ["MixtureSameFamily"]


class MixtureSameFamily(Distribution):
    """One of K distributions of a family, chosen at random.

    Args:
        mixture_distribution: Categorical, the chances of the components [*batch, K].
        component_distribution: the components, of batch_shape [*batch, K].

    Raises:
        ValueError: no such distributions, or their batch shapes or numbers of components do not fit.
    """

    arg_constraints: ClassVar = {}
    has_rsample = False

    def __init__(
        self, mixture_distribution: Categorical, component_distribution: Distribution, validate_args: bool | None = None
    ):
        self._mixture_distribution, self._component_distribution = mixture_distribution, component_distribution
        self._check_fit()
        event_shape = component_distribution.event_shape
        self._event_ndims = len(event_shape)
        super().__init__(component_distribution.batch_shape[:-1], event_shape, validate_args=validate_args)

    def _check_fit(self) -> None:
        mixture, component = self._mixture_distribution, self._component_distribution
        if not isinstance(mixture, Categorical):
            raise ValueError(
                " The Mixture distribution needs to be an  instance of torch.distributions.Categorical, got "
                f"{type(mixture).__name__}"
            )
        if not isinstance(component, Distribution):
            raise ValueError(
                "The Component distribution needs to be an instance of torch.distributions.Distribution, got "
                f"{type(component).__name__}"
            )
        batch, wanted = mixture.batch_shape, component.batch_shape[:-1]
        for found, size in zip(reversed(batch), reversed(wanted), strict=False):
            if found != size and 1 not in (found, size):
                raise ValueError(
                    f"`mixture_distribution.batch_shape` ({batch}) is not compatible with "
                    f"`component_distribution.batch_shape`({wanted})"
                )
        count, components = mixture.logits.shape[-1], component.batch_shape[-1]
        if count != components:
            raise ValueError(
                f"`mixture_distribution component` ({count}) does not equal `component_distribution.batch_shape[-1]` "
                f"({components})"
            )

    def _expand_into(self, new, batch_shape) -> None:
        new._component_distribution = self._component_distribution.expand(
            batch_shape + Size(self._component_distribution.batch_shape[-1:])
        )
        new._mixture_distribution = self._mixture_distribution.expand(batch_shape)
        new._event_ndims = self._event_ndims

    @constraints.dependent_property
    def support(self):
        """The components' support."""
        return constraints.MixtureSameFamilyConstraint(self._component_distribution.support)

    @property
    def mixture_distribution(self) -> Categorical:
        """The chances of the components."""
        return self._mixture_distribution

    @property
    def component_distribution(self) -> Distribution:
        """The components."""
        return self._component_distribution

    def _averaged(self, values: Tensor) -> Tensor:
        """The mean over the components [*batch, K, *event], weighted by their chances."""
        probs = self._mixture_distribution.probs
        return (probs.reshape(probs.shape + (1,) * self._event_ndims) * values).sum(-1 - self._event_ndims)

    def _beside_components(self, value: Tensor) -> Tensor:
        return value.unsqueeze(-1 - self._event_ndims)

    @property
    def mean(self) -> Tensor:
        """The mean of the components' means."""
        return self._averaged(self._component_distribution.mean)

    @property
    def variance(self) -> Tensor:
        """The mean of the components' variances, and the variance of their means."""
        away = self._component_distribution.mean - self._beside_components(self.mean)
        return self._averaged(self._component_distribution.variance) + self._averaged(away.pow(2.0))

    def cdf(self, value: Tensor) -> Tensor:
        components = self._component_distribution.cdf(self._beside_components(value))
        return (components * self._mixture_distribution.probs).sum(-1)

    def log_prob(self, value: Tensor) -> Tensor:
        """log sum p(component) p(value | component)."""
        if self._validate_args:
            self._validate_sample(value)
        components = self._component_distribution.log_prob(self._beside_components(value))
        return (components + self._mixture_distribution.logits.log_softmax(-1)).logsumexp(-1)

    def sample(self, sample_shape=()) -> Tensor:
        """A sample of every component, of which the chosen one is kept."""
        with no_grad():
            chosen = self._mixture_distribution.sample(sample_shape)
            drawn = self._component_distribution.sample(sample_shape)
            dim = len(sample_shape) + len(self.batch_shape)
            index = chosen.reshape(chosen.shape + (1,) * (self._event_ndims + 1))
            index = index.expand((*chosen.shape, 1, *self.event_shape))
            return drawn.gather(dim, index).squeeze(dim)

    def __repr__(self) -> str:
        return f"MixtureSameFamily(\n  {self._mixture_distribution},\n  {self._component_distribution})"
