"""Learning rates over time: values, changes by hand, warnings, what is refused."""

import copy
import warnings

import numpy as np
import pytest
from lr_schedules import SCHEDULES, STEPS, advance, build, optimizer, rates, run

from pellucid.core.tensor import Parameter, Tensor, wrap
from pellucid.optim import Adagrad, Adam, lr_scheduler


def fails(action, kind, *phrases):
    with pytest.raises(kind) as caught:
        action()
    for phrase in phrases:
        assert phrase in str(caught.value)


# --- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SCHEDULES)
def test_rates(name):
    _, first, second, momentum = SCHEDULES[name]
    target = optimizer()
    schedule = build(name, target)
    seen = run(target, schedule, 5)
    assert target.param_groups[0]["momentum"] == pytest.approx(momentum, rel=1e-11)
    seen += run(target, schedule, STEPS - 5)[1:]
    np.testing.assert_allclose([row[0] for row in seen], first, rtol=1e-11, atol=1e-15)
    assert seen[-1][1] == pytest.approx(second, rel=1e-11, abs=1e-15)
    assert schedule.get_last_lr() == seen[-1]


@pytest.mark.parametrize("name", SCHEDULES)
def test_a_rate_that_is_a_tensor_keeps_its_identity(name):
    plain, tensors = optimizer(), optimizer((wrap(np.array(1.0)), wrap(np.array(0.1))))
    kept = [group["lr"] for group in tensors.param_groups]
    schedule = build(name, tensors)
    assert run(plain, build(name, plain)) == run(tensors, schedule)
    for group, tensor, last in zip(tensors.param_groups, kept, schedule.get_last_lr(), strict=True):
        assert group["lr"] is tensor
        assert isinstance(last, Tensor)
        assert last is not tensor
        assert last.item() == tensor.item()


@pytest.mark.parametrize("name", ["CyclicLR", "OneCycleLR"])
def test_cycles_move_the_first_beta_of_adam(name):
    target = optimizer(kind=Adam)
    run(target, build(name, target), 5)
    assert target.param_groups[0]["betas"] == (pytest.approx(SCHEDULES[name][3]), 0.999)


def plateau(options, metrics, rate=1.0):
    target = optimizer((rate,))
    schedule = lr_scheduler.ReduceLROnPlateau(target, **options)
    seen = []
    for metric in metrics:
        schedule.step(metric)
        seen.append(rates(target)[0])
    assert schedule.get_last_lr() == seen[-1:]
    return seen


def test_plateau_waits_reduces_and_cools_down():
    metrics = [5, 4, 4, 4, 4, 3.9, 4, 4, 4, 4]
    expected = [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25]
    assert plateau({"factor": 0.5, "patience": 2, "cooldown": 1, "min_lr": 0.01}, metrics) == expected


def test_plateau_modes():
    rising = [1.0, 1.05, 1.2, 1.2]
    assert plateau({"mode": "max", "patience": 0, "threshold": 0.1}, rising) == [1.0, 0.1, 0.1, pytest.approx(0.01)]
    by_amount = {"mode": "max", "patience": 0, "threshold": 0.1, "threshold_mode": "abs"}
    assert plateau(by_amount, rising)[:3] == [1.0, 0.1, 0.1]
    falling = [1.0, 0.95, 0.8]
    assert plateau({"patience": 0, "threshold": 0.1}, falling) == [1.0, 0.1, 0.1]
    assert plateau({"patience": 0, "threshold": 0.01, "threshold_mode": "abs"}, falling) == [1.0, 1.0, 1.0]


def test_plateau_takes_a_nan_as_no_improvement_and_respects_the_lowest_rate():
    assert plateau({"patience": 0, "min_lr": 0.5}, [1.0, float("nan"), float("nan")]) == [1.0, 0.5, 0.5]
    assert plateau({"patience": 0, "eps": 0.2}, [1.0, 2.0, 2.0]) == [1.0, 0.1, 0.1]


def test_plateau_takes_a_tensor():
    assert plateau({"patience": 0}, [wrap(np.array(1.0)), wrap(np.array([2.0]))]) == [1.0, 0.1]


def test_a_factor_of_zero_comes_back():
    target = optimizer((0.5,))
    seen = run(target, lr_scheduler.ConstantLR(target, factor=0, total_iters=2), 3)
    assert [row[0] for row in seen] == [0, 0, 0.5, 0.5]


def test_a_chain_inside_a_sequence_starts_from_the_base_rates():
    target = optimizer((1.0,))
    s = lr_scheduler
    chain = s.ChainedScheduler([s.ConstantLR(target, 0.5, 2), s.ExponentialLR(target, 0.5)])
    seen = run(target, s.SequentialLR(target, [s.ConstantLR(target, 0.1, 5), chain], [2]), 5)
    assert [row[0] for row in seen] == [0.1, 0.1, 0.5, 0.25, 0.25, 0.125]


