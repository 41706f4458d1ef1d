"""`graph.cost`: FLOPs and MACs against counts by hand and against PyTorch's counter, in every mode, with nothing left out."""

import pytest

import pellucid
from pellucid import graph, nn
from pellucid.autograd.declaration import OPERATORS
from pellucid.autograd.samples import Make
from pellucid.graph import cost_rules
from pellucid.graph.cost_rules import RULES, Call, cost_of, rule_of
from pellucid.nn import functional as F
from pellucid.utils.checkpoint import checkpoint


def leaf(*shape):
    return pellucid.ones(*shape, requires_grad=True)


def flops(found):
    return found.forward.flops, found.backward.flops


# --- by hand ----------------------------------------------------------------------------------------------------------


def test_a_linear_layer():
    layer, x = nn.Linear(4, 3), pellucid.ones(2, 4)
    found = graph.cost(layer, x)
    assert (found.forward.flops, found.forward.macs) == (48, 24)  # 2 * 4 * 3 multiply-adds
    assert (found.total.flops, found.total.macs) == (96, 48)  # and as many for the weight's gradient
    found = graph.cost(layer, leaf(2, 4))
    assert (found.total.flops, found.total.macs) == (144, 72)  # and for the input's
    assert found.uncounted_text == "none"


def test_a_network_of_two_layers():
    net, x = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3)), pellucid.ones(5, 4)
    found = graph.cost(lambda x: net(x).sum(), x)
    # products 2*5*4*16 and 2*5*16*3, tanh 5*16, sum 15
    assert found.forward.flops == 640 + 480 + 80 + 15
    # second weight and its input, 1 - t*t times g, first weight
    assert found.backward.flops == 480 + 480 + 3 * 80 + 640


def test_a_convolution():
    found = graph.cost(nn.Conv2d(3, 8, 3, padding=1), leaf(2, 3, 6, 6))
    macs = 2 * 8 * 6 * 6 * 3 * 3 * 3  # results, times channels, times kernel
    assert (found.forward.macs, found.forward.flops) == (macs, 2 * macs)
    assert (found.backward.macs, found.backward.flops) == (2 * macs, 4 * macs)


def test_a_convolution_with_stride_and_groups():
    found = graph.cost(nn.Conv2d(8, 16, 3, stride=2, padding=1, groups=4), pellucid.ones(1, 8, 8, 8))
    macs = 16 * 4 * 4 * 2 * 3 * 3  # each result sees the 2 channels of its group
    assert (found.forward.macs, found.backward.macs) == (macs, macs)


def test_a_transposed_convolution():
    found = graph.cost(nn.ConvTranspose2d(4, 6, 3, stride=2), leaf(2, 4, 5, 5))
    macs = 2 * 4 * 5 * 5 * 6 * 3 * 3  # elements of the input, times channels made, times kernel
    assert (found.forward.macs, found.backward.macs) == (macs, 2 * macs)


def test_a_batch_of_matrix_products():
    found = graph.cost(lambda a, b: a @ b, leaf(3, 5, 8), leaf(3, 8, 5))
    assert (found.forward.macs, found.backward.macs) == (3 * 5 * 8 * 5, 2 * 3 * 5 * 8 * 5)


def test_a_recurrent_network_written_by_hand():
    w, u, b, xs = leaf(4, 5), leaf(5, 5), leaf(5), pellucid.ones(3, 2, 4)

    def run(xs):
        h = pellucid.zeros(2, 5)
        for x in xs.unbind():
            h = (x @ w + h @ u + b).tanh()
        return h.sum()

    found = graph.cost(run, xs)
    # a step: x W 80, h U 100, two sums of 10, tanh 10; then the sum of 10
    assert found.forward.flops == 3 * (80 + 100 + 20 + 10) + 10
    # a step: tanh 30, gradient of b 10, of W 80, of U 100, of h 100 (not for the first); the three gradients of
    # each weight are added: twice 20, 25 and 5
    assert found.backward.flops == 3 * (30 + 10 + 80 + 100) + 2 * 100 + 2 * (20 + 25 + 5)


def test_attention_in_functional_form():
    q, k, v = (pellucid.ones(1, 2, 4, 8) for _ in range(3))
    found = graph.cost(F.scaled_dot_product_attention, q, k, v)
    products = 2 * (2 * 4 * 4 * 8)  # q k and weights v, for two heads
    assert found.forward.macs == products
    # beside them: q scaled, softmax of 2 * 4 * 4 scores at 5 each
    assert found.forward.flops == 2 * products + 64 + 5 * 32
    assert found.uncounted_text == "none"


