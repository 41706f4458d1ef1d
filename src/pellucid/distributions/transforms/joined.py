"""Transforms made of transforms: one after another, side by side, or of events with more dimensions."""

from __future__ import annotations

import functools
import operator

from pellucid.distributions import constraints
from pellucid.distributions.transforms.base import Transform
from pellucid.distributions.utils import lazy_property, must, pieces, sum_rightmost
from pellucid.functions.factories import zeros_like
from pellucid.ops.joining import cat, stack

__all__ = ["CatTransform", "ComposeTransform", "IndependentTransform", "StackTransform", "identity_transform"]


class ComposeTransform(Transform):
    """Transforms applied one after another, the first of `parts` first. They do the caching."""

    def __init__(self, parts: list[Transform], cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else parts

    def _arguments(self) -> tuple:
        return (self.parts,)

    def __eq__(self, other) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """That of the first part, over as many dimensions as any of them needs."""
        if not self.parts:
            return constraints.real
        dim = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            dim = max(dim + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return _raised(self.parts[0].domain, dim)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """That of the last part, over as many dimensions as any of them needs."""
        if not self.parts:
            return constraints.real
        dim = self.parts[0].domain.event_dim
        for part in self.parts:
            dim = max(dim + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _raised(self.parts[-1].codomain, dim)

    @lazy_property
    def bijective(self) -> bool:
        """Whether all parts are."""
        return all(part.bijective for part in self.parts)

    @lazy_property
    def sign(self):
        """The product of the parts' signs."""
        return functools.reduce(operator.mul, [part.sign for part in self.parts], 1)

    @property
    def inv(self) -> Transform:
        """The inverses in reverse order."""
        if self._inv is None:
            self._inv = ComposeTransform([part.inv for part in reversed(self.parts)])
            self._inv._inv = self
        return self._inv

    def __call__(self, x):
        for part in self.parts:
            x = part(x)
        return x

    def log_abs_det_jacobian(self, x, y):
        if not self.parts:
            return zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        terms, dim = [], self.domain.event_dim
        for part, before, after in zip(self.parts, values, values[1:], strict=False):
            terms.append(sum_rightmost(part.log_abs_det_jacobian(before, after), dim - part.domain.event_dim))
            dim += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape):
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape):
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        parts = ",\n    ".join([repr(part) for part in self.parts])
        return f"ComposeTransform(\n    {parts}\n)"


def _raised(constraint, event_dim: int):
    """The constraint over events of more dimensions."""
    more = event_dim - constraint.event_dim
    must(more >= 0, f"event_dim {event_dim} must be >= {constraint.event_dim}")
    return constraints.independent(constraint, more) if more else constraint


identity_transform = ComposeTransform([])


class IndependentTransform(Transform):
    """A transform whose events have `reinterpreted_batch_ndims` more dimensions: its Jacobian is summed over them."""

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0):
        super().__init__(cache_size=cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def _arguments(self) -> tuple:
        return self.base_transform, self.reinterpreted_batch_ndims

    @constraints.dependent_property(is_discrete=False)
    def domain(self):
        """The base's, over more dimensions."""
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @constraints.dependent_property(is_discrete=False)
    def codomain(self):
        """The base's, over more dimensions."""
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    bijective = property(lambda self: self.base_transform.bijective)
    sign = property(lambda self: self.base_transform.sign)

    def _call(self, x):
        _need(x, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y):
        _need(y, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x, y):
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"IndependentTransform({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape):
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape):
        return self.base_transform.inverse_shape(shape)


def _need(value, dims: int) -> None:
    if value.dim() < dims:
        raise ValueError(f"Too few dimensions on input: expected at least {dims}, got {value.dim()}")


# --- side by side ----------------------------------------------------------------------------------------------------


