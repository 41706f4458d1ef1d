"""Checkpoints: backward runs the function again for what it did not keep. Values, lifetimes, random numbers, contexts."""

import contextlib
import weakref

import pytest
from checkpoints import FORMS, Counted, checkpoint, lib, mark, reentrant, wave
from library import ON_PELLUCID, close, const, leaf, pellucid_only, torch

Function = torch.autograd.Function
grad = torch.autograd.grad


def model():
    return torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))


def parameter_grads(net):
    return [p.grad.clone() for p in net.parameters()]



# --- the same gradients ----------------------------------------------------------------------------------------------


@FORMS
def test_gradients_are_those_without_a_checkpoint(form):
    x, y = leaf([0.5, 1.5]), leaf([0.5, 1.5])
    form(wave, x).sum().backward()
    wave(y).sum().backward()
    assert close(x.grad, y.grad)


def test_grad_gives_what_backward_gives():
    x = leaf([0.5, 1.5])
    (g,) = grad(checkpoint(wave, x).sum(), x)
    checkpoint(wave, x).sum().backward()
    assert close(g, x.grad)
    assert close(g, grad(wave(x).sum(), x)[0])


@FORMS
def test_gradients_reach_parameters(form):
    torch.manual_seed(0)
    net, x = model(), torch.randn(5, 4, requires_grad=True)
    net(x).sum().backward()
    expected = parameter_grads(net)
    net.zero_grad()
    form(net, x).sum().backward()
    for g, e in zip(parameter_grads(net), expected, strict=True):
        assert close(g, e, 1e-6)


def test_many_reentrant_checkpoints():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.Linear(2, 3))
    rows = [torch.randn(1, 3, requires_grad=True) for _ in range(300)]
    torch.stack([reentrant(net, row) for row in rows]).mean().backward()
    plain = [row.detach().requires_grad_() for row in rows]
    torch.stack([net(row) for row in plain]).mean().backward()
    assert all(close(r.grad, p.grad, 1e-6) for r, p in zip(rows, plain, strict=True))


def test_a_module_called_by_keyword():
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)

        def forward(self, x, *, scale):
            return self.linear(x) * scale

    torch.manual_seed(0)
    net, x, scale = Net(), torch.randn(2, 3, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    net(x, scale=scale).sum().backward()
    expected = [x.grad.clone(), scale.grad.clone(), *parameter_grads(net)]
    net.zero_grad()
    x.grad = scale.grad = None
    checkpoint(net, x, scale=scale).sum().backward()
    assert all(close(g, e, 1e-6) for g, e in zip([x.grad, scale.grad, *parameter_grads(net)], expected, strict=True))


def test_no_input_needs_a_gradient():
    torch.manual_seed(0)
    net = model()
    checkpoint(net, torch.randn(5, 4)).sum().backward()
    assert all(p.grad is not None for p in net.parameters())


@FORMS
def test_without_grad_mode_nothing_is_recorded(form):
    function = Counted(wave)
    with torch.no_grad():
        out = form(function, leaf([1.0]))
    assert not out.requires_grad
    assert function.count == 1


def test_dictionaries_go_in_and_out():
    torch.manual_seed(0)
    layer = torch.nn.Linear(3, 2)

    def function(d):
        return {"out": layer(d["x"]), "note": d["note"]}

    x = torch.randn(1, 3, requires_grad=True)
    result = checkpoint(function, {"x": x, "note": "kept"})
    assert result["note"] == "kept"
    result["out"].sum().backward()
    assert close(x.grad, layer.weight.sum(0, keepdim=True), 1e-6)


def test_a_module_inside_data_parallel():
    torch.manual_seed(0)

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(3, 2, bias=False)

        def forward(self, x):
            return checkpoint(self.linear, x)

    net, x = torch.nn.DataParallel(Net()), torch.randn(2, 3, requires_grad=True)
    net(x).sum().backward()
    assert x.grad is not None
    assert all(p.grad is not None for p in net.parameters())


def test_a_weight_used_inside_and_outside_gets_one_gradient():
    class Twice(Function):
        @staticmethod
        def forward(ctx, x, w):
            return x * w

        @staticmethod
        def backward(ctx, g):
            return g, g.sum().reshape(1)

    weight, calls = leaf([2.0]), []
    weight.register_hook(lambda g: calls.append(g.clone()))
    x = leaf([1.0, 2.0, 3.0])
    inside = checkpoint(lambda t: Twice.apply(Twice.apply(t, weight), weight), x)
    Twice.apply(inside, weight).sum().backward()
    assert len(calls) == 1
    assert close(calls[0], [9.0])


def test_a_tensor_made_inside_no_grad():
    torch.manual_seed(0)
    inner, outer = torch.nn.Linear(4, 4), torch.nn.Linear(4, 2)

    def function(x):
        with torch.no_grad():
            hidden = inner(x)
        return outer(hidden)

    checkpoint(function, torch.randn(2, 4)).sum().backward()
    assert inner.weight.grad is None
    assert outer.weight.grad is not None


def test_a_detached_result_is_refused_by_the_reentrant_form():
    def function(x):
        with torch.no_grad():
            return x * 2

    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="none of output has requires_grad=True"):
        reentrant(function, x).sum().backward()
    assert not checkpoint(function, x).requires_grad


