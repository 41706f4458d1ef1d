"""Products of vectors that are no matrix products."""

from __future__ import annotations

import numpy as np

__all__ = ["cross"]


def cross(a: np.ndarray, b: np.ndarray, dim: int) -> np.ndarray:
    """The vector product along a dimension of size 3; the operands are broadcast."""
    a, b = (np.moveaxis(x, dim, -1) for x in np.broadcast_arrays(a, b))
    product = np.empty(a.shape, a.dtype)
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        product[..., i] = a[..., j] * b[..., k] - a[..., k] * b[..., j]
    return np.ascontiguousarray(np.moveaxis(product, -1, dim))
