"""`why`: why `.grad` of a tensor is what it is. Errors and warnings say the same."""

import inspect
import warnings

import pytest
from library import ON_PELLUCID, close, torch

if not ON_PELLUCID:
    pytest.skip("PyTorch explains nothing", allow_module_level=True)

from pellucid.graph import Cause, Why, why

nn = torch.nn


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


def here(text):
    """File and number of the line in the caller's function that contains a text."""
    lines, first = inspect.getsourcelines(inspect.currentframe().f_back.f_code)
    return f"{__file__}:{first + next(k for k, line in enumerate(lines) if text in line)}"


# --- the causes -------------------------------------------------------------------------------------------------------


def test_a_gradient_that_is_there():
    w = leaf(1.0, 2.0)
    (w * 2).sum().backward()
    answer = why(w)
    assert answer.cause is Cause.PRESENT
    assert str(answer) == "`w` has a gradient, of shape [2]. Another backward will add to it."


def test_a_gradient_to_which_several_backwards_added():
    w = leaf(1.0, 2.0)
    for _ in range(3):
        (w * 2).sum().backward()
    answer = why(w)
    assert "It has been written to 2 times since it was made." in answer.reason
    assert "set w.grad = None or call zero_grad() before" in answer.advice


def test_a_tensor_that_does_not_require_grad():
    x = torch.ones(2)
    answer = why(x)
    assert answer.cause is Cause.NO_GRAD_WANTED
    assert answer.name == "x"
    assert "Set requires_grad_() on the tensors to differentiate by before they are used." in str(answer)


def test_whole_numbers_have_no_gradient():
    counts = torch.tensor([1, 2])
    assert "tensors of type torch.int64 have no gradient. Use a floating-point type." in str(why(counts))


def test_recording_that_is_off_is_mentioned():
    w = leaf(1.0)
    with torch.no_grad():
        y = w * 2
        plain = torch.ones(1)
        assert "Recording is off here" in str(why(plain))
    assert "cut by no_grad" in str(why(y))


CUTS = {
    "detach": (lambda w: w.detach() * 2, "Leave out detach() there"),
    "data": (lambda w: w.data * 2, "in place of its .data"),
    "argmax": (lambda w: (w * 2).argmax(), "argmax has no derivative"),
    "comparison": (lambda w: w > 1, "gt has no derivative"),
}


@pytest.mark.parametrize("name", CUTS)
def test_a_path_that_was_cut(name):
    cut, advice = CUTS[name]
    w = leaf(1.0, 2.0)
    y = cut(w)
    answer = why(y)
    assert answer.cause is Cause.CUT
    assert answer.name == "y"
    assert answer.site.file == __file__
    assert advice in answer.advice
    assert answer.leaves == ()


def test_a_block_without_gradients_is_a_cut_with_a_line():
    w = leaf(1.0)
    with torch.no_grad():
        y = w * 2  # here
    later = y + 1
    answer = why(later)
    assert f"its gradient path was cut by no_grad at {here('# here')}" in answer.reason
    assert "Move that line out of the no_grad block" in answer.advice


def test_a_block_of_inference_is_a_cut_too():
    w = leaf(1.0)
    with torch.inference_mode():
        y = w * 2
    assert "its gradient path was cut by inference_mode at" in why(y).reason
    assert "Move that line out of the inference_mode block" in why(y).advice


def test_values_that_were_taken_out_of_the_graph():
    w, plain = leaf(1.0, 2.0), torch.ones(2)
    net = nn.Linear(2, 1)
    by_item = torch.tensor((w * 2).sum().item())  # by item
    by_copy = torch.tensor(net(plain).tolist())  # by copy
    for name, value in (("item", by_item), ("copy", by_copy)):
        answer = why(value)
        assert answer.cause is Cause.CUT
        assert f"it is made of values that were taken out of the graph at {here(f'# by {name}')}" in answer.reason
        assert "Compute it from the tensors themselves" in answer.advice
    harmless = torch.tensor(plain.tolist())
    for value in (harmless, plain):
        assert why(value).cause is Cause.NO_GRAD_WANTED


def test_a_conversion_to_integers_is_a_cut():
    w = leaf(1.0, 2.0)
    answer = why((w * 2).long().float())  # here
    assert answer.cause is Cause.CUT
    assert f"its gradient path was cut by to(torch.int64) at {here('# here')}" in answer.reason
    with torch.no_grad():
        assert "cut by no_grad at" in why((w * 2).long()).reason
    assert (w * 2).to(torch.float64).requires_grad


def test_a_computed_tensor_names_its_operation_and_the_leaf_to_read():
    w = torch.ones(2, requires_grad=True)  # made
    y = w * 3  # computed
    answer = why(y)
    assert answer.cause is Cause.NOT_A_LEAF
    assert answer.leaves == ("w",)
    assert answer.reason.startswith(f"`y` is not a leaf: MulBackward0 made it at {here('# computed')}")
    assert f"from the leaf `w` (made at {here('# made')}" in answer.reason
    assert answer.advice == "Read w.grad, or call y.retain_grad() before backward."


