"""How long things live: graphs, saved values, hooks are freed by reference counts; deep graphs do not recurse."""

import copy
import gc
import subprocess
import sys
import weakref

import pytest
from library import ON_PELLUCID, Marker, close, leaf, pellucid_only, torch

Function = torch.autograd.Function


class Double(Function):
    """Twice its input."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


class Pair(Function):
    """Twice and three times its input."""

    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, g, h):
        return g * 2 + h * 3


def mark(tensor):
    """Something that lives as long as the node that made the tensor."""
    return tensor.grad_fn.metadata.setdefault("marker", Marker())


def operator(x):
    return x * x


MAKERS = pytest.mark.parametrize("make", [operator, Double.apply], ids=["operator", "function"])
RUNS = pytest.mark.parametrize("run", ["none", "backward", "retain_graph", "create_graph"])


def differentiate(y, run):
    if run == "create_graph":
        torch.autograd.grad(y, y, create_graph=True)
    elif run != "none":
        y.backward(retain_graph=run == "retain_graph")


# --- graphs ----------------------------------------------------------------------------------------------------------


@MAKERS
@RUNS
def test_a_graph_is_freed_with_its_result(make, run, freed_by_reference_count):
    x = leaf([1.0])
    with freed_by_reference_count() as watch:
        y = make(x)
        marker = Marker()
        y.grad_fn.metadata["marker"] = marker
        watch(marker)
        differentiate(y, run)
        del y, marker


@MAKERS
@RUNS
@pytest.mark.parametrize("kind", ["tensor hook", "pre-hook", "post-hook"])
def test_a_hook_is_freed_with_the_graph(make, run, kind, freed_by_reference_count):
    x = leaf([1.0])
    with freed_by_reference_count() as watch:
        y = make(x)
        marker = Marker()
        if kind == "tensor hook":
            y.register_hook(lambda g, m=marker: None)
        elif kind == "pre-hook":
            y.grad_fn.register_prehook(lambda gs, m=marker: None)
        else:
            y.grad_fn.register_hook(lambda i, o, m=marker: None)
        watch(marker)
        differentiate(y, run)
        del y, marker


def test_a_chain_is_freed_with_its_last_result(freed_by_reference_count):
    x = leaf([1.0])
    with freed_by_reference_count() as watch:
        y = x
        for _ in range(5):
            y = (y * y).exp()
            watch(mark(y))
        del y


@pytest.mark.parametrize("split", [Pair.apply, lambda x: x.unbind()], ids=["function", "unbind"])
def test_a_node_lives_as_long_as_one_of_its_outputs(split):
    first, second = split(leaf([1.0, 2.0]))
    marker = Marker()
    first.grad_fn.metadata["marker"] = marker
    reference = weakref.ref(marker)
    del marker, first
    assert reference() is not None
    del second
    assert reference() is None


def test_a_view_and_its_base_are_freed_together(freed_by_reference_count):
    x = leaf([1.0, 2.0])
    with freed_by_reference_count() as watch:
        base = x * 1
        view = base[:1]
        view.mul_(2)
        watch(mark(base))
        watch(base)
        base.sum().backward()
        del base, view


def test_a_view_written_by_a_saving_operation_is_freed(freed_by_reference_count):
    x = leaf([1.0, -2.0])
    with freed_by_reference_count() as watch:
        base = x * 1
        view = base[:]
        view.relu_()
        watch(mark(view))
        del base, view


@pytest.mark.parametrize("inplace", [False, True])
def test_retain_grad_makes_no_cycle(inplace, freed_by_reference_count):
    x = leaf([1.0])
    with freed_by_reference_count() as watch:
        y = x * 1
        y.retain_grad()
        if inplace:
            y.mul_(2)
        watch(y)
        (y * 3).backward()
        del y


def test_a_detached_tensor_does_not_keep_the_graph_alive(freed_by_reference_count):
    x = leaf([1.0])
    with freed_by_reference_count() as watch:
        y = x.exp()
        watch(mark(y))
        kept = y.detach()
        del y
    assert kept.item() == pytest.approx(2.718281828)


@pellucid_only("PyTorch never frees it")
def test_a_create_graph_backward_into_a_leaf_is_freed(recwarn):
    x = leaf([1.0])
    y = x.tanh()
    reference = weakref.ref(mark(y))
    y.backward(torch.ones(1, dtype=torch.float64), create_graph=True)
    del x, y
    gc.collect()
    assert reference() is None


# --- leaves ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["tensor hook", "post-accumulate", "node hook"])
def test_a_hook_of_a_leaf_is_freed_with_the_leaf(kind, freed_by_reference_count):
    with freed_by_reference_count() as watch:
        x = leaf([1.0])
        marker = Marker()
        if kind == "tensor hook":
            x.register_hook(lambda g, m=marker: None)
        elif kind == "post-accumulate":
            x.register_post_accumulate_grad_hook(lambda t, m=marker: None)
        else:
            node = torch.autograd.graph.get_gradient_edge(x).node
            node.register_hook(lambda i, o, m=marker: None)
            del node
        watch(marker)
        (x * 2).backward()
        del x, marker


def test_a_graph_keeps_its_leaves_alive(freed_by_reference_count):
    with freed_by_reference_count() as watch:
        x = leaf([1.0])
        watch(x)
        y = x.exp()
        del x
        node = y.grad_fn.next_functions[0][0]
        assert node.variable is not None
        y.backward()
        assert node.variable.grad is not None
        del y, node


def test_hooks_of_a_leaf_outlive_the_graphs():
    x = leaf([1.0])
    seen = []
    x.register_hook(seen.append)
    for _ in range(3):
        (x * 2).backward()
        gc.collect()
    assert len(seen) == 3


# --- saved values ----------------------------------------------------------------------------------------------------


@MAKERS
def test_saved_tensors_are_freed_by_the_backward(make, freed_by_reference_count):
    x = leaf([1.0])
    with freed_by_reference_count() as watch:
        middle = x * 1
        watch(middle)
        y = make(middle)
        del middle
        y.backward()
    assert y.grad_fn is not None


@MAKERS
def test_saved_tensors_are_kept_by_retain_graph(make):
    middle = leaf([1.0]) * 1
    reference = weakref.ref(middle)
    y = make(middle)
    del middle
    y.backward(retain_graph=True)
    if ON_PELLUCID or make is operator:
        y.backward(retain_graph=True)
    y.backward()
    del y
    assert reference() is None


def test_what_is_not_saved_is_not_kept(freed_by_reference_count):
    x = leaf([1.0])
    with freed_by_reference_count() as watch:
        middle = x * 1
        watch(middle)
        y = middle + 1
        del middle
    y.backward()
    assert close(x.grad, [1.0])


def test_an_attribute_of_the_context_that_leads_back_to_it_is_freed_by_the_collector():
    class Loop(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.marker = Marker()
            ctx.marker.context = ctx
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    y = Loop.apply(leaf([1.0]))
    reference = weakref.ref(y.grad_fn.marker)
    y.backward()
    del y
    gc.collect()
    assert reference() is None


def test_a_function_that_saves_a_view_it_wrote_to_is_freed(freed_by_reference_count):
    class WritesView(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            x.mul_(2)
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            assert ctx.saved_tensors
            return g * 2

    x = leaf([1.0, 2.0])
    with freed_by_reference_count() as watch:
        base = x * 1
        out = WritesView.apply(base[:1])
        watch(base)
        base.sum().backward()
        del base, out
    assert close(x.grad, [2.0, 1.0])


def test_hooks_on_saved_tensors_are_freed_with_the_graph(freed_by_reference_count):
    x = leaf([1.0])
    with freed_by_reference_count() as watch:
        markers = [Marker()]
        watch(markers[0])
        with torch.autograd.graph.saved_tensors_hooks(lambda t: (t, markers[0]), lambda packed: packed[0]):
            y = x * x
        markers.clear()
        del y


# --- garbage collection at odd moments -------------------------------------------------------------------------------


def test_a_cycle_through_a_view_survives_the_collector():
    x = leaf([1.0, 2.0])
    y = x * 1
    y.loop = y.view(2)
    y.loop.loop = y
    reference = weakref.ref(y)
    del y
    gc.collect()
    assert reference() is None or not ON_PELLUCID  # PyTorch keeps a view's base outside the collector's sight


FAILING = """
import {library} as torch

