"""Warm-ups before any schedule, and looking ahead: the rates to come as numbers and as pictures."""

import copy
import pickle
import re
import warnings

import numpy as np
import pytest
from lr_schedules import METRICS, SCHEDULES, STEPS, build, optimizer, rates, run

from pellucid.core.tensor import Parameter, Tensor, wrap
from pellucid.optim import lr_scheduler
from pellucid.optim.lr_scheduler import warmup


def first_group(rows):
    return [row[0] for row in rows]


# --- warm-ups --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_warm_up_rises_to_the_first_rate_and_the_schedule_follows(name):
    plain = optimizer()
    expected = run(plain, build(name, plain), STEPS - 3)
    target = optimizer()
    seen = run(target, warmup(build(name, target), 3))
    for group in range(2):
        first = expected[0][group]
        assert [row[group] for row in seen[:3]] == pytest.approx([first / 4, first / 2, first * 3 / 4])
    if "lateau" in name:  # which counts what it sees, and sees nothing of the warm-up: the metrics are other ones
        assert seen[3] == expected[0]
    else:
        np.testing.assert_allclose(seen[3:], expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, [0.2, 0.4, 0.6, 0.8]),
        ({"start_factor": 0.5}, [0.5, 0.625, 0.75, 0.875]),
        ({"start_factor": 1.0}, [1.0, 1.0, 1.0, 1.0]),
        ({"start_factor": 0.0625, "curve": "exponential"}, [0.0625, 0.125, 0.25, 0.5]),
        ({"start_factor": 0.2, "curve": "cosine"}, [0.2, 0.31715728752538097, 0.6, 0.882842712474619]),
        ({"start_factor": 0.1, "curve": "constant"}, [0.1, 0.1, 0.1, 0.1]),
    ],
)
def test_curves_of_a_warm_up(options, expected):
    target = optimizer((1.0,))
    seen = first_group(run(target, warmup(lr_scheduler.StepLR(target, 2, 0.5), 4, **options), 7))
    assert seen == pytest.approx([*expected, 1.0, 1.0, 0.5, 0.5])


def test_a_warm_up_of_no_steps():
    target = optimizer((1.0,))
    assert first_group(run(target, warmup(lr_scheduler.ExponentialLR(target, 0.5), 0), 2)) == [1.0, 0.5, 0.25]


def test_a_plateau_after_a_warm_up_counts_from_there():
    target = optimizer((1.0,))
    schedule = warmup(lr_scheduler.ReduceLROnPlateau(target, factor=0.5, patience=0), 2)
    seen = rates(target)
    for metric in (None, 1.0, 5.0, 5.0, 4.0):
        target.step()
        schedule.step(metric)
        seen += rates(target)
    assert seen == pytest.approx([1 / 3, 2 / 3, 1.0, 1.0, 0.5, 0.5])
    with pytest.raises(TypeError, match=r"step 6 belongs to a ReduceLROnPlateau, which needs a metric\nCall step\(metrics\)\."):
        schedule.step()
    assert schedule.last_epoch == 5


def test_a_warm_up_as_part_of_a_sequence():
    target = optimizer((1.0,))
    s = lr_scheduler
    parts = [s.ConstantLR(target, 0.1, 9), warmup(s.ExponentialLR(target, 0.5), 1), s.ReduceLROnPlateau(target)]
    seen = first_group(run(target, s.SequentialLR(target, parts, [2, 5]), 5))
    assert seen == pytest.approx([0.1, 0.1, 0.5, 1.0, 0.5, 1.0])


def test_a_sequence_with_a_plateau_may_be_part_of_another():
    target = optimizer((1.0,))
    s = lr_scheduler
    inner = s.SequentialLR(target, [s.ConstantLR(target, 0.5, 9), s.ReduceLROnPlateau(target, patience=0)], [1])
    schedule = s.SequentialLR(target, [s.ConstantLR(target, 0.25, 9), inner], [1])
    seen = rates(target)
    for metric in (None, 3.0, 3.0):
        target.step()
        schedule.step(metric)
        seen += rates(target)
    assert seen == pytest.approx([0.25, 0.5, 1.0, 0.1])
    with pytest.raises(TypeError, match="needs a metric"):
        schedule.step()


