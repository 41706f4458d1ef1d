"""Constraints: regions in which parameters and samples of distributions lie, and which can be checked for a value.

How to get from unconstrained numbers into a region is said in `constraint_registry.py`.
"""

from __future__ import annotations

from pellucid.core.dtype import bool as bool_dtype
from pellucid.core.limits import finfo
from pellucid.distributions.utils import must, pieces, shown
from pellucid.functions.factories import full
from pellucid.functions.linear_spectra import eigvalsh
from pellucid.ops.comparison import isclose
from pellucid.ops.joining import cat as join
from pellucid.ops.joining import stack as pile
from pellucid.ops.linear_solving import LinAlgError, cholesky

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A region of values.

    Attributes:
        is_discrete: whether it holds isolated points only.
        event_dim: how many last dimensions of a tensor make up one value.
    """

    is_discrete = False
    event_dim = 0

    def check(self, value):
        """Whether each value lies in the region: bool, the shape without the event's dimensions."""
        raise NotImplementedError

    def __repr__(self) -> str:
        return f"{type(self).__name__.removeprefix('_')}()"


# --- regions known only with an instance -----------------------------------------------------------------------------


class _Dependent(Constraint):
    """A region that depends on other parameters; what is known of it without them can be given."""

    def __init__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def _known(self, name: str):
        found = getattr(self, f"_{name}")
        if found is NotImplemented:
            raise NotImplementedError(f".{name} cannot be determined statically")
        return found

    @property
    def is_discrete(self):
        """Whether it holds isolated points only; NotImplementedError if not known."""
        return self._known("is_discrete")

    @property
    def event_dim(self):
        """How many last dimensions make up a value; NotImplementedError if not known."""
        return self._known("event_dim")

    def __call__(self, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        return _Dependent(
            is_discrete=self._is_discrete if is_discrete is NotImplemented else is_discrete,
            event_dim=self._event_dim if event_dim is NotImplemented else event_dim,
        )

    def check(self, value):
        """ValueError: there is nothing to check against."""
        raise ValueError("Cannot determine validity of dependent constraint")


def is_dependent(constraint) -> bool:
    """Whether a constraint depends on other parameters."""
    return isinstance(constraint, _Dependent)


class _DependentProperty(property, _Dependent):
    """A property of instances that is a dependent constraint of their class: `@dependent_property(event_dim=0)`."""

    def __init__(self, fn=None, *, is_discrete=NotImplemented, event_dim=NotImplemented):
        super().__init__(fn)
        self._is_discrete, self._event_dim = is_discrete, event_dim

    def __call__(self, fn):
        return _DependentProperty(fn, is_discrete=self._is_discrete, event_dim=self._event_dim)


# --- numbers ---------------------------------------------------------------------------------------------------------


class _Real(Constraint):
    """Everything but NaN."""

    def check(self, value):
        return value == value


class _Boolean(Constraint):
    """0 and 1."""

    is_discrete = True

    def check(self, value):
        return (value == 0) | (value == 1)


class _Bounded(Constraint):
    """Numbers within bounds, which the constructor of a subclass names."""

    def __init__(self, **bounds):
        self.__dict__.update(bounds)

    def __repr__(self) -> str:
        bounds = ", ".join([f"{name}={shown(value)}" for name, value in self.__dict__.items()])
        return f"{type(self).__name__.removeprefix('_')}({bounds})"


class _Above(_Bounded):
    def __init__(self, lower_bound):
        super().__init__(lower_bound=lower_bound)


class _Below(_Bounded):
    def __init__(self, upper_bound):
        super().__init__(upper_bound=upper_bound)


class _Between(_Bounded):
    def __init__(self, lower_bound, upper_bound):
        super().__init__(lower_bound=lower_bound, upper_bound=upper_bound)


class _GreaterThan(_Above):
    """(lower_bound, inf]."""

    def check(self, value):
        return self.lower_bound < value


class _GreaterThanEq(_Above):
    """[lower_bound, inf]."""

    def check(self, value):
        return self.lower_bound <= value


class _LessThan(_Below):
    """[-inf, upper_bound)."""

    def check(self, value):
        return value < self.upper_bound


class _Interval(_Between):
    """[lower_bound, upper_bound]."""

    def check(self, value):
        return (self.lower_bound <= value) & (value <= self.upper_bound)


class _HalfOpenInterval(_Between):
    """[lower_bound, upper_bound)."""

    def check(self, value):
        return (self.lower_bound <= value) & (value < self.upper_bound)


class _IntegerInterval(_Between):
    """Whole numbers from lower_bound to upper_bound, both included."""

    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (self.lower_bound <= value) & (value <= self.upper_bound)


class _IntegerLessThan(_Below):
    """Whole numbers up to upper_bound, included."""

    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value <= self.upper_bound)


