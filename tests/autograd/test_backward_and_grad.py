"""`backward` and `grad`: roots, gradients to start from, targets, accumulation, errors. Not here: hooks and modes."""

import pytest
from library import close, const, leaf, torch

grad = torch.autograd.grad
backward = torch.autograd.backward
NO_GRAD_NEEDED = "does not require grad and does not have a grad_fn"
SECOND_TIME = "Trying to backward through the graph a second time"


class Forbidden(torch.autograd.Function):
    """The identity, with a backward that must not run."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        raise AssertionError("this node leads to no wanted input, so it must not run")


# --- values ----------------------------------------------------------------------------------------------------------


def test_backward_of_a_rational_expression():
    x, y, z = leaf([1.0, 2.0]), leaf([3.0, 4.0]), leaf([5.0, -2.0])
    ((x * y + z) / (x + 4)).sum().backward()
    a, b, c = x.detach(), y.detach(), z.detach()
    assert close(x.grad, (4 * b - c) / (a + 4) ** 2)
    assert close(y.grad, a / (a + 4))
    assert close(z.grad, 1 / (a + 4))


def test_backward_of_a_leaf_puts_the_gradient_into_it():
    x = leaf([1.0, 2.0])
    x.backward(const([3.0, 4.0]))
    assert close(x.grad, [3.0, 4.0])


def test_a_gradient_weighs_the_elements_of_the_root():
    x = leaf([1.0, 2.0])
    (x * x).backward(gradient=const([10.0, 100.0]))
    assert close(x.grad, [20.0, 400.0])


def test_a_gradient_used_three_times_is_never_aliased():
    x = leaf([1.0, 2.0])
    y = x + x + x
    y.backward(const([1.0, 10.0]))
    assert close(x.grad, [3.0, 30.0])


def test_leaves_that_get_one_gradient_do_not_share_memory():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    seed = const([1.0, 1.0])
    (x + y).backward(seed)
    x.grad.mul_(10)
    assert close(y.grad, [1.0, 1.0])
    assert close(seed, [1.0, 1.0])


def test_broadcasting_is_undone():
    x, y, z = leaf([[1.0], [2.0]]), leaf([3.0, 4.0, 5.0]), leaf(2.0)
    (x * y * z).sum().backward()
    assert close(x.grad, [[24.0], [24.0]])
    assert close(y.grad, [6.0, 6.0, 6.0])
    assert close(z.grad, 36.0)


def test_gradients_of_empty_broadcasts_are_zeros_of_the_leaf_shape():
    x, y = torch.zeros(4, 0, requires_grad=True), torch.zeros(4, 1, requires_grad=True)
    (x + y).sum().backward()
    assert x.grad.shape == (4, 0)
    assert close(y.grad, torch.zeros(4, 1))


def test_only_the_used_output_of_several_gives_a_gradient():
    x = leaf([1.0, 2.0, 3.0, 4.0, 5.0])
    parts = x.chunk(5)
    (parts[2] * 7).sum().backward()
    assert close(x.grad, [0.0, 0.0, 7.0, 0.0, 0.0])


def test_an_output_without_gradient_joins_the_graph_as_a_constant():
    x = leaf([[1.0, 5.0], [7.0, 2.0]])
    values, indices = x.max(dim=1, keepdim=True)
    (values * indices.double()).sum().backward()
    assert not indices.requires_grad
    assert close(x.grad, [[0.0, 1.0], [0.0, 0.0]])


def test_read_with_repeated_indices_accumulates():
    z = leaf([1.0, 2.0, 3.0])
    z[torch.tensor([1, 1, 0])].backward(const([1.0, 10.0, 100.0]))
    assert close(z.grad, [100.0, 11.0, 0.0])


# --- several roots ---------------------------------------------------------------------------------------------------


def test_two_roots_with_a_shared_input_add_up():
    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    backward([x * y, x + y], [const([1.0, 10.0]), const([100.0, 1000.0])])
    assert close(x.grad, [103.0, 1040.0])
    assert close(y.grad, [101.0, 1020.0])


def test_one_root_may_be_an_ancestor_of_another():
    x = leaf([3.0])
    y = x * x
    z = y * y
    backward([y, z], [const([1.0]), const([1.0])])
    assert close(x.grad, [2 * 3 + 4 * 27.0])


def test_a_root_given_twice_counts_twice():
    x = leaf([3.0])
    y = x * x
    backward([y, y], [const([1.0]), const([10.0])])
    assert close(x.grad, [66.0])


def test_groups_of_intermediates_can_be_differentiated_in_steps():
    x = leaf([1.0, 2.0, 3.0])
    middle = [x * 2, x.exp(), x * x]
    loss = (middle[0] * middle[1] * middle[2]).sum()
    found = grad(loss, middle, retain_graph=True)
    backward(middle, list(found))
    v = x.detach()
    assert close(x.grad, 2 * v.exp() * (3 * v**2 + v**3))


def test_gradients_of_intermediates_add_to_several_parameters_in_groups():
    w, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    first = [w * k for k in range(1, 4)]
    second = [b + f for f in first]
    loss = sum((s * s).sum() for s in second)
    backward(second, grad(loss, second))
    assert close(b.grad, 2 * (3 * b + 6 * w).detach())
    assert close(w.grad, sum(2 * k * (b + k * w).detach() for k in range(1, 4)))


# --- accumulation ----------------------------------------------------------------------------------------------------


def test_backward_accumulates_into_the_same_tensor():
    x = leaf([2.0])
    (x * x).sum().backward()
    first = x.grad
    (x * x).sum().backward()
    assert x.grad is first
    assert close(first, [8.0])


def test_with_create_graph_the_sum_is_a_new_tensor(recwarn):
    x = leaf([3.0])
    (x**3).sum().backward(create_graph=True)
    first = x.grad
    (x**3).sum().backward(create_graph=True)
    assert x.grad is not first
    assert close(first, [27.0])
    assert close(x.grad, [54.0])
    assert x.grad.requires_grad
    assert x.grad.grad_fn is not None
    x.grad = None


def test_grad_leaves_the_leaves_alone():
    x = leaf([2.0])
    found = grad((x * x).sum(), x)
    assert close(found[0], [4.0])
    assert x.grad is None


def test_grad_of_a_non_leaf_fills_nothing_in():
    x = leaf([2.0])
    y = x * 3
    for _ in range(2):
        (found,) = grad((y * y).sum(), y, create_graph=True)
        assert close(found, [12.0])
    assert x.grad is None
    with pytest.warns(UserWarning, match="not a leaf"):
        assert y.grad is None


def test_grad_of_several_outputs_of_one_node_does_not_call_a_hook_of_the_parent():
    x = leaf([1.0, 2.0, 3.0, 4.0])
    parent = x * 2
    called = []
    parent.register_hook(called.append)
    first, second = parent.chunk(2)
    found = grad((first * first).sum() + second.sum(), [first, second])
    assert close(found[0], [4.0, 8.0])
    assert close(found[1], [1.0, 1.0])
    assert not called


def test_grad_gives_one_result_for_each_input_in_order():
    x, y = leaf([2.0]), leaf([5.0])
    found = grad((x * y).sum(), (y, x, y))
    assert isinstance(found, tuple)
    assert [g.item() for g in found] == [2.0, 5.0, 2.0]


# --- inputs= ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("as_list", [True, False], ids=["list", "tensor"])
def test_backward_with_inputs_accumulates_into_them_only(as_list):
    x, y = leaf([2.0]), leaf([5.0])
    (x * y).sum().backward(inputs=[x] if as_list else x)
    assert close(x.grad, [5.0])
    assert y.grad is None


def test_backward_with_inputs_accepts_a_scalar():
    x = leaf(2.0)
    (x * x).backward(inputs=x)
    assert close(x.grad, 4.0)


def test_backward_with_no_inputs_raises():
    x = leaf([2.0])
    with pytest.raises(RuntimeError, match="cannot be empty"):
        (x * x).sum().backward(inputs=[])


def test_backward_with_inputs_of_different_dtypes():
    x = leaf([2.0], dtype=torch.float32)
    y = x.double() * 3
    y.backward(const([1.0]), inputs=[x])
    assert x.grad.dtype is torch.float32


def test_backward_with_a_non_leaf_input_fills_its_grad_and_not_the_leaf():
    x, other = leaf([2.0]), leaf([1.0])
    y = x * 3
    y.retain_grad()
    (y * y).sum().backward(inputs=[y, other])
    assert close(y.grad, [12.0])
    assert x.grad is None
    assert other.grad is None


def test_backward_with_a_leaf_and_a_non_leaf_on_one_path():
    x = leaf([2.0])
    y = x * 3
    y.retain_grad()
    (y * y).sum().backward(inputs=[y, x])
    assert close(y.grad, [12.0])
    assert close(x.grad, [36.0])


@pytest.mark.parametrize("call", ["backward", "grad"])
def test_nodes_that_lead_to_no_wanted_input_are_not_run(call):
    x, y = leaf([2.0]), leaf([3.0])
    loss = (x * 2 + Forbidden.apply(y)).sum()
    if call == "backward":
        loss.backward(inputs=[x])
    else:
        grad(loss, x)
    with pytest.raises(AssertionError, match="must not run"):
        (x * 2 + Forbidden.apply(y)).sum().backward()


# --- unused inputs ---------------------------------------------------------------------------------------------------


def test_an_unused_input_raises():
    x, y = leaf([2.0]), leaf([3.0])
    with pytest.raises(RuntimeError, match="Set allow_unused=True"):
        grad((x * 2).sum(), [x, y])


def test_an_unused_input_gives_none_if_allowed():
    x, y = leaf([2.0]), leaf([3.0])
    found = grad((x * 2).sum(), [x, y], allow_unused=True)
    assert close(found[0], [2.0])
    assert found[1] is None


def test_a_used_input_that_gets_no_gradient_is_unused():
    class Stop(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return None

    x = leaf([1.0])
    assert grad(Stop.apply(x).sum(), x, allow_unused=True) == (None,)
    with pytest.raises(RuntimeError, match="Set allow_unused=True"):
        grad(Stop.apply(x).sum(), x)


@pytest.mark.parametrize("create_graph", [False, True])
def test_materialized_zeros_require_grad_only_under_create_graph(create_graph):
    x, y = leaf([2.0]), leaf([3.0, 4.0])
    used, unused = grad((x * x).sum(), [x, y], allow_unused=True, materialize_grads=True, create_graph=create_graph)
    assert used.requires_grad is create_graph
    assert close(unused, [0.0, 0.0])
    assert unused.requires_grad is create_graph


def test_materialize_grads_refuses_allow_unused_false():
    x = leaf([2.0])
    with pytest.raises(ValueError, match="allow_unused"):
        grad((x * x).sum(), x, allow_unused=False, materialize_grads=True)


def test_materialized_derivatives_of_a_square_vanish_from_the_third_on():
    x = leaf(0.5)
    y = x * x
    derivatives = []
    for _ in range(3):
        (y,) = grad(y, x, create_graph=True, materialize_grads=True) if y.requires_grad else (torch.zeros_like(x),)
        derivatives.append(y.item())
    assert derivatives == [1.0, 2.0, 0.0]


# --- errors ----------------------------------------------------------------------------------------------------------


def test_backward_without_anything_to_differentiate_raises():
    x = const([1.0])
    with pytest.raises(RuntimeError, match=NO_GRAD_NEEDED):
        x.sum().backward()


@pytest.mark.parametrize("index", [0, 1])
def test_a_root_that_needs_no_gradient_raises_and_is_named(index):
    roots = [leaf(1.0) * 2, const(1.0)]
    if index == 0:
        roots.reverse()
    with pytest.raises(RuntimeError, match=f"element {index} of tensors {NO_GRAD_NEEDED}"):
        backward(roots)


def test_grad_of_or_by_a_tensor_that_needs_no_gradient_raises():
    x, y = leaf([1.0]), const([1.0])
    with pytest.raises(RuntimeError, match=NO_GRAD_NEEDED):
        grad(y.sum(), x)
    with pytest.raises(RuntimeError, match=r"does not require grad|not have been used in the graph"):
        grad((x * y).sum(), y)


def test_grad_by_no_inputs_raises():
    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="cannot be empty"):
        grad(x.sum(), [])


@pytest.mark.parametrize("shape", [(2, 3), (0,)], ids=["matrix", "empty"])
def test_a_root_of_several_elements_needs_a_gradient(shape):
    x = torch.ones(shape, requires_grad=True)
    message = "grad can be implicitly created only for scalar outputs"
    with pytest.raises(RuntimeError, match=message):
        (x * 2).backward()
    with pytest.raises(RuntimeError, match=message):
        backward([x * 2], [None])
    with pytest.raises(RuntimeError, match=message):
        grad(x * 2, x)


def test_a_complex_scalar_needs_a_gradient():
    z = leaf(1.0) * 0.5j
    with pytest.raises(RuntimeError, match="grad can be implicitly created only for real scalar outputs"):
        z.backward()


def test_a_gradient_of_another_shape_raises_with_both_shapes():
    x = leaf([1.0, 2.0])
    message = (
        r"Mismatch in shape: grad_output\[0\] has a shape of torch.Size\(\[3\]\) and output\[0\] has a shape of "
        r"torch.Size\(\[2\]\)"
    )
    with pytest.raises(RuntimeError, match=message):
        grad(x * 2, x, const([1.0, 1.0, 1.0]))
    with pytest.raises(RuntimeError, match=message):
        (x * 2).backward(const([1.0, 1.0, 1.0]))


def test_a_real_gradient_for_a_complex_root_raises():
    z = leaf([1j], dtype=torch.complex128) * 2
    with pytest.raises(RuntimeError, match="For complex Tensors, both grad_output and output are required to"):
        z.backward(const([1.0]))


def test_a_gradient_that_is_no_tensor_raises():
    x = leaf([1.0])
    with pytest.raises(TypeError, match="gradients can be either Tensors or None"):
        backward([x * 2], [1.0])


# --- twice -----------------------------------------------------------------------------------------------------------

SAVING = {
    "product": lambda x: (x * x).sum(),
    "exp": lambda x: x.exp().sum(),
    "power": lambda x: (x**2).sum(),
    "number": lambda x: (x * 3).sum(),
    "index": lambda x: (x[torch.tensor([1, 1])] * x).sum(),
}


@pytest.mark.parametrize("name", SAVING)
def test_backward_twice_raises_where_values_were_saved(name):
    x = leaf([1.0, 2.0])
    y = SAVING[name](x)
    y.backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        y.backward()


@pytest.mark.parametrize("name", SAVING)
def test_backward_twice_works_with_retain_graph(name):
    x = leaf([1.0, 2.0])
    y = SAVING[name](x)
    y.backward(retain_graph=True)
    first = x.grad.clone()
    y.backward(retain_graph=True)
    y.backward()
    assert close(x.grad, 3 * first)
    with pytest.raises(RuntimeError, match="Specify retain_graph=True"):
        y.backward()


def test_backward_twice_works_where_nothing_was_saved():
    x = leaf([1.0])
    y = x + 1
    y.backward()
    y.backward()
    assert close(x.grad, [2.0])


def test_an_assignment_by_index_keeps_its_values_for_one_backward():
    a = leaf([1.0, 2.0, 3.0])
    c = torch.zeros(3, dtype=torch.float64)
    b = a + 1
    c[torch.tensor([1, 2])] = b[torch.tensor([1, 1])]
    c.backward(const([1.0, 1.0, 1.0]), retain_graph=True)
    assert close(a.grad, [0.0, 2.0, 0.0])
    c.backward(const([1.0, 1.0, 1.0]))
    with pytest.raises(RuntimeError, match="Specify retain_graph=True"):
        c.backward(const([1.0, 1.0, 1.0]))


def test_a_shared_trunk_can_be_used_by_one_backward_only():
    x = leaf([1.0])
    trunk = x.exp()
    (trunk * 2).sum().backward()
    with pytest.raises(RuntimeError, match=SECOND_TIME):
        (trunk + 2).sum().backward()


# --- create_graph ----------------------------------------------------------------------------------------------------


def test_backward_with_create_graph_warns_and_grad_does_not(request):
    if hasattr(torch, "set_warn_always"):
        before = torch.is_warn_always_enabled()
        request.addfinalizer(lambda: torch.set_warn_always(before))
        torch.set_warn_always(True)
    x = leaf([2.0])
    grad((x * x).sum(), x, create_graph=True)
    with pytest.warns(UserWarning, match=r"Using backward\(\) with create_graph=True"):
        (x * x).sum().backward(create_graph=True)
    x.grad = None


def test_second_derivative_through_grad():
    x = leaf([2.0])
    (first,) = grad((x**3).sum(), x, create_graph=True)
    (second,) = grad(first.sum(), x, create_graph=True)
    (third,) = grad(second.sum(), x)
    assert [first.item(), second.item(), third.item()] == [12.0, 12.0, 6.0]


def test_hessian_vector_product_through_backward(recwarn):
    x, y = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf([[0.5, 1.0], [2.0, -1.0]])
    z = x**2 + y * x + y**2
    z.backward(torch.ones(2, 2, dtype=torch.float64), create_graph=True)
    with torch.no_grad():
        x_grad, y_grad = 2 * x + y, x + 2 * y
    assert close(x.grad, x_grad)
    assert close(y.grad, y_grad)
    (x.grad * 2 + y.grad).sum().backward()
    assert close(x.grad, x_grad + 5)
    assert close(y.grad, y_grad + 4)


def test_a_constant_derivative_does_not_require_grad():
    x = leaf([2.0])
    (first,) = grad((5 * x).sum(), x, create_graph=True)
    assert close(first, [5.0])
    assert not first.requires_grad
    with pytest.raises(RuntimeError, match="does not require grad"):
        grad(first.sum(), x)


@pytest.mark.parametrize("kind", ["operator", "function"])
def test_second_derivatives_computed_twice_agree(kind):
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(x, y)
            return x * y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensors
            return g * y, g * x

    def double_derivative():
        x = leaf([[1.0, 2.0, 3.0], [0.5, -1.0, 4.0]])
        y = x.prod(dim=1) if kind == "operator" else Product.apply(Product.apply(x[:, 0], x[:, 1]), x[:, 2])
        (first,) = grad(y.sum(), x, create_graph=True)
        return grad((first * first).sum(), x)[0]

    assert close(double_derivative(), double_derivative())
    assert close(double_derivative()[0], [26.0, 40.0, 30.0])


# --- batched ---------------------------------------------------------------------------------------------------------


def test_batched_gradients_give_one_product_for_each_row():
    x = leaf([1.0, 2.0, 3.0])
    (rows,) = grad(x * x, x, torch.eye(3, dtype=torch.float64), is_grads_batched=True)
    assert close(rows, [[2.0, 0.0, 0.0], [0.0, 4.0, 0.0], [0.0, 0.0, 6.0]])


def test_batched_gradients_check_the_shape_behind_the_batch():
    x = leaf([1.0, 2.0, 3.0])
    with pytest.raises(RuntimeError, match="If `is_grads_batched=True`"):
        grad(x * x, x, torch.ones(2, 4, dtype=torch.float64), is_grads_batched=True)


# --- real and complex ------------------------------------------------------------------------------------------------


def test_a_real_leaf_of_a_complex_computation_gets_a_real_gradient():
    x = leaf([2.0])
    z = x * (1 + 2j)
    (z * z.conj()).real.sum().backward()
    assert x.grad.dtype is torch.float64
    assert close(x.grad, [20.0])


def test_the_gradient_of_a_complex_leaf_points_uphill():
    z = leaf([3 + 4j], dtype=torch.complex128)
    z.abs().sum().backward()
    assert close(z.grad, [0.6 + 0.8j])