def test_a_sequence_inside_a_sequence():
    target = optimizer((1.0,))
    s = lr_scheduler
    inner = s.SequentialLR(target, [s.ConstantLR(target, 0.5, 9), s.ConstantLR(target, 0.25, 9)], [2])
    seen = run(target, s.SequentialLR(target, [inner, s.ConstantLR(target, 0.1, 9)], [4]), 5)
    assert [row[0] for row in seen] == [0.5, 0.5, 0.25, 0.25, 0.1, 0.1]


def test_a_plateau_may_follow_a_warm_up():
    target = optimizer((1.0,))
    s = lr_scheduler
    parts = [s.LinearLR(target, 0.5, total_iters=2), s.ReduceLROnPlateau(target, factor=0.1, patience=0)]
    schedule = s.SequentialLR(target, parts, [2])
    seen = rates(target)
    for metric in (9.0, 5.0, 5.0, 4.0):
        target.step()
        schedule.step(metric)
        seen += rates(target)
    assert seen == [0.5, 0.75, 1.0, 0.1, 0.1]
    fails(schedule.step, TypeError, "belongs to a ReduceLROnPlateau, which needs a metric")
    assert schedule.last_epoch == 4


class HalfAtTwo(lr_scheduler.LRScheduler):
    def get_lr(self):
        factor = 0.5 if self.last_epoch == 2 else 1.0
        return [group["lr"] * factor for group in self.optimizer.param_groups]


def test_a_schedule_of_ones_own():
    target = optimizer((1.0,))
    assert [row[0] for row in run(target, HalfAtTwo(target), 3)] == [1.0, 1.0, 0.5, 0.5]


# --- changes by hand, and several schedules --------------------------------------------------------------------------


def test_changes_by_hand_carry_on_in_chainable_schedules():
    target = optimizer((1.0,))
    schedule = lr_scheduler.ExponentialLR(target, 0.5)
    run(target, schedule, 2)
    target.param_groups[0]["lr"] = 8.0
    assert [row[0] for row in run(target, schedule, 2)] == [8.0, 4.0, 2.0]


def test_changes_by_hand_are_overwritten_by_schedules_of_the_step_alone():
    target = optimizer((1.0,))
    schedule = lr_scheduler.LambdaLR(target, lambda step: 0.5**step)
    run(target, schedule, 2)
    target.param_groups[0]["lr"] = 8.0
    assert [row[0] for row in run(target, schedule, 1)] == [8.0, 0.125]


def test_two_schedules_stepped_in_turn_multiply():
    target = optimizer((1.0,))
    first = lr_scheduler.ConstantLR(target, 0.5, 2)
    second = lr_scheduler.ExponentialLR(target, 0.5)
    seen = rates(target)
    for _ in range(3):
        target.step()
        first.step()
        second.step()
        seen += rates(target)
    assert seen == [0.5, 0.25, 0.25, 0.125]


def test_a_new_schedule_goes_on_from_the_present_rate():
    target = optimizer((1.0,))
    run(target, lr_scheduler.ExponentialLR(target, 0.5), 2)
    assert [row[0] for row in run(target, lr_scheduler.StepLR(target, 1, 0.1), 1)] == [0.25, 0.025]


# --- step(epoch), get_lr, order --------------------------------------------------------------------------------------


CLOSED = [name for name in SCHEDULES if not name.startswith(("Sequential", "Chained", "Multiplicative", "Reduce"))]


@pytest.mark.parametrize("name", CLOSED)
def test_stepping_to_an_epoch_gives_its_rates(name):
    target = optimizer()
    schedule = build(name, target)
    target.step()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        schedule.step(5)
    assert rates(target)[0] == pytest.approx(SCHEDULES[name][1][5], rel=1e-11)
    assert schedule.last_epoch == 5
    if "WarmRestarts" not in name:
        assert "epoch parameter" in str(caught[0].message)


def test_warm_restarts_go_to_points_between_steps():
    target = optimizer((1.0,))
    schedule = lr_scheduler.CosineAnnealingWarmRestarts(target, T_0=2, T_mult=2)
    for epoch, expected in ((0.5, 0.85355339059327378), (1.0, 0.5), (2.0, 1.0), (6.0, 1.0), (10.0, 0.5), (1.0, 0.5)):
        schedule.step(epoch)
        assert rates(target)[0] == pytest.approx(expected)
    schedule.step(0.5)
    schedule.step()
    assert schedule.T_cur == 1.5


def test_get_lr_is_for_schedules_only():
    schedule = lr_scheduler.StepLR(optimizer(), 3)
    with pytest.warns(UserWarning, match=r"please use `get_last_lr\(\)`"):
        schedule.get_lr()


