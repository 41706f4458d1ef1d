"""The polynomials of `kernels/compiled/mathematics.py`: finds their coefficients and prints them, with their errors.

    python benchmarks/polynomials.py          # needs mpmath; takes a minute

Each is the polynomial of its degree whose largest weighted error on the interval is the least there is. It is found by
Remez's exchange: solve for coefficients that err by plus and minus the same amount at degree + 2 points, move the points to
where the error is largest, and repeat. The weight makes the error relative to the function that the polynomial is used in.
"""

from __future__ import annotations

import mpmath as mp
import numpy as np

mp.mp.dps = 50
LN2, ROOT2, TINY = mp.log(2), mp.sqrt(2), mp.mpf("1e-6")


def remez(function, low, high, degree: int, weight, rounds: int = 12) -> tuple[list, mp.mpf]:
    """Coefficients, lowest power first, and the largest weighted error."""
    count = degree + 2
    middle, half = (mp.mpf(low) + high) / 2, (mp.mpf(high) - low) / 2
    points = [middle - half * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    dense = [middle - half * mp.cos(mp.pi * i / (40 * count)) for i in range(40 * count + 1)]
    known = [(x, function(x), weight(x)) for x in dense]
    for _ in range(rounds):
        coefficients, level = _levelled(function, points, degree, weight)
        errors = [(w * (y - mp.polyval(coefficients[::-1], x)), x) for x, y, w in known]
        peaks = _alternating(errors)
        while len(peaks) > count:
            peaks.pop(0 if abs(peaks[0][0]) < abs(peaks[-1][0]) else -1)
        if len(peaks) < count or max(abs(e) for e, _ in peaks) < abs(level) * 1.01:
            break
        points = [x for _, x in peaks]
    return coefficients, max(abs(e) for e, _ in errors)


def _levelled(function, points: list, degree: int, weight) -> tuple[list, mp.mpf]:
    """The polynomial whose weighted errors at the points are level and alternate in sign, and their size."""
    equations, values = mp.matrix(len(points), len(points)), mp.matrix(len(points), 1)
    for i, x in enumerate(points):
        for j in range(degree + 1):
            equations[i, j] = x**j
        equations[i, degree + 1] = (-1) ** i / weight(x)
        values[i] = function(x)
    solved = mp.lu_solve(equations, values)
    return [solved[j] for j in range(degree + 1)], solved[degree + 1]


def _alternating(errors: list) -> list:
    """The largest of each run of errors of one sign."""
    peaks: list = []
    for error, x in errors:
        if peaks and (peaks[-1][0] > 0) == (error > 0):
            peaks[-1] = max(peaks[-1], (error, x), key=lambda peak: abs(peak[0]))
        else:
            peaks.append((error, x))
    return peaks


# --- the functions -----------------------------------------------------------------------------------------------------


def rest_of_exp(r):
    """(exp(r) - 1 - r) / r^2"""
    return mp.fsum(r**k / mp.factorial(k + 2) for k in range(40))


def rest_of_log(f):
    """(log(1 + f) - f + f^2 / 2) / f^3"""
    if abs(f) < mp.mpf("1e-4"):
        return mp.fsum((-1) ** k * f**k / (k + 3) for k in range(14))
    return (mp.log1p(f) - f + f * f / 2) / f**3


def rest_of_quotient(z):
    """(log((1 + s) / (1 - s)) - 2 s) / s^3, with z = s^2"""
    return mp.fsum(2 * z**k / (2 * k + 3) for k in range(60))


def rest_of_erf(z):
    """erf(x) / x - 1, with z = x^2"""
    x = mp.sqrt(z)
    return (mp.erf(x) / x if x else 2 / mp.sqrt(mp.pi)) - 1


def scaled_tail(u):
    """exp(a^2) erfc(a) / t, with t = (u + 1) / 2 = 1 / (1 + 0.35 a)"""
    t, a = _distance(u)
    if a > 40:  # the asymptotic series
        terms = [mp.mpf(1)]
        for k in range(1, 30):
            terms.append(-terms[-1] * (2 * k - 1) / (2 * a * a))
        return mp.fsum(terms) / (a * mp.sqrt(mp.pi)) / t
    return mp.exp(a * a) * mp.erfc(a) / t


def tail_weight(u):
    """Of what is left over a in the normal distribution, the square root; hardly anything far out, but not zero."""
    t, a = _distance(u)
    return t * mp.exp(-a * a / 2) + mp.mpf(10) ** -12


def _distance(u):
    """(t, a), with t just above zero where a is infinite."""
    t = max((u + 1) / 2, mp.mpf(10) ** -12)
    return t, (1 / t - 1) / mp.mpf("0.35")


TASKS = [  # name, function, interval, degrees in float32 and float64, weight
    ("exp", rest_of_exp, (-LN2 / 2 * 1.0005, LN2 / 2 * 1.0005), (5, 9), lambda r: abs(r * r / mp.expm1(r)) if abs(r) > 1e-3 else TINY),
    ("log, directly", rest_of_log, (1 / ROOT2 - 1, ROOT2 - 1), (7, None), lambda f: abs(f**3 / mp.log1p(f)) if abs(f) > 1e-3 else TINY),
    ("log, by quotient", rest_of_quotient, (0, (3 - 2 * ROOT2) ** 2), (None, 6), lambda z: z / 2 if z > 1e-6 else TINY / 1000),
    ("erf", rest_of_erf, (0, 1), (6, 11), lambda z: 1 / (rest_of_erf(z) + 1)),
    ("tail", scaled_tail, (-1, 1), (7, 18), tail_weight),
]  # fmt: skip


def main() -> None:
    for name, function, (low, high), degrees, weight in TASKS:
        for degree, dtype in zip(degrees, (np.float32, np.float64), strict=True):
            if degree is not None:
                coefficients, error = remez(function, low, high, degree, weight)
                rounded = [str(dtype(mp.nstr(c, 30))) for c in coefficients]
                print(f"{name}, {dtype.__name__}, error 2^{float(mp.log(error, 2)):.1f}:\n    {', '.join(rounded)}")


if __name__ == "__main__":
    main()
