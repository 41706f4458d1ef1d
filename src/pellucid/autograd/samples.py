"""Example inputs of operators: from a declaration's `samples` follow its tests.

`samples(make)` yields calls `(args, kwargs)` as arrays; tests turn the floating-point ones into tensors that need
gradients. `unary`, `binary` and `reduction` are the samples of whole families.
"""

from __future__ import annotations

import numpy as np

__all__ = ["Make", "binary", "reduction", "unary"]


class Make:
    """Draws arrays for samples: `make(3, 4)`, `make(5, low=0.1, high=2)`; always the same ones."""

    def __init__(self, seed: int = 0, dtype=np.float64):
        self.rng = np.random.default_rng(seed)
        self.dtype = np.dtype(dtype)

    def __call__(self, *shape: int, low: float = -2.0, high: float = 2.0) -> np.ndarray:
        """Uniform values in [low, high), of the dtype under test (complex: both parts)."""
        values = self.rng.uniform(low, high, shape)
        if self.dtype.kind == "c":
            values = values + 1j * self.rng.uniform(low, high, shape)
        return np.asarray(values, self.dtype)

    def integers(self, *shape: int, low: int = 0, high: int = 10) -> np.ndarray:
        """Uniform int64 values in [low, high)."""
        return np.asarray(self.rng.integers(low, high, shape))

    def distinct(self, *shape: int, gap: float = 0.1) -> np.ndarray:
        """Values that differ pairwise by at least `gap`, in random order: for maxima and sorting."""
        count = int(np.prod(shape))
        return np.asarray((self.rng.permutation(count) - count / 2) * gap, self.dtype).reshape(shape)

    def mask(self, *shape: int) -> np.ndarray:
        """Random booleans."""
        return np.asarray(self.rng.random(shape) < 0.5)


def unary(low: float = -2.0, high: float = 2.0):
    """Samples of an elementwise function of one operand, inside its domain: matrix, scalar, empty, transposed."""

    def samples(make):
        yield (make(3, 4, low=low, high=high),), {}
        yield (make(low=low, high=high),), {}
        yield (make(0, 2, low=low, high=high),), {}
        yield (make(2, 3, low=low, high=high).T,), {}

    return samples


def binary(low: float = -2.0, high: float = 2.0, low2: float | None = None, high2: float | None = None):
    """Samples of an elementwise function of two operands: equal shapes, broadcast both ways, scalars."""
    low2, high2 = low if low2 is None else low2, high if high2 is None else high2

    def samples(make):
        for a, b in (((3, 4), (3, 4)), ((3, 1), (1, 4)), ((2, 3), ()), ((), (3,)), ((0, 2), (1, 2))):
            yield (make(*a, low=low, high=high), make(*b, low=low2, high=high2)), {}

    return samples


def reduction(low: float = -2.0, high: float = 2.0, **extra):
    """Samples of a reduction with `dim` and `keepdim`: over everything, one dimension, several, negative ones."""

    def samples(make):
        yield (make(3, 4, low=low, high=high), None, False), extra
        yield (make(3, 4, low=low, high=high), 0, False), extra
        yield (make(2, 3, 2, low=low, high=high), (0, -1), True), extra
        yield (make(low=low, high=high), None, False), extra

    return samples
