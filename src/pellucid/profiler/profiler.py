"""`profile`, which knows steps, and what is done with a cycle of them when it is over."""

from __future__ import annotations

import json
import os
import socket
import time
import warnings
from collections.abc import Callable
from typing import Any

from pellucid.autograd import profiler
from pellucid.autograd.profiler_util import EventList
from pellucid.profiler.schedules import ProfilerAction, ProfilerActivity, always, chosen_activities

__all__ = ["profile", "tensorboard_trace_handler"]

NONE, WARMUP, RECORD, SAVE = ProfilerAction
RECORDING = (RECORD, SAVE)


class profile:
    """A block of which a profile is taken, all of it or the steps that a schedule names.

    Args:
        activities: what to profile, such as [ProfilerActivity.CPU]; others than the CPU are not there.
        schedule: from the number of a step to a ProfilerAction, as `schedule(...)` makes it; `step()` then ends a step.
        on_trace_ready: called with this profile at the end of each cycle.
        record_shapes, profile_memory, with_stack, with_flops: as for `pellucid.autograd.profiler.profile`.
        acc_events: keep the events of earlier cycles.
        use_cuda: the old way to choose activities.
        with_modules, experimental_config, execution_trace_observer, post_processing_timeout_s: without effect.
        custom_trace_id_callback: gives each cycle its id.

    Raises:
        AssertionError: the CPU is not among the activities.
    """

    def __init__(self, *, activities=None, schedule: Callable[[int], ProfilerAction] | None = None,
                 on_trace_ready: Callable[..., Any] | None = None, record_shapes: bool = False,
                 profile_memory: bool = False, with_stack: bool = False, with_flops: bool = False,
                 with_modules: bool = False, experimental_config=None, execution_trace_observer=None,
                 acc_events: bool = False, use_cuda: bool | None = None,
                 custom_trace_id_callback: Callable[[], str] | None = None,
                 post_processing_timeout_s: float | None = None):  # fmt: skip
        self.activities = chosen_activities(activities)
        if use_cuda is not None:
            warnings.warn("`use_cuda` is deprecated, use `activities` argument instead", FutureWarning, stacklevel=2)
            self.activities |= {ProfilerActivity.CUDA} if use_cuda else set()
        self.with_stack, self.acc_events = with_stack, acc_events
        self._options = {
            "record_shapes": record_shapes, "profile_memory": profile_memory, "with_stack": with_stack,
            "with_flops": with_flops, "acc_events": acc_events, "custom_trace_id_callback": custom_trace_id_callback,
            "post_processing_timeout_s": post_processing_timeout_s,
        }  # fmt: skip
        self.schedule, self.record_steps = schedule or always, schedule is not None
        self.on_trace_ready = on_trace_ready
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.profiler: profiler.profile | None = None
        self._range: profiler.record_function | None = None
        self._metadata: dict[str, Any] = {}

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exception) -> None:
        self.stop()

    def start(self) -> None:
        """Begin the first step."""
        self._move(NONE, self.current_action)
        self._begin_step()

    def step(self) -> None:
        """End a step and begin the next."""
        self._end_step()
        action = self.schedule(self.step_num + 1)
        before, self.current_action = self.current_action, action
        self.step_num += 1
        self._move(before, action)
        self._begin_step()

    def stop(self) -> None:
        """End the last step; what was being recorded is ready now."""
        self._end_step()
        self._move(self.current_action, None)

    def _begin_step(self) -> None:
        if self.record_steps:
            self._range = profiler.record_function(f"ProfilerStep#{self.step_num}")
            self._range.__enter__()

    def _end_step(self) -> None:
        if self._range is not None:
            self._range.__exit__()
            self._range = None

    def _move(self, before: ProfilerAction, after: ProfilerAction | None) -> None:
        """From what one step does to what the next does; None after the last."""
        if (before is WARMUP and after is NONE) or (before is RECORD and after in (NONE, WARMUP)):
            warnings.warn(f"Incorrect schedule: {before.name} followed by {after.name}", stacklevel=4)
        over = before is SAVE or (before is RECORD and after not in RECORDING)
        if over and self.profiler is not None:
            self.profiler._finish()
            if self.on_trace_ready is not None and (before is SAVE or after is None):
                self.on_trace_ready(self)
        if after is WARMUP and before in (NONE, SAVE):
            self._prepare()
        if after in RECORDING and (over or before not in RECORDING):
            if before is not WARMUP:
                self._prepare()
            self.profiler._begin()  # pyright: ignore[reportOptionalMemberAccess]

    def _prepare(self) -> None:
        """Make what records the next cycle."""
        if self.profiler is not None and self.acc_events:
            return
        if self.profiler is not None:
            warnings.warn(
                "Profiler clears events at the end of each cycle. Only events from the current cycle will be reported. "
                "To keep events across cycles, set acc_events=True.",
                stacklevel=5,
            )
        device = next((a.name.lower() for a in self.activities if a is not ProfilerActivity.CPU), None)
        self.profiler = profiler.profile(use_device=device, use_kineto=True, **self._options)

    # --- what was recorded ---------------------------------------------------------------------------------------------

    def _started(self, purpose: str) -> profiler.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {purpose}: no step has been recorded yet")
        return self.profiler

    def events(self) -> EventList:
        """All events of the last cycle, of every cycle with `acc_events`."""
        return self._started("accessing events").function_events

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:  # fmt: skip
        """Sums over the events of each name; see `EventList.key_averages`."""
        found = self._started("getting key averages")
        return found.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def export_chrome_trace(self, path: str | os.PathLike) -> None:
        """Write a trace for chrome://tracing or ui.perfetto.dev, compressed if the name ends in .gz."""
        self._started("exporting chrome trace").export_chrome_trace(path, self._metadata)

    def export_stacks(self, path: str | os.PathLike, metric: str = "self_cpu_time_total") -> None:
        """Write stacks with their times for flame graph programs; needs `with_stack=True`."""
        self._started("exporting stacks").export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Put a text into the traces."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Put a value, given as JSON, into the traces.

        Raises:
            ValueError: it is no JSON.
        """
        self._metadata[key] = json.loads(value)

    preset_metadata_json = add_metadata_json

    def get_trace_id(self) -> str | None:
        """The id of the cycle; None before the first."""
        return None if self.profiler is None else self.profiler.trace_id


def tensorboard_trace_handler(dir_name: str, worker_name: str | None = None, use_gzip: bool = False):
    """What to pass as `on_trace_ready` for a trace of each cycle in a folder.

    Args:
        dir_name: the folder; made if it is not there.
        worker_name: how the files' names begin; by default host and process.
        use_gzip: compress them.
    """

    def handle(prof: profile) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError(f"Can't create directory: {dir_name}") from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json{'.gz' if use_gzip else ''}"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handle
