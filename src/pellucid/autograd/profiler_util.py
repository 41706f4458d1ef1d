"""What a profile consists of: events, their averages, and lists of both that print tables and write traces.

The names are those of `torch.autograd.profiler_util`. There is one device, the CPU; what PyTorch says of others is here
where printing or adding up asks for it, and is zero. The table's layout is in `autograd/profiler_table.py`, recording in
`autograd/profiler_recorder.py`.
"""

from __future__ import annotations

import gzip
import json
import os
from collections import defaultdict
from enum import Enum
from typing import Any

from pellucid.autograd.profiler_table import build_table, format_time
from pellucid.core.atomic import writing

__all__ = ["DeviceType", "EventList", "FunctionEvent", "FunctionEventAvg", "Interval", "write_json"]

METRICS = ("self_cpu_time_total", "self_cuda_time_total", "self_xpu_time_total", "self_privateuse1_time_total")


class DeviceType(Enum):
    """Where an event ran."""

    CPU = 0
    CUDA = 1
    XPU = 12
    MTIA = 18
    PrivateUse1 = 20


class Interval:
    """A stretch of time, in microseconds from the start of the profile."""

    def __init__(self, start: float, end: float):
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """How long it is."""
        return self.end - self.start

    def holds(self, other: Interval) -> bool:
        """Whether another interval begins before this one ends, and ends no later."""
        return other.start < self.end and other.end <= self.end


