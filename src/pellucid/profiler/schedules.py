"""Which steps of a program are profiled, and what of it."""

from __future__ import annotations

import warnings
from enum import Enum

__all__ = ["ProfilerAction", "ProfilerActivity", "always", "chosen_activities", "schedule", "supported_activities"]


class ProfilerAction(Enum):
    """What is done in a step."""

    NONE = 0
    WARMUP = 1  # run as if profiled, so that the first step recorded is a usual one
    RECORD = 2
    RECORD_AND_SAVE = 3  # the last step of a cycle


class ProfilerActivity(Enum):
    """What can be profiled: here, the CPU."""

    CPU = 0
    XPU = 1
    CUDA = 2
    MTIA = 3
    HPU = 4
    PrivateUse1 = 5


def supported_activities() -> set[ProfilerActivity]:
    """What there is to profile."""
    return {ProfilerActivity.CPU}


def chosen_activities(activities) -> set[ProfilerActivity]:
    """What a profile was asked for; dictionaries count by their keys.

    Raises:
        AssertionError: nothing was chosen, or not the CPU.
    """
    if activities is None:
        return supported_activities()
    chosen: set = set()
    for member in activities:
        chosen |= {key for key in (member if isinstance(member, dict) else [member]) if isinstance(key, ProfilerActivity)}
    if not chosen:
        raise AssertionError("No valid profiler activities found. Pass activities=[ProfilerActivity.CPU].")
    if ProfilerActivity.CPU not in chosen:
        raise AssertionError("No activities specified for the profiler that are there: pass ProfilerActivity.CPU")
    return chosen


def schedule(*, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0, skip_first_wait: int = 0):
    """A function from the number of a step to a ProfilerAction, for programs that go in cycles.

    Args:
        wait, warmup, active: how many steps of a cycle are left alone, run warm, and are recorded.
        repeat: how many cycles; 0 for no end.
        skip_first: steps before the first cycle.
        skip_first_wait: if not 0, the first cycle goes without its wait.

    Raises:
        AssertionError: a negative number, or no active step.
    """
    if wait < 0 or warmup < 0 or active <= 0 or repeat < 0 or skip_first < 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} (need >= 0), "
            f"active={active} (need > 0), repeat={repeat} (need >= 0), skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warnings.warn("Profiler won't be using warmup, this can skew profiler results", stacklevel=2)
    length = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        cycle, place = divmod(step - skip_first + (wait if skip_first_wait else 0), length)
        if (repeat and cycle >= repeat) or place < wait:
            return ProfilerAction.NONE
        if place < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD_AND_SAVE if place == length - 1 else ProfilerAction.RECORD

    return action


def always(step: int) -> ProfilerAction:
    """The schedule of a profile that was given none."""
    return ProfilerAction.RECORD