class _SideBySide(Transform):
    """A transform for each part of a tensor along `dim`; a subclass says how to take it apart and put it together."""

    def __init__(self, tseq, dim: int = 0, cache_size: int = 0):
        must(all(isinstance(t, Transform) for t in tseq), "All elements of tseq must be Transform instances")
        super().__init__(cache_size=cache_size)
        self.transforms = [t.with_cache(cache_size) for t in tseq] if cache_size else list(tseq)
        self.dim = dim

    @property
    def bijective(self) -> bool:
        """Whether all of them are."""
        return all(t.bijective for t in self.transforms)

    def _parts(self, value) -> list:
        raise NotImplementedError

    def _whole(self, parts: list):
        raise NotImplementedError

    def _taken_apart(self, value, expected: int) -> list:
        dims = value.dim()
        must(-dims <= self.dim < dims, f"dim {self.dim} out of range for tensor with {dims} dimensions")
        size = value.size(self.dim)
        must(size == expected, f"x.size({self.dim}) = {size} must equal length {expected}")
        return self._parts(value)

    def _call(self, x):
        return self._whole(
            [t(part) for t, part in zip(self.transforms, self._taken_apart(x, self.length), strict=True)]
        )

    def _inverse(self, y):
        parts = self._taken_apart(y, self.length)
        return self._whole([t.inv(part) for t, part in zip(self.transforms, parts, strict=True)])

    def _jacobians(self, x, y) -> list:
        before, after = self._taken_apart(x, self.length), self._taken_apart(y, self.length)
        return [t.log_abs_det_jacobian(a, b) for t, a, b in zip(self.transforms, before, after, strict=True)]


class CatTransform(_SideBySide):
    """A transform for each piece, of given `lengths` along `dim` (1 each if not given)."""

    def __init__(self, tseq, dim: int = 0, lengths=None, cache_size: int = 0):
        super().__init__(tseq, dim, cache_size)
        self.lengths = list(lengths) if lengths is not None else [1] * len(self.transforms)
        must(
            len(self.lengths) == len(self.transforms),
            f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})",
        )

    def _arguments(self) -> tuple:
        return self.transforms, self.dim, self.lengths

    @lazy_property
    def event_dim(self) -> int:
        """The most of them."""
        return max(t.event_dim for t in self.transforms)

    @lazy_property
    def length(self) -> int:
        """All lengths together."""
        return sum(self.lengths)

    @constraints.dependent_property
    def domain(self):
        """The domains, piece by piece."""
        return constraints.cat([t.domain for t in self.transforms], self.dim, self.lengths)

    @constraints.dependent_property
    def codomain(self):
        """The codomains, piece by piece."""
        return constraints.cat([t.codomain for t in self.transforms], self.dim, self.lengths)

    def _parts(self, value) -> list:
        return pieces(value, self.lengths, self.dim)

    def _whole(self, parts: list):
        return cat(parts, self.dim)

    def log_abs_det_jacobian(self, x, y):
        terms = self._jacobians(x, y)
        terms = [sum_rightmost(j, self.event_dim - t.event_dim) for j, t in zip(terms, self.transforms, strict=True)]
        dim = (self.dim - x.dim() if self.dim >= 0 else self.dim) + self.event_dim
        return cat(terms, dim) if dim < 0 else functools.reduce(operator.add, terms)


class StackTransform(_SideBySide):
    """A transform for each slice along `dim`."""

    def _arguments(self) -> tuple:
        return self.transforms, self.dim

    @property
    def length(self) -> int:
        """How many slices there are."""
        return len(self.transforms)

    @constraints.dependent_property
    def domain(self):
        """The domains, slice by slice."""
        return constraints.stack([t.domain for t in self.transforms], self.dim)

    @constraints.dependent_property
    def codomain(self):
        """The codomains, slice by slice."""
        return constraints.stack([t.codomain for t in self.transforms], self.dim)

    def _parts(self, value) -> list:
        return list(value.unbind(self.dim))

    def _whole(self, parts: list):
        return stack(parts, self.dim)

    def log_abs_det_jacobian(self, x, y):
        return stack(self._jacobians(x, y), self.dim)
