"""Gradients of particular operators: indexing, reductions with ties, kinks, zeros, real and complex operands.

Every operator is checked against finite differences elsewhere; here are the values that finite differences cannot tell.
"""

import math

import pytest
from library import close, const, leaf, torch

INF, NAN = math.inf, math.nan


def gradient(function, *values, upstream=None):
    """The gradient of a function of one tensor, summed or weighed by `upstream`."""
    x = leaf(values[0] if len(values) == 1 else list(values))
    y = function(x)
    y.backward(torch.ones_like(y) if upstream is None else const(upstream))
    return x.grad


# --- indexing --------------------------------------------------------------------------------------------------------

INDICES = {
    "integer": lambda: 1,
    "negative": lambda: -1,
    "slice": lambda: slice(1, 3),
    "open slice": lambda: slice(1, None),
    "step": lambda: slice(0, 4, 2),
    "empty slice": lambda: slice(2, 2),
    "two integers": lambda: (1, 2),
    "three integers": lambda: (1, 2, 0),
    "integer, slice": lambda: (1, slice(0, 2)),
    "slice, integer": lambda: (slice(1, 3), 0),
    "slice, slice": lambda: (slice(None), slice(1, 3)),
    "ellipsis": lambda: ...,
    "ellipsis, integer": lambda: (..., 0),
    "integer, ellipsis": lambda: (1, ...),
    "integer, ellipsis, slice": lambda: (1, ..., slice(0, 1)),
    "none": lambda: (None, 1),
    "slice, none": lambda: (slice(None), None, slice(0, 2)),
    "true": lambda: True,
    "list": lambda: [0, 2],
    "repeated list": lambda: [1, 1, 0],
    "lists": lambda: ([0, 2], [1, 1]),
    "lists of one": lambda: ([0], [1]),
    "list, slice": lambda: ([0, 3], slice(1, 3)),
    "slice, list": lambda: (slice(None), [0, 2]),
    "slice, list, slice": lambda: (slice(None), [0, 2], slice(0, 1)),
    "list, slice, list": lambda: ([0, 1], slice(None), [0, 1]),
    "list, integer": lambda: ([0, 3], 1),
    "ellipsis, list": lambda: (..., [0, 1]),
    "list, none": lambda: ([0, 3], None),
    "tensor": lambda: torch.tensor([3, 0]),
    "0-d tensor": lambda: torch.tensor(2),
    "matrix tensor": lambda: torch.tensor([[0, 1], [1, 1]]),
    "negative tensor": lambda: torch.tensor([-1, -2]),
    "broadcast tensors": lambda: (torch.tensor([[0], [1]]), torch.tensor([0, 2])),
    "empty tensor": lambda: torch.tensor([], dtype=torch.int64),
    "row mask": lambda: torch.tensor([True, False, False, True]),
    "mask": lambda: torch.arange(24).reshape(4, 3, 2) % 5 == 0,
    "mask, integer": lambda: (torch.tensor([True, False, False, True]), 1),
    "integer, mask": lambda: (1, torch.tensor([True, False, True])),
    "mask of nothing": lambda: torch.zeros(4, dtype=torch.bool),
}


@pytest.mark.parametrize("name", INDICES)
def test_reading_by_index_gives_each_place_its_number_of_reads(name):
    index = INDICES[name]()
    x = torch.arange(24.0, dtype=torch.float64).reshape(4, 3, 2).requires_grad_()
    y = x[index]
    y.backward(torch.ones_like(y))
    counts = torch.zeros(24, dtype=torch.float64)
    for place in torch.arange(24).reshape(4, 3, 2)[index].flatten().tolist():
        counts[place] += 1
    assert close(x.grad, counts.view(4, 3, 2))


def test_repeated_places_add_up():
    assert close(gradient(lambda z: z[[1, 1, 0]], 1.0, 2.0, 3.0, upstream=[1.0, 10.0, 100.0]), [100.0, 11.0, 0.0])
    index = torch.tensor([0, 0, 0])
    assert close(gradient(lambda z: z.gather(0, index), [2.0], upstream=[1.0, 2.0, 4.0]), [7.0])
    rows = torch.tensor([2, 2, 0])
    embedding = torch.nn.functional.embedding
    assert close(gradient(lambda w: embedding(rows, w), [[1.0], [2.0], [3.0]]), [[1.0], [0.0], [2.0]])