class _IntegerGreaterThan(_Above):
    """Whole numbers from lower_bound on, included."""

    is_discrete = True

    def check(self, value):
        return (value % 1 == 0) & (value >= self.lower_bound)


# --- vectors ---------------------------------------------------------------------------------------------------------


class _OneHot(Constraint):
    """Vectors of zeros and a single 1."""

    is_discrete, event_dim = True, 1

    def check(self, value):
        return _Boolean().check(value).all(-1) & (value.sum(-1) == 1)


class _Simplex(Constraint):
    """Vectors without negative elements that sum to 1, up to 1e-6."""

    event_dim = 1

    def check(self, value):
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class _Multinomial(Constraint):
    """Vectors without negative elements that sum to at most `upper_bound`."""

    is_discrete, event_dim = True, 1

    def __init__(self, upper_bound):
        self.upper_bound = upper_bound

    def check(self, value):
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)


# --- matrices --------------------------------------------------------------------------------------------------------


class _Matrix(Constraint):
    event_dim = 2


class _LowerTriangular(_Matrix):
    """Square matrices with zeros above the diagonal."""

    def check(self, value):
        return (value.tril() == value).all(-1).all(-1)


class _LowerCholesky(_LowerTriangular):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value):
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class _CorrCholesky(_LowerCholesky):
    """Lower triangular matrices with a positive diagonal and rows of length 1."""

    def check(self, value):
        tolerance = finfo(value.dtype).eps * value.size(-1) * 10
        length = value.detach().square().sum(-1).sqrt()
        return super().check(value) & ((length - 1).abs() <= tolerance).all(-1)


class _Square(_Matrix):
    """Square matrices."""

    def check(self, value):
        return full(value.shape[:-2], value.shape[-2] == value.shape[-1], dtype=bool_dtype)


class _Symmetric(_Square):
    """Symmetric matrices, up to 1e-6."""

    def check(self, value):
        square_ = super().check(value)
        return isclose(value, value.mT, atol=1e-6).all(-2).all(-1) if bool(square_.all()) else square_


class _PositiveSemidefinite(_Symmetric):
    """Symmetric matrices without a negative eigenvalue."""

    def check(self, value):
        symmetric_ = super().check(value)
        return (eigvalsh(value) >= 0).all(-1) if bool(symmetric_.all()) else symmetric_


class _PositiveDefinite(_Symmetric):
    """Symmetric matrices that have a Cholesky factor."""

    def check(self, value):
        symmetric_ = super().check(value)
        return _has_factor(value) if bool(symmetric_.all()) else symmetric_


def _has_factor(value):
    """Whether each matrix has a Cholesky factor; they are tried one by one only where they do not have it all."""
    try:
        cholesky(value.detach())
    except LinAlgError:
        if value.dim() == 2:
            return full((), False, dtype=bool_dtype)
        return pile([_has_factor(matrix) for matrix in value])
    return full(value.shape[:-2], True, dtype=bool_dtype)


# --- regions made of regions -----------------------------------------------------------------------------------------


