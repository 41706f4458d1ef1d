"""Second derivatives, the life of a graph, hooks, checkpoints and copies, as people meet them."""

import copy
import gc
import inspect
import pickle
import re
import warnings
import weakref

import pytest
from library import Marker, close, leaf, pellucid_only, torch

nn = torch.nn
F32 = torch.float32
SECOND_TIME = "Trying to backward through the graph a second time"


def refusal(run):
    """The text of the RuntimeError that a run ends in."""
    with pytest.raises(RuntimeError) as caught:
        run()
    return str(caught.value)


def line_of(function, text):
    """The file and number of the line of a function that contains a text."""
    lines, first = inspect.getsourcelines(function)
    return f"{__file__}:{first + next(k for k, line in enumerate(lines) if text in line)}"


# --- a first derivative that is constant --------------------------------------------------------------------------------


def constant_derivative():
    x = leaf(3.0, F32)
    (first,) = torch.autograd.grad(5 * x, x, create_graph=True)  # the first
    return x, first


def test_a_constant_derivative_does_not_require_grad():
    x, first = constant_derivative()
    assert close(first, 5.0)
    assert not first.requires_grad
    with pytest.raises(RuntimeError, match="does not require grad"):
        torch.autograd.grad(first, x)


def test_the_second_derivative_of_a_cube():
    x = leaf(3.0, F32)
    (first,) = torch.autograd.grad(x**3, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x)
    assert close(second, 18.0)


@pellucid_only("PyTorch does not say that the derivative is 0")
def test_the_refusal_says_that_the_derivative_is_constant():
    x, first = constant_derivative()
    text = refusal(lambda: torch.autograd.grad(first * 2, x))
    assert f"made of a derivative, taken at {line_of(constant_derivative, '# the first')}" in text
    assert "Its own derivative is 0." in text


# --- inputs that were not used --------------------------------------------------------------------------------------------


def test_an_unused_input_is_refused_and_numbered():
    x, z = leaf(1.0, F32), leaf(2.0, F32)
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        torch.autograd.grad(x * x, [x, z])


def test_an_unused_input_gives_none_or_zeros_without_a_history():
    x, z = leaf(1.0, F32), leaf([2.0, 3.0], F32)
    assert torch.autograd.grad(x * x, [z], allow_unused=True) == (None,)
    (zeros,) = torch.autograd.grad(x * x, [z], materialize_grads=True)
    assert close(zeros, [0.0, 0.0])
    assert not zeros.requires_grad


@pellucid_only("PyTorch names no line")
def test_the_refusal_of_an_unused_input_says_what_cut_the_path():
    def program():
        x, scale = leaf([1.0], F32), leaf([2.0], F32)
        fixed = scale.detach()  # the cut
        out = x * fixed
        torch.autograd.grad(out, [x, scale])

    text = refusal(program)
    assert "(inputs[1])" in text
    assert "`scale` has no gradient: `out` was not computed from it" in text
    assert f"A path was cut by detach at {line_of(program, '# the cut')}" in text


# --- backward twice -------------------------------------------------------------------------------------------------------


def test_what_saves_nothing_may_be_differentiated_twice():
    x = leaf(1.0, F32)
    y = x + 1
    y.backward()
    y.backward()
    assert close(x.grad, 2.0)


@pytest.mark.parametrize("function", [lambda x: x * 3, lambda x: x * x], ids=["by a number", "square"])
def test_what_saves_something_may_be_differentiated_once(function):
    y = function(leaf(1.0, F32))
    y.backward()
    assert SECOND_TIME in refusal(y.backward)


def shared_trunk():
    x = leaf(1.0, F32)
    trunk = x.exp()
    a, b = trunk * 1, trunk + 1
    a.backward()  # one
    b.backward()


def carried_over():
    weights, state = leaf([0.5], F32), torch.zeros(1)
    for _ in range(2):
        state = (state * weights + 1).tanh()  # the step
        loss = (state**2).sum()
        loss.backward()  # its end


def used_again():
    x = leaf(1.0, F32)
    features = x.exp()  # the features
    features.backward()
    (features * features).backward()


def test_sharing_a_trunk_carrying_over_and_using_again_are_refused():
    for program in (shared_trunk, carried_over, used_again):
        assert SECOND_TIME in refusal(program)


@pellucid_only("PyTorch names no line")
def test_a_value_carried_over_is_named_and_is_to_be_detached():
    text = refusal(carried_over)
    step, end = line_of(carried_over, "# the step"), line_of(carried_over, "# its end")
    assert re.search(rf"shared: +TanhBackward0, made at {step}", text)
    assert re.search(rf"first backward: +at {end}", text)
    assert re.search(rf"carried over: +`state`, made by TanhBackward0 at {step}.*used after it by MulBackward0 at {step}", text)
    assert "The value comes from the last iteration of a loop: detach it there: state = state.detach()" in text
    assert text.splitlines()[-1].startswith("Specify retain_graph=True")


