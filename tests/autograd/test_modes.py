"""Grad modes: `no_grad`, `enable_grad`, `set_grad_enabled` as contexts and decorators. Not here: inference mode."""

import threading
import warnings

import pytest
from library import close, const, leaf, torch

enabled = torch.is_grad_enabled


@pytest.fixture(autouse=True)
def grad_mode_is_left_on():
    assert enabled()
    yield
    assert enabled()


MODES = {"no_grad": (torch.no_grad, False), "enable_grad": (torch.enable_grad, True)}
EACH_MODE = pytest.mark.parametrize(("mode", "inside"), MODES.values(), ids=MODES)


# --- contexts --------------------------------------------------------------------------------------------------------


@EACH_MODE
def test_a_context_holds_inside_and_is_undone_outside(mode, inside):
    with torch.set_grad_enabled(not inside):
        with mode():
            assert enabled() is inside
            assert (leaf([1.0]) * 2).requires_grad is inside
        assert enabled() is not inside


@EACH_MODE
def test_a_context_is_undone_after_an_exception(mode, inside):
    with torch.set_grad_enabled(not inside):
        with pytest.raises(ZeroDivisionError), mode():
            raise ZeroDivisionError
        assert enabled() is not inside


def test_contexts_nest():
    seen = []
    with torch.no_grad():
        seen.append(enabled())
        with torch.enable_grad():
            seen.append(enabled())
            with torch.no_grad():
                seen.append(enabled())
            seen.append(enabled())
        seen.append(enabled())
    assert seen == [False, True, False, True, False]


def test_one_context_object_may_be_entered_again():
    mode = torch.no_grad()
    for _ in range(2):
        with mode:
            assert not enabled()
        assert enabled()


def test_results_under_no_grad_are_leaves():
    x = leaf([1.0])
    with torch.no_grad():
        y = x * 2
        z = torch.ones(1, requires_grad=True)
    assert not y.requires_grad
    assert y.is_leaf
    assert z.requires_grad


def test_a_function_under_no_grad_is_not_recorded():
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            raise AssertionError("not recorded, so not called")

    x = leaf([1.0])
    with torch.no_grad():
        y = Double.apply(x)
    assert close(y, [2.0])
    assert not y.requires_grad
    assert y.grad_fn is None


def test_grad_mode_belongs_to_a_thread():
    seen = []
    with torch.no_grad():
        thread = threading.Thread(target=lambda: seen.append(enabled()))
        thread.start()
        thread.join()
    assert seen == [True]


# --- decorators ------------------------------------------------------------------------------------------------------


@EACH_MODE
@pytest.mark.parametrize("bare", [True, False], ids=["bare", "called"])
def test_a_decorated_function_runs_in_its_mode(mode, inside, bare):
    def function(x, *, y):
        """Add."""
        return enabled(), x + y

    decorated = mode(function) if bare else mode()(function)
    with torch.set_grad_enabled(not inside):
        assert decorated(1, y=2) == (inside, 3)
        assert enabled() is not inside
    assert decorated.__name__ == "function"
    assert decorated.__doc__ == "Add."


def test_a_decorated_function_inside_a_context_leaves_the_context_alone():
    @torch.no_grad()
    def function():
        return enabled()

    with torch.no_grad():
        assert not function()
        assert not enabled()
        with torch.enable_grad():
            assert not function()
            assert enabled()


def test_a_decorated_function_may_call_itself():
    @torch.no_grad()
    def count_down(n):
        assert not enabled()
        with torch.enable_grad():
            assert enabled()
            return 0 if n == 0 else 1 + count_down(n - 1)

    assert count_down(4) == 4


def test_a_decorated_method_gives_no_warning():
    class Thing:
        @torch.no_grad()
        def method(self):
            return enabled()

        @staticmethod
        @torch.no_grad()
        def static():
            return enabled()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not Thing().method()
        assert not Thing.static()


def test_a_decorated_class_warns_and_keeps_its_methods():
    with pytest.warns(FutureWarning, match="Decorating classes is deprecated"):

        @torch.no_grad()
        class Thing:
            def __init__(self):
                self.inside = enabled()

            def method(self):
                return enabled()

    assert not Thing().inside
    assert Thing().method()


# --- set_grad_enabled ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", [False, True])
def test_set_grad_enabled_as_a_context(mode):
    with torch.set_grad_enabled(mode):
        assert enabled() is mode
        assert (leaf([1.0]) * 2).requires_grad is mode


def test_set_grad_enabled_as_a_call_acts_at_once():
    with torch.no_grad():
        torch.set_grad_enabled(True)
        assert enabled()
        torch.set_grad_enabled(False)
        assert not enabled()
        torch.set_grad_enabled(True)
    assert enabled()