def test_a_schedule_that_has_run_is_warmed_up_to_where_it_stands():
    target = optimizer((1.0,))
    schedule = lr_scheduler.ExponentialLR(target, 0.5)
    run(target, schedule, 2)
    assert first_group(run(target, warmup(schedule, 1), 2)) == [0.125, 0.25, 0.125]


def test_groups_that_are_added_during_a_warm_up():
    target = optimizer((1.0,))
    schedule = warmup(lr_scheduler.StepLR(target, 9), 3)
    target.add_param_group({"params": [Parameter(wrap(np.ones(1)))], "lr": 0.4})
    run(target, schedule, 1)
    assert rates(target) == pytest.approx([0.5, 0.2])


def test_a_rate_that_is_a_tensor_is_warmed_up_in_place():
    target = optimizer((wrap(np.array(1.0)),))
    kept = target.param_groups[0]["lr"]
    schedule = warmup(lr_scheduler.StepLR(target, 9), 1)
    assert target.param_groups[0]["lr"] is kept
    assert kept.item() == 0.5
    assert isinstance(schedule.get_last_lr()[0], Tensor)
    run(target, schedule, 1)
    assert kept.item() == 1.0


def test_the_state_of_a_warm_up_is_plain():
    state = warmup(lr_scheduler.StepLR(optimizer(), 9), 3).state_dict()
    assert pickle.loads(pickle.dumps(state)) == state
    assert {"steps", "start_factor", "curve", "last_epoch", "base_lrs", "_last_lr", "_schedulers"} <= set(state)


@pytest.mark.parametrize(
    ("action", "kind", "text"),
    [
        (lambda: warmup(optimizer(), 3), TypeError, "a warm-up leads to a schedule of learning rates, but got a SGD"),
        (lambda: warmup(lr_scheduler.StepLR(optimizer(), 3), -1), ValueError, "whole number of steps, 0 or more, but got"),
        (lambda: warmup(lr_scheduler.StepLR(optimizer(), 3), 2.5), ValueError, "whole number of steps, .* but got 2.5"),
        (lambda: warmup(lr_scheduler.StepLR(optimizer(), 3), 2, 0.0), ValueError, "above 0 and at most 1, but got 0.0"),
        (lambda: warmup(lr_scheduler.StepLR(optimizer(), 3), 2, 2.0), ValueError, "above 0 and at most 1, but got 2.0"),
        (
            lambda: warmup(lr_scheduler.StepLR(optimizer(), 3), 2, curve="steep"),
            ValueError,
            "curve must be one of 'linear', 'cosine', 'exponential', 'constant', but got 'steep'",
        ),
    ],
)
def test_what_a_warm_up_refuses(action, kind, text):
    with pytest.raises(kind, match=text):
        action()


# --- looking ahead ---------------------------------------------------------------------------------------------------


def everything(target, schedule):
    """All that a look ahead must leave as it is."""
    groups = [{key: value for key, value in group.items() if key != "params"} for group in target.param_groups]
    return copy.deepcopy((groups, schedule.state_dict(), target._opt_called))


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("name", SCHEDULES)
def test_a_preview_tells_the_rates_to_come_and_changes_nothing(name, warm):
    target = optimizer()
    schedule = warmup(build(name, target), 3) if warm else build(name, target)
    for start in (0, 4):
        before = everything(target, schedule)
        metrics = METRICS[start:]
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            ahead = [schedule.preview(6, group, metrics) for group in range(2)]
            assert schedule.plot(6, metrics).rows == [list(row) for row in zip(*ahead, strict=True)]
        assert everything(target, schedule) == before
        seen = run(target, schedule, 4)
        np.testing.assert_allclose([values[:5] for values in ahead], np.transpose(seen), rtol=1e-12)


def test_a_preview_with_and_without_metrics():
    target = optimizer((1.0,))
    schedule = warmup(lr_scheduler.ReduceLROnPlateau(target, factor=0.5, patience=0), 1)
    assert schedule.preview(5) == [0.5, 1.0, 1.0, 1.0, 1.0]
    assert schedule.preview(5, metrics=2.0) == [0.5, 1.0, 1.0, 0.5, 0.25]
    assert schedule.preview(5, metrics=[9, 3, 2, 2]) == [0.5, 1.0, 1.0, 1.0, 0.5]
    with pytest.raises(ValueError, match="5 rates are 4 steps apart and need 4 metrics, but got 2"):
        schedule.preview(5, metrics=[1, 1])


