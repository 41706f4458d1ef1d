"""Hooks on modules: around the call, at the gradients, on registration; of one module and of all."""

import gc
import warnings
import weakref

import pytest

import pellucid
from pellucid import nn
from pellucid.nn.modules import module as modules


class Double(nn.Module):
    """x * 2, or (x * y, x + y)."""

    def forward(self, x, y=None, factor=2.0):
        return x * factor if y is None else (x * y, x + y)


class InPlace(nn.Module):
    """x *= 3."""

    def forward(self, x):
        return x.mul_(3.0)


class Failing(nn.Module):
    """Raises."""

    def forward(self, x):
        raise ValueError("no")


def leaf(*values):
    return pellucid.tensor(values, dtype=pellucid.float64, requires_grad=True)


def listed(grads):
    return [None if grad is None else grad.tolist() for grad in grads]


# --- around the call -------------------------------------------------------------------------------------------------


def test_order_and_arguments():
    seen = []
    net = Double()
    net.register_forward_pre_hook(lambda module, args: seen.append(("pre", len(args))))
    net.register_forward_pre_hook(lambda module, args: seen.append("first"), prepend=True)
    net.register_forward_pre_hook(lambda m, args, kwargs: seen.append(("kwargs", list(kwargs))), with_kwargs=True)
    net.register_forward_hook(lambda module, args, output: seen.append(("post", output.item())))
    net.register_forward_hook(lambda m, args, kwargs, output: seen.append("post first"), with_kwargs=True, prepend=True)
    net(leaf(1.0), factor=3.0)
    assert seen == ["first", ("pre", 1), ("kwargs", ["factor"]), "post first", ("post", 3.0)]


def test_hooks_may_replace_arguments_and_output():
    net = Double()
    handles = [
        net.register_forward_pre_hook(lambda module, args: args[0] + 1),
        net.register_forward_pre_hook(lambda m, args, kwargs: (args, {"factor": 10.0}), with_kwargs=True),
        net.register_forward_hook(lambda module, args, output: output + 5),
    ]
    assert net(leaf(1.0)).item() == 25
    for handle in handles:
        handle.remove()
    assert net(leaf(1.0)).item() == 2
    assert not net._hooked


def test_a_pre_hook_with_kwargs_returns_a_pair():
    net = Double()
    net.register_forward_pre_hook(lambda m, args, kwargs: 3, with_kwargs=True)
    with pytest.raises(RuntimeError, match=r"must return None or a tuple of \(new_args, new_kwargs\), but got 3"):
        net(leaf(1.0))


def test_always_call():
    seen = []
    net = Failing()
    net.register_forward_hook(lambda module, args, output: seen.append(output), always_call=True)
    net.register_forward_hook(lambda module, args, output: seen.append("never"))
    with pytest.raises(ValueError, match="no"):
        net(1)
    assert seen == [None]


def test_an_error_in_an_always_called_hook_is_only_told():
    def fail(module, args, output):
        raise KeyError("hook")

    net = Failing()
    net.register_forward_hook(fail, always_call=True)
    with pytest.warns(UserWarning, match="raised an exception that was silenced as another error was raised"), \
            pytest.raises(ValueError, match="no"):  # fmt: skip
        net(1)


def test_handles_are_context_managers():
    net, seen = Double(), []
    with net.register_forward_hook(lambda *args: seen.append(1)):
        net(leaf(1.0))
    net(leaf(1.0))
    assert seen == [1]


def test_hooks_of_every_module():
    seen = []
    net = nn.Sequential(Double(), Double())
    handles = [
        modules.register_module_forward_pre_hook(lambda module, args: seen.append("pre")),
        modules.register_module_forward_hook(lambda module, args, output: seen.append(type(module).__name__)),
    ]
    net(leaf(1.0))
    for handle in handles:
        handle.remove()
    net(leaf(1.0))
    assert seen == ["pre", "pre", "Double", "pre", "Double", "Sequential"]
    assert not nn.Module._hooked


