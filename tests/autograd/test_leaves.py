"""Leaves: which tensors are, which require grad, what `.grad`, `.data` and `detach` do. Not here: `retain_grad`."""

import warnings
from collections import OrderedDict

import pytest
from library import close, const, leaf, pellucid_only, torch

INTEGERS = ["uint8", "int8", "int16", "int32", "int64", "bool"]
FLOATS = ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"]


# --- requires_grad ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("first", "second"), [(False, False), (False, True), (True, False), (True, True)])
def test_a_result_requires_grad_if_any_operand_does(first, second):
    x, y = const([1.0]).requires_grad_(first), const([2.0]).requires_grad_(second)
    for result in (x + y, x * y, x - y, torch.exp(x) * y):
        assert result.requires_grad is (first or second)
        assert result.is_leaf is not (first or second)
        assert (result.grad_fn is None) is not (first or second)


def test_requires_grad_is_inherited_through_a_chain():
    x, y = const([1.0]), leaf([2.0])
    z = x + x
    assert not z.requires_grad
    assert (z * y).requires_grad
    assert ((z * y) + x).requires_grad


@pytest.mark.parametrize("on", ["constant", "result of constants", "leaf"])
def test_hooks_put_in_by_hand_run_only_where_a_gradient_flows(on):
    log = []
    c, x = const([1.0]), leaf([2.0])
    targets = {"constant": c, "result of constants": c + c, "leaf": x}
    target = targets[on]
    target._backward_hooks = OrderedDict(mine=lambda g: log.append(g.item()))
    (sum(targets.values()) * 3).backward()
    assert log == ([3.0] if on == "leaf" else [])
    assert list(target._backward_hooks) == ["mine"]


@pellucid_only("PyTorch takes anything and fails later")
def test_hooks_put_in_by_hand_are_a_dictionary():
    x = leaf([1.0])
    with pytest.raises(TypeError, match="_backward_hooks must be a dict or None, got list"):
        x._backward_hooks = [print]
    x._backward_hooks = None
    (x * 2).backward()
    assert close(x.grad, [2.0])


def test_requires_grad_in_place_returns_the_tensor_itself():
    x = const([1.0])
    assert x.requires_grad_() is x
    assert x.requires_grad
    assert x.requires_grad_(False) is x
    assert not x.requires_grad


def test_a_non_leaf_cannot_stop_requiring_grad():
    y = leaf([1.0]) * 2
    assert y.requires_grad_() is y
    with pytest.raises(RuntimeError, match="can only change requires_grad flags of leaf variables"):
        y.requires_grad_(False)
    with pytest.raises(RuntimeError, match="can only change requires_grad flags of leaf variables"):
        y.requires_grad = False


@pytest.mark.parametrize("dtype", INTEGERS)
def test_integers_cannot_require_grad(dtype):
    kind = getattr(torch, dtype)
    message = "[Oo]nly Tensors of floating point (and complex )?dtype can require gradients"
    x = torch.ones(3, dtype=kind)
    with pytest.raises(RuntimeError, match=message):
        x.requires_grad_()
    with pytest.raises(RuntimeError, match=message):
        x.requires_grad = True
    with pytest.raises(RuntimeError, match=message):
        torch.ones(3, dtype=kind, requires_grad=True)
    x.requires_grad_(False)
    assert not x.requires_grad


@pytest.mark.parametrize("dtype", FLOATS)
def test_floating_point_and_complex_may_require_grad(dtype):
    x = torch.ones(3, dtype=getattr(torch, dtype))
    x.requires_grad = True
    assert x.requires_grad
    assert x.is_leaf


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("name", ["ones_like", "zeros_like", "randn_like", "empty_like"])
def test_factories_take_dtype_and_requires_grad(name, dtype, requires_grad):
    x = const([1.0, 2.0], dtype=torch.float32)
    made = getattr(torch, name)(x, dtype=getattr(torch, dtype), requires_grad=requires_grad)
    assert made.requires_grad is requires_grad
    assert made.is_leaf
    assert made.dtype is getattr(torch, dtype)


