"""vmap over every declaration: the batching rule gives what a loop over the examples gives, at each sample.

Each floating-point operand is batched alone, and all operands together.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from test_declarations import call, cases, to_tensors

import pellucid
from pellucid.core.tensor import Tensor, wrap
from pellucid.func import vmap
from pellucid.func.trees import flatten, unflatten

SIZE = 3


def examples(tensor: Tensor) -> Tensor:
    """A batch of operands: the sample, and others near it (integers and masks stay the same)."""
    array = tensor._array
    if array.dtype.kind in "fc":
        return wrap(np.stack([array, array * 0.75, array * 0.5]))
    return wrap(np.stack([array] * SIZE))


def is_random(op) -> bool:
    return "generator" in op.attributes


@pytest.mark.parametrize(("op", "args", "kwargs"), cases(lambda op: not is_random(op)))
def test_a_batch_is_a_loop(op, args, kwargs):
    leaves, shape = flatten(to_tensors(list(args), False))
    positions = [i for i, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    floats = [i for i in positions if leaves[i]._array.dtype.kind in "fc"]
    choices = {tuple(positions)} | {(i,) for i in floats}
    for chosen in sorted(choices):
        batches = [examples(leaf) if i in chosen else leaf for i, leaf in enumerate(leaves)]
        compare(op, kwargs, batches, chosen, shape)


def compare(op, kwargs, batches, chosen, shape):
    def one(*values):
        given = list(batches)
        for i, value in zip(chosen, values, strict=True):
            given[i] = value
        return tuple(call(op, unflatten(given, shape), kwargs))

    picked = [batches[i] for i in chosen]
    try:
        rows = [one(*[b[i] for b in picked]) for i in range(SIZE)]
    except (RuntimeError, ValueError):  # not all neighbours of a sample are in the domain
        return
    if len({tuple(r.shape for r in row) for row in rows}) > 1:
        return
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="There is a performance drop")
        found = vmap(one)(*picked)
    for column, result in zip(zip(*rows, strict=True), found, strict=True):
        expected = pellucid.stack(list(column))
        assert result.dtype is expected.dtype
        assert result.shape == expected.shape
        np.testing.assert_allclose(result.numpy(), expected.numpy(), rtol=1e-10, atol=1e-12)
