"""What people ask of graph viewers, cost counters and summaries, and were refused or told wrongly elsewhere."""

import time

import pytest

import pellucid
from pellucid import graph, nn

F = nn.functional


def doublings(count):
    """A tensor doubled so many times, and the leaf it was made from: 2**count paths lead from one to the other."""
    x = pellucid.ones(1, requires_grad=True)
    a = x
    for _ in range(count):
        a = a + a
    return a, x


LOOKS = {
    "text": lambda a: str(graph.of(a)),
    "text with values": lambda a: str(graph.of(a, values=True)),
    "json": lambda a: graph.of(a).json(),
    "svg": lambda a: graph.of(a).svg(),
    "memory": lambda a: graph.memory(a).saved,
    "live": lambda a: len(graph.live()),
    "why": lambda a: str(graph.why(a)),
}


@pytest.mark.parametrize("look", LOOKS)
def test_a_look_at_sixty_doublings_takes_no_time(look):
    a, x = doublings(60)
    begin = time.process_time()
    LOOKS[look](a)
    assert time.process_time() - begin < 60  # path by path it would be centuries
    a.backward()
    assert x.grad.item() == 2.0**60


def test_the_cost_of_sixty_doublings_is_sixty_additions():
    class Doublings(nn.Module):
        def forward(self, x):
            for _ in range(60):
                x = x + x
            return x

    assert graph.cost(Doublings(), pellucid.ones(1, requires_grad=True)).forward.flops == 60


def test_a_linear_layer_costs_48_flops_that_are_24_macs():
    layer, x = nn.Linear(4, 3), pellucid.ones(2, 4)
    found = graph.cost(layer, x)
    assert (found.forward.flops, found.forward.macs) == (48, 24)
    assert found.total.flops == 96
    assert graph.cost(layer, pellucid.ones(2, 4, requires_grad=True)).total.flops == 144
    with pellucid.inference_mode():
        assert graph.cost(layer, x).forward.flops == 48


def test_elementwise_operations_are_counted():
    found = graph.cost(nn.Tanh(), pellucid.ones(10))
    assert found.forward.flops > 0
    assert found.uncounted_text == "none"


def test_a_submodule_called_by_its_forward_counts():
    class Direct(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner, self.outer = nn.Linear(2, 4), nn.Linear(4, 1)

        def forward(self, x):
            return self.outer(self.inner.forward(x))

    table = graph.summary(Direct(), pellucid.ones(1, 2))
    assert "parameters: 17, of which 17 are trainable" in str(table)
    assert "68 B" in graph.cost(Direct(), pellucid.ones(1, 2)).text()


def test_a_layer_called_twice_has_its_parameters_once():
    class Twice(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(4, 4)

        def forward(self, x):
            return self.layer(self.layer(x))

    assert "parameters: 20, of which 20 are trainable" in str(graph.summary(Twice(), pellucid.ones(1, 4)))


def test_a_leaf_that_nobody_has_named_is_drawn():
    y = (pellucid.ones(2, requires_grad=True) * 3).sum()
    g = graph.of(y)
    assert [node.kind for node in g.nodes].count("leaf") == 1
    assert g.svg().startswith("<svg")


def test_a_long_chain_of_views_is_drawn():
    x = pellucid.ones(4, requires_grad=True)
    v = x * 1
    for _ in range(3000):
        v = v.view(4)
    g = graph.of(v)
    assert len(g.operations) == 3001
    assert str(g)


def test_a_model_that_fails_midway_shows_what_ran():
    model = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(5, 1))
    with pytest.raises(RuntimeError, match="cannot be multiplied") as caught:
        graph.of(model, pellucid.ones(2, 3))
    shown = str(caught.value.graph)
    assert "model.0" in shown
    assert "linear" in shown
    assert caught.value.graph.failure.module == "model.2"


def test_a_write_by_data_that_no_backward_sees_is_seen_in_a_recorded_graph():
    x = pellucid.tensor([1.0, 2.0], requires_grad=True)
    with graph.record() as g:
        y = x * x
        x.data.add_(1)
    (cut,) = g.cuts
    assert cut.reason == "data"
    assert g.nodes[cut.target].operator == "add"
    assert g.nodes[cut.target].inplace
    y.sum().backward()
    assert x.grad.tolist() == [4, 6]


def test_a_loss_of_a_row_and_a_column_warns_with_shapes_and_the_way_out():
    predicted, wanted = pellucid.tensor([0.0, 2.0]), pellucid.tensor([[0.0], [2.0]])
    with pytest.warns(UserWarning, match="different to the input size") as caught:
        loss = F.mse_loss(predicted, wanted)
    assert loss.item() == 2.0
    text = str(caught[0].message)
    assert "predicted of shape (2,) and wanted of shape (2, 1) broadcast to (2, 2)" in text
    assert "wanted.squeeze(1)" in text