@FORMS
def test_retained_graphs_are_recomputed_each_time(form):
    function, x = Counted(wave), leaf([0.5])
    out = form(function, x)
    out.backward(torch.ones_like(out), retain_graph=True)
    first = x.grad.clone()
    out.backward(torch.ones_like(out))
    assert close(x.grad, 2 * first)
    assert function.count == 3


def test_second_derivative():
    x = leaf([0.5, 1.5])
    (g,) = grad(checkpoint(wave, x).sum(), x, create_graph=True)
    (h,) = grad(g.sum(), x)
    (e,) = grad(wave(x).sum(), x, create_graph=True)
    assert close(h, grad(e.sum(), x)[0])


def test_integer_results_and_arguments_pass_the_reentrant_form():
    x = leaf([1.0, 3.0, 2.0])
    value, place, name = reentrant(lambda t, k: (t * k, t.argmax(), "name"), x, 2)
    assert place.item() == 1
    assert name == "name"
    value.sum().backward()
    assert close(x.grad, [2.0, 2.0, 2.0])


# --- what is kept, and how long ----------------------------------------------------------------------------------------


def test_nothing_inside_is_kept():
    inside = []

    def function(x):
        y = x.exp()
        inside.append(weakref.ref(y))
        return y.sin() * y

    x = leaf([1.0])
    out = checkpoint(function, x)
    assert inside[0]() is None
    out.sum().backward()
    assert inside[1]() is None
    assert close(x.grad, grad(function(x).sum(), x)[0])


def test_a_saved_input_is_the_same_object():
    seen = []

    class Keep(Function):
        @staticmethod
        def forward(ctx, x, y):
            ctx.save_for_backward(y)
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            seen.extend(ctx.saved_tensors)
            return g, None

    a, b = leaf([1.0]), const([1.0])
    Keep.apply(a, b).sum().backward()
    checkpoint(Keep.apply, a, b).sum().backward()
    assert [t is b for t in seen] == [True, True]


def test_a_value_that_two_formulas_name_is_unpacked_once():
    counts = {"pack": 0, "unpack": 0}

    def hook(which):
        def count(value):
            counts[which] += 1
            return value

        return count

    x, y, i = leaf([1.0, 2.0]), leaf([3.0, 4.0]), torch.tensor([0, 1])
    with torch.autograd.graph.saved_tensors_hooks(hook("pack"), hook("unpack")):
        out = (x / y + x**y + torch.atan2(x, y)).sum() + torch.zeros(2, 2).double().index_put((i, i), x).sum()
    out.backward()
    assert counts == {"pack": 9, "unpack": 9}


