"""Scaling of losses on the CPU: steps that are skipped, the scale that adapts, and what is refused."""

import math
import pickle

import pytest
from library import const, leaf, torch

GradScaler = torch.amp.GradScaler


def setting(**options):
    w = leaf([1.0, 2.0], torch.float32)
    return w, torch.optim.SGD([w], 0.5), GradScaler("cpu", **options)


def backward(scaler, w, factor=1.0):
    scaler.scale((w * factor).sum()).backward()


def test_a_step_is_as_without_scaling():
    w, optimizer, scaler = setting(init_scale=8.0)
    loss = scaler.scale(w.sum())
    assert loss.item() == 24
    loss.backward()
    assert w.grad.tolist() == [8, 8]
    scaler.step(optimizer)
    assert w.grad.tolist() == [1, 1]
    assert w.tolist() == [0.5, 1.5]
    scaler.update()
    assert scaler.get_scale() == 8


def test_gradients_can_be_looked_at_first():
    w, optimizer, scaler = setting(init_scale=8.0)
    backward(scaler, w)
    scaler.unscale_(optimizer)
    assert w.grad.tolist() == [1, 1]
    scaler.step(optimizer)
    assert w.tolist() == [0.5, 1.5]


@pytest.mark.parametrize("bad", [math.inf, math.nan])
def test_an_overflow_skips_the_step_and_shrinks_the_scale(bad):
    w, optimizer, scaler = setting(init_scale=8.0)
    backward(scaler, w, bad)
    assert scaler.step(optimizer) is None
    assert w.tolist() == [1, 2]
    scaler.update()
    assert scaler.get_scale() == 4
    optimizer.zero_grad()
    backward(scaler, w)
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [0.5, 1.5]
    assert scaler.get_scale() == 4


def test_the_scale_grows_after_steps_without_overflow():
    w, optimizer, scaler = setting(init_scale=8.0, growth_factor=4.0, growth_interval=2)
    scales = []
    for factor in (1.0, 1.0, 1.0, math.inf, 1.0, 1.0):
        optimizer.zero_grad()
        backward(scaler, w, factor)
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
    assert scales == [8, 32, 32, 16, 16, 64]


def test_the_scale_does_not_grow_beyond_the_type():
    w, optimizer, scaler = setting(init_scale=2.0**127, growth_interval=1)
    backward(scaler, w, 1e-30)
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 2.0**127


def test_several_outputs():
    _, _, scaler = setting(init_scale=2.0)
    one = const([1.0], torch.float32)
    listed = scaler.scale([one, (one, one)])
    assert type(listed) is list
    assert type(listed[1]) is tuple
    assert listed[1][0].item() == 2
    assert [t.item() for t in scaler.scale(iter([one]))] == [2]


def test_several_optimizers():
    w, optimizer, scaler = setting(init_scale=8.0)
    other = leaf([1.0], torch.float32)
    second = torch.optim.SGD([other], 0.5)
    scaler.scale(w.sum()).backward()
    scaler.scale((other * math.inf).sum()).backward()
    scaler.step(optimizer)
    scaler.step(second)
    scaler.update()
    assert w.tolist() == [0.5, 1.5]
    assert other.tolist() == [1]
    assert scaler.get_scale() == 4


def test_gradients_of_several_types():
    wide, narrow = leaf([1.0], torch.float64), leaf([1.0], torch.bfloat16)
    optimizer, scaler = torch.optim.SGD([wide, narrow], 0.5), GradScaler("cpu", init_scale=4.0)
    scaler.scale(wide.sum().float() + narrow.sum().float()).backward()
    scaler.unscale_(optimizer)
    assert (wide.grad.tolist(), narrow.grad.tolist()) == ([1], [1])
    assert (wide.grad.dtype, narrow.grad.dtype) == (torch.float64, torch.bfloat16)


def test_a_new_scale():
    w, _, scaler = setting()
    backward(scaler, w)
    scaler.update(3.0)
    assert scaler.get_scale() == 3
    scaler.update(torch.tensor(5.0))
    assert scaler.get_scale() == 5


def test_settings():
    _, _, scaler = setting(growth_factor=3.0, backoff_factor=0.25, growth_interval=7)
    assert scaler.is_enabled()
    assert scaler.get_scale() == 65536
    assert (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()) == (3, 0.25, 7)
    scaler.set_growth_factor(5.0)
    scaler.set_backoff_factor(0.5)
    scaler.set_growth_interval(9)
    assert (scaler.get_growth_factor(), scaler.get_backoff_factor(), scaler.get_growth_interval()) == (5, 0.5, 9)


