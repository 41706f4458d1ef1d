"""`retain_grad`: keeping the gradient of a tensor that is no leaf."""

import pytest
from library import close, const, leaf, pellucid_only, torch


class Pair(torch.autograd.Function):
    """Twice and three times its input."""

    @staticmethod
    def forward(ctx, x):
        return x * 2, x * 3

    @staticmethod
    def backward(ctx, g, h):
        return g * 2 + h * 3


def test_the_gradient_of_a_non_leaf_is_kept_on_request():
    x = leaf([2.0])
    y = x * 3
    assert not y.retains_grad
    y.retain_grad()
    assert y.retains_grad
    (y * y).backward()
    assert close(y.grad, [12.0])
    assert not y.grad.requires_grad


def test_asking_twice_changes_nothing():
    y = leaf([2.0]) * 3
    y.retain_grad()
    y.retain_grad()
    (y * 5).backward()
    assert close(y.grad, [5.0])


def test_retained_gradients_accumulate():
    y = leaf([2.0]) * 3
    y.retain_grad()
    (y + 1).backward(retain_graph=True)
    (y * 5).backward()
    assert close(y.grad, [6.0])


def test_retaining_on_a_leaf_changes_nothing():
    x = leaf([2.0])
    x.retain_grad()
    assert not x.retains_grad
    (x * 5).backward()
    assert close(x.grad, [5.0])


def test_a_tensor_that_needs_no_gradient_cannot_retain_one():
    with pytest.raises(RuntimeError, match="can't retain_grad on Tensor that has requires_grad=False"):
        const([1.0]).retain_grad()


@pytest.mark.parametrize("when", ["before", "after", "both"])
def test_the_retained_gradient_includes_all_tensor_hooks(when):
    y = leaf([2.0]) * 3
    if when in ("before", "both"):
        y.register_hook(lambda g: g * 10)
    y.retain_grad()
    if when in ("after", "both"):
        y.register_hook(lambda g: g * 10)
    (y * 5).backward()
    assert close(y.grad, [500.0 if when == "both" else 50.0])


def test_a_retained_gradient_is_a_copy():
    x = leaf([2.0])
    y = x + 1
    y.retain_grad()
    (y * 5).backward()
    y.grad.mul_(100)
    assert close(x.grad, [5.0])


def test_a_retained_gradient_under_create_graph_can_be_differentiated():
    x = leaf([2.0])
    y = x * 3
    y.retain_grad()
    seen = torch.autograd.grad((y**3).sum(), [y, x], create_graph=True)
    assert close(y.grad, [108.0])
    (second,) = torch.autograd.grad(seen[0].sum(), y)
    assert close(second, [36.0])


def test_after_an_in_place_operation_the_gradient_is_of_the_new_value():
    y = leaf([3.0]) * 1
    y.retain_grad()
    y.mul_(4)
    (y * 5).backward()
    assert close(y.grad, [5.0])


def test_after_several_in_place_operations_the_gradient_is_of_the_last_value():
    y = leaf([3.0]) * 1
    y.mul_(2)
    y.retain_grad()
    y.mul_(4)
    y.add_(1)
    y.mul_(7)
    (y * 5).backward()
    assert close(y.grad, [5.0])


def test_a_write_through_a_view_moves_the_retained_gradient_of_the_base():
    base = leaf([1.0, 2.0]) * 1
    base.retain_grad()
    base[0].mul_(10)
    (base * const([3.0, 5.0])).sum().backward()
    assert close(base.grad, [3.0, 5.0])


def test_a_write_to_the_base_moves_the_retained_gradient_of_a_view():
    base = leaf([1.0, 2.0]) * 1
    view = base[:1]
    view.retain_grad()
    base.mul_(10)
    assert view.grad_fn is not None  # asking for it brings the view up to date
    (view * 3).sum().backward()
    assert close(view.grad, [3.0])


def test_a_write_to_one_view_moves_the_retained_gradient_of_its_sibling():
    base = leaf([1.0, 2.0, 3.0]) * 1
    first, second = base[:2], base[1:]
    first.retain_grad()
    second.retain_grad()
    first.mul_(10)
    assert second.grad_fn is not None  # asking for it brings the view up to date
    (second * 7).sum().backward()
    assert close(second.grad, [7.0, 7.0])
    assert first.grad is None


def test_a_write_without_asking_again_leaves_the_retained_gradient_of_a_sibling_empty():
    base = leaf([1.0, 2.0]) * 1
    tail = base[1:]
    one = tail[0]
    tail.retain_grad()
    base[0].add_(0)
    (one * 7).backward()
    assert tail.grad is None


def test_two_outputs_of_one_node_both_retain():
    a, b = Pair.apply(leaf([1.0]))
    a.retain_grad()
    b.retain_grad()
    (a * 5 + b * 7).backward()
    assert close(a.grad, [5.0])
    assert close(b.grad, [7.0])


SECOND = pytest.param(1, marks=pellucid_only("PyTorch 2.13 gives the first output the gradient of the second"))


@pytest.mark.parametrize("written", [0, SECOND])
def test_two_outputs_of_one_node_retain_when_one_is_written_to(written):
    outputs = Pair.apply(leaf([1.0]))
    for t in outputs:
        t.retain_grad()
    outputs[written].mul_(4)
    (outputs[0] * 5 + outputs[1] * 7).backward()
    assert close(outputs[0].grad, [5.0])
    assert close(outputs[1].grad, [7.0])


def test_a_retained_gradient_of_an_unreached_tensor_stays_none():
    y = leaf([1.0]) * 2
    y.retain_grad()
    (leaf([1.0]) * 3).backward()
    assert y.grad is None
