"""Modes, accumulation, kinks and NaN, as people meet them: PyTorch's values, exactly, and what is said about them."""

import contextlib
import inspect
import warnings

import numpy as np
import pytest
from library import close, const, leaf, pellucid_only, torch

F = torch.nn.functional
F32 = torch.float32
nan, inf = float("nan"), float("inf")


def gradient(function, values, dtype=F32):
    """The gradient of the sum of a function of one tensor."""
    x = leaf(values, dtype)
    function(x).sum().backward()
    return x.grad


# --- modes ------------------------------------------------------------------------------------------------------------


def test_a_decorated_function_leaves_the_block_around_it_as_it_is():
    @torch.no_grad()
    def inner():
        return torch.is_grad_enabled()

    with torch.no_grad():
        assert not inner()
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()


def test_a_decorated_generator_is_off_inside_and_on_between():
    @torch.no_grad()
    def numbers():
        yield torch.is_grad_enabled()
        yield torch.is_grad_enabled()

    running = numbers()
    assert [next(running), torch.is_grad_enabled(), next(running)] == [False, True, False]


# --- repeated indices ---------------------------------------------------------------------------------------------------


def test_gathering_one_element_three_times_adds_three_gradients():
    x = leaf([2.0], F32)
    x.gather(0, torch.tensor([0, 0, 0])).backward(torch.tensor([1.0, 2.0, 4.0]))
    assert close(x.grad, [7.0])


def test_reading_with_repeated_indices_adds_gradients():
    x = leaf([3.0, 4.0], F32)
    x[torch.tensor([1, 1, 0])].backward(torch.tensor([1.0, 10.0, 100.0]))
    assert close(x.grad, [100.0, 11.0])


def test_an_embedding_counts_its_rows():
    table = leaf([[1.0], [2.0], [3.0]], F32)
    F.embedding(torch.tensor([2, 2, 0]), table).sum().backward()
    assert close(table.grad, [[1.0], [0.0], [2.0]])


def test_adding_at_repeated_indices_passes_every_gradient():
    y = leaf([5.0, 6.0, 7.0], F32)
    out = torch.zeros(2).index_add(0, torch.tensor([1, 1, 1]), y)
    out.sum().backward()
    assert close(out, [0.0, 18.0])
    assert close(y.grad, [1.0, 1.0, 1.0])


@pellucid_only("PyTorch gives every element a gradient, also those that were overwritten")
def test_copying_to_repeated_indices_gives_the_gradient_of_the_value_computed():
    y = leaf([5.0, 6.0, 7.0], F32)
    out = torch.zeros(2).index_copy(0, torch.tensor([1, 1, 1]), y)
    out.sum().backward()
    assert close(out, [0.0, 7.0])
    assert close(y.grad, [0.0, 0.0, 1.0])


# --- accumulation -----------------------------------------------------------------------------------------------------


def test_a_second_backward_adds_in_place():
    a = leaf([1.0], F32)
    (a * a).sum().backward()
    first = a.grad
    (a * a).sum().backward()
    assert a.grad is first
    assert close(first, [4.0])


def test_with_create_graph_the_sum_has_a_history():
    b = leaf([3.0], F32)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(2):
            (b**3).sum().backward(create_graph=True)
    assert close(b.grad, [54.0])
    assert b.grad.grad_fn is not None


# --- zeros and kinks --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [1, 2, 3, inf])
def test_a_norm_at_zero_has_gradient_zero(p):
    assert close(gradient(lambda x: x.norm(p), [0.0, 0.0]), [0.0, 0.0])


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        (lambda x: x.pow(2).sum().sqrt(), [0.0, 0.0], [nan, nan]),
        (torch.sqrt, [0.0], [inf]),
        (torch.std, [2.0, 2.0, 2.0], [0.0, 0.0, 0.0]),
        (lambda x: F.normalize(x, p=1, dim=0), [0.0, 0.0, 0.2], [5.0, 5.0, 0.0]),
        (lambda x: F.normalize(x, dim=0), [0.0], [1e12]),
        (torch.prod, [2.0, 3.0, 0.0], [0.0, 0.0, 6.0]),
        (lambda x: x.cumprod(0), [2.0, 3.0, 0.0], [4.0, 2.0, 6.0]),
        (torch.prod, [0.0, 3.0, 0.0], [0.0, 0.0, 0.0]),
        (lambda x: x.cumprod(0), [0.0, 3.0, 0.0], [4.0, 0.0, 0.0]),
    ],
    ids=[
        "sqrt of squares", "sqrt", "std", "normalize to 1", "normalize", "prod", "cumprod", "prod of zeros", "cumprod of zeros",
    ],
)  # fmt: skip
def test_gradients_at_zero(function, values, expected):
    assert close(gradient(function, values), expected, 1e-6)


