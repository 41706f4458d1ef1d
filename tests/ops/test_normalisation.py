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


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_gradients_agree_in_both_modes_and_in_a_batch(name):
    """Second derivatives pushed forward through the gradients, pulled back through them, and for a batch of directions."""
    inputs = tuple(leaf(*shape, seed=seed).detach() for seed, shape in enumerate(((4, 5), (5,), (5,))))
    directions = tuple(leaf(3, *x.shape, seed=seed + 3).detach() for seed, x in enumerate(inputs))

    def gradients(*arguments):
        return torch.func.grad(lambda *a: (FUNCTIONS[name](*a) ** 3).sum(), argnums=(0, 1, 2))(*arguments)

    def pushed(*tangents):
        return torch.func.jvp(gradients, inputs, tangents)[1]

    def pulled(*cotangents):
        return torch.func.vjp(gradients, *inputs)[1](cotangents)

    batch = torch.func.vmap(pushed)(*directions)
    for k in range(3):
        direction = [d[k] for d in directions]
        for forward, backward, of_batch in zip(pushed(*direction), pulled(*direction), batch, strict=True):
            np.testing.assert_allclose(forward.numpy(), backward.numpy(), rtol=1e-9, atol=1e-10)  # the Hessian is symmetric
            np.testing.assert_allclose(of_batch[k].numpy(), forward.numpy(), rtol=1e-9, atol=1e-10)


def test_the_bias_of_a_group_norm_has_a_gradient_without_a_graph():
    """It is a sum of the result's gradient alone, so under create_graph it requires grad only if that does."""
    x, weight, bias = leaf(2, 4, 3, seed=0), leaf(4, seed=1), leaf(4, seed=2)
    made = F.group_norm(x, 2, weight, bias)
    seed = leaf(2, 4, 3, seed=3).detach()
    found = torch.autograd.grad(made, (x, weight, bias), seed, create_graph=True)
    assert [g.requires_grad for g in found] == [True, True, False]


def test_node_names():
    x = leaf(2, 4, 3, seed=0)
    nodes = [f.grad_fn.name() for f in (F.layer_norm(x, (3,)), F.batch_norm(x, None, None, training=True), F.rms_norm(x, (3,)))]
    assert nodes == ["NativeLayerNormBackward0", "NativeBatchNormBackward0", "FusedRmsNormBackward0"]
