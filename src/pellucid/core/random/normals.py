"""Normal numbers, by Box-Muller: in blocks of 16, or in pairs of which the generator keeps the second for later."""

from __future__ import annotations

import math

import numpy as np

from .generator import Generator, or_default
from .rounding import DIGITS, REAL_OF_COMPLEX, c_library, checked_shape, computed_in, multiply_add, narrow, require

__all__ = ["log_normal", "normal"]

#: Contiguous normals come in blocks of this many; fewer are drawn in pairs.
_BLOCK = 16


def normal(
    shape,
    dtype: np.dtype | type = np.float32,
    mean=0.0,
    std=1.0,
    generator: Generator | None = None,
    *,
    contiguous: bool = True,
) -> np.ndarray:
    """Normally distributed numbers, array [*shape] of a floating or complex dtype.

    `mean` and `std` are numbers, or arrays that broadcast with `shape`. A complex number has variance `std**2`,
    shared by its two parts. 16 numbers or more come in blocks of 16; fewer come in pairs, and the generator
    keeps the second of a pair for the next call.

    Args:
        contiguous: False where the numbers go into a strided view (through `fill`): PyTorch then draws them in
            pairs, however many they are.

    Raises:
        NotImplementedError: `dtype` is an integer type.
        RuntimeError: `std` is negative or NaN.
    """
    dtype, shape = np.dtype(dtype), checked_shape(shape)
    _check_std(std)
    if isinstance(mean, np.ndarray) or isinstance(std, np.ndarray):
        return _shifted_normal(shape, dtype, mean, std, generator)
    mean, std = float(mean), float(std)
    if dtype in REAL_OF_COMPLEX:
        parts = normal((*shape, 2), REAL_OF_COMPLEX[dtype], mean, std / math.sqrt(2), generator, contiguous=contiguous)
        return parts.view(dtype)[..., 0]
    size = math.prod(shape)
    if size:
        require(dtype in DIGITS, "normal_kernel_cpu", dtype)
    if contiguous and size >= _BLOCK:
        values = _block_normals(size, dtype, mean, std, generator)
    else:
        values = multiply_add(_draw_pairs(or_default(generator), size), std, mean)
    return narrow(values, dtype).reshape(shape)


def _shifted_normal(shape, dtype, mean, std, generator) -> np.ndarray:
    """Normals with an array for `mean` or `std`; the arithmetic on top of the draw is rounded step by step."""
    mean = np.asarray(mean, dtype)
    if not isinstance(std, np.ndarray):
        return np.asarray(normal(shape, dtype, 0.0, std, generator) + mean)
    return np.asarray(normal(shape, dtype, 0.0, 1.0, generator) * np.asarray(std, dtype) + mean)


def _check_std(std) -> None:
    if not isinstance(std, np.ndarray):
        if not std >= 0:
            raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}. Pass its absolute value.")
    elif std.dtype.kind == "c":
        raise RuntimeError("normal expects standard deviation to be non-complex. Pass its absolute value.")
    elif not (std >= 0).all():
        raise RuntimeError(f"normal expects all elements of std >= 0.0, but found {std.min():g}. Pass absolute values.")


def _block_normals(size: int, dtype: np.dtype, mean: float, std: float, generator) -> np.ndarray:
    """16 or more normals: Box-Muller on blocks of 16 uniforms, a ragged end being drawn anew as one more block."""
    computed, tail = computed_in(dtype), size % _BLOCK
    whole = size - tail
    # The 16-bit types skip the uniforms of the ragged end; the others draw and discard them.
    used = size if dtype == computed else whole
    drawn = or_default(generator).uniforms(used + (_BLOCK if tail else 0), computed)
    values = np.empty(size, computed)
    values[:whole] = _box_muller(drawn[:whole])
    if tail:
        values[-_BLOCK:] = _box_muller(drawn[-_BLOCK:])
    return multiply_add(values, std, mean)


def _box_muller(uniforms: np.ndarray) -> np.ndarray:
    """Standard normals of uniforms [16 k]: in each block the first 8 give the radii, the last 8 the angles."""
    blocks = uniforms.reshape(-1, 2, _BLOCK // 2)
    one, two_pi = uniforms.dtype.type(1), uniforms.dtype.type(2 * math.pi)
    radius = one - blocks[:, 0]
    np.log(radius, out=radius)
    radius *= -2
    np.sqrt(radius, out=radius)
    angle = blocks[:, 1] * two_pi
    normals = np.empty_like(blocks)
    np.multiply(radius, np.cos(angle), out=normals[:, 0])
    np.multiply(radius, np.sin(angle, out=angle), out=normals[:, 1])
    return normals.reshape(-1)


def _draw_pairs(generator: Generator, count: int) -> np.ndarray:
    """Standard normals, float64 [count], in Box-Muller pairs; half a pair waits in the generator for the next call."""
    with generator.lock:
        waiting = [] if generator.cached_normal is None or not count else [generator.cached_normal]
        missing = count - len(waiting)
        if count:
            generator.cached_normal = None
        pairs = _box_muller_pairs(generator.engine.doubles(2 * ((missing + 1) // 2)))
        if missing % 2:
            generator.cached_normal = float(pairs[-1])
    return np.concatenate([waiting, pairs[:missing]])


def _box_muller_pairs(uniforms: np.ndarray) -> np.ndarray:
    """Standard normals of uniforms float64 [2 k] that alternate between angles and radii."""
    angle = (2 * math.pi) * uniforms[0::2]
    radius = np.sqrt(-2.0 * c_library(np.log1p, math.log1p, -uniforms[1::2]))
    normals = np.empty(uniforms.size)
    normals[0::2] = radius * c_library(np.cos, math.cos, angle)
    normals[1::2] = radius * c_library(np.sin, math.sin, angle)
    return normals


def log_normal(
    shape, dtype: np.dtype | type = np.float32, mean=1.0, std=2.0, generator: Generator | None = None
) -> np.ndarray:
    """The exponential of normal numbers, array [*shape] of a floating dtype.

    Raises:
        NotImplementedError: `dtype` is not a floating type.
        RuntimeError: `std` is not positive.
    """
    dtype, shape = np.dtype(dtype), checked_shape(shape)
    if not std > 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}. Pass a positive number.")
    size = math.prod(shape)
    if size:
        require(dtype in DIGITS, "log_normal_cpu", dtype)
    normals = multiply_add(_draw_pairs(or_default(generator), size), std, mean)
    with np.errstate(over="ignore"):
        return narrow(np.exp(normals), dtype).reshape(shape)
