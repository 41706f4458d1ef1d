"""Views, writes in place and version counters, as people meet them: what must be refused, and what the refusal says."""

import inspect
import re

import numpy as np
import pytest
from library import close, const, leaf, pellucid_only, torch

F32 = torch.float32
OVERWRITTEN = "modified by an inplace operation"


def line_of(function, text):
    """The number of the line of a function that contains a text."""
    lines, first = inspect.getsourcelines(function)
    return first + next(k for k, line in enumerate(lines) if text in line)


def refusal(run):
    """The text of the RuntimeError that a run ends in."""
    with pytest.raises(RuntimeError) as caught:
        run()
    return str(caught.value)


# --- a recurrence in slices of one buffer ------------------------------------------------------------------------------


def recurrence_in_a_buffer():
    gain, cells = leaf([0.5], F32), torch.zeros(4)
    cells[0] = 1.0
    for step in (1, 2, 3):
        cells[step] = cells[step - 1] * gain  # the product
        cells[step] = cells[step].tanh()  # the squashing
    cells.sum().backward()


def test_a_recurrence_in_slices_of_a_buffer_is_refused():
    assert OVERWRITTEN in refusal(recurrence_in_a_buffer)


def test_the_same_recurrence_kept_in_a_list_is_right():
    gain = leaf([0.5], F32)
    cells = [torch.ones(1)]
    for _ in range(3):
        cells.append((cells[-1] * gain).tanh())
    torch.cat(cells).sum().backward()
    assert close(gain.grad, [2.2223], 1e-4)


@pellucid_only("PyTorch names versions only")
def test_the_refusal_of_the_recurrence_names_buffer_lines_and_the_way_out():
    text = refusal(recurrence_in_a_buffer)
    assert "a part of `cells`" in text
    assert f"overwritten:  by an assignment at {__file__}:{line_of(recurrence_in_a_buffer, '# the product')}" in text
    assert f"last by an assignment at {__file__}:{line_of(recurrence_in_a_buffer, '# the squashing')}" in text
    assert f"saved:        by MulBackward0 at {__file__}:{line_of(recurrence_in_a_buffer, '# the product')}" in text
    assert "cells = torch.stack(parts)" in text


# --- a saved result that is overwritten ---------------------------------------------------------------------------------


def overwritten_result():
    x = leaf([0.1, 0.2, 0.3], F32)
    squashed = x.tanh()
    squashed[0] = 9.0  # the write
    squashed.sum().backward()


def test_overwriting_a_saved_result_is_refused():
    text = refusal(overwritten_result)
    assert re.search(r"\[torch.FloatTensor \[3\]\], which is output 0 of Tanh\w*, is at version 1; expected version 0", text)


def test_the_same_function_that_saves_no_result_may_be_overwritten():
    x = leaf([0.1, 0.2, 0.3], F32)
    squashed = 1 - 2 / ((2 * x).exp() + 1)
    squashed[0] = 9.0
    squashed.sum().backward()
    assert close(x.grad, [0.0, 0.961, 0.9151], 1e-4)


@pellucid_only("PyTorch names no line")
def test_the_refusal_names_the_variable_and_three_lines():
    text = refusal(overwritten_result)
    made, written = line_of(overwritten_result, "x.tanh()"), line_of(overwritten_result, "# the write")
    assert "value:        `squashed`" in text
    assert f"made:         by TanhBackward0 at {__file__}:{made}" in text
    assert f"saved:        by TanhBackward0 at {__file__}:{made}" in text
    assert f"overwritten:  by an assignment at {__file__}:{written}" in text
    assert text.endswith("Write to a copy: squashed = squashed.clone() before that line.")


# --- memory that several elements share ---------------------------------------------------------------------------------


@pytest.mark.parametrize("write", [lambda t: t.add_(1), lambda t: t.cos_()], ids=["add_", "cos_"])
def test_an_expanded_tensor_refuses_writes(write):
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        write(torch.ones(1, 1).expand(2, 3))


@pytest.mark.parametrize("write", [lambda t: t.add_(1), lambda t: t.cos_()], ids=["add_", "cos_"])
def test_an_array_whose_elements_share_memory_refuses_writes(write):
    array = np.lib.stride_tricks.as_strided(np.ones(1, np.float32), (2, 3), (0, 0))
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory"):
        write(torch.from_numpy(array))


