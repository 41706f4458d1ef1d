"""`graph.of`: the graph behind tensors as plain data. What it tells, that it keeps nothing alive, that it is linear."""

import copy
import gc
import pickle
import time
import weakref

import pytest

import pellucid
from pellucid import graph, nn


def leaf(*shape):
    return pellucid.ones(*shape, requires_grad=True)


def textbook():
    x = pellucid.tensor([2.0], requires_grad=True)
    w = pellucid.tensor([1.0], requires_grad=True)
    y = (x + w) * (w + 1)
    return graph.of(y, values=True), x, w, y


def test_nodes_edges_roots_and_names_of_the_textbook_graph():
    g, *_ = textbook()
    assert [(node.kind, node.name, node.label) for node in g.nodes] == [
        ("leaf", "leaf", "x"),
        ("leaf", "leaf", "w"),
        ("operation", "AddBackward0", "AddBackward0"),
        ("operation", "AddBackward0", "AddBackward0"),
        ("operation", "MulBackward0", "y"),
    ]
    assert [(e.source, e.target, e.input, e.name, e.kind) for e in g.edges] == [
        (0, 2, 0, "input", "gradient"),
        (1, 2, 1, "other", "gradient"),
        (1, 3, 0, "input", "gradient"),
        (2, 4, 0, "input", "gradient"),
        (3, 4, 1, "other", "gradient"),
    ]
    assert g.roots == [(4, 0)]
    assert g.title == "y"
    assert [node.label for node in g.leaves] == ["x", "w"]


def test_values_and_local_derivatives_are_there_when_asked_for():
    g, *_ = textbook()
    assert [edge.derivative.values for edge in g.edges] == [1.0, 1.0, 1.0, 2.0, 3.0]
    assert [node.outputs[0].value for node in g.nodes] == [[2.0], [1.0], [3.0], [2.0], [6.0]]


def test_values_are_not_there_unless_asked_for():
    x = leaf(2)
    g = graph.of(x * 2)
    assert all(edge.derivative is None for edge in g.edges)
    assert all(output.value is None for node in g.nodes for output in node.outputs)


def test_local_derivatives_of_small_tensors_are_diagonals_and_matrices():
    w, v = leaf(2, 3), leaf(3)
    y = (w @ v).exp()
    g = graph.of(y, values=True)
    product, exponential = g.operations
    (into_exp,) = [edge for edge in g.edges if edge.target == exponential.id]
    assert into_exp.derivative.kind == "diagonal"
    assert into_exp.derivative.values == pytest.approx([20.085537] * 2)
    of_matrix = next(edge for edge in g.edges if edge.target == product.id and edge.name == "input")
    assert of_matrix.derivative.kind == "matrix"
    assert of_matrix.derivative.values == [[1, 1, 1, 0, 0, 0], [0, 0, 0, 1, 1, 1]]


def test_large_jacobians_are_left_out():
    x = leaf(100)
    g = graph.of(x.exp().sum(), values=True)
    assert [edge.derivative for edge in g.edges if edge.target == g.operations[0].id] == [None]


def test_several_outputs_have_a_derivative_each():
    x = leaf(2)
    first, second = x.unbind()
    g = graph.of(first * 2 + second * 3, values=True)
    (edge,) = [edge for edge in g.edges if g.nodes[edge.source].kind == "leaf"]
    assert edge.derivative.kind == "outputs"
    assert [block.values for block in edge.derivative.values] == [[[1.0, 0.0]], [[0.0, 1.0]]]


def test_each_operation_knows_its_line_and_the_text_of_it():
    x = leaf(2)
    y = x.tanh()
    (node,) = graph.of(y).operations
    assert node.site.file == __file__
    assert node.site.source == "y = x.tanh()"
    assert node.site.function.endswith("test_each_operation_knows_its_line_and_the_text_of_it")


# --- shapes -----------------------------------------------------------------------------------------------------------


def shapes(g):
    return [node.outputs[0].shape for node in g.operations]


def test_shapes_are_known_on_every_node_without_being_told():
    x, w = leaf(4, 3), leaf(5, 3)
    h = (pellucid.ones(2, 4) @ x).relu() + leaf(3)
    y = pellucid.cat([h.t(), h.t()]).sum(0, keepdim=True).expand(7, 2).reshape(14) * 2.0
    z = (y.unsqueeze(0) @ leaf(14, 5)) @ w
    assert shapes(graph.of(z.mean())) == [
        (2, 3), (2, 3), (2, 3), (3, 2), (3, 2), (6, 2), (1, 2), (7, 2), (14,), (14,), (1, 14), (1, 5), (1, 3), (),
    ]  # fmt: skip


