"""The chain rule on the graph: paths, products along them, their sum. The sum must be what backward computes."""

import pytest

import pellucid
from pellucid import graph, nn


def scalar(value):
    return pellucid.tensor([value], requires_grad=True)


def test_the_paths_of_the_textbook_graph():
    x, w = scalar(2.0), scalar(1.0)
    u = x + w
    v = w + 1
    y = u * v
    found = graph.chain(y, w)
    assert str(found) == (
        "∂y/∂w = 5, the sum over 2 paths:\n"
        "  ∂y/∂u * ∂u/∂w = 2 * 1 = 2\n"
        "  ∂y/∂v * ∂v/∂w = 3 * 1 = 3"
    )  # fmt: skip
    assert [(path.names, path.factors, path.product) for path in found.paths] == [
        (["y", "u", "w"], [2.0, 1.0], 2.0),
        (["y", "v", "w"], [3.0, 1.0], 3.0),
    ]
    assert (found.count, found.total) == (2, 5.0)
    assert str(graph.chain(y, x)) == "∂y/∂x = 2, the sum over 1 path:\n  ∂y/∂u * ∂u/∂x = 2 * 1 = 2"


def test_the_sum_is_what_backward_computes():
    pellucid.manual_seed(0)
    net, x = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)), pellucid.randn(2, 3)
    loss = (net(x) ** 2).mean()
    weight = net[0].weight
    found = graph.chain(loss, weight)
    loss.backward()
    assert found.total[0] == pytest.approx(weight.grad.flatten().tolist(), rel=1e-5)
    assert sum(path.product[0][0] for path in found.paths) == pytest.approx(found.total[0][0])


def test_intermediate_results_and_several_outputs():
    x = pellucid.tensor([1.0, 2.0], requires_grad=True)
    first, second = x.unbind()
    h = first * second
    z = h * h + first
    assert graph.chain(z, h).total == 4.0
    found = graph.chain(z, x)
    z.backward()
    assert found.total == [x.grad.tolist()]
    assert found.count == 5  # two ways to h, from h two ways to x, and one past h


def test_matrices_are_multiplied_in_the_order_of_the_formula():
    w = pellucid.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    x = pellucid.tensor([1.0, 1.0], requires_grad=True)
    y = w @ x
    z = y * y
    found = graph.chain(z, x)
    assert found.total == [[6.0, 12.0], [42.0, 56.0]]  # 2 diag(y) W with y = (3, 7)
    assert "[[3, 0], [0, 7]] * [[1, 2], [3, 4]] = [[3, 6], [21, 28]]" in str(found)


def test_ever_so_many_paths_are_counted_and_not_walked():
    x = scalar(1.0)
    a = x
    for _ in range(60):
        a = a + a
    found = graph.chain(a, x, most=3)
    assert (found.count, found.total, len(found.paths)) == (2**60, 2.0**60, 3)
    assert str(found).endswith("  ... and 1,152,921,504,606,846,973 more")
    assert "... (55 more) ..." in str(found)


def test_no_path():
    x, w = scalar(2.0), scalar(1.0)
    with graph.record(values=True) as g:
        y = x * 2
        z = w * y.detach()
    found = g.chain("z", "x")
    assert (found.count, found.total, found.paths) == (0, 0.0, [])
    assert str(found) == "∂z/∂x: no path leads from x to z"
    assert z.requires_grad


def test_a_value_with_respect_to_itself():
    x = scalar(2.0)
    found = graph.chain(x, x)
    assert (found.count, found.total) == (1, 1.0)


def test_without_numbers_there_are_still_paths():
    x = pellucid.ones(200, requires_grad=True)
    y = (x.exp() * x).sum()
    found = graph.chain(y, x)
    assert (found.count, found.total) == (2, None)
    assert "not all local derivatives are known" in str(found)
    assert found.paths[0].product is None


def test_names_and_numbers_stand_for_nodes_of_a_graph():
    x, w = scalar(2.0), scalar(3.0)
    y = x * w
    g = graph.of(y, values=True)
    assert g.chain("y", "x").total == g.chain(2, 0).total == g.chain(y, x).total == 3.0


@pytest.mark.parametrize(
    ("what", "error", "text"),
    [
        ("nope", ValueError, "nothing in the graph is called 'nope'; known names are x, y"),
        (7, ValueError, "there is no node 7: the graph has nodes 0 to 1"),
        (1.5, TypeError, "expected a name, a tensor or a node's number, got float"),
    ],
)
def test_what_is_not_in_the_graph_is_refused(what, error, text):
    x = scalar(2.0)
    y = x * 2
    with pytest.raises(error, match=text):
        graph.of(y).chain("y", what)


def test_a_tensor_that_is_not_in_the_graph_is_refused():
    x, other = scalar(2.0), pellucid.ones(3, requires_grad=True)
    with pytest.raises(ValueError, match=r"the tensor of shape \[3\] is not in this graph"):
        graph.chain(x * 2, other)
