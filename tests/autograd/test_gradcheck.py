"""`gradcheck` and `gradgradcheck`: what they accept, what they find, what they say."""

import importlib

import pytest
from library import close, const, leaf, torch

gradcheck, gradgradcheck = torch.autograd.gradcheck, torch.autograd.gradgradcheck
GradcheckError = torch.autograd.gradcheck.__globals__["GradcheckError"]
MODES = pytest.mark.parametrize("fast_mode", [False, True], ids=["slow", "fast"])


def wrong(factor=1.0, shift=0.0):
    """x -> 3 x with a derivative that is wrong."""

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 3

        @staticmethod
        def backward(ctx, g):
            return g * 3 * factor + shift

    return Wrong.apply


@MODES
def test_a_right_derivative_passes(fast_mode):
    x = leaf([[0.3, 1.2], [-0.7, 2.0]])
    assert gradcheck(lambda x: (x.sin() * x).sum(0), (x,), fast_mode=fast_mode)
    assert gradgradcheck(lambda x: (x.sin() * x).sum(0), (x,), fast_mode=fast_mode)


@MODES
def test_a_single_tensor_may_stand_for_a_tuple(fast_mode):
    x = leaf([0.3, 1.2])
    assert gradcheck(lambda x: x * 5, x, fast_mode=fast_mode)
    assert gradgradcheck(lambda x: x * x, x, fast_mode=fast_mode)


@MODES
def test_an_input_that_is_ignored(fast_mode):
    x, y = leaf([0.3, 1.2]), leaf([0.5])
    assert gradcheck(lambda x, y: x * x, (x, y), fast_mode=fast_mode)
    assert gradgradcheck(lambda x, y: x * x, (x, y), fast_mode=fast_mode)


def test_inputs_that_are_no_tensors_or_need_no_gradient():
    assert gradcheck(lambda x, n, c: x * n * c, (leaf([1.0, 2.0]), 3, const([4.0, 5.0])))


def test_several_outputs():
    assert gradcheck(lambda x: (x * 2, x.sum()), (leaf([1.0, 2.0]),))


@MODES
def test_a_wrong_derivative_is_found(fast_mode):
    with pytest.raises(GradcheckError, match="Jacobian mismatch for output 0 with respect to input 0"):
        gradcheck(wrong(1.1), (leaf([1.0, 2.0]),), fast_mode=fast_mode)


def test_the_mismatch_shows_both_sides():
    with pytest.raises(GradcheckError, match=r"(?s)numerical:.*analytical:"):
        gradcheck(wrong(1.1), (leaf([1.0, 2.0]),))


def test_the_wrong_input_is_named():
    with pytest.raises(GradcheckError, match="for output 0 with respect to input 1"):
        gradcheck(lambda x, y: x + wrong(2.0)(y), (leaf([1.0]), leaf([2.0])))


def test_errors_may_be_turned_into_false():
    assert gradcheck(wrong(1.1), (leaf([1.0]),), raise_exception=False) is False
    assert gradcheck(wrong(1.0), (leaf([1.0]),), raise_exception=False) is True


def test_the_error_is_a_runtime_error():
    assert issubclass(GradcheckError, RuntimeError)


def test_other_errors_pass_through():
    def fails(x):
        raise KeyError("mine")

    for raise_exception in (True, False):
        with pytest.raises(KeyError, match="mine"):
            gradcheck(fails, (leaf([1.0]),), raise_exception=raise_exception)


def doubled(t):
    """The same values, with a gradient that is twice too large."""
    t = t.clone()
    t.register_hook(lambda g: g * 2)
    return t


IMAGINARY = "While considering the imaginary part of complex outputs only, Jacobian mismatch for output 0"
REAL = "While considering the real part of complex outputs only, Jacobian mismatch for output 0"
PLAIN = "^Jacobian mismatch for output 0 with respect to input 0"
MISMATCHES = {
    "R to R": (lambda x: doubled(x) * 3, PLAIN),
    "R to C": (lambda x: doubled(torch.complex(x, x)), IMAGINARY),
    "R to C, real part": (lambda x: torch.complex(doubled(x), x), REAL),
    "C to R": (lambda z: doubled(z.real), PLAIN),
    "C to C": (lambda z: doubled(z * (1 + 2j)), IMAGINARY),
    "C to C, real part": (lambda z: torch.complex(doubled(z.real), z.imag), REAL),
}


