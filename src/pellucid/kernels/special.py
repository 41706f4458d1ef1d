"""Special functions: SciPy's, made to agree with PyTorch at single points. Bessel functions are in `bessel.py`."""

from __future__ import annotations

import importlib
import math

import numpy as np

__all__ = ["digamma", "erfinv", "lgamma", "polygamma", "scipy", "zeta"]


def scipy(name: str, *arrays: np.ndarray) -> np.ndarray:
    """A function of scipy.special, in the dtype of the last array."""
    module = importlib.import_module("scipy.special")  # slow import
    return np.asarray(getattr(module, name)(*arrays)).astype(arrays[-1].dtype, copy=False)


def erfinv(x: np.ndarray) -> np.ndarray:
    """The inverse of the error function; SciPy forgets the sign of zero."""
    return np.copysign(scipy("erfinv", x), x)


def lgamma(x: np.ndarray) -> np.ndarray:
    """The logarithm of the absolute value of the gamma function, infinite at both infinities."""
    return np.where(np.isinf(x), np.inf, scipy("gammaln", x)).astype(x.dtype)


def digamma(x: np.ndarray) -> np.ndarray:
    """The derivative of `lgamma`: infinite at zeros, with the sign opposite to theirs, and NaN at the other poles."""
    pole = (x < 0) & (x == np.floor(x))
    value = np.where(pole, np.nan, scipy("psi", x))
    return np.where(x == 0, np.copysign(np.inf, -x), value).astype(x.dtype)


def polygamma(order: int, x: np.ndarray) -> np.ndarray:
    """The derivative of `digamma` of that order."""
    if order == 0:
        return scipy("psi", x)
    if order == 1:
        # reflection: trigamma(x) = pi^2 / sin(pi x)^2 - trigamma(1 - x); SciPy's zeta knows positive numbers only
        mirrored = np.where(x < 0.5, 1 - x, x)
        value = scipy("zeta", np.full_like(x, 2), mirrored)
        sine = np.sin(math.pi * x)
        return np.where(x < 0.5, math.pi**2 / (sine * sine) - value, value).astype(x.dtype)
    factor = (1 if order % 2 else -1) * math.gamma(order + 1)
    value = factor * scipy("zeta", np.full_like(x, order + 1), x)
    return np.where(x == np.inf, np.nan, value).astype(x.dtype)


def zeta(x: np.ndarray, q: np.ndarray) -> np.ndarray:
    """The Hurwitz zeta function, NaN where q is infinite."""
    return np.where(q == np.inf, np.nan, scipy("zeta", x, q)).astype(q.dtype)
