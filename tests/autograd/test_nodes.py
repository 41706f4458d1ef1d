"""The graph as it can be asked about: nodes, names, edges, gradient edges, the order in which nodes run."""

import pytest
from library import close, const, leaf, torch

grad = torch.autograd.grad
edge_of = torch.autograd.graph.get_gradient_edge
Edge = torch.autograd.graph.GradientEdge


class Double(torch.autograd.Function):
    """Twice its input."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Pair(torch.autograd.Function):
    """Twice and three times its input."""

    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, g, h):
        return g * 2 + h * 3


# --- names and neighbours --------------------------------------------------------------------------------------------

NAMES = {
    "AddBackward0": lambda x: x + x,
    "SubBackward0": lambda x: x - 1,
    "MulBackward0": lambda x: x * 2,
    "DivBackward0": lambda x: x / 2,
    "PowBackward0": lambda x: x**2,
    "NegBackward0": lambda x: -x,
    "ExpBackward0": lambda x: x.exp(),
    "SumBackward0": lambda x: x.sum(),
    "SumBackward1": lambda x: x.sum(0),
    "MeanBackward0": lambda x: x.mean(),
    "MmBackward0": lambda x: x @ x,
    "TBackward0": lambda x: x.t(),
    "TransposeBackward0": lambda x: x.transpose(0, 1),
    "ViewBackward0": lambda x: x.view(4),
    "SelectBackward0": lambda x: x[0],
    "SliceBackward0": lambda x: x[:1],
    "IndexBackward0": lambda x: x[torch.tensor([0])],
    "CloneBackward0": lambda x: x.clone(),
    "UnbindBackward0": lambda x: x.unbind()[0],
    "CatBackward0": lambda x: torch.cat([x, x]),
    "DoubleBackward": Double.apply,
}


@pytest.mark.parametrize("name", NAMES)
def test_a_node_is_named_after_its_operation(name):
    node = NAMES[name](leaf([[1.0, 2.0], [3.0, 4.0]])).grad_fn
    assert node.name() == name
    assert type(node).__name__ == name


def test_a_leaf_has_no_node_and_ends_in_an_accumulator():
    x = leaf([1.0])
    assert x.grad_fn is None
    ((node, number),) = x.exp().grad_fn.next_functions
    assert (type(node).__name__, number) == ("AccumulateGrad", 0)
    assert node.variable is x


def test_a_leaf_has_one_accumulator():
    x = leaf([1.0])
    (first,), (second,) = (y.grad_fn.next_functions for y in (x.exp(), x.sin()))
    assert first[0] is second[0]


def test_the_gradient_flows_to_both_operands_of_a_sum():
    x, y = leaf([1.0]), leaf([2.0])
    a, b = x.exp(), y.exp()
    assert (a + b).grad_fn.next_functions == ((a.grad_fn, 0), (b.grad_fn, 0))


def test_an_operand_that_needs_no_gradient_has_an_empty_edge():
    x = leaf([1.0])
    assert (x.exp() * const([2.0])).grad_fn.next_functions[1] == (None, 0)
    assert (x.exp() * 2).grad_fn.next_functions[1:] == ((None, 0),)


def test_an_edge_tells_which_output_of_a_node_was_used():
    first, second = leaf([1.0, 2.0]).exp().unbind()
    assert first.grad_fn is second.grad_fn
    assert (first.output_nr, second.output_nr) == (0, 1)
    assert (second * 2).grad_fn.next_functions[0] == (first.grad_fn, 1)


def test_a_node_is_the_same_object_each_time():
    y = leaf([1.0]).exp()
    assert y.grad_fn is y.grad_fn


@pytest.mark.parametrize("name", ["AccumulateGrad", *NAMES])
def test_every_node_is_a_node(name):
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    node = edge_of(x).node if name == "AccumulateGrad" else NAMES[name](x).grad_fn
    assert isinstance(node, torch.autograd.graph.Node)
    assert isinstance(node.metadata, dict)


def test_the_context_of_a_custom_function_is_its_node():
    seen = []

    class Identity(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            seen.append(ctx)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            seen.append(ctx)
            return g

    y = Identity.apply(leaf([1.0]))
    y.backward()
    assert seen == [y.grad_fn, y.grad_fn]
    assert isinstance(seen[0], torch.autograd.graph.Node)


def test_which_classes_are_nodes():
    Node, CFunction = torch.autograd.graph.Node, torch.autograd.function.BackwardCFunction
    y = leaf([1.0]).exp()
    accumulate = type(y.grad_fn.next_functions[0][0])
    for cls in (type(y.grad_fn), accumulate, CFunction, Double._backward_cls, Node):
        assert issubclass(cls, Node)
    assert issubclass(type(Double.apply(y).grad_fn), CFunction)
    for other in (None, 1, y, Node, accumulate, Double):
        assert not isinstance(other, Node)


def test_metadata_of_a_node_is_kept():
    y = leaf([1.0]).exp()
    y.grad_fn.metadata["note"] = 3
    assert y.grad_fn.metadata["note"] == 3


@pytest.mark.parametrize("count", [0, 2])
def test_a_node_called_with_the_wrong_number_of_gradients_raises(count):
    node = leaf([1.0]).exp().grad_fn
    with pytest.raises(TypeError, match=r"expected .* argument.*, got .* instead"):
        node(*[const([1.0])] * count)


def test_a_node_can_be_called():
    x = leaf([3.0])
    node = (x * x).grad_fn
    assert [g.item() for g in node(const([1.0]))] == [3.0, 3.0]
    assert x.grad is None


# --- gradient edges --------------------------------------------------------------------------------------------------


def of_leaf(x):
    return x


def of_operator(x):
    return x * 3


def of_function(x):
    return Double.apply(x)


def of_second_output(x):
    return x.unbind()[1]


def of_function_output(x):
    return Pair.apply(x)[1]


MADE = [of_leaf, of_operator, of_function, of_second_output, of_function_output]


@pytest.mark.parametrize("make", MADE)
def test_the_gradient_at_an_edge_is_that_of_its_tensor(make):
    y = make(leaf([1.0, 2.0]))
    out = (y * y).sum() + y.sum()
    (expected,) = grad(out, y, retain_graph=True)
    (at_edge,) = grad(out, edge_of(y))
    assert close(at_edge, expected)


@pytest.mark.parametrize("make", MADE[1:])
def test_backward_accepts_edges_among_its_inputs(make):
    x, other = leaf([1.0, 2.0]), leaf([3.0])
    y = make(x)
    y.retain_grad()
    loss = (y * y).sum() * other
    torch.autograd.backward(loss, inputs=[edge_of(y), other])
    assert close(y.grad, 6 * y)
    assert close(other.grad, [(y * y).sum().item()])
    assert x.grad is None


def test_the_edge_of_a_tensor_that_needs_no_gradient_raises():
    with pytest.raises(RuntimeError, match="does not require gradients"):
        edge_of(const([1.0]))


def test_an_edge_holds_node_and_output_number():
    first, second = leaf([1.0, 2.0]).unbind()
    edge = edge_of(second)
    assert (edge.node, edge.output_nr) == (first.grad_fn, 1)


def test_an_edge_taken_before_an_in_place_operation_is_of_the_old_value():
    y = leaf([2.0]) * 1
    before = edge_of(y)
    y *= 5
    (old,) = grad(y.sum(), before, retain_graph=True)
    (new,) = grad(y.sum(), edge_of(y))
    assert (old.item(), new.item()) == (5.0, 1.0)


def test_several_edges_made_by_hand():
    x = leaf([2.0])
    first, second = Pair.apply(x)
    node = first.grad_fn
    found = grad((first * 10 + second * 100).sum(), [Edge(node, 0), Edge(node, 1)])
    assert [g.item() for g in found] == [10.0, 100.0]


def test_an_unused_edge_cannot_be_materialized():
    x = leaf([2.0])
    unused = edge_of(x.exp())
    message = "materialize_grads cannot be used when the given input is a GradientEdge"
    with pytest.raises(RuntimeError, match=message):
        grad((x * 2).sum(), [x, unused], allow_unused=True, materialize_grads=True)


def test_differentiating_in_two_steps_from_an_edge_equals_one():
    x = leaf([1.0, 2.0])
    y = x.exp()
    edge = edge_of(y)
    loss = (y * y).sum()
    (middle,) = grad(loss, edge, retain_graph=True)
    (in_two,) = grad(edge, x, grad_outputs=middle, retain_graph=True)
    (in_one,) = grad(loss, x, retain_graph=True)
    assert close(in_two, in_one)
    torch.autograd.backward(edge, middle)
    assert close(x.grad, in_one)


def test_edges_and_tensors_may_be_mixed_as_roots():
    x = leaf([1.0, 2.0])
    y, z = x * 3, x * 5
    torch.autograd.backward([edge_of(y), z], [const([1.0, 1.0]), const([10.0, 10.0])])
    assert close(x.grad, [53.0, 53.0])


def test_an_edge_as_root_checks_the_shape_of_its_gradient():
    x = leaf([1.0, 2.0])
    edge = edge_of(x * 3)
    with pytest.raises(RuntimeError, match="Mismatch in shape"):
        torch.autograd.backward(edge, const([1.0, 1.0, 1.0]))


def test_an_edge_as_root_checks_the_dtype_of_its_gradient():
    x = leaf([1.0, 2.0])
    edge = edge_of(x * 3)
    with pytest.raises(RuntimeError, match="For complex Tensors, both grad_output and output are required to"):
        torch.autograd.backward(edge, const([1j, 1.0], dtype=torch.complex128))


def test_an_edge_as_root_needs_a_gradient_unless_it_is_a_scalar():
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for scalar outputs"):
        torch.autograd.backward(edge_of(x * 3))


def test_an_edge_keeps_the_graph_alive():
    x = leaf([1.0, 2.0])
    y = x.exp()
    edge = edge_of(y)
    del y
    torch.autograd.backward(edge, const([1.0, 1.0]))
    assert close(x.grad, x.exp())


def test_an_edge_of_a_leaf_keeps_the_leaf_alive():
    x = leaf([1.0])
    edge = edge_of(x)
    y = x * 2
    del x
    (g,) = grad(y, edge)
    assert close(g, [2.0])


# --- order -----------------------------------------------------------------------------------------------------------


def log_order(log, **tensors):
    """Note the name of each tensor when the node that made it runs."""
    for name, tensor in tensors.items():
        tensor.grad_fn.register_hook(lambda inputs, outputs, name=name: log.append(name))


def test_of_the_ready_nodes_the_last_made_runs_first():
    x = leaf([1.0])
    a = x.exp()
    b = x.sin()
    c = a * 2
    d = b * 3
    log = []
    log_order(log, a=a, b=b, c=c, d=d)
    (c + d).backward()
    assert log == ["d", "c", "b", "a"]


def test_a_node_waits_for_all_gradients_of_its_output():
    x = leaf([1.0])
    a = x.exp()
    b = a * 2
    c = b * a
    d = a + c
    log = []
    log_order(log, a=a, b=b, c=c, d=d)
    d.backward()
    assert log == ["d", "c", "b", "a"]
    assert close(x.grad, x.exp() + 4 * x.exp() ** 2)


def test_the_gradient_reaches_a_leaf_as_soon_as_it_is_complete():
    log = []
    x, y = leaf([1.0]), leaf([2.0])
    x.register_post_accumulate_grad_hook(lambda t: log.append("x"))
    y.register_post_accumulate_grad_hook(lambda t: log.append("y"))
    a = x.exp()
    b = a * y
    log_order(log, a=a, b=b)
    b.backward()
    assert log == ["b", "y", "a", "x"]


@pytest.mark.parametrize("length", [3000])
def test_a_long_chain_does_not_recurse(length):
    x = leaf([1.0])
    y = x
    for _ in range(length):
        y = y + 1
    y.backward()
    assert close(x.grad, [1.0])


def test_the_sequence_number_decides_the_order():
    x = leaf([1.0])
    a = x.exp()
    b = x.sin()
    assert b.grad_fn._sequence_nr() > a.grad_fn._sequence_nr()
    log = []
    log_order(log, a=a, b=b)
    a.grad_fn._set_sequence_nr(b.grad_fn._sequence_nr() + 1)
    (a + b).backward()
    assert log == ["a", "b"]


def test_sequence_numbers_out_of_order_hide_no_path():
    x = leaf([1.0])
    a = x * 2
    b = a * 3
    c = b * 5
    numbers = [node.grad_fn._sequence_nr() for node in (a, b, c)]
    for node, number in zip((a, b, c), reversed(numbers), strict=True):
        node.grad_fn._set_sequence_nr(number)
    assert grad(c.sum(), x, retain_graph=True)[0].item() == 30
    assert grad(c.sum(), a)[0].item() == 15


def test_an_edge_of_the_old_memory_works_after_set():
    x = leaf([1.0, 2.0])
    y = x * 5
    edge = edge_of(x)
    with torch.no_grad():
        x.set_(const([3.0]))
    (at_edge,) = grad(y.sum(), edge, retain_graph=True)
    assert close(at_edge, [5.0, 5.0])
    assert grad(y.sum(), x, allow_unused=True) == (None,)
    (x * 5).sum().backward()
    assert close(x.grad, [5.0])


def test_a_node_knows_shape_and_dtype_of_its_outputs():
    a, b = torch.var_mean(leaf([[1.0, 3.0, 2.0]], dtype=torch.float32), dim=1)
    facts = a.grad_fn._input_metadata
    assert [(tuple(f.shape), f.dtype) for f in facts] == [((1,), torch.float32)] * 2
    assert b.grad_fn is a.grad_fn


@pytest.mark.parametrize("make", [lambda x: x * 3, Double.apply, lambda x: x.expand(4, 2)])
def test_a_node_knows_shape_and_dtype_of_its_output(make):
    y = make(leaf([1.0, 2.0]))
    (fact,) = y.grad_fn._input_metadata
    assert (tuple(fact.shape), fact.dtype) == (tuple(y.shape), torch.float64)