@pellucid_only("PyTorch warns that the array is read-only, and writes")
def test_a_read_only_array_refuses_writes():
    with pytest.warns(UserWarning, match="not writable"):
        tensor = torch.from_numpy(np.broadcast_to(np.ones(1, np.float32), (2, 3)))
    with pytest.raises(RuntimeError, match="single memory location"):
        tensor.add_(1)


# --- one of several views -----------------------------------------------------------------------------------------------


def test_one_of_several_views_refuses_writes():
    m = leaf([1.0, 2.0, 3.0, 4.0], F32) * 1
    with pytest.raises(RuntimeError, match="output of a function that returns multiple views"):
        m.chunk(2)[0].mul_(4)


def test_a_view_of_one_of_several_views_refuses_writes():
    m = leaf([[1.0, 2.0], [3.0, 4.0]], F32) * 1
    with pytest.raises(RuntimeError, match="modified inplace"):
        m.chunk(2)[0][:, :1].mul_(4)


def test_a_view_of_an_ordinary_view_may_be_written_to():
    x = leaf([[1.0, 2.0], [3.0, 4.0]], F32)
    m = x * 1
    m[:1][:, :1].mul_(4)
    m.sum().backward()
    assert close(x.grad, [[4.0, 1.0], [1.0, 1.0]])


# --- retain_grad and writes -----------------------------------------------------------------------------------------------


def gradient_of_the_tail(write):
    """What `retain_grad` on a view has kept, where another part of the base may be written to meanwhile."""
    base = leaf([1.0, 2.0, 3.0], F32) * 1
    tail = base[1:]
    one = tail[0]
    tail.retain_grad()
    if write:
        base[0].add_(0)  # elsewhere
    (one * 7).backward()
    return tail, one


def test_a_view_keeps_its_gradient():
    assert close(gradient_of_the_tail(False)[0].grad, [7.0, 0.0])


def test_a_view_loses_its_gradient_when_another_part_of_the_base_is_written_to():
    assert gradient_of_the_tail(True)[0].grad is None


@pellucid_only("PyTorch does not say why")
def test_the_loss_of_the_gradient_is_explained():
    tail, _ = gradient_of_the_tail(True)
    answer = tail.why()
    assert answer.cause is torch.graph.Cause.RETAIN_LOST
    assert f"changed in place at {__file__}:{line_of(gradient_of_the_tail, '# elsewhere')}" in str(answer)
    assert "Call retain_grad() on the base" in answer.advice


def test_hooks_stay_with_the_old_version_and_retain_grad_follows_the_tensor():
    seen = []
    u = leaf([3.0], F32) * 1
    u.register_hook(lambda g: seen.append(("before", g.item())))
    u.retain_grad()
    u.mul_(4)
    u.register_hook(lambda g: seen.append(("after", g.item())))
    (u * 5).sum().backward()
    assert sorted(seen) == [("after", 5.0), ("before", 20.0)]
    assert close(u.grad, [5.0])


# --- silent writes --------------------------------------------------------------------------------------------------------


def test_a_silent_write_to_what_nothing_saved_is_fine():
    x = leaf([1.0, 2.0], F32)
    v = x * 1
    out = v * 2.0
    with torch.no_grad():
        v.add_(1)
    out.sum().backward()
    assert close(x.grad, [2.0, 2.0])


def test_a_silent_write_to_what_was_saved_is_refused():
    v = leaf([1.0, 2.0], F32) * 1
    out = v * v
    with torch.no_grad():
        v.add_(1)
    assert OVERWRITTEN in refusal(lambda: out.sum().backward())


def test_a_write_by_a_detached_tensor_is_refused():
    x = leaf([1.0, 2.0], F32)
    out = x * x
    x.detach().add_(1)
    assert OVERWRITTEN in refusal(lambda: out.sum().backward())


def test_a_write_by_data_goes_unseen_and_the_gradient_is_that_of_the_new_values():
    x = leaf([1.0, 2.0], F32)
    out = x * x
    x.data.add_(1)
    out.sum().backward()
    assert close(x.grad, [4.0, 6.0])


# --- what the refusal says, in other shapes -------------------------------------------------------------------------------