class _Times:
    """What events and averages have in common: mean times, times as text, and the other devices' zeros."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total = self_device_time_total = 0
    device_memory_usage = self_device_memory_usage = 0
    device_type = DeviceType.CPU
    use_device: str | None = None

    @property
    def cpu_time(self) -> float:
        """Microseconds a call."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """Microseconds a call on another device."""
        return 0.0

    @property
    def cpu_time_str(self) -> str:
        """`cpu_time` with its unit."""
        return format_time(self.cpu_time)

    @property
    def cpu_time_total_str(self) -> str:
        """`cpu_time_total` with its unit."""
        return format_time(self.cpu_time_total)

    @property
    def self_cpu_time_total_str(self) -> str:
        """`self_cpu_time_total` with its unit."""
        return format_time(self.self_cpu_time_total)


class FunctionEvent(_Times):
    """One call: of an operator, of a node's derivative, or a range named by `record_function`.

    Args:
        id: a number of its own in the profile.
        name: such as `aten::mul`, `MulBackward0`, or the range's name.
        thread: number of the thread, from 1.
        start_us, end_us: microseconds.
        fwd_thread: for a derivative, the thread of the forward.
        input_shapes: for each argument its shape, [] for what is no tensor.
        stack: lines of the program, innermost first.
        scope: 0 an operator, 1 a derivative, 7 a range.
        cpu_memory_usage: bytes of new memory in the results.
        is_async: whether it ran beside its surroundings; it then is nobody's child.
        sequence_nr: number of the node that it made, or is the derivative of; -1 for none.
        node_id, is_remote: the process, in distributed programs.
        flops: floating-point operations, as far as they are known.
        trace_name: name in traces; `name` if None.
        is_user_annotation: whether it is a range.
    """

    def __init__(self, id: int, name: str, thread: int, start_us: float, end_us: float, overload_name: str | None = None,
                 fwd_thread: int | None = None, input_shapes=None, stack: list[str] | None = None, scope: int = 0,
                 use_device: str | None = None, cpu_memory_usage: int = 0, device_memory_usage: int = 0,
                 is_async: bool = False, is_remote: bool = False, sequence_nr: int = -1, node_id: int = -1,
                 is_legacy: bool = False, flops: int | None = None, trace_name: str | None = None,
                 concrete_inputs: list | None = None, is_user_annotation: bool = False):  # fmt: skip
        self.id, self.name, self.thread, self.fwd_thread = id, name, thread, fwd_thread
        self.time_range = Interval(start_us, end_us)
        self.overload_name, self.trace_name = overload_name, trace_name or name
        self.input_shapes, self.concrete_inputs, self.stack = input_shapes, concrete_inputs, stack
        self.scope, self.sequence_nr, self.node_id, self.flops = scope, sequence_nr, node_id, flops
        self.cpu_memory_usage, self.device_memory_usage = cpu_memory_usage, device_memory_usage
        self.use_device, self.is_async, self.is_remote, self.is_legacy = use_device, is_async, is_remote, is_legacy
        self.is_user_annotation = is_user_annotation
        self.count = 1
        self.cpu_children: list[FunctionEvent] = []
        self.cpu_parent: FunctionEvent | None = None

    def append_cpu_child(self, child: FunctionEvent) -> None:
        """Note an event that ran directly within this one."""
        self.cpu_children.append(child)

    def set_cpu_parent(self, parent: FunctionEvent) -> None:
        """Note the event that this one ran directly within."""
        self.cpu_parent = parent

    @property
    def key(self) -> str:
        """What `key_averages` groups by."""
        return self.name

    @property
    def cpu_time_total(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Microseconds, children included."""
        return self.time_range.elapsed_us()

    @property
    def self_cpu_time_total(self) -> float:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Microseconds, children not included."""
        if self.is_async:
            return 0
        return self.cpu_time_total - sum(child.cpu_time_total for child in self.cpu_children)

    @property
    def self_cpu_memory_usage(self) -> int:
        """Bytes, children not included."""
        return 0 if self.is_async else self.cpu_memory_usage - sum(c.cpu_memory_usage for c in self.cpu_children)

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} cpu_time={self.cpu_time_str} start_us={self.time_range.start} "
            f"end_us={self.time_range.end} cpu_children={[c.id for c in self.cpu_children]} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} seq_nr={self.sequence_nr}>"
        )


class FunctionEventAvg(_Times):
    """The sums over all events of one key, with the number of them."""

    SUMMED = ("cpu_time_total", "self_cpu_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "count")
    FIRST = (
        "key", "node_id", "is_async", "is_remote", "cpu_parent", "cpu_children", "overload_name", "input_shapes",
        "stack", "scope", "is_legacy", "use_device", "is_user_annotation",
    )  # fmt: skip
    is_async = is_remote = is_legacy = is_user_annotation = False
    overload_name = input_shapes = stack = scope = cpu_children = cpu_parent = None

    def __init__(self):
        self.key: str | None = None
        self.node_id = self.count = self.flops = 0
        self.cpu_time_total = self.self_cpu_time_total = 0
        self.cpu_memory_usage = self.self_cpu_memory_usage = 0

    def add(self, other: Any) -> FunctionEventAvg:
        """Add an event, or what has been added up elsewhere.

        Raises:
            AssertionError: it has another key, or is neither.
        """
        if not isinstance(other, (FunctionEvent, FunctionEventAvg)):
            raise AssertionError(f"Expected other to be a FunctionEvent or FunctionEventAvg, not {type(other).__name__}")
        if self.key is None:
            for name in self.FIRST:
                setattr(self, name, getattr(other, name))
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        for name in self.SUMMED:
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.flops += other.flops or 0
        return self

    def __iadd__(self, other) -> FunctionEventAvg:
        return self.add(other)

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} cpu_time={self.cpu_time_str} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage}>"
        )


class EventList(list):
    """Events or averages, in the order in which they began."""

    def __init__(self, *args, use_device: str | None = None, profile_memory: bool = False, with_flops: bool = False):
        super().__init__(*args)
        self._use_device, self._profile_memory, self._with_flops = use_device, profile_memory, with_flops
        self._tree_built = False

    def _build_tree(self) -> None:
        """Find out which event ran within which."""
        self._populate_cpu_children()
        self._tree_built = True

    def _populate_cpu_children(self) -> None:
        """An event's parent is the last to begin before it, in its thread, that does not end before it does.

        One that ends earlier than a later event but after its beginning can be nobody's parent from there on.
        """
        threads = defaultdict(list)
        for event in self:
            if not event.is_async:
                threads[event.thread, event.node_id].append(event)
        for events in threads.values():
            around: list[FunctionEvent] = []
            for event in sorted(events, key=lambda e: (e.time_range.start, -e.time_range.end)):
                while around and not around[-1].time_range.holds(event.time_range):
                    around.pop()
                if around:
                    around[-1].append_cpu_child(event)
                    event.set_cpu_parent(around[-1])
                around.append(event)

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """Microseconds in all events, each counted once."""
        return sum(event.self_cpu_time_total for event in self)

    def table(self, sort_by: str | None = None, row_limit: int = 100, max_src_column_width: int | None = 75,
              max_name_column_width: int | None = 55, max_shapes_column_width: int | None = 80, header: str | None = None,
              top_level_events_only: bool = False, time_unit: str | None = None) -> str:  # fmt: skip
        """The list as a table.

        Args:
            sort_by: an attribute, largest first: "cpu_time", "cpu_time_total", "self_cpu_time_total", "count",
                "cpu_memory_usage", "self_cpu_memory_usage"; by default the order is kept.
            row_limit: how many rows at most; -1 for all.
            max_src_column_width, max_name_column_width, max_shapes_column_width: longer texts are cut; None for never.
            header: a line above the table.
            top_level_events_only: leave out what ran within another event.
            time_unit: "s", "ms" or "us"; by default each time has the unit that suits it.
        """
        return build_table(
            self, sort_by=sort_by, row_limit=row_limit, header=header, top_level_only=top_level_events_only,
            widths=(max_name_column_width, max_shapes_column_width, max_src_column_width), time_unit=time_unit,
            with_memory=self._profile_memory, with_flops=self._with_flops,
        )  # fmt: skip

    def export_chrome_trace(self, path: str | os.PathLike) -> None:
        """Write the events for chrome://tracing or ui.perfetto.dev: a JSON list. The file appears whole or not at all."""
        write_json(path, [trace_entry(event) for event in self])

    def supported_export_stacks_metrics(self) -> list[str]:
        """What `export_stacks` can weigh stacks by."""
        return list(METRICS)

    def export_stacks(self, path: str | os.PathLike, metric: str) -> None:
        """Write one line for each event: its stack, outermost first, and its time; the input of flame graph programs.

        Raises:
            ValueError: an unknown metric.
        """
        if metric not in METRICS:
            raise ValueError(f"metric should be one of: {list(METRICS)}, but got {metric!r}")
        with writing(path) as stream:
            for event in self:
                value = int(event.self_cpu_time_total) if metric == METRICS[0] else 0
                if event.stack and value > 0:
                    line = ";".join(entry.translate(_NO_BLANKS) for entry in reversed(event.stack))
                    stream.write(f"{line} {value}\n".encode())

    def key_averages(self, group_by_input_shapes: bool = False, group_by_stack_n: int = 0,
                     group_by_overload_name: bool = False) -> EventList:  # fmt: skip
        """Sums over the events of each name.

        Args:
            group_by_input_shapes: keep events with arguments of different shapes apart.
            group_by_stack_n: keep events apart that differ in so many lines of their stacks.
            group_by_overload_name: has no effect; operators have one form each.
        """
        if not self._tree_built:
            raise AssertionError("Expected tree to be built before calling key_averages")
        groups: dict[tuple, FunctionEventAvg] = defaultdict(FunctionEventAvg)
        for event in self:
            shapes = str(event.input_shapes) if group_by_input_shapes else ""
            groups[event.key, event.node_id, shapes, *(event.stack or [])[:group_by_stack_n]].add(event)
        averages = EventList(
            groups.values(), use_device=self._use_device, profile_memory=self._profile_memory, with_flops=self._with_flops
        )
        for average in averages:
            average.stack = (average.stack or [])[:group_by_stack_n]
            if not group_by_input_shapes:
                average.input_shapes = ""
        return averages

    def total_average(self) -> FunctionEventAvg:
        """The sum over all events, under the key "Total"."""
        total = FunctionEventAvg()
        for event in self:
            total += event
            total.key = None
        total.key = "Total"
        return total


_NO_BLANKS = str.maketrans(" ;\t\n", "____")


def trace_entry(event: FunctionEvent) -> dict:
    """An event as Chrome's trace format wants it."""
    return {
        "name": event.trace_name, "ph": "X", "ts": event.time_range.start, "dur": event.time_range.elapsed_us(),
        "tid": event.thread, "pid": "CPU functions", "args": {},
    }  # fmt: skip


def write_json(path: str | os.PathLike, content) -> None:
    """Write JSON, compressed if the name ends in .gz; the file appears whole or not at all."""
    text = json.dumps(content).encode()
    with writing(path) as stream:
        stream.write(gzip.compress(text) if os.fspath(path).endswith(".gz") else text)
