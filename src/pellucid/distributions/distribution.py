"""The base of all distributions: shapes, checks of parameters and of values, expansion, and what can be asked of each."""

from __future__ import annotations

import warnings

from pellucid.autograd.grad_mode import no_grad
from pellucid.core.size import Size
from pellucid.core.tensor import Tensor
from pellucid.distributions import constraints
from pellucid.distributions.utils import lazy_property, shown

__all__ = ["Centred", "Distribution"]


class Distribution:
    """A family of probability distributions: one for each element of `batch_shape`, over events of shape `event_shape`.

    A family says in `arg_constraints` what its parameters are and in `support` over which values it is; its constructor
    sets the parameters as attributes, broadcast, and then calls this one.

    Args:
        batch_shape, event_shape: sizes.
        validate_args: whether parameters, and values given to `log_prob`, are checked; True unless Python runs with -O.

    Raises:
        ValueError: a parameter violates its constraint.
    """

    has_rsample = False
    has_enumerate_support = False
    _validate_args = __debug__
    _family: type  # the nearest ancestor of this package: what it needs to be expanded is known

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if cls.__module__.startswith(f"{__package__}."):
            cls._family = cls

    def __init__(self, batch_shape=(), event_shape=(), validate_args: bool | None = None):
        self._batch_shape, self._event_shape = Size(batch_shape), Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()
        super().__init__()

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Whether distributions made from now on check parameters and values. ValueError for what is not a bool."""
        if value not in (True, False):
            raise ValueError(f"expected True or False, got {value!r}")
        Distribution._validate_args = value

    # --- checks ------------------------------------------------------------------------------------------------------

    def _check_parameters(self) -> None:
        try:
            wanted = self.arg_constraints
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `arg_constraints`. Please set `arg_constraints = {{}}` or initialize the "
                "distribution with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        for name, constraint in wanted.items():
            if constraints.is_dependent(constraint):
                continue
            if name not in self.__dict__ and isinstance(getattr(type(self), name), lazy_property):
                continue  # computed from another parameter, which is checked
            value = getattr(self, name)
            if not bool(constraint.check(value).all()):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{shown(value)}"
                )

    def _validate_sample(self, value: Tensor) -> None:
        """Raise ValueError unless `value` has a fitting shape and lies in the support."""
        if not isinstance(value, Tensor):
            raise ValueError(f"The value argument to log_prob must be a Tensor, got {type(value).__name__}")
        shape, event = value.shape, self._event_shape
        if shape[len(shape) - len(event) :] != event:
            raise ValueError(f"The right-most size of value must match event_shape: {shape} vs {event}.")
        expected = self._batch_shape + event
        for found, wanted in zip(reversed(shape), reversed(expected), strict=False):
            if found != wanted and 1 not in (found, wanted):
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {shape} vs {expected}.")
        try:
            support = self.support
        except NotImplementedError:
            warnings.warn(
                f"{type(self)} does not define `support` to enable sample validation. Please initialize the distribution "
                "with `validate_args=False` to turn off validation.",
                stacklevel=3,
            )
            return
        if not bool(support.check(value).all()):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(shape)}) to be within the support "
                f"({support!r}) of the distribution {self!r}, but found invalid values:\n{shown(value)}"
            )

    # --- expansion ---------------------------------------------------------------------------------------------------

    def expand(self, batch_shape, _instance=None):
        """The same distributions, repeated to a larger `batch_shape` without copying or checking parameters.

        A class derived elsewhere with a constructor of its own overrides this, makes its instance by
        `_get_checked_instance` and hands it on as `_instance`.
        """
        family = getattr(type(self), "_family", None)
        if family is None:
            raise NotImplementedError(f"{type(self).__name__} has no expand()")
        new, batch_shape = self._get_checked_instance(family, _instance), Size(batch_shape)
        self._expand_into(new, batch_shape)
        Distribution.__init__(new, batch_shape, self._event_shape, validate_args=False)
        new._validate_args = self._validate_args
        return new

    def _expand_into(self, new, batch_shape: Size) -> None:
        """Set the attributes of the expanded instance: here the parameters, each a batch of events."""
        for name, constraint in self.arg_constraints.items():
            if name in self.__dict__:
                value = self.__dict__[name]
                event = value.shape[len(value.shape) - constraint.event_dim :]
                setattr(new, name, value.expand(batch_shape + event))

    def _get_checked_instance(self, cls, _instance=None):
        if _instance is None and type(self).__init__ != cls.__init__:
            raise NotImplementedError(
                f"Subclass {type(self).__name__} of {cls.__name__} that defines a custom __init__ method must also define "
                "a custom .expand() method."
            )
        return type(self).__new__(type(self)) if _instance is None else _instance

    # --- what can be asked -------------------------------------------------------------------------------------------

    @property
    def batch_shape(self) -> Size:
        """The shape of the parameters: one distribution for each element."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample of one distribution."""
        return self._event_shape

    def _extended_shape(self, sample_shape=()) -> Size:
        return Size(sample_shape) + self._batch_shape + self._event_shape

    @property
    def arg_constraints(self) -> dict:
        """The constraint that each parameter satisfies, by name."""
        raise NotImplementedError

    @property
    def support(self):
        """The constraint that samples satisfy."""
        raise NotImplementedError

    @property
    def mean(self) -> Tensor:
        """The expected value, batch_shape + event_shape."""
        raise NotImplementedError

    @property
    def mode(self) -> Tensor:
        """A most likely value, batch_shape + event_shape."""
        raise NotImplementedError(f"{type(self)} does not implement mode")

    @property
    def variance(self) -> Tensor:
        """The variance of each component, batch_shape + event_shape."""
        raise NotImplementedError

    @property
    def stddev(self) -> Tensor:
        """The standard deviation of each component, batch_shape + event_shape."""
        return self.variance.sqrt()

    def sample(self, sample_shape=()) -> Tensor:
        """Random values of shape sample_shape + batch_shape + event_shape, without a history."""
        with no_grad():
            return self.rsample(sample_shape)

    def rsample(self, sample_shape=()) -> Tensor:
        """Random values through which gradients flow to the parameters; NotImplementedError where there are none."""
        raise NotImplementedError(f"{type(self).__name__} has no rsample: use sample() and log_prob()")

    def sample_n(self, n: int) -> Tensor:
        """The old name of `sample((n,))`."""
        warnings.warn(
            "`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", category=FutureWarning, stacklevel=2
        )
        return self.sample((n,))

    def log_prob(self, value: Tensor) -> Tensor:
        """The logarithm of the density or probability of `value`, one number for each event."""
        raise NotImplementedError

    def cdf(self, value: Tensor) -> Tensor:
        """The probability of a sample at or below `value`."""
        raise NotImplementedError

    def icdf(self, value: Tensor) -> Tensor:
        """The inverse of `cdf`."""
        raise NotImplementedError

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """All values of a discrete distribution, along a new first dimension; batch dimensions of size 1 unless `expand`."""
        raise NotImplementedError

    def entropy(self) -> Tensor:
        """The entropy in nats, batch_shape."""
        raise NotImplementedError

    def perplexity(self) -> Tensor:
        """The exponential of the entropy, batch_shape."""
        return self.entropy().exp()

    def __repr__(self) -> str:
        given = {name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__}
        texts = [f"{name}: {shown(value if value.numel() == 1 else value.size())}" for name, value in given.items()]
        return f"{type(self).__name__}({', '.join(texts)})"


class Centred:
    """What distributions that are symmetric around `loc` have in common."""

    @property
    def mean(self) -> Tensor:
        """loc."""
        return self.loc

    @property
    def mode(self) -> Tensor:
        """loc."""
        return self.loc
