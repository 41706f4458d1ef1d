"""The nodes that custom functions leave: the graph of their derivatives, undefined gradients, what they saved."""

import pytest
from library import close, leaf, pellucid_only, torch

Function = torch.autograd.Function
grad = torch.autograd.grad
FREED = "Trying to backward through the graph a second time"


class Affine(Function):
    """x + k y + x y."""

    @staticmethod
    def forward(ctx, x, k, y):
        ctx.k = k
        ctx.save_for_backward(x, y)
        return x + k * y + x * y

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g + g * y, None, g * ctx.k + g * x


class AffineOnce(Affine):
    """The same, with a derivative that cannot be differentiated."""

    backward = staticmethod(torch.autograd.function.once_differentiable(Affine.backward))


class Stop(Function):
    """The identity, through which no gradient goes."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return None


def describe(node):
    """A graph as text: names of classes, with what they lead to in parentheses."""
    if node is None:
        return "None"
    return f"{type(node).__name__}({', '.join(describe(child) for child, _ in node.next_functions)})"


# --- the graph of a derivative ---------------------------------------------------------------------------------------


def test_the_graph_of_the_derivative_of_a_function():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    by_x, by_y = grad(Affine.apply(x, 2, y), (x, y), leaf([1.0, 1.0]), create_graph=True)
    assert close(by_x, [4.0, 5.0])
    assert close(by_y, [3.0, 4.0])
    product = "MulBackward0(AccumulateGrad(), AccumulateGrad())"
    assert describe(by_x.grad_fn) == f"AddBackward0(AccumulateGrad(), {product})"
    assert describe(by_y.grad_fn) == f"AddBackward0(MulBackward0(AccumulateGrad(), None), {product})"


def test_the_graph_of_a_derivative_that_cannot_be_differentiated_ends_in_an_error():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    derivatives = grad(AffineOnce.apply(x, 2, y), (x, y), leaf([1.0, 1.0]), create_graph=True)
    for g in derivatives:
        assert type(g.grad_fn).__name__ == "Error"
        with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked with"):
            g.sum().backward()


def test_a_derivative_that_cannot_be_differentiated_of_a_constant_gradient_is_constant():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    derivatives = grad(AffineOnce.apply(x, 2, y).sum(), (x, y), create_graph=True)
    assert not any(g.requires_grad for g in derivatives)


# --- undefined gradients ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("materialize", [True, False])
def test_where_no_gradient_arrives_at_all(materialize):
    seen = []

    class Asks(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            seen.append(g if g is None else g.tolist())
            return g

    x = leaf([1.0])
    Stop.apply(Asks.apply(x)).backward()
    assert seen == [[0.0] if materialize else None]
    assert x.grad is None if not materialize else close(x.grad, [0.0])


@pytest.mark.parametrize("materialize", [True, False])
def test_the_gradient_of_a_non_differentiable_output_may_arrive_as_none(materialize):
    seen = []

    class Three(Function):
        @staticmethod
        def forward(ctx, x):
            ctx._materialize_non_diff_grads = materialize
            a, b, c = x + 1, x + 2, x + 3
            ctx.mark_non_differentiable(a)
            return a, b, c

        @staticmethod
        def backward(ctx, *gs):
            seen.extend(g if g is None else g.tolist() for g in gs)
            return gs[1]

    Three.apply(leaf([1.0]))[1].backward()
    assert seen == [[0.0] if materialize else None, [1.0], [0.0]]


# --- saved tensors ---------------------------------------------------------------------------------------------------


class Exp(Function):
    """The exponential function, which saves its input, its result and None."""

    @staticmethod
    def forward(ctx, x):
        out = x.exp()
        ctx.save_for_backward(x, out, None)
        return out

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[1]


def test_the_saved_tensors_of_a_node():
    x = leaf([1.0])
    y = Exp.apply(x)
    saved = y.grad_fn.saved_tensors
    assert saved[0] is x
    assert close(saved[1], y)
    assert saved[1].grad_fn is y.grad_fn
    assert saved[2] is None


def test_one_saved_tensor_of_a_function_may_be_given_hooks():
    x = leaf([1.0])
    y = Exp.apply(x)
    y.grad_fn._raw_saved_tensors[1].register_hooks(lambda t: t * 10, lambda t: t * 5)
    y.backward()
    assert close(x.grad, 50 * x.exp())


def test_the_hooks_of_one_saved_input_of_a_function():
    x, y = leaf([1.0]), leaf([3.0])
    out = Affine.apply(x, 2, y)
    out.grad_fn._raw_saved_tensors[0].register_hooks(lambda t: t * 10, lambda t: t * 5)
    out.backward()
    assert close(x.grad, [4.0])
    assert close(y.grad, [52.0])


def test_what_is_refused_about_raw_saved_tensors():
    node = Exp.apply(leaf([1.0])).grad_fn
    first, second, nothing = node._raw_saved_tensors

    def same(t):
        return t

    first.register_hooks(same, same)
    with pytest.raises(RuntimeError, match="whose hooks have already been set"):
        first.register_hooks(same, same)
    with pytest.raises(RuntimeError, match="with value None is forbidden"):
        nothing.register_hooks(same, same)
    with pytest.raises(TypeError, match=r"register_hooks\(\)"):
        second.register_hooks(1, 2)


def test_the_saved_tensors_of_a_node_are_gone_after_the_backward():
    y = Exp.apply(leaf([1.0]))
    y.backward()
    with pytest.raises(RuntimeError, match=FREED):
        assert y.grad_fn._raw_saved_tensors
    with pytest.raises(RuntimeError, match=FREED):
        assert y.grad_fn.saved_tensors


@pellucid_only("PyTorch crashes: the object outlives what it speaks of")
def test_a_raw_saved_tensor_that_was_kept_refuses_hooks_after_the_backward():
    y = Exp.apply(leaf([1.0]))
    raw = y.grad_fn._raw_saved_tensors[1]
    y.backward()
    assert raw.data is None
    with pytest.raises(RuntimeError, match="after it has been freed"):
        raw.register_hooks(lambda t: t, lambda t: t)


def test_an_intermediate_that_was_detached_may_be_saved_under_hooks():
    class Cube(Function):
        @staticmethod
        def forward(ctx, x):
            with torch.enable_grad():
                square = x.detach().requires_grad_() ** 2
            square.detach_()
            ctx.save_for_backward(x, square)
            return x * square

        @staticmethod
        def backward(ctx, g):
            _, square = ctx.saved_tensors
            assert not square.requires_grad
            return 3 * g * square

    x = leaf([2.0])
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        out = Cube.apply(x)
    out.backward()
    assert close(x.grad, [12.0])


# --- old ways --------------------------------------------------------------------------------------------------------


def test_a_node_of_a_function_has_its_name():
    class Id(Function):
        @staticmethod
        def forward(ctx, x):
            return x

        @staticmethod
        def backward(ctx, g):
            return g

    node = Id.apply(leaf([1.0])).grad_fn
    assert node.name() == type(node).__name__ == "IdBackward"
