"""Orthogonal polynomials; their recurrences are in kernels/polynomials.py. Nothing here is differentiable."""

from __future__ import annotations

from pellucid.autograd.operator import Array, Promote, operator
from pellucid.kernels.polynomials import FAMILIES, recurred

__all__: list[str] = []

PURPOSES = {
    "chebyshev_polynomial_t": "Chebyshev polynomial of the first kind",
    "chebyshev_polynomial_u": "Chebyshev polynomial of the second kind",
    "chebyshev_polynomial_v": "Chebyshev polynomial of the third kind",
    "chebyshev_polynomial_w": "Chebyshev polynomial of the fourth kind",
    "hermite_polynomial_h": "Physicist's Hermite polynomial",
    "hermite_polynomial_he": "Probabilist's Hermite polynomial",
    "laguerre_polynomial_l": "Laguerre polynomial",
    "legendre_polynomial_p": "Legendre polynomial",
}


def _declare(name: str, purpose: str, first, step, shifted: bool = False) -> None:
    """Declare the polynomial of degree n; the shifted ones look at 2x - 1."""

    @operator(promote=Promote.FLOAT, numbers=True, module="special", name=name)
    class function:
        __doc__ = f"{purpose} of degree n.\n\n    input, n: broadcastable to a common shape. Returns it. Not differentiable.\n    "

        def forward(xp, input: Array, n: Array):
            x, n = (xp.array(a) for a in xp.broadcast_arrays(input, n))
            x = 2 * x - 1 if shifted else x
            return recurred(x, n, first(x), step)


for _name, _purpose in PURPOSES.items():
    _declare(_name, _purpose, *FAMILIES[_name])
    if _name.startswith("chebyshev"):
        _declare(f"shifted_{_name}", f"Shifted {_purpose}", *FAMILIES[_name], shifted=True)
