"""Explanations of every kind: nothing lives longer for them, and they begin alike in every language."""

import contextlib
import gc
import warnings
import weakref

import pytest
from library import ON_PELLUCID, Marker, torch

if not ON_PELLUCID:
    pytest.skip("PyTorch explains nothing", allow_module_level=True)

from pellucid.core.language import set_language
from pellucid.graph import why

nn = torch.nn


def leaf(*values):
    return torch.tensor(list(values), requires_grad=True)


def refusal(program):
    """The error that a program ends in, without the frames it has passed through."""
    try:
        program()
    except (RuntimeError, IndexError) as error:
        for each in (error, error.__cause__, error.__context__):
            if each is not None:
                each.__traceback__ = None
        return error
    raise AssertionError("nothing was refused")


@contextlib.contextmanager
def recorded():
    """The warnings of a block."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


def in_place(x, marker):
    y = x * 1
    z = y * y
    y.add_(1)
    return refusal(lambda: z.sum().backward())


def on_a_leaf(x, marker):
    return refusal(lambda: x.add_(1))


def twice(x, marker):
    z = x * x
    z.sum().backward()
    return refusal(lambda: z.sum().backward())


def carried(x, marker):
    state = torch.ones(2)
    for _ in range(2):
        state = state * x
        loss = state.sum()
        try:
            loss.backward()
        except RuntimeError as error:
            return str(error)


def no_grad(x, marker):
    return refusal(lambda: x.detach().sum().backward())


def unused(x, marker):
    return refusal(lambda: torch.autograd.grad((x * 2).sum(), leaf(1.0)))


def non_leaf(x, marker):
    y = x * 2
    with recorded() as caught:
        assert y.grad is None
    return caught


def made_leaf(x, marker):
    loss = (x * 2).argmax().float().requires_grad_()
    with recorded() as caught:
        loss.backward()
    return caught


def anomaly_forward(x, marker):
    with recorded() as caught, torch.autograd.detect_anomaly():
        return caught, refusal((x - 100).log)


def anomaly_backward(x, marker):
    with recorded() as caught, torch.autograd.detect_anomaly():
        return caught, refusal((x * 0).sqrt().mul(0.0).sum().backward)


def anomaly_root(x, marker):
    with recorded() as caught, torch.autograd.detect_anomaly():
        (x * 1000).exp().sum().backward()
    return caught


def shape(x, marker):
    return refusal(lambda: x + torch.ones(5))


def shape_in_a_module(x, marker):
    return refusal(lambda: nn.Linear(3, 1)(x[None]))


def shape_before_an_operator(x, marker):
    return refusal(lambda: nn.Sequential(nn.LayerNorm(5))(x[None]))


def shape_in_a_list(x, marker):
    return refusal(lambda: torch.cat([x, x[None]]))


def failed_graph(x, marker):
    error = refusal(lambda: torch.graph.of(nn.Sequential(nn.Linear(2, 2), nn.Linear(3, 1)), x[None]))
    return error, error.graph


def failed_block(x, marker):
    block = torch.graph.record()

    def program():
        with block:
            (x * 2) @ torch.ones(5)

    return refusal(program), block


def answers(x, marker):
    y = x * 2
    loss = y.sum()
    found = why(x), why(y), why(x, loss), why(y.detach())
    x.grad = torch.ones(2)
    x.grad = None
    return found, why(x)


EXPLANATIONS = [
    in_place, on_a_leaf, twice, carried, no_grad, unused, non_leaf, made_leaf, anomaly_forward, anomaly_backward, anomaly_root,
    shape, shape_in_a_module, shape_before_an_operator, shape_in_a_list, failed_graph, failed_block, answers,
]  # fmt: skip


@pytest.mark.parametrize("explain", EXPLANATIONS)
def test_no_explanation_keeps_a_tensor_an_array_or_a_frame_alive(explain):
    def program():
        x, marker = leaf(1.0, 2.0), Marker()
        kept = explain(x, marker)
        return kept, weakref.ref(x), weakref.ref(x._array), weakref.ref(marker)

    program()  # what is made on first use may be found by the garbage collector only
    gc.collect()
    gc.disable()
    try:
        kept, *references = program()
        assert kept
        assert [reference() for reference in references] == [None] * 3
    finally:
        gc.enable()


def test_what_is_noted_of_writes_leaves_and_backwards_keeps_no_frame_alive():
    def program():
        marker = Marker()
        w = leaf(1.0, 2.0)
        y = w * 1
        y.add_(1)
        y.detach().mul_(2)
        z = y.exp()
        z.sum().backward()
        w.grad = None
        return (w, y, z), weakref.ref(marker)

    gc.disable()
    try:
        kept, marker = program()
        assert marker() is None
        assert kept[0]._rare.reset is not None
        assert len(kept[1]._counter.writes_after(-1)) == 2
    finally:
        gc.enable()


REFUSALS = [in_place, twice, no_grad, unused, shape, shape_in_a_module, anomaly_forward]


@pytest.mark.parametrize("explain", REFUSALS)
def test_in_every_language_errors_begin_with_the_same_line(explain):
    def first_line():
        answer = explain(leaf(1.0, 2.0), None)
        return str(answer[1] if isinstance(answer, tuple) else answer).split("\n")[0]

    english = first_line()
    set_language("zh")
    try:
        assert first_line() == english
    finally:
        set_language(None)


def test_a_counter_remembers_the_last_writes_only():
    y = torch.zeros(2)
    for _ in range(100):
        y.add_(1)
    writes = y._counter.writes_after(-1)
    assert y._version == 100
    assert len(writes) == 16
    assert [write.version for write in writes] == list(range(85, 101))
    assert {write.operator for write in writes} == {"add_"}
