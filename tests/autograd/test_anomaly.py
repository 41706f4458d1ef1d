"""Anomaly mode: NaN gradients are named with their operation and line."""

import contextlib
import gc
import warnings
import weakref

import pytest
from library import Marker, leaf, pellucid_only, torch

detect_anomaly = torch.autograd.detect_anomaly


@contextlib.contextmanager
def anomaly(**options):
    """Anomaly mode without the warning that it is slow."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with detect_anomaly(**options):
            yield


class NanAt(torch.autograd.Function):
    """Copies of its inputs; the gradient of one of them is NaN."""

    @staticmethod
    def forward(ctx, index, x, y):
        ctx.index = index
        return x * 10, y * 10

    @staticmethod
    def backward(ctx, g, h):
        grads = [g * 10, h * 10]
        if ctx.index is not None:
            grads[ctx.index] = grads[ctx.index] * float("nan")
        return None, *grads


def test_detect_anomaly_warns_that_it_is_slow():
    with pytest.warns(UserWarning, match="Anomaly Detection has been enabled"), detect_anomaly():
        pass


@pytest.mark.parametrize("index", [0, 1])
def test_a_nan_gradient_raises_and_names_function_and_output(index):
    x, y = leaf([1.0]), leaf([2.0])
    with anomaly():
        a, b = NanAt.apply(index, x, y)
        message = f"Function 'NanAtBackward' returned nan values in its {index}th output"
        with pytest.raises(RuntimeError, match=message):
            (a + b).sum().backward()


def test_a_gradient_without_nan_passes():
    x, y = leaf([1.0]), leaf([2.0])
    with anomaly():
        a, b = NanAt.apply(None, x, y)
        (a + b).sum().backward()
    assert x.grad.item() == 10.0


def test_a_nan_outside_the_mode_passes():
    x, y = leaf([1.0]), leaf([2.0])
    a, b = NanAt.apply(0, x, y)
    (a + b).sum().backward()
    assert x.grad.isnan().all()


def test_an_operator_that_makes_a_nan_is_named():
    x = leaf([0.0])
    with anomaly():
        y = (x * x).sqrt()
        with pytest.raises(RuntimeError, match="Function 'MulBackward0' returned nan values in its 0th output"):
            y.backward()


def test_a_nan_in_a_double_backward_is_found():
    class NanTwice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return NanAt.apply(0, g * 2, ctx.saved_tensors[0])[0]

    x = leaf([1.0])
    with anomaly():
        (first,) = torch.autograd.grad(NanTwice.apply(x) * x, x, create_graph=True)
        with pytest.raises(RuntimeError, match="Function 'NanAtBackward' returned nan values in its 0th output"):
            first.backward()


def test_without_check_nan_a_nan_passes():
    x, y = leaf([1.0]), leaf([2.0])
    with anomaly(check_nan=False):
        a, b = NanAt.apply(0, x, y)
        (a + b).sum().backward(retain_graph=True)
        with anomaly(check_nan=True), pytest.raises(RuntimeError, match="returned nan values"):
            (a + b).sum().backward()


def test_an_error_is_explained_with_the_forward_call():
    class Fails(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.clone()

        @staticmethod
        def backward(ctx, g):
            raise ValueError("the cause")

    x = leaf([1.0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ValueError, match="the cause"), detect_anomaly():
            Fails.apply(x).backward()


def warned(run):
    """The texts of the warnings that a failing run under anomaly mode gives, and its error."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with pytest.raises(RuntimeError) as error:
            run()
    return [str(w.message) for w in caught if issubclass(w.category, UserWarning)], str(error.value)


