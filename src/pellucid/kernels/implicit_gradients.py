"""How gamma and beta distributed numbers change with their shape parameters, at a fixed quantile.

If F(z; a) is the distribution function and p its density, a number z drawn at the quantile F(z; a) moves with a by
dz/da = -(dF/da) / p: Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients" (2018). dF/da is an integral
of the density times a weight, the logarithm less its mean, from z to one end; the whole integral is 0, so the end is
chosen on whose side the weight has one sign, and nothing cancels. The substitutions below bring each integral to
[0, inf) with a kernel that is 1 at 0 and falls off exponentially; the double exponential rule of Takahasi and Mori
(1974) integrates it. The drawing itself is in `core/random/rejection.py`.
"""

from __future__ import annotations

import math

import numpy as np

__all__ = ["beta_gradient", "gamma_gradient"]

#: Distance of the nodes, and how far the exponents of kernels fall: exp(-45) is below float64's precision.
_STEP, _FALL = 0.125, 45.0
#: The first node: exp(u - exp(-u)) is 1e-17 of the scale there.
_FIRST = -3.6
#: Elements integrated at a time, so that nodes times elements stay small.
_PIECE = 2048


def gamma_gradient(concentration: np.ndarray, value: np.ndarray) -> np.ndarray:
    """dz/da of gamma numbers z = `value` of rate 1 at a = `concentration`; arrays of one shape and dtype."""
    return _by_pieces(_gamma_piece, concentration, value)


def beta_gradient(first: np.ndarray, second: np.ndarray, value: np.ndarray) -> np.ndarray:
    """dz/da of beta numbers z = `value` at a = `first`, with b = `second` fixed; arrays of one shape and dtype."""
    return _by_pieces(_beta_piece, first, second, value)


def _by_pieces(compute, *arrays: np.ndarray) -> np.ndarray:
    flat = [np.asarray(a, np.float64).reshape(-1) for a in arrays]
    made = np.empty_like(flat[0])
    with np.errstate(all="ignore"):
        for start in range(0, made.size, _PIECE):
            piece = slice(start, start + _PIECE)
            made[piece] = compute(*[a[piece] for a in flat])
    return made.reshape(arrays[0].shape).astype(arrays[0].dtype)


def _either(upper: np.ndarray, on_upper, on_lower, *arrays: np.ndarray) -> np.ndarray:
    """`on_upper` where `upper` holds, else `on_lower`."""
    made = np.empty_like(arrays[0])
    for where, compute in ((upper, on_upper), (~upper, on_lower)):
        if where.any():
            made[where] = compute(*[a[where] for a in arrays])
    return made


def _half_line(integrand, scale: np.ndarray, reach: np.ndarray) -> np.ndarray:
    """The integral of `integrand(v)` over [0, inf), for each element, v being [nodes, elements].

    scale: the shortest distance over which the integrand changes. reach: the distance past which it vanishes.
    """
    ratio = reach / scale
    last = math.log(max(float(np.where(np.isfinite(ratio), ratio, 1.0).max()), 1.0)) + _STEP
    u = np.arange(_FIRST, last + _STEP, _STEP)[:, None]
    v = scale * np.exp(u - np.exp(-u))
    return (integrand(v) * v * (1 + np.exp(-u))).sum(axis=0) * _STEP


# --- gamma -----------------------------------------------------------------------------------------------------------


def _gamma_piece(a: np.ndarray, x: np.ndarray) -> np.ndarray:
    from scipy.special import psi  # slow import

    ahead = np.log(x) - psi(a)
    return _either(ahead >= 0, _gamma_above, _gamma_below, a, x, ahead)


def _gamma_above(a: np.ndarray, x: np.ndarray, ahead: np.ndarray) -> np.ndarray:
    """From x to infinity, at x + v: the kernel is (1 + v / x)^(a - 1) exp(-v)."""
    slope, curvature = np.abs(1 - (a - 1) / x), np.sqrt(np.abs(a - 1)) / x
    scale = 1 / (1 / x + slope + curvature)
    # the kernel is at most exp(-decay v), and for a > 1 it falls like a bell of width sqrt(x) as well
    decay = np.clip(1 - (a - 1) / x, 0, 1)
    reach = np.minimum(_FALL / decay, 2 * (_FALL + np.sqrt(_FALL * x)))

    def integrand(v):
        grown = np.log1p(v / x)
        return (ahead + grown) * np.exp((a - 1) * grown - v)

    return _half_line(integrand, scale, reach)


def _gamma_below(a: np.ndarray, x: np.ndarray, ahead: np.ndarray) -> np.ndarray:
    """From x down to 0, at x exp(-v): the kernel is exp(-a v + x (1 - exp(-v)))."""
    scale = 1 / (1 + np.abs(a - x) + np.sqrt(x))
    reach = (_FALL + np.minimum(x, 4 * np.sqrt(_FALL * x))) / a

    def integrand(v):
        return (v - ahead) * np.exp(-a * v - x * np.expm1(-v))

    return x * _half_line(integrand, scale, reach)


# --- beta ------------------------------------------------------------------------------------------------------------


def _beta_piece(a: np.ndarray, b: np.ndarray, x: np.ndarray) -> np.ndarray:
    from scipy.special import psi  # slow import

    mean = psi(a) - psi(a + b)
    return _either(np.log(x) >= mean, _beta_above, _beta_below, a, b, x, mean)


def _beta_above(a: np.ndarray, b: np.ndarray, x: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """From x to 1, at 1 - (1 - x) exp(-v)."""
    return (1 - x) * _beta_tail(b, a, (1 - x) / x, lambda v: np.log(x * np.exp(-v) - np.expm1(-v)) - mean)


def _beta_below(a: np.ndarray, b: np.ndarray, x: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """From x down to 0, at x exp(-v)."""
    log_x = np.log(x)
    return x * _beta_tail(a, b, x / (1 - x), lambda v: v - log_x + mean)


def _beta_tail(near: np.ndarray, far: np.ndarray, odds: np.ndarray, weight) -> np.ndarray:
    """The integral of `weight` against exp(-near v) (1 + odds (1 - exp(-v)))^(far - 1)."""
    growth = np.abs(far - 1) * odds
    scale = 1 / (1 + odds + np.abs(near - (far - 1) * odds) + np.sqrt(growth * (1 + odds)))
    most = np.minimum(np.abs(far - 1) * np.log1p(odds), 4 * np.sqrt(_FALL * growth * (1 + odds)))
    reach = (_FALL + most) / near

    def integrand(v):
        return weight(v) * np.exp(-near * v + (far - 1) * np.log1p(-odds * np.expm1(-v)))

    return _half_line(integrand, scale, reach)