def test_derivatives_of_a_selection_that_is_summed():
    x = torch.arange(10.0, dtype=torch.float64).reshape(5, 2).requires_grad_()

    def function(x):
        return x.select(1, 0).sum(0) * x.select(0, 3).sum()

    assert torch.autograd.gradcheck(function, (x,))
    assert torch.autograd.gradgradcheck(function, (x,))


@pytest.mark.parametrize(
    "take",
    [lambda x: x[0], lambda x: x[1:3], lambda x: x.select(1, 0), lambda x: x.diagonal()],
    ids=["integer", "slice", "select", "diagonal"],
)
def test_an_expanded_gradient_through_a_view(take):
    x = torch.arange(16.0, dtype=torch.float64).reshape(4, 4).requires_grad_()
    y = take(x)
    (g,) = torch.autograd.grad(y, x, const(2.0).expand(y.shape))
    touched = torch.zeros(4, 4, dtype=torch.float64)
    take(touched).fill_(2.0)
    assert close(g, touched)


# --- reductions with ties --------------------------------------------------------------------------------------------

SHARED = {
    "max": lambda x: x.max(),
    "min": lambda x: (-x).min().neg(),
    "median": lambda x: x.median(),
    "nanmedian": lambda x: x.nanmedian(),
    "amax": lambda x: x.amax(),
    "amin": lambda x: (-x).amin().neg(),
    "amax over a dimension": lambda x: x.amax(0),
}


@pytest.mark.parametrize("name", SHARED)
def test_equal_values_share_the_gradient(name):
    assert close(gradient(SHARED[name], 1.0, 1.0, 1.0), [1 / 3] * 3)


ONE = {
    "max over a dimension": (lambda x: x.max(0)[0], [1.0, 0.0, 0.0]),
    "min over a dimension": (lambda x: x.min(0)[0], [1.0, 0.0, 0.0]),
    "cummax": (lambda x: x.cummax(0)[0], [1.0, 1.0, 1.0]),
}


@pytest.mark.parametrize("name", ONE)
def test_an_operator_that_returns_an_index_gives_the_gradient_to_it(name):
    function, expected = ONE[name]
    assert close(gradient(function, 1.0, 1.0, 1.0), expected)


def test_equal_operands_share_the_gradient():
    x, y = leaf([1.0]), leaf([1.0])
    (torch.maximum(x, y) + torch.minimum(x, y) * 10).backward()
    assert close(x.grad, [5.5])
    assert close(y.grad, [5.5])


WITH_NAN = {
    "max": (lambda x: x.max(), [1.0, NAN, NAN], [0.0, 0.5, 0.5]),
    "min": (lambda x: x.min(), [1.0, NAN, NAN], [0.0, 0.5, 0.5]),
    "median": (lambda x: x.median(), [1.0, NAN, NAN], [0.0, 0.5, 0.5]),
    "nanmedian": (lambda x: x.nanmedian(), [1.0, NAN, 1.0], [0.5, 0.0, 0.5]),
    "nanmedian of nothing": (lambda x: x.nanmedian(), [NAN, NAN], [0.5, 0.5]),
}


@pytest.mark.parametrize("name", WITH_NAN)
def test_nans_share_the_gradient(name):
    function, values, expected = WITH_NAN[name]
    assert close(gradient(function, values), expected)


SPOILT = {
    "amax": (lambda x: x.amax(1), [[NAN, NAN], [0.0, 1.0]]),
    "amin": (lambda x: x.amin(1), [[NAN, NAN], [1.0, 0.0]]),
    "aminmax": (lambda x: x.aminmax(dim=1)[0], [[NAN, NAN], [1.0, 0.0]]),
    "infinity norm": (lambda x: torch.linalg.vector_norm(x, INF, dim=1), [[0.0, 0.0], [0.0, 1.0]]),
}


@pytest.mark.parametrize("name", SPOILT)
def test_a_nan_spoils_the_gradient_of_its_slice(name):
    function, expected = SPOILT[name]
    assert close(gradient(function, [1.0, NAN], [2.0, 3.0]), expected)


