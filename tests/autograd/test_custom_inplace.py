"""Custom functions that write in place or return views: `mark_dirty`, and writes to what a function returned."""

import pytest
from library import close, const, leaf, torch

Function = torch.autograd.Function
FUNCTION_VIEW = "created inside a custom Function"


class DoubleInPlace(Function):
    """Doubles its input in place."""

    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return g * 2


class AddInPlace(Function):
    """Adds three times the second input to the first, in place."""

    @staticmethod
    def forward(ctx, x, y):
        x.add_(y, alpha=3)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx, g):
        return g, g * 3


class Half(Function):
    """A view of the first half of its input; the gradient is tripled."""

    @staticmethod
    def forward(ctx, x):
        ctx.size = x.shape[0]
        return x[: x.shape[0] // 2]

    @staticmethod
    def backward(ctx, g):
        return torch.cat([3 * g, torch.zeros_like(g)])


class Same(Function):
    """Returns its input as it is; the gradient is tripled."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return 3 * g


# --- mark_dirty ------------------------------------------------------------------------------------------------------


def test_a_dirty_input_is_returned_as_the_same_object():
    x = leaf([1.0, 2.0])
    y = x * 1
    version = y._version
    out = DoubleInPlace.apply(y)
    assert out is y
    assert y._version > version
    assert y.grad_fn.name() == "DoubleInPlaceBackward"
    y.sum().backward()
    assert close(x.grad, [2.0, 2.0])


def test_a_dirty_leaf_that_requires_grad_raises():
    with pytest.raises(RuntimeError, match=r"a leaf Variable that requires grad (is being|has been) used in"):
        DoubleInPlace.apply(leaf([1.0]))


def test_a_dirty_view_of_a_leaf_that_requires_grad_raises():
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        DoubleInPlace.apply(x.view_as(x))


def test_a_dirty_input_that_is_a_constant_starts_to_require_grad():
    x, y = const([1.0]), leaf([2.0])
    out = AddInPlace.apply(x, y)
    assert out is x
    assert x.requires_grad
    (x * 5).backward()
    assert close(y.grad, [15.0])


def test_a_dirty_view_rewrites_the_history_of_its_base():
    x = leaf([1.0, 2.0])
    base = x * 1
    DoubleInPlace.apply(base[:1])
    base.sum().backward()
    assert close(x.grad, [2.0, 1.0])


def test_derivatives_of_a_function_that_writes_to_a_view():
    def function(x, y):
        base = x * 1
        AddInPlace.apply(base.narrow(0, 1, 2), y * y)
        return base * base

    x, y = leaf([1.0, 2.0, 3.0]), leaf([0.5, 0.7])
    assert torch.autograd.gradcheck(function, (x, y))
    assert torch.autograd.gradgradcheck(function, (x, y))


def test_a_dirty_view_with_a_second_input_that_is_not_used():
    class Ignore(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.mark_dirty(x)
            return x.mul_(2)

        @staticmethod
        def backward(ctx, g):
            return g * 2, None

    x, y = leaf([1.0, 2.0]), leaf([1.0])
    base = x * 1
    Ignore.apply(base[:1], y)
    base.sum().backward()
    assert close(x.grad, [2.0, 1.0])
    assert y.grad is None


@pytest.mark.parametrize("split", [lambda x: x.unbind(), lambda x: x.split_with_sizes([1, 1])], ids=["unbind", "split"])
def test_a_dirty_input_that_is_one_of_several_views_raises(split):
    view = split(leaf([1.0, 2.0]) * 1)[0]
    with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
        DoubleInPlace.apply(view)


class MarksAnother(Function):
    """Marks as dirty something else than its input."""

    @staticmethod
    def forward(ctx, x, what):
        made = x.clone()
        part = made[:1]
        ctx.mark_dirty({"intermediate": made, "view": part, "forgotten": x}[what])
        return part if what == "view" else made

    @staticmethod
    def backward(ctx, g):
        return g, None


def test_marking_an_intermediate_warns():
    with pytest.warns(UserWarning, match="received a tensor that was not an input"):
        MarksAnother.apply(leaf([1.0, 2.0]), "intermediate")


def test_marking_a_view_of_an_intermediate_raises():
    with pytest.raises(RuntimeError, match="received a tensor that was not an input"):
        MarksAnother.apply(leaf([1.0, 2.0]), "view")


def test_a_dirty_input_must_be_returned():
    with pytest.raises(RuntimeError, match=r"Some elements marked as dirty .* were not returned as output"):
        MarksAnother.apply(leaf([1.0, 2.0]) * 1, "forgotten")


def test_a_dirty_input_among_several_outputs():
    class Both(Function):
        @staticmethod
        def forward(ctx, x, y):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x, x * y

        @staticmethod
        def backward(ctx, g, h):
            return g * 2, h

    x, y = leaf([1.0]), leaf([5.0])
    given = x * 1
    same, product = Both.apply(given, y)
    assert same is given
    (same * 3 + product * 7).backward()
    assert close(x.grad, [6.0])
    assert close(y.grad, [7.0])


def test_a_dirty_input_returned_twice_is_one_object():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x):
            x.mul_(2)
            ctx.mark_dirty(x)
            return x, x

        @staticmethod
        def backward(ctx, g, h):
            return (g + h) * 2

    x = leaf([1.0])
    first, second = Twice.apply(x * 1)
    assert first is second
    with pytest.raises(RuntimeError, match="leaf Variable that requires grad"):
        Twice.apply(x)


# --- views out of functions ------------------------------------------------------------------------------------------


def test_a_view_returned_by_a_function_keeps_the_custom_gradient():
    x = leaf([1.0, 2.0, 3.0, 4.0])
    y = x * 1
    out = Half.apply(y)
    assert out.grad_fn.name() == "HalfBackward"
    assert out.data_ptr() == y.data_ptr()
    out.sum().backward()
    assert close(x.grad, [3.0, 3.0, 0.0, 0.0])


@pytest.mark.parametrize("function", [Half, Same], ids=["view", "input"])
def test_a_view_or_input_returned_by_a_function_must_not_be_written_to(function):
    out = function.apply(leaf([1.0, 2.0]) * 1)
    with pytest.raises(RuntimeError, match=FUNCTION_VIEW):
        out.add_(1)


@pytest.mark.parametrize("function", [Half, Same], ids=["view", "input"])
def test_a_clone_of_it_may_be_written_to(function):
    x = leaf([1.0, 2.0])
    out = function.apply(x * 1).clone()
    out.mul_(5)
    out.sum().backward()
    assert close(x.grad, [15.0, 0.0] if function is Half else [15.0, 15.0])


def test_a_view_of_a_temporary_must_not_be_written_to():
    class Temporary(Function):
        @staticmethod
        def forward(ctx, x):
            return (x * 2)[:]

        @staticmethod
        def backward(ctx, g):
            return g * 2

    x = leaf([1.0, 2.0])
    out = Temporary.apply(x)
    with pytest.raises(RuntimeError, match=FUNCTION_VIEW):
        out.mul_(5)


def test_two_views_of_one_input_must_not_be_written_to():
    class Two(Function):
        @staticmethod
        def forward(ctx, x):
            return x[:1], x[1:]

        @staticmethod
        def backward(ctx, g, h):
            return torch.cat([g, h])

    first, _ = Two.apply(leaf([1.0, 2.0]) * 1)
    with pytest.raises(RuntimeError, match=f"{FUNCTION_VIEW}|returns multiple views"):
        first.mul_(2)


def test_a_gradient_must_not_be_written_into_a_view_that_a_function_made_of_a_constant():
    out = Half.apply(const([1.0, 2.0]))
    out.add_(1)
    assert not out.requires_grad


def test_a_function_that_returns_a_view_under_no_grad():
    y = leaf([1.0, 2.0]) * 1
    with torch.no_grad():
        view = Half.apply(y)
        view.zero_()
    assert close(y, [0.0, 2.0])
    with pytest.raises(RuntimeError, match="created in no_grad mode"):
        view.mul_(2)


def test_a_write_inside_forward_to_a_view_of_a_temporary_keeps_the_node():
    class Local(Function):
        @staticmethod
        def forward(ctx, x):
            made = x.clone()
            made[:1].mul_(2)
            return made

        @staticmethod
        def backward(ctx, g):
            return torch.cat([g[:1] * 2, g[1:]])

    x = leaf([1.0, 2.0])
    out = Local.apply(x)
    assert out.grad_fn.name() == "LocalBackward"
    out.sum().backward()
    assert close(x.grad, [2.0, 1.0])


def test_a_write_to_an_input_without_marking_it_is_counted():
    class Sneaky(Function):
        @staticmethod
        def forward(ctx, x):
            x.add_(1)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    y = leaf([1.0]) * 1
    before = y * y
    Sneaky.apply(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        before.backward()