SILENT = [name for name in SCHEDULES if name.startswith(("ReduceLROnPlateau", "CosineAnnealingWarmRestarts"))]


@pytest.mark.parametrize(
    ("name", "warm"),
    [(name, False) for name in SCHEDULES if name not in SILENT] + [(name, True) for name in SCHEDULES],
)
def test_the_order_warning_names_the_line_that_called_first(name, warm):
    target = optimizer()
    schedule = lr_scheduler.warmup(build(name, target), 2) if warm else build(name, target)
    with pytest.warns(UserWarning, match=r"`lr_scheduler.step\(\)` before `optimizer.step\(\)`") as caught:
        schedule.step()  # this line
    for warning in caught:
        assert "schedule.step()  # this line" in str(warning.message)
        assert warning.filename == __file__


@pytest.mark.parametrize("name", SILENT)
def test_some_schedules_may_be_stepped_before_the_optimizer(name):
    schedule = build(name, optimizer())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        advance(schedule)


def test_an_epoch_is_warned_of_at_the_line_that_gave_it():
    target = optimizer((1.0,))
    for schedule in (lr_scheduler.StepLR(target, 3), lr_scheduler.ReduceLROnPlateau(target)):
        target.step()
        with pytest.warns(UserWarning, match="The epoch parameter") as caught:
            schedule.step(epoch=4) if isinstance(schedule, lr_scheduler.StepLR) else schedule.step(1.0, epoch=4)
        assert caught[0].filename == __file__
        assert schedule.last_epoch == 4


def test_the_right_order_is_not_warned_of():
    target = optimizer()
    schedule = build("ChainedScheduler", target)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(target, schedule, 2)


def test_a_resumed_schedule_is_not_warned_of():
    target = optimizer()
    schedule = lr_scheduler.StepLR(target, 3)
    run(target, schedule, 2)
    again = lr_scheduler.StepLR(optimizer(), 3)
    again.load_state_dict(schedule.state_dict())
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        again.step()


# --- what is refused -------------------------------------------------------------------------------------------------


def one_cycle(**options):
    return lambda: lr_scheduler.OneCycleLR(optimizer(), **{"max_lr": 0.1, **options})


def sequence(parts, milestones):
    def make():
        target = optimizer()
        return lr_scheduler.SequentialLR(target, parts(target), milestones)

    return make


