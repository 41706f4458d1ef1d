"""What failed, read from the error that ended a recording: the operation, the shapes it was given, the line, the module.

An operator that fails is seen as it fails (`recording.py`). What a function of the library refuses before it comes to
an operator is read from the traceback: the function's name and the tensors among its arguments.
"""

from __future__ import annotations

from types import CodeType, FrameType, TracebackType
from typing import Any

from pellucid.core.frames import variables
from pellucid.core.sites import outside
from pellucid.core.tensor import Tensor
from pellucid.graph.recording import Recorder
from pellucid.graph.snapshot import Failure, Graph
from pellucid.nn.modules.module import Module

__all__ = ["note_failure"]


def note_failure(recorder: Recorder, error: BaseException) -> Failure:
    """Put the failure into the recorder's graph: a vertex for what failed, and the facts about it."""
    graph = recorder.graph
    failure = Failure(type(error).__name__, str(error))
    frames = _frames(error.__traceback__)
    failure.site = _line(recorder, frames)
    failure.module = next((graph.calls[c].path for c in reversed(range(len(graph.calls))) if not graph.calls[c].finished), "")
    if recorder.failed is not None and recorder.failed[0] in _chain(error):
        failure.node = recorder.failed[1]
    else:
        refused = _refused(frames)
        if refused is not None:
            failure.node = recorder.put_failed(*refused)
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


def _frames(traceback: TracebackType | None) -> list[tuple[FrameType, int]]:
    """The frames that an error passed through, outermost first, each with the instruction it was at."""
    found = []
    while traceback is not None:
        found.append((traceback.tb_frame, traceback.tb_lasti))
        traceback = traceback.tb_next
    return found


def _chain(error: BaseException | None) -> set[int]:
    """The ids of an error and of those it came from."""
    found: set[int] = set()
    while error is not None and id(error) not in found:
        found.add(id(error))
        error = error.__cause__ or error.__context__
    return found


def _line(recorder: Recorder, frames: list[tuple[FrameType, int]]) -> Any:
    """The innermost line of the user's program."""
    for frame, lasti in reversed(frames):
        code: CodeType = frame.f_code
        if outside[code.co_filename]:
            return recorder.builder.line(code, lasti)
    return None


def _refused(frames: list[tuple[FrameType, int]]) -> tuple[str, list[tuple[str, Tensor]]] | None:
    """The library's function that refused its arguments: the one nearest to the user's line that is no module's."""
    last = max((k for k, (frame, _) in enumerate(frames) if outside[frame.f_code.co_filename]), default=-1)
    for frame, _ in frames[last + 1 :]:
        code, local = frame.f_code, variables(frame)
        arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        given = [(name, local[name]) for name in arguments if name in local]
        tensors = [(name, value) for name, value in given if isinstance(value, Tensor)]
        if tensors and not any(isinstance(value, Module) for _, value in given):
            return code.co_name, tensors
    return None
