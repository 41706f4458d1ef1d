"""Checkpoints: what is refused, warned of and found out; debug mode; where recomputing stops; groups of backwards."""

import contextlib
import logging
import warnings

import pytest
from checkpoints import Counted, changing, checkpoint, lib, mark, reentrant, save_four, save_two, wave
from library import ON_PELLUCID, close, const, leaf, pellucid_only, torch

grad = torch.autograd.grad


# --- options, warnings, errors ---------------------------------------------------------------------------------------


def test_the_form_is_to_be_chosen():
    x = leaf([1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        reentrant(wave, x)
        checkpoint(wave, x)
    phrase = "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly"
    with pytest.warns(UserWarning, match=phrase):
        out = lib.checkpoint(wave, x)
    assert "CheckpointFunction" in out.grad_fn.name()


def test_the_form_is_to_be_chosen_for_sequences():
    x = leaf([1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lib.checkpoint_sequential([torch.sin, torch.cos], 1, x, use_reentrant=True)
    phrase = "checkpoint_sequential: the use_reentrant parameter should be passed explicitly"
    with pytest.warns(UserWarning, match=phrase):
        lib.checkpoint_sequential([torch.sin, torch.cos], 1, x)


@pytest.mark.parametrize("use_reentrant", [True, False])
@pytest.mark.parametrize("segments", [1, 2, 3, 5])
def test_a_sequence_in_segments(use_reentrant, segments):
    steps = [Counted(f) for f in (torch.sin, torch.exp, torch.cos, torch.tanh, torch.sin)]
    x = leaf([0.5])
    expected = grad(x.sin().exp().cos().tanh().sin(), x)[0]
    lib.checkpoint_sequential(steps, segments, x, use_reentrant=use_reentrant).backward()
    assert close(x.grad, expected)
    again = (5 // segments) * (segments - 1)
    assert [s.count for s in steps] == [2] * again + [1] * (5 - again)


def test_a_module_in_segments():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.ReLU(), torch.nn.Linear(3, 2))
    x = torch.randn(2, 4, requires_grad=True)
    parameters = [x, *net.parameters()]
    expected = grad(net(x).sum(), parameters)
    found = grad(lib.checkpoint_sequential(net, 2, x, use_reentrant=False).sum(), parameters)
    assert all(close(g, e, 1e-6) for g, e in zip(found, expected, strict=True))


@pytest.mark.parametrize("segments", [2, 0])
def test_more_segments_than_functions(segments):
    with pytest.raises((ValueError, ZeroDivisionError)) as caught:
        lib.checkpoint_sequential([torch.sin], segments, leaf([1.0]), use_reentrant=False)
    if ON_PELLUCID:
        assert f"segments must be from 1 to the number of functions, 1, but got {segments}" in str(caught.value)


def test_keywords_of_the_function_need_the_plain_form():
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale"):
        reentrant(wave, leaf([1.0]), scale=2)
    with pytest.raises(ValueError, match="Unexpected keyword arguments: scale"):
        lib.checkpoint_sequential([torch.sin], 1, leaf([1.0]), use_reentrant=False, scale=2)


@pytest.mark.parametrize("option", [{"debug": True}, {"context_fn": lambda: None}])
def test_options_of_the_plain_form_are_refused_by_the_other(option):
    with pytest.raises(ValueError, match="only supported when use_reentrant=False"):
        reentrant(wave, leaf([1.0]), **option)


def test_debug_needs_the_contexts_for_itself():
    with pytest.raises(ValueError, match="debug=True is incompatible with non-default context_fn"):
        checkpoint(wave, leaf([1.0]), debug=True, context_fn=lambda: None)


def test_an_unknown_determinism_check():
    with pytest.raises(ValueError, match=r"determinism_check should be one of .*'default', 'none'.*but got all"):
        checkpoint(wave, leaf([1.0]), determinism_check="all")


def test_the_reentrant_form_cannot_give_chosen_gradients():
    x = leaf([1.0])
    for run in (
        lambda: grad(reentrant(wave, x * 1), x),
        lambda: reentrant(wave, x * 1).backward(inputs=[x]),
        lambda: grad(reentrant(lambda t: reentrant(wave, t), x * 1), x),
    ):
        with pytest.raises(RuntimeError, match=r"torch.utils.checkpoint is incompatible with .grad\(\)"):
            run()
    assert x.grad is None
    reentrant(wave, x * 1).backward()  # and nothing is left of the refusal
    assert close(x.grad, grad(wave(x), x)[0])


def test_the_reentrant_form_warns_where_nothing_needs_a_gradient():
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True. Gradients will be None"):
        out = reentrant(wave, const([1.0]))
    assert not out.requires_grad
    with pytest.warns(UserWarning, match="None of the inputs have requires_grad=True"):
        lib.check_backward_validity([const([1.0]), 3])


def test_arguments_as_leaves():
    x = leaf([1.0]) * 2
    again, constant, number = lib.detach_variable((x, const([1.0]), 3))
    assert again.requires_grad
    assert again.is_leaf
    assert not constant.requires_grad
    assert number == 3
    with pytest.raises(RuntimeError, match=r"Only tuple of tensors is supported\. Got Unsupported input type: list"):
        lib.detach_variable([x])


def test_there_are_no_other_devices():
    assert lib.get_device_states(leaf([1.0])) == ([], [])
    lib.set_device_states([], [])
    lib.DefaultDeviceType.set_device_type("cpu")
    assert lib.DefaultDeviceType.get_device_type() == "cpu"


# --- a recomputation that does not fit -------------------------------------------------------------------------------


def sums(x):
    return x.sin().sum().exp()


def wider(x):
    return torch.stack([x, x]).sin().exp().sum()


def test_fewer_tensors_saved():
    out = checkpoint(changing(save_four, save_two), leaf([1.0]))
    with pytest.raises(lib.CheckpointError, match="A different number of tensors was saved"):
        out.backward()
    with pytest.raises(RuntimeError, match="saved during forward: 4\nNumber of tensors saved during recomputation: 2"):
        checkpoint(changing(save_four, save_two), leaf([1.0])).backward()


def test_more_tensors_saved():
    checkpoint(changing(save_two, save_four), leaf([1.0])).backward()  # early stop does not see it
    with lib.set_checkpoint_early_stop(False):
        out = checkpoint(changing(save_two, save_four), leaf([1.0]))
    with pytest.raises(lib.CheckpointError, match="trying to save more tensors during recomputation"):
        out.backward()


def test_other_tensors_saved():
    out = checkpoint(changing(sums, wider), leaf([1.0]))
    with pytest.raises(lib.CheckpointError, match="the following tensors have different metadata"):
        out.backward()


def test_other_tensors_are_not_looked_for_on_request():
    x = leaf([1.0])
    checkpoint(changing(save_two, lambda t: t.double().sin().exp() * 3), x, determinism_check="none").backward()
    assert x.grad is not None
    y = torch.ones(2, requires_grad=True)
    out = checkpoint(changing(sums, lambda t: t.double().sin().sum().exp()), y)
    with pytest.raises(lib.CheckpointError, match="have different metadata"):
        out.backward()
    y = torch.ones(2, requires_grad=True)
    checkpoint(changing(sums, lambda t: t.double().sin().sum().exp()), y, determinism_check="none").backward()


DEBUG = "You are seeing this error because you passed `debug=True` to checkpoint"


@pytest.fixture
def torch_log():
    """PyTorch's log of operators stops propagating for good, and pytest then puts a handler on it that cannot read it."""
    yield
    logging.getLogger("LoggingTensor").propagate = True


@pytest.mark.usefixtures("torch_log")
@pytest.mark.parametrize(
    ("block", "argument", "detailed"),
    [(None, True, True), (None, False, False), (True, False, True), (False, True, False)],
)
def test_debug_mode_is_an_argument_or_a_block(block, argument, detailed):
    with lib.set_checkpoint_debug_enabled(block):
        out = checkpoint(changing(save_four, save_two), leaf([1.0]), debug=argument)
    with pytest.raises(lib.CheckpointError, match=DEBUG if detailed else "A different number of tensors was saved"):
        out.backward()


@pytest.mark.usefixtures("torch_log")
def test_debug_mode_shows_the_operators_of_both_runs():
    out = checkpoint(changing(save_four, save_two), leaf([1.0]), debug=True)
    with pytest.raises(lib.CheckpointError) as caught:
        out.backward()
    text = str(caught.value)
    _, _, rest = text.partition("Operations executed during the original forward:")
    forward, _, again = rest.partition("Operations executed during recomputation:")
    assert "cos" in forward
    assert "mul" in again
    assert "cos" not in again.partition("ERROR" if not ON_PELLUCID else "You are")[0]
    assert "A different number of tensors was saved" in str(caught.value.__cause__)


@pellucid_only("the layout is ours")
def test_debug_mode_names_shapes_and_lines():
    out = checkpoint(changing(lambda x: (x.mul_(2) if x.is_leaf else x * 2).sin(), torch.exp), leaf([1.0]) * 1, debug=True)
    out.sum().backward()
    out = checkpoint(changing(lambda x: (x * 2).sin(), lambda x: x), leaf([1.0]) * 1, debug=True)
    with pytest.raises(lib.CheckpointError) as caught:
        out.sum().backward()
    assert "1  mul(Double[1], 2) -> Double[1]   at " in str(caught.value)
    assert "test_checkpoint_mistakes.py:" in str(caught.value)
    assert "(none)" in str(caught.value)


# --- early stop ------------------------------------------------------------------------------------------------------


def stops(block=None, **options):
    """How many of the two steps after the last saved tensor ran again."""
    steps = Counted(lambda x: x + 1)
    with contextlib.nullcontext() if block is None else lib.set_checkpoint_early_stop(block):
        out = checkpoint(lambda x: steps(x.sin().exp()), leaf([1.0]), **options)
    out.backward()
    return steps.count == 1


def test_early_stop_is_the_default_an_argument_and_a_block():
    assert stops()
    assert stops(early_stop=True)
    assert not stops(early_stop=False)
    assert not stops(block=False)
    assert not stops(block=False, early_stop=True)
    assert stops(block=True, early_stop=False)
    with lib.set_checkpoint_early_stop(False):
        assert not stops()
        assert stops(block=True)
        assert not stops()
    assert stops()


def test_early_stop_counts_where_the_forward_ran():
    steps = Counted(lambda x: x + 1)
    with lib.set_checkpoint_early_stop(False):
        out = checkpoint(lambda x: steps(x.sin()), leaf([1.0]))
    out.backward()
    assert steps.count == 2


@pytest.mark.parametrize(("outer", "inner", "expected"), [(True, True, 2), (False, True, 3), (True, False, 2)])
def test_early_stop_of_nested_checkpoints(outer, inner, expected):
    """The outer function runs again to where the inner checkpoint's argument is known, or to its end."""
    core = Counted(lambda x: x.exp().sin())

    def middle(x):
        return checkpoint(core, x.cos(), early_stop=inner)

    checkpoint(middle, leaf([1.0]), early_stop=outer).backward()
    assert core.count == expected


# --- groups of backwards ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("grouped", [True, False])
def test_backwards_of_a_group_share_a_recomputation(grouped):
    def in_two(x):
        y = x.sin().cos()
        return y, y.sin().cos()

    split, x = Counted(in_two), leaf([0.5, 1.5])
    y, z = checkpoint(split, x)
    with lib.GraphExecGroup() if grouped else contextlib.nullcontext():
        (gy,) = grad(z, y, torch.ones_like(z))
        (gx,) = grad(y, x, gy)
    assert split.count == (2 if grouped else 3)
    assert close(gx, grad(in_two(x)[1].sum(), x)[0])


def test_backwards_of_a_group_may_not_overlap():
    x = leaf([0.5])
    out = checkpoint(lambda t: t.sin().cos(), x).sum()
    with lib.GraphExecGroup():
        out.backward(retain_graph=True)
        with pytest.raises(lib.CheckpointError, match="Performing two backward calls that overlap"):
            out.backward(retain_graph=True)
    out.backward()
    assert close(x.grad, 2 * grad(x.sin().cos(), x)[0])


def test_groups_do_not_nest():
    with lib.GraphExecGroup() as group:
        assert lib.GraphExecGroup._get_current_group() is group
        with pytest.raises(RuntimeError, match="GraphExecGroup contexts cannot be nested"), lib.GraphExecGroup():
            pass
    assert lib.GraphExecGroup._get_current_group() is None


def test_a_group_lets_go_of_what_was_recomputed(freed_by_reference_count):
    x = leaf([0.5])
    with freed_by_reference_count() as watch:
        function = Counted(lambda t: t.sin().cos())
        out = checkpoint(function, x)
        watch(function)
        watch(mark(out.grad_fn))
        with lib.GraphExecGroup():
            out.sum().backward(retain_graph=True)
        del out, function


