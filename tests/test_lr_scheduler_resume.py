"""Schedules that are saved and loaded: every order of building and loading goes on with the right rates."""

import copy
import pickle
import warnings

import numpy as np
import pytest
from lr_schedules import SCHEDULES, STEPS, build, optimizer, rates, run

from pellucid.optim import lr_scheduler

# --- resuming --------------------------------------------------------------------------------------------------------

ORDERS = [
    "optimizer build schedule",
    "build optimizer schedule",
    "build schedule optimizer",
    "build schedule",
    "optimizer build schedule optimizer",
    "build schedule schedule",
    "build optimizer schedule optimizer",
]
SPLITS = (0, 1, 2, 3, 4, 7, 10)  # after how many steps a run is saved; the warm-ups below end at step 3


def resumed(order, make, saved_optimizer, saved_schedule):
    """A new optimizer and schedule, brought to a saved state in some order."""
    target, schedule = optimizer(), None
    for what in order.split():
        if what == "build":
            schedule = make(target)
        elif what == "optimizer":
            target.load_state_dict(copy.deepcopy(saved_optimizer))
        else:
            schedule.load_state_dict(copy.deepcopy(saved_schedule))
    return target, schedule


def check_resuming(order, make):
    whole = optimizer()
    expected = run(whole, make(whole))
    momentum = [group["momentum"] for group in whole.param_groups]
    for split in SPLITS:
        target = optimizer()
        schedule = make(target)
        run(target, schedule, split)
        target, schedule = resumed(order, make, target.state_dict(), schedule.state_dict())
        assert schedule.get_last_lr() == rates(target)
        np.testing.assert_allclose(run(target, schedule, STEPS - split), expected[split:], rtol=1e-12, atol=1e-15)
        assert [group["momentum"] for group in target.param_groups] == momentum


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", SCHEDULES)
def test_every_order_of_loading_resumes_with_the_right_rates(name, order):
    check_resuming(order, lambda target: build(name, target))


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", SCHEDULES)
def test_every_order_of_loading_resumes_a_warm_up(name, order):
    check_resuming(order, lambda target: lr_scheduler.warmup(build(name, target), 3))


def test_the_tables_hold_every_schedule():
    named = {name.split(",")[0].split()[0] for name in SCHEDULES}
    public = {name for name in lr_scheduler.__all__ if name.endswith(("LR", "Scheduler", "Restarts", "Plateau"))}
    assert public - named == {"LRScheduler", "_LRScheduler", "WarmupLR"}
    assert len(named) == 15


def test_parts_that_were_built_before_the_optimizer_was_loaded():
    def parts(target):
        return [lr_scheduler.LinearLR(target, 0.1, total_iters=3), lr_scheduler.ExponentialLR(target, 0.5)]

    whole = optimizer((1.0,))
    schedule = lr_scheduler.SequentialLR(whole, parts(whole), [3])
    run(whole, schedule, 2)
    fresh = optimizer((1.0,))
    made = parts(fresh)
    fresh.load_state_dict(copy.deepcopy(whole.state_dict()))
    again = lr_scheduler.SequentialLR(fresh, made, [3])
    again.load_state_dict(copy.deepcopy(schedule.state_dict()))
    assert [row[0] for row in run(fresh, again, 3)] == pytest.approx([0.7, 1.0, 0.5, 0.25])


@pytest.mark.parametrize("order", ["optimizer build a b", "optimizer build b a", "build optimizer b a", "build a b"])
def test_two_schedules_resume_together(order):
    def make(target):
        return {"a": lr_scheduler.LinearLR(target, 0.1, total_iters=6), "b": lr_scheduler.ExponentialLR(target, 0.9)}

    def go(target, schedules, steps):
        seen = []
        for _ in range(steps):
            target.step()
            for schedule in schedules.values():
                schedule.step()
            seen.append(rates(target))
        return seen

    target = optimizer()
    schedules = make(target)
    go(target, schedules, 4)
    saved, states = copy.deepcopy(target.state_dict()), {k: copy.deepcopy(v.state_dict()) for k, v in schedules.items()}
    expected = go(target, schedules, 4)
    target = optimizer()
    for what in order.split():
        if what == "optimizer":
            target.load_state_dict(saved)
        elif what == "build":
            schedules = make(target)
        else:
            schedules[what].load_state_dict(states[what])
    np.testing.assert_allclose(go(target, schedules, 4), expected, rtol=1e-12)


def test_loading_an_earlier_state_into_a_schedule_that_ran_on():
    target = optimizer((1.0,))
    schedule = lr_scheduler.ExponentialLR(target, 0.5)
    run(target, schedule, 2)
    saved = copy.deepcopy(schedule.state_dict())
    run(target, schedule, 3)
    schedule.load_state_dict(saved)
    assert [row[0] for row in run(target, schedule, 1)] == [0.25, 0.125]


def test_a_rate_set_by_hand_is_not_touched_by_loading():
    target = optimizer((1.0,))
    schedule = lr_scheduler.ExponentialLR(target, 0.5)
    run(target, schedule, 2)
    saved = copy.deepcopy(schedule.state_dict())
    target.param_groups[0]["lr"] = 3.0
    schedule.load_state_dict(saved)
    assert rates(target) == [3.0]


