"""vmap beside a loop over the examples, and operands for it. Three examples everywhere."""

from __future__ import annotations

import itertools

import numpy as np

import pellucid as torch
from pellucid.func import grad, jvp, vmap
from pellucid.func.trees import flatten

SIZE = 3


def draw(*shape: int, seed: int = 0, low: float = -1.0, high: float = 1.0) -> torch.Tensor:
    """A batch of examples of a shape, double precision."""
    values = np.random.default_rng((seed, *shape)).uniform(low, high, (SIZE, *shape))
    return torch.from_numpy(values)


def whole(*shape: int, high: int, low: int = 0, seed: int = 1) -> torch.Tensor:
    """A batch of examples of integers in [low, high)."""
    return torch.from_numpy(np.random.default_rng((seed, *shape)).integers(low, high, (SIZE, *shape)))


def tensors(result) -> list:
    """The tensors in a result."""
    return [leaf for leaf in flatten(result)[0] if isinstance(leaf, torch.Tensor)]


def assert_is_a_loop(f, *operands, choices=None) -> None:
    """vmap of f gives what a loop does: with each choice of the operands differing between examples, the rest the same."""
    for batched in choices or itertools.product((True, False), repeat=len(operands)):
        if not any(batched):
            continue
        given = [t if b else t[0].clone() for t, b in zip(operands, batched, strict=True)]
        rows = [
            tensors(f(*[t[i].clone() if b else t.clone() for t, b in zip(given, batched, strict=True)])) for i in range(SIZE)
        ]
        found = tensors(vmap(f, in_dims=tuple(0 if b else None for b in batched))(*given))
        for column, result in zip(zip(*rows, strict=True), found, strict=True):
            expected = torch.stack(list(column))
            assert result.shape == expected.shape, batched
            assert result.dtype is expected.dtype, batched
            np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-9, atol=1e-11, err_msg=str(batched))


def weighed(result):
    """One number that depends on every real number in a result."""
    total = 0.0
    for t in tensors(result):
        if t.is_floating_point() or t.is_complex():
            t = torch.view_as_real(t) if t.is_complex() else t
            factors = torch.arange(1.0, t.numel() + 1, dtype=t.dtype).reshape(t.shape)
            total = total + (factors * t * t).sum()
    return total


def slopes(f, count: int = 1):
    """The gradients of f's results, weighed, in its first arguments."""

    def pulled(*args):
        return grad(lambda *moving: weighed(f(*moving, *args[count:])), argnums=tuple(range(count)))(*args[:count])

    return pulled


def pushed(f, count: int = 1):
    """The tangents of f's results, from tangents of its first arguments."""

    def moved(*args):
        def real(*moving):
            found = tensors(f(*moving, *args[count:]))
            return tuple(t for t in found if t.is_floating_point() or t.is_complex())

        return jvp(real, args[:count], tuple(a * 0.5 + 0.1 for a in args[:count]))[1]

    return moved