def test_a_distance_of_equal_points_has_gradient_zero():
    points = leaf([[1.0, 2.0], [3.0, 4.0]], F32)
    torch.cdist(points, const([[1.0, 2.0]], F32))[0].sum().backward()
    assert close(points.grad, [[0.0, 0.0], [0.0, 0.0]])


def test_the_second_derivative_of_a_product_with_a_zero():
    x = leaf([0.0, 2.0, 3.0], F32)
    (first,) = torch.autograd.grad(x.prod(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert close(second, [5.0, 3.0, 2.0])


THIRD = [1 / 3, 1 / 3, 1 / 3]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (torch.max, THIRD),
        (torch.min, THIRD),
        (torch.median, THIRD),
        (torch.amax, THIRD),
        (lambda x: x.max(0).values, [1.0, 0.0, 0.0]),
        (lambda x: x.topk(1).values, [1.0, 0.0, 0.0]),
        (lambda x: F.max_pool1d(x[None], 3), [1.0, 0.0, 0.0]),
        (lambda x: x.median(0).values, [0.0, 1.0, 0.0]),
        (lambda x: x.cummax(0).values, [1.0, 1.0, 1.0]),
        (lambda x: torch.maximum(x, torch.ones(3)), [0.5, 0.5, 0.5]),
    ],
    ids=["max", "min", "median", "amax", "max dim", "topk", "max_pool", "median dim", "cummax", "maximum"],
)
def test_ties(function, expected):
    assert close(gradient(function, [1.0, 1.0, 1.0]), expected, 1e-6)


@pytest.mark.parametrize(
    ("function", "value", "expected"),
    [
        (torch.relu, 0.0, 0.0),
        (F.relu6, 6.0, 0.0),
        (F.hardtanh, 1.0, 0.0),
        (lambda x: x.clamp(0, 1), 1.0, 1.0),
        (lambda x: torch.maximum(x, torch.ones(1)), 1.0, 0.5),
        (lambda x: x.clamp(torch.zeros(1), torch.ones(1)), 1.0, 1.0),
        (lambda x: x.clamp(max=torch.ones(1)), 1.0, 1.0),
    ],
    ids=["relu", "relu6", "hardtanh", "clamp", "maximum", "clamp by tensors", "clamp by one tensor"],
)
def test_gradients_at_bounds(function, value, expected):
    assert close(gradient(function, [value]), [expected])


# --- NaN through the branch not taken -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        (lambda a: torch.where(a < 5, a.exp(), 3 * a), [90.0], [nan]),
        (lambda b: torch.where(b > 0, b.sqrt(), 2 * b), [-2.0, 9.0], [nan, 1 / 6]),
        (lambda c: torch.maximum(c.sqrt(), torch.tensor([1e-10])), [0.0], [nan]),
        (lambda b: torch.where(b > 0, torch.where(b > 0, b, 1.0).sqrt(), 2 * b), [-2.0, 9.0], [2.0, 1 / 6]),
    ],
    ids=["exp", "sqrt", "maximum", "guarded"],
)
def test_where_passes_the_nan_of_the_branch_not_taken(function, values, expected):
    assert close(gradient(function, values), expected, 1e-6)


def test_overwriting_a_bad_entry_keeps_its_nan():
    q = leaf([0.0, 200.0], F32)
    f = (1 + q.exp()).log()
    f[1] = -1.0
    f.sum().backward()
    assert close(q.grad, [0.5, nan], 1e-6)


@pellucid_only("the helper is ours")
def test_safe_where_gives_the_gradient_of_the_branch_taken():
    assert close(
        gradient(lambda b: torch.safe_where(b > 0, torch.sqrt, lambda x: 2 * x, b), [-2.0, 9.0]), [2.0, 1 / 6], 1e-6
    )
    assert close(gradient(lambda a: torch.safe_where(a < 5, torch.exp, 3 * a, a), [90.0, 0.0]), [3.0, 1.0], 1e-6)


@pellucid_only("the helper is ours")
def test_safe_where_takes_another_safe_value_and_a_number_for_a_branch():
    x = leaf([0.0, 0.25], F32)
    out = torch.safe_where(x > 0, lambda v: v.sqrt().log(), -1.0, x, safe=0.5)
    out.sum().backward()
    assert close(out, [-1.0, -0.6931472], 1e-6)
    assert close(x.grad, [0.0, 2.0], 1e-6)


@pellucid_only("the helper is ours")
def test_safe_where_refuses_a_condition_that_is_none():
    with pytest.raises(TypeError, match="argument 'condition' must be Tensor, not bool"):
        torch.safe_where(True, torch.sqrt, 0.0, torch.ones(1))
    with pytest.raises(RuntimeError, match="where expected condition to be a boolean tensor"):
        torch.safe_where(torch.ones(1), torch.sqrt, 0.0, torch.ones(1))