@MODES
@pytest.mark.parametrize("kind", MISMATCHES)
def test_a_wrong_derivative_between_real_and_complex_is_found(kind, fast_mode):
    function, message = MISMATCHES[kind]
    x = leaf([1.0, 2.0]) if kind.startswith("R") else leaf([1 + 1j, 2 - 1j], dtype=torch.complex128)
    with pytest.raises(GradcheckError, match=message):
        gradcheck(function, (x,), fast_mode=fast_mode)
    assert not gradcheck(function, (x,), fast_mode=fast_mode, raise_exception=False)


@MODES
def test_a_derivative_that_is_no_number_is_a_mismatch(fast_mode):
    with pytest.raises(GradcheckError, match=PLAIN):
        gradcheck(lambda x: x * float("nan"), (leaf([1.0]),), fast_mode=fast_mode, check_undefined_grad=False)


@MODES
def test_tolerances_of_complex_inputs(fast_mode):
    z = leaf([0.13 + 0.21j, -0.34 - 0.4j, 2.0 + 1.0j], dtype=torch.complex128)
    assert gradcheck(lambda z: torch.linalg.vector_norm(z), (z,), fast_mode=fast_mode)
    assert gradcheck(lambda z: z.pow(3).sum(), (z,), fast_mode=fast_mode)


@MODES
def test_right_complex_derivatives_pass(fast_mode):
    z = leaf([1 + 1j, 2 - 1j], dtype=torch.complex128)
    x = leaf([0.5, 0.7])
    assert gradcheck(lambda z, x: z * x * z, (z, x), fast_mode=fast_mode)
    assert gradcheck(lambda z: z.abs(), (z,), fast_mode=fast_mode)
    assert gradgradcheck(lambda z, x: (z * x).sin(), (z, x), fast_mode=fast_mode)


@MODES
def test_real_and_complex_outputs_together(fast_mode):
    x, y = leaf([0.5, 0.7]), leaf([1.0, 2.0])
    assert gradcheck(lambda x, y: (torch.complex(x, y), x * y), (x, y), fast_mode=fast_mode)


def test_no_input_that_requires_grad_raises():
    with pytest.raises(ValueError, match="at least one input tensor to require gradient"):
        gradcheck(lambda x: x, (const([1.0]),), raise_exception=False)


def test_single_precision_warns():
    x = leaf([1.0], dtype=torch.float32)
    with pytest.warns(UserWarning, match="is not a double precision floating point or complex"):
        gradcheck(lambda x: x, (x,), raise_exception=False)


def test_expanded_inputs_raise():
    x = torch.ones(1, dtype=torch.float64).expand(3).requires_grad_()
    with pytest.raises(RuntimeError, match="The 0th input has a dimension with stride 0"):
        gradcheck(lambda x: x * 2, (x,), raise_exception=True)


@MODES
def test_a_function_without_differentiable_outputs_must_be_constant(fast_mode):
    with pytest.raises(GradcheckError, match="Numerical gradient for function expected to be zero"):
        gradcheck(lambda x: x.detach() * 2, (leaf([1.0]),), fast_mode=fast_mode)
    assert gradcheck(lambda x: torch.ones_like(x).detach(), (leaf([1.0]),), fast_mode=fast_mode)
    assert gradcheck(lambda x: (), (leaf([1.0]),), fast_mode=fast_mode)


