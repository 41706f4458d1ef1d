"""`graph.summary`: the table of a model, right where such tables usually err."""

import pytest

import pellucid
from pellucid import graph, nn


class Awkward(nn.Module):
    """Shared layers, tied weights, a bare parameter, a layer called by its `forward`, an unused one, nested results."""

    def __init__(self):
        super().__init__()
        self.a = nn.Linear(4, 4)
        self.again = self.a
        self.scale = nn.Parameter(pellucid.ones(3))
        self.direct = nn.Linear(4, 2)
        self.unused = nn.Linear(100, 1)
        self.tied = nn.Linear(4, 4, bias=False)
        self.tied.weight = self.a.weight
        self.norm = nn.BatchNorm1d(4)

    def forward(self, x):
        y = self.norm(self.again(self.a(x)))
        z = self.direct.forward(y)
        return {"z": z, "all": [y, (x, z)]}


def rows(found):
    return {row.path: row for row in found.rows}


def test_every_parameter_is_counted_once_wherever_it_stands():
    model = Awkward()
    found = graph.summary(model, pellucid.ones(2, 4))
    assert found.parameters == found.trainable == 20 + 3 + 10 + 101 + 8
    assert {path: row.parameters for path, row in rows(found).items()} == {
        "": 3, "a": 20, "again": 0, "direct": 10, "unused": 101, "tied": 0, "norm": 8,
    }  # fmt: skip
    assert sum(row.parameters for row in found.rows) == found.parameters
    assert found.buffers == 9


def test_calls_are_counted_apart_from_parameters():
    model = Awkward()
    found = rows(graph.summary(model, pellucid.ones(2, 4)))
    assert (found["a"].calls, found["a"].flops) == (2, 2 * 64)
    assert (found["again"].shared, found["again"].calls) == ("a", 0)
    assert found["unused"].calls == found["direct"].calls == 0
    assert found[""].flops == 2 * 64 + 2 * 2 * 4 * 2 + found["norm"].flops


def test_results_of_all_forms_have_their_shapes():
    model = Awkward()
    found = rows(graph.summary(model, pellucid.ones(2, 4)))
    assert found[""].output == "{z: [2, 2], all: [[2, 4], ([2, 4], [2, 2])]}"
    assert found["a"].output == "[2, 4]"
    assert found["unused"].output == ""


def test_the_table():
    net = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Sequential(nn.Flatten(), nn.Linear(144, 5)))
    net[0].weight.requires_grad_(False)
    text = str(graph.summary(net, pellucid.ones(1, 1, 8, 8)))
    assert text == (
        "module  type        output        parameters  calls  FLOPs   MACs\n"
        "-----------------------------------------------------------------\n"
        "net     Sequential  [1, 5]                 -      1  4,176  2,016\n"
        "  0     Conv2d      [1, 4, 6, 6]          40      1  2,592  1,296\n"
        "  1     ReLU        [1, 4, 6, 6]           -      1    144      0\n"
        "  2     Sequential  [1, 5]                 -      1  1,440    720\n"
        "    0   Flatten     [1, 144]               -      1      0      0\n"
        "    1   Linear      [1, 5]               725      1  1,440    720\n"
        "\n"
        "parameters: 765, of which 729 are trainable and 36 are not\n"
        "forward: 4,176 FLOPs, 2,016 MACs\n"
        "uncounted: none\n"
        "memory: parameters 3.06 kB, inputs 256 B, results of all operations 1.17 kB\n"
    )


def test_without_inputs_there_are_parameters_only():
    net = nn.Sequential(nn.Linear(4, 3), nn.Tanh())
    found = graph.summary(net)
    assert found.cost is None
    assert str(found).splitlines()[0].split() == ["module", "type", "output", "parameters"]
    assert repr(found) == "<summary of net: 15 parameters, 3 modules>"


def test_inputs_are_made_of_their_sizes():
    net = nn.Sequential(nn.Embedding(5, 4), nn.Linear(4, 3))
    found = graph.summary(net, input_size=(2, 7), dtypes=[pellucid.int64])
    assert rows(found)[""].output == "[2, 7, 3]"
    add = nn.Bilinear(3, 4, 5)
    assert rows(graph.summary(add, input_size=[(2, 3), (2, 4)]))[""].output == "[2, 5]"


def test_modules_outside_of_the_tree_are_listed_too():
    class Hidden(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = [nn.Linear(4, 4)]  # a plain list: not registered

        def forward(self, x):
            return self.parts[0](x)

    model = Hidden()
    found = graph.summary(model, pellucid.ones(2, 4))
    assert found.parameters == 0
    assert rows(found)["Linear"].flops == 64


def test_depth_and_html():
    net = nn.Sequential(nn.Sequential(nn.Sequential(nn.Linear(2, 2))))
    found = graph.summary(net, pellucid.ones(1, 2))
    assert "Linear" in found.text()
    assert "Linear" not in found.text(depth=1)
    assert "<table>" in found._repr_html_()


def test_the_model_is_left_in_its_mode_and_as_it_was():
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4)).eval()
    mean = net[1].running_mean.clone()
    graph.summary(net.train(), pellucid.randn(8, 4))
    assert net.training
    assert (net[1].running_mean == mean).all()


def test_mistakes():
    net = nn.Linear(4, 3)
    with pytest.raises(TypeError, match="summary expects a module, got int"):
        graph.summary(3)
    with pytest.raises(TypeError, match="summary takes inputs or input_size, not both"):
        graph.summary(net, pellucid.ones(1, 4), input_size=(1, 4))
    with pytest.raises(RuntimeError, match="cannot be multiplied") as caught:
        graph.summary(net, pellucid.ones(2, 5))
    assert caught.value.graph.failure.operation == "linear"
