"""Questions to a running backward: its number, what it will run and in which order, which node it is at."""

import pytest
from library import current_node, execution_order, keep_graph, leaf, pellucid_only, task_id, torch, will_execute

grad = torch.autograd.grad
edge_of = torch.autograd.graph.get_gradient_edge


def during(tensor, question):
    """Ask when the gradient of a tensor arrives; the answers so far."""
    answers = []

    def ask(g):
        answers.append(question())

    tensor.register_hook(ask)
    return answers


class Network:
    """(2 a + 3 b) * 1 with a name for each node, and a node that is not part of it."""

    def __init__(self):
        self.a, self.b = leaf([1.0]), leaf([2.0])
        self.c, self.d = self.a * 2, self.b * 3
        self.sum = self.c + self.d
        self.out = self.sum * 1
        self.apart = leaf([1.0]) * 4
        self.nodes = {name: getattr(self, name).grad_fn for name in ("c", "d", "sum", "apart")}
        self.nodes |= {name: edge_of(getattr(self, name)).node for name in ("a", "b")}

    def executed(self):
        """The names of the nodes that will run."""
        return {name for name, node in self.nodes.items() if will_execute(node)}


# --- which nodes will run --------------------------------------------------------------------------------------------

RUNS = {
    "backward()": (lambda n: n.out.backward(), {"a", "b", "c", "d", "sum"}),
    "backward(a)": (lambda n: n.out.backward(inputs=[n.a]), {"a", "c", "sum"}),
    "backward(c)": (lambda n: n.out.backward(inputs=[n.c]), {"c", "sum"}),
    "backward(c, b)": (lambda n: n.out.backward(inputs=[n.c, n.b]), {"b", "c", "d", "sum"}),
    "grad(d)": (lambda n: grad(n.out, n.d), {"d", "sum"}),
}


@pytest.mark.parametrize("name", RUNS)
def test_a_hook_may_ask_which_nodes_will_run(name):
    run, expected = RUNS[name]
    network = Network()
    answers = during(network.out, network.executed)
    run(network)
    assert answers == [expected]


@pellucid_only("PyTorch refuses to answer for a leaf inside grad()")
def test_the_node_of_a_leaf_that_grad_asks_for_counts_as_run():
    network = Network()
    answers = during(network.out, network.executed)
    grad(network.out, network.a)
    assert answers == [{"a", "c", "sum"}]


def test_the_question_which_nodes_run_needs_a_backward():
    with pytest.raises(RuntimeError, match="should only be called during the backward pass"):
        will_execute(leaf([1.0]).exp().grad_fn)


def test_the_question_whether_something_runs_is_about_nodes():
    x = leaf([1.0])
    x.register_hook(lambda g: will_execute(x))
    with pytest.raises(RuntimeError, match=r"expects an? grad_fn, but got"):
        (x * 2).backward()


# --- in which order --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("inputs", ["all", "a"])
def test_the_predicted_order_is_the_order(inputs):
    a, b = leaf([1.0]), leaf([2.0])
    first = a.exp()
    second = b.sin() * first
    out = (second + first).cos()
    log, predicted = [], []

    def watch(node):
        node.register_hook(lambda grads, _: log.append(type(node).__name__))
        for child, _ in node.next_functions:
            if child is not None and child not in seen:
                seen.add(child)
                watch(child)

    seen = set()
    watch(out.grad_fn)
    out.register_hook(lambda g: predicted.extend(type(n).__name__ for n in execution_order()))
    with torch.autograd.set_multithreading_enabled(False):
        out.backward(inputs=None if inputs == "all" else [a])
    names = ["CosBackward0", "AddBackward0", "MulBackward0"]
    names += ["SinBackward0", "AccumulateGrad"] if inputs == "all" else []
    assert predicted == log == [*names, "ExpBackward0", "AccumulateGrad"]


def test_the_predicted_order_follows_sequence_numbers():
    x = leaf([1.0])
    a, b = x.exp(), x.sin()
    a.grad_fn._set_sequence_nr(b.grad_fn._sequence_nr() + 1)
    out = a + b
    answers = during(out, lambda: [type(n).__name__ for n in execution_order()])
    with torch.autograd.set_multithreading_enabled(False):
        out.backward()
    assert answers == [["AddBackward0", "ExpBackward0", "SinBackward0", "AccumulateGrad"]]


@pellucid_only("PyTorch fails an internal assertion except at the first node")
def test_the_order_may_be_asked_for_in_the_middle():
    x = leaf([1.0])
    a = x.exp()
    out = a * 2
    answers = during(a, lambda: [type(n).__name__ for n in execution_order()])
    out.backward()
    assert answers == [["MulBackward0", "ExpBackward0", "AccumulateGrad"]]


def test_the_question_for_the_order_needs_a_backward():
    with pytest.raises(RuntimeError, match="should only be called during the backward pass"):
        execution_order()


# --- which backward --------------------------------------------------------------------------------------------------


def test_each_backward_has_a_number_of_its_own():
    x = leaf([1.0])
    y = x * 2
    ids = during(y, task_id)
    for _ in range(3):
        y.backward(retain_graph=True)
    assert ids == [ids[0], ids[0] + 1, ids[0] + 2]
    assert task_id() == -1


def test_a_backward_inside_another_has_its_own_number():
    x = leaf([1.0])
    y = x * 2
    ids = []

    def hook(g):
        ids.append(task_id())
        with torch.enable_grad():
            z = leaf([1.0]) * 3
            z.register_hook(lambda g: ids.append(task_id()))
            z.backward()
        ids.append(task_id())

    y.register_hook(hook)
    y.backward()
    assert ids[1] == ids[0] + 1
    assert ids[2] == ids[0]


@pytest.mark.parametrize("retain", [True, False])
def test_a_backward_may_ask_whether_the_graph_is_kept(retain):
    answers = []

    class Asks(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            answers.append(keep_graph())
            return g

    Asks.apply(leaf([1.0])).backward(retain_graph=retain)
    assert answers == [retain]


# --- at which node ---------------------------------------------------------------------------------------------------


def test_no_node_is_running_outside_a_backward():
    assert current_node() is None


def test_a_function_is_at_its_own_node():
    seen = []

    class Asks(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            seen.append(current_node())
            return g

    y = Asks.apply(leaf([1.0]))
    y.backward()
    assert seen == [y.grad_fn]


@pytest.mark.parametrize("kind", ["tensor hook", "pre-hook", "post-hook"])
def test_a_hook_is_at_the_node_it_watches(kind):
    y = leaf([1.0]) * 2
    out = y * 3
    seen = []
    if kind == "tensor hook":
        y.register_hook(lambda g: seen.append(current_node()))
    elif kind == "pre-hook":
        y.grad_fn.register_prehook(lambda gs: seen.append(current_node()))
    else:
        y.grad_fn.register_hook(lambda i, o: seen.append(current_node()))
    out.backward()
    assert seen == [y.grad_fn]


def test_a_hook_registered_while_a_saved_value_is_unpacked_runs_in_this_backward():
    log = []

    def unpack(t):
        node = current_node()
        node.register_hook(lambda i, o: log.append(node))
        return t

    x = leaf([1.0])
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x.exp()
    (y * 2).backward()
    assert log == [y.grad_fn]
