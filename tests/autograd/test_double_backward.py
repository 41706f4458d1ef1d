"""Second derivatives through networks that write in place. Those of single operators are checked elsewhere."""

import pytest
from library import close, leaf, torch

functional = torch.nn.functional


def test_the_second_derivative_through_a_normalisation_and_an_in_place_rectifier():
    network = torch.nn.Sequential(torch.nn.InstanceNorm2d(2), torch.nn.ReLU(inplace=True))
    x = leaf([[[[1.0, 2.0], [3.0, 5.0]], [[0.0, 1.0], [-1.0, 4.0]]]])
    before = x.detach().clone()
    ones = torch.ones(1, 2, 2, 2, dtype=torch.float64)
    (first,) = torch.autograd.grad(network(x).pow(2), x, ones, create_graph=True)
    (second,) = torch.autograd.grad((first * first).sum(), x)
    assert close(x, before)
    assert close(first.flatten()[:4], [0.3657, -0.1698, -0.4767, 0.2808], tolerance=1e-3)
    assert close(second.flatten()[4:], [0.0825, 0.2624, -0.0975, -0.2474], tolerance=1e-3)


def test_a_normalisation_of_equal_values_has_a_second_derivative():
    network = torch.nn.Sequential(torch.nn.InstanceNorm2d(2), torch.nn.ReLU(inplace=True))
    x = leaf([[[[1.0, 1.0]], [[1.0, 1.0]]]])
    (first,) = torch.autograd.grad(network(x).pow(2), x, torch.ones_like(x), create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert close(second, torch.zeros_like(x))


def penalty(x):
    """The sum of the gradients of a network with a threshold that writes into a view."""
    shifted = (x + 1).view_as(x)
    kept = functional.threshold(shifted, 0.0, 0.0, True)
    assert kept is shifted
    out = torch.sigmoid(kept)
    (g,) = torch.autograd.grad(out, x, torch.ones_like(out), create_graph=True)
    return g.sum()


def test_the_gradient_of_a_gradient_penalty_through_an_in_place_threshold():
    x = leaf([[-2.0, 0.5]])
    value = penalty(x)
    assert value.item() == pytest.approx(0.149146, rel=1e-5)
    value.backward()
    assert close(x.grad, [[0.0, -0.0947298]], tolerance=1e-5)


@pytest.mark.parametrize(
    "write",
    [
        lambda view: functional.relu_(view),
        lambda view: functional.threshold(view, 0.1, 0.0, True),
        lambda view: view.mul_(view.clone()),
    ],
    ids=["relu_", "threshold", "product"],
)
def test_both_derivatives_of_a_write_to_a_view(write):
    def function(x):
        y = x.sin()
        write(y[1:])
        return y * y

    x = leaf([0.3, -0.8, 1.2])
    assert torch.autograd.gradcheck(function, (x,))
    assert torch.autograd.gradgradcheck(function, (x,))
