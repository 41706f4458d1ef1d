"""Hooks on tensors, nodes, accumulated gradients and several tensors at once. Not here: hooks on saved tensors."""

import copy

import pytest
from library import close, const, leaf, torch

grad = torch.autograd.grad


class Pair(torch.autograd.Function):
    """Twice and three times its input."""

    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, g, h):
        return g * 2 + h * 3


class Double(torch.autograd.Function):
    """Twice its input."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def values(tensors):
    return [None if t is None else t.tolist() for t in tensors]


# --- hooks on tensors ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda x: x, lambda x: x * 1], ids=["leaf", "non-leaf"])
def test_a_hook_sees_the_gradient_once_each_backward(make):
    y = make(leaf([1.0, 2.0]))
    seen = []
    y.register_hook(seen.append)
    (y * 3).sum().backward(retain_graph=True)
    (y * y).sum().backward()
    assert values(seen) == [[3.0, 3.0], [2.0, 4.0]]


def test_a_hook_sees_the_sum_over_all_uses():
    x = leaf([2.0])
    y = x * 1
    seen = []
    y.register_hook(seen.append)
    (y * 3 + y * 4 + y).backward()
    assert values(seen) == [[8.0]]


@pytest.mark.parametrize("make", [lambda x: x, lambda x: x * 1], ids=["leaf", "non-leaf"])
def test_what_a_hook_returns_replaces_the_gradient(make):
    x = leaf([1.0, 2.0])
    y = make(x)
    y.register_hook(lambda g: g * 10)
    y.register_hook(lambda g: None)
    y.register_hook(lambda g: g + 1)
    (y * 3).sum().backward()
    assert close(x.grad, [31.0, 31.0])


def test_hooks_run_in_the_order_of_registration_until_removed():
    x = leaf([1.0])
    log = []
    handles = [x.register_hook(lambda g, k=k: log.append(k)) for k in range(3)]
    (x * 2).backward()
    handles[1].remove()
    handles[1].remove()
    (x * 2).backward()
    assert log == [0, 1, 2, 0, 2]


def test_a_handle_is_a_context_manager():
    x = leaf([1.0])
    seen = []
    with x.register_hook(seen.append):
        (x * 2).backward()
    (x * 2).backward()
    assert values(seen) == [[2.0]]


def test_any_callable_object_is_a_hook():
    class Doubler:
        def __call__(self, g):
            return g * 2

    x = leaf([1.0])
    x.register_hook(Doubler())
    (x * 3).backward()
    assert close(x.grad, [6.0])


@pytest.mark.parametrize("method", ["register_hook", "register_post_accumulate_grad_hook"])
def test_a_hook_on_a_tensor_that_needs_no_gradient_raises(method):
    with pytest.raises(RuntimeError, match="cannot register a hook on a tensor that doesn't require gradient"):
        getattr(const([1.0]), method)(print)


def test_a_hook_must_return_a_tensor_of_the_same_shape():
    x = leaf([1.0, 2.0])
    x.register_hook(lambda g: torch.ones(3, dtype=torch.float64))
    with pytest.raises(RuntimeError, match="has changed the size of value"):
        (x * 2).sum().backward()


def test_a_hook_must_not_return_anything_but_a_tensor():
    x = leaf([1.0, 2.0])
    x.register_hook(lambda g: 7)
    with pytest.raises(TypeError, match=r"expected (Variable|Tensor)"):
        (x * 2).sum().backward()


def test_an_exception_in_a_hook_surfaces():
    x = leaf([1.0])
    x.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        (x * 2).backward()


def test_a_hook_on_an_output_that_does_not_reach_the_root_gets_none():
    first, second = leaf([1.0, 2.0]).unbind()
    seen = []
    second.register_hook(seen.append)
    first.backward()
    assert seen == [None]


def test_a_hook_is_not_called_for_an_input_that_needs_no_gradient():
    seen = []

    class Needy(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            assert ctx.needs_input_grad == (True, False)
            return g * 2, None

    x, y = leaf([1.0]), const([2.0])
    out = Needy.apply(x, y)
    out.register_hook(seen.append)
    out.sum().backward()
    assert values(seen) == [[1.0]]
    assert y.grad is None


def test_a_hook_on_the_output_of_batch_norm_without_weights():
    norm = torch.nn.BatchNorm1d(3, affine=False).double().eval()
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    seen = []
    y = norm(x)
    y.register_hook(seen.append)
    y.sum().backward()
    assert values(seen) == [[[1.0] * 3] * 2]
    assert close(x.grad, torch.full((2, 3), (1 + 1e-5) ** -0.5, dtype=torch.float64))


def test_a_hook_registered_before_an_in_place_operation_sees_the_old_value():
    u = leaf([3.0]) * 1
    before, after = [], []
    u.register_hook(before.append)
    u.mul_(4)
    u.register_hook(after.append)
    (u * 5).sum().backward()
    assert (values(before), values(after)) == ([[20.0]], [[5.0]])


def test_hooks_of_two_outputs_when_one_is_written_to():
    a, b = Pair.apply(leaf([1.0]))
    log = {"a before": [], "b": [], "a after": []}
    a.register_hook(log["a before"].append)
    b.register_hook(log["b"].append)
    a.mul_(4)
    a.register_hook(log["a after"].append)
    (a * 5 + b * 7).backward()
    assert {k: values(v) for k, v in log.items()} == {"a before": [[20.0]], "b": [[7.0]], "a after": [[5.0]]}


def test_a_hook_on_a_view_is_void_after_a_write_to_a_sibling():
    base = leaf([1.0, 2.0, 3.0]) * 1
    first, second = base[:2], base[1:]
    stale, fresh = [], []
    first.register_hook(stale.append)
    second.mul_(2)
    assert first.grad_fn is not None  # asking for it brings the view up to date
    first.register_hook(fresh.append)
    (first * 5).sum().backward()
    assert stale == []
    assert values(fresh) == [[5.0, 5.0]]


# --- hooks on nodes --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda x: x * 2, Double.apply], ids=["operator", "function"])
def test_a_pre_hook_of_a_node_may_replace_the_incoming_gradients(make):
    x = leaf([1.0])
    y = make(x)
    seen = []
    y.grad_fn.register_prehook(lambda gs: seen.append(values(gs)))
    y.grad_fn.register_prehook(lambda gs: gs)
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 10,))
    y.grad_fn.register_prehook(lambda gs: seen.append(values(gs)))
    (y * 3).backward()
    assert seen == [[[3.0]], [[30.0]]]
    assert close(x.grad, [60.0])


@pytest.mark.parametrize("make", [lambda x: x * 2, Double.apply], ids=["operator", "function"])
def test_a_post_hook_of_a_node_may_replace_the_outgoing_gradients(make):
    x = leaf([1.0])
    y = make(x)
    seen = []
    y.grad_fn.register_hook(lambda inputs, outputs: seen.append((inputs[0].item(), outputs[0].item())))
    y.grad_fn.register_hook(lambda inputs, outputs: (inputs[0] * 10, *inputs[1:]))
    (y * 3).backward()
    assert seen == [(6.0, 3.0)]
    assert close(x.grad, [60.0])


def test_a_pre_hook_of_a_node_with_several_outputs_gets_none_for_the_unused():
    a, b = torch.var_mean(leaf([1.0, 3.0]), dim=0)
    seen = []
    a.grad_fn.register_prehook(lambda gs: seen.append(values(gs)))
    (b * 3).backward()
    assert a.grad_fn is b.grad_fn
    assert seen == [[None, 3.0]]


def test_a_pre_hook_of_a_function_with_several_outputs_sees_them_all():
    x = leaf([1.0])
    a, b = Pair.apply(x)
    seen = []
    a.grad_fn.register_prehook(lambda gs: seen.append(values(gs)))
    a.grad_fn.register_prehook(lambda gs: tuple(None if g is None else g * 2 for g in gs))
    (a * 5 + b * 7).backward()
    assert seen == [[[5.0], [7.0]]]
    assert close(x.grad, [2 * (2 * 5 + 3 * 7.0)])


@pytest.mark.parametrize("kind", ["register_prehook", "register_hook"])
def test_a_removed_node_hook_does_not_run(kind):
    x = leaf([1.0])
    y = x * 2
    log = []
    kept = getattr(y.grad_fn, kind)(lambda *args: log.append("kept"))
    removed = getattr(y.grad_fn, kind)(lambda *args: log.append("removed"))
    removed.remove()
    y.backward(retain_graph=True)
    kept.remove()
    y.backward()
    assert log == ["kept"]


def test_a_hook_may_remove_another_during_the_backward():
    x = leaf([1.0])
    y = x * 2
    z = y * 3
    log = []
    handle = y.grad_fn.register_prehook(lambda gs: log.append("removed"))
    z.grad_fn.register_prehook(lambda gs: handle.remove())
    z.backward()
    assert log == []


# --- order of the kinds ----------------------------------------------------------------------------------------------


def test_tensor_hooks_run_before_pre_hooks_whenever_registered():
    y = leaf([1.0]) * 2
    log = []
    y.grad_fn.register_prehook(lambda gs: log.append(("pre", gs[0].item())))
    y.register_hook(lambda g: log.append(("tensor", g.item())) or g * 10)
    (y * 3).backward()
    assert log == [("tensor", 3.0), ("pre", 30.0)]


@pytest.mark.parametrize("first", ["hook", "retain"])
def test_retained_grad_sees_tensor_hooks_but_not_pre_hooks(first):
    y = leaf([1.0]) * 2
    if first == "retain":
        y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.retain_grad()
    y.grad_fn.register_prehook(lambda gs: (gs[0] * 100,))
    (y * 3).backward()
    assert close(y.grad, [30.0])


def test_order_of_the_hooks_of_a_leaf():
    x = leaf([1.0])
    node = x.view_as(x).grad_fn.next_functions[0][0]
    log = []
    node.register_hook(lambda inputs, outputs: log.append("post"))
    x.register_post_accumulate_grad_hook(lambda t: log.append("accumulated"))
    node.register_prehook(lambda gs: log.append("pre"))
    x.register_hook(lambda g: log.append("tensor"))
    (x * 2).backward()
    assert log == ["tensor", "pre", "accumulated", "post"]


def test_a_post_hook_of_an_accumulator_sees_what_a_tensor_hook_made():
    x = leaf([1.0])
    node = x.view_as(x).grad_fn.next_functions[0][0]
    x.register_hook(lambda g: g * 10)
    seen = []
    node.register_hook(lambda inputs, outputs: seen.append(outputs[0].item()))
    (x * 2).backward()
    assert seen == [20.0]
    assert close(x.grad, [20.0])


def test_hooks_of_leaves_outside_inputs_do_not_run():
    a, b = leaf([1.0]), leaf([2.0])
    log = []
    a.register_hook(lambda g: log.append("tensor"))
    a.view_as(a).grad_fn.next_functions[0][0].register_hook(lambda i, o: log.append("post"))
    a.register_post_accumulate_grad_hook(lambda t: log.append("accumulated"))
    (a * b).backward(inputs=[b])
    assert log == []


COUNTS = [
    # how it is called, and the calls of (tensor, pre, post) hooks of b and of the tensor hook of the leaf a
    ("grad(b)", lambda out, a, b: grad(out, b), (1, 0, 0), 0),
    ("grad(a, b)", lambda out, a, b: grad(out, (a, b)), (1, 1, 1), 1),
    ("backward()", lambda out, a, b: out.backward(), (1, 1, 1), 1),
    ("backward(b)", lambda out, a, b: out.backward(inputs=(b,)), (1, 1, 1), 0),
    ("backward(a, b)", lambda out, a, b: out.backward(inputs=(a, b)), (1, 1, 1), 1),
]


@pytest.mark.parametrize(("call", "of_b", "of_a"), [c[1:] for c in COUNTS], ids=[c[0] for c in COUNTS])
def test_which_hooks_run_depends_on_what_is_asked_for(call, of_b, of_a):
    a = leaf([1.0])
    b = a * 2
    log = []
    a.register_hook(lambda g: log.append("a"))
    b.register_hook(lambda g: log.append("tensor"))
    b.grad_fn.register_prehook(lambda gs: log.append("pre"))
    b.grad_fn.register_hook(lambda inputs, outputs: log.append("post"))
    b.retain_grad()
    call((b * 3).sum(), a, b)
    assert tuple(log.count(k) for k in ("tensor", "pre", "post")) == of_b
    assert log.count("a") == of_a


# --- hooks after accumulation ----------------------------------------------------------------------------------------


def test_hooks_after_accumulation_run_in_order_and_may_change_the_tensor():
    x = leaf([1.0])
    log = []
    x.register_post_accumulate_grad_hook(lambda t: log.append(t.grad.item()))

    def step(t):
        with torch.no_grad():
            t.sub_(t.grad, alpha=0.25)
        t.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * 2).backward()
    assert log == [2.0]
    assert close(x, [0.5])
    assert x.grad is None


def test_hooks_after_accumulation_get_their_own_tensor():
    tensors = [leaf([float(k)]) for k in range(3)]
    seen = []
    for t in tensors:
        t.register_post_accumulate_grad_hook(seen.append)
    sum(t * 2 for t in tensors).backward()
    assert {id(t) for t in seen} == {id(t) for t in tensors}


def test_a_hook_after_accumulation_must_return_none():
    x = leaf([1.0])
    x.register_post_accumulate_grad_hook(lambda t: t.grad)
    with pytest.raises(RuntimeError, match="hooks should return None"):
        (x * 2).backward()


def test_a_hook_after_accumulation_is_for_leaves():
    y = leaf([1.0]) * 2
    with pytest.raises(RuntimeError, match="post accumulate grad hooks cannot be registered on non-leaf tensors"):
        y.register_post_accumulate_grad_hook(print)


def test_an_optimizer_stepping_inside_the_backward_equals_one_stepping_after_it():
    torch.manual_seed(3)
    inside = torch.nn.Linear(3, 2)
    after = copy.deepcopy(inside)
    data = torch.arange(6.0).reshape(2, 3)
    optimizers = {p: torch.optim.Adam([p], lr=0.1) for p in inside.parameters()}

    def step(p):
        optimizers[p].step()
        optimizers[p].zero_grad()

    handles = [p.register_post_accumulate_grad_hook(step) for p in inside.parameters()]
    normal = torch.optim.Adam(after.parameters(), lr=0.1)
    for _ in range(3):
        inside(data).sum().backward()
        normal.zero_grad()
        after(data).sum().backward()
        normal.step()
    assert all(close(p, q) for p, q in zip(inside.parameters(), after.parameters(), strict=True))
    for handle in handles:
        handle.remove()
    before = inside.weight.detach().clone()
    inside(data).sum().backward()
    assert close(inside.weight, before)
    assert inside.weight.grad is not None


# --- hooks on several tensors ----------------------------------------------------------------------------------------

register_multi = torch.autograd.graph.register_multi_grad_hook


def test_a_hook_on_all_is_called_once_with_every_gradient():
    tensors = [leaf([float(k)]) for k in range(3)]
    seen = []
    register_multi(tensors, lambda gs: seen.append(values(gs)))
    (tensors[0] * 2 + tensors[1] * 3 + tensors[2] * 4).backward()
    assert seen == [[[2.0], [3.0], [4.0]]]


def test_a_hook_on_all_gets_none_for_a_tensor_that_was_not_reached():
    a, b = leaf([1.0]), leaf([2.0])
    seen = []
    register_multi((a, b), lambda gs: seen.append(values(gs)))
    (a * 2).backward()
    (a * b).backward()
    assert seen == [[[2.0], None], [[2.0], [1.0]]]


def test_a_hook_on_any_is_called_once_with_the_first_gradient():
    a, b = leaf([1.0]), leaf([2.0])
    x, y = a * 2, b * 3
    seen = []
    handle = register_multi((x, y), lambda g: seen.append(g.item()), mode="any")
    (x * 5 + y * 0).backward(retain_graph=True)
    assert len(seen) == 1
    (y * 7).backward(retain_graph=True)
    assert seen[1:] == [7.0]
    handle.remove()
    (y * 7).backward()
    assert len(seen) == 2


@pytest.mark.parametrize("mode", ["all", "any"])
def test_a_removed_hook_on_several_tensors_does_not_run(mode):
    a, b = leaf([1.0]), leaf([2.0])
    seen = []
    register_multi((a, b), seen.append, mode=mode).remove()
    (a * b).backward()
    assert seen == []


def test_a_hook_on_several_tensors_refuses_other_modes():
    with pytest.raises(ValueError, match=r"Expects mode to be one of \('all', 'any'\) but got foo"):
        register_multi((leaf([1.0]),), print, mode="foo")


# --- hooks on modules ------------------------------------------------------------------------------------------------


def test_a_full_backward_hook_of_a_module_is_not_called_by_the_double_backward():
    loss = torch.nn.MSELoss()
    log = []
    loss.register_full_backward_hook(lambda module, inputs, outputs: log.append(values(outputs)))
    x = leaf([1.0, 2.0])
    (first,) = grad(loss(x, const([0.0, 0.0])), x, create_graph=True)
    assert log == [[1.0]]
    (second,) = grad(first.sum(), x)
    assert len(log) == 1
    assert close(second, [1.0, 1.0])


def test_order_of_module_node_and_tensor_hooks():
    linear = torch.nn.Linear(2, 2)
    log = []
    linear.weight.register_post_accumulate_grad_hook(lambda t: log.append("weight accumulated"))
    linear.weight.register_hook(lambda g: log.append("weight"))
    linear.register_full_backward_pre_hook(lambda module, outputs: log.append("module before"))
    linear.register_full_backward_hook(lambda module, inputs, outputs: log.append("module"))
    x = torch.ones(2, 2, requires_grad=True)
    y = linear(x)
    y.register_hook(lambda g: log.append("output"))
    x.register_hook(lambda g: log.append("input"))
    y.sum().backward()
    assert log[0] == "output"
    assert log.index("module before") < log.index("weight") < log.index("weight accumulated")
    assert log.index("module before") < log.index("module") < log.index("input")
