"""Products of matrices: NumPy's for small ones and odd dtypes, a block of rows or columns a thread for large ones.

`matmul` stands for `numpy.matmul` and gives what it gives, to rounding.
"""

from __future__ import annotations

import numpy as np

from .choice import compiled

__all__ = ["matmul"]


def matmul(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product of matrices in the last two dimensions, leading ones broadcast; vectors as in `numpy.matmul`."""
    if a.ndim < 2 or b.ndim < 2 or a.dtype != b.dtype:
        return np.matmul(a, b)
    if b.ndim == 2:
        fast = compiled("products", a.size * b.shape[1], a)
        if fast is not None and a.size:
            rows = a if a.ndim == 2 else a.reshape(-1, a.shape[-1])
            return fast.product(rows, b).reshape(*a.shape[:-1], b.shape[1])
    return np.matmul(a, b)