def test_a_factory_like_a_tensor_does_not_inherit_requires_grad():
    assert not torch.ones_like(leaf([1.0])).requires_grad
    assert not leaf([1.0]).new_zeros(2).requires_grad


def test_comparisons_and_integer_results_do_not_require_grad():
    x = leaf([1.0, 2.0])
    for result in (x > 1, x == x, x.argmax(), x.long(), torch.isnan(x)):
        assert not result.requires_grad


# --- .grad -----------------------------------------------------------------------------------------------------------


def test_grad_of_a_leaf_is_read_silently():
    x = leaf([1.0])
    assert x.grad is None
    (x * 3).sum().backward()
    assert close(x.grad, [3.0])


def test_grad_of_a_non_leaf_warns_and_is_none():
    y = leaf([1.0]) * 3
    y.sum().backward()
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed"):
        assert y.grad is None


def test_grad_of_a_non_leaf_is_silent_after_retain_grad():
    y = leaf([1.0]) * 3
    y.retain_grad()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert y.grad is None
        y.sum().backward()
        assert close(y.grad, [1.0])


@pytest.mark.parametrize(
    ("make", "error", "message"),
    [
        (lambda: 1.0, TypeError, "expected to be a Tensor or None"),
        (lambda: "text", TypeError, "expected to be a Tensor or None"),
        (lambda: torch.zeros(3, dtype=torch.float64), RuntimeError, "attempting to assign a gradient of size"),
        (lambda: torch.zeros(2, dtype=torch.float32), RuntimeError, "dtype"),
    ],
    ids=["number", "string", "shape", "dtype"],
)
def test_grad_refuses_what_cannot_be_a_gradient(make, error, message):
    x = leaf([1.0, 2.0])
    with pytest.raises(error, match=message):
        x.grad = make()
    assert x.grad is None


def test_a_tensor_cannot_be_its_own_grad():
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="can't assign Variable as its own grad"):
        x.grad = x


def test_an_assigned_grad_is_the_same_object_and_is_added_to():
    x, g = leaf([1.0, 2.0]), const([10.0, 20.0])
    x.grad = g
    assert x.grad is g
    (x * 3).sum().backward()
    assert x.grad is g
    assert close(g, [13.0, 23.0])
    x.grad = None
    assert x.grad is None


def test_a_grad_that_is_read_under_no_grad_can_be_changed_in_place():
    x = leaf([1.0])
    (x * 3).sum().backward()
    x.grad.zero_()
    (x * 3).sum().backward()
    assert close(x.grad, [3.0])


def test_grads_take_the_dtype_of_their_leaf():
    x = leaf([1.0], dtype=torch.float32)
    y = leaf([2.0], dtype=torch.float64)
    (x * y).sum().backward()
    assert (x.grad.dtype, y.grad.dtype) == (torch.float32, torch.float64)


# --- grad_dtype ------------------------------------------------------------------------------------------------------


def test_grad_dtype_is_the_dtype_of_the_leaf_by_default():
    assert leaf([1.0], dtype=torch.float32).grad_dtype is torch.float32


def test_grad_dtype_chooses_the_dtype_of_grad():
    x = leaf([1.0], dtype=torch.float32)
    x.grad_dtype = torch.float16
    (x * 3).sum().backward()
    assert x.grad.dtype is torch.float16


def test_grad_dtype_checks_assignments():
    x = leaf([1.0], dtype=torch.float32)
    x.grad_dtype = torch.float16
    with pytest.raises(RuntimeError, match="grad_dtype"):
        x.grad = torch.ones(1, dtype=torch.float32)
    x.grad = torch.ones(1, dtype=torch.float16)
    assert x.grad.dtype is torch.float16


def test_grad_dtype_none_lets_any_dtype_through():
    x = leaf([1.0], dtype=torch.float32)
    x.grad_dtype = None
    x.grad = torch.ones(1, dtype=torch.float64)
    assert x.grad.dtype is torch.float64


def test_grad_dtype_is_for_leaves_only():
    y = leaf([1.0]) * 2
    with pytest.raises(RuntimeError, match="leaf"):
        y.grad_dtype = torch.float16