def test_layer_normalisation():
    found = graph.cost(nn.LayerNorm(8), leaf(4, 8))
    # mean and variance 4, normalising 2, weight 1, bias 1 for each of 32
    assert found.forward.flops == 8 * 32
    # input 10; weight: normalised value 2, product 1, sum 1; bias: sum 1
    assert found.backward.flops == (10 + 4 + 1) * 32


def test_a_classifier():
    layer, x, y = nn.Linear(6, 4), pellucid.ones(3, 6), pellucid.tensor([0, 1, 2])
    found = graph.cost(lambda x, y: F.cross_entropy(layer(x), y), x, y)
    # product 2*3*6*4, log-softmax 5 for each of 12, sign and sum for each of 3
    assert found.forward.flops == 144 + 60 + 6
    # 1 for each target, 4 for each of 12, the weight's product
    assert found.backward.flops == 3 + 48 + 144


def test_elementwise_arithmetic_counts():
    x, w, b = leaf(10), leaf(10), leaf(10)
    found = graph.cost(lambda: (x * w + b).sigmoid().sum())
    # product, sum, sigmoid (minus, exp, plus, division), sum
    assert flops(found) == (10 + 10 + 40 + 10, 30 + 10 + 10)
    assert (found.forward.macs, found.backward.macs) == (0, 0)


def test_an_embedding_and_its_mean():
    table = nn.Embedding(10, 4)
    found = graph.cost(lambda i: table(i).mean(), pellucid.tensor([[1, 2], [3, 4], [5, 6]]))
    assert flops(found) == (24 + 1, 1 + 24)  # sum and division; division, and each row added to its place


def test_a_residual_block_adds_the_gradients_that_meet():
    layer, x = nn.Linear(3, 3), leaf(2, 3)
    found = graph.cost(lambda x: (x + layer(x).relu()).sum(), x)
    assert flops(found) == (36 + 6 + 6 + 6, 6 + 36 + 36 + 6)


# --- PyTorch's counter (torch.utils.flop_counter, 2.13) ---------------------------------------------------------------


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(1, 6, 5, padding=2), nn.Conv2d(6, 16, 5)
        self.f1, self.f2, self.f3 = nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10)

    def forward(self, x):
        x = F.max_pool2d(self.c1(x).relu(), 2)
        x = F.max_pool2d(self.c2(x).relu(), 2).flatten(1)
        return self.f3(self.f2(self.f1(x).relu()).relu())


class Up(nn.Module):
    def __init__(self):
        super().__init__()
        self.t, self.c = nn.ConvTranspose2d(4, 6, 3, stride=2, output_padding=1), nn.Conv1d(6, 2, 3)

    def forward(self, x):
        return self.c(self.t(x).flatten(2))


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.q, self.k = nn.Linear(8, 8), nn.Linear(8, 8)

    def forward(self, x):
        q, k = self.q(x), self.k(x)
        return (q @ k.transpose(1, 2)).softmax(-1) @ x


@pytest.mark.parametrize(
    ("model", "shape", "needs_grad", "forward", "total"),
    [
        (lambda: nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3)), (5, 4), False, 1_120, 2_720),
        (lambda: nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3)), (5, 4), True, 1_120, 3_360),
        (LeNet, (2, 1, 28, 28), False, 1_666_080, 4_527_840),
        (LeNet, (2, 1, 28, 28), True, 1_666_080, 4_998_240),
        (Up, (2, 4, 5, 5), False, 42_048, 104_544),
        (Up, (2, 4, 5, 5), True, 42_048, 126_144),
        (Attention, (3, 5, 8), False, 6_240, 13_680),
        (Attention, (3, 5, 8), True, 6_240, 18_720),
    ],
)
def test_products_and_convolutions_agree_with_pytorchs_counter(model, shape, needs_grad, forward, total):
    """It counts products and convolutions only: those are our MACs, two FLOPs each."""
    net, x = model(), pellucid.ones(*shape, requires_grad=needs_grad)
    found = graph.cost(lambda x: net(x).sum(), x)
    assert (2 * found.forward.macs, 2 * found.total.macs) == (forward, total)
    assert found.forward.flops > forward