def hidden_states():
    rnn, hidden = nn.LSTM(2, 3), None
    for _ in range(2):
        out, hidden = rnn(torch.ones(1, 1, 2), hidden)
        out.sum().backward()


def two_states():
    rnn, h, c = nn.LSTMCell(2, 3), torch.zeros(1, 3), torch.zeros(1, 3)
    for _ in range(2):
        h, c = rnn(torch.ones(1, 2), (h, c))
        h.sum().backward()


def states_in_a_tuple():
    rnn, states = nn.LSTMCell(2, 3), (torch.zeros(1, 3), torch.zeros(1, 3))
    for _ in range(2):
        states = rnn(torch.ones(1, 2), states)
        states[0].sum().backward()


def total_of_losses():
    weights, total = leaf([0.5], F32), 0
    for _ in range(2):
        total += (weights * weights).sum()
        total.backward()


@pellucid_only("PyTorch names no line")
@pytest.mark.parametrize(
    ("program", "called", "detach"),
    [
        (hidden_states, "`hidden`", "hidden = tuple(part.detach() for part in hidden)"),
        (two_states, "`h` or `c`", "h, c = h.detach(), c.detach()"),
        (states_in_a_tuple, "`states`", "states = tuple(part.detach() for part in states)"),
        (total_of_losses, "`total`", "total = total.detach()"),
    ],
)
def test_states_that_are_passed_round_are_named_and_detached_together(program, called, detach):
    text = refusal(program)
    assert re.search(rf"carried over: +{re.escape(called)}, made by", text)
    assert f"detach it there: {detach} before it is used again." in text


@pellucid_only("PyTorch names no line")
def test_two_losses_with_one_trunk_are_to_be_added():
    text = refusal(shared_trunk)
    assert f"first backward:  at {line_of(shared_trunk, '# one')}" in text
    assert "add them and call backward once, (a + b).backward()" in text
    assert "carried over" not in text


@pellucid_only("PyTorch names no line")
def test_a_value_used_again_after_its_backward_is_named():
    text = refusal(used_again)
    assert f"`features`, made by ExpBackward0 at {line_of(used_again, '# the features')}" in text
    assert "If the value is carried over from one step to the next, detach it there: features = features.detach()." in text


@pellucid_only("PyTorch names no line")
def test_the_same_result_differentiated_twice_is_to_be_computed_again():
    y = (leaf(1.0, F32) * 2).exp()
    y.backward()
    assert "This whole graph has been differentiated: run the forward again" in refusal(y.backward)


@pellucid_only("PyTorch names no line")
def test_saved_values_that_are_read_too_late_name_the_backward():
    y = leaf(1.0, F32).exp()
    y.backward()  # that one
    text = refusal(lambda: y.grad_fn._saved_result)
    assert "y.backward()  # that one" in text
    assert "Read saved values before that backward." in text


def test_what_knows_its_backward_keeps_nothing_of_it_alive():
    x = leaf([1.0, 2.0], F32)
    trunk = x.exp()
    loss = (trunk * trunk).sum()
    loss.grad_fn.metadata["mine"] = marker = Marker()
    watched = weakref.ref(loss), weakref.ref(marker)
    loss.backward()
    del loss, marker
    assert [reference() for reference in watched] == [None, None]
    assert trunk.grad_fn is not None


# --- how long things live -------------------------------------------------------------------------------------------------


@pellucid_only("PyTorch frees it by the garbage collector")
def test_an_output_kept_on_ctx_is_freed_by_reference_count():
    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.kept = x * 2
            return ctx.kept

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    gc.collect()
    gc.disable()
    try:
        y = Keeps.apply(leaf(1.0, F32))
        node = weakref.ref(y.grad_fn)
        del y
        assert node() is None
    finally:
        gc.enable()


def test_an_output_saved_for_backward_serves_the_second_derivative():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            out = x**3
            ctx.save_for_backward(x, out)
            return out

        @staticmethod
        def backward(ctx, grad):
            x, out = ctx.saved_tensors
            return grad * 3 * out / x

    x = leaf(2.0, F32)
    y = Cube.apply(x)
    (first,) = torch.autograd.grad(y, x, create_graph=True)
    (second,) = torch.autograd.grad(first, x, retain_graph=True)
    assert close(first, 12.0)
    assert close(second, 12.0)
    del first
    (again,) = torch.autograd.grad(y, x)
    assert close(again, 12.0)


@pellucid_only("PyTorch never frees it")
def test_backward_with_create_graph_is_freed_by_the_garbage_collector():
    x = leaf([1.0], F32)
    y = x.tanh()
    watched = weakref.ref(x), weakref.ref(y.grad_fn)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        y.backward(torch.ones(1), create_graph=True)
    del x, y
    gc.collect()
    assert [reference() for reference in watched] == [None, None]


