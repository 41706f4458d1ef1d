"""Bessel functions of order zero and one, and the Airy function, with the error that PyTorch makes far from zero.

Beyond 5 (Airy: below -2.09) PyTorch takes the asymptotic series as rational functions from S. L. Moshier, "Methods and
Programs for Mathematical Functions" (1989), but without the leading term of one denominator, whose coefficient is one. That
costs 4e-7 just beyond 5 (Airy: 3e-6) and falls off fast. The true values come from SciPy; what the term is worth is taken off.
"""

from __future__ import annotations

import importlib

import numpy as np

__all__ = ["airy_ai", "first_kind", "second_kind", "spherical"]

# Coefficients of the denominators from the second on, by falling powers.
DENOMINATORS = (
    (64.3178256118178, 856.430025976981, 3882.40183605402, 7240.46774195652, 5930.72701187317, 2062.09331660328, 242.00574024029),
    (74.2373277035675, 1056.44886038263, 4986.41058337654, 9562.31892404757, 7997.0416044735, 2826.1927851764, 336.09360781070),
)  # fmt: skip
AIRY_F = (13.3560420706553, 32.6825032795225, 26.73670409415, 9.18707402907260, 1.47529146771667, 0.115687173795188,
          4.40291641615211e-3, 7.54720348287414e-5, 4.5185009297058e-7)  # fmt: skip
AIRY_G = (9.30892908077442, 19.8352928718312, 15.5646628932865, 5.47686069422975, 0.954293611618962, 0.0864580826352392,
          4.12656523824222e-3, 1.01259085116509e-4, 1.17166733214413e-6, 4.91834570062930e-9)  # fmt: skip


def _excess(denominator: tuple, z: np.ndarray) -> np.ndarray:
    """How much a fraction grows, relative to itself, when its denominator loses the leading term."""
    return z ** len(denominator) / np.polyval(denominator, z)


def _both_kinds(order: int, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Both kinds at x > 0: they are p cos t - q sin t and p sin t + q cos t, and it is q that errs."""
    scipy = importlib.import_module("scipy.special")  # slow import
    first, second = getattr(scipy, f"j{order}")(x), getattr(scipy, f"y{order}")(x)
    turn = x - (2 * order + 1) * np.pi / 4
    cos, sin = np.cos(turn), np.sin(turn)
    error = (second * cos - first * sin) * _excess(DENOMINATORS[order], 25 / np.maximum(x, 5) ** 2)
    error = np.where(x > 5, error, 0)
    return first - error * sin, second + error * cos


def first_kind(order: int, x: np.ndarray) -> np.ndarray:
    """J0 or J1 of each element."""
    values = _both_kinds(order, np.abs(x).astype(np.float64))[0]
    return (values * np.sign(x) if order else values).astype(x.dtype)


def second_kind(order: int, x: np.ndarray) -> np.ndarray:
    """Y0 or Y1 of each element."""
    return _both_kinds(order, x.astype(np.float64))[1].astype(x.dtype)


def spherical(x: np.ndarray) -> np.ndarray:
    """The spherical function of the first kind, order zero, of each element: sin(x) / x, and 1 at 0."""
    value = np.where(x == 0, 1, np.sin(x) / np.where(x == 0, 1, x))
    return np.where(np.isinf(x), 0, value).astype(x.dtype)


def airy_ai(x: np.ndarray) -> np.ndarray:
    """Ai of each element."""
    wide = x.astype(np.float64)
    ai, _, bi, _ = importlib.import_module("scipy.special").airy(wide)  # slow import
    far = wide < -2.09
    wide = np.where(far, wide, -3)
    phase = 2 / 3 * (-wide) ** 1.5
    sin, cos = np.sin(phase + np.pi / 4), np.cos(phase + np.pi / 4)
    scale = 1 / np.sqrt(np.pi * np.sqrt(-wide))
    error_f = (ai * sin + bi * cos - scale) * _excess(AIRY_F, phase**-2)
    error_g = (bi * sin - ai * cos) * _excess(AIRY_G, phase**-2)
    ai = np.where(far, ai + sin * error_f - cos * error_g, ai)
    return np.where((x > 104) & np.isfinite(x), 0, ai).astype(x.dtype)  # SciPy has no value for very large ones