SCATTERED = {
    # reduction: gradients of [1, 2] and of [1, 1, 2] at places 0, 0, 1
    "amin": ([1 / 3, 1 / 2], [1 / 3, 1 / 3, 1 / 2]),
    "amax": ([1 / 3, 1 / 2], [1 / 3, 1 / 3, 1 / 2]),
    "mean": ([1 / 3, 1 / 2], [1 / 3, 1 / 3, 1 / 2]),
    "prod": ([1.0, 2.0], [1.0, 1.0, 2.0]),
}
WITHOUT_SELF = {"amin": [1 / 3, 1 / 3, 1 / 2], "amax": [1 / 3, 1 / 3, 1 / 2], "mean": [0.5, 0.5, 1.0], "prod": [1.0] * 3}
INTO = {"scatter_reduce": torch.scatter_reduce, "index_reduce": torch.index_reduce}
BETA = pytest.mark.filterwarnings("ignore:index_reduce.* is in beta")


@BETA
@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduction", SCATTERED)
@pytest.mark.parametrize("operator", INTO)
def test_equal_values_that_meet_in_one_place_share_the_gradient(operator, reduction, include_self):
    x, source = leaf([1.0, 2.0]), leaf([1.0, 1.0, 2.0])
    INTO[operator](x, 0, torch.tensor([0, 0, 1]), source, reduction, include_self=include_self).sum().backward()
    of_x, of_source = SCATTERED[reduction]
    assert close(x.grad, of_x if include_self else [0.0, 0.0])
    assert close(source.grad, of_source if include_self else WITHOUT_SELF[reduction])


@BETA
@pytest.mark.parametrize("reduction", SCATTERED)
@pytest.mark.parametrize("operator", INTO)
def test_both_derivatives_of_a_reduction_into_places(operator, reduction):
    index = torch.tensor([2, 0, 0])

    def function(x, source):
        return INTO[operator](x, 0, index, source, reduction)

    x, source = leaf([0.3, 1.7, -1.0]), leaf([0.5, -0.8, 2.0])
    assert torch.autograd.gradcheck(function, (x, source))
    assert torch.autograd.gradgradcheck(function, (x, source))


@BETA
@pytest.mark.parametrize("operator", INTO)
def test_a_product_of_two_zeros_refuses_a_second_derivative(operator):
    x, source = leaf([1.0, 2.0]), leaf([0.0, 0.0, 4.0])
    out = INTO[operator](x, 0, torch.tensor([0, 0, 1]), source, "prod")
    of_x, of_source = torch.autograd.grad(out.sum(), (x, source), create_graph=True)
    assert close(of_x, [0.0, 4.0])
    assert close(of_source, [0.0, 0.0, 2.0])
    with pytest.raises(RuntimeError, match="Double backward is unsupported for"):
        of_source.sum().backward()


@BETA
@pytest.mark.parametrize("operator", INTO)
def test_a_product_with_one_zero_has_a_second_derivative(operator):
    x, source = leaf([1.0, 2.0]), leaf([0.0, 3.0, 4.0])
    out = INTO[operator](x, 0, torch.tensor([0, 0, 1]), source, "prod")
    first = torch.autograd.grad(out.sum(), (x, source), create_graph=True)
    of_x, of_source = torch.autograd.grad(first[0].sum() + first[1].sum(), (x, source))
    assert close(of_x, [3.0, 1.0])
    assert close(of_source, [4.0, 1.0, 1.0])


# --- kinks and zeros -------------------------------------------------------------------------------------------------