def test_where_pytorchs_counter_stops():
    """For this layer it says 57,344: the two products of the attention itself are not among the operators it knows."""
    layer, x = nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0, batch_first=True), pellucid.ones(2, 7, 16)
    found = graph.cost(layer, x)
    assert 2 * found.forward.macs == 57_344 + 2 * 2 * (2 * 2 * 7 * 7 * 8)
    # for four groups it takes the weight's gradient of all channels, four times too much: 601,600 in all
    grouped = nn.Conv2d(16, 16, 3, padding=1, groups=4)
    macs = 2 * 16 * 5 * 5 * 4 * 3 * 3
    assert graph.cost(grouped, pellucid.ones(2, 16, 5, 5)).total.macs == 2 * macs


# --- the same numbers in every mode -----------------------------------------------------------------------------------


def block():
    return nn.Sequential(nn.Linear(4, 4), nn.Tanh(), nn.Linear(4, 4))


def test_modes_change_nothing():
    net, x = block(), pellucid.ones(2, 4)
    plain = graph.cost(net, x)
    with pellucid.no_grad():
        without = graph.cost(net, x)
    with pellucid.inference_mode():
        inference = graph.cost(net, pellucid.ones(2, 4))
    assert plain.total.flops == without.total.flops == inference.total.flops
    assert plain.forward == without.forward == inference.forward
    assert plain.backward == without.backward == inference.backward


@pytest.mark.parametrize("reentrant", [False, True])
def test_checkpointing_changes_nothing_and_is_counted_apart(reentrant):
    net, x = block(), leaf(2, 4)
    plain = graph.cost(lambda x: net(x), x)
    again = graph.cost(lambda x: checkpoint(net, x, use_reentrant=reentrant), x)
    assert (again.forward, again.backward) == (plain.forward, plain.backward)
    assert plain.recomputed.flops == 0
    # the form that is not reentrant stops at the last value it needs: before the last product
    assert again.recomputed.flops == (136 if reentrant else 72)
    assert [(m.path, m.calls, m.forward, m.backward) for m in again.modules] == [
        (m.path, m.calls, m.forward, m.backward) for m in plain.modules
    ]


def test_functional_code_costs_what_modules_cost():
    layer, x = nn.Linear(4, 3), pellucid.ones(2, 4)
    assert graph.cost(lambda x: F.linear(x, layer.weight, layer.bias), x).total == graph.cost(layer, x).total


def test_an_in_place_operation_and_one_with_out_are_counted():
    x = pellucid.ones(10)
    assert graph.cost(lambda: x.clone().mul_(2)).forward.flops == 10
    assert graph.cost(lambda: pellucid.exp(x, out=pellucid.empty(10))).forward.flops == 10


