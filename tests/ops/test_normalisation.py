"""Derivatives of the normalising functions, whose operators take statistics that are functions of the input."""

from __future__ import annotations

import numpy as np
import pytest

import pellucid as torch
import pellucid.nn.functional as F

FUNCTIONS = {
    "layer_norm": lambda x, w, b: F.layer_norm(x, (5,), w, b),
    "layer_norm without weight": lambda x, w, b: F.layer_norm(x, (5,)),
    "rms_norm": lambda x, w, b: F.rms_norm(x, (5,), w),
    "batch_norm": lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True),
    "batch_norm without bias": lambda x, w, b: F.batch_norm(x, None, None, w, None, training=True),
    "batch_norm in evaluation": lambda x, w, b: F.batch_norm(x, torch.zeros(5).double(), torch.ones(5).double() * 2, w, b),
    "instance_norm": lambda x, w, b: F.instance_norm(x[None], weight=w[:4], bias=b[:4]),
    "group_norm": lambda x, w, b: F.group_norm(x.t()[None], 5, w, b),
}


def leaf(*shape, seed):
    values = np.random.default_rng(seed).standard_normal(shape)
    return torch.from_numpy(values).requires_grad_()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_first_and_second_derivatives(name):
    inputs = (leaf(4, 5, seed=0), leaf(5, seed=1), leaf(5, seed=2))
    assert torch.autograd.gradcheck(FUNCTIONS[name], inputs)
    assert torch.autograd.gradgradcheck(FUNCTIONS[name], inputs, fast_mode=True)


def test_running_statistics_move_by_the_momentum():
    mean, var = torch.zeros(2), torch.ones(2)
    x = torch.tensor([[1.0, 2.0], [3.0, 6.0]])
    F.batch_norm(x, mean, var, training=True, momentum=0.5)
    assert mean.tolist() == [1.0, 2.0]
    assert var.tolist() == [1.5, 4.5]
