"""Inference mode: tensors made inside never enter a recorded computation."""

import pytest
from library import close, leaf, torch

inference_mode = torch.inference_mode
UPDATE = "Inplace update to inference tensor outside InferenceMode is not allowed"
SAVED = "Inference tensors cannot be saved for backward"


def normal():
    """A recorded non-leaf."""
    return torch.ones(1, 2, 3, requires_grad=True).clone()


def inferred(requires_grad=False):
    """An inference tensor."""
    with inference_mode():
        return torch.ones(1, 2, 3, requires_grad=requires_grad)


# --- the switch ------------------------------------------------------------------------------------------------------


def test_contexts_nest():
    enabled = torch.is_inference_mode_enabled
    assert not enabled()
    with inference_mode():
        assert enabled()
        assert not torch.is_grad_enabled()
        with inference_mode(False):
            assert not enabled()
            assert torch.is_grad_enabled()
        assert enabled()
    assert not enabled()
    assert torch.is_grad_enabled()


DECORATORS = {
    "bare": (inference_mode, True),
    "called": (inference_mode(), True),
    "True": (inference_mode(True), True),
    "False": (inference_mode(False), False),
    "mode=True": (inference_mode(mode=True), True),
    "mode=False": (inference_mode(mode=False), False),
}


@pytest.mark.parametrize("name", DECORATORS)
def test_the_mode_as_a_decorator(name):
    decorator, inside = DECORATORS[name]

    @decorator
    def function(x):
        assert torch.is_inference_mode_enabled() is inside
        return x * x

    out = function(leaf([2.0]))
    assert out.is_inference() is inside
    assert out.requires_grad is not inside
    assert not torch.is_inference_mode_enabled()


def test_the_mode_on_a_generator():
    @inference_mode
    def generator():
        yield torch.is_inference_mode_enabled()

    assert list(generator()) == [True]
    assert not torch.is_inference_mode_enabled()


# --- making tensors --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("requires_grad", [False, True])
def test_a_tensor_made_inside_is_an_inference_tensor(requires_grad):
    x = inferred(requires_grad)
    assert x.is_inference()
    assert torch.is_inference(x)
    assert x.requires_grad is requires_grad
    assert x.is_leaf


def test_a_tensor_made_outside_is_none():
    assert not normal().is_inference()
    with inference_mode():
        with inference_mode(False):
            assert not torch.ones(1).is_inference()


def test_inference_tensors_have_no_version():
    with pytest.raises(RuntimeError, match="Inference tensors do not track version counter"):
        assert inferred()._version


def test_a_clone_outside_is_a_normal_tensor():
    x = inferred().clone()
    assert not x.is_inference()
    x.requires_grad_()
    (x * x).sum().backward()
    assert close(x.grad, torch.full((1, 2, 3), 2.0))


def test_requires_grad_cannot_be_set_outside():
    with pytest.raises(RuntimeError, match="Setting requires_grad=True on inference tensor outside InferenceMode"):
        inferred().requires_grad_()


# --- inference tensors inside ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("requires_grad", [False, True])
def test_results_inside_are_inference_tensors_without_gradient(requires_grad):
    x = inferred(requires_grad)
    with inference_mode():
        for out in (x * x, x.exp(), x.sum()):
            assert out.is_inference()
            assert not out.requires_grad
            assert out.is_leaf


INPLACE = {
    "add_": lambda x: x.add_(2),
    "transpose_": lambda x: x.transpose_(1, 2),
    "resize_": lambda x: x.resize_(1, 2),
    "resize_as_": lambda x: x.resize_as_(torch.ones(1, 2)),
    "copy_": lambda x: x.copy_(torch.ones(1, 2, 3)),
}


@pytest.mark.parametrize("name", INPLACE)
def test_inference_tensors_may_be_written_to_inside(name):
    x = inferred()
    with inference_mode():
        assert INPLACE[name](x) is x
    assert x.is_inference()
    assert not x.requires_grad


