"""Arithmetic of large arrays, element by element, on all threads: NumPy's results to the last bit, which it computes on one.

Who calls these has looked whether arrays are large (`LARGE`); what is not for the compiled forms (arrays of other dtypes, or that do
not lie in memory alike) goes to NumPy.
"""

from __future__ import annotations

import numpy as np

from .choice import CROSSOVERS, compiled
from .threads import threads_for

__all__ = ["LARGE", "add", "add_to", "divide", "multiply", "subtract"]

LARGE = CROSSOVERS["elementwise"]


def _forms(a: np.ndarray, b: np.ndarray):
    """The compiled forms, if two arrays lie in memory alike. One that may not be written is of another type to Numba."""
    alike = a.shape == b.shape and a.flags.carray and b.flags.carray  # contiguous, aligned, may be written
    return compiled("elementwise", a.size, a, b) if alike else None


def _made(function, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """What a compiled form makes of two arrays."""
    out = np.empty(a.shape, a.dtype)
    function(threads_for(a.size), a.reshape(-1), b.reshape(-1), out.reshape(-1))
    return out


def add(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a + b."""
    fast = _forms(a, b)
    return np.add(a, b) if fast is None else _made(fast.add, a, b)


def add_to(total: np.ndarray, more: np.ndarray) -> None:
    """total += more, in place; arrays of one shape and dtype."""
    fast = _forms(total, more)
    if fast is None:
        np.add(total, more, total)
    else:
        fast.add_to(threads_for(total.size), total.reshape(-1), more.reshape(-1))


def subtract(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a - b."""
    fast = _forms(a, b)
    return np.subtract(a, b) if fast is None else _made(fast.subtract, a, b)


def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a b."""
    fast = _forms(a, b)
    return np.multiply(a, b) if fast is None else _made(fast.multiply, a, b)


def divide(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a / b."""
    fast = _forms(a, b)
    return np.true_divide(a, b) if fast is None else _made(fast.divide, a, b)
