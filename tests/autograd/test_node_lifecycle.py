"""How long nodes live: with hooks that hold them, shared by several outputs, in chains, and what they saved.

Everything else about lifetimes is in `test_lifetime.py`.
"""

import gc
import weakref

import pytest
from library import Marker, close, leaf, pellucid_only, torch

Function = torch.autograd.Function


class Square(Function):
    """The square of its input."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        return 2 * g * ctx.saved_tensors[0]


class Exp(Function):
    """The exponential function, which saves its result."""

    @staticmethod
    def forward(ctx, x):
        out = x.exp()
        ctx.save_for_backward(out)
        return out

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0]


class Halves(Function):
    """Both halves of its input, as copies."""

    @staticmethod
    def forward(ctx, x):
        return x[:1].clone(), x[1:].clone()

    @staticmethod
    def backward(ctx, g, h):
        return torch.cat([g, h])


MAKERS = pytest.mark.parametrize("make", [lambda x: x * x, Square.apply], ids=["operator", "function"])
RUNS = pytest.mark.parametrize("run", ["none", "backward", "retain_graph"])
SPLITS = {"unbind": lambda x: x.unbind(), "split": lambda x: x.split(1), "function": Halves.apply}
SPLIT = pytest.mark.parametrize("split", SPLITS.values(), ids=SPLITS)


def differentiate(y, run):
    if run != "none":
        y.backward(retain_graph=run == "retain_graph")


# --- hooks that hold their node --------------------------------------------------------------------------------------


@MAKERS
@RUNS
@pytest.mark.parametrize("kind", ["tensor hook", "pre-hook", "post-hook"])
def test_a_hook_that_holds_its_own_node_is_freed_by_the_collector(make, run, kind):
    y = make(leaf([1.0]))
    marker = Marker()
    node = y.grad_fn
    if kind == "tensor hook":
        y.register_hook(lambda g, m=marker, n=node: None)
    elif kind == "pre-hook":
        node.register_prehook(lambda gs, m=marker, n=node: None)
    else:
        node.register_hook(lambda i, o, m=marker, n=node: None)
    reference = weakref.ref(marker)
    differentiate(y, run)
    del marker, node
    gc.collect()
    assert reference() is not None
    del y
    gc.collect()
    assert reference() is None


AFTER = pytest.param("post-accumulate", marks=pellucid_only("PyTorch never frees it"))


@pytest.mark.parametrize("kind", ["tensor hook", AFTER])
def test_a_hook_that_holds_its_leaf_is_freed_by_the_collector(kind):
    x = leaf([1.0])
    marker = Marker()
    register = x.register_hook if kind == "tensor hook" else x.register_post_accumulate_grad_hook
    register(lambda g, m=marker, t=x: None)
    reference = weakref.ref(marker)
    (x * 2).backward()
    del marker, x, register
    gc.collect()
    assert reference() is None


# --- nodes with several outputs --------------------------------------------------------------------------------------


@SPLIT
@RUNS
@pytest.mark.parametrize("last", [0, 1])
def test_a_node_lives_as_long_as_its_last_output(split, run, last, freed_by_reference_count):
    x = leaf([1.0, 2.0])
    with freed_by_reference_count() as watch:
        outputs = list(split(x))
        outputs[0].grad_fn.metadata["mine"] = marker = Marker()
        watch(marker)
        reference = weakref.ref(marker)
        differentiate(outputs[0], run)
        del outputs[1 - last], marker
        assert reference() is not None
        del outputs


@SPLIT
def test_the_outputs_of_a_node_share_its_hooks(split):
    x = leaf([1.0, 2.0])
    first, second = split(x)
    assert first.grad_fn is second.grad_fn
    log = []
    second.grad_fn.register_hook(lambda i, o: log.append([None if g is None else g.tolist() for g in o]))
    (first.sum() * 3).backward()
    assert len(log) == 1
    assert close(x.grad, [3.0, 0.0])


# --- chains ----------------------------------------------------------------------------------------------------------


@RUNS
@MAKERS
def test_every_node_of_a_chain_is_freed(make, run, freed_by_reference_count):
    x = leaf([0.5])
    with freed_by_reference_count() as watch:
        y = x
        for _ in range(4):
            y = make(y)
            y.grad_fn.metadata["mine"] = marker = Marker()
            watch(marker)
        differentiate(y, run)
        del y, marker


def test_the_middle_of_a_chain_keeps_what_is_below_it():
    x = leaf([0.5])
    middle = (x * x).exp()
    below, above = Marker(), Marker()
    middle.grad_fn.metadata["mine"] = below
    top = middle.sin()
    top.grad_fn.metadata["mine"] = above
    references = weakref.ref(below), weakref.ref(above)
    del below, above, top
    gc.collect()
    assert [r() is None for r in references] == [False, True]
    middle.backward()
    assert close(x.grad, 2 * x.detach() * (x * x).exp())
    del middle
    gc.collect()
    assert references[0]() is None


@MAKERS
@pytest.mark.parametrize("hooked", [False, True], ids=["bare", "with hooks"])
def test_a_long_chain_is_freed_without_recursion(make, hooked):
    y = leaf([1.0])
    markers = []
    for _ in range(2000):
        y = make(y)
        if hooked:
            marker = Marker()
            markers.append(weakref.ref(marker))
            y.grad_fn.register_hook(lambda i, o, m=marker: None)
    y.grad_fn.metadata["mine"] = marker = Marker()
    markers.append(weakref.ref(marker))
    del y, marker
    gc.collect()
    assert {reference() for reference in markers} == {None}


# --- saved values ----------------------------------------------------------------------------------------------------

SAVING = {
    "operator, operand": lambda x: x * x,
    "operator, result": lambda x: x.exp(),
    "function, operand": Square.apply,
    "function, result": Exp.apply,
}


@pytest.mark.parametrize("name", SAVING)
def test_what_a_node_saved_is_freed_with_the_graph(name, freed_by_reference_count):
    x = leaf([1.0])
    with freed_by_reference_count() as watch:
        operand = x * 1
        watch(operand)
        y = SAVING[name](operand)
        watch(y)
        del operand, y


@pytest.mark.parametrize("name", ["operator, operand", "function, operand"])
def test_an_operand_that_was_saved_is_freed_by_the_backward(name):
    operand = leaf([1.0]) * 1
    reference = weakref.ref(operand)
    y = SAVING[name](operand)
    del operand
    assert reference() is not None
    y.backward()
    assert reference() is None


def test_an_operand_that_was_saved_twice_is_freed_by_the_second_backward():
    operand = leaf([1.0]) * 1
    reference = weakref.ref(operand)
    y, z = operand * operand, operand.sin()
    del operand
    y.backward(torch.ones(1, dtype=torch.float64), retain_graph=True)
    y.backward()
    assert reference() is not None
    del z
    assert reference() is None
