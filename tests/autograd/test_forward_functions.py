"""Custom Functions in forward mode: what `jvp` is given, what it may return, and what is said when it may not."""

import pytest
from duals import dual, make_dual, tangent
from library import close, const, forward_ad, leaf, pellucid_only, torch

Function = torch.autograd.Function
pytestmark = pytest.mark.usefixtures("level")


def function(forward, jvp):
    """The `apply` of a Function."""

    class Custom(Function):
        pass

    Custom.forward, Custom.jvp = staticmethod(forward), staticmethod(jvp)
    return Custom.apply


# --- what jvp is given -----------------------------------------------------------------------------------------------


def test_jvp_makes_the_tangents():
    custom = function(lambda ctx, x: (x * 2, x.sum()), lambda ctx, t: (t * 3, t.sum() * 5))
    twice, total = custom(dual())
    assert close(twice, [2.0, 4.0, 6.0])
    assert close(tangent(twice), [30.0, 60.0, 90.0])
    assert close(tangent(total), 300.0)


def test_jvp_is_not_called_without_tangents():
    custom = function(lambda ctx, x: x * 2, lambda ctx, t: pytest.fail("called"))
    assert tangent(custom(const([1.0]))) is None


def test_a_function_without_jvp_says_so():
    class Custom(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

    with pytest.raises(NotImplementedError, match="You must implement the jvp function for custom"):
        Custom.apply(dual())


def test_tensors_without_a_tangent_have_zeros_and_other_arguments_none():
    given = []

    def jvp(ctx, *tangents):
        given.extend(tangents)
        return tangents[1]

    custom = function(lambda ctx, n, x, y, k, s: x * n + y, jvp)
    custom(2, dual(), const([1.0, 1.0, 1.0]), torch.arange(3), "text")
    assert given[0] is given[3] is given[4] is None
    assert close(given[1], [10.0, 20.0, 30.0])
    assert close(given[2], [0.0, 0.0, 0.0])


def test_absent_tangents_may_stay_none():
    def forward(ctx, x, y):
        ctx.set_materialize_grads(False)
        return x + y

    def jvp(ctx, t, u):
        assert u is None
        return t

    assert close(tangent(function(forward, jvp)(dual(), const([1.0, 1.0, 1.0]))), [10.0, 20.0, 30.0])


def test_arguments_before_tensors():
    def jvp(ctx, n, t, m, u):
        assert n is m is None
        return 2 * t + 3 * u

    class Custom(Function):
        @staticmethod
        def forward(ctx, n, x, m, y):
            return n * x + m * y

        @staticmethod
        def vjp(ctx, g):
            return None, 2 * g, None, 3 * g

    Custom.jvp = staticmethod(jvp)
    d = dual()
    assert close(tangent(Custom.apply(2, d, 3, d)), [50.0, 100.0, 150.0])


def test_tensors_saved_for_forward():
    seen = []

    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        ctx.save_for_forward(x, None, y)
        ctx.scale = 2.0
        return ctx.scale * x * y

    def jvp(ctx, t, u):
        x, none, y = ctx.saved_tensors
        seen.append(none)
        return ctx.scale * (t * y + x * u)

    custom = function(forward, jvp)
    y = make_dual(const([5.0, 6.0, 7.0]), const([1.0, 1.0, 1.0]))
    assert close(tangent(custom(dual(), y)), [102.0, 244.0, 426.0])
    assert seen == [None]


def test_what_was_saved_for_backward_is_not_there():
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    def jvp(ctx, t):
        assert ctx.saved_tensors == ()
        return t

    function(forward, jvp)(make_dual(leaf([1.0]), const([1.0])))


def test_only_tensors_are_saved_for_forward():
    def forward(ctx, x):
        ctx.save_for_forward(x, 2.0)
        return x * 2

    with pytest.raises(AssertionError, match="save_for_forward expects all arguments to be tensors"):
        function(forward, None)(dual())


def test_a_context_that_is_set_up_apart():
    class Custom(Function):
        @staticmethod
        def forward(x, factor=3.0):
            return x * factor

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.factor = inputs[1]
            ctx.save_for_forward(output)

        @staticmethod
        def jvp(ctx, t, none):
            (output,) = ctx.saved_tensors
            assert none is None
            return t * ctx.factor + output

    assert close(tangent(Custom.apply(dual())), [33.0, 66.0, 99.0])


def test_neither_forward_nor_jvp_sees_tangents():
    def forward(ctx, x):
        assert tangent(x) is tangent(x * 2) is None
        assert not forward_ad._is_fwd_grad_enabled()
        return x * 2

    def jvp(ctx, t):
        assert tangent(t) is None
        assert not forward_ad._is_fwd_grad_enabled()
        return t * 2

    assert close(tangent(function(forward, jvp)(dual())), [20.0, 40.0, 60.0])


def test_jvp_is_recorded():
    x, t = leaf([1.0, 2.0]), leaf([3.0, 4.0])

    def forward(ctx, x):
        ctx.save_for_forward(x)
        return x * x

    def jvp(ctx, t):
        assert torch.is_grad_enabled()
        return 2 * ctx.saved_tensors[0] * t

    product = tangent(function(forward, jvp)(make_dual(x, t)))
    of_x, of_t = torch.autograd.grad(product.sum(), (x, t))
    assert close(of_x, [6.0, 8.0])
    assert close(of_t, [2.0, 4.0])


def test_jvp_runs_in_the_mode_of_the_call():
    def jvp(ctx, t):
        assert not torch.is_grad_enabled()
        return t

    with torch.no_grad():
        function(lambda ctx, x: x * 2, jvp)(dual())


def test_a_saved_result_has_its_tangent_in_backward():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.exp()
            ctx.save_for_backward(y)
            ctx.save_for_forward(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

        @staticmethod
        def jvp(ctx, t):
            return t * ctx.saved_tensors[0]

    x = leaf([0.5, 1.0])
    y = Exp.apply(make_dual(x, const([3.0, 4.0])))
    (first,) = torch.autograd.grad(y.sum(), x)
    assert close(tangent(first), const([0.5, 1.0]).exp() * const([3.0, 4.0]))


def test_a_result_kept_on_the_context_has_its_tangent_in_backward():
    class Exp(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.result = x.exp()
            return ctx.result

        @staticmethod
        def backward(ctx, g):
            return g * ctx.result

        @staticmethod
        def jvp(ctx, t):
            return t * ctx.result

    x = leaf([0.5, 1.0])
    y = Exp.apply(make_dual(x, const([3.0, 4.0])))
    (first,) = torch.autograd.grad(y.sum(), x)
    assert close(tangent(first), const([0.5, 1.0]).exp() * const([3.0, 4.0]))


def test_a_gradient_that_is_summed_keeps_its_tangent():
    class Spread(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return (2 * x * g).expand(3, 1)

        @staticmethod
        def jvp(ctx, t):
            return t

    x = leaf([2.0])
    y = Spread.apply(make_dual(x, const([5.0])))
    (first,) = torch.autograd.grad(y.sum(), x)
    assert close(first, [12.0])
    assert close(tangent(first), [30.0])


# --- what jvp may return ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (lambda t: (t, t), r"jvp returned an invalid number of forward gradients \(expected 1 but got 2\)"),
        (lambda t: (), r"jvp returned an invalid number of forward gradients \(expected 1 but got 0\)"),
        (lambda t: 3.0, r"expected Variable or None \(got float\) for grad output 0"),
        (lambda t: t[:2], "Trying to set a forward gradient that has a different size"),
    ],
)
def test_what_is_no_tangent(returned, message):
    with pytest.raises(RuntimeError, match=message):
        function(lambda ctx, x: x * 2, lambda ctx, t: returned(t))(dual())


@pellucid_only("PyTorch fails an internal assertion")
def test_a_result_without_a_tangent():
    custom = function(lambda ctx, x: (x * 2, x * 3), lambda ctx, t: (t, None))
    assert [tangent(y) is None for y in custom(dual())] == [False, True]


def test_results_that_are_not_differentiable():
    def forward(ctx, x, y):
        constant = x * 2
        ctx.mark_non_differentiable(constant)
        return constant, x.long(), 5, x + y

    custom = function(forward, lambda ctx, t, u: (None, None, None, t + u))
    constant, whole, number, total = custom(dual(), dual())
    assert number == 5
    assert tangent(constant) is tangent(whole) is None
    assert close(tangent(total), [20.0, 40.0, 60.0])


@pytest.mark.parametrize("position", [0, 1])
def test_results_that_are_not_differentiable_take_no_tangent(position):
    def forward(ctx, x):
        constant = x * 2
        ctx.mark_non_differentiable(constant)
        return constant, x.long()

    custom = function(forward, lambda ctx, t: tuple(t if i == position else None for i in range(2)))
    with pytest.raises(RuntimeError, match=f"jvp returned a gradient at position {position}, but .*is not a differentiable"):
        custom(dual())


@pytest.mark.parametrize("value", [5, 2.0, "text", None, [1]])
def test_results_of_any_kind(value):
    custom = function(lambda ctx, x: (x * 2, value), lambda ctx, t: (t, None))
    assert custom(dual())[1] == value


# --- views -----------------------------------------------------------------------------------------------------------

RETURNED = "A custom Function's forward is returning a view \\(or an input as-is\\) but the jvp is not returning a view"


def test_the_tangent_of_a_view_is_a_view():
    d = dual()
    part = function(lambda ctx, x: x.narrow(0, 0, 2), lambda ctx, t: t.narrow(0, 0, 2))(d)
    assert close(tangent(part), [10.0, 20.0])
    assert tangent(part)._base is tangent(d)


def test_the_tangent_of_a_view_is_no_copy():
    with pytest.raises(RuntimeError, match=RETURNED):
        function(lambda ctx, x: x.narrow(0, 0, 2), lambda ctx, t: t.narrow(0, 0, 2).clone())(dual())


@pytest.mark.parametrize(("start", "base"), [(0, "the given grad input"), (1, "the same base as the given grad input")])
def test_the_tangent_of_a_view_is_no_view_of_something_else(start, base):
    d = dual() if start == 0 else dual()[start:]
    with pytest.raises(RuntimeError, match=f"the jvp is not returning a view of {base}"):
        function(lambda ctx, x: x.narrow(0, 0, 2), lambda ctx, t: t.clone().narrow(0, 0, 2))(d)


def test_the_tangent_of_a_view_of_a_view():
    d = make_dual(torch.ones(2, 3, dtype=torch.float64), torch.arange(6.0, dtype=torch.float64).view(2, 3).clone())[1]
    part = function(lambda ctx, x: x[1:], lambda ctx, t: t[1:])(d)
    assert close(tangent(part), [4.0, 5.0])


def test_a_view_of_an_argument_without_a_tangent_gives_it_one():
    x = const([1.0, 2.0, 3.0])
    part = function(lambda ctx, x, y: x[:2], lambda ctx, t, u: u[:2] * 2)(x, dual())
    assert close(tangent(part), [20.0, 40.0])
    assert close(tangent(x), [20.0, 40.0, 0.0])


def as_is(ctx, x, y):
    return x + y, x


def test_an_argument_returned_as_is_needs_a_view_of_its_tangent():
    x, y = (make_dual(leaf(1.0), const(2.0)) for _ in range(2))
    custom = function(as_is, lambda ctx, t, u: (t + u, t.view_as(t)))
    same = custom(x, y)[1]
    assert same is not x
    assert tangent(same)._base is tangent(x)


@pytest.mark.parametrize("of", [lambda t: t, lambda t: t * 2], ids=["itself", "another"])
def test_an_argument_returned_as_is_takes_no_other_tangent(of):
    x, y = (make_dual(leaf(1.0), const(2.0)) for _ in range(2))
    with pytest.raises(RuntimeError, match=RETURNED):
        function(as_is, lambda ctx, t, u: (t + u, of(t)))(x, y)


# --- in-place writes -------------------------------------------------------------------------------------------------


def double(ctx, x, y):
    x.mul_(2)
    ctx.mark_dirty(x)
    return x


def test_an_argument_that_is_written_to_keeps_its_tangent_tensor():
    d = dual().clone()
    before = tangent(d)
    result = function(double, lambda ctx, t, u: t.mul_(2))(d, dual())
    assert result is d
    assert tangent(d) is before
    assert close(before, [20.0, 40.0, 60.0])


@pytest.mark.parametrize("returned", [lambda t: t * 2, lambda t: None, lambda t: t], ids=["copy", "none", "untouched"])
def test_the_tangent_of_an_argument_that_is_written_to_must_be_written_to(returned):
    with pytest.raises(RuntimeError, match="not modifying the forward mode gradients inplace"):
        function(double, lambda ctx, t, u: returned(t))(dual(), dual())


def test_the_tangent_of_an_argument_that_is_written_to_must_be_returned():
    def jvp(ctx, t, u):
        t.mul_(2)
        return t.clone().add_(0)

    with pytest.raises(RuntimeError, match="not returning the forward mode gradients as-is"):
        function(double, jvp)(dual(), dual())


def test_an_argument_that_is_written_to_may_get_a_tangent():
    x = const([1.0, 2.0, 3.0])
    result = function(double, lambda ctx, t, u: u * 3)(x, dual())
    assert result is x
    assert close(tangent(x), [30.0, 60.0, 90.0])


def test_a_dirty_argument_that_is_not_differentiable():
    def forward(ctx, x, y):
        x.mul_(2)
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(x)
        return x, y * 1

    d = dual().clone()
    first, second = function(forward, lambda ctx, t, u: (None, u))(d, dual())
    assert first is d
    assert close(tangent(d), [10.0, 20.0, 30.0])
    assert close(tangent(second), [10.0, 20.0, 30.0])
