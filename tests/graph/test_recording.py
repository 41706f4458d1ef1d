"""`graph.record` and `graph.of(model, inputs)`: constants, cuts, modules, gradients, and models that fail half way."""

import gc
import threading
import weakref

import pytest

import pellucid
from pellucid import graph, nn
from pellucid.core.modes import RECORD, modes
from pellucid.graph.recording import Recorder
from pellucid.nn import functional as F


def leaf(*shape):
    return pellucid.ones(*shape, requires_grad=True)


def kinds(g):
    return [(node.kind, node.label) for node in g.nodes]


def edges(g):
    """Each edge by the labels of its ends."""
    return [(g.nodes[e.source].label, g.nodes[e.target].label, e.kind, e.reason) for e in g.edges]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 3)
        self.second = nn.Linear(3, 2)

    def forward(self, x):
        hidden = self.first(x).relu()
        return self.second(hidden)


# --- operations without a gradient, constants, cuts -------------------------------------------------------------------


def test_constants_and_inputs_without_a_gradient_are_there():
    w, data, target = leaf(3, 2), pellucid.ones(4, 3), pellucid.zeros(4, 2)
    with graph.record() as g:
        scaled = data * 2
        loss = F.mse_loss(scaled @ w, target)
    assert loss.requires_grad
    assert kinds(g) == [
        ("input", "data"), ("operation", "scaled"), ("leaf", "w"), ("operation", "MmBackward0"), ("input", "target"),
        ("operation", "loss"),
    ]  # fmt: skip
    assert ("data", "scaled", "constant", "") in edges(g)
    assert ("scaled", "MmBackward0", "constant", "") in edges(g)
    assert g.nodes[1].name == "mul"
    assert g.nodes[1].attributes == {"other": "2"}


def cut_by_detach(x):
    return (x * 2).detach() + 1


def cut_by_data(x):
    return (x * 2).data + 1


def cut_by_no_grad(x):
    with pellucid.no_grad():
        return x * 2


def cut_by_inference_mode(x):
    with pellucid.inference_mode():
        return x * 2


def cut_by_argmax(x):
    return (x * 2).argmax()


def cut_by_cast(x):
    return (x * 2).long()


@pytest.mark.parametrize(
    ("function", "reason", "source"),
    [
        (cut_by_detach, "detach", "return (x * 2).detach() + 1"),
        (cut_by_data, "data", "return (x * 2).data + 1"),
        (cut_by_no_grad, "no_grad", "return x * 2"),
        (cut_by_inference_mode, "inference_mode", "return x * 2"),
        (cut_by_argmax, "argmax", "return (x * 2).argmax()"),
        (cut_by_cast, "_to_copy", "return (x * 2).long()"),
    ],
)
def test_cuts_are_broken_edges_with_the_reason_and_the_line(function, reason, source):
    x = leaf(3)
    with graph.record() as g:
        function(x)
    assert [(cut.reason, cut.site.source) for cut in g.cuts] == [(reason, source)]
    assert g.nodes[g.cuts[0].source].outputs[0].requires_grad


def test_a_path_is_cut_once_and_what_follows_is_constant():
    x = leaf(3)
    with graph.record() as g:
        weight = (x * 2).detach().abs()
        y = weight.exp() * x
    assert y.requires_grad
    assert edges(g) == [
        ("x", "MulBackward0", "gradient", ""),
        ("MulBackward0", "weight", "cut", "detach"),
        ("weight", "exp", "constant", ""),
        ("exp", "y", "constant", ""),
        ("x", "y", "gradient", ""),
    ]


def test_an_operand_that_has_no_derivative_is_cut_off_by_its_operator():
    x, scores = leaf(3), leaf(3, 3)
    with graph.record() as g:
        F.embedding(scores.argmax(0), scores)
    assert [cut.reason for cut in g.cuts] == ["argmax"]
    assert x.grad is None


def test_what_was_computed_before_the_block_is_brought_in_with_its_history():
    x = leaf(3)
    before = x.exp()
    with graph.record() as g:
        before.sum()
    assert [node.name for node in g.nodes] == ["leaf", "ExpBackward0", "SumBackward0"]
    assert g.nodes[1].label == "before"


def test_in_place_operations_are_marked():
    x = leaf(3)
    with graph.record() as g:
        y = x * 2
        y.add_(1)
        y[0].mul_(5)
        out = pellucid.empty(3)
        pellucid.exp(pellucid.ones(3), out=out)
    assert [(n.name, n.inplace) for n in g.operations] == [
        ("MulBackward0", False),
        ("AddBackward0", True),
        ("SelectBackward0", False),
        ("CopySlices", True),
        ("SelectBackward0", False),
        ("exp", False),
    ]
    assert [(e.source, e.target) for e in g.edges if g.nodes[e.target].inplace] == [(1, 2), (2, 4)]