REFUSED = {
    "no optimizer": (lambda: lr_scheduler.StepLR(3, 3), TypeError, "int is not an Optimizer"),
    "no optimizer, plateau": (lambda: lr_scheduler.ReduceLROnPlateau(3), TypeError, "int is not an Optimizer"),
    "lambdas": (lambda: lr_scheduler.LambdaLR(optimizer(), [abs]), ValueError, "Expected 2 lr_lambdas, but got 1"),
    "lambda": (lambda: lr_scheduler.MultiplicativeLR(optimizer(), 3), TypeError, "lr_lambda should be a function"),
    "factor": (lambda: lr_scheduler.ConstantLR(optimizer(), 2), ValueError, "expected to be between 0 and 1"),
    "start": (lambda: lr_scheduler.LinearLR(optimizer(), 0), ValueError, "Starting multiplicative factor expected"),
    "end": (lambda: lr_scheduler.LinearLR(optimizer(), 1, 2), ValueError, "Ending multiplicative factor expected"),
    "T_0": (
        lambda: lr_scheduler.CosineAnnealingWarmRestarts(optimizer(), 0),
        ValueError,
        "Expected positive integer T_0, but got 0",
    ),
    "T_mult": (
        lambda: lr_scheduler.CosineAnnealingWarmRestarts(optimizer(), 1, 0.5),
        ValueError,
        "Expected integer T_mult >= 1, but got 0.5",
    ),
    "eta_min": (
        lambda: lr_scheduler.CosineAnnealingWarmRestarts(optimizer(), 1, 1, "0"),
        ValueError,
        "Expected float or int eta_min",
    ),
    "negative epoch": (
        lambda: lr_scheduler.CosineAnnealingWarmRestarts(optimizer(), 1).step(-1),
        ValueError,
        "Expected non-negative epoch, but got -1",
    ),
    "mode": (lambda: lr_scheduler.CyclicLR(optimizer(), 0.1, 0.2, mode="x"), ValueError, "mode is invalid"),
    "length": (
        lambda: lr_scheduler.CyclicLR(optimizer(), [0.1], 0.2),
        ValueError,
        "base_lr has 1 values, param_groups has 2",
    ),
    "no momentum": (
        lambda: lr_scheduler.CyclicLR(optimizer(kind=Adagrad), 0.1, 0.2),
        ValueError,
        "optimizer must support momentum or beta1",
    ),
    "no steps": (one_cycle(), ValueError, "You must define either total_steps OR (epochs AND steps_per_epoch)"),
    "negative steps": (one_cycle(total_steps=-1), ValueError, "Expected positive integer total_steps, but got -1"),
    "no epochs": (one_cycle(epochs=0, steps_per_epoch=1), ValueError, "Expected positive integer epochs, but got 0"),
    "start share": (one_cycle(total_steps=9, pct_start=2.0), ValueError, "Expected float between 0 and 1 pct_start"),
    "strategy": (one_cycle(total_steps=9, anneal_strategy="x"), ValueError, "must be one of 'cos' or 'linear'"),
    "empty sequence": (sequence(lambda o: [], []), ValueError, "expects at least one scheduler"),
    "milestones": (sequence(lambda o: [lr_scheduler.StepLR(o, 1)], [1]), ValueError, "one more than the number of"),
    "not a schedule": (sequence(lambda o: [3], []), TypeError, "at index 0 should have `optimizer`"),
    "other optimizer": (
        sequence(lambda o: [lr_scheduler.StepLR(optimizer(), 1)], []),
        ValueError,
        "expects all schedulers to belong to the same optimizer",
    ),
    "empty chain": (lambda: lr_scheduler.ChainedScheduler([]), ValueError, "expects at least one scheduler"),
    "plateau in a chain": (
        lambda: lr_scheduler.ChainedScheduler([lr_scheduler.ReduceLROnPlateau(optimizer())]),
        ValueError,
        "does not support `ReduceLROnPlateau`",
    ),
    "plateau factor": (lambda: lr_scheduler.ReduceLROnPlateau(optimizer(), factor=1.0), ValueError, "Factor should be"),
    "plateau mode": (lambda: lr_scheduler.ReduceLROnPlateau(optimizer(), "x"), ValueError, "mode x is unknown"),
    "plateau threshold": (
        lambda: lr_scheduler.ReduceLROnPlateau(optimizer(), threshold_mode="x"),
        ValueError,
        "threshold mode x is unknown",
    ),
    "plateau rates": (
        lambda: lr_scheduler.ReduceLROnPlateau(optimizer(), min_lr=[0.1]),
        ValueError,
        "expected 2 min_lrs, got 1",
    ),
    "no get_lr": (lambda: lr_scheduler.LRScheduler(optimizer()), NotImplementedError, "has to define get_lr()"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    fails(*REFUSED[case])


def test_a_step_beyond_the_last_changes_nothing():
    target = optimizer((1.0,))
    schedule = lr_scheduler.OneCycleLR(target, 0.1, total_steps=3)
    run(target, schedule, 3)
    before = rates(target), copy.deepcopy(schedule.state_dict())
    fails(schedule.step, ValueError, "Tried to step 4 times. The specified number of total steps is 3")
    assert (rates(target), schedule.state_dict()) == before


GROW = {
    "StepLR": lambda o: lr_scheduler.StepLR(o, 1, 0.5),
    "LinearLR": lambda o: lr_scheduler.LinearLR(o, 0.5, total_iters=1),
    "CosineAnnealingLR": lambda o: lr_scheduler.CosineAnnealingLR(o, 2),
    "CosineAnnealingWarmRestarts": lambda o: lr_scheduler.CosineAnnealingWarmRestarts(o, 2),
}


@pytest.mark.parametrize("name", GROW)
def test_groups_may_be_added_later(name):
    target = optimizer((1.0,))
    schedule = GROW[name](target)
    target.add_param_group({"params": [Parameter(wrap(np.ones(1)))], "lr": 0.5})
    run(target, schedule, 1)
    old, new = rates(target)
    assert new == pytest.approx(1.0 if name == "LinearLR" else old / 2)


def test_groups_without_a_setting_of_their_own_are_refused():
    target = optimizer((1.0,))
    schedules = [
        lr_scheduler.LambdaLR(target, lambda step: 0.5),
        lr_scheduler.CyclicLR(target, 0.1, 0.2),
        lr_scheduler.OneCycleLR(target, 0.1, total_steps=9),
    ]
    reduced = lr_scheduler.ReduceLROnPlateau(target, patience=0, min_lr=[0.1])
    target.add_param_group({"params": [Parameter(wrap(np.ones(1)))]})
    target.step()
    for schedule in schedules:
        fails(schedule.step, ValueError, "was built for 1 parameter groups, the optimizer has 2")
        assert schedule.last_epoch == 0
    reduced.step(1.0)
    fails(lambda: reduced.step(2.0), RuntimeError, "The number of param groups in the `optimizer` (2) differs")
    assert reduced.num_bad_epochs == 0


def test_a_schedule_that_gives_too_few_rates():
    class Short(lr_scheduler.LRScheduler):
        def get_lr(self):
            return [0.1]

    fails(lambda: Short(optimizer()), ValueError, "has rates for 1 parameter groups, the optimizer has 2")
