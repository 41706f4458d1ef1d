"""Distributions made from others: transformed, or with batch dimensions taken for event dimensions."""

from __future__ import annotations

import functools
import operator
from typing import ClassVar

from pellucid.autograd.grad_mode import no_grad
from pellucid.core.tensor import Tensor
from pellucid.distributions import constraints
from pellucid.distributions.distribution import Distribution
from pellucid.distributions.transforms import ComposeTransform, Transform
from pellucid.distributions.utils import must, sum_rightmost

__all__ = ["Independent", "TransformedDistribution"]


class Independent(Distribution):
    """A distribution of which the last `reinterpreted_batch_ndims` batch dimensions belong to the event.

    Raises:
        ValueError: there are not so many.
    """

    arg_constraints: ClassVar = {}

    def __init__(
        self, base_distribution: Distribution, reinterpreted_batch_ndims: int, validate_args: bool | None = None
    ):
        base_dims = len(base_distribution.batch_shape)
        if reinterpreted_batch_ndims > base_dims:
            raise ValueError(
                "Expected reinterpreted_batch_ndims <= len(base_distribution.batch_shape), actual "
                f"{reinterpreted_batch_ndims} vs {base_dims}"
            )
        self.base_dist, self.reinterpreted_batch_ndims = base_distribution, reinterpreted_batch_ndims
        shape, kept = (
            base_distribution.batch_shape + base_distribution.event_shape,
            base_dims - reinterpreted_batch_ndims,
        )
        super().__init__(shape[:kept], shape[kept:], validate_args=validate_args)

    def _expand_into(self, new, batch_shape) -> None:
        new.base_dist = self.base_dist.expand(batch_shape + self.event_shape[: self.reinterpreted_batch_ndims])
        new.reinterpreted_batch_ndims = self.reinterpreted_batch_ndims

    @property
    def has_rsample(self) -> bool:
        """As the base distribution."""
        return self.base_dist.has_rsample

    @property
    def has_enumerate_support(self) -> bool:
        """As the base distribution, if no dimension was reinterpreted."""
        return self.base_dist.has_enumerate_support and self.reinterpreted_batch_ndims <= 0

    @constraints.dependent_property
    def support(self):
        """The base distribution's, over more dimensions."""
        support, more = self.base_dist.support, self.reinterpreted_batch_ndims
        return constraints.independent(support, more) if more else support

    @property
    def mean(self) -> Tensor:
        """The base distribution's."""
        return self.base_dist.mean

    @property
    def mode(self) -> Tensor:
        """The base distribution's."""
        return self.base_dist.mode

    @property
    def variance(self) -> Tensor:
        """The base distribution's."""
        return self.base_dist.variance

    def sample(self, sample_shape=()) -> Tensor:
        return self.base_dist.sample(sample_shape)

    def rsample(self, sample_shape=()) -> Tensor:
        return self.base_dist.rsample(sample_shape)

    def log_prob(self, value: Tensor) -> Tensor:
        return sum_rightmost(self.base_dist.log_prob(value), self.reinterpreted_batch_ndims)

    def entropy(self) -> Tensor:
        return sum_rightmost(self.base_dist.entropy(), self.reinterpreted_batch_ndims)

    def enumerate_support(self, expand: bool = True) -> Tensor:
        if self.reinterpreted_batch_ndims > 0:
            raise NotImplementedError("Enumeration over cartesian product is not implemented")
        return self.base_dist.enumerate_support(expand=expand)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_dist}, {self.reinterpreted_batch_ndims})"


def _as_list(transforms) -> list[Transform]:
    if isinstance(transforms, Transform):
        return [transforms]
    if not isinstance(transforms, list):
        raise ValueError(f"transforms must be a Transform or list, but was {transforms}")
    if not all(isinstance(t, Transform) for t in transforms):
        raise ValueError("transforms must be a Transform or a list of Transforms")
    return transforms