KINKS = {
    "abs at 0": (lambda x: x.abs(), [0.0], [0.0]),
    "sqrt at 0": (lambda x: x.sqrt(), [0.0], [INF]),
    "relu at 0": (lambda x: x.relu(), [0.0], [0.0]),
    "relu6 at its bounds": (lambda x: torch.nn.functional.relu6(x), [0.0, 6.0], [0.0, 0.0]),
    "hardtanh at its bounds": (lambda x: torch.nn.functional.hardtanh(x), [-1.0, 1.0], [0.0, 0.0]),
    "clamp at its bounds": (lambda x: x.clamp(0.0, 1.0), [0.0, 1.0, 2.0, -1.0], [1.0, 1.0, 0.0, 0.0]),
    "norm at 0": (lambda x: x.norm(), [0.0, 0.0], [0.0, 0.0]),
    "norm 1 at 0": (lambda x: x.norm(1), [0.0, 0.0], [0.0, 0.0]),
    "norm 3 at 0": (lambda x: x.norm(3), [0.0, 0.0], [0.0, 0.0]),
    "norm inf at 0": (lambda x: x.norm(INF), [0.0, 0.0], [0.0, 0.0]),
    "norm by hand at 0": (lambda x: x.pow(2).sum().sqrt(), [0.0, 0.0], [NAN, NAN]),
    "std of a constant": (lambda x: x.std(), [2.0, 2.0], [0.0, 0.0]),
    "0 ** 0": (lambda x: x**0, [0.0, 2.0], [0.0, 0.0]),
    "0 ** -1": (lambda x: x**-1, [0.0], [-INF]),
    "0 ** 1": (lambda x: x**1, [0.0], [1.0]),
    "0 ** tensor": (lambda x: x ** const([0.0, 1.0, 2.0]), [0.0, 0.0, 0.0], [0.0, 1.0, 0.0]),
    "number ** x": (lambda x: 0.0**x, [-1.0, 0.0, 1.0], [-INF, 0.0, 0.0]),
    "prod with a zero": (lambda x: x.prod(), [2.0, 3.0, 0.0], [0.0, 0.0, 6.0]),
    "prod with two zeros": (lambda x: x.prod(), [0.0, 3.0, 0.0], [0.0, 0.0, 0.0]),
    "cumprod with a zero": (lambda x: x.cumprod(0), [2.0, 3.0, 0.0], [4.0, 2.0, 6.0]),
    "cumprod with two zeros": (lambda x: x.cumprod(0), [0.0, 3.0, 0.0], [4.0, 0.0, 0.0]),
    "sign": (lambda x: x.sign(), [2.0, -3.0], [0.0, 0.0]),
    "floor": (lambda x: x.floor(), [2.5], [0.0]),
    "round": (lambda x: x.round(), [2.5], [0.0]),
}


@pytest.mark.parametrize("name", KINKS)
def test_the_gradient_at_a_special_point(name):
    function, values, expected = KINKS[name]
    assert close(gradient(function, values), expected)


def test_atan2_at_zero():
    x, y = leaf([0.0]), leaf([0.0])
    torch.atan2(x, y).backward()
    assert close(x.grad, [0.0])
    assert close(y.grad, [0.0])


def test_normalize_of_a_row_with_zeros():
    normalize = torch.nn.functional.normalize
    assert close(gradient(lambda x: normalize(x, p=1.0, dim=0), 0.0, 0.0, 0.2), [5.0, 5.0, 0.0])
    assert close(gradient(lambda x: normalize(x, dim=0), 0.0, 0.0), [1e12, 1e12])


def test_the_distance_of_equal_points():
    x = leaf([[1.0, 2.0]])
    torch.cdist(x, x.detach().clone()).sum().backward()
    assert close(x.grad, [[0.0, 0.0]])


