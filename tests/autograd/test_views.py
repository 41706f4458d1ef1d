"""Views: what a write to a view or its base does to the history of both, and which views must not be written to."""

import pytest
from library import close, const, leaf, torch

VIEW_OF_LEAF = "a view of a leaf Variable that requires grad is being used in an in-place operation"
MULTI = "This view is the output of a function that returns multiple views"
NO_GRAD = "view (of a view )?(was|which was) created in no_grad mode"
INFERENCE = "inference mode"


def base_of(*values):
    """A leaf, and a non-leaf of the same values that views can be taken of."""
    x = leaf(list(values))
    return x, x * 1


# --- what is a view --------------------------------------------------------------------------------------------------

VIEWS = {
    "view": lambda x: x.view(6),
    "reshape": lambda x: x.reshape(3, 2),
    "flatten": lambda x: x.flatten(),
    "transpose": lambda x: x.transpose(0, 1),
    "t": lambda x: x.t(),
    "T": lambda x: x.T,
    "permute": lambda x: x.permute(1, 0),
    "select": lambda x: x.select(0, 1),
    "narrow": lambda x: x.narrow(1, 1, 2),
    "integer": lambda x: x[1],
    "slice": lambda x: x[:, ::2],
    "none": lambda x: x[None],
    "ellipsis": lambda x: x[...],
    "unsqueeze": lambda x: x.unsqueeze(1),
    "squeeze": lambda x: x.squeeze(),
    "expand": lambda x: x.expand(2, 2, 3),
    "diagonal": lambda x: x.diagonal(),
    "unfold": lambda x: x.unfold(1, 2, 1),
    "movedim": lambda x: x.movedim(0, 1),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "view_as": lambda x: x.view_as(torch.zeros(3, 2)),
    "as_strided": lambda x: x.as_strided((2, 2), (3, 1)),
    "unflatten": lambda x: x.unflatten(1, (3, 1)),
    "chunk": lambda x: x.chunk(2)[1],
    "split": lambda x: x.split(1)[1],
    "unbind": lambda x: x.unbind(1)[2],
}


@pytest.mark.parametrize("name", VIEWS)
def test_a_view_shares_memory_and_version_with_its_base(name):
    x = torch.arange(6.0).reshape(2, 3).clone()
    view = VIEWS[name](x)
    assert view._is_view()
    assert view._base is x
    x.mul_(10)
    assert close(view, VIEWS[name](x))
    assert view._version == 1


NO_VIEWS = {
    "clone": lambda x: x.clone(),
    "index tensor": lambda x: x[torch.tensor([0])],
    "mask": lambda x: x[x > 2],
    "contiguous": lambda x: x.t().contiguous(),
    "reshape": lambda x: x.t().reshape(6),
    "sum": lambda x: x + 0,
}


@pytest.mark.parametrize("name", NO_VIEWS)
def test_a_copy_is_no_view(name):
    x = torch.arange(6.0).reshape(2, 3).clone()
    made = NO_VIEWS[name](x)
    assert not made._is_view()
    assert made._base is None


def test_a_view_of_a_view_has_the_same_base():
    x = torch.zeros(2, 3)
    assert x[0][1:]._base is x


@pytest.mark.parametrize("name", sorted(set(VIEWS) - {"expand", "chunk", "split", "unbind"}))
def test_writing_to_a_view_equals_computing_out_of_place(name):
    view_of = VIEWS[name]
    x = torch.arange(6.0, dtype=torch.float64).reshape(2, 3).requires_grad_()
    weights = const([[1.0, 2.0, 3.0], [5.0, 7.0, 11.0]])
    y = x * 1
    view_of(y).mul_(10)
    (y * weights).sum().backward()
    touched = torch.zeros(2, 3, dtype=torch.float64)
    view_of(touched).fill_(1.0)
    assert close(x.grad, weights * (1 + 9 * touched))


@pytest.mark.parametrize("name", VIEWS)
def test_the_gradient_of_a_view(name):
    x = torch.arange(6.0, dtype=torch.float64).reshape(2, 3).requires_grad_()
    assert torch.autograd.gradcheck(VIEWS[name], x)
    assert torch.autograd.gradgradcheck(lambda x: VIEWS[name](x) ** 2, x)


# --- writes to views and bases ---------------------------------------------------------------------------------------


