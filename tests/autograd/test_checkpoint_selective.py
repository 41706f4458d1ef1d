"""Selective checkpoints: a policy keeps the results of some operators, and the others are recomputed."""

import contextlib

import pytest
from checkpoints import Counted, changing, checkpoint, lib, mark, wave
from library import ON_PELLUCID, close, leaf, pellucid_only, torch

grad = torch.autograd.grad


# --- selective checkpoints -------------------------------------------------------------------------------------------

Policy = lib.CheckpointPolicy


def operator_name(op):
    """"mm" for `aten.mm.default` and for an operator of ours."""
    return op.name if ON_PELLUCID else str(op).split(".")[1]


def keeping(*names, log=None, **options):
    """A `context_fn` that keeps the results of some operators."""

    def policy(ctx, op, *args, **kwargs):
        if log is not None:
            log.append(operator_name(op))
        assert not ctx.is_recompute
        return Policy.MUST_SAVE if operator_name(op) in names else Policy.PREFER_RECOMPUTE

    return lambda: lib.create_selective_checkpoint_contexts(policy, **options)


@pytest.mark.parametrize("names", [(), ("exp",), ("sin", "exp"), ("mul",), ("sin", "exp", "mul", "sum", "mm", "t")])
def test_selective_checkpoints_give_the_same_gradients(names):
    def function(x, w):
        return (x @ w).sin().exp() * x.sum()

    torch.manual_seed(0)
    x, w = torch.randn(2, 2, requires_grad=True), torch.randn(2, 2, requires_grad=True)
    expected = grad(function(x, w).sum(), [x, w])
    got = grad(checkpoint(function, x, w, context_fn=keeping(*names)).sum(), [x, w])
    assert all(close(g, e, 1e-6) for g, e in zip(got, expected, strict=True))


def test_the_policy_is_asked_in_the_forward():
    log = []
    out = checkpoint(lambda x: (x * 2).exp(), leaf([1.0]), context_fn=keeping("exp", log=log))
    assert log == ["mul", "exp"]
    out.sum().backward()
    assert log == ["mul", "exp"]


def test_a_policy_sees_operands_and_result():
    seen = []

    def policy(ctx, op, *args, **kwargs):
        seen.append((operator_name(op), close(args[0], [1.0]), close(ctx.op_output, [2.0])))
        return False

    context_fn = lambda: lib.create_selective_checkpoint_contexts(policy)  # noqa: E731
    checkpoint(lambda x: x * 2, leaf([1.0]), context_fn=context_fn).sum().backward()
    assert seen == [("mul", True, True)]


def test_a_kept_result_is_not_computed_again():
    """Without the random state of the forward, a product recomputed is another one; one that was kept is not."""
    torch.manual_seed(0)

    def function(x):
        return (x * torch.rand(3).double()).exp()

    for names, same in ((), False), (("mul",), True):
        x = leaf([1.0, 2.0, 3.0])
        inside = []
        contexts = keeping(*names)
        out = checkpoint(lambda t, i=inside: i.append(function(t)) or i[-1], x, context_fn=contexts, early_stop=False,
                         preserve_rng_state=False)  # fmt: skip
        out.sum().backward()
        assert close(inside[1], inside[0]) == same


def test_operators_with_several_results_can_be_kept():
    def function(x):
        values, places = torch.topk(x.exp(), 2)
        first, second = values.chunk(2)
        return (first * second).sin() + places.sum()

    x = leaf([1.0, 3.0, 2.0])
    expected = grad(function(x).sum(), x)[0]
    out = checkpoint(function, x, context_fn=keeping("topk", "exp", "split", "chunk"))
    assert close(grad(out.sum(), x)[0], expected)


def test_the_list_form_of_a_policy():
    mm = torch.mm if ON_PELLUCID else torch.ops.aten.mm.default
    x = torch.ones(2, 2, requires_grad=True)
    out = checkpoint(lambda t: (t @ t).sin(), x, context_fn=lambda: lib.create_selective_checkpoint_contexts([mm]))
    out.sum().backward()
    assert close(x.grad, grad((x @ x).sin().sum(), x)[0], 1e-6)


def test_a_selective_checkpoint_is_differentiated_once():
    out = checkpoint(wave, leaf([1.0]), context_fn=keeping("exp")).sum()
    out.backward(retain_graph=True)
    with pytest.raises(RuntimeError, match="Trying to backward an extra time"):
        out.backward(retain_graph=True)


def test_a_kept_result_may_not_be_overwritten():
    def function(x):
        return x.sin().mul_(2).exp()

    x = leaf([1.0])
    with pytest.raises(RuntimeError, match="Tensor cached during selective activation checkpoint has been mutated"):
        checkpoint(function, x, context_fn=keeping("sin")).sum().backward()
    contexts = keeping("sin", allow_cache_entry_mutation=True)
    checkpoint(function, x, context_fn=contexts).sum().backward()
    assert x.grad is not None


def test_a_selective_recomputation_of_other_operators():
    again = [(torch.cos, "encountered during backward but not found"), (lambda x: x.exp().exp(), "invocation index 1")]
    for later, phrase in again:
        out = checkpoint(changing(lambda x: x.sin().exp(), later), leaf([1.0]), context_fn=keeping("exp"))
        with pytest.raises(RuntimeError, match=phrase):
            out.sum().backward()


def test_what_is_no_operator_cannot_be_kept():
    with pytest.raises(ValueError, match="Expected op in `op_list` to be an OpOverload but got"):
        lib.create_selective_checkpoint_contexts([len])
    with pytest.raises(TypeError, match="policy_fn_or_list must be either a function or a list of ops"):
        lib.create_selective_checkpoint_contexts(3)


def test_selective_checkpoints_die_by_reference_counting(freed_by_reference_count):
    x = leaf([1.0])
    with freed_by_reference_count() as watch:
        function = Counted(wave)
        out = checkpoint(function, x, context_fn=keeping("exp"))
        watch(function)
        watch(mark(out.grad_fn))
        out.sum().backward()
        del out, function


@pellucid_only("asks for what is ours")
def test_nothing_is_left_switched_on():
    from pellucid.core.modes import GENERAL, modes

    for later in (wave, torch.cos):
        with contextlib.suppress(lib.CheckpointError):
            checkpoint(changing(wave, later), leaf([1.0]), debug=True).sum().backward()
        with contextlib.suppress(RuntimeError):
            checkpoint(changing(wave, later), leaf([1.0]), context_fn=keeping("exp")).sum().backward()
        assert modes.road != GENERAL
        assert (modes.observers, modes.compute, modes.saved_hooks) == ((), None, ())