class Same(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g.clone()

def result():
    x = torch.ones(2, requires_grad=True)
    waiting = Same.apply(x)  # ready when the other branch fails, and freed with what is left of the backward
    copy = x.clone()
    failing = copy**2
    copy += 1
    return failing + waiting

result().sum().backward()
"""


def test_a_function_that_waits_when_a_backward_fails_is_freed_without_a_deadlock():
    program = FAILING.format(library=torch.__name__)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 1
    assert "modified by an inplace operation" in done.stderr


def test_collecting_inside_a_destructor():
    class Collects:
        def __del__(self):
            gc.collect()

    y = leaf([1.0]) * 2
    y.grad_fn.metadata["collects"] = Collects()
    y.backward()
    del y
    gc.collect()


# --- deep graphs -----------------------------------------------------------------------------------------------------

DEEP = 20_000


def test_a_deep_chain_is_differentiated_and_freed():
    x = leaf([1.0])
    y = x
    for _ in range(DEEP):
        y = y + y * 0.0
    y.backward()
    assert close(x.grad, [1.0])
    del y


def test_a_deep_chain_is_freed_without_a_backward():
    y = leaf([1.0])
    for _ in range(DEEP):
        y = y + y * 0.0
    del y


def test_a_deep_graph_with_skips_is_freed():
    values = [leaf([1.0]), leaf([1.0]), leaf([1.0])]
    for k in range(DEEP):
        values.append(torch.cat([values[-1], values[-2 - k % 2]]).sum(0, keepdim=True) * 0.5)
        del values[0]
    del values


def test_a_deep_chain_of_functions_is_freed():
    class Same(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

    x = leaf([1.0])
    y = x
    for _ in range(DEEP // 4):
        y = Same.apply(y)
    y.backward()
    assert close(x.grad, [1.0])
    del y


# --- buffers ---------------------------------------------------------------------------------------------------------


def test_gradients_of_two_leaves_never_share_memory():
    class Twin(Function):
        @staticmethod
        def forward(ctx, x, y):
            return x + y

        @staticmethod
        def backward(ctx, g):
            return g, g

    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    Twin.apply(x, y).sum().backward()
    assert x.grad.data_ptr() != y.grad.data_ptr()


def test_a_gradient_that_the_user_still_holds_is_copied():
    held = []

    class Holder(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            held.append(torch.full_like(g, 5.0))
            return held[0]

    x = leaf([1.0, 2.0])
    Holder.apply(x).sum().backward()
    x.grad.zero_()
    assert close(held[0], [5.0, 5.0])


def test_a_gradient_that_is_no_packed_array_is_packed():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    x.sum(0).expand(2, 2).sum().backward()
    assert x.grad.is_contiguous()
    x.grad.add_(1)
    assert close(x.grad, [[3.0, 3.0], [3.0, 3.0]])


def test_module_hooks_with_create_graph_do_not_leak():
    linear = torch.nn.Linear(2, 2)
    linear.register_full_backward_hook(lambda module, inputs, outputs: None)
    x = torch.ones(2, 2, requires_grad=True)
    y = linear(x)
    reference = weakref.ref(mark(y))
    torch.autograd.grad(y.sum(), [x, *linear.parameters()], create_graph=True)
    del y
    gc.collect()
    assert reference() is None


def test_a_deep_copy_does_not_share_memory():
    x = leaf([1.0, 2.0])
    made = copy.deepcopy(x)
    assert made.data_ptr() != x.data_ptr()
