"""`Function`: what users write and what they get. Not here: writes in place and mistakes."""

import pytest
from library import close, const, leaf, pellucid_only, torch

Function = torch.autograd.Function
grad = torch.autograd.grad


class Product(Function):
    """scale * x * y, with a number as third argument."""

    @staticmethod
    def forward(ctx, x, y, scale):
        ctx.save_for_backward(x, y)
        ctx.scale = scale
        return x * y * scale

    @staticmethod
    def backward(ctx, g):
        x, y = ctx.saved_tensors
        return g * y * ctx.scale, g * x * ctx.scale, None


class Identity(Function):
    """Returns its input itself; the gradient is tripled."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 3


def make(forward, backward, **members):
    """A Function of two plain functions."""
    return type("Made", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward), **members})


# --- values ----------------------------------------------------------------------------------------------------------


def test_a_function_gives_value_and_gradients():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    out = Product.apply(x, y, 10)
    assert close(out, [30.0, 80.0])
    out.sum().backward()
    assert close(x.grad, [30.0, 40.0])
    assert close(y.grad, [10.0, 20.0])


def test_a_function_can_be_differentiated_twice():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    assert torch.autograd.gradcheck(lambda x, y: Product.apply(x, y, 3), (x, y))
    assert torch.autograd.gradgradcheck(lambda x, y: Product.apply(x, y, 3), (x, y))


def test_the_node_is_named_after_the_function():
    out = Product.apply(leaf([1.0]), leaf([2.0]), 1)
    assert out.grad_fn.name() == "ProductBackward"
    assert isinstance(out.grad_fn, Product._backward_cls)


def test_a_function_without_tensors_is_a_plain_call():
    double = make(lambda ctx, n: 2 * n, lambda ctx, g: None)
    assert double.apply(21) == 42


def test_a_function_of_constants_is_not_recorded():
    out = Product.apply(const([1.0]), const([2.0]), 3)
    assert not out.requires_grad
    assert out.grad_fn is None


def test_needs_input_grad_tells_which_gradients_are_wanted():
    seen = []

    def backward(ctx, g):
        seen.append(ctx.needs_input_grad)
        return g, None, g

    three = make(lambda ctx, a, b, c: a + b + c, backward)
    three.apply(leaf([1.0]), const([2.0]), leaf([3.0])).backward()
    assert seen == [(True, False, True)]


def test_a_saved_result_serves_two_derivatives():
    def forward(ctx, x):
        out = x**3
        ctx.save_for_backward(x, out)
        return out

    def backward(ctx, g):
        x, out = ctx.saved_tensors
        return g * 3 * out / x

    cube = make(forward, backward)
    x = leaf([2.0])
    out = cube.apply(x)
    (first,) = grad(out, x, create_graph=True)
    (second,) = grad(first, x, retain_graph=True)
    assert [first.item(), second.item()] == pytest.approx([12.0, 12.0])
    del first, second
    assert close(grad(out, x)[0], [12.0])
    assert torch.autograd.gradcheck(cube.apply, leaf([0.5, 2.0]))
    assert torch.autograd.gradgradcheck(cube.apply, leaf([0.5, 2.0]))


# --- inputs and outputs of other kinds -------------------------------------------------------------------------------


def test_outputs_may_be_of_any_kind():
    class Mixed(Function):
        @staticmethod
        def forward(ctx, x, flag, name):
            return 1, x * 2, None, flag, x * 3, name

        @staticmethod
        def backward(ctx, *gs):
            assert [g is None for g in gs] == [True, False, True, True, False, True]
            return gs[1] * 2 + gs[4] * 3, None, None

    x = leaf([1.0])
    one, a, nothing, flag, b, name = Mixed.apply(x, True, "text")
    assert (one, nothing, flag, name) == (1, None, True, "text")
    torch.autograd.backward([a, b], [const([10.0]), const([100.0])])
    assert close(x.grad, [320.0])


def test_a_tuple_of_one_output_stays_a_tuple():
    out = make(lambda ctx, x: (x * 2,), lambda ctx, g: g * 2).apply(leaf([1.0]))
    assert isinstance(out, tuple)
    assert len(out) == 1


@pytest.mark.parametrize("shape", [(), (2,)], ids=["0-d", "1-d"])
@pytest.mark.parametrize("is_leaf", [True, False], ids=["leaf", "non-leaf"])
def test_an_input_returned_as_it_is_still_gets_the_custom_gradient(is_leaf, shape):
    x = torch.ones(shape, dtype=torch.float64, requires_grad=True)
    given = x if is_leaf else x * 1
    out = Identity.apply(given)
    assert out is not given
    assert out.grad_fn.name() == "IdentityBackward"
    out.sum().backward()
    assert close(x.grad, torch.full(shape, 3.0, dtype=torch.float64))


def test_a_hook_on_a_returned_leaf_sees_the_gradient_of_that_output_only():
    both = make(lambda ctx, x, y: (x, x * y), lambda ctx, g, h: (g + h, h))
    x, y = leaf([1.0]), leaf([5.0])
    same, product = both.apply(x, y)
    seen = []
    same.register_hook(lambda g: seen.append(g.item()))
    (same * 3 + product * 7).backward()
    assert seen == [3.0]
    assert close(x.grad, [10.0])


def test_an_input_returned_under_no_grad():
    x = leaf([1.0])
    with torch.no_grad():
        out = Identity.apply(x)
    assert close(out, [1.0])
    (x * 1).backward()
    assert close(x.grad, [1.0])


def test_a_tensor_returned_twice_is_one_object():
    def forward(ctx, x):
        out = x * 2
        return out, out

    twice = make(forward, lambda ctx, g, h: (g + h) * 2)
    x = leaf([1.0, 2.0])
    first, second = twice.apply(x)
    assert first is second
    for function in (lambda x: twice.apply(x)[0], lambda x: twice.apply(x)[1] ** 2):
        assert torch.autograd.gradcheck(function, x)
        assert torch.autograd.gradgradcheck(function, x)


def test_numbers_of_an_output_survive_being_saved():
    numbers = []

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clone()

    def backward(ctx, g):
        numbers.append(ctx.saved_tensors[0].output_nr)
        return g

    keep = make(forward, backward)
    parts = leaf([1.0, 2.0, 3.0]).unbind()
    for part in parts:
        keep.apply(part).backward(retain_graph=True)
    assert numbers == [0, 1, 2]


def test_none_among_saved_tensors():
    seen = []

    def forward(ctx, x):
        ctx.save_for_backward(None, x, None)
        return x * x

    def backward(ctx, g):
        seen.append(ctx.saved_tensors)
        return 2 * g * ctx.saved_tensors[1]

    x = leaf([3.0])
    make(forward, backward).apply(x).backward()
    assert seen[0][0] is None
    assert seen[0][2] is None
    assert close(x.grad, [6.0])


# --- undefined gradients ---------------------------------------------------------------------------------------------


def test_a_backward_that_returns_none_leaves_grad_none():
    x = leaf([1.0])
    stop = make(lambda ctx, x: x * 2, lambda ctx, g: None)
    stop.apply(x).backward()
    assert x.grad is None
    assert grad(stop.apply(x), x, allow_unused=True) == (None,)


@pytest.mark.parametrize("materialize", [True, False])
def test_a_missing_gradient_arrives_as_zeros_or_none(materialize):
    seen = []

    def forward(ctx, x):
        if not materialize:
            ctx.set_materialize_grads(False)
        return x * 2, x * 3

    def backward(ctx, g, h):
        seen.append(h)
        return g * 2

    make(forward, backward).apply(leaf([1.0, 2.0]))[0].sum().backward()
    assert close(seen[0], [0.0, 0.0]) if materialize else seen == [None]


def test_an_output_marked_non_differentiable_does_not_require_grad():
    def forward(ctx, x):
        mask = x > 0
        ctx.mark_non_differentiable(mask)
        ctx.save_for_backward(mask)
        return mask, x * mask

    positive = make(forward, lambda ctx, _, g: g * ctx.saved_tensors[0])
    x = leaf([-1.0, 2.0])
    mask, out = positive.apply(x)
    assert not mask.requires_grad
    assert out.requires_grad
    out.sum().backward()
    assert close(x.grad, [0.0, 1.0])


def test_the_gradient_of_a_non_differentiable_output_arrives_as_zeros():
    seen = []

    def forward(ctx, x):
        a, b = x + 1, x + 2
        ctx.mark_non_differentiable(a)
        return a, b

    def backward(ctx, g, h):
        seen.append((g.tolist(), h.tolist()))
        return h

    a, b = make(forward, backward).apply(leaf([1.0, 2.0]))
    assert not a.requires_grad
    b.sum().backward()
    assert seen == [([0.0, 0.0], [1.0, 1.0])]


def test_a_non_differentiable_output_may_pass_through_another_function():
    def forward(ctx, x):
        out = x.clone()
        ctx.mark_non_differentiable(out)
        return out

    cut = make(forward, lambda ctx, g: pytest.fail("not differentiable"))
    x = leaf([1.0])
    out = Identity.apply(cut.apply(x))
    assert not out.requires_grad
    (out + x).backward()
    assert close(x.grad, [1.0])


def test_none_from_a_backward_passes_upstream():
    stop = make(lambda ctx, x: x.clone(), lambda ctx, g: None)
    x = leaf([1.0])
    (stop.apply(x * x) + x).backward()
    assert close(x.grad, [1.0])


# --- setup_context ---------------------------------------------------------------------------------------------------


def test_forward_without_context_and_setup_context():
    class Cube(Function):
        @staticmethod
        def forward(x):
            return x**3

        @staticmethod
        def setup_context(ctx, inputs, output):
            (x,) = inputs
            ctx.save_for_backward(x)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 3 * x**2

    x = leaf([2.0])
    Cube.apply(x).backward()
    assert close(x.grad, [12.0])
    assert torch.autograd.gradgradcheck(Cube.apply, leaf([1.0, 2.0]))


def test_setup_context_sees_all_inputs_and_outputs():
    class Scaled(Function):
        @staticmethod
        def forward(x, scale, shape):
            return (x * scale).reshape(shape), scale

        @staticmethod
        def setup_context(ctx, inputs, output):
            x, ctx.scale, _ = inputs
            _, number = output
            assert number == ctx.scale
            ctx.shape = x.shape

        @staticmethod
        def backward(ctx, g, _):
            return (g * ctx.scale).reshape(ctx.shape), None, None

    x = leaf([1.0, 2.0])
    out, number = Scaled.apply(x, 5, (2, 1))
    assert (out.shape, number) == ((2, 1), 5)
    out.sum().backward()
    assert close(x.grad, [5.0, 5.0])


def test_setup_context_sees_default_values():
    seen = []

    class Scaled(Function):
        @classmethod
        def forward(cls, x, scale=7):
            return x * scale

        @classmethod
        def setup_context(cls, ctx, inputs, output):
            seen.append(inputs[1:])
            ctx.scale = inputs[1]

        @classmethod
        def backward(cls, ctx, g):
            return g * ctx.scale, None

    x = leaf([1.0])
    Scaled.apply(x).backward()
    Scaled.apply(x, 2).backward()
    assert seen == [(7,), (2,)]
    assert close(x.grad, [9.0])


# --- once_differentiable ---------------------------------------------------------------------------------------------


def test_a_backward_that_is_once_differentiable_is_not_recorded():
    modes = []

    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            modes.append(torch.is_grad_enabled())
            return 2 * g * ctx.saved_tensors[0]

    x, y = leaf([3.0]), leaf([5.0])
    (first,) = grad(Square.apply(x) * y, x, create_graph=True)
    assert modes == [False]
    assert close(first, [30.0])
    assert first.requires_grad
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked with"):
        first.backward()


# --- grad mode -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("create_graph", [False, True])
def test_forward_is_never_recorded_and_backward_only_under_create_graph(create_graph):
    modes = []

    def forward(ctx, x):
        modes.append(torch.is_grad_enabled())
        return x * 2

    def backward(ctx, g):
        modes.append(torch.is_grad_enabled())
        return g * 2

    x = leaf([1.0])
    grad(make(forward, backward).apply(x), x, create_graph=create_graph)
    assert modes == [False, create_graph]
    assert torch.is_grad_enabled()


# --- the life of the context ------------------------------------------------------------------------------------------


def test_saved_variables_is_an_old_name():
    def backward(ctx, g):
        with pytest.warns(DeprecationWarning, match="deprecated"):
            (x,) = ctx.saved_variables
        return g * x

    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x / 2

    x = leaf([3.0])
    make(forward, backward).apply(x).backward()
    assert close(x.grad, [3.0])


def test_saved_tensors_of_a_context_that_was_kept_are_freed_with_the_graph():
    kept = []

    def forward(ctx, x):
        ctx.save_for_backward(x)
        kept.append(ctx)
        return x * 2

    out = make(forward, lambda ctx, g: g * 2).apply(leaf([1.0]))
    assert close(kept[0].saved_tensors[0], [1.0])
    out.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        assert kept[0].saved_tensors


def test_overwriting_a_saved_input_raises():
    y = leaf([1.0]) * 1
    out = Product.apply(y, y, 1)
    y.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


@pellucid_only("PyTorch frees it at the next garbage collection")
def test_a_result_kept_on_the_context_makes_no_cycle(freed_by_reference_count):
    def forward(ctx, x):
        out = x * 2
        ctx.kept = out
        return out

    function = make(forward, lambda ctx, g: g * ctx.kept / ctx.kept * 2)
    x = leaf([3.0])
    with freed_by_reference_count() as watch:
        out = function.apply(x)
        watch(out.grad_fn)
        out.backward()
        del out
    assert close(x.grad, [2.0])


# --- attributes of the class and of the node -------------------------------------------------------------------------


def test_the_defaults_for_vmap():
    assert Product.generate_vmap_rule is False
    with pytest.raises(NotImplementedError, match="vmap"):
        Product.vmap(None, None)


def test_a_node_keeps_what_forward_put_on_the_context():
    out = Product.apply(leaf([1.0]), leaf([2.0]), 7)
    assert out.grad_fn.scale == 7
    assert out.grad_fn.needs_input_grad == (True, True, False)
    with pytest.raises(AttributeError):
        assert out.grad_fn.something_else


def test_an_in_place_function_returns_the_same_object():
    class Write(torch.autograd.function.InplaceFunction):
        @staticmethod
        def forward(ctx, x):
            ctx.mark_dirty(x)
            return x.add_(1)

        @staticmethod
        def backward(ctx, g):
            return g

    y = leaf([1.0]) * 1
    assert Write.apply(y) is y
    assert isinstance(y.grad_fn, Write._backward_cls)


def test_backward_may_ask_whether_the_graph_is_wanted_again():
    x = leaf([1.0])
    out = Product.apply(x, x, 1)
    out.backward(retain_graph=True)
    assert close(out.grad_fn.saved_tensors[0], [1.0])
    out.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        assert out.grad_fn.saved_tensors
