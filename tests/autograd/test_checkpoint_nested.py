"""Checkpoints inside checkpoints and around derivatives, to third order."""

import pytest
from checkpoints import EARLY_STOP, checkpoint, lib, mark, nodes_of, reentrant, wave
from library import close, const, leaf, torch

grad = torch.autograd.grad


# --- nested checkpoints ----------------------------------------------------------------------------------------------


def derivative(function):
    """The function's derivative, itself differentiable."""

    def wrapped(x):
        with torch.enable_grad():
            (g,) = grad(function(x), x, create_graph=True)
        return g

    return wrapped


def kept(function):
    """The function in a checkpoint."""
    return lambda *args, **kwargs: checkpoint(function, *args, **kwargs)


d, c = derivative, kept
NESTINGS = {
    "c": (lambda f: f, lambda f: c(f)),
    "cc": (lambda f: f, lambda f: c(c(f))),
    "dc": (lambda f: d(f), lambda f: d(c(f))),
    "dcc": (lambda f: d(f), lambda f: d(c(c(f)))),
    "dcd": (lambda f: d(d(f)), lambda f: d(c(d(f)))),
    "cddc": (lambda f: d(d(f)), lambda f: c(d(d(c(f))))),
    "dcdc": (lambda f: d(d(f)), lambda f: d(c(d(c(f))))),
    "dcddc": (lambda f: d(d(d(f))), lambda f: d(c(d(d(c(f)))))),
    "dcdcdc": (lambda f: d(d(d(f))), lambda f: d(c(d(c(d(c(f))))))),
}


def two_children(x):
    """Two checkpoints one after the other."""
    return c(wave)(c(lambda t: t.sin().exp())(x))


@EARLY_STOP
@pytest.mark.parametrize("name", NESTINGS)
@pytest.mark.parametrize("inner", [wave, two_children], ids=["one", "two children"])
def test_nested_checkpoints_and_derivatives(inner, name, early_stop):
    plain, nested = NESTINGS[name]
    a, b = leaf(0.7), leaf(0.7)
    with lib.set_checkpoint_early_stop(early_stop):
        out = nested(inner)(a)
        out.backward()
    expected = plain(wave if inner is wave else lambda x: wave(x.sin().exp()))(b)
    expected.backward()
    assert close(out, expected)
    assert close(a.grad, b.grad)


@EARLY_STOP
@pytest.mark.parametrize("name", NESTINGS)
def test_graphs_of_nested_checkpoints_die_by_reference_counting(name, early_stop, freed_by_reference_count):
    with freed_by_reference_count() as watch, lib.set_checkpoint_early_stop(early_stop):
        out = NESTINGS[name][1](wave)(leaf(0.7))
        for node in nodes_of(out):
            watch(mark(node))
        out.backward(retain_graph=True)
        del out, node


@EARLY_STOP
def test_nested_checkpoints_of_other_things_than_tensors(early_stop):
    def function(k, f, x, text):
        out = c(lambda t: f(t) ** k)(x)
        return k + 1, out, text

    with lib.set_checkpoint_early_stop(early_stop):
        x = leaf(0.7)
        number, out, text = c(c(function))(2, torch.sin, x, "text")
        out.backward()
    assert (number, text) == (3, "text")
    assert close(x.grad, grad(x.sin() ** 2, x)[0])


@EARLY_STOP
def test_nested_checkpoints_pass_keyword_tensors(early_stop):
    def function(x, factor=None):
        return c(lambda t: wave(t * factor))(x)

    with lib.set_checkpoint_early_stop(early_stop):
        x, factor = leaf(0.7), leaf(1.3)
        c(c(function))(x, factor=factor).backward()
    expected = grad(wave(x * factor), [x, factor])
    assert close(x.grad, expected[0])
    assert close(factor.grad, expected[1])


@EARLY_STOP
def test_hooks_on_the_graph_run_once(early_stop):
    counts = []

    def function(x):
        return c(lambda t: t.sin().exp())(x).sin()

    with lib.set_checkpoint_early_stop(early_stop):
        out = c(function)(leaf(0.7))
        for node in nodes_of(out):
            node.register_hook(lambda *grads, n=node: counts.append(n.name()))
        out.backward()
    names = sorted(name for name in counts if not name.endswith("AccumulateGrad"))
    assert names == ["ExpBackward0", "SinBackward0", "SinBackward0"]
    assert len(counts) == 4


@EARLY_STOP
def test_a_backward_from_a_hook(early_stop):
    """A hook differentiates the graph that is being differentiated."""
    seen = []

    def function(x):
        return c(lambda t: t.sin().exp())(x).cos()

    with lib.set_checkpoint_early_stop(early_stop):
        x = leaf(0.7)
        out = c(function)(x)
        middle = c(function)(x)
        out.register_hook(lambda g: seen.append(grad(middle, x, retain_graph=True)[0]))
        out.backward(retain_graph=True)
    expected = grad(x.sin().exp().cos(), x)[0]
    assert close(x.grad, expected)
    assert close(seen[0], expected)


@EARLY_STOP
def test_a_backward_inside_the_function_that_frees_its_graph(early_stop):
    def function(x):
        y = x.sin()
        z = y.cos()
        (g,) = grad(z, x)
        return x.cos() * g

    with lib.set_checkpoint_early_stop(early_stop):
        x = leaf(0.7)
        out = checkpoint(function, x)
        out.backward()
    assert close(out, function(x))
    assert close(x.grad, grad(function(x), x)[0])


@EARLY_STOP
def test_several_backwards_inside_the_function(early_stop):
    def function(x):
        y = x.sin().exp()
        (g,) = grad(y, x, create_graph=True)
        (h,) = grad(g.sin(), x, create_graph=True)
        return h * g * y

    with lib.set_checkpoint_early_stop(early_stop):
        x = leaf(0.7)
        checkpoint(function, x).backward()
    assert close(x.grad, grad(function(x), x)[0])


def test_deep_nesting():
    function = torch.sin
    for _ in range(8):
        function = kept(lambda x, inner=function: inner(x) * 1.1)
    x = leaf(0.7)
    function(x).backward()
    assert close(x.grad, 1.1**8 * torch.cos(const(0.7)))


def test_reentrant_checkpoints_nest():
    """The inner one is first called where nothing is recorded, and says so."""
    x = leaf([0.7])
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        out = reentrant(lambda t: reentrant(wave, t.sin()), x * 1)
    out.sum().backward()
    assert close(x.grad, grad(wave(x.sin()).sum(), x)[0])


