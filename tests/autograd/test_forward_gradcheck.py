"""`gradcheck` of forward mode, and of derivatives computed for several vectors at once."""

import itertools

import pytest
from library import const, forward_ad, leaf, torch

Function = torch.autograd.Function
gradcheck, gradgradcheck = torch.autograd.gradcheck, torch.autograd.gradgradcheck
GradcheckError = torch.autograd.gradcheck.__globals__["GradcheckError"]
MODES = pytest.mark.parametrize("fast_mode", [False, True], ids=["slow", "fast"])
FORWARD_ALONE = {"check_forward_ad": True, "check_backward_ad": False, "check_batched_grad": False}
PLAIN = "^Jacobian computed with forward mode mismatch for output 0 with respect to input 1"


def complex_leaf():
    return leaf([0.3 + 0.7j, 0.5 - 0.2j], dtype=torch.complex128)


def right(x, y):
    return x + y, y


def wrong(x, y):
    """`right`, with a tangent of y that is too large."""
    if forward_ad._current_level >= 0:
        value, direction = forward_ad.unpack_dual(y)
        y = forward_ad.make_dual(value, direction * 1.1)
    return x + y, y


# --- tangents --------------------------------------------------------------------------------------------------------


@MODES
@pytest.mark.parametrize("x", [leaf([0.3, 1.2]), complex_leaf()], ids=["real", "complex"])
@pytest.mark.parametrize("y", [leaf([0.5, 0.7]), complex_leaf()], ids=["real", "complex"])
def test_a_wrong_tangent_is_found(x, y, fast_mode):
    assert gradcheck(right, (x, y), check_forward_ad=True, fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="Jacobian computed with forward mode mismatch for output 0 with respect to input 1"):
        gradcheck(wrong, (x, y), check_forward_ad=True, fast_mode=fast_mode)
    assert not gradcheck(wrong, (x, y), check_forward_ad=True, fast_mode=fast_mode, raise_exception=False)


@MODES
def test_what_is_said_of_a_wrong_tangent(fast_mode):
    with pytest.raises(GradcheckError, match=PLAIN + r",\n(?s:.*)numerical:(?s:.*)analytical:"):
        gradcheck(wrong, (leaf([0.3]), leaf([0.5])), check_forward_ad=True, fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match=r"^While considering the imaginary part of complex inputs only, Jacobian computed"):
        gradcheck(wrong, (complex_leaf(), complex_leaf()), check_forward_ad=True, fast_mode=fast_mode)

    def wrong_real_part(x, y):
        if forward_ad._current_level >= 0:
            value, direction = forward_ad.unpack_dual(y)
            y = forward_ad.make_dual(value, torch.complex(direction.real * 1.1, direction.imag))
        return x + y

    with pytest.raises(GradcheckError, match=r"^While considering the real part of complex inputs only, Jacobian computed with"):
        gradcheck(wrong_real_part, (complex_leaf(), complex_leaf()), check_forward_ad=True, fast_mode=fast_mode)


@MODES
def test_complex_results_of_real_numbers(fast_mode):
    x = leaf([0.3, 1.2])
    assert gradcheck(lambda x: torch.view_as_real(x * 1j), (x,), check_forward_ad=True, fast_mode=fast_mode)
    assert gradcheck(lambda x: (x * (1 + 2j), x.sum()), (x,), check_forward_ad=True, fast_mode=fast_mode)
    assert gradcheck(lambda z: z.abs(), (complex_leaf(),), check_forward_ad=True, fast_mode=fast_mode)


@MODES
def test_results_that_require_no_grad_are_not_compared(fast_mode):
    assert gradcheck(lambda x: (x * 3, x.detach() * 2), (leaf([0.3]),), fast_mode=fast_mode)


