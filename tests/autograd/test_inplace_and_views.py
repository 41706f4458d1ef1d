"""In-place operations: version counters, saved values, history, assignment by index. Not here: the rules for views."""

import pytest
from library import close, const, leaf, pellucid_only, set_versions, torch

CHANGED = "one of the variables needed for gradient computation has been modified by an inplace operation"
LEAF = "a leaf Variable that requires grad is being used in an in-place operation"


# --- the version counter ---------------------------------------------------------------------------------------------

WRITES = {
    "add_": lambda x: x.add_(1),
    "mul_": lambda x: x.mul_(2),
    "exp_": lambda x: x.exp_(),
    "zero_": lambda x: x.zero_(),
    "fill_": lambda x: x.fill_(3),
    "copy_": lambda x: x.copy_(torch.zeros(2, 2)),
    "+=": lambda x: x.__iadd__(1),
    "[]=": lambda x: x.__setitem__(0, 5.0),
    "out=": lambda x: torch.mul(x, 2, out=x),
    "view": lambda x: x[0].add_(1),
    "detach": lambda x: x.detach().add_(1),
    "transposed": lambda x: x.t().add_(1),
}


@pytest.mark.parametrize("write", WRITES)
def test_a_write_raises_the_version_by_one(write):
    x = torch.ones(2, 2)
    assert x._version == 0
    WRITES[write](x)
    assert x._version == 1


def test_reading_does_not_raise_the_version():
    x = torch.ones(2, 2)
    x + 1
    x[0].sum()
    x.view(4)
    x.requires_grad_()
    assert x._version == 0


def test_views_share_the_version_of_their_base():
    base = torch.ones(4)
    view = base[1:]
    other = view.view(3, 1)
    view.add_(1)
    base.mul_(2)
    assert base._version == view._version == other._version == 2


def test_a_clone_has_a_version_of_its_own():
    x = torch.ones(2)
    y = x.clone()
    x.add_(1)
    assert (x._version, y._version) == (1, 0)


def test_data_has_a_version_of_its_own():
    x = torch.ones(2)
    x.data.add_(1)
    assert x._version == 0
    x.add_(1)
    x.data = torch.zeros(2)
    assert x._version == 1


def test_a_write_under_no_grad_raises_the_version():
    x = torch.ones(2)
    with torch.no_grad():
        x.add_(1)
    assert x._version == 1


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64], ids=str)
def test_the_version_can_be_raised_by_hand(dtype):
    x = torch.ones(2, dtype=dtype)
    torch.autograd.graph.increment_version(x)
    torch.autograd.graph.increment_version([x, x])
    assert x._version == 3


@pytest.mark.parametrize("given", ["tensor", "view", "several"])
def test_a_block_whose_writes_are_not_counted(given):
    x, y = torch.ones(2), torch.ones(2)
    x.add_(1)
    with torch.autograd._unsafe_preserve_version_counter({"tensor": x, "view": x[:1], "several": (x, y)}[given]):
        x.add_(1)
        if given == "several":
            y.add_(1)
    assert (x._version, y._version) == (1, 0)
    x.add_(1)
    assert x._version == 2


def test_a_saved_value_overwritten_in_such_a_block_goes_unnoticed():
    x = leaf([1.0])
    y = x * 1
    z = y * y
    with torch.no_grad(), torch.autograd._unsafe_preserve_version_counter(y):
        y.fill_(5.0)
    z.backward()
    assert close(x.grad, [10.0])


def test_versions_may_be_set():
    x, y = torch.ones(2), torch.ones(2)
    set_versions((x, y), (7, 3))
    x.add_(1)
    assert (x._version, y._version) == (8, 3)
    with pytest.raises(RuntimeError, match="Cannot set a version_counter to a value below 0: -1"):
        set_versions((x,), (-1,))


def test_each_tensor_is_given_one_version():
    with pytest.raises(RuntimeError, match=r"expected one version for each tensor|tensors_len=1, versions_len=2"):
        set_versions((torch.ones(2),), (1, 2))


def test_raising_the_version_of_an_inference_tensor_does_nothing():
    with torch.inference_mode():
        x = torch.ones(2)
    torch.autograd.graph.increment_version(x)
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        assert x._version