# --- anomaly mode ---------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def anomaly():
    """Anomaly mode, without the warning that it is slow, and the warnings that it gives."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with torch.autograd.detect_anomaly():
            caught.clear()
            yield caught


def line_of(function, text):
    """The file and number of the line of a function that contains a text."""
    lines, first = inspect.getsourcelines(function)
    return f"{__file__}:{first + next(k for k, line in enumerate(lines) if text in line)}"


def test_a_nan_of_the_forward_stops_the_backward_of_a_forward_outside_the_mode():
    x = leaf([1.0], F32)
    z = (x - 5).log().exp()
    with anomaly(), pytest.raises(RuntimeError, match="Function 'ExpBackward0' returned nan values in its 0th output"):
        z.backward()


@pellucid_only("PyTorch blames the operation after it")
def test_the_operation_that_makes_the_first_nan_is_named():
    def program():
        x = leaf([1.0], F32)
        y = (x - 5).log()  # here
        y.exp().backward()

    with anomaly(), pytest.raises(RuntimeError) as caught:
        program()
    text = str(caught.value)
    assert text.startswith("Function 'log' returned nan values in its 0th output.\n")
    assert f"1 of 1 values were made in the forward from finite values at {line_of(program, '# here')}" in text
    assert "  input: [1] float32, value -4" in text
    assert "  first at [0]: input = -4" in text


@pellucid_only("PyTorch says nothing: the gradient is finite")
def test_a_nan_loss_with_a_finite_gradient_is_stopped():
    with anomaly(), pytest.raises(RuntimeError, match="Function 'log' returned nan values"):
        (leaf([1.0], F32) - 5).log().sum().backward()


@pellucid_only("PyTorch says nothing: the gradient is finite")
def test_a_nan_loss_of_a_forward_outside_the_mode_is_reported():
    x = leaf([1.0], F32)
    loss = (x - 5).log().sum()
    with anomaly() as caught:
        loss.backward()
    assert close(x.grad, [-0.25])
    (text,) = [str(w.message) for w in caught]
    assert "backward() starts from a result that is not finite: [] float32, 1 nan, made by SumBackward0 at" in text


@pellucid_only("PyTorch says nothing")
def test_an_infinite_loss_is_reported_with_the_operation_that_made_the_first_inf():
    def program():
        grown = leaf([200.0], F32).exp()  # here
        (grown * 2).sum().backward()

    with anomaly() as caught:
        program()
    (text, _) = [str(w.message) for w in caught]
    assert "backward() starts from a result that is not finite: [] float32, 1 inf, made by SumBackward0 at" in text
    assert f"The first inf of the forward was made by exp at {line_of(program, '# here')}" in text


@pellucid_only("PyTorch names the operation only")
def test_the_error_in_backward_tells_ranges_counts_and_the_first_inf():
    def program():
        x = leaf([0.0, 4.0], F32)
        (x * x).sqrt().sum().backward()  # here

    with anomaly(), pytest.raises(RuntimeError) as caught:
        program()
    text = str(caught.value)
    assert text.startswith("Function 'MulBackward0' returned nan values in its 0th output")
    assert "  gradient in: [2] float32, value 0.125, 1 inf" in text
    assert "  saved other: [2] float32, from 0 to 4" in text
    assert "  gradient out: [2] float32, value 0.5, 1 nan" in text
    assert f"The first inf of the backward was made by SqrtBackward0 at {line_of(program, '# here')}" in text


@pellucid_only("PyTorch names the operation only")
def test_where_with_a_bad_branch_is_explained():
    def program():
        a = leaf([90.0, 1.0, 95.0], F32)
        grown = a.exp()
        torch.where(a < 5, grown, 3 * a).sum().backward()  # the choice

    with anomaly(), pytest.raises(RuntimeError) as caught:
        program()
    text = str(caught.value)
    assert "Function 'ExpBackward0' returned nan values" in text
    assert f"2 of 3 values belong to the branch that where() did not take at {line_of(program, '# the choice')}" in text
    assert "pellucid.safe_where" in text


@pellucid_only("PyTorch sees no forward")
def test_a_nan_that_came_in_is_not_blamed_on_those_who_pass_it_on():
    x = leaf([nan, 1.0], F32)
    with anomaly():
        assert (x * 2 + 1).isnan().sum() == 1


@pellucid_only("PyTorch sees no forward")
def test_a_nan_from_infinite_values_tells_where_these_were_made():
    def program():
        y = leaf([200.0], F32).exp()  # here
        return y - y

    with anomaly(), pytest.raises(RuntimeError) as caught:
        program()
    text = str(caught.value)
    assert "1 of 1 values were made in the forward from values that are infinite, but no nan" in text
    assert f"The first inf of the forward was made by exp at {line_of(program, '# here')}" in text


@pellucid_only("PyTorch sees no forward")
def test_a_write_in_place_that_makes_a_nan_is_shown_what_it_overwrote():
    total = torch.zeros(2)
    with anomaly(), pytest.raises(RuntimeError) as caught:
        total.div_(torch.tensor([0.0, 1.0]))
    text = str(caught.value)
    assert "`total`: [2] float32, all 0" in text
    assert "first at [0]: input `total` = 0, other = 0" in text


@pellucid_only("PyTorch says nothing of infinite gradients")
def test_an_infinite_gradient_is_reported_and_raises_nothing():
    x = leaf([0.0], F32)
    with anomaly() as caught:
        x.sqrt().backward()
    assert close(x.grad, [inf])
    (text,) = [str(w.message) for w in caught]
    assert text.startswith("A gradient is infinite. The first inf of the backward was made by SqrtBackward0 at")


@pellucid_only("PyTorch sees no forward")
def test_a_custom_function_that_makes_a_nan_is_named():
    class Root(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, scale):
            with np.errstate(invalid="ignore"):
                return torch.from_numpy(np.sqrt(x.detach().numpy()) * scale)

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    x = leaf([4.0, -1.0], F32)
    with anomaly(), pytest.raises(RuntimeError) as caught:
        Root.apply(x, 2.0)
    text = str(caught.value)
    assert text.startswith("Function 'Root' returned nan values in its 0th output.\n1 of 2 values were made in the forward from finite")
    assert "  x `x`: [2] float32, from -1 to 4" in text
    assert "  first at [1]: x = -1, scale = 2" in text


@pellucid_only("PyTorch sees no forward")
def test_a_custom_function_with_any_number_of_arguments():
    class Quotient(torch.autograd.Function):
        @staticmethod
        def forward(*args):
            with np.errstate(invalid="ignore"):
                return torch.from_numpy(np.divide(*[x.detach().numpy() for x in args]))

        @staticmethod
        def setup_context(ctx, inputs, output):
            pass

    with anomaly(), pytest.raises(RuntimeError, match=r"args\[0\] = 0, args\[1\] = 0"):
        Quotient.apply(leaf([0.0], F32), torch.zeros(1))


@contextlib.contextmanager
def strict():
    """Anomaly mode that stops at Inf too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly(check_inf=True):
            yield