def test_results_in_several_parts_are_told_apart():
    x = leaf(4)
    with graph.record() as g:
        values, indices = x.max(0)
        values * 2 + indices
    maximum = g.operations[0]
    assert [(o.name, o.requires_grad, o.dtype) for o in maximum.outputs] == [
        ("values", True, "float32"),
        ("indices", False, "int64"),
    ]
    assert {(e.output, e.kind) for e in g.edges if e.source == maximum.id} == {(0, "gradient"), (1, "constant")}


def test_local_variables_of_functions_that_have_ended_name_what_they_held():
    net, x = Net(), pellucid.ones(2, 4)
    g = graph.of(net, x)
    assert [node.label for node in g.operations] == ["AddmmBackward0", "hidden", "AddmmBackward0"]


# --- custom functions -------------------------------------------------------------------------------------------------


class Double(pellucid.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


class Doubling(nn.Module):
    def forward(self, x):
        return Double.apply(x)


def test_a_custom_function_is_one_node_and_what_ran_in_it_is_marked():
    model, x = Doubling(), leaf(3)
    g = graph.of(model, x)
    assert [(n.name, n.inside, g.module_of(n)) for n in g.operations] == [
        ("mul", "Double", "model"),
        ("DoubleBackward", "", "model"),
    ]
    assert "mul" not in g.text()
    assert "DoubleBackward" in g.text(expand=1)


# --- modules ----------------------------------------------------------------------------------------------------------


def test_every_operation_knows_the_module_that_made_it():
    net, x = Net(), pellucid.ones(2, 4)
    g = graph.of(net, x)
    assert [g.module_of(node) for node in g.operations] == ["net.first", "net", "net.second"]
    assert [(c.path, c.type, c.parent, c.parameters, c.output) for c in g.calls] == [
        ("net", "Net", None, 23, "[2, 2]"),
        ("net.first", "Linear", 0, 15, "[2, 3]"),
        ("net.second", "Linear", 0, 8, "[2, 2]"),
    ]
    assert g.roots == [(g.operations[-1].id, 0)]


def test_a_module_that_runs_twice_has_two_calls():
    layer = nn.Linear(2, 2)
    with graph.record() as g:
        layer(layer(pellucid.ones(1, 2)))
    assert [(call.path, call.number) for call in g.calls] == [("layer", 0), ("layer", 1)]
    assert "layer: Linear (call 2)" in g.text(expand=0)


def test_operations_outside_of_modules_belong_to_none():
    net = Net()
    with graph.record() as g:
        loss = net(pellucid.ones(2, 4)).sum()
    assert loss.requires_grad
    assert g.operations[-1].call is None
    assert g.module_of(g.operations[-1]) == ""


def test_inputs_of_all_forms():
    class Sum(nn.Module):
        def forward(self, a, b):
            return a + b

    model, one = Sum(), pellucid.ones(2)
    for inputs in (([one, one],), ((one, one),), ({"a": one, "b": one},), (one, one)):
        assert [node.name for node in graph.of(model, *inputs).operations] == ["add"]


def test_results_of_all_forms_are_roots():
    class Many(nn.Module):
        def forward(self, x):
            return {"a": x * 2, "b": [x * 3, (x * 4,)]}

    model = Many()
    g = graph.of(model, leaf(2))
    assert len(g.roots) == 3
    assert g.calls[0].output == "{a: [2], b: [[2], ([2])]}"


def test_off_there_is_nothing_on_modules_and_operators():
    net, x = Net(), pellucid.ones(2, 4)
    with graph.record():
        net(x)
    assert (modes.observers, modes.around, modes.road) == ((), (), RECORD)
    net(x)
    assert not nn.Module._hooked


# --- gradients --------------------------------------------------------------------------------------------------------


def test_a_backward_in_the_block_puts_gradients_on_the_nodes():
    x = pellucid.tensor([1.0, -1.0], requires_grad=True)
    with graph.record() as g:
        h = x.relu()
        (h * h).sum().backward()
    assert [None if n.outputs[0].gradient is None else n.outputs[0].gradient.norm for n in g.nodes] == pytest.approx(
        [2.0, 2.0, 2**0.5, 1.0]
    )
    assert g.nodes[0].outputs[0].gradient.zeros == 0.5


def test_what_runs_in_a_backward_is_marked():
    x = leaf(2)
    with graph.record() as g:
        y = (x**3).sum()
        pellucid.autograd.grad(y, x, create_graph=True)
    assert [node.phase for node in g.operations] == ["forward"] * 2 + ["backward"] * (len(g.operations) - 2)
    assert len(g.operations) > 2


def test_the_second_order_graph():
    x = pellucid.tensor([1.0, 2.0], requires_grad=True)
    g = graph.backward_of((x**3).sum(), values=True)
    (root,) = g.roots
    assert g.nodes[root[0]].label == "grad of x"
    assert g.nodes[root[0]].outputs[0].value == [3.0, 12.0]
    assert {node.phase for node in g.operations} == {"backward"}
    assert x.grad is None


def test_the_second_order_graph_of_what_has_no_gradient_is_refused():
    with pytest.raises(RuntimeError, match="backward_of expects tensors that require grad"):
        graph.backward_of(pellucid.ones(2))


def test_values_and_derivatives_of_a_recording_survive_the_backward():
    x = pellucid.tensor([2.0], requires_grad=True)
    with graph.record(values=True) as g:
        y = x * x + 1
        y.backward()
    assert [node.outputs[0].value for node in g.nodes] == [[2.0], [4.0], [5.0]]
    assert [edge.derivative.values for edge in g.edges] == [2.0, 2.0, 1.0]
    assert g.chain("y", "x").total == 4.0


# --- failures ---------------------------------------------------------------------------------------------------------


def test_a_block_that_fails_still_has_the_part_that_ran_and_what_failed():
    x, w, graphs = leaf(2, 3), leaf(4, 5), []

    def failing():
        with graph.record() as g:
            graphs.append(g)
            h = x.exp()
            h @ w

    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        failing()
    (g,) = graphs
    assert [(n.kind, n.label) for n in g.nodes] == [
        ("leaf", "x"), ("operation", "h"), ("leaf", "w"), ("operation", "mm"),
    ]  # fmt: skip
    failure = g.failure
    assert (failure.error, failure.operation, failure.names) == ("RuntimeError", "mm", ["input", "mat2"])
    assert [operand.shape for operand in failure.operands] == [(2, 3), (4, 5)]
    assert failure.site.source == "h @ w"
    assert failure.node == 3
    assert "mm(input [2, 3], mat2 [4, 5]) failed at " in g.text()


class Broken(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(4, 3)
        self.second = nn.Linear(5, 2)

    def forward(self, x):
        return self.second(self.first(x).relu())


def test_a_model_that_fails_hands_over_its_graph_with_the_error():
    model, x = Broken(), pellucid.ones(2, 4)
    with pytest.raises(RuntimeError, match="cannot be multiplied") as caught:
        graph.of(model, x)
    g = caught.value.graph
    assert [g.module_of(node) for node in g.operations] == ["model.first", "model", "model.second"]
    assert g.failure.module == "model.second"
    assert [call.finished for call in g.calls] == [False, True, False]
    failed, handed_over = caught.value.__notes__
    given = "input [2, 3], weight [2, 5] `model.second.weight`, bias [2] `model.second.bias`"
    assert failed.startswith(f"linear({given}) failed at ")
    assert failed.endswith(", in module model.second (Linear)")
    assert handed_over == "The graph of the part that ran is this exception's .graph."


def test_what_a_function_refuses_before_any_operator_is_named_too():
    scores, labels = leaf(3, 5), pellucid.zeros(4, dtype=pellucid.int64)
    with pytest.raises(ValueError, match="batch_size"), graph.record() as g:
        F.cross_entropy(scores, labels)
    assert (g.failure.operation, g.failure.names) == ("cross_entropy", ["input", "target"])


def test_an_error_of_the_program_itself_has_no_operation():
    x, graphs = leaf(2), []

    def failing():
        with graph.record() as g:
            graphs.append(g)
            x * 2
            raise ValueError("mine")

    with pytest.raises(ValueError, match="mine"):
        failing()
    (g,) = graphs
    assert g.failure.operation == ""
    assert g.failure.node is None
    assert str(g.failure).startswith("the program failed at ")
    assert len(g.operations) == 1


def test_an_error_that_the_program_handles_is_no_failure():
    x = leaf(2)
    with graph.record() as g:
        with pytest.raises(RuntimeError):
            x @ leaf(3)
        y = x * 2
    assert y.requires_grad
    assert g.failure is None


# --- lifetime and limits ----------------------------------------------------------------------------------------------


def recorded_and_dropped():
    net, x = Net(), leaf(2, 4)
    with graph.record(values=True) as g:
        y = net(x).sum()
        y.backward()
    things = [net, x, y, y._array, y.grad_fn, net.first.weight, x.grad._array]
    return g, [weakref.ref(thing) for thing in things]


def test_a_recording_keeps_nothing_alive():
    gc.collect()
    gc.disable()
    try:
        _, references = recorded_and_dropped()
        assert [reference() for reference in references] == [None] * len(references)
    finally:
        gc.enable()


def test_a_result_that_nobody_holds_is_freed_during_the_recording():
    x = leaf(2)
    with graph.record() as g:
        reference = weakref.ref((x * 2)._array)
        assert reference() is None
    assert len(g.operations) == 1


def test_other_threads_are_not_recorded():
    x = leaf(2)
    with graph.record() as g:
        thread = threading.Thread(target=lambda: Net()(pellucid.ones(2, 4)))
        thread.start()
        thread.join()
        x * 2
    assert [node.name for node in g.operations] == ["MulBackward0"]
    assert g.calls == []


def test_a_recording_with_a_limit_forgets_the_oldest_and_says_so():
    x = leaf(1)
    with Recorder(limit=50) as recorder:
        y = x
        for _ in range(200):
            y = y * 1.01
    g = recorder.graph
    assert g.dropped >= 100
    assert len([n for n in g.operations if n.name == "MulBackward0"]) == 200  # autograd still has them all
    assert "earlier operations were not kept" in g.text()
