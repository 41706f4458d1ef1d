"""Sampling images at arbitrary places: which elements a place is made of, how much of each, and how that changes with the place.

A place is given by coordinates in [-1, 1], last dimension first (x, y, z). Each dimension contributes one, two or four
elements (nearest, linear, cubic); an element of the image is a combination of one of each, weighed by their product.

Shapes: image [N, C, *S], grid [N, *P, D], elements and weights [N, K, prod(P)] with K combinations; D = len(S).
"""

from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from pellucid.kernels.resampling import cubic_weights

__all__ = ["Sampling", "elements", "gather", "places", "scatter", "weigh", "weights"]


class Neighbours(NamedTuple):
    """The elements of one dimension: all arrays are [N, prod(P)] but `index`, `inside` and `weight`, which list them."""

    index: list[np.ndarray]
    inside: list[np.ndarray]  # whether they are in the image
    weight: list[np.ndarray]


def _unnormalised(coordinate: np.ndarray, size: int, align: bool) -> np.ndarray:
    """From [-1, 1] to places of elements: the ends are the middles of the outer elements (`align`) or their outer edges."""
    return (coordinate + 1) * ((size - 1) / 2) if align else (coordinate + 1) * (size / 2) - 0.5


def _reflected(place: np.ndarray, size: int, align: bool) -> tuple[np.ndarray, np.ndarray]:
    """Places mirrored at the ends until they are in the image, and the sign with which they then move."""
    low, span = (0.0, float(size - 1)) if align else (-0.5, float(size))
    if span == 0:
        return np.zeros_like(place), np.zeros_like(place)
    distance = np.abs(place - low)
    extra, flips = np.fmod(distance, span), np.floor(distance / span)
    even = flips % 2 == 0
    sign = np.where(place < low, -1, 1) * np.where(even, 1, -1)
    return np.where(even, extra, span - extra) + low, sign.astype(place.dtype)


def _moved(place: np.ndarray, size: int, padding: str, align: bool) -> tuple[np.ndarray, np.ndarray | None]:
    """Places brought into the image, and how they then move with the original ones; None for at the same speed."""
    if padding == "zeros":
        return place, None
    speed = np.ones_like(place)
    if padding == "reflection":
        place, speed = _reflected(place, size, align)
    free = (place > 0) & (place < size - 1)
    return place.clip(0, size - 1), np.where(free, speed, 0)


def _derived(mode: str, share: np.ndarray, order: int) -> list[np.ndarray]:
    """The weights of the elements around a place that is `share` behind one of them, or a derivative of theirs."""
    one, nothing = np.ones_like(share), np.zeros_like(share)
    if mode == "nearest":
        return [nothing if order else one]
    if mode == "bilinear":
        return [[1 - share, share], [-one, one], [nothing, nothing]][min(order, 2)]
    if order == 0:
        return cubic_weights(share)
    return [_cubic_derived(share, order, shift) for shift in (1, 0, -1, -2)]


def _cubic_derived(share: np.ndarray, order: int, shift: int, bend: float = -0.75) -> np.ndarray:
    """A derivative of Keys' cubic of the signed distance share + shift."""
    sign = 1 if shift >= 0 else -1
    x = np.abs(share + shift)
    near = np.polynomial.Polynomial([1, 0, -(bend + 3), bend + 2])
    far = np.polynomial.Polynomial([-4 * bend, 8 * bend, -5 * bend, bend])
    piece = (near if shift in (0, -1) else far).deriv(order)
    return (sign**order * piece(x)).astype(share.dtype)


class Sampling(NamedTuple):
    """The options of a sampling."""

    mode: str  # "bilinear", "nearest" or "bicubic"
    padding: str  # "zeros", "border" or "reflection"
    align: bool


