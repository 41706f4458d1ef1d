"""Clipping gradients, and parameters as one vector."""

import math

import pytest

import pellucid
from pellucid import nn
from pellucid.nn import utils


def parameters(*grads):
    """Parameters with these gradients."""
    made = []
    for grad in grads:
        parameter = nn.Parameter(pellucid.zeros(len(grad)))
        parameter.grad = pellucid.tensor(grad)
        made.append(parameter)
    return [*made, nn.Parameter(pellucid.zeros(1))]


@pytest.mark.parametrize(
    ("norm_type", "norm"), [(2.0, 5.0), (1, 7.0), (math.inf, 4.0), ("inf", 4.0), (3.0, 91 ** (1 / 3)), (0, 2.0)]
)
def test_norm_over_all_gradients(norm_type, norm):
    group = parameters([3.0], [-4.0, 0.0])
    total = utils.clip_grad_norm_(group, 1.0, norm_type)
    assert total.item() == pytest.approx(norm)
    assert total.shape == ()
    factor = 1 / (norm + 1e-6)
    assert group[0].grad.item() == pytest.approx(3 * factor)
    assert group[1].grad.tolist() == pytest.approx([-4 * factor, 0])


def test_small_gradients_stay():
    group = parameters([3.0], [-4.0])
    assert utils.clip_grad_norm_(iter(group), 10.0).item() == 5
    assert group[0].grad.item() == 3
    assert utils.clip_grad_norm_(group[0], 1.5).item() == 3
    assert group[0].grad.item() == pytest.approx(1.5, abs=1e-5)


def test_norm_without_gradients():
    assert utils.clip_grad_norm_(parameters(), 1.0).item() == 0
    with pytest.warns(UserWarning, match="`parameters` is an empty generator, no gradient clipping will occur"):
        utils.clip_grad_norm_((p for p in ()), 1.0)


def test_an_infinite_norm():
    group = parameters([math.inf, 1.0], [2.0])
    with pytest.raises(RuntimeError, match=r"The total norm of order 2.0 .* non-finite, .*\n.* number 0 of shape \(2,\)"):
        utils.clip_grad_norm_(group, 1.0, error_if_nonfinite=True)
    utils.clip_grad_norm_(group, 1.0)
    assert math.isnan(group[0].grad[0].item())
    assert group[1].grad.tolist() == [0]
    with pytest.raises(RuntimeError, match="the sum overflows"):
        utils.get_total_norm([pellucid.tensor([3e38, 3e38])], 1.0, error_if_nonfinite=True)


def test_pieces_and_the_old_name():
    group = parameters([3.0], [4.0])
    norm = utils.get_total_norm([p.grad for p in group[:2]])
    utils.clip_grads_with_norm_(group, 2.5, norm)
    assert group[0].grad.item() == pytest.approx(1.5, abs=1e-5)
    with pytest.warns(FutureWarning, match="`nn.utils.clip_grad_norm` is now deprecated"):
        utils.clip_grad_norm(group, 1.0)


@pytest.mark.parametrize("dtype", [pellucid.float16, pellucid.bfloat16, pellucid.float64])
def test_dtypes(dtype):
    parameter = nn.Parameter(pellucid.zeros(2, dtype=dtype))
    parameter.grad = pellucid.tensor([3.0, 4.0], dtype=dtype)
    assert utils.clip_grad_norm_(parameter, 1.0).dtype == dtype
    assert parameter.grad.dtype == dtype
    assert parameter.grad.float().tolist() == pytest.approx([0.6, 0.8], abs=0.01)


def test_clipping_values():
    group = parameters([3.0, -0.5], [-4.0])
    utils.clip_grad_value_(group, 1)
    assert group[0].grad.tolist() == [1, -0.5]
    assert group[1].grad.tolist() == [-1]


def test_parameters_as_a_vector():
    net = nn.Linear(2, 1)
    vector = utils.parameters_to_vector(net.parameters())
    assert vector.shape == (3,)
    values = pellucid.tensor([1.0, 2.0, 3.0])
    utils.vector_to_parameters(values, net.parameters())
    assert net.weight.tolist() == [[1, 2]]
    assert net.bias.tolist() == [3]
    assert net.weight.requires_grad
    with pytest.raises(TypeError, match="expected Tensor, but got: list"):
        utils.vector_to_parameters([1.0], net.parameters())