def test_the_second_derivative_of_prod_with_a_zero():
    x = leaf([0.0, 2.0, 3.0])
    (first,) = torch.autograd.grad(x.prod(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x)
    assert close(second, [5.0, 3.0, 2.0])


def test_a_nan_of_the_branch_not_taken_comes_through_where():
    def function(a):
        return torch.where(a < 5, a.exp(), 3 * a)

    assert close(gradient(function, [900.0]), [NAN])
    assert close(gradient(lambda b: torch.where(b > 0, b.sqrt(), 2 * b), -2.0, 9.0), [NAN, 1 / 6])
    guarded = gradient(lambda b: torch.where(b > 0, torch.where(b > 0, b, torch.ones_like(b)).sqrt(), 2 * b), -2.0, 9.0)
    assert close(guarded, [2.0, 1 / 6])


@pytest.mark.parametrize("place", ["input", "other"])
def test_where_with_a_number(place):
    condition = torch.tensor([True, False])
    if place == "input":
        assert close(gradient(lambda x: torch.where(condition, 5.0, x), 1.0, 2.0), [0.0, 1.0])
    else:
        assert close(gradient(lambda x: torch.where(condition, x, 5.0), 1.0, 2.0), [1.0, 0.0])


def test_both_derivatives_of_where():
    condition = torch.tensor([[True, False, True], [False, False, True]])
    x, y = leaf([[0.5], [2.0]]), leaf([3.0, 4.0, 5.0])
    assert torch.autograd.gradcheck(lambda x, y: torch.where(condition, x, y), (x, y))
    assert torch.autograd.gradgradcheck(lambda x, y: torch.where(condition, x * x, y * x), (x, y))


def test_where_undoes_broadcasting():
    x, y = leaf([[1.0], [2.0]]), leaf([3.0, 4.0, 5.0])
    torch.where(torch.tensor([[True, False, True], [False, False, True]]), x, y).sum().backward()
    assert close(x.grad, [[2.0], [1.0]])
    assert close(y.grad, [1.0, 2.0, 0.0])


# --- operators without a gradient ------------------------------------------------------------------------------------

CONSTANT = {
    "argmax": lambda x: x.argmax(),
    "argsort": lambda x: x.argsort(),
    "count_nonzero": lambda x: x.count_nonzero(),
    "signbit": lambda x: torch.signbit(x),
    "isin": lambda x: torch.isin(x, 1.0),
    "bucketize": lambda x: torch.bucketize(x, const([1.5])),
    "searchsorted": lambda x: torch.searchsorted(const([1.5]), x),
    "==": lambda x: x == 1,
    "sort's indices": lambda x: x.sort()[1],
    "topk's indices": lambda x: x.topk(2)[1],
    "max's indices": lambda x: x.max(0)[1],
}


@pytest.mark.parametrize("name", CONSTANT)
def test_an_integer_result_does_not_require_grad(name):
    result = CONSTANT[name](leaf([3.0, 1.0, 2.0]))
    assert not result.requires_grad
    assert result.grad_fn is None


SEVERAL = {
    # which results are numbers of places or counts
    "unique": (lambda x: torch.unique(x, return_inverse=True, return_counts=True), [1, 2]),
    "unique along a dimension": (lambda x: torch.unique(x, dim=0, return_inverse=True, return_counts=True), [1, 2]),
    "unique_consecutive": (lambda x: torch.unique_consecutive(x, return_inverse=True, return_counts=True), [1, 2]),
    "kthvalue": (lambda x: x.kthvalue(1), [1]),
    "mode": (lambda x: x.mode(), [1]),
    "median": (lambda x: x.median(0), [1]),
    "cummax": (lambda x: x.cummax(0), [1]),
}


@pytest.mark.parametrize("name", SEVERAL)
def test_of_several_results_places_and_counts_do_not_require_grad(name):
    compute, integers = SEVERAL[name]
    results = compute(leaf([3.0, 1.0, 2.0]))
    for number in integers:
        assert results[number].dtype is torch.int64
        assert not results[number].requires_grad


UNIQUE = {
    "_unique2": lambda x: torch.unique(x),
    "unique_dim": lambda x: torch.unique(x, dim=0),
    "unique_consecutive": lambda x: torch.unique_consecutive(x),
}


@pytest.mark.parametrize("name", UNIQUE)
def test_unique_values_have_no_derivative_and_say_so(name):
    values = UNIQUE[name](leaf([3.0, 1.0, 3.0]))
    assert values.requires_grad
    with pytest.raises(NotImplementedError, match=f"the derivative for '{name}' is not implemented"):
        values.sum().backward()


def test_a_derivative_that_does_not_exist_says_so():
    x, y = leaf([1.0]), leaf([2.0])
    with pytest.raises(NotImplementedError, match="the derivative for 'igamma: input' is not implemented"):
        torch.igamma(x, y).backward()


# --- matrices --------------------------------------------------------------------------------------------------------


def test_a_matrix_times_an_expanded_vector():
    matrix = leaf([[1.0, 2.0], [3.0, 4.0]])
    x = leaf([5.0])
    (matrix @ x.expand(2)).sum().backward()
    assert close(x.grad, [10.0])
    assert close(matrix.grad, [[5.0, 5.0], [5.0, 5.0]])


@pytest.mark.parametrize("shape", [(2, 3), (3, 2), (1, 4)], ids=str)
def test_the_trace_of_a_matrix_that_is_not_square(shape):
    x = torch.ones(shape, dtype=torch.float64, requires_grad=True)
    torch.trace(x).backward()
    assert close(x.grad, torch.eye(*shape, dtype=torch.float64))


@pytest.mark.parametrize("dim", [0, 1, -1, (0, 1), (0, 2), None], ids=str)
def test_var_mean_equals_var_and_mean(dim):
    x = torch.arange(12.0, dtype=torch.float64).reshape(2, 3, 2).sin().requires_grad_()
    var, mean = torch.var_mean(x, dim)
    (both,) = torch.autograd.grad((var * 3).sum() + (mean * 5).sum(), x)
    apart = (x.var(dim) * 3).sum() + (x.mean(dim) * 5).sum()
    assert close(both, torch.autograd.grad(apart, x)[0])


# --- real and complex ------------------------------------------------------------------------------------------------


def test_a_negative_base_with_a_complex_exponent():
    exponent = leaf([0.5 + 1j], dtype=torch.complex128)
    assert torch.autograd.gradcheck(lambda e: torch.pow(const([-1.0]), e), (exponent,))


@pytest.mark.parametrize("join", [torch.cat, torch.stack], ids=["cat", "stack"])
def test_joining_real_and_complex(join):
    x, z = leaf([1.0, 2.0]), leaf([1j, 2.0], dtype=torch.complex128)
    out = join([x, z])
    out.backward(torch.full_like(out, 1 + 2j))
    assert close(x.grad, [1.0, 1.0])
    assert close(z.grad, [1 + 2j, 1 + 2j])


# --- strides ---------------------------------------------------------------------------------------------------------


def test_the_gradient_of_a_transposed_leaf_is_laid_out_like_the_leaf():
    x = torch.ones(3, 2).t().requires_grad_()
    (x * torch.ones(2, 3)).sum().backward()
    assert x.grad.stride() == x.stride() == (1, 2)


LAYOUTS = {"row-major": ((3, 1), (3, 1)), "column-major": ((1, 2), (1, 2)), "with gaps": ((1, 3), (3, 1))}


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_gradient_is_laid_out_like_the_leaf_if_that_is_dense(name):
    strides, expected = LAYOUTS[name]
    x = torch.empty_strided((2, 3), strides, dtype=torch.float64).fill_(1.0).requires_grad_()
    for _ in range(2):
        (x * 2).sum().backward()
    assert close(x.grad, torch.full((2, 3), 4.0, dtype=torch.float64))
    assert x.grad.stride() == expected


def test_the_gradient_of_a_leaf_with_gaps_is_packed():
    x = torch.zeros(2, 8, dtype=torch.float64)[:, ::2].requires_grad_()
    (x * 2).sum().backward()
    assert x.stride() == (8, 2)
    assert x.grad.stride() == (4, 1)


def test_the_gradient_of_a_channels_last_leaf_is_channels_last():
    x = torch.ones(2, 3, 4, 5).to(memory_format=torch.channels_last).requires_grad_()
    (x * 2).sum().backward()
    assert x.grad.stride() == x.stride() == (60, 1, 15, 3)


def test_the_gradient_of_an_expanded_matrix_is_packed():
    x = torch.ones(3, dtype=torch.float64).expand(2, 3).requires_grad_()
    (x * 2).sum().backward()
    assert x.grad.stride() == (3, 1)


@pytest.mark.parametrize("kind", ["mask", "places"])
def test_an_index_that_is_channels_last(kind):
    x = torch.arange(24.0, dtype=torch.float64).reshape(2, 3, 2, 2).requires_grad_()
    index = torch.arange(24).reshape(2, 3, 2, 2) % (3 if kind == "mask" else 2)
    index = (index == 0 if kind == "mask" else index).contiguous(memory_format=torch.channels_last)
    (x[index] * 3).sum().backward()
    assert close(x.grad, index.contiguous().double() * 3 if kind == "mask" else torch.full_like(x, 36.0))


def test_the_gradient_of_an_expanded_leaf_is_packed():
    x = torch.ones(1).expand(3).requires_grad_()
    (x * 2).sum().backward()
    assert x.grad.stride() == (1,)
