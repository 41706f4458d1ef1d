"""Scalar functions of kernels, against NumPy in the next wider type: at most 2 units in the last place, everywhere."""

from __future__ import annotations

import functools

import numpy as np
import pytest

pytest.importorskip("numba")

EDGES = [
    0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-45, -1e-45, 1e-40, 1.1754944e-38, 3.4e38, -3.4e38, 88.72, 88.73, -87.33,
    -103.9, -104.1, 0.34657, -0.34657, 709.78, 709.79, -708.4, -745.1, -745.2, 5e-324, 2.2250738585072014e-308, 0.75, -0.75,
]  # fmt: skip


def reference_sigmoid(x):
    small = np.exp(-np.abs(x))
    return np.where(x < 0, small, 1) / (1 + small)


def reference_erf(x):
    from scipy.special import erf

    return erf(x)


REFERENCES = {
    "exp": np.exp, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "tanh": np.tanh, "sigmoid": reference_sigmoid,
    "softplus": lambda x: np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x))), "erf": reference_erf,
}  # fmt: skip


@functools.cache
def loop(name: str):
    """A kernel that takes a function of each element, under the flags that kernels have."""
    from pellucid.kernels.compiled import mathematics, serial

    function = getattr(mathematics, name)

    def kernel(x, out):
        for i in range(x.size):
            out[i] = function(x[i])

    return serial(kernel)


def values(name: str, x: np.ndarray) -> np.ndarray:
    out = np.empty_like(x)
    loop(name)(x, out)
    return out


def units(found: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """How many units in the last place a result is off; infinite where one of the two is not finite and they differ."""
    wanted = exact.astype(found.dtype)
    alike = (found == wanted) | (np.isnan(found) & np.isnan(wanted))
    with np.errstate(all="ignore"):
        off = np.abs(found.astype(exact.dtype) - exact) / np.spacing(np.abs(wanted)).astype(exact.dtype)
    return np.where(np.isfinite(wanted) & np.isfinite(found), off, np.where(alike, 0, np.inf))


def points(dtype) -> np.ndarray:
    """Every exponent and sign by random bits, the range of the exponentials, the neighbourhood of zero and of one."""
    rng = np.random.default_rng(0)
    kind = np.uint32 if dtype == np.float32 else np.uint64
    bits = rng.integers(0, np.iinfo(kind).max, 200_000, kind).view(dtype)
    wide = rng.uniform(-110, 110, 100_000) * (1 if dtype == np.float32 else 7)
    others = np.concatenate([wide, rng.normal(size=100_000), rng.uniform(0, 2, 50_000), EDGES])
    with np.errstate(over="ignore"):
        return np.concatenate([bits, others.astype(dtype)])


@pytest.mark.parametrize("name", REFERENCES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_float32_is_within_two_units(name):
    x = points(np.float32)
    assert units(values(name, x), REFERENCES[name](x.astype(np.float64))).max() <= 2


@pytest.mark.parametrize("name", sorted(set(REFERENCES) - {"erf"}))
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.skipif(np.finfo(np.longdouble).nmant < 63, reason="long double is no wider than double here")
def test_float64_is_within_two_units(name):
    x = points(np.float64)
    assert units(values(name, x), REFERENCES[name](x.astype(np.longdouble))).max() <= 2


def test_erf_in_float64():
    """SciPy's own error is allowed for: it has no wider type."""
    x = points(np.float64)
    assert units(values("erf", x), reference_erf(x)).max() <= 3


def test_erf_in_float64_at_points_known_exactly():
    """erf(x) in 20 digits. Source: the series 2/sqrt(pi) sum (-1)^k x^(2k+1) / (k! (2k+1)), summed in fractions."""
    from fractions import Fraction
    from math import factorial

    for x in (Fraction(1, 8), Fraction(1, 2), Fraction(1), Fraction(9, 8), Fraction(2), Fraction(3)):
        terms = sum(Fraction((-1) ** k, factorial(k) * (2 * k + 1)) * x ** (2 * k + 1) for k in range(90))
        exact = np.longdouble(terms.numerator) / np.longdouble(terms.denominator) * 2 / np.sqrt(np.arctan(np.longdouble(1)) * 4)
        assert units(values("erf", np.array([float(x)])), np.array([exact])).max() <= 2


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_zero_keeps_its_sign(dtype):
    zeros = np.array([0.0, -0.0], dtype)
    for name in ("expm1", "log1p", "tanh", "erf"):
        assert list(np.signbit(values(name, zeros))) == [False, True], name


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_decay_is_exp_without_denormal_numbers(dtype):
    x = -np.abs(points(dtype)[:200_000])
    wanted = np.exp(x.astype(np.longdouble))
    wanted = np.where(wanted < np.finfo(dtype).tiny * 1.1, 0, wanted)
    found = values("decay", x)
    found = np.where(found < np.finfo(dtype).tiny * 1.1, found * 0, found)
    assert units(found, wanted).max() <= 2
    assert values("decay", np.array([-np.inf, -1e4, np.nan], dtype))[:2].tolist() == [0, 0]
