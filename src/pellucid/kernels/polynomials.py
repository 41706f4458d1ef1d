"""Orthogonal polynomials, by their recurrences."""

from __future__ import annotations

import numpy as np

__all__ = ["FAMILIES", "recurred"]


def recurred(x: np.ndarray, n: np.ndarray, first: np.ndarray, step) -> np.ndarray:
    """p_n(x) for each element, with p_0 = 1, p_1 = first and p_{k+1} = step(k, x, p_k, p_{k-1}); zero for negative n."""
    n = np.trunc(n)
    before, now = np.ones_like(x), first
    result = np.where(n < 0, 0, np.where(n == 0, before, now)).astype(x.dtype)
    top = n[np.isfinite(n)].max(initial=0)
    for k in range(1, int(top)):
        before, now = now, step(k, x, now, before)
        result = np.where(n == k + 1, now, result)
    return result


def _chebyshev(k, x, now, before):
    """All four kinds share one recurrence and differ in p_1."""
    return 2 * x * now - before


# p_1 as a function of x, and the step from k, x, p_k, p_{k-1} to p_{k+1}
FAMILIES = {
    "chebyshev_polynomial_t": (lambda x: x, _chebyshev),
    "chebyshev_polynomial_u": (lambda x: 2 * x, _chebyshev),
    "chebyshev_polynomial_v": (lambda x: 2 * x - 1, _chebyshev),
    "chebyshev_polynomial_w": (lambda x: 2 * x + 1, _chebyshev),
    "hermite_polynomial_h": (lambda x: 2 * x, lambda k, x, now, before: 2 * x * now - 2 * k * before),
    "hermite_polynomial_he": (lambda x: x, lambda k, x, now, before: x * now - k * before),
    "laguerre_polynomial_l": (lambda x: 1 - x, lambda k, x, now, before: ((2 * k + 1 - x) * now - k * before) / (k + 1)),
    "legendre_polynomial_p": (lambda x: x, lambda k, x, now, before: ((2 * k + 1) * x * now - k * before) / (k + 1)),
}