@pytest.mark.parametrize("other", ["same", "larger"])
def test_resize_raises_the_version_only_if_the_shape_changes(other):
    x = torch.ones(2, 2)
    x.resize_(2, 2) if other == "same" else x.resize_(3, 3)
    assert x._version == (0 if other == "same" else 1)
    y = torch.ones(2, 2)
    y.resize_as_(torch.zeros(2, 2) if other == "same" else torch.zeros(3, 3))
    assert y._version == (0 if other == "same" else 1)


# --- saved values that are overwritten -------------------------------------------------------------------------------

SAVED = {
    # what is computed from y, whether it saves y itself
    "y * y": (lambda y: y * y, True),
    "exp, a saved result": (lambda y: y.exp(), False),
    "y * 2": (lambda y: y * 2, False),
    "y + 1": (lambda y: y + 1, False),
    "sin": (lambda y: y.sin(), True),
    "y ** 2": (lambda y: y**2, True),
    "sum": (lambda y: y.sum(), False),
    "y * constant": (lambda y: y * const([5.0, 6.0]), False),
}


@pytest.mark.parametrize("name", SAVED)
def test_overwriting_an_operand_matters_only_if_it_was_saved(name):
    compute, saves = SAVED[name]
    x = leaf([1.0, 2.0])
    y = x * 1
    out = compute(y).sum()
    y.add_(1)
    if saves:
        with pytest.raises(RuntimeError, match=CHANGED):
            out.backward()
    else:
        out.backward()
        assert x.grad is not None


@pytest.mark.parametrize("name", ["exp", "tanh", "sigmoid", "sqrt"])
def test_overwriting_a_saved_result_raises(name):
    x = leaf([1.0, 2.0])
    s = getattr(x, name)()
    s[0] = 9.0
    with pytest.raises(RuntimeError, match=CHANGED):
        s.sum().backward()


def test_the_same_function_without_saved_results_works():
    x = leaf([0.1, 0.2, 0.3])
    s = 1 - 2 / ((2 * x).exp() + 1)
    s[0] = 9.0
    s.sum().backward()
    assert close(x.grad, [0.0, 0.961042983158, 0.915136960626])


def test_the_error_names_versions():
    x = leaf([1.0])
    y = x * 1
    z = y * y
    y.add_(1)
    y.add_(1)
    with pytest.raises(RuntimeError, match="is at version 2; expected version 0 instead"):
        z.backward()


@pellucid_only("PyTorch does not name the line that wrote")
def test_the_error_names_the_operation_and_line_that_wrote():
    x = leaf([1.0])
    y = x * 1
    z = y * y
    y.add_(1)
    with pytest.raises(RuntimeError, match=r"overwritten: +by add_? at .*test_inplace_and_views.py:\d+"):
        z.backward()


@pytest.mark.parametrize("how", ["detach", "view", "no_grad"])
def test_a_write_to_shared_memory_is_noticed(how):
    x = leaf([1.0, 2.0])
    y = x * 1
    z = (y * y).sum()
    if how == "detach":
        y.detach().zero_()
    elif how == "view":
        y[:1].zero_()
    else:
        with torch.no_grad():
            y.zero_()
    with pytest.raises(RuntimeError, match=CHANGED):
        z.backward()


def test_a_write_before_the_value_is_saved_is_fine():
    x = leaf([1.0, 2.0])
    y = x * 1
    y.add_(1)
    (y * y).sum().backward()
    assert close(x.grad, [4.0, 6.0])


def test_a_chain_of_in_place_operations():
    x = leaf([1.0, 2.0])
    y = x * 1
    y.mul_(3).add_(1).exp_()
    y.sum().backward()
    assert close(x.grad, 3 * (3 * x + 1).exp())


def test_a_chain_of_in_place_operations_that_overwrites_a_saved_result():
    y = leaf([1.0, 2.0]) * 1
    y.exp_().mul_(2)
    with pytest.raises(RuntimeError, match=CHANGED):
        y.sum().backward()


