"""Orthogonal polynomials, by their recurrences. Nothing here is differentiable."""

from __future__ import annotations

import numpy as np

from pellucid.autograd.operator import Array, Promote, operator

__all__: list[str] = []


def recurred(xp, x: np.ndarray, n: np.ndarray, first, step) -> np.ndarray:
    """p_n(x) for each element, with p_0 = 1, p_1 = first and p_{k+1} = step(k, p_k, p_{k-1}); zero for negative n."""
    n = xp.trunc(n)
    before, now = xp.ones_like(x), first
    result = xp.where(n < 0, 0, xp.where(n == 0, before, now)).astype(x.dtype)
    top = n[xp.isfinite(n)].max(initial=0)
    for k in range(1, int(top)):
        before, now = now, step(k, now, before)
        result = xp.where(n == k + 1, now, result)
    return result


def _declare(name: str, purpose: str, values) -> None:
    """Declare the polynomial of degree n, taken from `values(xp, input, n)`."""

    def forward(xp, input: Array, n: Array):
        input, n = (xp.array(a) for a in xp.broadcast_arrays(input, n))
        return values(xp, input, n)

    doc = f"{purpose} of degree n.\n\ninput, n: broadcastable to a common shape. Returns it. Not differentiable.\n"
    declaration = type(name, (), {"forward": forward, "__doc__": doc, "__qualname__": name})
    operator(promote=Promote.FLOAT, numbers=True, module="special")(declaration)


def _chebyshev(shifted: bool, first):
    """All four kinds share one recurrence and differ in p_1; the shifted ones look at 2x - 1."""

    def values(xp, x, n):
        x = 2 * x - 1 if shifted else x
        return recurred(xp, x, n, first(x), lambda k, now, before: 2 * x * now - before)

    return values


for _letter, _kind, _first in (
    ("t", "first", lambda x: x),
    ("u", "second", lambda x: 2 * x),
    ("v", "third", lambda x: 2 * x - 1),
    ("w", "fourth", lambda x: 2 * x + 1),
):
    _name, _purpose = f"chebyshev_polynomial_{_letter}", f"Chebyshev polynomial of the {_kind} kind"
    _declare(_name, _purpose, _chebyshev(False, _first))
    _declare(f"shifted_{_name}", f"Shifted {_purpose}", _chebyshev(True, _first))


def _three_terms(first, step):
    """A family by its p_1(x) and the step k, x, p_k, p_{k-1} to p_{k+1}."""
    return lambda xp, x, n: recurred(xp, x, n, first(x), lambda k, now, before: step(k, x, now, before))


_declare("hermite_polynomial_h", "Physicist's Hermite polynomial",
         _three_terms(lambda x: 2 * x, lambda k, x, now, before: 2 * x * now - 2 * k * before))
_declare("hermite_polynomial_he", "Probabilist's Hermite polynomial",
         _three_terms(lambda x: x, lambda k, x, now, before: x * now - k * before))
_declare("laguerre_polynomial_l", "Laguerre polynomial",
         _three_terms(lambda x: 1 - x, lambda k, x, now, before: ((2 * k + 1 - x) * now - k * before) / (k + 1)))
_declare("legendre_polynomial_p", "Legendre polynomial",
         _three_terms(lambda x: x, lambda k, x, now, before: ((2 * k + 1) * x * now - k * before) / (k + 1)))
