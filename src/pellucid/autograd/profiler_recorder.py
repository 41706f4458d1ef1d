"""Recording: what stands around operators, Functions and nodes while a profile is taken, and notes their times.

Only plain facts are kept, no tensor and no node, so that a profile changes nobody's lifetime. Everything that can wait
(names, stacks as text, parents and children) is worked out when the profile is asked for.
"""

from __future__ import annotations

import functools
import re
import sys
import threading
from time import perf_counter_ns
from types import FrameType
from typing import Any

import numpy as np

from pellucid.autograd.around import Work
from pellucid.autograd.operator import PUBLIC
from pellucid.autograd.profiler_util import FunctionEvent
from pellucid.core.modes import modes
from pellucid.core.sites import Site, outside
from pellucid.core.tensor import Tensor

__all__ = ["USER", "Record", "Recorder", "add_up_memory", "recorders"]

FORWARD, BACKWARD, USER = 0, 1, 7  # scopes, by PyTorch's numbers
DERIVATIVES = (Work.NODE, Work.LEAF)


class Record:
    """One call, as it is noted."""

    __slots__ = ("begin", "end", "flops", "memory", "name", "scope", "sequence", "shapes", "stack", "thread")

    def __init__(self, name: str | tuple, scope: int, thread: int):
        self.name, self.scope, self.thread = name, scope, thread
        self.end = None
        self.memory, self.flops, self.sequence = 0, 0, -1
        self.shapes: list | None = None
        self.stack: list | None = None  # (code object, instruction) of frames of the program, innermost first
        self.begin = perf_counter_ns()

    def finish(self) -> None:
        """Note the end, the first time."""
        if self.end is None:
            self.end = perf_counter_ns()


class Recorder:
    """Stands around calls. See `profile` for what it is asked to note."""

    def __init__(self, shapes: bool, memory: bool, stack: bool, flops: bool):
        self.shapes, self.memory, self.stack, self.flops = shapes, memory, stack, flops
        self.records: list[Record] = []
        self.threads: dict[int, int] = {}  # identity -> number

    def begin(self, name: str | tuple, scope: int) -> Record:
        """Start a record."""
        identity = threading.get_ident()
        thread = self.threads.get(identity) or self.threads.setdefault(identity, len(self.threads) + 1)
        record = Record(name, scope, thread)
        self.records.append(record)
        return record

    def __call__(self, work: Work, subject, arguments: tuple, call):
        """Make a call and note it."""
        record = self.begin(_subject_name(work, subject), BACKWARD if work in DERIVATIVES else FORWARD)
        given = arrays_in(arguments) if self.memory or self.flops else []
        before = _sequence(arguments) if work is Work.IN_PLACE else -1
        makes_memory = not (work is Work.IN_PLACE or (work is Work.LEAF and subject._grad is not None))
        self._note_origin(record, work, subject, arguments)
        record.begin = perf_counter_ns()  # without the time that noting took
        try:
            result = call()
        finally:
            record.finish()
        if work is Work.OPERATOR or work is Work.IN_PLACE:
            after = _sequence(result)
            record.sequence = -1 if after == before else after
        if self.memory and makes_memory:
            record.memory = _new_memory(arrays_in(subject._grad if work is Work.LEAF else result, _is_new), given)
        if self.flops and work is Work.OPERATOR:
            record.flops = _flops(subject.name, given, arrays_in(result))
        return result

    def _note_origin(self, record: Record, work: Work, subject, arguments: tuple) -> None:
        """What is known before a call: shapes, and the lines that led to it."""
        if self.shapes:
            record.shapes = [_shape(a) for a in arguments]
        if work is Work.NODE:
            record.sequence = subject.sequence
            record.stack = [(subject.code, subject.lasti)] if self.stack and subject.code else None
        elif self.stack and work is not Work.LEAF:
            record.stack = _frames(sys._getframe(2))

    def stop(self) -> None:
        """End what is still open."""
        for record in self.records:
            record.finish()

    def events(self, start: int) -> list[FunctionEvent]:
        """The records as events, by the time they began; `start` is the time zero, in nanoseconds."""
        forward = {r.sequence: r for r in self.records if r.scope == FORWARD and r.sequence >= 0}
        made = []
        for number, record in enumerate(sorted(self.records, key=lambda r: r.begin)):
            origin = forward.get(record.sequence) if record.scope == BACKWARD else None
            stack = origin.stack if origin is not None and origin.stack is not None else record.stack
            name = event_name(record.name)
            made.append(
                FunctionEvent(
                    id=number, name="ProfilerStep*" if name.startswith("ProfilerStep#") else name, trace_name=name,
                    thread=record.thread, start_us=(record.begin - start) / 1e3, end_us=((record.end or start) - start) / 1e3,
                    fwd_thread=origin.thread if origin else None, input_shapes=record.shapes or [],
                    stack=[_entry(*frame) for frame in stack or ()], scope=record.scope, sequence_nr=record.sequence,
                    cpu_memory_usage=record.memory, flops=record.flops, is_user_annotation=record.scope == USER,
                )
            )  # fmt: skip
        return made