@pellucid_only("PyTorch does not look for Inf")
def test_on_request_the_operation_that_makes_the_first_inf_stops_the_forward():
    def program():
        x = leaf([200.0, 1.0], F32)
        grown = x.exp()  # here
        return grown * 2

    with strict(), pytest.raises(RuntimeError) as caught:
        program()
    text = str(caught.value)
    assert text.startswith("Function 'exp' returned inf values in its 0th output.\n")
    assert f"1 of 2 values were made in the forward from finite values at {line_of(program, '# here')}" in text
    assert "  input `x`: [2] float32, from 1 to 200" in text
    assert "  result: [2] float32, value 2.71828, 1 inf" in text
    assert "  first at [0]: input = 200" in text


@pellucid_only("PyTorch does not look for Inf")
def test_on_request_the_derivative_that_makes_the_first_inf_stops_the_backward():
    with strict(), pytest.raises(RuntimeError, match="Function 'SqrtBackward0' returned inf values in its 0th output"):
        (leaf([0.0], F32).sqrt() * 2).sum().backward()


@pellucid_only("PyTorch does not look for Inf")
def test_an_inf_that_was_given_stops_nothing_on_request_either():
    scores = leaf([1.0, 2.0], F32)
    with strict():
        weights = scores.masked_fill(torch.tensor([True, False]), -inf).softmax(0)
        (torch.full((2,), inf) + weights).isinf()
        weights[1].backward()
    assert close(scores.grad, [0.0, 0.0])


@pellucid_only("PyTorch does not look for Inf")
def test_what_is_looked_for_is_a_setting_of_the_mode():
    with strict():
        assert torch.is_anomaly_enabled()
        assert torch.is_anomaly_check_nan_enabled()
        with anomaly():
            assert leaf([200.0], F32).exp().isinf().all()
        with pytest.raises(RuntimeError, match="returned inf values"):
            leaf([200.0], F32).exp()
    assert leaf([200.0], F32).exp().isinf().all()


@pellucid_only("PyTorch sees no forward")
def test_without_check_nan_nothing_is_looked_at():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with torch.autograd.detect_anomaly(check_nan=False):
            assert (leaf([1.0], F32) - 5).log().isnan().all()


@pellucid_only("PyTorch sees no forward")
def test_a_mask_of_infinite_scores_passes():
    scores = leaf([1.0, 2.0], F32)
    with anomaly() as caught:
        weights = scores.masked_fill(torch.tensor([True, False]), -inf).softmax(0)
        weights[1].backward()
    assert close(scores.grad, [0.0, 0.0])
    assert not caught