def test_a_rate_changed_by_hand_before_saving_comes_back_with_the_optimizer():
    target = optimizer((1.0,))
    schedule = lr_scheduler.ExponentialLR(target, 0.5)
    run(target, schedule, 2)
    target.param_groups[0]["lr"] = 3.0
    saved = copy.deepcopy(target.state_dict()), copy.deepcopy(schedule.state_dict())
    target = optimizer((1.0,))
    target.load_state_dict(saved[0])
    schedule = lr_scheduler.ExponentialLR(target, 0.5)
    schedule.load_state_dict(saved[1])
    assert [row[0] for row in run(target, schedule, 1)] == [3.0, 1.5]


def test_a_loaded_optimizer_may_begin_a_new_schedule():
    target = optimizer((1.0,))
    run(target, lr_scheduler.ExponentialLR(target, 0.5), 2)
    fresh = optimizer((1.0,))
    fresh.load_state_dict(target.state_dict())
    assert [row[0] for row in run(fresh, lr_scheduler.StepLR(fresh, 1, 0.5), 1)] == [0.25, 0.125]


@pytest.mark.parametrize("name", SCHEDULES)
def test_states_are_plain_and_pickle(name):
    target = optimizer()
    state = build(name, target).state_dict()
    assert "optimizer" not in state
    plain = {key: value for key, value in state.items() if key != "_schedulers"}
    assert pickle.loads(pickle.dumps(plain)) == plain


def test_states_have_pytorchs_names():
    state = lr_scheduler.StepLR(optimizer(), 3).state_dict()
    assert set(state) == {
        "step_size", "gamma", "base_lrs", "last_epoch", "_step_count", "_is_initial", "_get_lr_called_within_step",
        "_last_lr",
    }  # fmt: skip
    assert set(lr_scheduler.ReduceLROnPlateau(optimizer()).state_dict()) == {
        "factor", "default_min_lr", "min_lrs", "patience", "cooldown", "eps", "last_epoch", "_last_lr", "mode_worse",
        "mode", "threshold", "threshold_mode", "best", "cooldown_counter", "num_bad_epochs",
    }  # fmt: skip


class Factor:
    def __init__(self, value):
        self.value = value

    def __call__(self, step):
        return self.value


def test_callable_objects_are_saved_by_their_attributes():
    for make in (
        lambda target, f: lr_scheduler.LambdaLR(target, f),
        lambda target, f: lr_scheduler.MultiplicativeLR(target, [f, f]),
        lambda target, f: lr_scheduler.CyclicLR(target, 0.1, 0.2, scale_fn=f, cycle_momentum=False),
    ):
        saved = make(optimizer(), Factor(0.5)).state_dict()
        other = Factor(0.1)
        make(optimizer(), other).load_state_dict(saved)
        assert other.value == 0.5


# --- last_epoch ------------------------------------------------------------------------------------------------------


def marked(rate=1.0):
    """An optimizer whose groups know the rate that a schedule began with, as after loading."""
    target = optimizer((rate,))
    target.param_groups[0]["initial_lr"] = 1.0
    return target


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda o: lr_scheduler.StepLR(o, 2, 0.5, last_epoch=3), [0.25, 0.25, 0.125]),
        (lambda o: lr_scheduler.ExponentialLR(o, 0.5, last_epoch=3), [0.0625, 0.03125, 0.015625]),
        (lambda o: lr_scheduler.ConstantLR(o, 0.1, 4, last_epoch=3), [1.0, 1.0, 1.0]),
        (lambda o: lr_scheduler.LinearLR(o, 0.5, total_iters=8, last_epoch=3), [0.75, 0.8125, 0.875]),
        (lambda o: lr_scheduler.PolynomialLR(o, 8, last_epoch=3), [0.5, 0.375, 0.25]),
        (lambda o: lr_scheduler.LambdaLR(o, lambda step: step, last_epoch=3), [4, 5, 6]),
        (lambda o: lr_scheduler.CosineAnnealingLR(o, 8, last_epoch=3), [0.5, 0.30865828381745508, 0.14644660940672621]),
    ],
)
def test_last_epoch_puts_a_fresh_optimizer_where_it_would_be(make, expected):
    target = marked()
    schedule = make(target)
    assert schedule.last_epoch == 4
    np.testing.assert_allclose([row[0] for row in run(target, schedule, 2)], expected, rtol=1e-12)


def test_last_epoch_leaves_a_resumed_rate_alone():
    target = marked(0.25)
    schedule = lr_scheduler.StepLR(target, 2, 0.5, last_epoch=3)
    assert [row[0] for row in run(target, schedule, 2)] == [0.25, 0.25, 0.125]


def test_last_epoch_needs_the_first_rates():
    with pytest.raises(KeyError, match="param 'initial_lr' is not specified"):
        lr_scheduler.StepLR(optimizer(), 2, last_epoch=3)


def test_a_sequence_built_at_a_step_has_that_steps_rate():
    def make(last_epoch):
        target = optimizer((1.0,))
        parts = [lr_scheduler.ConstantLR(target, 0.2, total_iters=2), lr_scheduler.ExponentialLR(target, 0.5)]
        return target, lr_scheduler.SequentialLR(target, parts, [2], last_epoch=last_epoch)

    target, schedule = make(-1)
    assert schedule.get_last_lr() == [0.2]
    assert [row[0] for row in run(target, schedule, 4)] == [0.2, 0.2, 1.0, 0.5, 0.25]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        target, schedule = make(3)
        assert schedule.get_last_lr() == [0.5]
        assert [row[0] for row in run(target, schedule, 1)] == [0.5, 0.25]