def test_set_grad_enabled_as_a_decorator_does_not_leak():
    def function():
        return enabled()

    decorated = torch.set_grad_enabled(False)(function)
    assert enabled()
    assert not decorated()
    assert enabled()


def test_set_grad_enabled_as_a_decorator_with_the_at_sign():
    @torch.set_grad_enabled(False)
    def function():
        return enabled()

    assert enabled()
    with torch.no_grad():
        with torch.enable_grad():
            assert not function()
            assert enabled()
        assert not function()


def test_a_set_grad_enabled_object_used_late_restores_what_was_before_it_was_made():
    mode = torch.set_grad_enabled(False)
    assert not enabled()
    with mode:
        assert not enabled()
    assert enabled()


# --- generators ------------------------------------------------------------------------------------------------------


@EACH_MODE
def test_a_decorated_generator_holds_its_mode_while_it_runs_only(mode, inside):
    @mode()
    def generator():
        for _ in range(3):
            assert enabled() is inside
            yield enabled()

    with torch.set_grad_enabled(not inside):
        for seen in generator():
            assert seen is inside
            assert enabled() is not inside


def test_a_decorated_generator_between_its_steps():
    @torch.no_grad()
    def generator():
        yield enabled()
        yield enabled()

    steps = generator()
    assert [next(steps), enabled(), next(steps)] == [False, True, False]
    steps.close()


def test_decorated_generators_in_turns():
    @torch.enable_grad()
    def outer(depth):
        assert enabled()
        yield depth
        if depth:
            for value in inner(depth - 1):
                assert enabled()
                yield value

    @torch.no_grad()
    def inner(depth):
        assert not enabled()
        yield depth
        if depth:
            for value in outer(depth - 1):
                assert not enabled()
                yield value

    for mode in (True, False):
        seen = []
        with torch.set_grad_enabled(mode):
            for value in outer(4):
                seen.append(value)
                assert enabled() is mode
        assert seen == [4, 3, 2, 1, 0]


def test_send_keeps_the_modes_of_both_sides():
    @torch.no_grad()
    def echo():
        received = yield "ready"
        while received is not None:
            assert not enabled()
            received = yield received * 2
        return "done"

    steps = echo()
    assert next(steps) == "ready"
    for value in (1, 5):
        assert enabled()
        assert steps.send(value) == 2 * value
        assert enabled()
    with pytest.raises(StopIteration) as end:
        steps.send(None)
    assert end.value.value == "done"


def test_a_generator_may_recover_from_a_thrown_exception():
    @torch.no_grad()
    def stubborn():
        while True:
            try:
                assert not enabled()
                yield "fine"
            except ValueError:
                assert not enabled()
                yield "recovered"

    steps = stubborn()
    assert next(steps) == "fine"
    assert steps.throw(ValueError) == "recovered"
    assert enabled()
    assert next(steps) == "fine"
    steps.close()


def test_a_generator_may_answer_a_thrown_exception_with_another():
    @torch.no_grad()
    def brittle():
        try:
            yield
        except ValueError:
            assert not enabled()
            raise KeyError("other") from None

    steps = brittle()
    next(steps)
    with pytest.raises(KeyError, match="other"):
        steps.throw(ValueError)
    assert enabled()


def test_closing_a_generator_runs_its_clean_up_in_its_mode():
    seen = []

    @torch.no_grad()
    def generator():
        try:
            yield
        finally:
            seen.append(enabled())

    steps = generator()
    next(steps)
    steps.close()
    assert seen == [False]
    assert enabled()


def test_a_generator_made_in_one_mode_and_run_in_another():
    @torch.no_grad()
    def generator():
        yield enabled()

    with torch.no_grad():
        steps = generator()
    assert next(steps) is False
    assert list(steps) == []


# --- in-place under no_grad ------------------------------------------------------------------------------------------


def test_an_assignment_under_no_grad_leaves_no_history():
    x, value = torch.zeros(3, dtype=torch.float64), leaf([1.0])
    with torch.no_grad():
        x[0] = value[0]
    assert x.grad_fn is None
    assert not x.requires_grad


def test_a_write_under_no_grad_is_still_counted():
    x = leaf([1.0])
    y = x * x
    with torch.no_grad():
        x.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_a_write_under_no_grad_to_a_value_that_was_not_saved_is_fine():
    x = leaf([1.0, 5.0])
    y = x * const([2.0, 2.0])
    with torch.no_grad():
        x.add_(1)
    y.sum().backward()
    assert close(x.grad, [2.0, 2.0])
