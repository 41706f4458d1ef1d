"""What may stand around operators, Functions and nodes, and observers of operators: the base of profiles and recordings."""

import pytest
from library import ON_PELLUCID, close, leaf, torch

if not ON_PELLUCID:
    pytest.skip("asks for what is ours", allow_module_level=True)

from pellucid.autograd.around import Work, observing, standing
from pellucid.core.modes import GENERAL, modes


class Double(torch.autograd.Function):
    """Twice its input."""

    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


def noting(log):
    """What stands around calls and notes that they begin and end."""

    def around(work, subject, arguments, call):
        name = getattr(subject, "name", None)
        name = name() if callable(name) else name or getattr(subject, "__name__", "leaf")
        log.append((work, name, len(arguments)))
        result = call()
        log.append("end")
        return result

    return around


def test_all_kinds_of_work_are_seen():
    log, x = [], leaf([1.0])
    with standing(noting(log)):
        Double.apply(x * 3).mul_(2).sum().backward()
    assert [entry for entry in log if entry != "end"] == [
        (Work.OPERATOR, "mul", 2),
        (Work.FUNCTION, "Double", 1),
        (Work.OPERATOR, "mul", 2),
        (Work.IN_PLACE, "mul", 2),
        (Work.OPERATOR, "sum_all", 1),
        (Work.NODE, "SumBackward0", 1),
        (Work.NODE, "MulBackward0", 1),
        (Work.NODE, "DoubleBackward", 1),
        (Work.OPERATOR, "mul", 2),
        (Work.NODE, "MulBackward0", 1),
        (Work.LEAF, "leaf", 1),
    ]
    assert log.count("end") == 11
    assert close(x.grad, [12.0])


def test_the_last_to_stand_is_innermost():
    log = []

    def around(name):
        def inner(work, subject, arguments, call):
            log.append(name)
            return call()

        return inner

    outer = standing(around("first"))
    outer.__enter__()
    with standing(around("second")):
        torch.ones(2).sin()
        outer.__exit__()  # blocks may end in any order
        torch.ones(2).cos()
    assert log == ["first", "second", "second"]
    assert modes.around == ()


def test_what_stands_around_may_give_another_result():
    def around(work, subject, arguments, call):
        return call() + 1 if subject.name == "sin" else call()

    with standing(around):
        assert close(torch.zeros(2).double().sin(), [1.0, 1.0])


def test_errors_pass():
    with pytest.raises(RuntimeError, match="must match the size"), standing(noting([])):
        torch.ones(2) + torch.ones(3)
    assert modes.road != GENERAL


def test_observers_hear_of_every_form_of_an_operator():
    heard = []
    x, y = torch.ones(2), torch.empty(2)
    with observing(lambda op, bound, raw, made: heard.append((op.name, len(bound), made[0] is y))):
        x * 2
        y.copy_(x)
        y.mul_(2)
        torch.exp(x, out=y)
        torch.topk(x, 1)
    assert ("mul", 2, False) in heard
    assert ("mul", 2, True) in heard
    assert ("exp", 1, True) in heard
    assert heard[-1][0] == "topk"
    assert modes.observers == ()


def test_gradients_under_something_that_stands_around():
    x = leaf([1.0, 2.0])
    expected = torch.autograd.grad((x.exp() * x / 3).sum(), x)[0]
    with standing(noting([])):
        (g,) = torch.autograd.grad((x.exp() * x / 3).sum(), x, create_graph=True)
        (x.exp() * x / 3).sum().backward()
    assert close(g, expected)
    assert close(x.grad, expected)
