"""From unconstrained numbers into a constrained region: `biject_to(constraint)` and `transform_to(constraint)` find a way.

    concentration = transform_to(Dirichlet.arg_constraints["concentration"])(unconstrained)

`biject_to` gives bijections with Jacobians, for sampling; `transform_to` whatever optimises well. More can be registered.
"""

from __future__ import annotations

from numbers import Number

from pellucid.distributions import constraints, transforms

__all__ = ["ConstraintRegistry", "biject_to", "transform_to"]


class ConstraintRegistry:
    """Which factory makes the transform for each class of constraints."""

    def __init__(self):
        self._registry = {}

    def register(self, constraint, factory=None):
        """Register a factory for a class of constraints (or for that of an instance); a decorator without `factory`.

        Raises:
            TypeError: no constraint.
        """
        if factory is None:
            return lambda factory: self.register(constraint, factory)
        if isinstance(constraint, constraints.Constraint):
            constraint = type(constraint)
        if not isinstance(constraint, type) or not issubclass(constraint, constraints.Constraint):
            raise TypeError(f"Expected constraint to be either a Constraint subclass or instance, but got {constraint}")
        self._registry[constraint] = factory
        return factory

    def __call__(self, constraint):
        """A transform whose codomain is the constraint.

        Raises:
            NotImplementedError: none is registered for its class.
        """
        factory = self._registry.get(type(constraint))
        if factory is None:
            raise NotImplementedError(f"Cannot transform {type(constraint).__name__} constraints")
        return factory(constraint)


biject_to = ConstraintRegistry()
transform_to = ConstraintRegistry()


def _register(*regions, bijective: bool = True):
    """Register one factory with `transform_to`, and with `biject_to` where it makes bijections."""

    def declare(factory):
        for region in regions:
            transform_to.register(region, factory)
            if bijective:
                biject_to.register(region, factory)
        return factory

    return declare


@_register(constraints.real)
def _to_real(constraint):
    return transforms.identity_transform


@_register(constraints.positive, constraints.nonnegative)
def _to_above(constraint):
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.lower_bound, 1)]
    )


@_register(constraints.less_than)
def _to_below(constraint):
    return transforms.ComposeTransform(
        [transforms.ExpTransform(), transforms.AffineTransform(constraint.upper_bound, -1)]
    )


@_register(constraints.interval, constraints.half_open_interval)
def _to_interval(constraint):
    low, high = constraint.lower_bound, constraint.upper_bound
    if isinstance(low, Number) and isinstance(high, Number) and (low, high) == (0, 1):
        return transforms.SigmoidTransform()
    return transforms.ComposeTransform([transforms.SigmoidTransform(), transforms.AffineTransform(low, high - low)])


@biject_to.register(constraints.simplex)
def _biject_to_simplex(constraint):
    return transforms.StickBreakingTransform()


@_register(constraints.simplex, bijective=False)
def _transform_to_simplex(constraint):
    return transforms.SoftmaxTransform()


@_register(constraints.lower_cholesky, bijective=False)
def _to_lower_cholesky(constraint):
    return transforms.LowerCholeskyTransform()


@_register(constraints.positive_definite, constraints.positive_semidefinite, bijective=False)
def _to_positive_definite(constraint):
    return transforms.PositiveDefiniteTransform()


@_register(constraints.corr_cholesky)
def _to_corr_cholesky(constraint):
    return transforms.CorrCholeskyTransform()


def _register_compound(registry: ConstraintRegistry) -> None:
    """Regions made of regions: the transforms are found in the same registry."""
    registry.register(
        constraints.independent,
        lambda c: transforms.IndependentTransform(registry(c.base_constraint), c.reinterpreted_batch_ndims),
    )
    registry.register(
        constraints.cat, lambda c: transforms.CatTransform([registry(part) for part in c.cseq], c.dim, c.lengths)
    )
    registry.register(
        constraints.stack, lambda c: transforms.StackTransform([registry(part) for part in c.cseq], c.dim)
    )


_register_compound(biject_to)
_register_compound(transform_to)
