"""What failed, read from the error that ended a recording: the operation, the shapes it was given, the line, the module.

An operator that fails is seen as it fails (`recording.py`). What a function of the library refuses before it comes to
an operator is read from the traceback: the function's name and the tensors among its arguments.
"""

from __future__ import annotations

from types import CodeType, FrameType
from typing import Any

from pellucid.core.errors import calls_through, refused
from pellucid.core.sites import outside
from pellucid.graph.recording import Recorder
from pellucid.graph.snapshot import Failure, Graph

__all__ = ["note_failure"]


def note_failure(recorder: Recorder, error: BaseException) -> Failure:
    """Put the failure into the recorder's graph: a vertex for what failed, and the facts about it."""
    graph = recorder.graph
    failure = Failure(type(error).__name__, str(error))
    calls = calls_through(error.__traceback__)
    failure.site = _line(recorder, calls)
    failure.module = next((graph.calls[c].path for c in reversed(range(len(graph.calls))) if not graph.calls[c].finished), "")
    if recorder.failed is not None and recorder.failed[0] in _chain(error):
        failure.node = recorder.failed[1]
    else:
        found = refused(error.__traceback__)
        if found is not None:
            failure.node = recorder.put_failed(*found)
    if failure.node is not None:
        _describe(graph, failure)
    graph.failure = failure
    return failure


def _describe(graph: Graph, failure: Failure) -> None:
    """Copy from the failed vertex what it was and what it was given."""
    vertex = graph.nodes[failure.node or 0]
    failure.operation = vertex.operator
    into = sorted((edge for edge in graph.edges if edge.target == vertex.id), key=lambda edge: edge.input)
    failure.names = [edge.name for edge in into]
    failure.operands = [graph.nodes[edge.source].outputs[edge.output] for edge in into]
    vertex.site = failure.site
    vertex.call = max((c.id for c in graph.calls if not c.finished and c.path == failure.module), default=None)


def _chain(error: BaseException | None) -> set[int]:
    """The ids of an error and of those it came from."""
    found: set[int] = set()
    while error is not None and id(error) not in found:
        found.add(id(error))
        error = error.__cause__ or error.__context__
    return found


def _line(recorder: Recorder, calls: list[tuple[FrameType, int]]) -> Any:
    """The innermost line of the user's program."""
    for frame, lasti in reversed(calls):
        code: CodeType = frame.f_code
        if outside[code.co_filename]:
            return recorder.builder.line(code, lasti)
    return None