def test_grad_dtype_must_be_a_dtype_or_none():
    with pytest.raises(RuntimeError, match=r"grad_dtype must be a torch\.dtype or None, but got int"):
        leaf([1.0]).grad_dtype = 3


def test_grad_dtype_cannot_change_under_a_gradient():
    x = leaf([1.0], dtype=torch.float32)
    (x * 2).backward()
    with pytest.raises(RuntimeError, match=r"Cannot set grad_dtype to .* because there is already a gradient with"):
        x.grad_dtype = torch.float16
    x.grad_dtype = torch.float32
    x.grad = None
    x.grad_dtype = torch.float16
    assert x.grad_dtype is torch.float16


def test_every_gradient_is_cast_to_grad_dtype():
    x = leaf([1.0], dtype=torch.float64)
    x.grad_dtype = torch.bfloat16
    for _ in range(2):
        (x * 1.5).backward()
    assert x.grad.dtype is torch.bfloat16
    assert close(x.grad.double(), [3.0])


# --- detach and data -------------------------------------------------------------------------------------------------


def test_detach_shares_memory_but_not_history():
    x = leaf([1.0, 2.0])
    y = x * 2
    z = y.detach()
    assert z.is_leaf
    assert not z.requires_grad
    assert z.grad_fn is None
    assert z.data_ptr() == y.data_ptr()
    assert (y + z.requires_grad_()).requires_grad


def test_gradient_does_not_flow_through_detach():
    x = leaf([2.0])
    (x * x.detach()).sum().backward()
    assert close(x.grad, [2.0])


def test_detach_in_place_forgets_the_history():
    x = leaf([1.0, 2.0])
    y = x * 2
    assert y.detach_() is y
    assert y.is_leaf
    assert y.grad_fn is None
    assert not y.requires_grad
    (y.requires_grad_() * 3).sum().backward()
    assert close(y.grad, [3.0, 3.0])
    assert x.grad is None


def test_detach_in_place_stops_a_leaf_from_requiring_grad():
    x = leaf([1.0])
    x.detach_()
    assert not x.requires_grad


def test_a_view_cannot_be_detached_in_place():
    y = leaf([1.0, 2.0, 3.0]) * 2
    view = y.narrow(0, 0, 2)
    with pytest.raises(RuntimeError, match="detach views in-place"):
        view.detach_()
    y.detach_()
    assert view.requires_grad


def test_data_of_a_requiring_tensor_must_stay_differentiable():
    x = leaf([1.0, 2.0])
    with pytest.raises(RuntimeError, match="must be floating point or complex dtype"):
        x.data = torch.tensor([1, 2])
    plain = const([1.0, 2.0])
    plain.data = torch.tensor([1, 2])
    assert plain.dtype is torch.int64


def test_data_replaces_the_values_and_keeps_the_object():
    x = leaf([1.0, 2.0])
    before = id(x)
    x.data = const([5.0, 6.0, 7.0])
    assert id(x) == before
    assert x.requires_grad
    assert close(x, [5.0, 6.0, 7.0])
    (x * x).sum().backward()
    assert close(x.grad, [10.0, 12.0, 14.0])


def test_writes_through_data_are_not_seen_by_the_version_counter():
    x = leaf([1.0])
    y = x * x
    x.data.add_(1)
    y.backward()
    assert close(x.grad, [4.0])


def test_a_parameter_may_be_cut_to_a_slice_between_backwards():
    parameter = torch.nn.Parameter(torch.arange(6.0).reshape(2, 3))
    for count in (3, 2, 1):
        with torch.no_grad():
            parameter.set_(parameter[:, :count])
        parameter.grad = None
        (parameter * parameter).sum().backward()
        assert parameter.grad.shape == (2, count)
        assert close(parameter.grad, 2 * parameter)


def test_a_parameter_is_a_leaf_that_requires_grad():
    parameter = torch.nn.Parameter(torch.ones(2))
    assert parameter.is_leaf
    assert parameter.requires_grad
    assert not torch.nn.Parameter(torch.ones(2), requires_grad=False).requires_grad
    with pytest.raises(RuntimeError, match=r"[Oo]nly Tensors of floating point and complex dtype can require"):
        torch.nn.Parameter(torch.ones(2, dtype=torch.int64))