def _neighbours(coordinate: np.ndarray, size: int, options: Sampling, order: int) -> Neighbours:
    """What one dimension contributes, or its derivative of some order in the coordinate."""
    mode, padding, align = options.mode, options.padding, options.align
    place = _unnormalised(coordinate, size, align)
    pace = (size - 1) / 2 if align else size / 2
    speed = None
    if mode != "bicubic":  # there each element is brought into the image by itself
        place, speed = _moved(place, size, padding, align)
    first = np.rint(place) if mode == "nearest" else np.floor(place)
    weight = _derived(mode, place - first, order)
    if order:
        pace = pace**order if speed is None else (pace * speed) ** order
        weight = [w * pace for w in weight]
    steps = {"nearest": (0,), "bilinear": (0, 1), "bicubic": (-1, 0, 1, 2)}[mode]
    places = [first + step for step in steps]
    if mode == "bicubic":
        places = [_moved(p, size, padding, align)[0] for p in places]
    inside = [(p >= 0) & (p <= size - 1) for p in places]
    index = [np.where(i, p, 0).astype(np.intp) for p, i in zip(places, inside, strict=True)]
    return Neighbours(index, inside, weight)


def _all_neighbours(grid: np.ndarray, size: tuple, options: Sampling, orders: tuple) -> list[Neighbours]:
    """The neighbours in each dimension, the first dimension of the image first."""
    flat = grid.reshape(len(grid), -1, len(size)).astype(grid.dtype, copy=False)
    return [_neighbours(flat[..., -1 - d], size[d], options, orders[d]) for d in range(len(size))]


def elements(grid: np.ndarray, size: tuple, options: Sampling) -> np.ndarray:
    """[N, K, P]: the combinations of elements, as places in the image spread out as one row."""
    found = _all_neighbours(grid, size, options, (0,) * len(size))
    made = []
    for chosen in itertools.product(*(n.index for n in found)):
        flat = chosen[0]
        for d, index in enumerate(chosen[1:], 1):
            flat = flat * size[d] + index
        made.append(flat)
    return np.stack(made, 1)


def weights(grid: np.ndarray, size: tuple, options: Sampling, orders: tuple) -> np.ndarray:
    """[N, K, P]: the weights of the combinations, 0 outside of the image; or a mixed derivative, `orders[d]` times in each."""
    made = []
    found = _all_neighbours(grid, size, options, orders)
    seen = [[np.where(i, w, 0) for i, w in zip(n.inside, n.weight, strict=True)] for n in found]
    for chosen in itertools.product(*seen):
        product = chosen[0]
        for weight in chosen[1:]:
            product = product * weight
        made.append(product)
    return np.stack(made, 1).astype(grid.dtype, copy=False)


# --- the three bilinear maps -----------------------------------------------------------------------------------------


def gather(image: np.ndarray, weight: np.ndarray, element: np.ndarray) -> np.ndarray:
    """[N, C, P]: the weighed sum over K of the image's elements."""
    flat = image.reshape(*image.shape[:2], -1)
    made = np.zeros((*image.shape[:2], weight.shape[2]), image.dtype)
    for n in range(len(image)):
        for k in range(weight.shape[1]):
            part = flat[n].take(element[n, k], axis=1)
            part *= weight[n, k]
            made[n] += part
    return made


def scatter(grad: np.ndarray, weight: np.ndarray, element: np.ndarray, count: int) -> np.ndarray:
    """[N, C, count]: the transpose of `gather` in the image."""
    made = np.empty((*grad.shape[:2], count), grad.dtype)
    for n in range(len(grad)):
        places = element[n].reshape(-1)
        for c in range(grad.shape[1]):
            made[n, c] = np.bincount(places, (weight[n] * grad[n, c]).reshape(-1), count)
    return made


def weigh(grad: np.ndarray, image: np.ndarray, element: np.ndarray) -> np.ndarray:
    """[N, K, P]: the transpose of `gather` in the weights."""
    flat = image.reshape(*image.shape[:2], -1)
    made = np.empty(element.shape, grad.dtype)
    for n in range(len(image)):
        for k in range(element.shape[1]):
            made[n, k] = np.einsum("cp,cp->p", grad[n], flat[n].take(element[n, k], axis=1))
    return made


def places(sizes: tuple, dtype: np.dtype, align: bool) -> np.ndarray:
    """[prod(sizes), D + 1]: the places of all elements from -1 to 1, last dimension first, and a 1."""
    along = []
    for size in sizes:
        steps = np.linspace(-1, 1, size) if size > 1 else np.zeros(1)
        along.append(steps if align else steps * ((size - 1) / size))
    axes = np.meshgrid(*along, indexing="ij")
    return np.stack([*axes[::-1], np.ones(sizes)], -1).reshape(-1, len(sizes) + 1).astype(dtype)