@MODES
def test_a_wrong_jvp_is_found(fast_mode):
    class Wrong(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            ctx.save_for_forward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

        @staticmethod
        def jvp(ctx, t, u):
            x, y = ctx.saved_tensors
            return x * t + y * u

    inputs = leaf([0.3, 1.2]), leaf([0.5, 0.7])
    assert gradcheck(Wrong.apply, inputs, fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="Jacobian computed with forward mode mismatch for output 0 with respect to input 0"):
        gradcheck(Wrong.apply, inputs, check_forward_ad=True, fast_mode=fast_mode)


@MODES
def test_a_function_that_is_no_function_of_its_inputs(fast_mode):
    assert gradcheck(lambda x: torch.ones_like(x), (leaf([1.0]),), **FORWARD_ALONE, check_undefined_grad=False)
    assert gradcheck(lambda x: (), (leaf([1.0]),), **FORWARD_ALONE, check_undefined_grad=False, fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, (leaf([1.0]),), **FORWARD_ALONE, check_undefined_grad=False)


def test_a_complex_tangent_of_a_real_result():
    class Custom(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def jvp(ctx, t):
            return t * (2 + 0j)

    with pytest.raises(GradcheckError, match="Forward AD gradient has dtype mismatch"):
        gradcheck(Custom.apply, (leaf([1.0]),), **FORWARD_ALONE, check_undefined_grad=False, check_grad_dtypes=True)


def test_an_absent_tangent_must_be_like_zeros():
    class Custom(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.set_materialize_grads(False)
            return x + y

        @staticmethod
        def jvp(ctx, t, u):
            return t + u if u is not None and t is not None else (t if u is None else u) * 2

    inputs = leaf([1.0]), leaf([2.0])
    assert gradcheck(Custom.apply, inputs, **FORWARD_ALONE, check_undefined_grad=False)
    with pytest.raises(GradcheckError, match="Mismatch in tangent values for output with index"):
        gradcheck(Custom.apply, inputs, **FORWARD_ALONE)


class Both(Function):
    """Two clones; it counts how often `jvp` is called, and watches what `forward` is given."""

    calls = 0

    @staticmethod
    def forward(ctx, x, y):
        if forward_ad._current_level >= 0:
            assert not x.requires_grad
            assert not y.requires_grad
        return x.clone(), y.clone()

    @classmethod
    def jvp(cls, ctx, t, u):
        Both.calls += 1
        return t, u


UNDEFINED = {**FORWARD_ALONE, "check_undefined_grad": True}
BATCHED = {**UNDEFINED, "check_batched_forward_grad": True}


@pytest.mark.parametrize(
    ("options", "calls"), [({**FORWARD_ALONE, "check_undefined_grad": False}, 2), (UNDEFINED, 6), (BATCHED, 12)]
)
def test_inputs_require_no_grad_in_forward_mode(options, calls):
    Both.calls = 0
    assert gradcheck(Both.apply, (leaf([0.3]), leaf([0.5])), **options)
    assert Both.calls == calls


def test_only_inputs_that_require_grad_get_tangents():
    Both.calls = 0
    assert gradcheck(Both.apply, (leaf([0.3]), const([0.5])), **BATCHED)
    assert Both.calls == 5


# --- which checks are made -------------------------------------------------------------------------------------------


class Failing(Function):
    """2 x, with derivatives that fail on request."""

    @staticmethod
    def forward(ctx, x, bad_forward, bad_backward):
        ctx.bad_forward, ctx.bad_backward = bad_forward, bad_backward
        return x * 2

    @staticmethod
    def vjp(ctx, g):
        if ctx.bad_backward:
            raise RuntimeError("backward is bad")
        return 2 * g, None, None

    @staticmethod
    def jvp(ctx, t, *rest):
        if ctx.bad_forward:
            raise RuntimeError("forward is bad")
        return 2 * t


@MODES
@pytest.mark.parametrize(("forward", "backward"), [(True, True), (True, False), (False, True)])
def test_only_what_is_asked_for_is_checked(forward, backward, fast_mode):
    for bad_forward, bad_backward in itertools.product([True, False], repeat=2):

        def check(bad_forward=bad_forward, bad_backward=bad_backward):
            return gradcheck(
                Failing.apply, (leaf([0.3, 0.5]), bad_forward, bad_backward), check_forward_ad=forward,
                check_backward_ad=backward, check_undefined_grad=backward, check_batched_grad=backward, fast_mode=fast_mode,
            )  # fmt: skip

        expected = "backward is bad" if backward and bad_backward else "forward is bad" if forward and bad_forward else None
        if expected is None:
            assert check()
        else:
            with pytest.raises(RuntimeError, match=expected):
                check()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"check_backward_ad": False}, "Expected at least one of check_forward_ad or check_backward_ad to be True"),
        (
            {"check_backward_ad": False, "check_forward_ad": True, "check_batched_grad": True},
            "Setting check_batched_grad=True requires check_backward_ad to be True",
        ),
        ({"check_batched_forward_grad": True}, "Setting check_batched_forward_grad=True requires check_forward_ad to be True"),
    ],
)
def test_options_that_do_not_go_together(options, message):
    with pytest.raises(AssertionError, match=message):
        gradcheck(lambda x: x * 2, (leaf([1.0]),), **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"check_rev_over_rev": False}, "Expected at least one of check_fwd_over_rev or check_rev_over_rev to be True"),
        (
            {"check_rev_over_rev": False, "check_fwd_over_rev": True},
            "Setting check_undefined_grad=True requires check_rev_over_rev to be True",
        ),
        (
            {
                "check_rev_over_rev": False,
                "check_fwd_over_rev": True,
                "check_undefined_grad": False,
                "check_batched_grad": True,
            },
            "Setting check_batched_grad=True requires check_rev_over_rev to be True",
        ),
    ],
)
def test_options_of_second_derivatives_that_do_not_go_together(options, message):
    with pytest.raises(AssertionError, match=message):
        gradgradcheck(lambda x: x * x, (leaf([1.0]),), **options)