@pytest.mark.parametrize("differentiate", ["backward", "grad"])
def test_a_second_derivative_without_a_cycle_is_freed_by_reference_count(differentiate):
    """`x + 1` has a constant derivative, and `autograd.grad` puts nothing into the leaf."""
    gc.collect()
    gc.disable()
    try:
        x = leaf([1.0], F32)
        y = x + 1 if differentiate == "backward" else x.tanh()
        y.grad_fn.metadata["mine"] = marker = Marker()
        watched = weakref.ref(x), weakref.ref(marker)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if differentiate == "backward":
                y.backward(torch.ones(1), create_graph=True)
            else:
                torch.autograd.grad(y, x, torch.ones(1), create_graph=True)
        del x, y, marker
        assert [reference() for reference in watched] == [None, None]
    finally:
        gc.enable()


# --- hooks ----------------------------------------------------------------------------------------------------------------


def test_a_hook_on_a_result_that_leads_nowhere_is_called_with_none():
    seen = []
    one, other = (leaf([1.0, 2.0], F32) * 1).unbind()
    other.register_hook(seen.append)
    one.backward()
    assert seen == [None]


def test_a_full_backward_hook_of_a_module_without_inputs_that_need_a_gradient():
    seen = []
    layer = nn.Linear(2, 1)
    layer.register_full_backward_hook(lambda module, grad_input, grad_output: seen.append(grad_input))
    with pytest.warns(UserWarning, match="no inputs"):
        layer(torch.ones(1, 2)).sum().backward()
    assert seen == [(None,)]


@pellucid_only("PyTorch refuses: its hooks give out views")
def test_a_hooked_layer_may_be_followed_by_an_activation_in_place():
    seen = []
    net = nn.Sequential(nn.Linear(2, 2), nn.ReLU(inplace=True))
    net[0].register_full_backward_hook(lambda module, grad_input, grad_output: seen.append(grad_output[0].shape))
    net(torch.ones(1, 2, requires_grad=True)).sum().backward()
    assert seen == [(1, 2)]


# --- checkpoints ----------------------------------------------------------------------------------------------------------


def test_a_checkpoint_without_reentrance_requires_grad_by_its_parameters():
    layer = nn.Linear(2, 1)
    out = torch.utils.checkpoint.checkpoint(layer, torch.ones(1, 2), use_reentrant=False)
    assert out.requires_grad


def test_a_reentrant_checkpoint_requires_grad_by_its_inputs_only():
    layer = nn.Linear(2, 1)
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        out = torch.utils.checkpoint.checkpoint(layer, torch.ones(1, 2), use_reentrant=True)
    assert not out.requires_grad


@pytest.mark.parametrize("reentrant", [False, True])
def test_a_checkpoint_draws_the_same_mask_again(reentrant):
    x = leaf([1.0] * 20, F32)
    out = torch.utils.checkpoint.checkpoint(nn.Dropout(0.5), x, use_reentrant=reentrant)
    out.sum().backward()
    assert close(x.grad, out)


# --- copies ---------------------------------------------------------------------------------------------------------------


def test_a_copy_of_a_leaf_has_a_gradient_of_its_own():
    x = leaf([1.0], F32)
    (x * 2).sum().backward()
    twin = copy.deepcopy(x)
    assert close(twin.grad, [2.0])
    assert twin.grad is not x.grad


class Keeper(nn.Module):
    """A module that keeps what it has computed."""

    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(2, 1)])
        self.history = {"outputs": []}

    def forward(self, x):
        self.history["outputs"].append(self.layers[0](x))
        return self.history["outputs"][-1]


def test_a_computed_tensor_is_not_copied():
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(leaf([1.0], F32) * 2)


def test_a_module_that_holds_a_computed_tensor_is_not_copied():
    model = Keeper()
    model(torch.ones(1, 2))
    with pytest.raises(RuntimeError, match="Only Tensors created explicitly by the user"):
        copy.deepcopy(model)


@pellucid_only("PyTorch guesses at weight_norm")
def test_the_refusal_names_the_attribute():
    model = nn.Sequential(nn.ReLU(), Keeper())
    model(torch.ones(1, 2))
    text = refusal(lambda: copy.deepcopy(model))
    assert "`1.history['outputs'][0]` of the Sequential" in text
    assert line_of(Keeper, "self.layers[0](x)") in text


def test_a_pickled_computed_tensor_comes_back_as_a_leaf():
    y = leaf([1.0], F32) * 2
    back = pickle.loads(pickle.dumps(y))
    assert back.is_leaf
    assert back.requires_grad
    assert close(back, [2.0])


def test_a_pickled_leaf_leaves_its_gradient_behind():
    x = leaf([1.0], F32)
    (x * 2).sum().backward()
    assert pickle.loads(pickle.dumps(x)).grad is None