class _IndependentConstraint(Constraint):
    """A region of tensors: every entry over `reinterpreted_batch_ndims` more dimensions lies in the base region."""

    def __init__(self, base_constraint, reinterpreted_batch_ndims):
        must(
            isinstance(base_constraint, Constraint),
            f"base_constraint must be a Constraint, got {type(base_constraint).__name__}",
        )
        must(
            isinstance(reinterpreted_batch_ndims, int) and reinterpreted_batch_ndims >= 0,
            f"reinterpreted_batch_ndims must be >= 0, got {reinterpreted_batch_ndims}",
        )
        self.base_constraint, self.reinterpreted_batch_ndims = base_constraint, reinterpreted_batch_ndims

    @property
    def is_discrete(self):
        """As the base region."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        """The base region's, and those added."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value):
        result = self.base_constraint.check(value)
        if result.dim() < self.reinterpreted_batch_ndims:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        return result.reshape((*result.shape[: result.dim() - self.reinterpreted_batch_ndims], -1)).all(-1)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


class MixtureSameFamilyConstraint(Constraint):
    """The samples of a mixture: those that lie in the region of every component."""

    def __init__(self, base_constraint):
        must(
            isinstance(base_constraint, Constraint),
            f"base_constraint must be a Constraint, got {type(base_constraint).__name__}",
        )
        self.base_constraint = base_constraint

    @property
    def is_discrete(self):
        """As the components' region."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self):
        """As the components' region."""
        return self.base_constraint.event_dim

    def check(self, value):
        if value.dim() < self.event_dim:
            raise ValueError(f"Expected value.dim() >= {self.event_dim} but got {value.dim()}")
        result = self.base_constraint.check(value.unsqueeze(-1 - self.event_dim))
        return result.reshape((*result.shape[: value.dim() - self.event_dim], -1)).all(-1)

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Sequence(Constraint):
    """Regions for the parts of a tensor along dimension `dim`."""

    def __init__(self, cseq, dim=0):
        must(all(isinstance(c, Constraint) for c in cseq), "All elements of cseq must be Constraint instances")
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self):
        """Whether one of them is."""
        return any(c.is_discrete for c in self.cseq)

    @property
    def event_dim(self):
        """The most of them."""
        return max(c.event_dim for c in self.cseq)

    def _check_dim(self, value) -> None:
        must(
            -value.dim() <= self.dim < value.dim(),
            f"dim {self.dim} out of range for value with {value.dim()} dimensions",
        )


class _Cat(_Sequence):
    """Regions for the pieces of a tensor, of given lengths along `dim`."""

    def __init__(self, cseq, dim=0, lengths=None):
        super().__init__(cseq, dim)
        self.lengths = list(lengths) if lengths is not None else [1] * len(self.cseq)
        must(len(self.lengths) == len(self.cseq), f"lengths ({len(self.lengths)}) must match cseq ({len(self.cseq)})")

    def check(self, value):
        self._check_dim(value)
        parts = pieces(value, self.lengths, self.dim)
        return join([c.check(part) for c, part in zip(self.cseq, parts, strict=True)], self.dim)


class _Stack(_Sequence):
    """Regions for the slices of a tensor along `dim`."""

    @property
    def event_dim(self):
        """The most of them, and one more if `dim` is inside the event."""
        dim = super().event_dim
        return dim + 1 if self.dim + dim < 0 else dim

    def check(self, value):
        self._check_dim(value)
        slices = zip(value.unbind(self.dim), self.cseq, strict=False)
        return pile([c.check(part) for part, c in slices], self.dim)


# --- public names ----------------------------------------------------------------------------------------------------

dependent = _Dependent()
dependent_property = _DependentProperty
independent = _IndependentConstraint
boolean = _Boolean()
one_hot = _OneHot()
nonnegative_integer = _IntegerGreaterThan(0)
positive_integer = _IntegerGreaterThan(1)
integer_interval = _IntegerInterval
real = _Real()
real_vector = independent(real, 1)
positive = _GreaterThan(0.0)
nonnegative = _GreaterThanEq(0.0)
greater_than = _GreaterThan
greater_than_eq = _GreaterThanEq
less_than = _LessThan
multinomial = _Multinomial
unit_interval = _Interval(0.0, 1.0)
interval = _Interval
half_open_interval = _HalfOpenInterval
simplex = _Simplex()
lower_triangular = _LowerTriangular()
lower_cholesky = _LowerCholesky()
corr_cholesky = _CorrCholesky()
square = _Square()
symmetric = _Symmetric()
positive_semidefinite = _PositiveSemidefinite()
positive_definite = _PositiveDefinite()
cat = _Cat
stack = _Stack