class TransformedDistribution(Distribution):
    """The distribution of f_n(... f_1(x)), x being drawn from `base_distribution` and f_1 ... f_n being `transforms`.

    The base distribution is expanded, and its batch dimensions taken for event dimensions, as the transforms need it.

    Raises:
        ValueError: `transforms` is no transform or list of them, or the base distribution has too few dimensions.
    """

    arg_constraints: ClassVar = {}

    def __init__(self, base_distribution: Distribution, transforms, validate_args: bool | None = None):
        self.transforms = _as_list(transforms)
        whole = ComposeTransform(self.transforms)
        domain_dim, codomain_dim = whole.domain.event_dim, whole.codomain.event_dim
        base_shape = base_distribution.batch_shape + base_distribution.event_shape
        base_dim = len(base_distribution.event_shape)
        if len(base_shape) < domain_dim:
            raise ValueError(
                f"base_distribution needs to have shape with size at least {domain_dim}, but got {base_shape}."
            )
        shape = whole.forward_shape(base_shape)
        needed = whole.inverse_shape(shape)
        if base_shape != needed:
            base_distribution = base_distribution.expand(needed[: len(needed) - base_dim])
        if domain_dim > base_dim:
            base_distribution = Independent(base_distribution, domain_dim - base_dim)
        self.base_dist = base_distribution
        event_dim = max(codomain_dim, base_dim + codomain_dim - domain_dim)
        must(len(shape) >= event_dim, f"forward_shape length {len(shape)} must be >= event_dim {event_dim}")
        cut = len(shape) - event_dim
        super().__init__(shape[:cut], shape[cut:], validate_args=validate_args)

    def _expand_into(self, new, batch_shape) -> None:
        super()._expand_into(new, batch_shape)
        shape = batch_shape + self.event_shape
        for transform in reversed(self.transforms):
            shape = transform.inverse_shape(shape)
        new.base_dist = self.base_dist.expand(shape[: len(shape) - len(self.base_dist.event_shape)])
        new.transforms = self.transforms

    @constraints.dependent_property(is_discrete=False)
    def support(self):
        """The codomain of the last transform, over events as large as this distribution's."""
        if not self.transforms:
            return self.base_dist.support
        support = self.transforms[-1].codomain
        more = len(self.event_shape) - support.event_dim
        return constraints.independent(support, more) if more > 0 else support

    @property
    def has_rsample(self) -> bool:
        """As the base distribution."""
        return self.base_dist.has_rsample

    def _through(self, value: Tensor) -> Tensor:
        for transform in self.transforms:
            value = transform(value)
        return value

    def sample(self, sample_shape=()) -> Tensor:
        with no_grad():
            return self._through(self.base_dist.sample(sample_shape))

    def rsample(self, sample_shape=()) -> Tensor:
        return self._through(self.base_dist.rsample(sample_shape))

    def log_prob(self, value: Tensor) -> Tensor:
        """The base distribution's at the inverse, less the logarithms of the Jacobians."""
        if self._validate_args:
            self._validate_sample(value)
        event_dim, total = len(self.event_shape), 0.0
        for transform in reversed(self.transforms):
            before = transform.inv(value)
            event_dim += transform.domain.event_dim - transform.codomain.event_dim
            jacobian = transform.log_abs_det_jacobian(before, value)
            total = total - sum_rightmost(jacobian, event_dim - transform.domain.event_dim)
            value = before
        return total + sum_rightmost(self.base_dist.log_prob(value), event_dim - len(self.base_dist.event_shape))

    def _mirrored(self, probability: Tensor) -> Tensor:
        """p, or 1 - p where the transforms decrease."""
        sign = functools.reduce(operator.mul, [t.sign for t in self.transforms], 1)
        if isinstance(sign, int) and sign == 1:
            return probability
        return sign * (probability - 0.5) + 0.5

    def cdf(self, value: Tensor) -> Tensor:
        for transform in reversed(self.transforms):
            value = transform.inv(value)
        if self._validate_args:
            self.base_dist._validate_sample(value)
        return self._mirrored(self.base_dist.cdf(value))

    def icdf(self, value: Tensor) -> Tensor:
        return self._through(self.base_dist.icdf(self._mirrored(value)))