def test_a_leaf_that_was_converted_and_lost_is_pointed_at():
    x = torch.rand(3, requires_grad=True).double()  # converted
    answer = why(x)
    assert answer.reason.startswith("`x` is not a leaf: ToCopyBackward0 made it at")
    assert f"from the leaf of shape [3] that no variable holds (made at {here('# converted')}" in answer.reason
    assert "Hold the leaf in a variable and read its grad" in answer.advice


def test_the_leaves_of_a_model_are_named_by_their_modules():
    net = nn.Sequential(nn.Linear(2, 1))
    out = net(torch.ones(1, 2))
    assert why(out).leaves == ("net.0.weight", "net.0.bias")


def test_many_leaves_are_cut_short():
    net = nn.Sequential(*[nn.Linear(2, 2) for _ in range(4)])
    out = net(torch.ones(1, 2))
    answer = why(out)
    assert len(answer.leaves) == 8
    assert "and 4 more." in answer.reason


def test_a_backward_that_has_not_run():
    w = leaf(1.0, 2.0)
    loss = (w * w).sum()
    answer = why(w)
    assert answer.cause is Cause.NOT_RUN
    assert "`loss` was computed from it, and no backward has run through that graph." in answer.reason
    assert answer.advice == "Call loss.backward()."
    assert str(why(w, loss)) == str(answer)


def test_a_derivative_that_was_taken_elsewhere():
    w = leaf(1.0, 2.0)
    loss = (w * w).sum()
    torch.autograd.grad(loss, w)  # taken
    answer = why(w)
    assert answer.cause is Cause.NOT_KEPT
    assert f"a derivative was taken at {here('# taken')}" in answer.reason
    assert "autograd.grad() returns gradients and fills in none" in answer.advice


@pytest.mark.parametrize("how", ["inputs", "gradient"])
def test_the_line_of_a_backward_with_arguments_is_found(how):
    w, other = leaf(1.0, 2.0), leaf(3.0, 4.0)
    out = w * other
    if how == "inputs":
        out.sum().backward(inputs=[other])  # by inputs
    else:
        out.backward(gradient=torch.ones(2))  # by gradient
        w.grad = None
    if how == "inputs":
        assert f"a derivative was taken at {here('# by inputs')}" in why(w, out).reason
    with pytest.raises(RuntimeError, match="a second time") as caught:
        out.sum().backward()
    assert f"first backward:  at {here(f'# by {how}')}" in str(caught.value)


def test_a_graph_that_saves_nothing_does_not_tell_whether_a_backward_has_run():
    w = leaf(1.0, 2.0)
    loss = w.sum()
    torch.autograd.grad(loss, w)
    answer = why(w)
    assert answer.cause is Cause.NOT_RUN
    assert "`loss` was computed from it, and no backward has filled it in." in answer.reason


def test_retain_grad_after_the_backward_is_too_late():
    w = leaf(1.0, 2.0)
    y = w * 3
    loss = y.sum()
    loss.backward()  # the backward
    y.retain_grad()
    answer = why(y)
    assert answer.cause is Cause.NOT_KEPT
    assert f"the backward at {here('# the backward')}" in answer.reason
    assert "went through it before retain_grad() was called." in answer.reason
    assert answer.advice == "Call y.retain_grad() before that backward."


def test_a_retained_gradient_that_was_dropped():
    y = leaf(1.0, 2.0) * 3
    y.retain_grad()
    y.sum().backward()
    y.grad = None  # dropped
    assert why(y).cause is Cause.RESET
    assert here("# dropped") in why(y).reason


@pytest.mark.parametrize("how", ["assignment", "deletion", "optimizer", "module"])
def test_a_gradient_that_was_dropped(how):
    net = nn.Linear(2, 1, bias=False)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    net(torch.ones(1, 2)).sum().backward()
    if how == "assignment":
        net.weight.grad = None  # by assignment
    elif how == "deletion":
        del net.weight.grad  # by deletion
    elif how == "optimizer":
        optimizer.zero_grad()  # by optimizer
    else:
        net.zero_grad()  # by module
    answer = why(net.weight)
    assert answer.cause is Cause.RESET
    assert f"dropped at {here(f'# by {how}')}" in answer.reason
    net(torch.ones(1, 2)).sum().backward()
    assert why(net.weight).cause is Cause.PRESENT


def test_a_leaf_that_no_result_was_computed_from():
    w, other = leaf(1.0), leaf(2.0)
    loss = other * 2
    assert why(w).cause is Cause.NOT_REACHED
    answer = why(w, loss)
    assert "`w` has no gradient: `loss` was not computed from it." in answer.reason


def test_a_leaf_that_came_to_require_grad_too_late():
    w = torch.ones(2)
    loss = (w * leaf(1.0, 2.0)).sum()
    w.requires_grad_()  # late
    loss.backward()
    answer = why(w, loss)
    assert answer.cause is Cause.NOT_REACHED
    assert f"It was made to require grad at {here('# late')}" in answer.reason
    assert "what was computed from it before does not count" in answer.reason


