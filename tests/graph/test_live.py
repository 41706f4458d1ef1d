"""`graph.live` and the warning about graphs that grow with every iteration."""

import gc
import warnings
import weakref

import pytest

import pellucid
from pellucid import graph, nn
from pellucid.autograd import growth
from pellucid.nn import functional as F


def leaf(*shape):
    return pellucid.ones(*shape, requires_grad=True)


@pytest.fixture(autouse=True)
def _no_graphs_of_others():
    gc.collect()


def of_name(found, name):
    (entry,) = [entry for entry in found if name in entry.names]
    return entry


class Trainer:
    def __init__(self):
        self.state = leaf(10).exp()
        self.history = []


def test_graphs_are_listed_with_the_names_that_hold_them_and_their_lines():
    x = leaf(1000)
    y = x.exp() * 2
    trainer = Trainer()
    found = graph.live()
    entry = of_name(found, "y")
    assert (entry.nodes, entry.depth, entry.bytes, entry.shape, entry.operation) == (2, 2, 4000, (1000,), "MulBackward0")
    assert entry.site.source == "y = x.exp() * 2"
    assert of_name(found, "trainer.state").bytes == 40
    assert trainer.history == []
    assert y.requires_grad


def test_what_is_part_of_another_graph_is_not_listed_apart():
    x = leaf(3)
    h = x.exp()
    y = h * 2
    names = [name for entry in graph.live() for name in entry.names]
    assert "y" in names
    assert "h" not in names
    assert y.requires_grad


def test_each_piece_of_memory_is_counted_once_over_all_graphs():
    x = leaf(1000)
    h = x.exp()
    a, b = h * 2, h * 3
    assert sum(entry.bytes for entry in graph.live() if {"a", "b"} & set(entry.names)) == 4000
    assert a.requires_grad
    assert b.requires_grad


def test_a_list_of_losses_is_one_entry():
    w = leaf(3)
    losses = [(w * k).exp().sum() for k in range(20)]
    (entry,) = [entry for entry in graph.live() if entry.names[0].startswith("losses")]
    assert (entry.count, entry.nodes, entry.names[0], entry.names[-1]) == (20, 60, "losses[0]", "losses[19]")
    assert "losses[0] ... losses[19] (20)" in str(graph.live())
    assert len(losses) == 20


def test_what_no_name_was_found_for_is_described():
    nested = [[[leaf(3).exp()]]]
    entry = next(entry for entry in graph.live() if entry.names == ["an item of a list of 1"])
    assert entry.operation == "ExpBackward0"
    assert nested


def test_freed_graphs_are_told():
    x = leaf(3)
    y = x.exp().sum()
    y.backward()
    assert of_name(graph.live(), "y").freed == 1


def test_looking_keeps_nothing_alive():
    gc.disable()
    try:
        y = leaf(3).exp()
        graph.live()
        references = weakref.ref(y), weakref.ref(y.grad_fn), weakref.ref(y._array)
        del y
        assert [reference() for reference in references] == [None] * 3
    finally:
        gc.enable()


def test_the_report():
    y = leaf(1000).exp()
    found = graph.live()
    text = str(found)
    assert "graph" in repr(found)
    assert "kept for backward" in repr(found)
    for phrase in ("held by", "y ", "ExpBackward0 [1000]", "4 kB", "y = leaf(1000).exp()"):
        assert phrase in text
    assert "<table>" in found._repr_html_()
    assert len(found) == len(list(found))
    assert y.requires_grad


# --- growth -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def fresh(monkeypatch):
    """The history of looks, as at the start of a program; looks happen when the test asks for them."""
    gc.callbacks.remove(growth._collected)
    for name, value in {"freed": 0, "times": 0, "search": 0, "reported": set()}.items():
        monkeypatch.setattr(growth._History, name, value)
    growth.look()
    yield
    gc.callbacks.append(growth._collected)


def train(iterations, add, looks=5):
    """Train a little, look now and then; what `add` returns of the sum and the loss is the new sum."""
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    x, y, total = pellucid.ones(8, 4), pellucid.zeros(8, 1), 0
    for number in range(iterations):
        loss = F.mse_loss(net(x), y)
        loss.backward()
        total = add(total, loss)
        if number % (iterations // looks) == 0:
            growth.look()
    return total


def test_a_sum_of_losses_that_grows_is_reported_once_with_its_line(fresh):
    with pytest.warns(graph.GraphGrowthWarning) as caught:
        train(1000, lambda total, loss: total + loss)
    (warning,) = caught
    text = str(warning.message)
    for phrase in (
        "the graph of `total`, made at ", "grows with every iteration", "train(1000, lambda total, loss: total + loss)",
        "operations have been differentiated already", "loss.item() or loss.detach()", "pellucid.graph.live()",
    ):  # fmt: skip
        assert phrase in text
    assert warning.filename == __file__


def test_a_sum_of_numbers_is_not_reported(fresh):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(1000, lambda total, loss: total + loss.item())
        train(1000, lambda total, loss: total + loss.detach())


def test_a_list_of_losses_is_not_deep_and_not_reported(fresh):
    losses = []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        train(1000, lambda total, loss: losses.append(loss))


def test_one_long_graph_is_not_reported(fresh):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        h = leaf(1)
        for number in range(5000):
            h = (h * 0.999).tanh()
            if number % 500 == 0:
                growth.look()


def test_the_collector_calls_when_enough_was_made_and_time_has_passed(monkeypatch):
    looks = []
    monkeypatch.setattr(growth, "look", lambda: looks.append(1))
    monkeypatch.setattr(growth._History, "next_time", 0.0)
    monkeypatch.setattr(growth._History, "next_node", 0)
    gc.collect()
    assert looks == [1]
    gc.collect()
    assert looks == [1]  # not so soon again


def test_the_size_of_a_graph():
    x = leaf(1)
    a = x.exp()
    b = a * 2
    c = a + b
    c.backward(retain_graph=True)
    d = c * 3
    assert growth.measure([d, b]) == [growth.Size(4, 4, 0), growth.Size(2, 0, 0)]
    c.backward()
    assert growth.measure([d]) == [growth.Size(4, 4, 2)]  # sums save nothing