def test_backward_from_the_base_after_a_write_to_a_view():
    x, base = base_of(1.0, 2.0, 3.0, 4.0)
    base[:2].mul_(10)
    base.sum().backward()
    assert close(x.grad, [10.0, 10.0, 1.0, 1.0])


def test_backward_from_the_view_that_was_written_to():
    x, base = base_of(1.0, 2.0, 3.0, 4.0)
    view = base[:2]
    view.mul_(10)
    (view * const([3.0, 5.0])).sum().backward()
    assert close(x.grad, [30.0, 50.0, 0.0, 0.0])


def test_backward_from_a_sibling_of_the_view_that_was_written_to():
    x, base = base_of(1.0, 2.0, 3.0, 4.0)
    first, second = base[:3], base[2:]
    first.mul_(10)
    (second * const([3.0, 5.0])).sum().backward()
    assert close(x.grad, [0.0, 0.0, 30.0, 5.0])


def test_a_write_to_a_view_of_a_view():
    x, base = base_of([1.0, 2.0], [3.0, 4.0])
    base[:1][:, :1].mul_(4)
    base.sum().backward()
    assert close(x.grad, [[4.0, 1.0], [1.0, 1.0]])


def test_a_write_to_the_base_reaches_views_taken_before():
    x, base = base_of(1.0, 2.0)
    view = base[1:]
    base.mul_(10)
    assert close(view, [20.0])
    view.sum().backward()
    assert close(x.grad, [0.0, 10.0])


def test_a_value_that_requires_grad_written_to_a_view_makes_the_base_require_it():
    base, value = torch.zeros(3, dtype=torch.float64), leaf([2.0])
    view = base.narrow(0, 1, 1)
    view.add_(value)
    assert base.requires_grad
    assert view.requires_grad
    assert not base.is_leaf
    (base * const([1.0, 5.0, 1.0])).sum().backward()
    assert close(value.grad, [5.0])


def test_a_value_that_requires_grad_written_to_the_base_makes_a_view_require_it():
    base, value = torch.ones(2, dtype=torch.float64), leaf([2.0, 3.0])
    view = base.select(0, 1)
    assert not view.requires_grad
    base.add_(value)
    assert view.requires_grad
    view.backward()
    assert close(value.grad, [0.0, 1.0])


def test_backward_from_a_view_whose_base_is_a_plain_leaf():
    base, value = const([1.0, 2.0]), leaf([3.0])
    view = base[:1]
    view.mul_(value)
    view.sum().backward()
    assert close(value.grad, [1.0])
    assert not base.is_leaf


def test_overlapping_writes_to_two_views():
    def function(x):
        y = x * 1
        y.narrow(0, 0, 2).mul_(2)
        y.narrow(0, 1, 2).mul_(y.narrow(0, 1, 2).clone())
        return y

    x = leaf([1.0, 2.0, 3.0])
    assert torch.autograd.gradcheck(function, x)
    assert torch.autograd.gradgradcheck(function, x)


def test_a_write_to_a_view_of_a_transposed_leaf():
    x = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    base = x.t().clone()
    base.select(1, 0).view(3, 1).mul_(10)
    (base * 2).sum().backward()
    assert close(x.grad, [[20.0, 20.0, 20.0], [2.0, 2.0, 2.0]])


def test_an_assignment_to_a_view_chain():
    x, base = base_of([1.0, 2.0], [3.0, 4.0])
    row = base[0]
    row[0] = 9.0
    with torch.no_grad():
        assert row.grad_fn is not None
        assert base.grad_fn is not None
    base.sum().backward()
    assert close(x.grad, [[0.0, 1.0], [1.0, 1.0]])


def test_the_history_of_a_complex_view_first_asked_for_under_no_grad():
    x = torch.ones(2, dtype=torch.complex128, requires_grad=True)
    y = x * 1
    real = y.real
    y.add_(1)
    with torch.no_grad():
        assert real.grad_fn is not None
    real.sum().backward()
    assert close(x.grad, [1 + 0j, 1 + 0j])


def test_a_saved_view_is_invalidated_by_a_write_to_its_base():
    _, base = base_of(1.0, 2.0)
    view = base[:1]
    out = view * view
    base.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_detaching_the_base_leaves_the_view_attached():
    x, base = base_of(1.0, 2.0)
    view = base[:1]
    base.detach_()
    assert view._base is base
    assert view.requires_grad
    view.sum().backward()
    assert close(x.grad, [1.0, 0.0])


