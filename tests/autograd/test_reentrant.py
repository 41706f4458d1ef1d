"""Backward passes inside backward passes: from custom functions and from hooks."""

import pytest
from library import close, leaf, torch

Function = torch.autograd.Function


class Inner(Function):
    """x -> 2 x, whose backward runs a backward of its own for the sum of x squared."""

    @staticmethod
    def forward(ctx, x):
        ctx.x = x.detach().clone()
        return x * 2

    @staticmethod
    def backward(ctx, g):
        with torch.enable_grad():
            x = ctx.x.requires_grad_()
            (x * x).sum().backward()
        return g * x.grad


def test_a_backward_inside_a_backward():
    x = leaf([1.0, 2.0])
    Inner.apply(x).sum().backward()
    assert close(x.grad, [2.0, 4.0])


def test_an_error_in_the_inner_backward_surfaces():
    class Broken(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise KeyError("inner")

    class Outer(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            with torch.enable_grad():
                Broken.apply(leaf([1.0])).sum().backward()
            return g

    x = leaf([1.0])
    with pytest.raises(KeyError, match="inner"):
        Outer.apply(x).backward()
    (x * 2).backward()
    assert close(x.grad, [2.0])


@pytest.mark.parametrize("depth", [1, 50, 2000])
def test_deep_nesting(depth):
    class Nest(Function):
        @staticmethod
        def forward(ctx, x, left):
            ctx.x, ctx.left = x.detach().clone(), left
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            if ctx.left == 0:
                return g, None
            with torch.enable_grad():
                x = ctx.x.requires_grad_()
                Nest.apply(x, ctx.left - 1).backward()
            return g + x.grad, None

    x = leaf([1.0])
    Nest.apply(x, depth).backward()
    assert close(x.grad, [depth + 1.0])


def test_an_inner_backward_finishes_before_the_outer_goes_on():
    order = []

    class Note(Function):
        @staticmethod
        def forward(ctx, x, name):
            ctx.name = name
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            order.append(ctx.name)
            return g, None

    class Nest(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            order.append("nest begins")
            with torch.enable_grad():
                y = leaf([1.0])
                for k in range(3):
                    y = Note.apply(y, f"inner {k}")
                y.backward()
            order.append("nest ends")
            return g

    x = leaf([1.0])
    a = Note.apply(x, "a")
    b = Nest.apply(x)
    (a + b).backward()
    assert order == ["nest begins", "inner 2", "inner 1", "inner 0", "nest ends", "a"]


def test_a_hook_of_a_leaf_may_run_a_backward_that_reaches_the_leaf():
    x = leaf([2.0])
    other = leaf([3.0])

    def hook(g):
        with torch.enable_grad():
            (other * other).sum().backward()
        return g + other.grad

    x.register_hook(hook)
    (x * 5).backward()
    assert close(x.grad, [11.0])
    assert close(other.grad, [6.0])


def test_a_hook_of_a_leaf_may_change_its_grad_and_run_a_backward():
    x = leaf([2.0])
    calls = []

    def hook(g):
        if calls:
            return
        calls.append(1)
        with torch.enable_grad():
            (x * x).sum().backward()
        x.grad.mul_(10)

    handle = x.register_hook(hook)
    (x * 5).backward()
    handle.remove()
    assert close(x.grad, [45.0])


def test_a_hook_of_a_non_leaf_may_run_a_backward_through_the_leaf():
    x = leaf([2.0])
    y = x * 3

    def hook(g):
        with torch.enable_grad():
            (x * x).sum().backward()
        return g

    y.register_hook(hook)
    (y * y).backward()
    assert close(x.grad, [36.0 + 4.0])


@pytest.mark.parametrize("create_graph", [False, True])
def test_the_mode_inside_a_backward_is_restored_after_an_inner_one(create_graph):
    modes = []

    class Nest(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            modes.append(torch.is_grad_enabled())
            with torch.enable_grad():
                leaf([1.0]).exp().backward()
                modes.append(torch.is_grad_enabled())
            modes.append(torch.is_grad_enabled())
            return g

    x = leaf([1.0])
    torch.autograd.grad(Nest.apply(x), x, create_graph=create_graph)
    assert modes == [create_graph, True, create_graph]
    assert torch.is_grad_enabled()


def test_the_retained_graph_of_an_outer_backward_is_independent_of_an_inner_one():
    x = leaf([2.0])
    y = x * x

    def hook(g):
        with torch.enable_grad():
            leaf([1.0]).exp().backward()

    y.register_hook(hook)
    y.backward(retain_graph=True)
    y.backward()
    assert close(x.grad, [8.0])


# --- callbacks of the engine -----------------------------------------------------------------------------------------


def queue(callback):
    torch.autograd.Variable._execution_engine.queue_callback(callback)


def note_when_done(log, name):
    class Note(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            queue(lambda: log.append(f"{name} done"))
            log.append(name)
            return g

    return Note.apply


def test_a_callback_runs_once_at_the_end_of_the_backward():
    log = []
    x = leaf([1.0])
    x.register_hook(lambda g: log.append("leaf"))
    note_when_done(log, "node")(x).backward()
    assert log == ["node", "leaf", "node done"]


def test_a_callback_may_queue_another():
    log = []

    class Note(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            queue(lambda: (log.append("first"), queue(lambda: log.append("second"))))
            return g

    Note.apply(leaf([1.0])).backward()
    assert log == ["first", "second"]


def test_callbacks_belong_to_the_backward_that_queued_them():
    log = []

    class Nest(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            queue(lambda: log.append("outer done"))
            with torch.enable_grad():
                note_when_done(log, "inner")(leaf([1.0])).backward()
            return g

    Nest.apply(leaf([1.0])).backward()
    assert log == ["inner", "inner done", "outer done"]


@pytest.mark.parametrize("at", ["outer", "inner", "both"])
def test_a_callback_runs_once_at_the_end_of_its_own_level(at):
    log = []

    class Nest(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            if at != "inner":
                queue(lambda: log.append("outer done"))
            with torch.enable_grad():
                inner = note_when_done(log, "inner") if at != "outer" else lambda x: x * 2
                inner(inner(leaf([1.0]))).backward()
            log.append("outer goes on")
            return g

    x = leaf([1.0])
    x.register_hook(lambda g: log.append("leaf"))
    Nest.apply(x).backward()
    inner = [] if at == "outer" else ["inner", "inner", "inner done", "inner done"]
    assert log == [*inner, "outer goes on", "leaf", *([] if at == "inner" else ["outer done"])]


def test_a_callback_needs_a_backward():
    with pytest.raises(RuntimeError, match="Final callbacks can only be installed during backward pass"):
        queue(print)
