"""Custom Functions inside `vmap`, and inside the transforms that nest with it."""

import pytest
from library import close, const, leaf, pellucid_only, torch

Function, func = torch.autograd.Function, torch.func


class Batched(Function):
    """x y and exp(x), with derivatives for x that are twice too large in the first: so that they can be told apart."""

    generate_vmap_rule = True

    @staticmethod
    def forward(x, y):
        return x * y, x.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(*inputs, output[1])
        ctx.save_for_forward(*inputs, output[1])

    @staticmethod
    def backward(ctx, g, h):
        x, y, e = ctx.saved_tensors
        return 2 * g * y + h * e, g * x

    @staticmethod
    def jvp(ctx, t, u):
        x, y, e = ctx.saved_tensors
        return 2 * t * y + x * u, t * e


class ByRule(Batched):
    """The same with a rule for batches."""

    generate_vmap_rule = False

    @staticmethod
    def vmap(info, in_dims, x, y):
        assert info.batch_size == 3
        assert info.randomness == "error"
        y = y if in_dims[1] == 0 else y.expand(x.shape)
        x = x if in_dims[0] == 0 else x.expand(y.shape)
        return Batched.apply(x, y), (0, 0)


X, Y = [[0.1, 0.2], [0.3, 0.4], [0.5, 0.6]], [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
BOTH = pytest.mark.parametrize("custom", [Batched, ByRule])


@BOTH
@pytest.mark.parametrize("in_dims", [(0, 0), (0, None), (None, 0)])
def test_a_function_on_a_batch(custom, in_dims):
    x, y = (const(v) if dim == 0 else const(v)[0] for v, dim in zip((X, Y), in_dims, strict=True))
    product, exponential = func.vmap(custom.apply, in_dims)(x, y)
    assert close(product, x * y)
    assert close(exponential, x.exp().expand(3, 2))


@BOTH
def test_gradients_of_a_function_on_a_batch(custom):
    x, y = leaf(X), leaf(Y[0])
    product, exponential = func.vmap(custom.apply, (0, None))(x, y)
    of_x, of_y = torch.autograd.grad((product + exponential).sum(), (x, y), create_graph=True)
    assert close(of_x, 2 * y + x.exp())
    assert close(of_y, x.sum(0))
    assert close(torch.autograd.grad(of_x.sum(), x)[0], x.exp())


@BOTH
def test_gradients_inside_a_batch(custom):
    x, y = const(X), const(Y)
    of_x, of_y = func.vmap(func.grad(lambda x, y: sum(r.sum() for r in custom.apply(x, y)), (0, 1)))(x, y)
    assert close(of_x, 2 * y + x.exp())
    assert close(of_y, x)


@BOTH
def test_forward_mode_of_a_function_on_a_batch(custom):
    x, y = const(X), const(Y)
    expected = 2 * y * y + x * x
    for tangents in (
        func.jvp(func.vmap(custom.apply), (x, y), (y, x))[1],
        func.vmap(lambda x, y: func.jvp(custom.apply, (x, y), (y, x))[1])(x, y),
    ):
        assert close(tangents[0], expected)
        assert close(tangents[1], x.exp() * y)
    one = func.jvp(func.vmap(custom.apply, (0, None)), (x, y[0]), (y, x[0]))[1]
    assert close(one[0], 2 * y * y[0] + x * x[0])


@BOTH
def test_jacobians_of_a_function(custom):
    x, y = const(X[0]), const(Y[0])
    for jacobian in (func.jacfwd, func.jacrev):
        product, exponential = jacobian(lambda x: custom.apply(x, y))(x)
        assert close(product, torch.diag(2 * y))
        assert close(exponential, torch.diag(x.exp()))


@pellucid_only("PyTorch's second tangents are zero")
def test_forward_mode_twice():
    x, y = const(X[0]), const(Y[0])
    second = func.jvp(lambda x: func.jvp(lambda x: Batched.apply(x, y)[1], (x,), (y,))[1], (x,), (y,))[1]
    assert close(second, x.exp() * y * y)


def test_what_a_function_says_of_its_results_holds_on_a_batch():
    class Custom(Function):
        generate_vmap_rule = True

        @staticmethod
        def forward(x):
            return x * 2, x.long()

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.mark_non_differentiable(output[1])
            ctx.set_materialize_grads(False)

        @staticmethod
        def backward(ctx, g, h):
            assert h is None
            return g * 3

    x = leaf(Y)
    twice, whole = func.vmap(Custom.apply)(x)
    assert close(whole, Y)
    assert not whole.requires_grad
    assert close(torch.autograd.grad(twice.sum(), x)[0], [[3.0, 3.0]] * 3)


class NoRule(Batched):
    """A Function that cannot be batched."""

    generate_vmap_rule = False


class TwoRules(ByRule):
    """A Function with two ways to be batched."""

    generate_vmap_rule = True


class AllInForward(Function):
    """A Function whose context cannot be filled apart."""

    generate_vmap_rule = True

    @staticmethod
    def forward(ctx, x, y):
        return x * y


class OneReturn(NoRule):
    """A Function with a rule that returns too little."""

    @staticmethod
    def vmap(info, in_dims, x, y):
        return x


class ThreeReturns(NoRule):
    """A Function with a rule that returns too much."""

    @staticmethod
    def vmap(info, in_dims, x, y):
        return x, 0, 0


class WrongDims(NoRule):
    """A Function with a rule that returns two outputs and three dimensions."""

    @staticmethod
    def vmap(info, in_dims, x, y):
        return (x, y), (0, 0, 0)


@pytest.mark.parametrize(
    ("custom", "message"),
    [
        (NoRule, "You tried to vmap over NoRule, but it does not have vmap support"),
        (TwoRules, "You tried to vmap over TwoRules, but it has both generate_vmap_rule=True and an overrid"),
        (AllInForward, "it must override the setup_context staticmethod"),
        (OneReturn, "Expected the vmap staticmethod to have two returns, an output and out_dims.*Got a <class"),
        (ThreeReturns, "Expected the vmap staticmethod to have two returns.*Got 3 returns instead"),
        (WrongDims, r"vmap staticmethod returned an incompatible \(output, out_dims\) tuple"),
    ],
)
def test_functions_that_cannot_be_batched(custom, message):
    with pytest.raises(RuntimeError, match=message):
        func.vmap(custom.apply)(const(X), const(Y))


def test_levels_are_closed_after_an_error():
    with pytest.raises(RuntimeError, match="NoRule"):
        func.vmap(NoRule.apply)(const(X), const(Y))
    assert close(func.vmap(Batched.apply)(const(X), const(Y))[0], const(X) * const(Y))