def test_always_called_hook_of_every_module():
    seen = []
    with modules.register_module_forward_hook(
        lambda module, args, kwargs, output: seen.append(output), with_kwargs=True, always_call=True
    ), pytest.raises(ValueError, match="no"):  # fmt: skip
        Failing()(1)
    assert seen == [None]


def test_hooks_on_registration():
    seen = []
    handles = [
        modules.register_module_parameter_registration_hook(lambda m, name, value: seen.append(("parameter", name))),
        modules.register_module_buffer_registration_hook(lambda m, name, value: seen.append(("buffer", name))),
        modules.register_module_module_registration_hook(lambda m, name, value: nn.Identity() if name == "a" else None),
    ]
    try:
        net = nn.Linear(1, 1)
        net.register_buffer("count", None)
        net.a, net.b = nn.ReLU(), nn.ReLU()
    finally:
        for handle in handles:
            handle.remove()
    assert seen == [("parameter", "weight"), ("parameter", "bias"), ("buffer", "count")]
    assert (type(net.a), type(net.b)) == (nn.Identity, nn.ReLU)


# --- at the gradients ------------------------------------------------------------------------------------------------


def test_backward_hooks_see_inputs_and_outputs():
    seen = []
    net = Double()
    net.register_full_backward_hook(lambda module, inputs, outputs: seen.append((listed(inputs), listed(outputs))))
    net.register_full_backward_pre_hook(lambda module, outputs: seen.append(listed(outputs)))
    x = leaf(1.0, 2.0)
    net(x).sum().backward()
    assert seen == [[[1, 1]], ([[2, 2]], [[1, 1]])]
    assert x.grad.tolist() == [2, 2]


def test_inputs_that_need_no_gradient_get_zeros_and_other_things_none():
    seen = []
    net = Double()
    net.register_full_backward_hook(lambda module, inputs, outputs: seen.append(listed(inputs)))
    x, y = leaf(1.0), pellucid.ones(1, dtype=pellucid.float64)
    a, b = net(x, y)
    (3 * a + b).sum().backward()
    net(x, None, 5.0).sum().backward()
    assert seen == [[[4], [0]], [[5], None, None]]


def test_hooks_may_replace_gradients():
    net = Double()
    net.register_full_backward_hook(lambda module, inputs, outputs: tuple(10 * grad for grad in inputs))
    net.register_full_backward_pre_hook(lambda module, outputs: tuple(7 * grad for grad in outputs))
    x = leaf(1.0)
    net(x).sum().backward()
    assert x.grad.item() == 140


def test_wrong_numbers_of_gradients():
    for register, what in (
        ("register_full_backward_hook", "hook returned an invalid number of grad_input"),
        ("register_full_backward_pre_hook", "pre hook returned an invalid number of grad_output"),
    ):
        net = Double()
        getattr(net, register)(lambda *args: (1, 2))
        with pytest.raises(RuntimeError, match=f"Backward {what}, got 2, but expected 1"):
            net(leaf(1.0)).sum().backward()