def test_its_state_can_be_saved():
    w, optimizer, scaler = setting(init_scale=8.0, growth_interval=3)
    backward(scaler, w)
    scaler.step(optimizer)
    scaler.update()
    state = scaler.state_dict()
    assert state == {
        "scale": 8.0, "growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": 3, "_growth_tracker": 1,
    }  # fmt: skip
    for other in (GradScaler("cpu"), pickle.loads(pickle.dumps(scaler))):
        other.load_state_dict(state)
        assert other.state_dict() == state
    scaler.load_state_dict({**state, "scale": 2.0})
    assert scaler.scale(const([1.0], torch.float32)).item() == 2


def test_disabled_it_passes_everything_through():
    w, optimizer, scaler = setting(enabled=False)
    assert scaler.scale(w) is w
    w.sum().backward()
    scaler.unscale_(optimizer)
    assert w.grad.tolist() == [1, 1]
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [0.5, 1.5]
    assert not scaler.is_enabled()
    assert scaler.get_scale() == 1
    assert scaler.state_dict() == {}
    scaler.load_state_dict({})


def test_there_is_nothing_to_scale_for_a_gpu():
    with pytest.warns(
        UserWarning, match=r"torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling"
    ):
        assert not GradScaler().is_enabled()
    with pytest.warns(FutureWarning, match=r"`torch.cuda.amp.GradScaler\(args...\)` is deprecated"):
        torch.cuda.amp.GradScaler(enabled=False)
    with pytest.warns(FutureWarning, match=r"`torch.cpu.amp.GradScaler\(args...\)` is deprecated"):
        assert torch.cpu.amp.GradScaler().is_enabled()


def stepped(*, update=False):
    w, optimizer, scaler = setting()
    backward(scaler, w)
    scaler.step(optimizer)
    return optimizer, scaler


def half():
    w = leaf([1.0], torch.float16)
    optimizer, scaler = torch.optim.SGD([w], 0.5), GradScaler("cpu", init_scale=2.0)
    scaler.scale(w.float().sum()).backward()
    return scaler.unscale_(optimizer)


def unscaled_twice():
    w, optimizer, scaler = setting()
    backward(scaler, w)
    scaler.unscale_(optimizer)
    scaler.unscale_(optimizer)


def without_gradients():
    _, optimizer, scaler = setting()
    scaler.scale(const([1.0], torch.float32))
    scaler.step(optimizer)


def update_without_a_step():
    _, _, scaler = setting()
    scaler.scale(const([1.0], torch.float32))
    scaler.update()


def new_scale_of_two_numbers():
    _, _, scaler = setting()
    scaler.scale(const([1.0], torch.float32))
    scaler.update(torch.ones(2))


def again(name):
    optimizer, scaler = stepped()
    getattr(scaler, name)(optimizer)


@pytest.mark.parametrize(
    ("call", "kind", "phrase"),
    [
        pytest.param(
            lambda: GradScaler("cpu", growth_factor=1.0), AssertionError, "growth factor must be > 1.0", id="growth"
        ),
        pytest.param(
            lambda: GradScaler("cpu", backoff_factor=1.0), AssertionError, "backoff factor must be < 1.0", id="back"
        ),
        pytest.param(
            lambda: GradScaler("cpu").scale(3), ValueError, "must be a Tensor or an iterable of Tensors", id="scale"
        ),
        pytest.param(
            lambda: GradScaler("cpu").update(), AssertionError, "Attempted update but _scale is None", id="update"
        ),
        pytest.param(
            lambda: GradScaler("cpu").step(None), AssertionError, "Attempted step but _scale is None", id="step"
        ),
        pytest.param(lambda: GradScaler("cpu").unscale_(None), AssertionError, "Attempted unscale_ but", id="unscale"),
        pytest.param(lambda: GradScaler("cpu").step(None, closure=1), RuntimeError, "Closure use is not", id="closure"),
        pytest.param(
            lambda: GradScaler("cpu").load_state_dict({}), RuntimeError, "source state dict is empty", id="state"
        ),
        pytest.param(lambda: again("step"), RuntimeError, r"step\(\) has already been called since", id="step twice"),
        pytest.param(
            lambda: again("unscale_"), RuntimeError, r"unscale_\(\) is being called after step", id="after step"
        ),
        pytest.param(unscaled_twice, RuntimeError, r"unscale_\(\) has already been called", id="unscale twice"),
        pytest.param(
            without_gradients, AssertionError, "No inf checks were recorded for this optimizer", id="no gradients"
        ),
        pytest.param(
            update_without_a_step, AssertionError, "No inf checks were recorded prior to update", id="no step"
        ),
        pytest.param(
            new_scale_of_two_numbers, AssertionError, "new_scale should be a float or a 1-element", id="new scale"
        ),
        pytest.param(half, ValueError, "Attempting to unscale FP16 gradients", id="float16"),
        pytest.param(
            lambda: pickle.dumps(stepped()[1]), AssertionError, "may only be pickled at the beginning", id="pickle"
        ),
    ],
)
def test_refused(call, kind, phrase):
    with pytest.raises(kind, match=phrase):
        call()