def add_up_memory(events: list[FunctionEvent]) -> None:
    """Give what has children the memory that was made in them; events come by the time they began."""
    for event in reversed(events):
        if event.cpu_children:
            event.cpu_memory_usage = sum(child.cpu_memory_usage for child in event.cpu_children)


def recorders() -> list[Recorder]:
    """The recorders that stand around this thread's calls."""
    return [around for around in modes.around if isinstance(around, Recorder)]


# --- names -----------------------------------------------------------------------------------------------------------


def _subject_name(work: Work, subject) -> str | tuple:
    """What is cheap to keep and can be turned into a name later: (work, name, node name) for an operator."""
    if work is Work.OPERATOR or work is Work.IN_PLACE:
        return work, subject.name, subject.node_name
    if work is Work.FUNCTION:
        return (work, subject.__name__, "")
    return (work, "torch::autograd::AccumulateGrad" if work is Work.LEAF else subject.name(), "")


def event_name(name: str | tuple) -> str:
    """The name of a record's event."""
    if isinstance(name, str):
        return name
    work, own, node = name
    if work is Work.OPERATOR or work is Work.IN_PLACE:
        return f"aten::{_public_name(own, node)}{'_' if work is Work.IN_PLACE else ''}"
    return own


@functools.cache
def _public_name(own: str, node: str) -> str:
    """The name an operator goes by outside: that of its node where this is one, since `sum` consists of two, for example."""
    stem = re.sub(r"Backward\d*$", "", node)
    found = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", stem).lower()
    found = re.sub(r"(?<=\d)_(?=d(_|$))", "", found)
    return found if hasattr(Tensor, found) or any(found in names for names in PUBLIC.values()) else own


# --- facts -----------------------------------------------------------------------------------------------------------


def _shape(value) -> list:
    shape = getattr(value, "shape", None)
    return [] if shape is None else list(shape)


def arrays_in(value, chosen=lambda tensor: True) -> list[np.ndarray]:
    """The arrays of all tensors in a value: a tensor, an array, or a tuple or list of such. `chosen` may leave out some."""
    if isinstance(value, (tuple, list)):
        return [array for member in value for array in arrays_in(member, chosen)]
    array = getattr(value, "_array", value)
    return [array] if isinstance(array, np.ndarray) and chosen(value) else []


def _is_new(value) -> bool:
    """Whether nobody has written to a tensor: one given as `out` has just been written to."""
    count = getattr(value, "_counter", None)
    return count is None or not count.writes


def _new_memory(made: list[np.ndarray], given: list[np.ndarray]) -> int:
    """Bytes of results that are no views of what was given."""
    return sum(m.nbytes for m in made if not any(np.may_share_memory(m, g) for g in given))


def _flops(name: str, given: list[np.ndarray], made: list[np.ndarray]) -> int:
    """Floating-point operations of those operators for which PyTorch's profiler counts them."""
    size = sum(m.size for m in made)
    if name in ("add", "mul"):
        return size
    if name in ("mm", "bmm", "matmul", "linear") and len(given) > 1:
        return 2 * size * given[0].shape[-1]
    if name in ("addmm", "baddbmm") and len(given) > 2:
        return 2 * size * given[1].shape[-1]
    return 0


def _sequence(result: Any) -> int:
    """The number of the node that a result has; -1 for none."""
    while isinstance(result, (tuple, list)) and result:
        result = result[0]
    edge = getattr(result, "_edge", None)
    return -1 if edge is None else edge[0].sequence


def _frames(frame: FrameType | None) -> list:
    """Where each frame outside the library stands, innermost first."""
    found = []
    while frame is not None:
        if outside[frame.f_code.co_filename]:
            found.append((frame.f_code, frame.f_lasti))
        frame = frame.f_back
    return found


def _entry(code, lasti: int) -> str:
    site = Site.of(code, lasti)
    return "" if site is None else f"{site.file}({site.line}): {code.co_name}"