def test_a_view_may_outlive_the_name_of_its_base():
    x, base = base_of(1.0, -2.0)
    view = base[:]
    view.relu_()
    del base
    view.sum().backward()
    assert close(x.grad, [1.0, 0.0])


def test_a_view_written_to_and_deleted():
    x, base = base_of(1.0, -2.0)
    view = base.narrow(0, 1, 1)
    view.relu_()
    del view
    base.sum().backward()
    assert close(x.grad, [1.0, 0.0])


def test_only_the_needed_part_of_a_write_to_a_view_is_run():
    class Forbidden(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise AssertionError("not needed")

    x, y = leaf([1.0, 2.0]), leaf([5.0])
    base = x * 1
    base[:1] += Forbidden.apply(y)
    (g,) = torch.autograd.grad(base.sum(), x)
    assert close(g, [1.0, 1.0])


# --- views that must not be written to -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "write", [lambda v: v.relu_(), lambda v: v.add_(1), lambda v: v.__setitem__(0, 1.0)], ids=["relu_", "add_", "[]="]
)
def test_a_view_of_a_leaf_that_requires_grad_must_not_be_written_to(write):
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match=VIEW_OF_LEAF):
        write(x[:1])
    with torch.no_grad():
        write(x[:1])


MULTI_VIEWS = {
    "unbind": lambda x: x.unbind(),
    "chunk": lambda x: x.chunk(2),
    "split": lambda x: x.split(1),
    "split_with_sizes": lambda x: x.split_with_sizes([1, 1]),
}
SEPARATE_VIEWS = {
    "tensor_split": lambda x: x.tensor_split(2),
    "hsplit": lambda x: torch.hsplit(x, 2),
    "vsplit": lambda x: torch.vsplit(x, 2),
}


@pytest.mark.parametrize("name", MULTI_VIEWS)
def test_one_of_several_views_must_not_be_written_to(name):
    _, base = base_of([1.0, 2.0], [3.0, 4.0])
    view = MULTI_VIEWS[name](base)[0]
    with pytest.raises(RuntimeError, match=f"Output 0 of .* is a view.*{MULTI}"):
        view.mul_(2)


@pytest.mark.parametrize("name", MULTI_VIEWS)
def test_a_view_of_one_of_several_views_must_not_be_written_to(name):
    _, base = base_of([1.0, 2.0], [3.0, 4.0])
    with pytest.raises(RuntimeError, match=MULTI):
        MULTI_VIEWS[name](base)[0][:1].mul_(2)


@pytest.mark.parametrize("name", SEPARATE_VIEWS)
def test_views_that_are_taken_one_by_one_may_be_written_to(name):
    x, base = base_of([1.0, 2.0], [3.0, 4.0])
    SEPARATE_VIEWS[name](base)[0].mul_(5)
    base.sum().backward()
    assert close(x.grad, [[5.0, 1.0], [5.0, 1.0]] if name == "hsplit" else [[5.0, 5.0], [1.0, 1.0]])


def test_one_of_several_views_of_a_view_must_not_be_written_to():
    _, base = base_of([1.0, 2.0], [3.0, 4.0])
    with pytest.raises(RuntimeError, match=MULTI):
        base[:, :1].unbind()[0].mul_(2)


def test_one_of_several_views_may_be_written_to_where_nothing_requires_grad():
    base = torch.ones(2, 2)
    base.unbind()[0].mul_(5)
    assert close(base, [[5.0, 5.0], [1.0, 1.0]])


def test_a_gradient_must_not_be_written_into_one_of_several_views():
    value = leaf([2.0, 2.0])
    view = torch.ones(2, 2, dtype=torch.float64).unbind()[0]
    with pytest.raises(RuntimeError, match=MULTI):
        view.mul_(value)


@pytest.mark.parametrize("name", ["unsafe_split", "unsafe_chunk", "unsafe_split_with_sizes"])
def test_the_unsafe_splits_may_be_written_to(name):
    x, base = base_of([1.0, 2.0], [3.0, 4.0])
    sizes = [1, 1] if name == "unsafe_split_with_sizes" else (2 if name == "unsafe_chunk" else 1)
    parts = getattr(torch, name)(base, sizes)
    parts[0].mul_(5)
    torch.cat(parts).sum().backward()
    assert close(x.grad, [[5.0, 5.0], [1.0, 1.0]])