def test_a_leaf_that_has_required_grad_from_the_start_did_not_come_late():
    net, other = nn.Linear(2, 1), leaf(1.0)
    loss = other * 2
    for tensor in (net.weight, torch.ones(2, requires_grad=True)):
        assert "It was made to require grad" not in why(tensor, loss).reason


def test_a_cut_on_the_way_from_the_leaf_to_the_result_is_named():
    w = leaf(1.0, 2.0)
    fixed = w.detach()  # the cut
    loss = (fixed**2 * leaf(3.0, 4.0)).sum()
    answer = why(w, loss)
    assert answer.cause is Cause.NOT_REACHED
    assert f"A path was cut by detach at {here('# the cut')}" in answer.reason


def test_retain_grad_and_a_write_to_the_tensor_itself():
    h = leaf(1.0, 2.0) * 1
    h.retain_grad()
    loss = (h * 3).sum()
    h.add_(1)  # the write
    loss.backward()
    assert h.grad is None
    answer = why(h)
    assert answer.cause is Cause.RETAIN_LOST
    assert f"`h` was changed in place at {here('# the write')}" in answer.reason
    assert "the result was computed from what MulBackward0 made" in answer.reason


def test_a_tensor_without_a_name():
    assert str(why(leaf(1.0) * 2)).startswith("this tensor of shape [1] is not a leaf: MulBackward0")


def test_a_view_whose_history_is_invalid():
    base = leaf(1.0, 2.0) * 1
    first, _ = base.unbind()
    base.add_(1)
    assert why(first).cause in (Cause.CUT, Cause.NOT_A_LEAF)


def test_the_method_and_the_function_say_the_same():
    w = leaf(1.0)
    loss = w * 2
    assert str(w.why()) == str(why(w)) == str(torch.graph.why(w, loss))
    assert isinstance(w.why(loss), Why)


@pytest.mark.parametrize("arguments", [(1.0,), (torch.ones(1), "loss")])
def test_only_tensors_can_be_asked_about(arguments):
    with pytest.raises(TypeError, match=r"why\(\): expected a Tensor, got (float|str)"):
        why(*arguments)


def test_a_leaf_that_waits_for_nothing_that_can_be_seen():
    def program():
        w = leaf(1.0)
        return why(w)

    answer = program()
    assert answer.cause is Cause.NOT_REACHED
    assert "no result that a variable of the running functions holds was computed from it" in answer.reason


# --- errors and warnings --------------------------------------------------------------------------------------------------


def test_reading_the_gradient_of_a_computed_tensor_warns_in_the_same_words():
    w = leaf(1.0)
    y = w * 3
    with pytest.warns(UserWarning, match="not a leaf Tensor is being accessed") as caught:
        assert y.grad is None
    first, second = str(caught[0].message).split("\n")
    assert "use .retain_grad() on the non-leaf Tensor" in first
    assert second == str(why(y))


def test_a_backward_from_what_does_not_require_grad_says_why():
    w = leaf(1.0)
    loss = (w * 2).detach().sum()
    with pytest.raises(RuntimeError) as caught:
        loss.backward()
    first, second = str(caught.value).split("\n")
    assert first == "element 0 of tensors does not require grad and does not have a grad_fn"
    assert second == str(why(loss))


def test_a_backward_from_a_cut_result_that_was_set_to_require_grad_warns():
    w = leaf(1.0, 2.0)
    loss = (w * 2).argmax().float()  # the cut
    loss.requires_grad = True  # the setting
    with pytest.warns(UserWarning, match="nothing will be trained") as caught:
        loss.backward()
    text = str(caught[0].message)
    assert f"was cut by argmax at {here('# the cut')}" in text
    assert f"Setting requires_grad = True on it at {here('# the setting')}" in text
    assert caught[0].filename == __file__


def test_a_backward_from_what_frozen_parameters_made_and_was_set_to_require_grad_warns():
    net = nn.Linear(2, 1).requires_grad_(False)
    loss = net(torch.ones(1, 2)).sum()
    loss.requires_grad = True  # the setting
    with pytest.warns(UserWarning, match="nothing will be trained") as caught:
        loss.backward()
    assert f"on which requires_grad = True was set at {here('# the setting')}" in str(caught[0].message)
    assert caught[0].filename == __file__


def test_a_backward_from_a_leaf_that_was_made_one_does_not_warn():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        torch.ones(1, requires_grad=True).backward()
        nn.Parameter(torch.ones(1), requires_grad=False).requires_grad_().backward()


def test_a_detached_tensor_that_is_used_on_as_a_leaf_does_not_warn():
    w = leaf(1.0, 2.0)
    start = (w * 2).detach().requires_grad_()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        (start * start).sum().backward()
        leaf(1.0).backward()
    assert close(start.grad, [4.0, 8.0])
