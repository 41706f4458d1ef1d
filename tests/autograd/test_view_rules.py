"""Which views may be written to: all combinations of mode, kind of view and what requires grad; how views are replayed.

What a permitted write does to history and gradients is in `test_views.py`.
"""

import pytest
from library import close, const, leaf, torch, view_replay

Function = torch.autograd.Function
MULTI = "This view is the output of a function that returns multiple views"
NO_GRAD = "A view was created in no_grad mode"
CUSTOM = "created inside a custom Function"


class Row(Function):
    """The first row of its input, as a view; the gradient is tripled."""

    @staticmethod
    def forward(ctx, x):
        return x[0]

    @staticmethod
    def backward(ctx, g):
        return torch.stack([3 * g, torch.zeros_like(g)])


class TwoRows(Function):
    """Both rows of its input, as views; the gradients are tripled."""

    @staticmethod
    def forward(ctx, x):
        return x[0], x[1]

    @staticmethod
    def backward(ctx, g, h):
        return torch.stack([3 * g, 3 * h])


class Same(Function):
    """Its input itself; the gradient is tripled."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return 3 * g


class PureRow(Function):
    """The first row of its input, said to be a plain view; the gradient of its backward is wrong on purpose."""

    @staticmethod
    def forward(ctx, x):
        ctx._is_pure_view = True
        return x[0]

    @staticmethod
    def backward(ctx, g):
        return torch.stack([3 * g, torch.zeros_like(g)])


def matrix(requires_grad=True):
    """A 2x2 tensor that is no leaf where it requires grad."""
    x = const([[1.0, 2.0], [3.0, 4.0]])
    return x.requires_grad_() * 1 if requires_grad else x


# --- modes -----------------------------------------------------------------------------------------------------------

OPERATIONS = {"view_as": lambda x: x.view_as(x), "unbind": lambda x: x.unbind()[0]}
BOTH = [True, False]


@pytest.mark.parametrize("written", BOTH, ids=["written in grad mode", "written in no_grad"])
@pytest.mark.parametrize("made", BOTH, ids=["made in grad mode", "made in no_grad"])
@pytest.mark.parametrize("requires_grad", BOTH, ids=["requires grad", "constant"])
@pytest.mark.parametrize("operation", OPERATIONS)
def test_writing_a_number_to_a_view(operation, requires_grad, made, written):
    x = matrix(requires_grad)
    with torch.set_grad_enabled(made):
        view = OPERATIONS[operation](x)
    assert view._is_view()
    assert view.requires_grad is requires_grad
    assert (view.grad_fn is not None) is (requires_grad and made)
    message = (MULTI if operation == "unbind" else None) if made else NO_GRAD
    with torch.set_grad_enabled(written):
        if requires_grad and written and message:
            with pytest.raises(RuntimeError, match=message):
                view.mul_(2)
        else:
            view.mul_(2)
            assert close(x.flatten()[:2], [2.0, 4.0])


VIEWS = {
    "built-in": (lambda x: x[0], None),
    "view of built-in": (lambda x: x[:, :][0], None),
    "one of several": (lambda x: x.unbind()[0], MULTI),
    "view of one of several": (lambda x: x.unbind()[0][:], MULTI),
    "custom": (Row.apply, CUSTOM),
    "custom, one of several": (lambda x: TwoRows.apply(x)[0], f"{CUSTOM}|{MULTI}"),
    "input of a custom function": (lambda x: Same.apply(x)[0], CUSTOM),
    "custom and pure": (PureRow.apply, None),
}


@pytest.mark.parametrize("kind", VIEWS)
@pytest.mark.parametrize("requires_grad", BOTH, ids=["requires grad", "constant"])
def test_writing_a_tensor_that_requires_grad_to_a_view(kind, requires_grad):
    make, message = VIEWS[kind]
    x, value = matrix(requires_grad), leaf([5.0, 6.0])
    view = make(x)
    if message:
        with pytest.raises(RuntimeError, match=message):
            view.mul_(value)
    else:
        view.mul_(value)
        assert x.requires_grad
        x.sum().backward()
        assert close(value.grad, [1.0, 2.0])


@pytest.mark.parametrize("kind", VIEWS)
def test_a_view_whose_base_was_written_to(kind):
    make, message = VIEWS[kind]
    x = matrix()
    view = make(x)
    x.mul_(10)
    assert close(view, [10.0, 20.0])
    if message:
        with pytest.raises(RuntimeError, match=f"its base or another view of its base has been .*({CUSTOM}|{MULTI})"):
            assert view.grad_fn is not None
    else:
        assert view.grad_fn is not None


def test_the_gradient_of_a_pure_view_that_was_written_to_is_that_of_the_view():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    base = x * 1
    PureRow.apply(base).mul_(5)
    base.sum().backward()
    assert close(x.grad, [[5.0, 5.0], [1.0, 1.0]])


def test_the_gradient_of_a_pure_view_that_was_not_written_to_is_the_functions_own():
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    PureRow.apply(x * 1).sum().backward()
    assert close(x.grad, [[3.0, 3.0], [0.0, 0.0]])


@pytest.mark.parametrize("function", [Row, Same])
@pytest.mark.parametrize("dtype", [torch.float64, torch.complex128], ids=str)
def test_the_gradient_of_a_function_that_returns_a_view(function, dtype):
    x = leaf([[1.0, 2.0], [3.0, 4.0]], dtype=dtype)
    function.apply(x * 1).backward(torch.full_like(function.apply(x.detach()), 2.0))
    expected = [[6.0, 6.0], [0.0, 0.0]] if function is Row else [[6.0, 6.0], [6.0, 6.0]]
    assert close(x.grad, const(expected, dtype=dtype))


# --- shape changes in place ------------------------------------------------------------------------------------------

RESHAPES = {
    "transpose_": lambda x: x.transpose_(0, 1),
    "t_": lambda x: x.t_(),
    "squeeze_": lambda x: x.squeeze_(0),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "swapdims_": lambda x: x.swapdims_(0, 1),
    "as_strided_": lambda x: x.as_strided_((2, 1), (1, 2)),
}


@pytest.mark.parametrize("name", RESHAPES)
def test_a_custom_view_must_not_change_its_own_shape(name):
    with pytest.raises(RuntimeError, match=CUSTOM):
        RESHAPES[name](Same.apply(matrix()))


@pytest.mark.parametrize("name", RESHAPES)
def test_a_view_that_changed_its_shape_may_be_written_to(name):
    x = leaf([[1.0, 2.0]])
    base = x * 1
    view = RESHAPES[name](base.view_as(base))
    assert view._base is base
    view.mul_(5)
    base.sum().backward()
    assert close(x.grad, [[5.0, 5.0]])


@pytest.mark.parametrize("how", ["out of place", "in place"])
def test_a_real_view_of_complex_memory_that_is_transposed(how):
    x = torch.ones(2, 3, dtype=torch.complex128, requires_grad=True)
    base = x * 1
    real = torch.view_as_real(base)
    real = real.transpose(0, 1) if how == "out of place" else real.transpose_(0, 1)
    assert real.shape == (3, 2, 2)
    assert real._base is base
    real[0].mul_(5)
    (base.real * 2 + base.imag * 3).sum().backward()
    assert close(x.grad, [[10 + 15j, 2 + 3j, 2 + 3j]] * 2)


# --- replaying a view ------------------------------------------------------------------------------------------------

REPLAYED = {
    "view": lambda x: x.view(6, 4),
    "select": lambda x: x.select(1, 2),
    "slice": lambda x: x[:, 1:],
    "step": lambda x: x[..., ::2],
    "narrow": lambda x: x.narrow(2, 1, 2),
    "expand": lambda x: x.expand(5, 2, 3, 4),
    "permute": lambda x: x.permute(2, 0, 1),
    "transpose": lambda x: x.transpose(0, 2),
    "movedim": lambda x: x.movedim(0, -1),
    "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x[:1].squeeze(0),
    "diagonal": lambda x: x.diagonal(0, 1, 2),
    "unfold": lambda x: x.unfold(2, 2, 1),
    "flatten": lambda x: x.flatten(1),
    "unflatten": lambda x: x.unflatten(2, (2, 2)),
    "as_strided": lambda x: x.as_strided((2, 2), (12, 1)),
    "unbind": lambda x: x.unbind(1)[1],
    "split": lambda x: x.split(2, 2)[1],
    "chunk": lambda x: x.chunk(2, 2)[0],
    "split_with_sizes": lambda x: x.split_with_sizes([1, 3], 2)[1],
    "chain": lambda x: x[1].t()[1:].unsqueeze(0).expand(2, 3, 3),
    "chain through splits": lambda x: x.split(2, 2)[1].unbind(0)[1].t(),
}


@pytest.mark.parametrize("name", REPLAYED)
def test_a_view_may_be_taken_again_of_another_base(name):
    take = REPLAYED[name]
    x = torch.arange(24.0, dtype=torch.float64).reshape(2, 3, 4).clone()
    other = (x * 10).clone()
    with view_replay():
        view = take(x)
        again = view._view_func(other)
    assert again.shape == view.shape
    assert close(again, take(other))
    assert again.stride() == view.stride()
    assert again._base is other


def test_a_view_taken_again_is_recorded():
    x = torch.zeros(2, 3, dtype=torch.float64)
    other = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    with view_replay():
        again = x.t()[1]._view_func(other)
    again.sum().backward()
    assert close(other.grad, [[0.0, 1.0, 0.0], [0.0, 1.0, 0.0]])


def test_no_view_can_be_taken_of_a_base_of_another_shape():
    x = torch.zeros(2, 3)
    with view_replay():
        assert x.t()._view_func(torch.zeros(4)) is None
        assert x._view_func(x) is None


def test_a_view_is_brought_up_to_date_by_its_own_operation():
    base = matrix()
    with view_replay():
        view = base.view(4)
        base.mul_(2)
        assert view.grad_fn.name() == "ViewBackward0"
        assert view.grad_fn.next_functions == ((base.grad_fn, 0),)