def test_the_derivative_of_a_custom_function_is_counted_as_it_is_written():
    class Cube(pellucid.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 3 * x * x * grad

    assert flops(graph.cost(lambda x: Cube.apply(x), leaf(10))) == (20, 30)


# --- nothing is left out, nothing is changed --------------------------------------------------------------------------


def test_every_operator_has_a_rule():
    missing = sorted(name for name, op in OPERATORS.items() if rule_of(op) is None)
    assert not missing, f"add rules to graph/cost_rules.py for: {', '.join(missing)}"


def test_no_rule_is_left_of_an_operator_that_is_gone():
    assert not sorted(set(RULES) - set(OPERATORS))


def samples():
    for name, op in sorted(OPERATORS.items()):
        if op.samples and rule_of(op) is not None:
            found = list(op.samples(Make(0, "float64"))) if callable(op.samples) else list(op.samples)
            for index, (args, kwargs) in enumerate(found):
                yield pytest.param(op, args, kwargs, id=f"{name}-{index}")


@pytest.mark.parametrize(("op", "args", "kwargs"), list(samples()))
def test_every_rule_gives_whole_numbers_for_every_sample(op, args, kwargs):
    counts = []

    def observer(op, bound, raw, made):
        counts.append(cost_of(op, Call(op, raw, [t._array for t in made])))

    from pellucid.core.modes import modes

    given = [to_tensor(a) for a in args]
    modes.observers = (*modes.observers, observer)
    modes.update()
    try:
        op.public(*given, **{name: to_tensor(a) for name, a in kwargs.items()})
    finally:
        modes.observers = modes.observers[:-1]
        modes.update()
    assert counts
    for macs, count in counts:
        assert isinstance(macs, int)
        assert isinstance(count, int)
        assert count >= 2 * macs >= 0


def to_tensor(value):
    import numpy as np

    if isinstance(value, np.ndarray):
        return pellucid.from_numpy(value.copy())
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(to_tensor(v) for v in value)
    return value


def test_what_has_no_rule_is_named(monkeypatch):
    monkeypatch.delitem(cost_rules.RULES, "exp")
    x = leaf(3)
    found = graph.cost(lambda: x.exp().exp().sum())
    assert found.uncounted == {("exp", "forward"): 2}
    assert found.uncounted_text == "exp (forward, 2 x)"
    assert "uncounted: exp (forward, 2 x)" in str(found)


def test_the_model_is_left_as_it_was():
    net = nn.Sequential(nn.Linear(4, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    net[0].weight.grad = pellucid.ones(4, 4)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    pellucid.manual_seed(3)
    expected = pellucid.rand(3)
    pellucid.manual_seed(3)
    graph.cost(net, pellucid.randn(8, 4, generator=pellucid.Generator().manual_seed(0)))
    assert (pellucid.rand(3) == expected).all()
    assert all((before[name] == value).all() for name, value in net.state_dict().items())
    assert net[0].bias.grad is None
    assert (net[0].weight.grad == 1).all()


# --- the report -------------------------------------------------------------------------------------------------------


class Shared(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 4)
        self.tied = nn.Linear(4, 4)
        self.tied.weight = self.layer.weight

    def forward(self, x):
        return self.tied(self.layer(self.layer(x)))


def test_parameters_are_counted_once_and_calls_apart():
    net, x = Shared(), pellucid.ones(2, 4)
    found = graph.cost(net, x)
    assert found.parameters == 16 + 4 + 4
    layer = found.module("net.layer")
    assert (layer.calls, layer.parameters, layer.forward.flops) == (2, 20, 128)
    assert found.module("net").parameters == 24
    assert found.module("net").forward.flops == found.forward.flops == 192


def test_an_unknown_module_is_refused():
    net = Shared()
    with pytest.raises(KeyError, match=r"no module 'nope' was called; known are net, net\.layer, net\.tied"):
        graph.cost(net, pellucid.ones(2, 4)).module("nope")


def test_the_report_names_both_units_and_the_rules():
    net, x = block(), pellucid.ones(2, 4)
    text = str(graph.cost(net, x))
    for phrase in (
        "cost of net", "FLOPs", "MACs", "bytes moved", "forward and backward", "net.0", "uncounted: none",
        "parameters: 40 (160 B), each counted once", "1 per element: one evaluation of the function",
        "a bias is where the sums start",
    ):  # fmt: skip
        assert phrase in text
    assert "<table>" in graph.cost(net, x)._repr_html_()
    assert "cost of &lt;lambda&gt;" in graph.cost(lambda: x * 2)._repr_html_()
    assert repr(graph.cost(net, x)).startswith("<cost of net: forward 136 FLOPs (64 MACs), backward ")


def test_one_line_for_each_operation():
    net, x = block(), pellucid.ones(2, 4)
    table = graph.cost(net, x).node_table().splitlines()
    assert [line.split()[0] for line in table[2:]] == ["linear", "tanh", "linear"]
    assert "net.1" in table[3]


def test_bytes_moved_are_operands_and_results():
    x = pellucid.ones(10)
    found = graph.cost(lambda: (x * x).view(2, 5), backward=False)
    assert found.forward.bytes == 3 * 40  # two operands and a result; the view moves nothing
    assert found.backward.flops == 0


def test_a_program_that_fails_hands_over_the_part_that_ran():
    net = nn.Sequential(nn.Linear(4, 3), nn.Linear(5, 2))
    with pytest.raises(RuntimeError, match="cannot be multiplied") as caught:
        graph.cost(net, pellucid.ones(2, 4))
    assert len(caught.value.graph.operations) == 2


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_recurrent_layer_costs_what_its_composition_does(kind, monkeypatch):
    net, x = kind(3, 5), pellucid.randn(7, 2, 3)
    one = graph.cost(net, x)
    monkeypatch.setattr("pellucid.functions.recurrent._is_plain", lambda *_: False)
    composed = graph.cost(net, x)
    assert one.forward.flops == composed.forward.flops
    assert one.forward.macs == 7 * 2 * (3 + 5) * 5 * {nn.LSTM: 4, nn.GRU: 3, nn.RNN: 1}[kind]
    assert one.backward.macs == composed.backward.macs
    assert not one.uncounted
    assert one.recomputed.flops == 0