def test_no_input_needs_a_gradient():
    seen = []
    net = nn.Linear(1, 1, bias=False)
    net.register_full_backward_hook(lambda module, inputs, outputs: seen.append((listed(inputs), listed(outputs))))
    with pytest.warns(UserWarning, match="Full backward hook is firing when gradients are computed with respect to"):
        net(pellucid.ones(1, 1)).sum().backward()
    assert seen == [([None], [[[1]]])]
    net.register_full_backward_hook(lambda module, inputs, outputs: outputs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(RuntimeError, match="Backward hook for Modules where no input requires gradient should"):
            net(pellucid.ones(1, 1)).sum().backward()


def test_output_that_is_no_tensor():
    net = Double()
    net.forward = lambda x: [x * 2]
    net.register_full_backward_hook(lambda *args: None)
    with pytest.warns(UserWarning, match="module output should be a Tensor or a tuple of Tensors but received"):
        net(leaf(1.0))


@pytest.mark.parametrize("kind", [InPlace, Double, nn.Identity])
def test_hooks_do_not_change_gradients(kind):
    def gradient(hooked):
        net = nn.Sequential(kind(), InPlace(), kind())
        if hooked:
            for module in net.modules():
                module.register_full_backward_hook(lambda *args: None)
                module.register_full_backward_pre_hook(lambda *args: None)
        x = leaf(0.5, 2.0)
        h = x * 1
        out = net(h)
        out.add_(1)
        ((out * out).sum() + h.sum()).backward()
        return x.grad.tolist()

    assert gradient(True) == gradient(False)


def test_an_in_place_module_is_heard_all_the_same():
    seen = []
    net = InPlace()
    net.register_full_backward_hook(lambda module, inputs, outputs: seen.append((listed(inputs), listed(outputs))))
    x = leaf(1.0)
    h = x * 1
    assert net(h) is h
    (h * 2).sum().backward()
    assert seen == [([[6]], [[2]])]
    assert x.grad.item() == 6


def test_gradients_around_the_module_are_not_counted():
    seen = []
    net = nn.Identity()
    net.register_full_backward_hook(lambda module, inputs, outputs: seen.append((listed(inputs), listed(outputs))))
    x = leaf(1.0)
    h = x * 2
    (net(h) * 3 + h * 10).sum().backward()
    assert seen == [([[3]], [[3]])]
    assert x.grad.item() == 26


def test_one_tensor_in_two_places():
    seen = []
    net = Double()
    net.register_full_backward_hook(lambda module, inputs, outputs: seen.append(listed(inputs)))
    x = leaf(2.0)
    h = x * 1
    a, b = net(h, h)
    (a + b).sum().backward()
    assert seen == [[[3], [3]]]
    assert x.grad.item() == 6


def test_a_leaf_may_not_be_written_to():
    net = InPlace()
    net.register_full_backward_hook(lambda *args: None)
    with pytest.raises(RuntimeError, match="in-place operation"):
        net(leaf(1.0))


def test_inputs_keep_their_history_after_an_error():
    net = Failing()
    net.register_full_backward_hook(lambda *args: None)
    h = leaf(1.0) * 2
    node = h.grad_fn
    with pytest.raises(ValueError, match="no"):
        net(h)
    assert h.grad_fn is node


def test_second_derivative_does_not_call_the_hook_again():
    seen = []
    net = Double()
    net.register_full_backward_hook(lambda module, inputs, outputs: seen.append(listed(inputs)))
    x = leaf(3.0)
    (grad,) = pellucid.autograd.grad(net(x * x).sum(), x, create_graph=True)
    grad.sum().backward()
    assert seen == [[[2]]]
    assert x.grad.item() == 4


def test_the_graph_is_freed_by_reference_counts():
    net = nn.Sequential(Double(), InPlace())
    for module in net.modules():
        module.register_full_backward_hook(lambda *args: None)
    gc.disable()
    try:
        out = net(leaf(1.0) * 1)
        node = weakref.ref(out.grad_fn)
        del out
        assert node() is None
    finally:
        gc.enable()


def test_nothing_is_put_into_the_graph_under_no_grad():
    net = Double()
    net.register_full_backward_hook(lambda *args: None)
    with pellucid.no_grad():
        assert not net(leaf(1.0)).requires_grad


def test_full_backward_hooks_of_every_module():
    seen = []
    with modules.register_module_full_backward_hook(lambda module, *grads: seen.append(type(module).__name__)), \
            modules.register_module_full_backward_pre_hook(lambda module, grads: seen.append("pre")):  # fmt: skip
        nn.Sequential(Double())(leaf(1.0)).sum().backward()
    assert seen == ["pre", "pre", "Double", "Sequential"]


def test_older_backward_hook():
    seen = []
    net = Double()
    net.register_backward_hook(lambda module, inputs, outputs: seen.append(listed(outputs)))
    x = leaf(1.0)
    with pytest.warns(FutureWarning, match="Using a non-full backward hook when the forward contains multiple"):
        out = net(x)
    out.sum().backward()
    assert seen == [[[1]]]


def test_kinds_of_backward_hooks_do_not_mix():
    net = Double()
    net.register_backward_hook(lambda *args: None)
    with pytest.raises(RuntimeError, match="Cannot use both regular backward hooks and full backward hooks on a"):
        net.register_full_backward_hook(lambda *args: None)
