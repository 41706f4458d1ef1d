"""`autograd.profiler`: how long operators and derivatives take, how often they run, how much memory they make.

`profile` takes a profile of this thread's work in a block; `record_function` names a range within it. How a profile is
printed and written is in `autograd/profiler_util.py`.
"""

from __future__ import annotations

import functools
import os
import socket
import uuid
import warnings
from time import perf_counter_ns, time_ns

from pellucid.autograd.around import standing
from pellucid.autograd.profiler_recorder import USER, Record, Recorder, add_up_memory, recorders
from pellucid.autograd.profiler_util import EventList, FunctionEvent, FunctionEventAvg, trace_entry, write_json

__all__ = ["EventList", "FunctionEvent", "FunctionEventAvg", "profile", "record_function"]

DEVICES = ("cuda", "xpu", "mtia", "hpu")


def _profiler_enabled() -> bool:
    """Whether a profile is being taken in this thread."""
    return bool(recorders())


def kineto_available() -> bool:
    """Whether there is a profiler; the question is about the library under PyTorch's."""
    return True


class profile:
    """A block of which a profile is taken: operators, custom Functions and nodes of this thread.

    Args:
        enabled: False makes it do nothing.
        record_shapes: keep the shapes of arguments.
        with_flops: count floating-point operations of sums, products and matrix products.
        profile_memory: count the bytes of new memory in results.
        with_stack: keep the lines of the program that led to each call; for a derivative, to the operator's.
        acc_events: if the block is entered again through `torch.profiler`, keep what there was.
        use_cuda, use_device: warn that there is no other device.
        use_cpu, use_kineto, with_modules, experimental_config, custom_trace_id_callback, post_processing_timeout_s,
            activity_filters: accepted, and without effect as long as the CPU is profiled.

    Afterwards it prints as a table; see `key_averages`, `table`, `function_events`, `export_chrome_trace`.

    Raises:
        RuntimeError: entered twice.
        AssertionError: the CPU is not to be profiled.
    """

    def __init__(self, enabled: bool = True, *, use_cuda: bool = False, use_device: str | None = None,
                 record_shapes: bool = False, with_flops: bool = False, profile_memory: bool = False,
                 with_stack: bool = False, with_modules: bool = False, use_kineto: bool = False, use_cpu: bool = True,
                 experimental_config=None, acc_events: bool = False, custom_trace_id_callback=None,
                 post_processing_timeout_s: float | None = None, activity_filters: dict | None = None):  # fmt: skip
        self.enabled = enabled
        if use_cuda and enabled:
            text = "The attribute `use_cuda` will be deprecated soon, please use ``use_device = 'cuda'`` instead."
            warnings.warn(text, FutureWarning, stacklevel=2)
            use_device = "cuda"
        if use_device is not None and enabled:
            _warn_of_device(use_device)
        if enabled and not use_cpu:
            raise AssertionError(
                "No activities specified for the profiler: there is only the CPU to profile"
                if use_kineto
                else "Device-only events supported only with Kineto (use_kineto=True)"
            )
        if post_processing_timeout_s is not None and post_processing_timeout_s < 0:
            raise ValueError(f"post_processing_timeout_s must be non-negative, but got {post_processing_timeout_s}")
        self.use_device = None
        self.record_shapes, self.with_flops = record_shapes or with_flops, with_flops
        self.profile_memory, self.with_stack, self.acc_events = profile_memory, with_stack, acc_events
        self.trace_id = custom_trace_id_callback() if custom_trace_id_callback else f"{uuid.uuid4().int:032X}"
        self.entered = False
        self._recorder: Recorder | None = None
        self._standing: standing | None = None
        self._kept: list[FunctionEvent] = []  # of earlier cycles
        self._events: EventList | None = None
        self._start = self._start_of_epoch = 0

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant: make a profile for each block")
        self._begin()
        return self

    def __exit__(self, *exception) -> bool:
        if self.enabled:
            self._finish()
        return False

    def _begin(self) -> None:
        """Start recording, anew."""
        if self.acc_events and self._recorder is not None:
            self._kept = list(self.function_events)
        self.entered, self._events = True, None
        self._recorder = Recorder(self.record_shapes, self.profile_memory, self.with_stack, self.with_flops)
        self._standing = standing(self._recorder)
        self._standing.__enter__()
        self._start, self._start_of_epoch = perf_counter_ns(), time_ns()

    def _finish(self) -> None:
        """Stop recording."""
        if self._standing is not None and self._recorder is not None:
            self._standing.__exit__()
            self._standing = None
            self._recorder.stop()

    @property
    def function_events(self) -> EventList:
        """All events, by the time they began."""
        if self._events is None or self._standing is not None:
            events = EventList(
                [] if self._recorder is None else self._recorder.events(self._start),
                profile_memory=self.profile_memory, with_flops=self.with_flops,
            )  # fmt: skip
            events._build_tree()
            add_up_memory(events)
            events.extend(self._kept)
            self._events = events
        return self._events

    def __str__(self) -> str:
        if self._recorder is None or self._standing is not None:
            return "<unfinished torch.autograd.profile>"
        return str(self.function_events)

    def __repr__(self) -> str:
        if self._recorder is None or self._standing is not None:
            return "<unfinished torch.autograd.profile>"
        return repr(self.function_events)

    def table(self, *args, **kwargs) -> str:
        """All events as a table, one row each; arguments as for `EventList.table`."""
        return self.function_events.table(*args, **kwargs)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:  # fmt: skip
        """Sums over the events of each name; see `EventList.key_averages`."""
        return self.function_events.key_averages(group_by_input_shape, group_by_stack_n, group_by_overload_name)

    def total_average(self) -> FunctionEventAvg:
        """The sum over all events, under the key "Total"."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds in all events, each counted once."""
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(self, path: str | os.PathLike, metadata: dict | None = None) -> None:
        """Write a trace for chrome://tracing or ui.perfetto.dev: JSON, compressed if the name ends in .gz.

        The file appears whole or not at all. `metadata` goes beside the events.
        """
        content = {"schemaVersion": 1, "deviceProperties": [], "trace_id": self.trace_id, "host_name": socket.gethostname()}
        content |= metadata or {}
        content |= {"displayTimeUnit": "ms", "baseTimeNanoseconds": self._start_of_epoch}
        content |= {"traceEvents": [_detailed(event) for event in self.function_events], "traceName": os.fspath(path)}
        write_json(path, content)

    def export_stacks(self, path: str | os.PathLike, metric: str = "self_cpu_time_total") -> None:
        """Write stacks with their times for flame graph programs; needs `with_stack=True`."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)


def _warn_of_device(name: str) -> None:
    if name in DEVICES:
        text = f"{name.upper()} is not available, disabling {name.upper()} profiling"
    else:
        text = f"The {name} is not a valid device option."
    warnings.warn(text, stacklevel=3)


def _detailed(event: FunctionEvent) -> dict:
    """An event in a trace with all that is known of it."""
    kind = "user_annotation" if event.is_user_annotation else "cpu_op"
    args = {"External id": event.id, "Sequence number": event.sequence_nr, "Fwd thread id": event.fwd_thread or 0}
    args |= {"Input Dims": event.input_shapes} if event.input_shapes else {}
    args |= {"Call stack": ";".join(event.stack)} if event.stack else {}
    args |= {"Bytes": event.cpu_memory_usage} if event.cpu_memory_usage else {}
    return {**trace_entry(event), "cat": kind, "pid": os.getpid(), "args": args}


class record_function:
    """A named range in a profile: a block, or a function if used as a decorator.

    Outside a profile it costs almost nothing. Ranges need not end in the order in which they began.
    """

    def __init__(self, name: str, args: str | None = None):
        self.name, self.args = name, args
        self._open: list[Record] = []

    def __enter__(self) -> record_function:
        self._open = [recorder.begin(self.name, USER) for recorder in recorders()]
        return self

    def __exit__(self, *exception) -> None:
        for record in self._open:
            record.finish()
        self._open = []

    def __call__(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with record_function(self.name, self.args):
                return function(*args, **kwargs)

        return wrapped
