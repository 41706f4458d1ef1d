"""Recording a whole program, backward by backward: for the command that shows the graph of a script."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from pellucid.autograd.around import Work
from pellucid.autograd.engine import current_task
from pellucid.core.frames import outer_frames
from pellucid.graph.names import names_here
from pellucid.graph.recording import Recorder
from pellucid.graph.selecting import behind
from pellucid.graph.snapshot import Graph, Line
from pellucid.graph.taking import put_names

__all__ = ["Enough", "Watcher"]

LIMIT = 100_000  # vertices between two backwards that are kept


class Enough(BaseException):
    """Ends the watched program: what was to be seen has been seen. No Exception, so that `except` blocks let it through."""


class Watcher(Recorder):
    """A recorder that keeps the graph of the last backward that was wanted.

    wanted: called with the number of a backward, from 1, and the line that started it; says whether to keep its graph.
    enough: called with the number of the last backward that was kept; says whether the program may end now.
    """

    def __init__(self, wanted: Callable[[int, Line | None], bool], enough: Callable[[int], bool], values: bool = False):
        super().__init__(values, LIMIT)
        self.wanted, self.enough = wanted, enough
        self.count = 0  # backwards so far
        self.lines: set[int] = set()  # that started them
        self._task: Any = None  # the backward that is running or was the last to run
        self._kept: tuple[Graph, list[tuple[int, int]]] | None = None
        self._done = False

    @property
    def kept(self) -> Graph | None:
        """The graph behind the result of the last wanted backward; None if there was none."""
        return None if self._kept is None else behind(*self._kept)

    def _around(self, work: Work, subject: Any, arguments: tuple, call: Any) -> Any:
        task = current_task()
        if work is Work.NODE and task is not None and task.outer is None and task is not self._task:
            self._begin_backward(task, subject)
        elif work in (Work.OPERATOR, Work.IN_PLACE) and task is None and self._task is not None:
            self._task = None
            self._end_backward()
        return super()._around(work, subject, arguments, call)

    def _begin_backward(self, task: Any, root: Any) -> None:
        self._task = task
        self.count += 1
        frame = next(outer_frames(sys._getframe(1)), None)
        line = None if frame is None else self.builder.line(frame.f_code, frame.f_lasti)
        if line is not None:
            self.lines.add(line.line)
        if not self.wanted(self.count, line):
            return
        vertex = self.builder.handles.nodes.get(root)
        if vertex is not None:
            put_names(self.graph, names_here(frame), self)
            self.graph.title = f"{self.graph.nodes[vertex].label}, backward {self.count}" + (f" at {line}" if line else "")
            self._kept = self.graph, [(vertex, 0)]
            self._done = self.enough(self.count)

    def _end_backward(self) -> None:
        """A backward is over and the program goes on: what comes now belongs to the next one."""
        if self._done:
            self._done = False
            raise Enough
        self.restart()