def test_an_in_place_result_goes_through_hooks():
    kept = []
    x = leaf([1.0, 2.0])
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.detach().clone(), lambda t: kept.append(t) or t * 10):
        out = (x * 1).exp_()
    out.sum().backward()
    assert len(kept) == 1
    assert close(x.grad, [27.18281828459045, 73.8905609893065])


def test_save_on_cpu_around_and_inside():
    def power(t):
        return t.pow(2).pow(2)

    a = leaf([0.5, -1.5])
    (expected,) = grad(power(power(a)).sum(), a)
    with torch.autograd.graph.save_on_cpu():
        out = checkpoint(power, a.pow(2)).pow(2)
    assert close(grad(out.sum(), a)[0], expected)

    def function(t):
        t = t.pow(2)
        with torch.autograd.graph.save_on_cpu():
            t = power(t)
        return t.pow(2)

    assert close(grad(checkpoint(function, a).sum(), a)[0], expected)


def test_saved_values_may_be_asked_for_outside_a_backward():
    function = Counted(lambda x: torch.exp(x))
    x = leaf([1.0, 2.0])
    out = checkpoint(function, x)
    for count in (2, 3):  # what is recomputed outside a backward is not kept
        assert close(out.grad_fn._saved_result, out)
        assert function.count == count
    out.sum().backward()
    assert function.count == 4
    with pytest.raises(RuntimeError, match="or directly access saved tensors after they have already been freed"):
        out.grad_fn._saved_result  # noqa: B018


def test_an_overwritten_argument_is_refused():
    x = leaf([1.0])
    argument = x * 1
    out = checkpoint(wave, argument)
    argument.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


@pellucid_only("PyTorch computes with the overwritten values")
def test_a_recomputed_value_that_is_overwritten_is_refused():
    def function(x):
        y = x.exp()
        z = y.sin()
        y.add_(1)
        return z.cos()

    with pytest.raises(RuntimeError, match="a tensor saved in a checkpointed function is at version 1; expected"):
        checkpoint(function, leaf([1.0])).sum().backward()


@pellucid_only("PyTorch saves an operand that mul_ overwrites as it is, and silently computes with the product")
def test_in_place_work_inside():
    def function(x):
        return (x * 2).exp_().mul_(x).tanh_()

    x = leaf([0.5, 0.25])
    expected = grad((torch.exp(x * 2) * x).tanh().sum(), x)[0]
    assert close(grad(checkpoint(function, x).sum(), x)[0], expected)


@FORMS
@pytest.mark.parametrize("run", ["nothing", "backward", "retain_graph"])
def test_a_graph_with_checkpoints_dies_by_reference_counting(form, run, freed_by_reference_count):
    x = leaf([1.0, 2.0])
    with freed_by_reference_count() as watch:
        function = Counted(wave)
        out = form(function, x * 1) * x
        watch(mark(out.grad_fn))
        watch(mark(out.grad_fn.next_functions[0][0]))
        watch(function)
        if run != "nothing":
            out.sum().backward(retain_graph=run == "retain_graph")
        del out, function


@pytest.mark.parametrize("kept", ["output", "attribute"])
def test_early_stop_leaves_no_cycle_through_a_function(kept, freed_by_reference_count):
    made = []

    class Keep(Function):
        @staticmethod
        def forward(ctx, x):
            y = x.clone()
            ctx.save_for_backward(x, y)
            if kept == "attribute" and ON_PELLUCID:  # PyTorch would leak: the cycle is the user's there
                ctx.y = y
            made.append(y)
            return y

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]

    x = leaf([2.0])
    with freed_by_reference_count() as watch:
        out = checkpoint(Keep.apply, x)
        out.sum().backward()
        for y in made:
            watch(y)
        assert len(made) == 2
        made.clear()
        del out, y
    assert close(x.grad, [2.0])