@pellucid_only("PyTorch refuses the backward: it saved the operand that it overwrote")
def test_an_in_place_product_with_itself():
    x = leaf([2.0])
    y = x * 1
    y.mul_(y).backward()
    assert close(x.grad, [4.0])


def test_multiplying_by_a_constant_does_not_save_the_tensor():
    mean = torch.zeros(3, dtype=torch.float64)
    total = leaf([0.0, 0.0, 0.0])
    for k in range(3):
        mean.detach_()
        mean.copy_(const([k + 1.0] * 3))
        total = total + mean * 2
    total.sum().backward()
    assert close(total, [12.0] * 3)


def test_a_masked_read_and_write_of_one_tensor():
    x = leaf([1.0, -2.0, 3.0])
    t = x * 1
    mask = torch.tensor([True, False, True])
    t[mask] = t[mask] * 2
    t.sum().backward()
    assert close(x.grad, [2.0, 1.0, 2.0])


def test_a_recurrence_written_into_one_buffer_raises_and_never_gives_a_wrong_number():
    w = leaf([0.5])
    h = torch.zeros(4, dtype=torch.float64)
    h[0] = 1.0
    for k in (1, 2, 3):
        h[k] = (h[k - 1] * w)[0]
        h[k] = h[k].tanh()
    with pytest.raises(RuntimeError, match=CHANGED):
        h.sum().backward()


def test_the_same_recurrence_kept_in_a_list_works():
    w = leaf([0.5])
    h = [const([1.0])]
    for _ in range(3):
        h.append((h[-1] * w).tanh())
    torch.cat(h).sum().backward()
    assert close(w.grad, [2.2223213], tolerance=1e-4)


# --- what requires grad afterwards -----------------------------------------------------------------------------------


@pytest.mark.parametrize("non_leaf", [False, True], ids=["leaf", "non-leaf"])
def test_adding_a_tensor_that_requires_grad_makes_the_target_require_it(non_leaf):
    a = const([1.0, 2.0]) * 1 if non_leaf else const([1.0, 2.0])
    b = leaf([3.0, 4.0])
    a += b
    assert a.requires_grad
    assert not a.is_leaf
    (a * const([5.0, 7.0])).sum().backward()
    assert close(b.grad, [5.0, 7.0])


def test_a_leaf_may_be_written_to_before_it_requires_grad_but_not_after():
    x = const([1.0, 2.0])
    x.add_(10)
    x.requires_grad_()
    with pytest.raises(RuntimeError, match=LEAF):
        x.add_(10)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        x[:1].add_(10)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad is being used in an in-place"):
        x[0] = 3.0
    assert close(x, [11.0, 12.0])
    with torch.no_grad():
        x.add_(10)
    assert close(x, [21.0, 22.0])


@pytest.mark.parametrize(("name", "dtype"), [(n, n) for n in ("float16", "bfloat16", "float32", "float64")])
def test_copying_into_another_dtype_keeps_the_gradient(name, dtype):
    x = leaf([1.0, 2.0], dtype=torch.float32)
    target = torch.zeros(2, dtype=getattr(torch, dtype))
    target.copy_(x)
    assert target.requires_grad
    assert target.dtype is getattr(torch, dtype)
    (target * 3).sum().backward()
    assert x.grad.dtype is torch.float32
    assert close(x.grad, [3.0, 3.0])


def test_copying_real_into_complex():
    x = leaf([1.0, 2.0])
    target = torch.zeros(2, dtype=torch.complex128)
    target.copy_(x)
    target.backward(const([1 + 2j, 3 - 1j], dtype=torch.complex128))
    assert close(x.grad, [1.0, 3.0])


def test_copying_broadcasts_and_sums_the_gradient():
    x = leaf([1.0, 2.0])
    target = torch.zeros(3, 2, dtype=torch.float64)
    target.copy_(x)
    target.sum().backward()
    assert close(x.grad, [3.0, 3.0])


def test_copying_cuts_the_old_history_of_the_target():
    old, new = leaf([1.0]), leaf([2.0])
    y = old * 3
    y.copy_(new)
    (y * 5).backward()
    assert close(new.grad, [5.0])
    assert close(old.grad, [0.0])


