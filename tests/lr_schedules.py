"""Schedules with their rates, and the optimizer they act on: for the tests of learning rates."""

import numpy as np

from pellucid.core.tensor import Parameter, wrap
from pellucid.optim import SGD, lr_scheduler

STEPS = 11


def optimizer(rates=(1.0, 0.1), kind=SGD, **options):
    """One group for each rate; the parameters have no gradient, so that a step costs nothing."""
    options = {"momentum": 0.9} if kind is SGD else options
    return kind([{"params": [Parameter(wrap(np.ones(1)))], "lr": rate} for rate in rates], **options)


# name: (schedule, rates of the first group at steps 0 to 11, rate of the second group at step 11, momentum at step 5)
SCHEDULES = {
    "LambdaLR": (
        lambda s, o: s.LambdaLR(o, lambda step: 0.95**step),
        [1, 0.95, 0.9025, 0.857375, 0.81450625, 0.7737809375, 0.735091890625, 0.698337296094, 0.663420431289,
         0.630249409725, 0.598736939238, 0.568800092276],
        0.0568800092276,
        0.9,
    ),
    "MultiplicativeLR": (
        lambda s, o: s.MultiplicativeLR(o, lambda step: 0.9 + 0.01 * step),
        [1, 0.91, 0.8372, 0.778596, 0.73188024, 0.695286228, 0.66747477888, 0.647450535514, 0.634501524803,
         0.628156509555, 0.628156509555, 0.634438074651],
        0.0634438074651,
        0.9,
    ),
    "StepLR": (
        lambda s, o: s.StepLR(o, 3, gamma=0.3),
        [1, 1, 1, 0.3, 0.3, 0.3, 0.09, 0.09, 0.09, 0.027, 0.027, 0.027],
        0.0027,
        0.9,
    ),
    "MultiStepLR": (
        lambda s, o: s.MultiStepLR(o, [0, 2, 5, 5], gamma=0.5),
        [0.5, 0.5, 0.25, 0.25, 0.25, 0.0625, 0.0625, 0.0625, 0.0625, 0.0625, 0.0625, 0.0625],
        0.00625,
        0.9,
    ),
    "ConstantLR": (
        lambda s, o: s.ConstantLR(o, factor=0.25, total_iters=4),
        [0.25, 0.25, 0.25, 0.25, 1, 1, 1, 1, 1, 1, 1, 1],
        0.1,
        0.9,
    ),
    "LinearLR up": (
        lambda s, o: s.LinearLR(o, start_factor=0.1, total_iters=6),
        [0.1, 0.25, 0.4, 0.55, 0.7, 0.85, 1, 1, 1, 1, 1, 1],
        0.1,
        0.9,
    ),
    "LinearLR down": (
        lambda s, o: s.LinearLR(o, start_factor=1.0, end_factor=0.0, total_iters=7),
        [1, 0.857142857143, 0.714285714286, 0.571428571429, 0.428571428571, 0.285714285714, 0.142857142857, 0,
         0, 0, 0, 0],
        0,
        0.9,
    ),
    "ExponentialLR": (
        lambda s, o: s.ExponentialLR(o, 0.9),
        [1, 0.9, 0.81, 0.729, 0.6561, 0.59049, 0.531441, 0.4782969, 0.43046721, 0.387420489, 0.3486784401,
         0.31381059609],
        0.031381059609,
        0.9,
    ),
    "PolynomialLR": (
        lambda s, o: s.PolynomialLR(o, total_iters=6, power=2.0),
        [1, 0.694444444444, 0.444444444444, 0.25, 0.111111111111, 0.0277777777778, 0, 0, 0, 0, 0, 0],
        0,
        0.9,
    ),
    "CosineAnnealingLR": (
        lambda s, o: s.CosineAnnealingLR(o, T_max=4, eta_min=0.01),
        [1, 0.855017856687, 0.505, 0.154982143313, 0.01, 0.154982143313, 0.505, 0.855017856687, 1,
         0.855017856687, 0.505, 0.154982143313],
        0.0231801948466,
        0.9,
    ),
    "CosineAnnealingWarmRestarts": (
        lambda s, o: s.CosineAnnealingWarmRestarts(o, T_0=2, T_mult=2, eta_min=0.001),
        [1, 0.5005, 1, 0.853699837203, 0.5005, 0.147300162797, 1, 0.961977826489, 0.853699837203,
         0.691650374466, 0.5005, 0.309349625534],
        0.0315571700979,
        0.9,
    ),
    "CosineAnnealingWarmRestarts, equal": (
        lambda s, o: s.CosineAnnealingWarmRestarts(o, T_0=3),
        [1, 0.75, 0.25, 1, 0.75, 0.25, 1, 0.75, 0.25, 1, 0.75, 0.25],
        0.025,
        0.9,
    ),
    "CyclicLR": (
        lambda s, o: s.CyclicLR(o, 0.1, 0.5, step_size_up=2, step_size_down=3),
        [0.1, 0.3, 0.5, 0.366666666667, 0.233333333333, 0.1, 0.3, 0.5, 0.366666666667, 0.233333333333, 0.1,
         0.3],
        0.3,
        0.9,
    ),
    "CyclicLR, halving": (
        lambda s, o: s.CyclicLR(o, [0.1, 0.01], 0.5, step_size_up=2, mode="triangular2"),
        [0.1, 0.3, 0.5, 0.3, 0.1, 0.2, 0.3, 0.2, 0.1, 0.15, 0.2, 0.15],
        0.07125,
        0.875,
    ),
    "CyclicLR, exponential": (
        lambda s, o: s.CyclicLR(o, 0.1, 0.5, step_size_up=3, mode="exp_range", gamma=0.9),
        [0.1, 0.22, 0.316, 0.3916, 0.27496, 0.178732, 0.1, 0.16377292, 0.214791256, 0.2549681956, 0.19298091736,
         0.141841412812],
        0.141841412812,
        0.880317,
    ),
    "CyclicLR, own scale": (
        lambda s, o: s.CyclicLR(o, 0.1, 0.5, step_size_up=2, scale_fn=lambda x: 1 / x, cycle_momentum=False),
        [0.1, 0.3, 0.5, 0.3, 0.1, 0.2, 0.3, 0.2, 0.1, 0.166666666667, 0.233333333333, 0.166666666667],
        0.166666666667,
        0.9,
    ),
    "OneCycleLR": (
        lambda s, o: s.OneCycleLR(o, max_lr=0.5, total_steps=12),
        [0.02, 0.17489482711, 0.439642579561, 0.497207717725, 0.466506484921, 0.405872826975, 0.323689498848,
         0.231318551333, 0.141530499104, 0.0667387650944, 0.0172834937127, 2e-06],
        2e-06,
        0.868825509907,
    ),
    "OneCycleLR, three phases": (
        lambda s, o: s.OneCycleLR(
            o, [0.5, 0.2], epochs=3, steps_per_epoch=4, three_phase=True, anneal_strategy="linear"
        ),
        [0.02, 0.204615384615, 0.389230769231, 0.426153846154, 0.241538461538, 0.0569230769231, 0.0172416551724,
         0.0137937241379, 0.0103457931034, 0.00689786206897, 0.00344993103448, 2e-06],
        8e-07,
        0.942307692308,
    ),
    "SequentialLR": (
        lambda s, o: s.SequentialLR(o, [s.LinearLR(o, 0.1, total_iters=3), s.CosineAnnealingLR(o, 8)], [3]),
        [0.1, 0.4, 0.7, 1, 0.961939766256, 0.853553390593, 0.691341716183, 0.5, 0.308658283817, 0.146446609407,
         0.0380602337444, 0],
        0,
        0.9,
    ),
    "SequentialLR of four": (
        lambda s, o: s.SequentialLR(
            o,
            [
                s.ConstantLR(o, 0.2, 9),
                s.ExponentialLR(o, 0.5),
                s.MultiplicativeLR(o, lambda step: 0.7),
                s.CosineAnnealingWarmRestarts(o, 2),
            ],
            [2, 5, 8],
        ),
        [0.2, 0.2, 1, 0.5, 0.25, 0.175, 0.1225, 0.08575, 1, 0.5, 1, 0.5],
        0.05,
        0.9,
    ),
    "SequentialLR, milestone 0": (
        lambda s, o: s.SequentialLR(o, [s.ConstantLR(o, 0.2, 2), s.ExponentialLR(o, 0.5)], [0]),
        [1, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125, 0.00390625, 0.001953125, 0.0009765625,
         0.00048828125],
        4.8828125e-05,
        0.9,
    ),
    "SequentialLR, plateau last": (
        lambda s, o: s.SequentialLR(
            o, [s.LinearLR(o, 0.5, total_iters=2), s.ReduceLROnPlateau(o, factor=0.5, patience=1)], [2]
        ),
        [0.5, 0.75, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125],
        0.0125,
        0.9,
    ),
    "ReduceLROnPlateau": (
        lambda s, o: s.ReduceLROnPlateau(o, factor=0.5, patience=1),
        [1, 1, 1, 1, 0.5, 0.5, 0.5, 0.5, 0.25, 0.25, 0.125, 0.125],
        0.0125,
        0.9,
    ),
    "ChainedScheduler": (
        lambda s, o: s.ChainedScheduler([s.ConstantLR(o, 0.1, 4), s.ExponentialLR(o, 0.9)]),
        [0.1, 0.09, 0.081, 0.0729, 0.6561, 0.59049, 0.531441, 0.4782969, 0.43046721, 0.387420489, 0.3486784401,
         0.31381059609],
        0.031381059609,
        0.9,
    ),
}


METRICS = [9, 8, 8, 8, 8, 7, 7, 7, 7, 7, 7, 7]  # what a plateau sees, by the number of the step before
FOLLOWING = lr_scheduler.ReduceLROnPlateau, lr_scheduler.SequentialLR, lr_scheduler.WarmupLR


def build(name, target):
    return SCHEDULES[name][0](lr_scheduler, target)


def advance(schedule):
    """One step of a schedule, with the metric of that step where it may follow one."""
    if isinstance(schedule, FOLLOWING):
        schedule.step(METRICS[schedule.last_epoch])
    else:
        schedule.step()


def rates(target):
    return [float(group["lr"]) for group in target.param_groups]


def run(target, schedule, steps=STEPS):
    """Rates of all groups, before and after each of some steps."""
    seen = [rates(target)]
    for _ in range(steps):
        target.step()
        advance(schedule)
        seen.append(rates(target))
    return seen
