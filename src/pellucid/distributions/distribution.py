"""The base of all distributions: shapes, and what every distribution can be asked."""

from __future__ import annotations

from pellucid.autograd.grad_mode import no_grad
from pellucid.core.size import Size
from pellucid.core.tensor import Tensor
from pellucid.ops.construction import as_tensor
from pellucid.ops.expansion import broadcast_tensors

__all__ = ["Distribution", "as_tensors"]


def as_tensors(*values) -> list[Tensor]:
    """Parameters as tensors of one shape; numbers become 0-d tensors."""
    return list(broadcast_tensors(*[v if isinstance(v, Tensor) else as_tensor(float(v)) for v in values]))


class Distribution:
    """A family of probability distributions with parameters of shape `batch_shape` over events of shape `event_shape`."""

    has_rsample = False

    def __init__(self, batch_shape=(), event_shape=()):
        self.batch_shape, self.event_shape = Size(batch_shape), Size(event_shape)

    def _extended_shape(self, sample_shape=()) -> Size:
        return Size((*sample_shape, *self.batch_shape, *self.event_shape))

    def sample(self, sample_shape=()) -> Tensor:
        """Random values of shape sample_shape + batch_shape + event_shape, without a history."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=()) -> Tensor:
        """Random values through which gradients flow to the parameters; NotImplementedError where there are none."""
        raise NotImplementedError(f"{type(self).__name__} has no rsample: use sample() and log_prob()")

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or probability of `value`."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy of each distribution of the batch, in nats."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The expected value."""
        raise NotImplementedError

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()
