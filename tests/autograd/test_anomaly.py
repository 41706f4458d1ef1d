"""Anomaly mode: NaN gradients are named with their operation and line."""

import contextlib
import warnings

import pytest
from library import leaf, pellucid_only, torch

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


@pellucid_only("PyTorch prints the line to standard error as a warning")
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