class Nan(torch.autograd.Function):
    """The identity, with a gradient that is NaN."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, g):
        return g * float("nan")


class Inducing(torch.autograd.Function):
    """The identity, whose derivative is computed by `inner`."""

    inner = Nan

    @classmethod
    def forward(cls, ctx, x):
        ctx.save_for_backward(x)
        return x.clone()

    @classmethod
    def backward(cls, ctx, g):
        return cls.inner.apply(ctx.saved_tensors[0]) * g


class InducingTwice(Inducing):
    """The identity, whose second derivative is NaN."""

    inner = Inducing


def test_a_nan_warns_where_the_operation_ran():
    def run():
        x = leaf([1.0])
        with detect_anomaly():
            Nan.apply(x).backward()  # the line

    texts, error = warned(run)
    assert "Function 'NanBackward' returned nan values in its 0th output" in error
    assert len(texts) == 2
    assert "Error detected in NanBackward. Traceback of forward call that caused the error:" in texts[1]
    assert "Nan.apply(x).backward()  # the line" in texts[1]


def test_a_failing_operator_warns_where_it_ran():
    def run():
        x = leaf([1.0])
        with detect_anomaly():
            y = x * 1
            z = y**2  # the line
            y.add_(1)
            z.backward()

    texts, error = warned(run)
    assert "modified by an inplace operation" in error
    assert len(texts) == 2
    assert "Error detected in PowBackward0. Traceback of forward call that caused the error:" in texts[1]
    assert "z = y**2  # the line" in texts[1]


def test_where_warnings_are_errors_the_failure_surfaces_and_the_warning_is_printed(capfd):
    x = leaf([1.0])
    with anomaly():
        y = Nan.apply(x)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeError, match="returned nan values"):
                y.backward()
    assert "Error detected in NanBackward" in capfd.readouterr().err


@pytest.mark.parametrize("function", [Inducing, InducingTwice])
def test_a_nan_in_a_derivative_of_derivatives_names_what_led_to_it(function):
    def run():
        x = leaf([1.0])
        with detect_anomaly():
            derivative = function.apply(x)
            while True:
                (derivative,) = torch.autograd.grad(derivative.sum(), x, create_graph=True)

    texts, error = warned(run)
    assert "Function 'NanBackward' returned nan values" in error
    assert "Error detected in NanBackward" in texts[1]
    assert "Previous calculation was induced by InducingBackward" in texts[2]
    assert "Traceback of forward call that induced the previous calculation" in texts[2]
    if function is InducingTwice:
        assert "Previous calculation was induced by InducingTwiceBackward" in texts[3]
    assert len(texts) == (4 if function is InducingTwice else 3)


def test_the_mode_notes_which_node_recorded_another():
    x = leaf([1.0])
    with anomaly():
        y = x.exp()
        (first,) = torch.autograd.grad(y, x, create_graph=True)
    assert first.grad_fn.metadata["parent_"] is y.grad_fn
    assert "parent_" not in y.grad_fn.metadata


def test_what_the_mode_notes_keeps_nothing_alive():
    def run():
        x = leaf([1.0])
        y = x.exp()
        with anomaly():
            torch.autograd.grad(y, x, create_graph=True)
        y.grad_fn.metadata["mine"] = marker = Marker()
        return y, weakref.ref(marker)

    y, reference = run()
    assert reference() is not None
    del y
    assert reference() is None


def test_explaining_a_failure_keeps_nothing_alive():
    def run():
        x = leaf(0.0)
        y = (x**1.5).sum()
        y.grad_fn.metadata["mine"] = marker = Marker()
        text = None
        with anomaly():
            (first,) = torch.autograd.grad(y, x, create_graph=True)
            try:
                torch.autograd.grad(first, x, torch.zeros_like(first), create_graph=True)
            except RuntimeError as error:  # what pytest.raises keeps would live longer
                text = str(error)
        return y, weakref.ref(marker), text

    y, reference, text = run()
    assert "nan values" in text
    assert reference() is not None
    del y
    gc.collect()
    assert reference() is None


def test_metadata_may_be_read_after_the_tensor_is_gone():
    y = Nan.apply(leaf([1.0]))
    node = y.grad_fn
    node.metadata["mine"] = 1
    del y
    assert node.metadata == {"mine": 1}


@pellucid_only("PyTorch names the line in a warning")
def test_the_error_names_the_line_of_the_forward():
    x = leaf([0.0])
    with anomaly():
        y = (x * x).sqrt()
        with pytest.raises(RuntimeError, match=r"test_anomaly.py:\d+"):
            y.backward()


def test_the_switch():
    assert not torch.is_anomaly_enabled()
    with torch.autograd.set_detect_anomaly(True):
        assert torch.is_anomaly_enabled()
        assert torch.is_anomaly_check_nan_enabled()
        with torch.autograd.set_detect_anomaly(True, check_nan=False):
            assert not torch.is_anomaly_check_nan_enabled()
        with torch.autograd.set_detect_anomaly(False):
            assert not torch.is_anomaly_enabled()
        assert torch.is_anomaly_enabled()
    assert not torch.is_anomaly_enabled()


def test_the_switch_as_a_call():
    torch.autograd.set_detect_anomaly(True)
    assert torch.is_anomaly_enabled()
    torch.autograd.set_detect_anomaly(False)
    assert not torch.is_anomaly_enabled()