def test_shapes_where_the_other_operand_needs_no_gradient_come_from_the_formula():
    x = leaf(4, 3)
    y = (pellucid.ones(2, 4) @ (x * 1)) @ pellucid.ones(3, 6)
    assert shapes(graph.of(y.sum())) == [(4, 3), (2, 3), (2, 6), ()]


def test_dtypes_follow_casts():
    x = leaf(2)
    g = graph.of(x.double().exp().sum())
    assert [node.outputs[0].dtype for node in g.nodes] == ["float32", "float64", "float64", "float64"]


def test_a_scalar_that_was_broadcast_has_its_own_shape():
    s = leaf()
    g = graph.of(((s * 1) + leaf(3)).sum())
    assert shapes(g) == [(), (3,), ()]


# --- what is saved ----------------------------------------------------------------------------------------------------


def test_saved_values_have_names_sizes_and_a_storage_each_is_counted_in_once():
    x = leaf(10)
    y = x.exp()
    z = y * y.t()
    g = graph.of(z.sum())
    exponential = g.operations[0]
    assert [(s.name, s.shape, s.dtype, s.bytes) for s in exponential.saved] == [("result", (10,), "float32", 40)]
    assert {saved.storage for node in g.nodes for saved in node.saved} == {exponential.saved[0].storage}
    assert g.saved_bytes == 40


def test_saved_leaves_and_inputs_live_anyway():
    w, data = leaf(3, 2), pellucid.ones(4, 3)
    g = graph.of((data @ w).sum())
    assert g.saved_bytes == 0
    assert sorted(storage.kind for storage in g.storages) == ["input", "leaf"]


def test_after_a_backward_the_graph_says_that_saved_values_are_freed():
    x = leaf(3)
    y = x.exp().sum()
    assert not graph.of(y).freed
    y.backward()
    g = graph.of(y)
    assert g.freed
    assert g.saved_bytes == 0
    assert [node.name for node in g.operations] == ["ExpBackward0", "SumBackward0"]


# --- gradients --------------------------------------------------------------------------------------------------------


def test_after_a_backward_leaves_and_retained_results_tell_about_their_gradients():
    x = pellucid.tensor([0.0, 1.0, -1.0, 2.0], requires_grad=True)
    h = x.relu()
    h.retain_grad()
    (h * h).sum().backward()
    g = graph.of(h)
    gradient = g.leaves[0].outputs[0].gradient
    assert gradient.norm == pytest.approx(20**0.5)
    assert (gradient.zeros, gradient.nan, gradient.inf) == (0.5, 0, 0)
    assert g.operations[0].outputs[0].gradient.zeros == 0.5


def test_gradients_that_are_not_finite_are_counted():
    x = pellucid.tensor([0.0, 1.0, 4.0], requires_grad=True)
    (x.sqrt() * pellucid.tensor([1.0, float("nan"), 2.0])).sum().backward()
    gradient = graph.of(x).nodes[0].outputs[0].gradient
    assert (gradient.nan, gradient.inf, gradient.norm) == (1, 1, 0.5)


# --- names ------------------------------------------------------------------------------------------------------------


class Holder:
    def __init__(self, tensor):
        self.weight = tensor


def test_names_come_from_variables_containers_objects_and_modules():
    net = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1, bias=False))
    xs, table, holder = [leaf(2), leaf(2)], {"k": leaf(2)}, Holder(leaf(2))
    y = net(xs[1] + table["k"] + holder.weight).sum()
    assert sorted(node.label for node in graph.of(y).leaves) == [
        "holder.weight", "net.0.bias", "net.0.weight", "net.1.weight", "table['k']", "xs[1]",
    ]  # fmt: skip


def test_parameters_go_by_their_module_and_not_by_a_loop_variable():
    net = nn.Sequential(nn.Linear(2, 1, bias=False))
    for p in net.parameters():
        y = p * 2
    assert [node.label for node in graph.of(y).leaves] == ["net.0.weight"]


def test_names_come_from_the_closures_of_functions():
    def make():
        inner = leaf(2)
        return lambda: graph.of(inner * 2)

    function = make()
    assert [node.label for node in function().leaves] == ["inner"]


def test_names_come_from_the_frames_further_out_too():
    outer = leaf(2)

    def inner():
        return graph.of(outer_result)

    outer_result = outer * 2
    assert [node.label for node in inner().nodes] == ["outer", "outer_result"]


# --- roots of all kinds -----------------------------------------------------------------------------------------------


