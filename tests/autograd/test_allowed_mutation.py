"""`allow_mutation_on_saved_tensors`: a block in which values saved for backward may be overwritten."""

import pytest
from library import close, leaf, torch

allow = torch.autograd.graph.allow_mutation_on_saved_tensors


def test_a_saved_value_may_be_overwritten_inside():
    x = leaf([1.0, 2.0])
    with allow():
        y = x * 1
        out = y * y
        y.fill_(7)
        out.sum().backward()
    assert close(x.grad, [2.0, 4.0])


def test_a_saved_value_must_not_be_overwritten_outside():
    x = leaf([1.0, 2.0])
    with allow():
        pass
    y = x * 1
    out = y * y
    y.fill_(7)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


@pytest.mark.parametrize("how", ["view of it", "saved view, base written", "saved base, view written"])
def test_a_saved_value_may_be_overwritten_through_a_view(how):
    x = leaf([1.0, 2.0])
    with allow():
        y = x * 1
        view = y.view_as(y)
        saved, written = (view, y) if how == "saved view, base written" else (y, view)
        if how == "view of it":
            written = y[:]
        out = saved * saved
        written *= 10
        out.sum().backward()
    assert close(x.grad, [2.0, 4.0])


def test_overwriting_several_times():
    x = leaf([1.0, 2.0])
    with allow():
        y = x * 1
        first = y * y
        y.mul_(3)
        second = y * y
        y.zero_()
        (first + second).sum().backward()
    assert close(x.grad, [20.0, 40.0])


def test_overwriting_and_differentiating_twice():
    x = leaf([1.0, 2.0])
    with allow():
        y = x * 1
        out = (y**3).sum()
        y.mul_(5)
        (first,) = torch.autograd.grad(out, x, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), x)
    assert close(first, [3.0, 12.0])
    assert close(second, [6.0, 12.0])


def test_overwriting_a_complex_value():
    x = torch.tensor([1 + 2j], requires_grad=True)
    with allow():
        y = x * 1
        out = y.conj() * y
        y.sin_()
        out.real.sum().backward()
    assert close(x.grad, [2 + 4j], tolerance=1e-6)


def test_overwriting_by_out_makes_a_copy():
    x = leaf([1.0, 2.0])
    with allow() as context:
        y = x * 1
        out = (y * y).sum()
        with torch.no_grad():
            torch.sin(y, out=y)
        assert len(context.cloned) == 1
        out.backward()
    assert close(x.grad, [2.0, 4.0])


def test_a_value_saved_many_times_is_copied_once():
    x = leaf([1.0, 2.0])
    with allow() as context:
        y = x * 1
        out = y * y + y.sin() + y.exp() * y
        y.mul_(2)
        assert len(context.cloned) == 1
        out.sum().backward()
    v = x.detach()
    assert close(x.grad, 2 * v + v.cos() + v.exp() * (v + 1))


def test_what_is_not_saved_any_more_is_not_copied():
    with allow() as context:
        y = leaf([1.0, 2.0]) * 1
        first, second = y * y, y.sin()
        del first, second
        y.mul_(2)
        assert len(context.cloned) == 0


def test_each_version_is_copied_and_freed_with_its_node():
    with allow() as context:
        y = leaf([1.0, 2.0]) * 1
        first = y * y
        y.mul_(2)
        second = y * y
        y.mul_(2)
        assert len(context.cloned) == 2
        del first
        assert len(context.cloned) == 1
        del second
        assert len(context.cloned) == 0


def test_the_copies_are_counted_and_freed():
    x = leaf([1.0, 2.0])
    with allow() as context:
        y = x * 1
        out = y * y
        assert len(context.cloned) == 0
        y.mul_(2)
        assert len(context.cloned) == 1
        y.mul_(2)
        assert len(context.cloned) == 1
        del out
        assert len(context.cloned) == 0


def test_backward_must_run_inside_the_context():
    x = leaf([1.0, 2.0])
    with allow():
        y = x * 1
        out = (y * y).sum()
        y.fill_(7)
    with pytest.raises(AssertionError, match="Trying to backward outside of the 'allow_mutation_on_saved"):
        out.backward()


@pytest.mark.parametrize("written", [True, False], ids=["overwritten", "intact"])
def test_backward_must_not_run_inside_another_context(written):
    x = leaf([1.0, 2.0])
    with allow():
        y = x * 1
        out = (y * y).sum()
        if written:
            y.fill_(7)
    with allow(), pytest.raises(AssertionError, match="Trying to backward outside of the 'allow_mutation_on_saved"):
        out.backward()


def test_contexts_of_allowed_mutation_do_not_nest():
    with allow(), pytest.raises(RuntimeError, match="allow_mutation_on_saved_tensors contexts cannot be nested"):
        with allow():
            pass