# --- second derivatives ----------------------------------------------------------------------------------------------


@MODES
def test_forward_over_reverse(fast_mode):
    inputs = leaf([0.3, 1.2]), leaf([0.5, 0.7])
    forward = {"check_rev_over_rev": False, "check_fwd_over_rev": True, "check_undefined_grad": False}
    for options in (forward, {"check_fwd_over_rev": True, "check_batched_grad": True}):
        assert gradgradcheck(lambda x, y: (x * y).sin(), inputs, fast_mode=fast_mode, **options)


@MODES
def test_a_wrong_second_derivative_is_found_by_forward_mode(fast_mode):
    class Square(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.save_for_forward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            return Half.apply(ctx.saved_tensors[0]) * g * 4

        @staticmethod
        def jvp(ctx, t):
            return 2 * ctx.saved_tensors[0] * t

    class Half(Function):
        @staticmethod
        def forward(ctx, x):
            return x / 2

        @staticmethod
        def backward(ctx, g):
            return g / 2

        @staticmethod
        def jvp(ctx, t):
            return t / 3

    x = leaf([0.3, 1.2])
    assert gradcheck(Square.apply, (x,), check_forward_ad=True, fast_mode=fast_mode)
    assert gradgradcheck(Square.apply, (x,), fast_mode=fast_mode)
    with pytest.raises(GradcheckError, match="Jacobian computed with forward mode mismatch"):
        gradgradcheck(Square.apply, (x,), check_fwd_over_rev=True, fast_mode=fast_mode)


# --- several vectors at once -----------------------------------------------------------------------------------------


@MODES
def test_batches_of_tangents_and_gradients(fast_mode):
    every = {"check_batched_grad": True, "check_forward_ad": True, "check_batched_forward_grad": True}
    x, y = leaf([[0.3, 1.2], [0.5, 0.7]]), leaf([0.2, 0.4])
    for function, inputs in (
        (torch.sin, (x,)),
        (torch.add, (x, y)),
        (torch.mul, (x, y)),
        (lambda x, y: ((x @ y).exp(), x.t()[0] * y), (x, y)),
        (lambda z: z * z, (complex_leaf(),)),
    ):
        assert gradcheck(function, inputs, fast_mode=fast_mode, **every)


def test_batches_of_tangents_with_other_arguments():
    x = leaf([0.3, 1.2])
    options = {**BATCHED, "check_undefined_grad": False}
    assert gradcheck(lambda x, n: (x.clone(), x + n), (x, 1), **options)
    assert gradcheck(lambda x, y: x.clone(), (x, leaf([0.3, 1.2])), **options)
    assert gradcheck(lambda x, y: x * y, (x, const([0.3, 1.2])), **options)


class Random(Function):
    """2 x; its derivatives draw numbers that they do not use."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def vjp(ctx, g):
        torch.randn_like(g)
        return g * 2

    @staticmethod
    def jvp(ctx, t):
        torch.randn_like(t)
        return t * 2


@pytest.mark.parametrize(
    "options", [{"check_forward_ad": True, "check_batched_forward_grad": True}, {"check_batched_grad": True}]
)
def test_a_random_operation_in_a_batch(options):
    assert gradcheck(Random.apply, (leaf([0.3, 1.2]),), check_forward_ad=True)
    with pytest.raises(RuntimeError, match=r"While computing batched gradients, got: vmap: .*random operation"):
        gradcheck(Random.apply, (leaf([0.3, 1.2]),), **options)


class Counting(Function):
    """2 x; of all calls of its derivatives one gives something wrong."""

    calls = wrong = 0

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def vjp(ctx, g):
        return Counting.factor() * g

    @staticmethod
    def jvp(ctx, t):
        return Counting.factor() * t

    @classmethod
    def factor(cls):
        cls.calls += 1
        return 3 if cls.calls == cls.wrong else 2


@pytest.mark.parametrize("options", [{**BATCHED, "check_undefined_grad": False}, {"check_batched_grad": True}])
def test_a_batch_that_differs_from_its_examples(options):
    Counting.calls = Counting.wrong = 0
    assert gradcheck(Counting.apply, (leaf([0.3]),), **options)
    found = []
    for number in range(Counting.calls):
        Counting.calls, Counting.wrong = 0, number + 1
        try:
            gradcheck(Counting.apply, (leaf([0.3]),), **options)
        except GradcheckError as error:
            found.append("failed while testing batched gradient computation" in str(error))
    assert any(found)
    assert not all(found)