@pytest.mark.parametrize("write", [lambda y: y.zero_(), lambda y: y.fill_(3.0)], ids=["zero_", "fill_"])
def test_overwriting_everything_leaves_a_gradient_of_zero(write):
    x = leaf([1.0, 2.0])
    y = x * 3
    write(y)
    assert y.requires_grad
    y.sum().backward()
    assert close(x.grad, [0.0, 0.0])


# --- out= ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("which", ["operand", "target"])
def test_out_is_refused_where_a_gradient_is_needed(which):
    x, out = const([1.0]), const([0.0])
    (x if which == "operand" else out).requires_grad_()
    message = r"functions with out=... arguments don't support automatic differentiation"
    with pytest.raises(RuntimeError, match=message):
        torch.mul(x, 2, out=out)
    with torch.no_grad():
        torch.mul(x, 2, out=out)
    assert close(out, [2.0])


# --- memory that several elements share ------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [lambda b: b.add_(1), lambda b: b.cos_()], ids=["add_", "cos_"])
def test_an_expanded_tensor_cannot_be_written_to(write):
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        write(torch.ones(1, 1).expand(2, 3))


# --- assignment by index ---------------------------------------------------------------------------------------------

PLACES = {
    "integer": lambda: 1,
    "negative": lambda: -1,
    "slice": lambda: slice(0, 2),
    "step": lambda: slice(0, 3, 2),
    "two integers": lambda: (1, 2),
    "integer and slice": lambda: (1, slice(1, None)),
    "slice and integer": lambda: (slice(None), 1),
    "ellipsis": lambda: (..., 1),
    "ellipsis alone": lambda: ...,
    "none": lambda: (None, 1),
    "list": lambda: [0, 2],
    "two lists": lambda: ([0, 2], [1, 2]),
    "index tensor": lambda: torch.tensor([2, 0]),
    "0-d index tensor": lambda: torch.tensor(1),
    "slice and index tensor": lambda: (slice(None), torch.tensor([0, 2])),
    "two index tensors": lambda: (torch.tensor([0, 1]), torch.tensor([2, 2])),
    "row mask": lambda: torch.tensor([True, False, True]),
    "full mask": lambda: torch.eye(3, dtype=torch.bool),
}


@pytest.mark.parametrize("value", ["number", "0-d tensor", "tensor"])
@pytest.mark.parametrize("place", PLACES)
def test_an_assignment_moves_the_gradient_from_the_old_values_to_the_new(place, value):
    x = leaf([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])
    weights = const([[1.0, 10.0, 100.0], [2.0, 20.0, 200.0], [3.0, 30.0, 300.0]])
    index = PLACES[place]()
    y = x + 0
    version = y._version
    selected = y[index].detach()
    new = {"number": 7.0, "0-d tensor": leaf(7.0), "tensor": None}[value]
    if value == "tensor":
        new = (selected * 0 + 7).clone().requires_grad_()
    y[index] = new
    assert y._version == version + 1
    assert close(y.detach()[index], selected * 0 + 7)
    (y * weights).sum().backward()
    expected = weights.clone()
    expected[index] = 0.0
    assert close(x.grad, expected)
    if value == "0-d tensor":
        assert close(new.grad, weights[index].sum())
    elif value == "tensor":
        assert close(new.grad, weights[index])


def test_an_assigned_value_is_broadcast():
    x, row = leaf([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]), leaf([10.0, 20.0])
    y = x * 1
    y[1:] = row
    (y * const([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])).sum().backward()
    assert close(x.grad, [[1.0, 2.0], [0.0, 0.0], [0.0, 0.0]])
    assert close(row.grad, [8.0, 10.0])


def test_rows_that_require_grad_may_be_assigned_into_a_plain_leaf():
    x, y = torch.zeros(3, dtype=torch.float64), leaf(2.0)
    x[0] = y
    x[1] = 2 * y
    assert x.requires_grad
    assert not x.is_leaf
    x.sum().backward()
    assert close(y.grad, 3.0)


def test_overwriting_a_bad_entry_does_not_remove_its_nan():
    q = leaf([0.0, 800.0])
    f = (1 + q.exp()).log()
    f[1] = -1.0
    f.sum().backward()
    assert close(q.grad, [0.5, float("nan")])