@pellucid_only("PyTorch names no line")
def test_a_parameter_that_a_step_changed_is_named_by_its_module():
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    loss = net(torch.ones(1, 2)).sum()
    loss.backward(retain_graph=True)
    optimizer.step()  # between

    text = refusal(loss.backward)
    assert "value:        `net.1.weight`" in text
    assert "made:         as a leaf" in text
    assert "optimizer.step()  # between" in text
    assert "Call backward() before they change (before optimizer.step())" in text


@pellucid_only("PyTorch names no line")
def test_an_activation_in_place_within_a_model_is_told_from_a_write_by_hand():
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sigmoid(), torch.nn.ReLU(inplace=True))
    out = net(torch.ones(1, 2)).sum()
    assert refusal(out.backward).endswith("relu_ ran within that line: build net.2 (ReLU) with inplace=False.")


@pellucid_only("PyTorch names no line")
@pytest.mark.parametrize(
    ("write", "advice"),
    [
        (lambda y: y.add_(1), "Write out of place there, y = y.add(...), or to a copy: y = y.clone() before that line."),
        (lambda y: y.__imul__(2), "mul_ ran within that line"),
    ],
    ids=["method", "hidden"],
)
def test_a_write_by_hand_is_to_be_made_out_of_place(write, advice):
    y = leaf([1.0, 2.0], F32) * 1
    out = y**2
    write(y)
    text = refusal(lambda: out.sum().backward())
    assert "value:        `y`" in text
    assert advice in text


@pellucid_only("PyTorch names no line")
def test_an_activation_in_place_that_no_module_is_known_for():
    def hidden(x):
        return torch.nn.functional.relu(x, inplace=True)

    y = torch.ones(2, requires_grad=True).sigmoid()
    out = hidden(y).sum()
    assert "relu_ ran within that line: where it is a module, build it with inplace=False." in refusal(out.backward)


@pellucid_only("PyTorch names no line")
@pytest.mark.parametrize(
    ("write", "operation", "called"),
    [
        ("h += 1", "add_", "`h`"),
        ("h.mul_(2)", "mul_", "`h`"),
        ("h[0] = 2.0", "an assignment", "a part of `h`"),
        ("h[0] *= 2.0", "an assignment", "a part of `h`"),
        ("held[0].add_(1)", "add_", "no variable holds it now"),
    ],
)
def test_a_value_whose_variable_is_gone_is_called_as_on_the_line_that_overwrote_it(tmp_path, write, operation, called):
    file = tmp_path / "program.py"
    file.write_text(f"def forward(x):\n    h = x.sigmoid()\n    held = [h]\n    {write}\n    return held[0].sum()\n")
    scope = {}
    exec(compile(file.read_text(), str(file), "exec"), scope)
    text = refusal(scope["forward"](leaf([1.0, 2.0], F32)).backward)
    assert f"  value:        {called}\n" in text
    assert f"  overwritten:  by {operation} at {file}:4, `{write}`" in text


@pellucid_only("PyTorch names no line")
def test_several_writes_are_counted_and_the_first_is_named():
    y = leaf([1.0, 2.0], F32) * 1
    out = y**2
    y += 1  # first
    for _ in range(3):
        y *= 2  # again
    text = refusal(lambda: out.sum().backward())
    assert "y += 1  # first`; 4 times in all, last by mul_" in text
    assert "y *= 2  # again`" in text


@pellucid_only("PyTorch names no line")
def test_a_value_without_a_gradient_is_named_too():
    x, weights = leaf([1.0, 2.0], F32), const([3.0, 4.0], F32)
    out = x * weights
    weights.zero_()
    text = refusal(lambda: out.sum().backward())
    assert "[torch.FloatTensor [2]] is at version 1; expected version 0 instead." in text
    assert "value:        `weights`" in text
    assert "made:         outside the graph" in text


@pellucid_only("PyTorch names no line")
def test_what_a_custom_function_saved_is_named_too():
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return 2 * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * grad * ctx.saved_tensors[0]

    y = leaf([1.0], F32) * 1
    out = Twice.apply(y)
    y.mul_(3)
    text = refusal(out.backward)
    assert "which is output 0 of MulBackward0" in text
    assert "saved:        by TwiceBackward at" in text
    assert "value:        `y`" in text