def test_what_was_recomputed_goes_with_its_backward():
    watched = []

    class Keep(Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 1

        @staticmethod
        def backward(ctx, g):
            watched.append(weakref.ref(ctx.saved_tensors[0]))
            return g

    def function(x):
        return Keep.apply(x.exp()).sin().cos()

    x = leaf([1.0])
    out = checkpoint(function, x)
    out.sum().backward(retain_graph=True)
    assert [reference() for reference in watched] == [None]
    assert out.grad_fn is not None


# --- custom functions ------------------------------------------------------------------------------------------------


def test_saved_tensors_can_be_read_once():
    class Keep(Function):
        @staticmethod
        def forward(ctx, x, y):
            w = x * y
            out = w + w
            ctx.save_for_backward(x, y, w, out)
            return out

        @staticmethod
        def backward(ctx, g):
            x, y, _, _ = ctx.saved_tensors
            with pytest.raises(RuntimeError, match="triggered for a tensor that was already unpacked once"):
                ctx.saved_tensors  # noqa: B018
            return g * y * 2, g * x * 2

    x, y = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    checkpoint(lambda a, b: Keep.apply(a.exp(), b).sin(), x, y).sum().backward()
    e, f = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    (2 * e.exp() * f).sin().sum().backward()
    assert close(x.grad, e.grad)
    assert close(y.grad, f.grad)


# --- random numbers, context, autocast ------------------------------------------------------------------------------


@FORMS
def test_random_numbers_are_those_of_the_forward(form):
    torch.manual_seed(3)
    x = leaf([1.0] * 20)
    out = form(lambda t: torch.nn.functional.dropout(t, 0.5) * 3, x)
    drawn = torch.rand(3)
    out.sum().backward()
    assert close(x.grad, out)
    torch.manual_seed(3)
    torch.nn.functional.dropout(x, 0.5)
    assert close(torch.rand(3), drawn)


@FORMS
def test_recomputing_leaves_the_random_stream_alone(form):
    x = leaf([1.0] * 4)
    out = form(lambda t: t * torch.rand(4).double(), x).sum()
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    out.backward()
    assert close(torch.rand(3), expected)


@FORMS
def test_the_random_state_is_not_kept_on_request(form):
    torch.manual_seed(3)
    x = leaf([1.0] * 50)
    out = form(lambda t: t * torch.rand(50).double(), x, preserve_rng_state=False)
    out.sum().backward()
    assert not close(x.grad, out)


@FORMS
def test_autocast_is_as_in_the_forward(form):
    def function(x, y):
        z = torch.mm(x, y)
        seen.append(z.dtype)
        return z

    seen = []
    x, y = torch.ones(2, 2, requires_grad=True), torch.ones(2, 2)
    with torch.autocast("cpu", dtype=torch.bfloat16), lib.set_checkpoint_early_stop(False):
        out = form(function, x, y)
    out.sum().backward()
    assert seen == [torch.bfloat16, torch.bfloat16]


@contextlib.contextmanager
def noted(log, name):
    log.append(name)
    yield
    log.append(f"after {name}")


def test_contexts_stand_around_forward_and_recomputation():
    log = []

    def contexts():
        return noted(log, "forward"), noted(log, "again")

    out = checkpoint(wave, leaf([1.0]), context_fn=contexts, early_stop=False)
    assert log == ["forward", "after forward"]
    out.sum().backward()
    assert log == ["forward", "after forward", "again", "after again"]


def test_a_context_may_not_swallow_the_error_of_the_forward():
    def fail(x):
        raise ValueError("inside")

    with pytest.raises(RuntimeError, match="the forward context provided by context_fn suppressed an exception"):
        checkpoint(fail, leaf([1.0]), context_fn=lambda: (contextlib.suppress(ValueError), contextlib.nullcontext()))


@FORMS
def test_an_error_of_the_function_passes(form):
    def fail(x):
        raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        form(fail, leaf([1.0]))


def test_a_function_may_catch_exceptions():
    def function(x):
        try:
            return x.exp().sin()
        except Exception:
            return x * 0

    x = leaf([1.0])
    expected = grad(x.exp().sin().sum(), x)[0]
    assert close(grad(checkpoint(function, x).sum(), x)[0], expected)