@pytest.mark.parametrize("name", ["view", "slice", "transpose"])
def test_a_view_inside_is_an_inference_tensor(name):
    views = {"view": lambda x: x.view(-1), "slice": lambda x: x[:, :1], "transpose": lambda x: x.transpose(1, 2)}
    x = inferred()
    with inference_mode():
        view = views[name](x)
    assert view.is_inference()
    assert not view.requires_grad
    assert not view._is_view()


# --- inference tensors outside ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("requires_grad", [False, True])
@pytest.mark.parametrize("compute", [lambda x: x * x, lambda x: x + x, lambda x: x.exp()], ids=["mul", "add", "exp"])
def test_a_result_outside_of_inference_tensors_alone_is_a_normal_constant(compute, requires_grad):
    out = compute(inferred(requires_grad))
    assert not out.is_inference()
    assert not out.requires_grad
    assert out.is_leaf
    out.requires_grad_()
    (out * 3).sum().backward()
    assert close(out.grad, torch.full((1, 2, 3), 3.0))


@pytest.mark.parametrize("name", ["add_", "copy_"])
def test_inference_tensors_must_not_be_written_to_outside(name):
    with pytest.raises(RuntimeError, match=UPDATE):
        INPLACE[name](inferred())


def test_a_view_outside_of_an_inference_tensor_is_an_inference_tensor():
    view = inferred().view(-1)
    assert view.is_inference()
    assert not view._is_view()
    assert view.is_leaf


# --- normal tensors inside -------------------------------------------------------------------------------------------


def test_a_write_inside_to_a_normal_tensor_is_counted():
    x = leaf([1.0])
    y = x.clone()
    out = y * y
    with inference_mode():
        y.add_(1)
    assert y._version == 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_a_normal_tensor_written_to_inside_stays_normal():
    y = normal()
    with inference_mode():
        y.add_(2)
        view = y.view(-1)
        view.mul_(2)
    assert not y.is_inference()
    assert not view.is_inference()
    assert y.grad_fn.name() == "CloneBackward0"
    assert close(y, torch.full((1, 2, 3), 6.0))


def test_a_view_inside_of_a_normal_tensor_is_normal_and_tracked():
    y = normal()
    with inference_mode():
        view = y.view(-1)
    assert not view.is_inference()
    assert view._is_view()
    assert view._base is y


def test_such_a_view_must_not_be_written_to_outside():
    y = normal()
    with inference_mode():
        view = y.view(-1)
    with pytest.raises(RuntimeError, match="A view was created in inference mode and is being modified inplace"):
        view.mul_(2)


def test_the_history_of_such_a_view_after_a_write_to_its_base():
    y = normal()
    with inference_mode():
        view = y.view(-1)
    y.mul_(2)
    with pytest.raises(RuntimeError, match="A view was created in inference mode and its base or another"):
        assert view.grad_fn is not None


def test_a_view_outside_of_such_a_view_must_not_be_written_to():
    y = normal()
    with inference_mode():
        view = y.view(-1)
    with pytest.raises(RuntimeError, match="in inference mode"):
        view[:2].mul_(2)


# --- both together ---------------------------------------------------------------------------------------------------


def test_an_inference_tensor_may_be_added_but_not_saved():
    y, s = normal(), inferred()
    out = y + s
    assert out.requires_grad
    assert not out.is_inference()
    with pytest.raises(RuntimeError, match=SAVED):
        y * s
    with pytest.raises(RuntimeError, match=r"you can make a clone to get a normal tensor"):
        y * s
    assert (y * s.clone()).requires_grad


def test_writing_an_inference_tensor_into_a_normal_one():
    y, s = normal(), inferred()
    y.add_(s)
    with pytest.raises(RuntimeError, match=SAVED):
        y.mul_(s)


def test_writing_a_normal_tensor_into_an_inference_tensor():
    s = inferred()
    with pytest.raises(RuntimeError, match=UPDATE):
        s.mul_(normal())
    with pytest.raises(RuntimeError, match=UPDATE), torch.no_grad():
        torch.mul(s, s, out=s)


def test_the_shape_of_one_may_be_taken_for_the_other():
    y, s = normal(), inferred()
    assert not y.view_as(s).is_inference()
    assert y.view_as(s).requires_grad
    assert s.view_as(y).is_inference()