def test_a_view_made_under_no_grad_must_not_be_written_to_outside():
    _, base = base_of(1.0, 2.0)
    with torch.no_grad():
        view = base[:1]
    with pytest.raises(RuntimeError, match=NO_GRAD):
        view.add_(leaf([1.0]))
    with torch.no_grad():
        view.add_(1)


def test_a_view_made_under_no_grad_is_a_leaf_that_requires_grad_if_its_base_does():
    _, base = base_of(1.0, 2.0)
    with torch.no_grad():
        view = base[:1]
    assert view.requires_grad
    assert view.is_leaf
    assert view.grad_fn is None


def test_a_view_of_a_view_made_under_no_grad_must_not_be_written_to_outside():
    _, base = base_of(1.0, 2.0)
    with torch.no_grad():
        view = base[:1]
    with pytest.raises(RuntimeError, match=NO_GRAD):
        view[:1].add_(leaf([1.0]))


def test_a_view_made_under_no_grad_whose_base_was_written_to():
    _, base = base_of(1.0, 2.0)
    with torch.no_grad():
        view = base[:1]
    base.mul_(2)
    with pytest.raises(RuntimeError, match=NO_GRAD):
        assert view.grad_fn is not None


def test_one_of_several_views_made_under_no_grad():
    _, base = base_of([1.0, 2.0], [3.0, 4.0])
    with torch.no_grad():
        view = base.unbind()[0]
    with pytest.raises(RuntimeError, match=f"{NO_GRAD}|{MULTI}"):
        view.add_(leaf([1.0, 1.0]))


def test_a_view_made_in_inference_mode_must_not_be_written_to_outside():
    _, base = base_of(1.0, 2.0)
    with torch.inference_mode():
        view = base[:1]
    with pytest.raises(RuntimeError, match=INFERENCE):
        view.add_(leaf([1.0]))


# --- views taken in place --------------------------------------------------------------------------------------------

RESHAPES = {
    "transpose_": lambda x: x.transpose_(0, 1),
    "t_": lambda x: x.t_(),
    "squeeze_": lambda x: x.squeeze_(),
    "unsqueeze_": lambda x: x.unsqueeze_(0),
    "swapdims_": lambda x: x.swapdims_(0, 1),
    "as_strided_": lambda x: x.as_strided_((2,), (1,)),
}


@pytest.mark.parametrize("name", RESHAPES)
def test_a_tensor_may_change_its_own_shape(name):
    x, base = base_of([1.0, 2.0], [3.0, 4.0])
    shape = {"unsqueeze_": (1, 2, 2), "as_strided_": (2,)}.get(name, (2, 2))
    assert RESHAPES[name](base) is base
    assert base.shape == shape
    (base * base).sum().backward()
    touched = const([[1.0, 1.0], [0.0, 0.0]]) if name == "as_strided_" else torch.ones(2, 2, dtype=torch.float64)
    assert close(x.grad, 2 * x.detach() * touched)


@pytest.mark.parametrize("name", RESHAPES)
def test_one_of_several_views_must_not_change_its_own_shape(name):
    _, base = base_of([[1.0, 2.0], [3.0, 4.0]])
    with pytest.raises(RuntimeError, match=MULTI):
        RESHAPES[name](base.unbind()[0])


def test_a_view_may_change_its_own_shape():
    x, base = base_of([1.0, 2.0], [3.0, 4.0])
    view = base[:]
    view.transpose_(0, 1)
    assert view._base is base
    view[0].mul_(10)
    base.sum().backward()
    assert close(x.grad, [[10.0, 1.0], [10.0, 1.0]])


def test_a_real_view_of_a_complex_tensor_may_be_written_to():
    x = torch.ones(2, dtype=torch.complex128, requires_grad=True)
    y = x * 1
    torch.view_as_real(y)[:, 0].mul_(3)
    (y.real * 2 + y.imag * 5).sum().backward()
    assert close(x.grad, [6 + 5j, 6 + 5j])


def test_one_of_several_real_views_of_a_complex_tensor_must_not_be_written_to():
    x = torch.ones(2, dtype=torch.complex128, requires_grad=True)
    with pytest.raises(RuntimeError, match=MULTI):
        torch.view_as_real(x * 1).unbind(-1)[0].mul_(3)