def test_a_preview_of_no_steps_and_beyond_the_end():
    schedule = lr_scheduler.OneCycleLR(optimizer((1.0,)), 1.0, total_steps=4)
    with pytest.raises(ValueError, match="n is the number of steps to look at, 1 or more, but got 0"):
        schedule.preview(0)
    assert schedule.preview(1) == pytest.approx([0.04])
    with pytest.raises(ValueError, match="Tried to step 5 times"):
        schedule.preview(6)
    with pytest.raises(IndexError):
        schedule.preview(1, group=1)


class Halving:
    """A function with a memory, of an object that must not be copied."""

    def __init__(self):
        self.calls = 0

    def __call__(self, step):
        self.calls += 1
        return 0.5**step

    def factor(self, step):
        return 0.5**step

    def __deepcopy__(self, memo):
        if self.calls < 0:
            raise AssertionError("copied")
        made = type(self)()
        made.calls = self.calls
        return made


def test_a_preview_calls_copies_of_objects_and_shares_what_methods_hold():
    function = Halving()
    schedule = lr_scheduler.LambdaLR(optimizer((1.0,)), function)
    calls = function.calls
    assert schedule.preview(3) == [1.0, 0.5, 0.25]
    assert function.calls == calls
    function.calls = -1
    for schedule in (lr_scheduler.LambdaLR(optimizer((1.0,)), function.factor),
                     warmup(lr_scheduler.LambdaLR(optimizer((1.0,)), function.factor), 1)):
        assert schedule.preview(3)[-1] == schedule.preview(2)[-1] / 2


class Adding(lr_scheduler.LRScheduler):
    def get_lr(self):
        return [group["lr"] + self.last_epoch for group in self.optimizer.param_groups]


def test_a_preview_of_a_schedule_of_ones_own():
    target = optimizer((1.0,))
    assert Adding(target).preview(4) == [1.0, 2.0, 4.0, 7.0]
    assert rates(target) == [1.0]


# --- pictures --------------------------------------------------------------------------------------------------------


def test_a_plot_as_text():
    target = optimizer((1.0,))
    plot = warmup(lr_scheduler.StepLR(target, 2, 0.5), 4).plot(8)
    assert str(plot) == repr(plot) == "learning rate, steps 0 to 7\n▂▄▅▇██▅▅  0.2 to 0.5, highest 1"


def test_a_plot_of_several_groups_and_many_steps():
    target = optimizer((1.0, 0.5, 0.5, 0.0))
    schedule = lr_scheduler.LinearLR(target, 1.0, 0.0, total_iters=300)
    run(target, schedule, 1)
    heading, *lines = str(schedule.plot(300)).split("\n")
    assert heading == "learning rate, steps 1 to 300"
    assert [line.split("  ")[0] for line in lines] == ["group 0", "groups 1, 2", "group 3"]
    assert all(len(re.search("[▁-█]+", line)[0]) == 60 for line in lines)
    assert lines[2].endswith("▁  0 to 0, highest 0")


def test_a_plot_of_rates_that_are_all_zero():
    plot = lr_scheduler.StepLR(optimizer((0.0,)), 1).plot(3)
    assert str(plot).endswith("▁▁▁  0 to 0, highest 0")
    assert "<svg" in plot.svg()


def test_a_plot_as_a_picture():
    target = optimizer((1.0, 0.1))
    plot = lr_scheduler.ExponentialLR(target, 0.9).plot(20)
    picture = plot.svg()
    assert picture == plot._repr_svg_()
    assert picture.startswith("<svg xmlns=")
    assert picture.count("<polyline") == 2
    assert picture.count("<circle") == 40
    for text in (">Learning rate<", ">group 0<", ">group 1<", ">step<", ">0<", ">19<", ">0.2<", ">1<"):
        assert text in picture


def test_a_plot_of_many_different_groups_has_no_room_for_names():
    plot = lr_scheduler.StepLR(optimizer((0.1, 0.2, 0.3, 0.4, 0.5)), 1).plot(3)
    assert plot.svg().count("<polyline") == 5
    assert "group" not in plot.svg()
    assert "group 4" in str(plot)


def test_a_plot_of_a_chain_is_numbered_by_its_parts():
    target = optimizer((1.0,))
    schedule = build("ChainedScheduler", target)
    run(target, schedule, 2)
    assert schedule.plot(3).first == 2
