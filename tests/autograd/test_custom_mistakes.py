"""Mistakes in custom functions: what users are told about wrong gradients, missing methods and old ways of writing."""

import math

import pytest
from library import close, leaf, torch

Function = torch.autograd.Function


class Identity(Function):
    """Returns its input itself; the gradient is tripled."""

    @staticmethod
    def forward(ctx, x):
        return x

    @staticmethod
    def backward(ctx, g):
        return g * 3


def make(forward, backward):
    """A Function of two plain functions."""
    return type("Made", (Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


# --- gradients -------------------------------------------------------------------------------------------------------


def test_a_gradient_of_the_wrong_shape_raises():
    wrong = make(lambda ctx, x: x * 2, lambda ctx, g: torch.ones(3, dtype=torch.float64))
    with pytest.raises(RuntimeError, match=r"returned an invalid gradient at index 0 - got \[3\] but expected shape"):
        wrong.apply(leaf([1.0, 2.0])).sum().backward()


def test_a_gradient_that_was_broadcast_is_summed():
    wide = make(lambda ctx, x: x * 2, lambda ctx, g: g.expand(3, 2))
    x = leaf([1.0, 2.0])
    wide.apply(x).sum().backward()
    assert close(x.grad, [3.0, 3.0])


def test_too_few_gradients_raise():
    short = make(lambda ctx, x, y: x + y, lambda ctx, g: g)
    with pytest.raises(RuntimeError, match=r"incorrect number of gradients \(expected 2, got 1\)"):
        short.apply(leaf([1.0]), leaf([2.0])).backward()


def test_too_many_gradients_raise_unless_they_are_none():
    long = make(lambda ctx, x: x * 2, lambda ctx, g: (g * 2, None, None))
    x = leaf([1.0])
    long.apply(x).backward()
    assert close(x.grad, [2.0])
    longer = make(lambda ctx, x: x * 2, lambda ctx, g: (g * 2, g))
    with pytest.raises(RuntimeError, match=r"incorrect number of gradients \(expected 1, got 2\)"):
        longer.apply(x).backward()


def test_a_gradient_that_is_no_tensor_raises():
    wrong = make(lambda ctx, x: x * 2, lambda ctx, g: 1.0)
    with pytest.raises(RuntimeError, match=r"expected Variable or None \(got float\)"):
        wrong.apply(leaf([1.0])).backward()


def test_an_exception_in_backward_surfaces_as_it_is():
    broken = make(lambda ctx, x: x * 2, lambda ctx, g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        broken.apply(leaf([1.0])).backward()


def test_an_exception_in_forward_surfaces_and_restores_the_mode():
    broken = make(lambda ctx, x: math.sqrt(-1), lambda ctx, g: g)
    with pytest.raises(ValueError, match=r"math domain|nonnegative"):
        broken.apply(leaf([1.0]))
    assert torch.is_grad_enabled()


def test_a_function_without_forward():
    class Empty(Function):
        @staticmethod
        def backward(ctx, g):
            return g

    with pytest.raises(NotImplementedError, match="You must implement the forward"):
        Empty.apply(leaf([1.0]))


def test_a_function_without_backward():
    class Empty(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp method"):
        Empty.apply(leaf([1.0])).backward()


def test_a_function_with_both_backward_and_vjp():
    class Both(Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            return g

        vjp = staticmethod(lambda ctx, g: g)

    with pytest.raises(RuntimeError, match="Implementing both 'backward' and 'vjp'"):
        Both.apply(leaf([1.0])).backward()


def test_a_function_with_vjp_alone():
    class Only(Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def vjp(ctx, g):
            return g * 2

    x = leaf([1.0])
    Only.apply(x).backward()
    assert close(x.grad, [2.0])


def test_methods_that_are_not_static_are_called_through_the_class():
    class Old(Function):
        def forward(ctx, x):
            return x * 2

        def backward(ctx, g):
            return g * 2

    x = leaf([1.0])
    Old.apply(x).backward()
    assert close(x.grad, [2.0])


def test_an_instance_warns_and_cannot_be_called():
    with pytest.warns(DeprecationWarning, match="should not be instantiated"):
        instance = Identity()
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward method is deprecated"):
        instance(leaf([1.0]))