def test_a_backward_that_is_not_deterministic_is_found():
    calls = []

    class Jitter(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            calls.append(1)
            return g * (1 + 1e-6 * len(calls))

    x = leaf([1.0, 2.0])
    with pytest.raises(GradcheckError, match="Backward is not reentrant"):
        gradcheck(Jitter.apply, (x,), check_undefined_grad=False, nondet_tol=0.0)
    assert gradcheck(Jitter.apply, (x,), check_undefined_grad=False, nondet_tol=1e-2)


def test_a_backward_that_fails_on_undefined_gradients_is_found():
    class NeedsBoth(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx, g, h):
            if g is None or h is None:
                raise ValueError("both are needed")
            return g + 2 * h

    x = leaf([1.0])
    with pytest.raises((ValueError, RuntimeError), match=r"both are needed|undefined output grads"):
        gradcheck(lambda x: NeedsBoth.apply(x), (x,))


def test_a_backward_that_fails_on_an_undefined_gradient_is_named():
    def function(x):
        def check(g):
            if g is None:
                raise RuntimeError("x is undefined!")

        y = x * 10
        y.register_hook(check)
        return y

    with pytest.warns(UserWarning, match="undefined gradient support checking"):
        with pytest.raises(RuntimeError, match="Expected backward function to handle undefined output grads"):
            gradcheck(function, (leaf([1.0]),))
    assert gradcheck(function, (leaf([1.0]),), check_undefined_grad=False)


def test_a_backward_that_ignores_the_incoming_gradient_is_found():
    class Ignores(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return torch.ones_like(g)

    with pytest.raises(GradcheckError, match="backward not multiplied by grad_output"):
        gradcheck(Ignores.apply, (leaf(1.0),), check_undefined_grad=False)


def test_a_shape_that_depends_on_values_is_found():
    def function(x):
        return torch.cat([x, x]) if x[0] > 1.0 else x

    with pytest.raises(AssertionError, match="same shape when inputs are perturbed"):
        gradcheck(function, (leaf([1.0, 2.0]),))


def test_a_dtype_that_depends_on_values_is_found():
    def function(x):
        return x if x[0] > 1.0 else x.to(torch.float32)

    with pytest.raises(AssertionError, match="same dtype when inputs are perturbed"):
        gradcheck(function, (leaf([1.0, 2.0]),))


def test_a_wrong_second_derivative_is_found():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * (x + x.detach())

    x = leaf([1.0, 2.0])
    assert gradcheck(Square.apply, (x,))
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        gradgradcheck(Square.apply, (x,))


def test_tolerances_decide():
    x = leaf([1.0])
    assert gradcheck(wrong(1.01), (x,), rtol=0.1)
    assert gradcheck(wrong(1.01), (x,), atol=0.1)
    with pytest.raises(GradcheckError):
        gradcheck(wrong(1.01), (x,), rtol=1e-3, atol=1e-5)


def test_inputs_are_left_as_they_were():
    x = leaf([1.0, 2.0])
    gradcheck(lambda x: x * x, (x,))
    assert close(x, [1.0, 2.0])
    assert x.grad is None


# --- Jacobians by their old names ------------------------------------------------------------------------------------

old = importlib.import_module(f"{torch.__name__}.autograd.gradcheck")
NUMERICAL, ANALYTICAL = "`get_numerical_jacobian` was part of", "`get_analytical_jacobian` was part of"


def two_sums(x, y):
    return 2 * x + y, x + 2 * y


def test_the_numerical_jacobian_of_the_first_output():
    x, y = leaf([[0.1, 0.2], [0.3, 0.4]]), leaf([[0.5, 0.6], [0.7, 0.8]])
    with pytest.warns(FutureWarning, match=NUMERICAL):
        both = old.get_numerical_jacobian(lambda inputs: two_sums(*inputs), (x, y), eps=1e-6)
    with pytest.warns(FutureWarning, match=NUMERICAL):
        only = old.get_numerical_jacobian(lambda inputs: two_sums(*inputs), (x, y), target=x, eps=1e-6)
    assert len(both) == 2
    assert len(only) == 1
    for jacobian, factor in ((both[0], 2.0), (both[1], 1.0), (only[0], 2.0)):
        assert close(jacobian, factor * torch.eye(4, dtype=torch.float64), tolerance=1e-6)


def test_the_analytical_jacobian():
    x, y = leaf([[0.1, 0.2], [0.3, 0.4]]), leaf([[0.5, 0.6], [0.7, 0.8]])
    with pytest.warns(FutureWarning, match=ANALYTICAL):
        jacobians, reentrant, right_sizes, right_types = old.get_analytical_jacobian((x, y), two_sums(x, y)[0])
    assert close(jacobians[0], 2 * torch.eye(4, dtype=torch.float64))
    assert close(jacobians[1], torch.eye(4, dtype=torch.float64))
    assert reentrant
    assert right_sizes
    assert right_types


def test_the_analytical_jacobian_of_a_backward_that_is_not_deterministic():
    class Jitter(torch.autograd.Function):
        calls = 0

        @staticmethod
        def forward(ctx, x):
            return x * 1

        @classmethod
        def backward(cls, ctx, g):
            cls.calls += 1
            return g * (1 + 1e-6 * cls.calls)

    x = leaf([1.0, 2.0])
    with pytest.warns(FutureWarning, match=ANALYTICAL):
        _, reentrant, _, _ = old.get_analytical_jacobian((x,), Jitter.apply(x))
    assert not reentrant


def test_the_jacobians_take_no_weight():
    x, y = leaf([0.1]), leaf([0.5])
    with pytest.warns(FutureWarning, match=NUMERICAL), pytest.raises(ValueError, match=r"Expected grad_out to be 1\.0"):
        old.get_numerical_jacobian(lambda inputs: two_sums(*inputs), (x, y), grad_out=2.0)
    with pytest.warns(FutureWarning, match=ANALYTICAL), pytest.raises(ValueError, match=r"Expected grad_out to be 1\.0"):
        old.get_analytical_jacobian((x, y), two_sums(x, y)[0], grad_out=2.0)