def test_several_roots_and_nested_ones():
    x = leaf(2)
    a, b = x * 2, x * 3
    assert len(graph.of(a, b).roots) == len(graph.of({"a": [a], "b": (b,)}).roots) == 2
    assert len(graph.of(a, b).leaves) == 1


def test_a_leaf_and_a_constant_are_graphs_of_one_node():
    x, c = leaf(2), pellucid.ones(3)
    assert [(n.kind, n.label) for n in graph.of(x).nodes] == [("leaf", "x")]
    assert [(n.kind, n.label) for n in graph.of(c).nodes] == [("input", "c")]


def test_a_result_whose_history_was_cut_off_shows_where():
    x = leaf(2)
    y = (x * 2).detach()
    g = graph.of(y)
    (cut,) = g.cuts
    assert (cut.reason, cut.site.source) == ("detach", "y = (x * 2).detach()")
    assert g.nodes[cut.target].label == "y"


def test_a_saved_operand_that_was_cut_off_is_a_broken_edge():
    x = leaf(2)
    frozen = (x * 2).detach()
    y = x * frozen
    (cut,) = graph.of(y).cuts
    assert (cut.name, cut.reason, cut.site.source) == ("other", "detach", "frozen = (x * 2).detach()")


def test_what_is_no_tensor_is_refused():
    with pytest.raises(TypeError, match=r"graph\.of expects tensors, or a module and its inputs; got int"):
        graph.of(3)
    with pytest.raises(TypeError, match="got nothing"):
        graph.of()


def test_in_place_writes_to_views_and_their_bases_are_there():
    x = leaf(4)
    y = x * 2
    y[1:3].mul_(3)
    assert [node.name for node in graph.of(y.sum()).operations] == ["MulBackward0", "CopySlices", "SumBackward0"]


def test_an_order_that_the_user_has_changed_is_mended():
    x = leaf(2)
    y = x * 2
    z = y * 3
    y.grad_fn._set_sequence_nr(10**9)
    g = graph.of(z)
    assert all(edge.source < edge.target for edge in g.edges)


# --- plain data -------------------------------------------------------------------------------------------------------


def made_and_dropped():
    """A graph, and weak references to everything it was made of, which this function alone held."""
    net = nn.Linear(3, 3)
    x = leaf(2, 3)
    h = net(x).tanh()
    y = h.sum()
    g = graph.of(y, values=True)
    things = [net, x, h, y, h._array, y.grad_fn, h.grad_fn, net.weight, net.weight._array]
    return g, [weakref.ref(thing) for thing in things]


def test_it_keeps_no_tensor_array_node_or_module_alive():
    gc.collect()
    gc.disable()
    try:
        g, references = made_and_dropped()
        assert [reference() for reference in references] == [None] * len(references)
    finally:
        gc.enable()
    assert len(g.operations) == 3


def test_variables_of_the_caller_end_with_del():
    """Asking a frame for its locals must not leave them in the frame."""
    x = leaf(2)
    g = graph.of(x * 2)
    reference = weakref.ref(x)
    del x
    assert reference() is None
    assert g.leaves[0].label == "x"


def test_it_can_be_pickled_copied_and_compared():
    g, *_ = textbook()
    assert pickle.loads(pickle.dumps(g)) == g
    assert copy.deepcopy(g) == g


def test_a_short_description_is_its_repr():
    g, *_ = textbook()
    assert repr(g) == "<graph of y: 3 operations, 2 leaves (2 elements); 8 B saved for backward>"


# --- size -------------------------------------------------------------------------------------------------------------


def test_sixty_doublings_have_2_to_the_60_paths_and_sixty_nodes():
    a = x = leaf(1)
    for _ in range(60):
        a = a + a
    g = graph.of(a, values=True)
    assert (len(g.nodes), len(g.edges)) == (61, 120)
    assert g.chain(a, x).count == 2**60
    assert "58 x AddBackward0" in g.text()
    assert len(g.to_dict()["nodes"]) == 61


def test_a_long_chain_of_views_is_walked_without_recursion():
    x = y = leaf(2, 2)
    for _ in range(3000):
        y = y.t()
    g = graph.of(y)
    assert len(g.operations) == 3000
    assert {node.outputs[0].shape for node in g.operations} == {(2, 2)}
    assert x.grad is None


def test_a_hundred_thousand_nodes_are_read_without_recursion_in_linear_time():
    z = x = leaf(1)
    for _ in range(50_000):
        z = z * 1.0001 + x
    begin = time.process_time()
    g = graph.of(z)
    seconds = time.process_time() - begin
    assert (len(g.nodes), len(g.edges)) == (100_001, 150_000)
    assert seconds < 6, f"{seconds:.1f} s: a machine that does nothing else takes less than 2 s"
